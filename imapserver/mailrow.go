package imapserver

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// mailRow is a message as SORT and THREAD see it: its entry and what is stored of its
// header, never its octets.
type mailRow struct {
	hit
	entry    mailbox.Entry
	fields   *mime.Structure // header fields only; nil when they were not asked for
	envelope []byte          // valid as long as the row
}

// eachRow calls fn with each of the hits that is still there. The row is fn's during the
// call only.
func (c *conn) eachRow(hits []hit, want mailbox.Want, fn func(*mailRow)) error {
	rows := make([]mailRow, 0, len(hits))
	ids := make([]mailbox.MessageID, 0, len(hits))
	for _, h := range hits {
		e, found := c.sel.snap.Find(h.uid)
		switch {
		case found && want == 0:
			fn(&mailRow{hit: h, entry: e})
		case found:
			rows, ids = append(rows, mailRow{hit: h, entry: e}), append(ids, e.Message)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	next := 0
	return c.srv.opt.Store.Read(c.ctx, c.ident.Account, ids, want, func(it *mailbox.Item) (err error) {
		for next < len(rows) && rows[next].entry.Message != it.Message {
			next++
		}
		if next == len(rows) {
			return nil
		}
		r := rows[next]
		next++
		if r.fields, err = it.Fields(); err != nil {
			return err
		}
		if r.envelope, _, _, err = it.Rendered(); err != nil {
			return err
		}
		fn(&r)
		return c.ctx.Err()
	})
}

// sentDate is when the message was sent as it says itself, else when it came (RFC 5256
// section 2.2), in Unix seconds.
func (r *mailRow) sentDate() int64 {
	if r.fields.Date.IsZero() {
		return r.entry.Date
	}
	return r.fields.Date.Unix()
}

// The address lists that messages are sorted by, as places in ENVELOPE.
const (
	envelopeFrom = 2
	envelopeTo   = 5
	envelopeCc   = 6
)

func (r *mailRow) list(field int) []mime.Address {
	switch field {
	case envelopeFrom:
		return r.fields.From
	case envelopeTo:
		return r.fields.To
	}
	return r.fields.Cc
}

// address is the mailbox of the first address, as ENVELOPE has it: the local part, or
// the name of a group; "" without any.
func (r *mailRow) address(field int) string {
	if group, found := leadingGroup(r.envelope, field); found {
		return group
	}
	if list := r.list(field); len(list) > 0 {
		return list[0].Local
	}
	return ""
}

// display is the name of the first address, or the address if it has none (RFC 5957
// section 3).
func (r *mailRow) display(field int) string {
	if group, found := leadingGroup(r.envelope, field); found {
		return group
	}
	list := r.list(field)
	switch {
	case len(list) == 0:
		return ""
	case list[0].Name != "":
		return list[0].Name
	}
	return list[0].String()
}

// leadingGroup returns the name of the group that a list of an ENVELOPE begins with: the
// stored fields hold the members only. A group begins with NIL for a host.
func leadingGroup(envelope []byte, field int) (name string, found bool) {
	p := parser{b: envelope}
	p.expect('(')
	for range field {
		p.skipValue()
		p.sp()
	}
	p.expect('(')
	p.expect('(')
	p.skipValue()
	p.sp()
	p.skipValue()
	p.sp()
	name, found = p.nstring()
	p.sp()
	if _, host := p.nstring(); host || p.err != nil {
		return "", false
	}
	return mime.DecodeHeader(name), found
}

// skipValue passes over a string, a literal, NIL or a list of such.
func (p *parser) skipValue() {
	depth := 0
	for p.err == nil {
		switch c := p.peek(); {
		case p.accept('('):
			depth++
		case p.accept(')'):
			depth--
		case c == '"', c == '{':
			p.string_()
		case p.accept(' '):
		default:
			p.atom()
		}
		if depth <= 0 {
			return
		}
	}
}

// collate gives s the form whose octets are compared by i;unicode-casemap (RFC 5051):
// title case, then decomposed.
func collate(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return norm.NFKD.String(strings.ToTitle(s))
		}
	}
	return strings.ToUpper(s)
}
