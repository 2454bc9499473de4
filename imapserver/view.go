package imapserver

import (
	"slices"
	"sort"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// view is what a session has told its client about the selected mailbox: the
// entries of a snapshot, and ghosts, which are gone from the store but keep their
// number until EXPUNGE may be told. It is plain logic: no I/O, no clock.
//
// Positions count from 0; a sequence number is a position plus one.
type view struct {
	snap    *mailbox.Snapshot
	ghosts  []imap.UID     // in order
	settled mailbox.ModSeq // up to here everything was told, expunges too (RFC 7162 section 3.2)
	recent  []uidRange     // UIDs that are \Recent in this session, in order
}

type uidRange struct{ from, to imap.UID } // both included

// span is a run of positions [from, to).
type span struct{ from, to int }

// update is what to tell the client after the view went on to a newer snapshot, in
// this order.
type update struct {
	expunged []uint32        // sequence numbers, highest first, so that none shifts another
	vanished []imap.UID      // the same messages, in order
	exists   bool            // the number of messages grew
	flags    []mailbox.Entry // entries whose flags changed
	touched  []mailbox.Entry // entries of which only the mod-sequence changed
}

func (v *view) len() int { return v.snap.Len() + len(v.ghosts) }

// ghostsBelow returns how many ghosts have a UID below uid.
func (v *view) ghostsBelow(uid imap.UID) int {
	if len(v.ghosts) == 0 {
		return 0
	}
	i, _ := slices.BinarySearch(v.ghosts, uid)
	return i
}

// lower returns the first position whose UID is at least uid.
func (v *view) lower(uid imap.UID) int { return v.snap.Search(uid) + v.ghostsBelow(uid) }

// seq returns the sequence number of an entry's UID.
func (v *view) seq(uid imap.UID) uint32 { return uint32(v.lower(uid) + 1) }

// at returns the entry at a position; of a ghost only the UID is known.
func (v *view) at(pos int) (e mailbox.Entry, ghost bool) {
	g := sort.Search(len(v.ghosts), func(i int) bool { return v.snap.Search(v.ghosts[i])+i >= pos })
	if g < len(v.ghosts) && v.snap.Search(v.ghosts[g])+g == pos {
		return mailbox.Entry{UID: v.ghosts[g]}, true
	}
	return v.snap.At(pos - g), false
}

// each calls fn for the entries of spans, and returns how many ghosts it passed over.
func (v *view) each(spans []span, fn func(seq uint32, e mailbox.Entry) bool) (ghosts int) {
	for _, s := range spans {
		for pos := s.from; pos < s.to; {
			run, skipped := v.run(pos, s.to)
			ghosts += skipped
			pos += skipped
			for i, e := range v.snap.Range(run.from, run.to) {
				if !fn(uint32(pos+i-run.from+1), e) {
					return ghosts
				}
			}
			pos += run.to - run.from
		}
	}
	return ghosts
}

// run splits what begins at pos into ghosts, counted, and the snapshot's entries that
// follow them up to the next ghost or to the position end.
func (v *view) run(pos, end int) (run span, ghosts int) {
	g := sort.Search(len(v.ghosts), func(i int) bool { return v.snap.Search(v.ghosts[i])+i >= pos })
	for pos < end && g < len(v.ghosts) && v.snap.Search(v.ghosts[g])+g == pos {
		ghosts, g, pos = ghosts+1, g+1, pos+1
	}
	run = span{pos - g, end - g}
	if g < len(v.ghosts) {
		run.to = min(run.to, v.snap.Search(v.ghosts[g]))
	}
	return run, ghosts
}

// advance moves the view on to a newer snapshot, given the difference, and returns
// what to tell. Without expunge, what went becomes a ghost.
func (v *view) advance(next *mailbox.Snapshot, changes []mailbox.Change, expunge bool) update {
	var u update
	before := v.len()
	var gone []imap.UID
	for _, c := range changes {
		switch {
		case c.New == nil:
			gone = append(gone, c.UID)
		case c.Old != nil && (c.Old.Flags != c.New.Flags || c.Old.Deleted != c.New.Deleted):
			u.flags = append(u.flags, *c.New)
		case c.Old != nil && c.Old.ModSeq != c.New.ModSeq:
			u.touched = append(u.touched, *c.New)
		}
	}
	if expunge {
		u.expunged = v.numbers(gone)
		u.vanished = append(gone, v.ghosts...)
		slices.Sort(u.vanished)
	}
	switch {
	case expunge:
		v.ghosts = nil
	case len(gone) > 0:
		v.ghosts = append(v.ghosts, gone...)
		slices.Sort(v.ghosts)
	}
	v.snap = next
	if len(v.ghosts) == 0 {
		v.settled = next.Mailbox.HighestModSeq
	}
	u.exists = v.len() > before-len(u.expunged)
	return u
}

// numbers returns the sequence numbers of the ghosts and of gone, highest first.
func (v *view) numbers(gone []imap.UID) []uint32 {
	out := make([]uint32, 0, len(gone)+len(v.ghosts))
	for _, uid := range gone {
		out = append(out, v.seq(uid))
	}
	for i, uid := range v.ghosts {
		out = append(out, uint32(v.snap.Search(uid)+i+1))
	}
	slices.SortFunc(out, func(a, b uint32) int { return int(b) - int(a) })
	return out
}

// resolve turns a set into spans of positions, in order and without overlap. byUID
// says what its numbers are. ok is false when a sequence number is out of range
// (RFC 3501 section 9, seq-number); a UID that does not exist is no error.
func (v *view) resolve(set numSet, byUID bool) (spans []span, ok bool) {
	ok = true
	n := v.len()
	for _, r := range set.ranges {
		if n == 0 {
			ok = ok && (byUID || r.from == 0 || r.to == 0)
			continue
		}
		if byUID {
			spans = append(spans, v.uidSpan(r))
			continue
		}
		s, in := seqSpan(r, n)
		ok = ok && in
		spans = append(spans, s)
	}
	return merge(spans), ok
}

// uidSpan resolves a range of UIDs. "*" is the highest UID, so "n:*" always holds the
// last message (RFC 3501 section 6.4.8).
func (v *view) uidSpan(r numRange) span {
	last, _ := v.at(v.len() - 1)
	from, to := imap.UID(r.from), imap.UID(r.to)
	if from == 0 {
		from = last.UID
	}
	if to == 0 {
		to = last.UID
	}
	if from > to {
		from, to = to, from
	}
	s := span{v.lower(from), v.len()}
	if to < last.UID {
		s.to = v.lower(to + 1)
	}
	return s
}

func seqSpan(r numRange, n int) (s span, ok bool) {
	from, to := int(r.from), int(r.to)
	if from == 0 {
		from = n
	}
	if to == 0 {
		to = n
	}
	if from > to {
		from, to = to, from
	}
	return span{min(from-1, n), min(to, n)}, to <= n
}

// merge sorts spans and joins those that touch.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	out := spans[:0]
	for _, s := range spans {
		switch {
		case s.from >= s.to:
		case len(out) > 0 && s.from <= out[len(out)-1].to:
			out[len(out)-1].to = max(out[len(out)-1].to, s.to)
		default:
			out = append(out, s)
		}
	}
	return out
}

