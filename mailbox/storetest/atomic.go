package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// never is a precondition that fails.
var never = mailbox.CheckRecord{Key: "no such record", Version: 7}

// testAllOrNothing puts every op before one that fails, and finds the state as it
// was, in memory and on disk.
func testAllOrNothing(f *fixture) {
	id, _ := f.add("a", inbox, action)
	lone, _ := f.add("b", inbox)
	f.commit(store(inbox, "2", imap.StoreFlagsAdd, imap.FlagDeleted), mailbox.CreateMailbox{Name: "P/Q"},
		mailbox.Append{Stream: "s", Events: [][]byte{{1}}, Blobs: []mailbox.Blob{f.stage("kept")}},
		mailbox.PutRecord{Key: "r", Value: []byte("v"), Index: []string{"i"}}, due("run", "k", 0, "V"), mailbox.Add{Key: "sums", Sums: map[string]int64{"a": 5}})
	p, _ := f.mailbox("P")
	q, _ := f.mailbox("P/Q")
	f.add("in q", q.ID)
	before := f.everything(id, lone)
	ops := []mailbox.Op{
		f.message("new", inbox, plain), mailbox.AddEntry{Message: lone, Mailbox: plain}, mailbox.RemoveEntry{Message: id, Mailbox: inbox},
		mailbox.Hold{Message: id, Name: "h"}, mailbox.SetTag{Message: id, New: "t"},
		store(inbox, "1:2", imap.StoreFlagsAdd, imap.FlagSeen, "brand-new-keyword", imap.FlagDeleted), mailbox.MarkMessage{Message: id, Add: []imap.Flag{"another"}},
		mailbox.CopyEntries{From: inbox, To: plain, UIDs: uidSet("1:2")}, mailbox.MoveEntries{From: inbox, To: q.ID, UIDs: uidSet("1:2")},
		mailbox.Expunge{Mailbox: inbox}, mailbox.CreateMailbox{Name: "P/New/Deep"}, mailbox.DeleteMailbox{Mailbox: q.ID},
		mailbox.RenameMailbox{Mailbox: p.ID, Name: "Z"}, mailbox.RenameMailbox{Mailbox: inbox, Name: "OldInbox"}, mailbox.Subscribe{Mailbox: plain, On: true},
		mailbox.Append{Stream: "s", Expect: 1, Events: [][]byte{{2}}, Blobs: []mailbox.Blob{f.stage("other")}}, mailbox.DropStream{Stream: "s"},
		mailbox.PutRecord{Key: "r", Version: 1, Value: []byte("w"), Index: []string{"j"}}, mailbox.DeleteRecord{Key: "r"}, due("run", "k", 9, "W"),
		mailbox.DeleteDue{Kind: "run", Key: "k"}, mailbox.Add{Key: "n", Sums: map[string]int64{"a": 1}}, mailbox.Add{Key: "sums", Sums: map[string]int64{"a": 1}},
	}
	check := func(what string) {
		f.Helper()
		if after := f.everything(id, lone); after != before {
			f.Fatalf("%s left a trace:\n%s\nbefore:\n%s", what, after, before)
		}
	}
	for _, op := range ops {
		f.fails(mailbox.Conflict, op, never)
		check(fmt.Sprintf("%T", op))
	}
	all := append(ops[:7:7], ops[7], ops[10], ops[15], ops[17], ops[19], never)
	f.fails(mailbox.Conflict, all...)
	check("all at once")
	f.consistent()
	f.commit(ops[0]) // its bytes still wait
	before = f.everything(id, lone)
	f.reopen()
	check("a new start")
}

// everything renders the visible state.
func (f *fixture) everything(ids ...mailbox.MessageID) string {
	f.Helper()
	all, err := f.s.Mailboxes(f.ctx, account)
	f.ok(err)
	out := fmt.Sprintln(all)
	for _, m := range all {
		for _, e := range f.snap(m.ID).All() {
			out += fmt.Sprintln(m.ID, e, f.flags(m.ID, e.UID))
		}
	}
	for _, id := range ids {
		out += f.places(id) + f.body(id) + f.tag(id) + "\n"
	}
	f.ok(f.s.Events(f.ctx, account, "s", 1, func(seq uint64, b []byte) error { out += fmt.Sprintln(seq, b); return nil }))
	for _, index := range []string{"i", "j"} {
		recs, err := f.s.Lookup(f.ctx, account, index)
		f.ok(err)
		out += fmt.Sprintln(index, recs)
	}
	recs, err := f.s.Records(f.ctx, account, "", "", 0)
	f.ok(err)
	return out + fmt.Sprintln(recs, f.nextDue("run"))
}

