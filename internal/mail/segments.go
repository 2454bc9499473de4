package mail

import "strings"

// result puts the pieces together.
func (s *splitter) result() reply {
	r := reply{Forward: s.forward}
	var segments []segment
	var old []string
	for _, l := range s.lines {
		switch l.kind {
		case lineNew:
			segments = grow(segments, true, l.raw)
		case lineQuote, lineOld:
			segments = grow(segments, false, l.raw)
		case lineBlank:
			if len(segments) > 0 {
				last := &segments[len(segments)-1]
				last.lines = append(last.lines, "")
			}
		}
		if l.kind == lineQuote || l.kind == lineOld || l.kind == lineHead || l.kind == lineBlank && len(old) > 0 {
			old = append(old, l.raw)
		}
	}
	r.Inline = isInline(segments)
	r.New = joinNew(segments, r.Inline)
	r.Quoted = strings.TrimRight(strings.Join(old, "\n"), "\n ")
	if r.New == "" && len(old) == 0 { // nothing but what looks like a signature
		r.New = strings.Trim(strings.Join(splitLines(s.whole()), "\n"), "\n")
	}
	return r
}

func (s *splitter) whole() string {
	var b strings.Builder
	if s.parent.known() {
		return "" // a reply that only holds a signature says nothing
	}
	seen := false
	for _, l := range s.lines {
		b.WriteString(l.raw)
		b.WriteByte('\n')
		seen = seen || l.text != ""
	}
	if !seen {
		return ""
	}
	return b.String()
}

// segment is a run of lines of one side.
type segment struct {
	fresh bool
	lines []string
}

func grow(list []segment, fresh bool, raw string) []segment {
	if len(list) == 0 || list[len(list)-1].fresh != fresh {
		list = append(list, segment{fresh: fresh})
	}
	last := &list[len(list)-1]
	last.lines = append(last.lines, raw)
	return list
}

// isInline reports whether new text stands between old text.
func isInline(list []segment) bool {
	for i, s := range list {
		if s.fresh && i > 0 && i < len(list)-1 {
			return true
		}
	}
	return false
}

// contextLines is how many quoted lines stand above an inline answer.
const contextLines = 6

func joinNew(list []segment, inline bool) string {
	var out []string
	for i, s := range list {
		lines := trimBlank(s.lines)
		switch {
		case s.fresh && len(out) > 0 && !inline:
			out = append(append(out, ""), lines...)
		case s.fresh:
			out = append(out, lines...)
		case inline && i < len(list)-1:
			out = append(out, contextOf(lines)...)
		}
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// contextOf are the last quoted lines, with one mark each at least.
func contextOf(lines []string) []string {
	var out []string
	if cut := len(lines) - contextLines; cut > 0 {
		out, lines = append(out, "> […]"), lines[cut:]
	}
	for _, l := range lines {
		if !strings.HasPrefix(strings.TrimSpace(l), ">") {
			l = "> " + l
		}
		out = append(out, l)
	}
	return out
}