// uids returns the UIDs of spans as a set, without ghosts, and counts the ghosts.
// Neighbours in the view make one range: no UID between them can come to be.
func (v *view) uids(spans []span) (set imap.UIDSet, ghosts int) {
	for _, s := range spans {
		for pos := s.from; pos < s.to; {
			run, skipped := v.run(pos, s.to)
			ghosts += skipped
			if run.from < run.to {
				set = append(set, imap.UIDRange{Start: v.snap.At(run.from).UID, Stop: v.snap.At(run.to - 1).UID})
			}
			pos += skipped + run.to - run.from
		}
	}
	return set, ghosts
}

// claim adds UIDs to those that are \Recent here. What is so already may be among them.
func (v *view) claim(r uidRange) {
	n := len(v.recent)
	if n > 0 {
		r.from = max(r.from, v.recent[n-1].to+1)
	}
	if r.from > r.to {
		return
	}
	if n > 0 && v.recent[n-1].to+1 == r.from {
		v.recent[n-1].to = r.to
		return
	}
	v.recent = append(v.recent, r)
}

func (v *view) isRecent(uid imap.UID) bool {
	i := sort.Search(len(v.recent), func(i int) bool { return v.recent[i].to >= uid })
	return i < len(v.recent) && v.recent[i].from <= uid
}

// numRecent counts the entries that are \Recent.
func (v *view) numRecent() int {
	n := 0
	for _, r := range v.recent {
		n += v.lower(r.to+1) - v.lower(r.from)
	}
	return n
}