// testLaterOps: ops of one Tx build on each other.
func testLaterOps(f *fixture) {
	op := f.message("m", inbox)
	res := f.commit(op, mailbox.CreateMailbox{Name: "New"}, mailbox.AddEntry{Message: op.ID, Mailbox: mailbox.FirstUserMailbox},
		mailbox.MarkMessage{Message: op.ID, Add: []imap.Flag{"kw"}}, mailbox.MoveEntries{From: inbox, To: plain, UIDs: uidSet("1")},
		mailbox.PutRecord{Key: "k"}, mailbox.PutRecord{Key: "k", Version: 1}, mailbox.CheckRecord{Key: "k", Version: 2},
		store(plain, "1", imap.StoreFlagsAdd, imap.FlagDeleted), mailbox.Expunge{Mailbox: plain})
	f.same("places", f.places(op.ID), "1000/1")
	f.same("flags", f.flags(1000, 1), "kw")
	f.same("INBOX", []any{f.uids(inbox), f.snap(inbox).UIDNext()}, []any{"", 2})
	f.same("one step", f.entry(1000, 1).ModSeq, res.ModSeq)
	gone := f.message("came and went", inbox)
	f.commit(gone, mailbox.RemoveEntry{Message: gone.ID, Mailbox: inbox})
	f.same("never seen", []any{f.uids(inbox), f.snap(inbox).UIDNext()}, []any{"", 3})
	f.commit(mailbox.CreateMailbox{Name: "Brief"}, mailbox.DeleteMailbox{Mailbox: 1001})
	f.same("names", f.names(), "New")
}

// testGroupIsolation: failing Txs among good ones, in the same commit groups.
func testGroupIsolation(f *fixture) {
	const writers, rounds = 16, 12
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				name := fmt.Sprintf("%d-%d", w, r)
				op := f.message(name, inbox, plain)
				op.Flags = []imap.Flag{imap.Flag("kw-" + name)}
				ops := []mailbox.Op{op, mailbox.CreateMailbox{Name: "M" + name}, mailbox.PutRecord{Key: name, Index: []string{"all"}},
					mailbox.Append{Stream: name, Events: [][]byte{{1}}}, due("run", name, 0, ""), mailbox.MarkMessage{Message: op.ID, Add: []imap.Flag{imap.FlagSeen}}}
				bad := (w+r)%2 == 0
				if bad {
					ops = append(ops, never)
				}
				res, err := f.s.Commit(f.ctx, account, mailbox.Tx{Ops: ops})
				if bad != (err != nil) || !bad && len(res.UIDs[op.ID]) != 2 {
					f.Errorf("Tx %s: %+v, %v", name, res, err)
				}
			}
		})
	}
	wg.Wait()
	const good = writers * rounds / 2
	check := func() {
		f.Helper()
		f.consistent()
		recs, err := f.s.Lookup(f.ctx, account, "all")
		f.ok(err)
		ds, err := f.s.Claim(f.ctx, account, "run", noon, 0, 9999)
		f.ok(err)
		all, err := f.s.Mailboxes(f.ctx, account)
		f.ok(err)
		f.same("records, due, mailboxes, INBOX, Archive", []any{len(recs), len(ds), len(all) - len(seeds), f.snap(inbox).Len(), f.snap(plain).Len()},
			[]any{good, good, good, good, good})
		f.same("no UID wasted or used twice", f.snap(inbox).UIDNext(), good+1)
		for _, e := range f.snap(inbox).All() {
			fl := f.s.Flags(account, e.Flags)
			f.same("flags of "+f.body(e.Message), fl, []imap.Flag{imap.FlagSeen, imap.Flag("kw-" + f.body(e.Message))})
		}
	}
	check()
	f.reopen()
	check()
}

