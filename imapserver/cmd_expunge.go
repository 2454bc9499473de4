package imapserver

import (
	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func (c *conn) expunge(p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	return c.expungeThese("EXPUNGE", nil)
}

// uidExpunge removes only what is named (RFC 4315).
func (c *conn) uidExpunge(p *parser) (reply, error) {
	p.sp()
	set := p.numSet()
	if err := p.end(); err != nil {
		return reply{}, err
	}
	spans, err := c.targets(set, uidNumbers)
	if err != nil {
		return reply{}, err
	}
	uids, _ := c.sel.uids(spans)
	if len(uids) == 0 && !c.sel.readOnly {
		return done("UID EXPUNGE"), nil
	}
	return c.expungeThese("UID EXPUNGE", uids)
}

func (c *conn) expungeThese(command string, uids imap.UIDSet) (reply, error) {
	if c.sel.readOnly {
		return readOnly(), nil
	}
	_, err := c.commit(mailbox.Expunge{Mailbox: c.sel.id, UIDs: uids})
	return done(command), err
}
