package imapserver

import (
	"slices"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// QRESYNC (RFC 7162 section 3.2): with SELECT a client names what it knew, and gets
// what changed since.

// selectOptions are the parameters of SELECT and EXAMINE (RFC 4466 section 2.1).
type selectOptions struct {
	condstore bool
	resync    *resync
}

// resync is what a client knew of a mailbox when it left.
type resync struct {
	uidValidity uint32
	since       mailbox.ModSeq
	known       []numRange // UIDs; nil: all
	// The message numbers seqs had the UIDs uids, both ascending and equally many.
	seqs, uids []numRange
}

func (p *parser) selectOptions() (opt selectOptions) {
	if !p.accept(' ') || p.peek() != '(' {
		return opt
	}
	p.list(func() {
		switch name := p.word(); {
		case !p.knows(inSelect, name):
			p.fail("Unknown SELECT parameter")
		case name == "CONDSTORE":
			opt.condstore = true
		case name == "QRESYNC":
			p.sp()
			opt.resync = p.resync()
		default:
			p.fail("Unknown SELECT parameter")
		}
	})
	return opt
}

func (p *parser) resync() *resync {
	r := &resync{}
	p.expect('(')
	if r.uidValidity = p.number(); r.uidValidity == 0 {
		p.fail("Bad UIDVALIDITY")
	}
	p.sp()
	r.since = p.modSeq()
	more := p.accept(' ')
	if more && p.peek() != '(' {
		r.known = p.fixedSet()
		more = p.accept(' ')
	}
	if more {
		p.expect('(')
		r.seqs = p.fixedSet()
		p.sp()
		r.uids = p.fixedSet()
		p.expect(')')
		if !ascending(r.seqs) || !ascending(r.uids) || numbersIn(r.seqs) != numbersIn(r.uids) {
			p.fail("Bad sequence match data")
		}
	}
	p.expect(')')
	return r
}

// fixedSet reads a sequence-set without "*" and "$". Its ranges run upwards.
func (p *parser) fixedSet() []numRange {
	set := p.numSet()
	if set.saved {
		p.fail("Expected numbers")
	}
	for i, r := range set.ranges {
		if r.from == 0 || r.to == 0 {
			p.fail(`"*" is not allowed here`)
		}
		set.ranges[i] = numRange{min(r.from, r.to), max(r.from, r.to)}
	}
	return set.ranges
}

func ascending(set []numRange) bool {
	for i := 1; i < len(set); i++ {
		if set[i].from <= set[i-1].to {
			return false
		}
	}
	return true
}

func numbersIn(set []numRange) (n int64) {
	for _, r := range set {
		n += int64(r.to) - int64(r.from) + 1
	}
	return n
}

// resync tells a client what changed in the mailbox it selects: what vanished comes
// first, for the numbers of the rest are those of today.
func (c *conn) resync(r *resync) {
	s := c.sel
	if r.uidValidity != s.snap.Mailbox.UIDValidity {
		return
	}
	since := r.since
	if since > s.snap.Mailbox.HighestModSeq {
		since = 0 // the client has seen a future that an older copy of the store knows nothing of
	}
	known := r.known
	if known == nil {
		known = []numRange{{1, max(uint32(s.snap.UIDNext()), 2) - 1}}
	}
	c.writeVanishedEarlier(c.vanished(known, since, r))
	spans, _ := s.resolve(numSet{ranges: known}, true)
	s.each(spans, func(_ uint32, e mailbox.Entry) bool {
		if e.ModSeq > since {
			c.writeFlags(e)
		}
		return c.out.err == nil
	})
}

// matched returns the highest UID of the match data that the view has under the same
// number. Up to it the client has what we have: no UID comes to be between others.
func (s *selected) matched(r *resync) (uid imap.UID) {
	uids, at := r.uids, uint32(0)
	for _, seqs := range r.seqs {
		for n := seqs.from; n <= seqs.to && int(n) <= s.len(); n++ {
			if e, _ := s.at(int(n) - 1); uint32(e.UID) == uids[0].from+at {
				uid = e.UID
			}
			if at++; uids[0].from+at > uids[0].to {
				uids, at = uids[1:], 0
			}
		}
	}
	return uid
}

// writeVanishedSince answers the VANISHED modifier of UID FETCH (RFC 7162 section 3.2.6).
// "*" takes in the UIDs of messages that were the last ones.
func (c *conn) writeVanishedSince(set numSet, since mailbox.ModSeq) {
	last := max(uint32(c.sel.snap.UIDNext()), 2) - 1
	ranges := slices.Clone(set.ranges)
	for _, r := range c.sel.savedIn(set) {
		ranges = append(ranges, numRange{uint32(r.Start), uint32(r.Stop)})
	}
	for i, r := range ranges {
		if r.from == 0 {
			r.from = last
		}
		if r.to == 0 {
			r.to = last
		}
		ranges[i] = numRange{min(r.from, r.to), max(r.from, r.to)}
	}
	c.writeVanishedEarlier(c.vanished(ranges, since, nil))
}

func (s *selected) savedIn(set numSet) imap.UIDSet {
	if !set.saved {
		return nil
	}
	return s.saved
}

// vanished returns which UIDs of a set were expunged after since. Where history does not
// go back that far it is all that are not there (RFC 7162 section 3.2.6), above what the
// match data of r, if any, shows the client to know. What this session has yet to be told
// is not among them.
func (c *conn) vanished(set []numRange, since mailbox.ModSeq, r *resync) []uidRange {
	s := c.sel
	asked := uidRanges(set, s.snap.UIDNext())
	if since >= s.snap.Mailbox.HighestModSeq {
		return nil
	}
	gone, whole, err := c.srv.opt.Store.Gone(c.ctx, c.ident.Account, s.id, since)
	if err != nil && !isKind(err, mailbox.NotFound) {
		c.log.Error("imap: expunge history", "err", err)
	}
	switch {
	case err == nil && whole:
		asked = intersect(asked, gone)
	case r != nil:
		asked = above(asked, s.matched(r))
	}
	var out []uidRange
	for _, r := range asked {
		out = append(out, s.missing(r)...)
	}
	return out
}

// uidRanges returns a set in order, without overlap, below next.
func uidRanges(set []numRange, next imap.UID) []uidRange {
	set = slices.Clone(set)
	slices.SortFunc(set, func(a, b numRange) int { return int(int64(a.from) - int64(b.from)) })
	var out []uidRange
	var last imap.UID
	for _, r := range set {
		u := uidRange{max(imap.UID(r.from), last+1), min(imap.UID(r.to), next-1)}
		if u.from <= u.to {
			out, last = append(out, u), u.to
		}
	}
	return out
}

// intersect returns what is in both; they are in order.
func intersect(a []uidRange, b imap.UIDSet) (out []uidRange) {
	for len(a) > 0 && len(b) > 0 {
		if r := (uidRange{max(a[0].from, b[0].Start), min(a[0].to, b[0].Stop)}); r.from <= r.to {
			out = append(out, r)
		}
		if a[0].to < b[0].Stop {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// above returns what of a set lies above uid.
func above(set []uidRange, uid imap.UID) (out []uidRange) {
	for _, r := range set {
		if r.from = max(r.from, uid+1); r.from <= r.to {
			out = append(out, r)
		}
	}
	return out
}

// missing returns the UIDs of a range that are not in the view.
func (v *view) missing(r uidRange) (out []uidRange) {
	cut := func(uid imap.UID) {
		if uid > r.from {
			out = append(out, uidRange{r.from, uid - 1})
		}
		r.from = uid + 1
	}
	ghosts := v.ghosts[v.ghostsBelow(r.from):]
	for _, e := range v.snap.Range(v.snap.Search(r.from), v.snap.Search(r.to+1)) {
		for ; len(ghosts) > 0 && ghosts[0] < e.UID; ghosts = ghosts[1:] {
			cut(ghosts[0])
		}
		cut(e.UID)
	}
	for ; len(ghosts) > 0 && ghosts[0] <= r.to; ghosts = ghosts[1:] {
		cut(ghosts[0])
	}
	if r.from <= r.to {
		out = append(out, r)
	}
	return out
}

// rangesInLine is how many ranges one VANISHED names at most, for clients that bound a
// line (RFC 7162 section 4).
const rangesInLine = 500

func (c *conn) writeVanishedEarlier(set []uidRange) { c.writeVanished("* VANISHED (EARLIER) ", set) }

func (c *conn) writeVanished(head string, set []uidRange) {
	for part := range slices.Chunk(set, rangesInLine) {
		c.out.str(head)
		for i, r := range part {
			if i > 0 {
				c.out.str(",")
			}
			c.out.num(uint64(r.from))
			if r.to > r.from {
				c.out.str(":").num(uint64(r.to))
			}
		}
		c.out.crlf()
	}
}

// writeExpunged tells which messages went: by number, or by UID to a QRESYNC client.
func (c *conn) writeExpunged(u update) {
	if !c.qresync {
		for _, n := range u.expunged {
			c.out.str("* ").num(uint64(n)).str(" EXPUNGE").crlf()
		}
		return
	}
	var set []uidRange
	for _, uid := range u.vanished {
		if n := len(set); n > 0 && set[n-1].to+1 == uid {
			set[n-1].to = uid
			continue
		}
		set = append(set, uidRange{uid, uid})
	}
	c.writeVanished("* VANISHED ", set)
}
