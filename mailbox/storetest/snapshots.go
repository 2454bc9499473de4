package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func testSnapshots(f *fixture) {
	empty := f.snap(inbox)
	f.same("empty", []any{empty.Len(), empty.Search(1), empty.UIDNext()}, []any{0, 0, 1})
	f.add("a", inbox)
	one := f.snap(inbox)
	if one != f.snap(inbox) {
		f.Error("another snapshot although nothing changed")
	}
	f.same("old one", []any{empty.Len(), one.Len()}, []any{0, 1})
	f.commit(store(inbox, "1", imap.StoreFlagsAdd, imap.FlagSeen))
	ch := mailbox.Diff(one, f.snap(inbox))
	if len(ch) != 1 || ch[0].UID != 1 || ch[0].Old == nil || ch[0].New == nil || ch[0].Old.Flags == ch[0].New.Flags {
		f.Errorf("difference %+v", ch)
	}
	_, err := f.s.Snapshot(f.ctx, account, 4711)
	f.kind(err, mailbox.NotFound)
}

// testRandomOps makes random changes and checks after each that any two snapshots
// seen differ by exactly what Diff says, and at the end that the file agrees.
func testRandomOps(f *fixture) {
	seed := rand.Uint64()
	f.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var seen []*mailbox.Snapshot
	for step := range 250 {
		ops := randomOps(f, rnd)
		if rnd.IntN(5) == 0 {
			f.fails(mailbox.Conflict, append(ops, never)...)
		} else {
			f.commit(ops...)
		}
		seen = append(seen, f.snap(inbox))
		f.differs(seen[rnd.IntN(len(seen))], seen[len(seen)-1])
		if step%60 == 59 {
			f.consistent()
		}
	}
	f.differs(seen[len(seen)-1], seen[0])
	last := slices.Collect(entries(f.snap(inbox)))
	f.reopen()
	f.same("on disk", slices.Collect(entries(f.snap(inbox))), last)
}

func entries(s *mailbox.Snapshot) func(func(mailbox.Entry) bool) {
	return func(yield func(mailbox.Entry) bool) {
		for _, e := range s.All() {
			if !yield(e) {
				return
			}
		}
	}
}

func randomOps(f *fixture, rnd *rand.Rand) (ops []mailbox.Op) {
	top := int(f.snap(inbox).UIDNext())
	from := 1 + rnd.IntN(top)
	set := uidSet(fmt.Sprintf("%d:%d", from, from+rnd.IntN(20)))
	for range 1 + rnd.IntN(3) {
		switch rnd.IntN(10) {
		case 0, 1, 2, 3:
			for range 1 + rnd.IntN(12) {
				ops = append(ops, f.message(fmt.Sprint(rnd.IntN(50)), inbox))
			}
		case 4, 5:
			ops = append(ops, mailbox.StoreFlags{Mailbox: inbox, UIDs: set, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.Flag(fmt.Sprint("k", rnd.IntN(9)))}})
		case 6:
			ops = append(ops, mailbox.StoreFlags{Mailbox: inbox, UIDs: set, Op: imap.StoreFlagsSet, Flags: []imap.Flag{imap.FlagSeen, imap.FlagDeleted}})
		case 7:
			ops = append(ops, mailbox.Expunge{Mailbox: inbox})
		case 8:
			ops = append(ops, mailbox.MoveEntries{From: inbox, To: plain, UIDs: set}, mailbox.CopyEntries{From: plain, To: inbox, UIDs: uidSet("*")})
		default:
			ops = append(ops, mailbox.MoveEntries{From: inbox, To: inbox, UIDs: set})
		}
	}
	return ops
}

// differs applies the difference to a and wants b.
func (f *fixture) differs(a, b *mailbox.Snapshot) {
	f.Helper()
	state := map[imap.UID]mailbox.Entry{}
	for _, e := range a.All() {
		state[e.UID] = e
	}
	last := imap.UID(0)
	for _, c := range mailbox.Diff(a, b) {
		if c.UID <= last || c.Old == nil && c.New == nil || c.Old != nil && c.New != nil && *c.Old == *c.New {
			f.Fatalf("change %+v after UID %d", c, last)
		}
		last = c.UID
		if old, there := state[c.UID]; there != (c.Old != nil) || there && old != *c.Old {
			f.Fatalf("change %+v of %+v", c, old)
		}
		if delete(state, c.UID); c.New != nil {
			state[c.UID] = *c.New
		}
	}
	for _, e := range b.All() {
		if state[e.UID] != e {
			f.Fatalf("UID %d is %+v by the difference and %+v in the snapshot", e.UID, state[e.UID], e)
		}
	}
	if len(state) != b.Len() {
		f.Fatalf("%d entries by the difference, %d in the snapshot", len(state), b.Len())
	}
}

func testGone(f *fixture) {
	for i := range 6 {
		f.add(fmt.Sprint(i), inbox)
	}
	start := f.snap(inbox).Mailbox.HighestModSeq
	f.commit(mailbox.MoveEntries{From: inbox, To: plain, UIDs: uidSet("2:3")})
	middle := f.snap(inbox).Mailbox.HighestModSeq
	f.commit(store(inbox, "5", imap.StoreFlagsAdd, imap.FlagDeleted), mailbox.Expunge{Mailbox: inbox})
	check := func() {
		f.Helper()
		for since, want := range map[mailbox.ModSeq]string{start: "2:3,5", middle: "5", middle + 1: ""} {
			uids, ok, err := f.s.Gone(f.ctx, account, inbox, since)
			f.ok(err)
			f.same(fmt.Sprint("since ", since), []any{uids.String(), ok}, []any{want, true})
		}
		_, ok, err := f.s.Gone(f.ctx, account, inbox, 0)
		f.ok(err)
		f.same("before the mailbox was there", ok, false)
	}
	check()
	f.reopen()
	check()
	_, _, err := f.s.Gone(f.ctx, account, 4711, start)
	f.kind(err, mailbox.NotFound)
}