func testConcurrentAdds(f *fixture) {
	const writers, each = 32, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				op := f.message(fmt.Sprint(w, ".", i), inbox)
				res, err := f.s.Commit(f.ctx, account, mailbox.Tx{Ops: []mailbox.Op{op}})
				if err != nil {
					f.Error(err)
					return
				}
				// What a commit answered is there for everybody.
				if e, ok := f.snap(inbox).Find(res.UIDs[op.ID][0].UID); !ok || e.Message != op.ID {
					f.Errorf("message %d is not under its UID: %+v", op.ID, e)
				}
			}
		})
	}
	wg.Wait()
	f.same("all there", f.uids(inbox), fmt.Sprintf("1:%d", writers*each))
}

func testCancelled(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.s.Commit(ctx, account, mailbox.Tx{Ops: []mailbox.Op{f.message("m", inbox)}})
	f.kind(err, mailbox.Transient)
	f.same("cause", errors.Is(err, context.Canceled), true)
	f.same("nothing", f.uids(inbox), "")

	// Cancelled at any moment, the answer is true.
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(f.ctx)
			op := f.message("m", inbox)
			go cancel()
			_, err := f.s.Commit(ctx, account, mailbox.Tx{Ops: []mailbox.Op{op}})
			ps, perr := f.s.Places(f.ctx, account, op.ID)
			f.ok(perr)
			if (err == nil) != (len(ps) == 1) {
				f.Errorf("Commit said %v and the message has places %v", err, ps)
			}
		})
	}
	wg.Wait()
}

func testWatch(f *fixture) {
	in, cancelIn := f.s.Watch(account, inbox)
	other, cancelOther := f.s.Watch(account, plain)
	any, cancelAny := f.s.Watch(account, 0)
	defer cancelIn()
	defer cancelOther()
	id, _ := f.add("m", inbox)
	f.add("n", inbox) // tokens merge
	for _, ch := range []<-chan struct{}{in, any} {
		f.within(ch, "watcher")
	}
	silent := func(what string, ch <-chan struct{}) {
		f.Helper()
		select {
		case <-ch:
			f.Errorf("%s was woken", what)
		default:
		}
	}
	silent("INBOX twice", in)
	silent("Archive", other)
	f.commit(mailbox.PutRecord{Key: "k"})
	f.within(any, "watcher of everything")
	silent("INBOX by a record", in)
	f.commit(mailbox.AddEntry{Message: id, Mailbox: plain})
	f.within(other, "watcher of Archive")
	<-any
	f.commit(mailbox.MarkMessage{Message: id, Add: []imap.Flag{imap.FlagSeen}})
	f.within(in, "INBOX by a flag of the message")
	f.within(other, "Archive by a flag of the message")
	<-any
	dues, cancelDues := f.s.Watch(account, mailbox.DueEntries)
	defer cancelDues()
	f.commit(mailbox.PutRecord{Key: "m"})
	silent("due entries by a record", dues)
	f.commit(due("run", "k", 3, "v"))
	f.within(dues, "due entries by a new one")
	f.commit(mailbox.DeleteDue{Kind: "run", Key: "k"})
	f.within(dues, "due entries by one that goes")
	<-any
	cancelAny()
	f.fails(mailbox.Conflict, never)
	f.commit(mailbox.PutRecord{Key: "l"})
	silent("cancelled", any)
}

func testReopen(f *fixture) {
	id, _ := f.add("a", inbox, action)
	f.commit(mailbox.CreateMailbox{Name: "A/B"}, store(inbox, "1", imap.StoreFlagsAdd, "kw", imap.FlagDeleted), mailbox.SetTag{Message: id, New: "t"},
		mailbox.Append{Stream: "s", Events: [][]byte{{1}, {}}}, mailbox.PutRecord{Key: "r", Index: []string{"i"}}, due("run", "k", 3, "v"))
	next := f.nextID()
	before := f.everything(id)
	for range 3 {
		f.reopen()
		f.same("state", f.everything(id), before)
	}
	op := f.message("b", inbox)
	if op.ID <= id {
		f.Errorf("message id %d after %d (and %d given out)", op.ID, id, next)
	}
	res := f.commit(op)
	if res.ModSeq <= f.entry(action, 1).ModSeq {
		f.Errorf("mod-sequence %d", res.ModSeq)
	}
}
