package mime

import (
	"bytes"
	"io"
	"strings"
)

// Field is one header field.
type Field struct {
	Name  string // as in the message, without space before the colon
	Value string // what follows the colon, folded as in the message, without the last line end
	Raw   []byte // the whole field with its last line end, as in the message
}

// Text returns the value unfolded, with encoded-words (RFC 2047) decoded: valid UTF-8
// without control characters.
func (f Field) Text() string { return DecodeHeader(f.Value) }

// Fields cuts a header into its fields, in order. Lines that are no field (and what is
// folded under them) are left out. Raw shares rawHeader's memory.
func Fields(rawHeader []byte) []Field {
	var out []Field
	eachField(rawHeader, func(name, value, raw []byte) {
		out = append(out, Field{Name: string(name), Value: string(value), Raw: raw})
	})
	return out
}

// RawHeader returns the header of p with its empty line, as in the message: at most
// MaxHeader octets of it. For a message/rfc822 part this is the part's MIME header; the
// header of the message inside is that of its child.
func RawHeader(r io.ReaderAt, p *Part) ([]byte, error) {
	b := make([]byte, min(p.Header.Len(), MaxHeader))
	n, err := r.ReadAt(b, p.Header.Start)
	switch {
	case n == len(b):
		return b, nil
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return b[:n], err
}

// eachField calls fn for every field of a header.
func eachField(b []byte, fn func(name, value, raw []byte)) {
	for len(b) > 0 {
		n := lineLength(b)
		if len(bytes.TrimRight(b[:n], "\r\n")) == 0 {
			return // the empty line
		}
		for n < len(b) && isWSP(b[n]) {
			n += lineLength(b[n:])
		}
		if c := fieldColon(b[:n]); c > 0 {
			fn(bytes.TrimRight(b[:c], " \t"), bytes.TrimRight(b[c+1:n], "\r\n"), b[:n:n])
		}
		b = b[n:]
	}
}

func lineLength(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b)
}

// fieldColon returns where the colon of a header field is, or 0 when b does not begin
// with a field name (RFC 5322 section 3.6.8; section 4.5 allows space before the colon).
func fieldColon(b []byte) int {
	i := 0
	for i < len(b) && b[i] > ' ' && b[i] < 0x7f && b[i] != ':' {
		i++
	}
	end := i
	for i < len(b) && isWSP(b[i]) {
		i++
	}
	if end > 0 && i < len(b) && b[i] == ':' {
		return i
	}
	return 0
}

func isWSP(c byte) bool { return c == ' ' || c == '\t' }

// unfold removes line ends (RFC 5322 section 2.2.3) and the space around the value. A
// bare CR or a NUL becomes a space.
func unfold(v string) string {
	v = strings.Trim(v, " \t\r\n")
	if !strings.ContainsAny(v, "\r\n\x00") {
		return v
	}
	b := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '\n', c == '\r' && i+1 < len(v) && v[i+1] == '\n':
		case c == '\r', c == 0:
			b = append(b, ' ')
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// headerLine takes one line of a header. It returns true when the line is dealt with
// because the body has started.
func (s *scanner) headerLine(l line) bool {
	text := bytes.TrimRight(l.b, "\r\n")
	top := s.stack[len(s.stack)-1].n.part
	switch {
	case !l.first, len(text) > 0 && isWSP(text[0]):
	case len(text) == 0:
		return s.emptyLine(l)
	case fieldColon(text) > 0:
		s.junk.set = false
		s.fields++
	case l.start == top.Header.Start && bytes.HasPrefix(text, []byte("From ")):
	case s.junk.set:
		s.backToJunk()
		return true
	default:
		s.junk = junkLine{set: true, off: l.start, lf: s.lf, header: len(s.header)}
	}
	s.header = append(s.header, l.b[:min(len(l.b), MaxHeader-len(s.header))]...)
	return false
}

// emptyLine ends a header. One line that is no field, and no field before it, is the
// text of a message without a header.
func (s *scanner) emptyLine(l line) bool {
	if s.junk.set && s.fields == 0 {
		s.backToJunk()
		return true
	}
	s.passed(l)
	s.enterBody(l.start + int64(len(l.b)))
	return true
}

// endHeader ends a header without an empty line at off. It returns true when the
// reader went back to where the body starts.
func (s *scanner) endHeader(off int64) bool {
	if s.junk.set {
		s.backToJunk()
		return true
	}
	s.enterBody(off)
	return false
}

// backToJunk starts the body at the first line that is no field, and reads on from
// there. No line is read more than three times: the header of a message that starts at
// such a line is empty, so what it holds is text.
func (s *scanner) backToJunk() {
	off := s.junk.off
	s.lr.seek(off)
	s.lf = s.junk.lf
	s.header = s.header[:s.junk.header]
	s.lineEnd, s.lineLen, s.lastPartial = 0, 0, false
	s.enterBody(off)
}

// enterBody ends the header of the top part, whose body starts at off.
func (s *scanner) enterBody(off int64) {
	f := &s.stack[len(s.stack)-1]
	p := f.n.part
	p.Header.End = off
	p.Body = Range{off, off}
	f.bodyLF = s.lf
	s.inHeader = false
	s.junk = junkLine{}
	s.describe(f)
	switch {
	case len(s.stack) >= MaxDepth && (p.Type == "multipart" || f.n.nested):
		opaque(f.n)
	case f.n.nested:
		s.push("text", "plain", off)
	case f.n.boundary != "":
		s.open[f.n.boundary] = append(s.open[f.n.boundary], len(s.stack)-1)
	}
}

// opaque makes n a leaf that nobody looks into.
func opaque(n *node) {
	n.part.Type, n.part.Subtype, n.part.Params = "application", "octet-stream", nil
	n.wire.params = nil
	n.wire.encoding = orDefault(n.wire.encoding)
	n.nested, n.boundary = false, ""
}

// orDefault gives the encoding of a part without a header.
func orDefault(encoding []byte) []byte {
	if len(encoding) == 0 {
		return []byte(`"7BIT"`)
	}
	return encoding
}
