package imapserver

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// selected is the mailbox that a connection has selected.
type selected struct {
	view
	id       mailbox.MailboxID
	readOnly bool
	gone     bool                       // the mailbox was deleted: an empty one is shown in its place
	keywords []imap.Flag                // as announced by FLAGS, sorted
	rendered map[mailbox.FlagSet]*shown // sets of flags seen so far
	saved    imap.UIDSet                // result of the last SEARCH RETURN (SAVE)

	told  mailbox.ModSeq // the last HIGHESTMODSEQ told
	ahead bool           // a MODSEQ above view.settled was told since
	// withheld: flags changed and were not told, as NOTIFY asked; view.settled stays below
	withheld bool
	left     func() // tells the store that the mailbox is left

	// overheard: EXISTS was told in passing, in the answer to a command that did not
	// ask for news.
	overheard bool

	missed atomic.Bool // the last search came to messages that were gone from the store
}

// shown is a set of flags as the client sees it.
type shown struct {
	flags []imap.Flag
	text  string // the flags without parentheses
	seen  bool
}

func (c *conn) snapshot(id mailbox.MailboxID) (*mailbox.Snapshot, error) {
	return c.srv.opt.Store.Snapshot(c.ctx, c.ident.Account, id)
}

// leave forgets the selected mailbox.
func (c *conn) leave() {
	if c.sel != nil {
		c.sel.left()
	}
	c.sel = nil
	if c.state == selectedState {
		c.state = authenticated
	}
}

// tell brings the client up to date: EXPUNGE where that is allowed, then EXISTS and
// RECENT, then flags that changed.
func (c *conn) tell(expunge bool) { c.tellBut(expunge, nil) }

// news is tell for the commands that programs use to hear of new mail, IDLE and NOOP.
// Of EXISTS in the answer to another command Thunderbird (153) takes no notice: mail
// that arrived while it stored a flag then showed only with the next. So EXISTS that
// was told in passing is told once more.
func (c *conn) news() {
	s := c.sel
	if s == nil {
		return
	}
	before := s.overheard
	if told := c.tellBut(true, nil); before && !told && s.len() > 0 && c.hears(messageEvents) {
		c.writeExists()
	}
	s.overheard = false
}

func (c *conn) writeExists() {
	c.out.str("* ").num(uint64(c.sel.len())).str(" EXISTS").crlf()
	c.writeRecent()
}

// writeRecent writes RECENT, which IMAP4rev2 does not have.
func (c *conn) writeRecent() {
	if !c.rev2 {
		c.out.str("* ").num(uint64(c.sel.numRecent())).str(" RECENT").crlf()
	}
}

// tellBut is tell without the changes of flags that quiet knows the client to expect.
// It reports whether it told EXISTS.
func (c *conn) tellBut(expunge bool, quiet func(mailbox.Entry) bool) (exists bool) {
	s := c.sel
	if !c.changing && !c.hears(messageEvents) { // what it has changed itself a client must hear
		return false
	}
	next := c.latest()
	if next == s.snap && (!expunge || len(s.ghosts) == 0) {
		return false
	}
	var changes []mailbox.Change
	if next != s.snap {
		changes = mailbox.Diff(s.snap, next)
	}
	news, settled := s.snap.UIDNext(), s.settled
	u := s.advance(next, changes, expunge)
	c.writeExpunged(u)
	if u.exists {
		s.claim(c.srv.recent.above(c.ident.Account, next, !s.readOnly))
		c.writeExists()
		s.overheard = true
		c.fetchNew(news)
	}
	if c.writeChanges(u, quiet); s.withheld {
		s.settled = settled
	}
	return u.exists
}

