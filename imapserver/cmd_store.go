package imapserver

import (
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func (p *parser) storeFlags() (sf imap.StoreFlags) {
	name := p.item()
	name, sf.Silent = strings.CutSuffix(name, ".SILENT")
	switch name {
	case "FLAGS":
		sf.Op = imap.StoreFlagsSet
	case "+FLAGS":
		sf.Op = imap.StoreFlagsAdd
	case "-FLAGS":
		sf.Op = imap.StoreFlagsDel
	default:
		p.fail("Unknown STORE item")
	}
	p.sp()
	if p.peek() == '(' {
		sf.Flags = p.flagList()
		return sf
	}
	for p.err == nil {
		if f := p.flag(); f != "" {
			sf.Flags = append(sf.Flags, f)
		}
		if !p.accept(' ') {
			break
		}
	}
	return sf
}

// storeFlags answers STORE and UID STORE. Changes by others that came in between are
// told; the client's own are told unless .SILENT.
func (c *conn) storeFlags(p *parser, num numbering) (reply, error) {
	p.sp()
	set := p.numSet()
	p.sp()
	since := p.unchangedSince()
	sf := p.storeFlags()
	if err := p.end(); err != nil {
		return reply{}, err
	}
	if since != nil {
		c.aware()
	}
	if c.sel.readOnly {
		return readOnly(), nil
	}
	spans, err := c.targets(set, num)
	if err != nil {
		return reply{}, err
	}
	uids, _ := c.sel.uids(spans)
	gone := c.chosenGone(spans, num)
	var modified imap.UIDSet
	if len(uids)+len(gone) > 0 {
		op := mailbox.StoreFlags{Mailbox: c.sel.id, UIDs: uids, Gone: gone, Op: sf.Op, Flags: sf.Flags, UnchangedSince: since}
		if modified, err = c.storeThese(sf, op, spans); err != nil {
			return reply{}, err
		}
	}
	r := done("STORE")
	// Counted only now: one may have gone while its flags were on their way.
	if _, ghosts := c.sel.uids(spans); ghosts > 0 && num == seqNumbers {
		r = expungeIssued()
	}
	if len(modified) > 0 {
		r.code = c.modified(modified, num)
	}
	return r, nil
}

// storeThese changes flags and tells what the client has to know of it. It returns the
// messages that UNCHANGEDSINCE left alone.
func (c *conn) storeThese(sf imap.StoreFlags, op mailbox.StoreFlags, spans []span) (modified imap.UIDSet, err error) {
	before := c.sel.snap
	res, err := c.commit(op)
	if err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(slices.Clone(sf.Flags), func(f imap.Flag) bool { return hasFlag(c.sel.keywords, f) })
	if c.sel.meet(fresh) { // one that is only taken away, too: programs look for it in FLAGS
		c.writeFlagList()
	}
	echo := newEchoes(c, sf)
	c.tellBut(false, func(e mailbox.Entry) bool { return op.UIDs.Contains(e.UID) })
	c.sel.each(spans, func(seq uint32, e mailbox.Entry) bool {
		if !sf.Silent {
			c.writeFlagsOf(seq, e)
			return c.out.err == nil
		}
		old, _ := before.Find(e.UID)
		switch {
		case res.Modified.Contains(e.UID) || e != old && !echo.expected(old, e):
			c.writeFlagsOf(seq, e)
		case c.condstore && (op.UnchangedSince != nil || e.ModSeq != old.ModSeq): // RFC 7162 section 3.1.3
			c.writeModSeq(e)
		}
		return c.out.err == nil
	})
	return res.Modified, nil
}

// echoes knows which flags a STORE leads to, so that a silent one hides only what the
// client expects.
type echoes struct {
	c      *conn
	sf     imap.StoreFlags
	known  map[[2]mailbox.FlagSet]bool
	others []imap.Flag // the flags of the command without \Deleted
}

func newEchoes(c *conn, sf imap.StoreFlags) *echoes {
	e := &echoes{c: c, sf: sf, known: map[[2]mailbox.FlagSet]bool{}}
	for _, f := range sf.Flags {
		if f != imap.FlagDeleted {
			e.others = append(e.others, f)
		}
	}
	return e
}

func (e *echoes) expected(old, now mailbox.Entry) bool {
	deleted := slices.Contains(e.sf.Flags, imap.FlagDeleted)
	want := old.Deleted
	switch {
	case e.sf.Op == imap.StoreFlagsSet:
		want = deleted
	case deleted:
		want = e.sf.Op == imap.StoreFlagsAdd
	}
	if now.Deleted != want {
		return false
	}
	key := [2]mailbox.FlagSet{old.Flags, now.Flags}
	yes, known := e.known[key]
	if !known {
		yes = sameFlags(e.apply(e.c.show(old.Flags).flags), e.c.show(now.Flags).flags)
		e.known[key] = yes
	}
	return yes
}

// apply returns what the command makes of flags.
func (e *echoes) apply(flags []imap.Flag) []imap.Flag {
	switch e.sf.Op {
	case imap.StoreFlagsAdd:
		return append(slices.Clone(flags), e.others...)
	case imap.StoreFlagsDel:
		return slices.DeleteFunc(slices.Clone(flags), func(f imap.Flag) bool { return hasFlag(e.others, f) })
	}
	return e.others
}

func hasFlag(flags []imap.Flag, f imap.Flag) bool {
	return slices.ContainsFunc(flags, func(g imap.Flag) bool { return strings.EqualFold(string(f), string(g)) })
}

func sameFlags(a, b []imap.Flag) bool {
	within := func(x, y []imap.Flag) bool {
		return !slices.ContainsFunc(x, func(f imap.Flag) bool { return !hasFlag(y, f) })
	}
	return within(a, b) && within(b, a)
}

// targets resolves the set of a command against the view.
func (c *conn) targets(set numSet, num numbering) ([]span, error) {
	if set.saved {
		return c.sel.savedSpans(), nil
	}
	spans, inRange := c.sel.resolve(set, num == uidNumbers)
	if !inRange {
		return nil, syntaxError("No such message number")
	}
	return spans, nil
}

// savedSpans returns the positions of the last saved search result (RFC 5182).
func (s *selected) savedSpans() []span {
	var set numSet
	for _, r := range s.saved {
		set.ranges = append(set.ranges, numRange{uint32(r.Start), uint32(r.Stop)})
	}
	spans := make([]span, 0, len(set.ranges))
	for _, r := range set.ranges {
		spans = append(spans, span{s.lower(imap.UID(r.from)), s.lower(imap.UID(r.to) + 1)})
	}
	return merge(spans)
}

// fewChosen is how many neighbours a choice of few spans at most.
const fewChosen = 64

// chosenGone returns the UIDs in spans that are gone while the client was not told:
// the store passes them over, but in a system mailbox choosing them may mean something.
// Who names them by number is told with a NO instead. A choice of few is told as a whole:
// any of it may go between here and the commit.
func (c *conn) chosenGone(spans []span, num numbering) (set imap.UIDSet) {
	if n := len(spans); n > 0 && spans[n-1].to-spans[0].from <= fewChosen {
		c.sel.each(spans, func(_ uint32, e mailbox.Entry) bool {
			set.AddNum(e.UID)
			return true
		})
	}
	if num != uidNumbers {
		return set
	}
	for _, uid := range c.sel.ghosts {
		at := c.sel.lower(uid)
		if slices.ContainsFunc(spans, func(s span) bool { return s.from <= at && at < s.to }) {
			set.AddNum(uid)
		}
	}
	return set
}
