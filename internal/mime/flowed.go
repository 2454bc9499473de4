package mime

import "strings"

// unflow joins the lines of format=flowed text (RFC 3676): a line that ends in a space
// goes on in the next one of the same quote depth; delSp takes that space away.
// Quote marks are written as one ">" a level and a space.
func unflow(v string, delSp bool) string {
	var out strings.Builder
	open, depth := false, 0 // the last line goes on; its quote depth
	body, tail := v, ""
	if b, ok := strings.CutSuffix(v, "\n"); ok {
		body, tail = b, "\n"
	}
	for i, l := range strings.Split(body, "\n") {
		d := 0
		for d < len(l) && l[d] == '>' {
			d++
		}
		l = strings.TrimPrefix(l[d:], " ") // section 4.4: space-stuffing
		signature := l == "-- "            // section 4.3: never flowed
		if open && (d != depth || signature) {
			open = false
		}
		switch {
		case i > 0 && !open:
			out.WriteByte('\n')
			fallthrough
		case i == 0:
			if d > 0 {
				out.WriteString(strings.Repeat(">", d))
				out.WriteByte(' ')
			}
		}
		open, depth = strings.HasSuffix(l, " ") && !signature, d
		if open && delSp {
			l = l[:len(l)-1]
		}
		out.WriteString(l)
	}
	return out.String() + tail
}
