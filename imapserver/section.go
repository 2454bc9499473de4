package imapserver

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

func decimal64(n int64) string { return strconv.FormatInt(n, 10) }

// writeSection writes the octets of a section: as stored, from the offsets of the
// structure. A section that is not there is NIL.
func (c *conn) writeSection(s *imap.FetchItemBodySection, m *mailbox.Message, body mailbox.Body) {
	if s.HeaderFields != nil || s.HeaderFieldsNot != nil {
		c.writeFields(s, m.Structure, body)
		return
	}
	r, found := mime.Range{End: body.Size()}, true
	if m != nil && (len(s.Part) > 0 || s.Specifier != imap.PartSpecifierNone) {
		r, found = sectionRange(s, m.Structure)
	}
	if !found {
		c.out.str("NIL")
		return
	}
	c.out.literalFrom(body, clip(&r, s.Partial), r.Len())
}

// clip narrows a range to what a partial asks for and returns its start.
func clip(r *mime.Range, p *imap.SectionPartial) int64 {
	if p != nil {
		start := min(r.Start+p.Offset, r.End)
		r.End = min(r.End, start+p.Size)
		r.Start = start
	}
	return r.Start
}

// sectionRange returns where a section lies (RFC 3501 section 6.4.5).
func sectionRange(s *imap.FetchItemBodySection, st *mime.Structure) (r mime.Range, found bool) {
	part := st.Root
	if len(s.Part) > 0 {
		part = st.Find(s.Part)
	}
	if part == nil {
		return r, false
	}
	switch s.Specifier {
	case imap.PartSpecifierNone:
		return part.Body, true
	case imap.PartSpecifierMIME:
		return part.Header, true
	}
	if len(s.Part) > 0 { // HEADER and TEXT of a part are those of the message in it
		if part = inner(part); part == nil {
			return r, false
		}
	}
	if s.Specifier == imap.PartSpecifierHeader {
		return part.Header, true
	}
	return part.Body, true
}

// inner returns the message in a message/rfc822 part, nil if it is none.
func inner(p *mime.Part) *mime.Part {
	if p.Type != "message" || len(p.Children) != 1 {
		return nil
	}
	return p.Children[0]
}

// maxHeader is how much of a header is looked at for HEADER.FIELDS.
const maxHeader = 1 << 20

// writeFields writes the header fields that were asked for, in the message's order,
// and the empty line.
func (c *conn) writeFields(s *imap.FetchItemBodySection, st *mime.Structure, body mailbox.Body) {
	where, found := sectionRange(s, st)
	if !found {
		c.out.str("NIL")
		return
	}
	raw := make([]byte, min(where.Len(), maxHeader))
	if n, err := body.ReadAt(raw, where.Start); n < len(raw) {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		c.out.fail(err)
		return
	}
	names, not := s.HeaderFields, false
	if names == nil {
		names, not = s.HeaderFieldsNot, true
	}
	out := pickFields(raw, names, not)
	r := mime.Range{End: int64(len(out))}
	c.out.literalFrom(bytes.NewReader(out), clip(&r, s.Partial), r.Len())
}

// pickFields returns the fields of a raw header that have one of names (or none of
// them), folded as they are, with the empty line at the end.
func pickFields(raw []byte, names []string, not bool) []byte {
	out := make([]byte, 0, min(len(raw)+2, 1024))
	keep := false
	for len(raw) > 0 {
		line := raw
		if i := bytes.IndexByte(raw, '\n'); i >= 0 {
			line = raw[:i+1]
		}
		raw = raw[len(line):]
		if len(trimEOL(line)) == 0 {
			break
		}
		if line[0] != ' ' && line[0] != '\t' {
			keep = has(names, fieldName(line)) != not
		}
		if keep {
			out = append(out, line...)
		}
	}
	if n := len(out); n > 0 && out[n-1] != '\n' {
		out = append(out, "\r\n"...)
	}
	return append(out, "\r\n"...)
}

// fieldName returns the name of the field that a line begins; "" if it begins none.
func fieldName(line []byte) string {
	i := bytes.IndexByte(line, ':')
	if i < 0 {
		return ""
	}
	return string(bytes.TrimRight(line[:i], " \t"))
}

func has(names []string, name string) bool {
	return name != "" && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