// writeChanges tells the flags that changed, and mod-sequences without them.
func (c *conn) writeChanges(u update, quiet func(mailbox.Entry) bool) {
	tell := func(list []mailbox.Entry, write func(mailbox.Entry)) {
		for _, e := range list {
			switch {
			case quiet != nil && quiet(e):
			case !c.hears(flagChange):
				c.sel.withheld = true
			default:
				write(e)
			}
		}
	}
	tell(u.flags, c.writeFlags)
	if c.condstore {
		tell(u.touched, c.writeModSeq)
	}
}

// latest returns the present snapshot of the selected mailbox, or an empty one when
// it was deleted, or the old one when the store fails: the next command tries again.
func (c *conn) latest() *mailbox.Snapshot {
	s := c.sel
	if s.gone {
		return s.snap
	}
	next, err := c.snapshot(s.id)
	switch {
	case err == nil:
		return next
	case isKind(err, mailbox.NotFound):
		s.gone, s.readOnly = true, true
		row := s.snap.Mailbox
		row.Exists, row.Unseen, row.Deleted, row.Size = 0, 0, 0, 0
		return &mailbox.Snapshot{Mailbox: row}
	}
	c.log.Error("imap: snapshot", "err", err)
	return s.snap
}

// show returns a set of flags as the client sees it. A keyword that the client has
// not heard of is announced by FLAGS first, so call it between responses.
func (c *conn) show(set mailbox.FlagSet) *shown {
	s := c.sel
	if sh := s.rendered[set]; sh != nil {
		return sh
	}
	sh, fresh := s.learn(set, c.srv.opt.Store.Flags(c.ident.Account, set))
	if fresh {
		c.writeFlagList()
	}
	return sh
}

// learn renders a set of flags; fresh reports keywords that were not known.
func (s *selected) learn(set mailbox.FlagSet, flags []imap.Flag) (sh *shown, fresh bool) {
	sh = &shown{flags: flags}
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = string(f)
		sh.seen = sh.seen || f == imap.FlagSeen
	}
	sh.text = strings.Join(names, " ")
	s.rendered[set] = sh
	return sh, s.meet(flags)
}

// meet notes the keywords among flags; fresh reports some that were not known.
func (s *selected) meet(flags []imap.Flag) (fresh bool) {
	for _, f := range flags {
		if f[0] == '\\' {
			continue
		}
		if at, known := slices.BinarySearch(s.keywords, f); !known {
			s.keywords = slices.Insert(s.keywords, at, f)
			fresh = true
		}
	}
	return fresh
}

// writeFlagList writes FLAGS: the system flags and the keywords in use.
func (c *conn) writeFlagList() {
	c.out.str(`* FLAGS (`).str(c.flagNames()).str(")").crlf()
}

func (c *conn) flagNames() string {
	names := []string{`\Answered \Flagged \Deleted \Seen \Draft`}
	for _, k := range c.sel.keywords {
		names = append(names, string(k))
	}
	return strings.Join(names, " ")
}

// writeFlags tells the flags of one entry, with its UID.
func (c *conn) writeFlags(e mailbox.Entry) { c.writeFlagsOf(c.sel.seq(e.UID), e) }

func (c *conn) writeFlagsOf(seq uint32, e mailbox.Entry) {
	sh := c.show(e.Flags)
	c.out.str("* ").num(uint64(seq)).str(" FETCH (UID ").num(uint64(e.UID)).str(" ")
	c.writeFlagsItem(e, sh)
	if c.condstore {
		c.out.str(" ")
		c.writeModSeqItem(e.ModSeq)
	}
	c.out.str(")").crlf()
}

// writeFlagsItem writes FLAGS (...) inside a FETCH response.
func (c *conn) writeFlagsItem(e mailbox.Entry, sh *shown) {
	c.out.str("FLAGS (").str(sh.text)
	sep := ""
	if sh.text != "" {
		sep = " "
	}
	if e.Deleted {
		c.out.str(sep).str(`\Deleted`)
		sep = " "
	}
	if !c.rev2 && c.sel.isRecent(e.UID) {
		c.out.str(sep).str(`\Recent`)
	}
	c.out.str(")")
}
