package imapserver

import (
	"slices"

	"pizza/mailbox"
)

// writeSelected writes the LIST response that SELECT has in IMAP4rev2 (RFC 9051 section
// 6.3.2), with the name that was asked for when it is another spelling (section 6.3.9.7).
func (c *conn) writeSelected(m mailbox.Mailbox, asked string) error {
	boxes, err := c.mailboxes()
	if err != nil {
		return err
	}
	l := &listing{response: "LIST", rev2: true}
	l.ReturnSubscribed = true
	nodes := l.hierarchy(boxes)
	i := slices.IndexFunc(nodes, func(n *node) bool { return n.name == m.Name })
	if i < 0 { // deleted meanwhile: what follows says that it is empty
		return nil
	}
	attrs, _ := l.attributes(nodes[i])
	c.writeOldName(m.Name, asked, attrs)
	return nil
}
