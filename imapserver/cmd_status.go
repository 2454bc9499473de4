package imapserver

import (
	"pizza/mailbox"
)

// statusItems are what STATUS can be asked for.
var statusItems = map[string]func(*conn, mailbox.Mailbox) uint64{
	"MESSAGES":        func(_ *conn, m mailbox.Mailbox) uint64 { return uint64(m.Exists) },
	"DELETED-STORAGE": (*conn).statusDeletedStorage, // RFC 9208
	"RECENT":          (*conn).statusRecent,
	"UIDNEXT":         func(_ *conn, m mailbox.Mailbox) uint64 { return uint64(m.UIDNext) },
	"UIDVALIDITY":     func(_ *conn, m mailbox.Mailbox) uint64 { return uint64(m.UIDValidity) },
	"UNSEEN":          func(_ *conn, m mailbox.Mailbox) uint64 { return uint64(m.Unseen) },
	"DELETED":         func(_ *conn, m mailbox.Mailbox) uint64 { return uint64(m.Deleted) },
	"SIZE":            func(_ *conn, m mailbox.Mailbox) uint64 { return uint64(m.Size) },
	"HIGHESTMODSEQ":   func(_ *conn, m mailbox.Mailbox) uint64 { return uint64(m.HighestModSeq) },
	"MAILBOXID":       func(*conn, mailbox.Mailbox) uint64 { return 0 }, // no number: see writeStatus
	"APPENDLIMIT":     func(c *conn, _ mailbox.Mailbox) uint64 { return uint64(c.srv.opt.MaxLiteral) },
}

func (c *conn) status(p *parser) (reply, error) {
	p.sp()
	name := p.mailbox()
	p.sp()
	items := p.statusItems()
	if err := p.end(); err != nil {
		return reply{}, err
	}
	c.awareOf(items)
	m, err := c.lookup(name)
	if err != nil {
		return reply{}, err
	}
	c.writeStatus(m, items)
	return done("STATUS"), nil
}

func (p *parser) statusItems() []string {
	var items []string
	p.list(func() {
		item := p.word()
		if p.err == nil && (statusItems[item] == nil || !p.knows(inStatus, item) || p.rev2 && item == "RECENT") {
			p.fail("Unknown STATUS item")
		}
		items = append(items, item)
	})
	if len(items) == 0 {
		p.fail("Missing STATUS items")
	}
	return items
}

func (c *conn) writeStatus(m mailbox.Mailbox, items []string) {
	values := make([]uint64, len(items))
	for i, item := range items {
		values[i] = statusItems[item](c, m)
	}
	c.out.str("* STATUS ")
	c.writeName(m.Name)
	sep := " ("
	for i, item := range items {
		c.out.str(sep).str(item).str(" ")
		if item == "MAILBOXID" {
			c.out.str("(").str(mailboxID(m)).str(")")
		} else {
			c.out.num(values[i])
		}
		sep = " "
	}
	c.out.str(")").crlf()
}

// statusRecent counts what the next session would be told is \Recent.
func (c *conn) statusRecent(m mailbox.Mailbox) uint64 {
	snap, err := c.snapshot(m.ID)
	if err != nil {
		c.log.Error("imap: STATUS", "mailbox", m.Name, "err", err)
		return 0
	}
	r := c.srv.recent.above(c.ident.Account, snap, false)
	if r.from > r.to {
		return 0
	}
	return uint64(snap.Len() - snap.Search(r.from))
}
