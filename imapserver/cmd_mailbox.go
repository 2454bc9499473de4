package imapserver

import (
	"context"
	"strings"
	"time"

	"pizza/mailbox"
)

// commit carries out changes of the person who is logged in. What was begun is
// recorded even when the server shuts down.
func (c *conn) commit(ops ...mailbox.Op) (mailbox.Result, error) {
	actor := &mailbox.Actor{
		Login:      c.ident.Login,
		Credential: c.ident.Credential,
		Scope:      c.ident.Scope,
		Session:    c.id,
		Via:        "imap",
		At:         time.Now(),
	}
	return c.srv.opt.Store.Commit(context.WithoutCancel(c.ctx), c.ident.Account, mailbox.Tx{Actor: actor, Ops: ops})
}

func (c *conn) create(p *parser) (reply, error) {
	p.sp()
	name := p.mailbox()
	if err := p.end(); err != nil {
		return reply{}, err
	}
	name = strings.TrimSuffix(name, delimiter) // "it will have children": every mailbox may
	if name == "INBOX" {
		return reply{no, "ALREADYEXISTS", "INBOX exists"}, nil
	}
	res, err := c.commit(mailbox.CreateMailbox{Name: name})
	if err != nil {
		return reply{}, err
	}
	return reply{ok, c.mailboxIDCode(res.Mailbox), "CREATE completed"}, nil
}

func (c *conn) delete(p *parser) (reply, error) {
	m, err := c.named(p)
	if err != nil {
		return reply{}, err
	}
	_, err = c.commit(mailbox.DeleteMailbox{Mailbox: m.ID})
	return done("DELETE"), err
}

func (c *conn) rename(p *parser) (reply, error) {
	p.sp()
	from := p.mailbox()
	p.sp()
	to := strings.TrimSuffix(p.mailbox(), delimiter)
	if err := p.end(); err != nil {
		return reply{}, err
	}
	m, err := c.lookup(from)
	if err != nil {
		return reply{}, err
	}
	_, err = c.commit(mailbox.RenameMailbox{Mailbox: m.ID, Name: to})
	return done("RENAME"), err
}

func (c *conn) subscribe(p *parser) (reply, error) {
	m, err := c.named(p)
	if err != nil {
		return reply{}, err
	}
	_, err = c.commit(mailbox.Subscribe{Mailbox: m.ID, On: true})
	return done("SUBSCRIBE"), err
}

func (c *conn) unsubscribe(p *parser) (reply, error) {
	m, err := c.named(p)
	if err != nil {
		return reply{}, err
	}
	_, err = c.commit(mailbox.Subscribe{Mailbox: m.ID})
	return done("UNSUBSCRIBE"), err
}

// named reads the only argument, the name of a mailbox that exists.
func (c *conn) named(p *parser) (mailbox.Mailbox, error) {
	p.sp()
	name := p.mailbox()
	if err := p.end(); err != nil {
		return mailbox.Mailbox{}, err
	}
	return c.lookup(name)
}

// writeName writes a mailbox name.
func (c *conn) writeName(name string) {
	if c.utf8 {
		c.out.quoted(name, true)
		return
	}
	c.out.quoted(encodeUTF7(name), false)
}
