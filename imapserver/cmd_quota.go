package imapserver

import (
	"math"

	"pizza/mailbox"
)

// An account has one quota root, "", for all its mailboxes (RFC 9208). Nothing is set by
// anybody: what limits STORAGE is the disk, so its limit is what is used and what the disk
// still takes, and that of MESSAGE is how many UIDs a mailbox has.

func (c *conn) getQuota(p *parser) (reply, error) {
	p.sp()
	root := p.astring()
	if err := p.end(); err != nil {
		return reply{}, err
	}
	if root != "" {
		return reply{no, "NONEXISTENT", "There is no such quota root"}, nil
	}
	return done("GETQUOTA"), c.writeQuota()
}

func (c *conn) getQuotaRoot(p *parser) (reply, error) {
	m, _, err := c.named(p)
	if err != nil {
		return reply{}, err
	}
	c.out.str("* QUOTAROOT ")
	c.writeName(m.Name)
	c.out.str(` ""`).crlf()
	return done("GETQUOTAROOT"), c.writeQuota()
}

// writeQuota writes QUOTA. STORAGE counts units of 1,024 octets, begun ones too.
func (c *conn) writeQuota() error {
	s, err := c.srv.opt.Store.Space(c.ctx, c.ident.Account)
	if err != nil {
		return err
	}
	units := func(octets int64) uint64 { return uint64(max(octets, 0)+1023) / 1024 }
	used := units(s.Used)
	c.out.str(`* QUOTA "" (STORAGE `).num(used).str(" ").num(used + uint64(max(s.Left, 0))/1024)
	c.out.str(" MESSAGE ").num(uint64(s.Messages)).str(" ").num(math.MaxUint32).str(")").crlf()
	return nil
}

// statusDeletedStorage is how many octets EXPUNGE would free.
func (c *conn) statusDeletedStorage(m mailbox.Mailbox) (octets uint64) {
	if m.Deleted == 0 {
		return 0
	}
	snap, err := c.snapshot(m.ID)
	if err != nil {
		c.log.Error("imap: STATUS", "mailbox", m.Name, "err", err)
		return 0
	}
	for _, e := range snap.All() {
		if e.Deleted {
			octets += uint64(e.Size)
		}
	}
	return octets
}
