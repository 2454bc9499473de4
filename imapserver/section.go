package imapserver

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// writeSection writes the octets of a section: as stored, from the offsets of the
// structure. A section that is not there is NIL.
func (r *fetchRun) writeSection(s *imap.FetchItemBodySection, ct *content) {
	from, where, found := r.locate(s, ct)
	switch {
	case !found:
		r.c.out.str("NIL")
	case s.HeaderFields != nil || s.HeaderFieldsNot != nil:
		r.writeFields(s, from, where)
	default:
		r.c.out.literalFrom(from, clip(&where, s.Partial), where.Len())
	}
}

// locate returns what a section is cut from, and where it lies there.
func (r *fetchRun) locate(s *imap.FetchItemBodySection, ct *content) (from io.ReaderAt, where mime.Range, found bool) {
	switch {
	case len(s.Part) > 0 || s.Specifier == imap.PartSpecifierText:
		where, found = sectionRange(s, ct.parts)
		return ct.Body, where, found
	case s.Specifier == imap.PartSpecifierNone:
		return ct.Body, mime.Range{End: ct.Body.Size()}, true
	}
	return &header{r.c, ct.Item}, mime.Range{End: ct.HeaderSize}, true
}

// header reads the header of a message: from what was read already, or, of one that
// is longer, from the message.
type header struct {
	c  *conn
	it *mailbox.Item
}

func (h *header) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) <= int64(len(h.it.Header)) {
		return copy(b, h.it.Header[off:]), nil
	}
	body, err := h.c.srv.opt.Store.OpenMessage(h.c.ctx, h.c.ident.Account, h.it.Message)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return body.ReadAt(b, off)
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
const maxHeader = mailbox.MaxHeader

// writeFields writes the fields of a header that were asked for, in the message's
// order, and the empty line.
func (r *fetchRun) writeFields(s *imap.FetchItemBodySection, from io.ReaderAt, where mime.Range) {
	raw, err := rawFields(from, where)
	if err != nil {
		r.c.out.fail(err)
		return
	}
	names, not := s.HeaderFields, false
	if names == nil {
		names, not = s.HeaderFieldsNot, true
	}
	r.fields = pickFields(r.fields[:0], raw, names, not)
	out := mime.Range{End: int64(len(r.fields))}
	clip(&out, s.Partial)
	r.c.out.literal(r.fields[out.Start:out.End])
}

// rawFields returns a header, of which maxHeader octets are looked at.
func rawFields(from io.ReaderAt, where mime.Range) ([]byte, error) {
	n := min(where.Len(), maxHeader)
	if h, top := from.(*header); top && n == int64(len(h.it.Header)) {
		return h.it.Header, nil
	}
	raw := make([]byte, n)
	if n, err := from.ReadAt(raw, where.Start); n < len(raw) {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return raw, nil
}

// pickFields appends the fields of a raw header that have one of names (or none of
// them), folded as they are, with the empty line at the end.
func pickFields(out, raw []byte, names []string, not bool) []byte {
	from, keep := len(out), false
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
	if n := len(out); n > from && out[n-1] != '\n' {
		out = append(out, "\r\n"...)
	}
	return append(out, "\r\n"...)
}

// fieldName returns the name of the field that a line begins; none if it begins none.
func fieldName(line []byte) []byte {
	i := bytes.IndexByte(line, ':')
	if i < 0 {
		return nil
	}
	return bytes.TrimRight(line[:i], " \t")
}

func has(names []string, name []byte) bool {
	return len(name) > 0 && slices.ContainsFunc(names, func(n string) bool {
		return len(n) == len(name) && strings.EqualFold(n, string(name))
	})
}
