package imapserver

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"golang.org/x/text/unicode/norm"

	"pizza/internal/mutf7"
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
	res, err := c.srv.opt.Store.Commit(context.WithoutCancel(c.ctx), c.ident.Account, mailbox.Tx{Actor: actor, Ops: ops})
	if err == nil {
		c.caused(ops, res)
	}
	return res, err
}

// specialUses are what CREATE may ask for (RFC 6154 section 3): the uses that a mailbox
// of messages can have. \All and \Flagged would be views.
var specialUses = map[string]imap.MailboxAttr{
	"ARCHIVE": imap.MailboxAttrArchive, "DRAFTS": imap.MailboxAttrDrafts, "JUNK": imap.MailboxAttrJunk,
	"SENT": imap.MailboxAttrSent, "TRASH": imap.MailboxAttrTrash, "IMPORTANT": imap.MailboxAttrImportant,
}

// create makes a mailbox. A delimiter at the end says that levels below will follow
// (RFC 3501 section 6.3.3): every mailbox may have them.
func (c *conn) create(p *parser) (reply, error) {
	p.sp()
	asked := p.mailbox()
	uses := p.createOptions()
	if err := p.end(); err != nil {
		return reply{}, err
	}
	op := mailbox.CreateMailbox{Name: normal(asked)}
	if op.Name == "INBOX" {
		return reply{no, "ALREADYEXISTS", "INBOX exists"}, nil
	}
	for _, use := range uses {
		known, found := specialUses[strings.ToUpper(use)]
		if !found || op.SpecialUse != "" {
			return reply{no, "USEATTR", "A mailbox has one use, and it is none that is a view"}, nil
		}
		op.SpecialUse = known
	}
	res, err := c.commit(op)
	if err != nil {
		return reply{}, err
	}
	if c.rev2 && op.Name != strings.TrimSuffix(asked, delimiter) {
		err = c.writeRenamed(op.Name, asked)
	}
	return reply{ok, c.mailboxIDCode(res.Mailbox), "CREATE completed"}, err
}

// createOptions reads (USE (\Sent)).
func (p *parser) createOptions() (uses []string) {
	if !p.accept(' ') || p.i == len(p.b) {
		return nil
	}
	p.list(func() {
		if p.word() != "USE" || !p.knows(inCreate, "USE") {
			p.fail("Unknown CREATE option")
		}
		p.sp()
		p.list(func() {
			p.expect('\\')
			uses = append(uses, p.atom())
		})
	})
	return uses
}

// normal is a new name as it is stored: without a delimiter at the end, and in Unicode's
// form C (RFC 9051 section 5.1, RFC 5198), so that what looks the same is the same.
func normal(name string) string {
	return norm.NFC.String(strings.TrimSuffix(name, delimiter))
}

// delete removes a mailbox. Levels below it stay, and so does the name as a level
// without messages while there are any (RFC 9051 section 6.3.5). Its subscription stays
// (RFC 3501 section 6.3.6).
func (c *conn) delete(p *parser) (reply, error) {
	m, asked, err := c.named(p)
	if isKind(err, mailbox.NotFound) && m.Name != "" && c.isLevel(m.Name) {
		return reply{no, "HASCHILDREN", "That is only a level above other mailboxes: delete them"}, nil
	}
	if err != nil {
		return reply{}, err
	}
	if m.Subscribed {
		err = c.changeAbsent(m.Name, true, mailbox.DeleteMailbox{Mailbox: m.ID})
	} else {
		_, err = c.commit(mailbox.DeleteMailbox{Mailbox: m.ID})
	}
	if err == nil && c.rev2 && m.Name != asked { // RFC 9051 section 6.3.5
		c.writeOldName(m.Name, asked, []string{`\NonExistent`})
	}
	return done("DELETE"), err
}

// isLevel reports whether there are mailboxes below a name.
func (c *conn) isLevel(name string) bool {
	all, err := c.mailboxes()
	return err == nil && slices.ContainsFunc(all, func(m mailbox.Mailbox) bool { return strings.HasPrefix(m.Name, name+delimiter) })
}

func (c *conn) rename(p *parser) (reply, error) {
	p.sp()
	from := p.mailbox()
	p.sp()
	to := normal(p.mailbox())
	if err := p.end(); err != nil {
		return reply{}, err
	}
	m, err := c.lookup(from)
	if err != nil {
		return reply{}, err
	}
	if _, err = c.commit(mailbox.RenameMailbox{Mailbox: m.ID, Name: to}); err != nil {
		return reply{}, err
	}
	if c.rev2 && m.ID != mailbox.Inbox {
		err = c.writeRenamed(to, from)
	}
	return done("RENAME"), err
}

// writeRenamed tells the new name of a mailbox, and of those below it, beside the old one
// (RFC 9051 section 6.3.9.7).
func (c *conn) writeRenamed(to, from string) error {
	boxes, err := c.mailboxes()
	if err != nil {
		return err
	}
	l := &listing{response: "LIST", rev2: true}
	for _, n := range l.hierarchy(boxes) {
		below, isBelow := strings.CutPrefix(n.name, to+delimiter)
		if n.name != to && !isBelow {
			continue
		}
		old := from
		if isBelow {
			old += delimiter + below
		}
		attrs, _ := l.attributes(n)
		c.writeOldName(n.name, old, attrs)
	}
	return nil
}

// subscribe takes any name, also one that no mailbox has (RFC 3501 section 6.3.6).
func (c *conn) subscribe(p *parser) (reply, error) {
	m, _, err := c.named(p)
	switch {
	case isKind(err, mailbox.NotFound) && m.Name != "":
		return done("SUBSCRIBE"), c.changeAbsent(m.Name, true)
	case err != nil:
		return reply{}, err
	}
	_, err = c.commit(mailbox.Subscribe{Mailbox: m.ID, On: true})
	return done("SUBSCRIBE"), err
}

func (c *conn) unsubscribe(p *parser) (reply, error) {
	m, _, err := c.named(p)
	switch {
	case isKind(err, mailbox.NotFound) && m.Name != "":
		return done("UNSUBSCRIBE"), c.changeAbsent(m.Name, false)
	case err != nil:
		return reply{}, err
	}
	return done("UNSUBSCRIBE"), c.changeAbsent(m.Name, false, mailbox.Subscribe{Mailbox: m.ID})
}

// named reads the only argument, the name of a mailbox, and returns it as it was asked
// for, too. Of one that is not there the result is *mailbox.Error NotFound beside a
// Mailbox with nothing but the name.
func (c *conn) named(p *parser) (m mailbox.Mailbox, asked string, err error) {
	p.sp()
	asked = p.mailbox()
	if err := p.end(); err != nil {
		return mailbox.Mailbox{}, asked, err
	}
	m, err = c.lookup(asked)
	if isKind(err, mailbox.NotFound) {
		m.Name = normal(asked)
	}
	return m, asked, err
}

// writeName writes a mailbox name.
func (c *conn) writeName(name string) {
	if c.utf8 || c.rev2 {
		c.out.quoted(name, true)
		return
	}
	c.out.quoted(mutf7.Encode(name), false)
}
