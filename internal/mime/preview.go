package mime

import (
	"io"
	"strings"
	"unicode/utf8"
)

const (
	maxPreviewParts = 10        // text parts that are tried
	previewPlain    = 8 << 10   // octets of text that are looked at
	previewHTML     = 32 << 10  // the same of HTML; its head may be long,
	previewHTMLMore = 512 << 10 // so more is looked at if that much said too little
)

// Preview returns the beginning of what a person reads of a message: one line of at most
// limit characters, valid UTF-8, without quoted lines unless there is nothing else, and
// "" if there is no text. s is the structure of the message in r, of which only the
// beginnings of text parts are read. An error is one of r's.
func Preview(r io.ReaderAt, s *Structure, limit int) (string, error) {
	if s.Root == nil {
		return "", nil
	}
	for _, p := range readable(nil, s.Root) {
		line, err := previewOf(r, p, limit)
		if line != "" || err != nil {
			return line, err
		}
	}
	return "", nil
}

// readable appends the parts that a person is shown as text, in the order in which they
// are worth a try.
func readable(list []*Part, p *Part) []*Part {
	switch {
	case len(list) >= maxPreviewParts || p.Disposition == "attachment":
	case p.Type == "text" && (p.Subtype == "plain" || p.Subtype == "html"):
		list = append(list, p)
	case p.Type == "multipart":
		if p.Subtype == "alternative" { // all say the same: what is plain is quicker
			for _, c := range p.Children {
				if c.Type == "text" && c.Subtype == "plain" {
					list = readable(list, c)
				}
			}
		}
		for _, c := range p.Children {
			list = readable(list, c)
		}
	}
	return list
}

func previewOf(r io.ReaderAt, p *Part, limit int) (string, error) {
	if p.Subtype != "html" {
		text, err := Text(r, p, previewPlain)
		return previewLine(text, limit), err
	}
	line := ""
	for _, most := range []int64{previewHTML, previewHTMLMore} {
		source, err := Text(r, p, most)
		if err != nil {
			return "", err
		}
		text, _ := HTMLText(source)
		line = previewLine(text, limit)
		if utf8.RuneCountInString(line) >= limit/2 || int64(len(source)) < most-utf8.UTFMax {
			break
		}
	}
	return line, nil
}

// previewLine makes one line of the lines that are not quoted, else of all.
func previewLine(text string, limit int) string {
	var own, quoted previewWriter
	for line := range strings.Lines(text) {
		w := &own
		if strings.HasPrefix(line, ">") {
			w, line = &quoted, strings.TrimLeft(line, "> ")
		}
		w.add(line, limit)
		if own.n >= limit {
			break
		}
	}
	if own.n > 0 {
		return own.String()
	}
	return quoted.String()
}

// previewWriter joins words until limit characters are there.
type previewWriter struct {
	strings.Builder
	n int
}

func (w *previewWriter) add(line string, limit int) {
	for word := range strings.FieldsSeq(visible(line)) {
		if strings.HasPrefix(word, "<http") && strings.HasSuffix(word, ">") { // where a link leads
			continue
		}
		if w.n > 0 {
			if w.n += 1; w.n >= limit {
				return
			}
			w.WriteByte(' ')
		}
		for _, c := range word {
			if w.n >= limit {
				return
			}
			w.WriteRune(c)
			w.n++
		}
	}
}
