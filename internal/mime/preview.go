package mime

import (
	"cmp"
	"io"
	"strings"
	"unicode/utf8"
)

// maxPreviewParts is how many text parts are tried.
const maxPreviewParts = 10

// Of a text so many octets are looked at, and more only if those said too little: the
// quoted lines may be many, and the head of an HTML text long.
var (
	previewPlain = []int64{1 << 10, 64 << 10}
	previewHTML  = []int64{16 << 10, 512 << 10}
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

func previewOf(r io.ReaderAt, p *Part, limit int) (line string, err error) {
	html := p.Subtype == "html"
	steps := previewPlain
	if html {
		steps = previewHTML
	}
	for _, most := range steps {
		text, err := Text(r, p, most)
		if err != nil {
			return "", err
		}
		whole := int64(len(text)) < most-utf8.UTFMax
		if html {
			text, _ = HTMLText(text)
		}
		own, quoted := previewLine(text, limit)
		switch {
		case utf8.RuneCountInString(own) >= limit/2, whole && own != "":
			return own, nil
		case whole:
			return quoted, nil
		}
		line = cmp.Or(own, quoted)
	}
	return line, nil
}

// previewLine makes one line of the lines that are not quoted, and one of those that are.
func previewLine(text string, limit int) (own, quoted string) {
	var all [2]previewWriter
	for line := range strings.Lines(text) {
		w := &all[0]
		if strings.HasPrefix(line, ">") {
			w, line = &all[1], strings.TrimLeft(line, "> ")
		}
		w.add(line, limit)
		if all[0].n >= limit {
			break
		}
	}
	return all[0].String(), all[1].String()
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
