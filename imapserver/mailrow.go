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
	entry  mailbox.Entry
	fields *mime.Structure // header fields only; nil when they were not asked for
}

// eachRow calls fn with each of the hits that is still there.
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

// address is what a list is sorted by: the mailbox of its first address as ENVELOPE has
// it, which of a group is the name; "" without any.
func address(list []mime.Address) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Local
}

// display is the name of the first address, or the address if it has none (RFC 5957
// section 3).
func display(list []mime.Address) string {
	switch {
	case len(list) == 0:
		return ""
	case list[0].Name != "":
		return list[0].Name
	}
	return list[0].String()
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
