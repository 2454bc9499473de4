package imapserver

import (
	"golang.org/x/text/unicode/norm"

	"pizza/mailbox"
)

// lookup finds a mailbox by name. Hidden ones do not exist for clients.
func (c *conn) lookup(name string) (mailbox.Mailbox, error) {
	all, err := c.mailboxes()
	if err != nil {
		return mailbox.Mailbox{}, err
	}
	for _, spelt := range []string{name, norm.NFC.String(name)} {
		for _, m := range all {
			if m.Name == spelt {
				return m, nil
			}
		}
	}
	return mailbox.Mailbox{}, &mailbox.Error{Op: "lookup", Kind: mailbox.NotFound, Name: name}
}

// mailboxes lists what clients may see, by name.
func (c *conn) mailboxes() ([]mailbox.Mailbox, error) {
	all, err := c.srv.opt.Store.Mailboxes(c.ctx, c.ident.Account)
	if err != nil {
		return nil, err
	}
	visible := make([]mailbox.Mailbox, 0, len(all))
	for _, m := range all {
		if !m.Hidden {
			visible = append(visible, m)
		}
	}
	return visible, nil
}

func (c *conn) selectRW(p *parser) (reply, error) {
	return c.open(p, "SELECT", c.ident.Scope == mailbox.ScopeRead)
}

func (c *conn) examine(p *parser) (reply, error) { return c.open(p, "EXAMINE", true) }

// open selects a mailbox. When that fails none is selected (RFC 3501 section 6.3.1).
func (c *conn) open(p *parser, command string, readOnly bool) (reply, error) {
	p.sp()
	name := p.mailbox()
	opt := p.selectOptions()
	if err := p.end(); err != nil {
		return reply{}, err
	}
	if opt.resync != nil && !c.qresync {
		return reply{}, syntaxError("QRESYNC was not enabled")
	}
	if c.sel != nil {
		c.leave()
		c.out.str("* OK [CLOSED] The former mailbox is closed").crlf()
	}
	if opt.condstore {
		c.aware()
	}
	m, err := c.lookup(name)
	if err != nil {
		return reply{}, err
	}
	snap, err := c.snapshot(m.ID)
	if err != nil {
		return reply{}, err
	}
	c.sel = &selected{view: view{snap: snap, settled: snap.Mailbox.HighestModSeq}, id: m.ID, readOnly: readOnly, rendered: map[mailbox.FlagSet]*shown{}}
	c.sel.left = c.srv.opt.Store.Enter(c.ident.Account, m.ID)
	c.state = selectedState
	c.sel.claim(c.srv.recent.above(c.ident.Account, snap, !readOnly))
	c.sel.told = c.sel.settled
	if c.rev2 {
		if err := c.writeSelected(m, name); err != nil {
			c.leave()
			return reply{}, err
		}
	}
	c.writeSelect()
	if opt.resync != nil {
		c.resync(opt.resync)
	}
	if readOnly {
		return reply{ok, "READ-ONLY", command + " completed"}, nil
	}
	return reply{ok, "READ-WRITE", command + " completed"}, nil
}

// writeSelect writes the untagged responses of SELECT.
func (c *conn) writeSelect() {
	s := c.sel
	unseen := c.survey()
	c.writeFlagList()
	if s.readOnly {
		c.out.str("* OK [PERMANENTFLAGS ()] No flag can be changed").crlf()
	} else {
		c.out.str("* OK [PERMANENTFLAGS (").str(c.flagNames()).str(` \*)] All flags are kept`).crlf()
	}
	c.out.str("* ").num(uint64(s.len())).str(" EXISTS").crlf()
	c.writeRecent()
	if unseen > 0 && !c.rev2 {
		c.out.str("* OK [UNSEEN ").num(uint64(unseen)).str("] First unseen message").crlf()
	}
	c.out.str("* OK [UIDVALIDITY ").num(uint64(s.snap.Mailbox.UIDValidity)).str("] UIDs valid").crlf()
	c.out.str("* OK [UIDNEXT ").num(uint64(s.snap.UIDNext())).str("] Next UID").crlf()
	if c.knows(inCode, "HIGHESTMODSEQ") {
		c.out.str("* OK [HIGHESTMODSEQ ").num(uint64(s.settled)).str("] Highest").crlf()
	}
	if c.knows(inCode, "MAILBOXID") {
		c.out.str("* OK [MAILBOXID (").str(mailboxID(s.snap.Mailbox)).str(")] Ok").crlf()
	}
}

// survey learns the keywords in use and returns the number of the first message
// without \Seen, 0 if there is none.
func (c *conn) survey() (unseen int) {
	s := c.sel
	for _, f := range s.snap.FlagSets() {
		sh, _ := s.learn(f.Flags, c.srv.opt.Store.Flags(c.ident.Account, f.Flags))
		if !sh.seen && (unseen == 0 || f.First < unseen-1) {
			unseen = f.First + 1
		}
	}
	return unseen
}

func (c *conn) unselect(p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	c.leave()
	return done("UNSELECT"), nil
}

// closeMailbox expunges without a word, then leaves (RFC 3501 section 6.4.2).
func (c *conn) closeMailbox(p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	s := c.sel
	if !s.readOnly && c.latest().Mailbox.Deleted > 0 {
		if _, err := c.commit(mailbox.Expunge{Mailbox: s.id}); err != nil {
			return reply{}, err
		}
	}
	c.leave()
	return done("CLOSE"), nil
}
