package storetest

import (
	"fmt"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func testStoreFlags(f *fixture) {
	id, _ := f.add("a", inbox, action)
	f.add("b", inbox)
	before := f.entry(inbox, 2).ModSeq
	res := f.commit(store(inbox, "1,7:9", imap.StoreFlagsAdd, `\seen`, "$Label1", imap.FlagDeleted))
	f.same("here", f.flags(inbox, 1), `\Seen $Label1 \Deleted`)
	f.same("the message's other entry", f.flags(action, 1), `\Seen $Label1`)
	f.same("mod-sequences", []any{f.entry(inbox, 1).ModSeq, f.entry(action, 1).ModSeq, f.entry(inbox, 2).ModSeq}, []any{res.ModSeq, res.ModSeq, before})
	f.same("row", f.snap(action).Mailbox.HighestModSeq, res.ModSeq)

	f.same("no change, no mod-sequence", f.commit(store(inbox, "1", imap.StoreFlagsAdd, imap.FlagSeen)).ModSeq, 0)
	f.commit(store(inbox, "1", imap.StoreFlagsDel, `\SEEN`, "$LABEL1"))
	f.same("after -FLAGS", f.flags(inbox, 1), `\Deleted`)
	f.commit(store(inbox, "1:2", imap.StoreFlagsSet, imap.FlagDraft, imap.FlagAnswered))
	f.same("after FLAGS", f.flags(inbox, 1)+"|"+f.flags(inbox, 2), `\Answered \Draft|\Answered \Draft`)
	f.commit(store(inbox, "1", imap.StoreFlagsDel, imap.FlagDeleted, imap.FlagDraft))
	f.commit(store(inbox, "2", imap.StoreFlagsSet))
	f.same("after FLAGS ()", f.flags(inbox, 1)+"|"+f.flags(inbox, 2), `\Answered|`)
	f.fails(mailbox.Invalid, store(inbox, "1", imap.StoreFlagsAdd, `\Foo`))
	f.fails(mailbox.NotFound, store(4711, "1", imap.StoreFlagsAdd, imap.FlagSeen))
	f.same("places", f.places(id), "1/1 2/1")
}

func testFlagSpelling(f *fixture) {
	f.add("a", inbox)
	f.commit(store(inbox, "1", imap.StoreFlagsAdd, "NonJunk", "beta"))
	f.add("b", inbox)
	f.commit(store(inbox, "2", imap.StoreFlagsAdd, "NONJUNK", "Beta", "nonjunk"))
	f.same("first spelling", f.flags(inbox, 2), "NonJunk beta")
	f.same("same set", f.entry(inbox, 1).Flags, f.entry(inbox, 2).Flags)
	f.reopen()
	f.add("c", inbox)
	f.commit(store(inbox, "3", imap.StoreFlagsSet, "nonjunk", "BETA", imap.FlagSeen))
	f.same("after a new start", f.flags(inbox, 3), `\Seen NonJunk beta`)
}

func testFlagLimits(f *fixture) {
	f.add("a", inbox)
	f.commit(store(inbox, "1", imap.StoreFlagsAdd, imap.Flag(strings.Repeat("k", 255))))
	f.same("code", f.fails(mailbox.TooLarge, store(inbox, "1", imap.StoreFlagsAdd, imap.Flag(strings.Repeat("k", 256)))).Code, "LIMIT")
	// A few sets with many keywords each, so that the number of keywords is the limit.
	for part := range 10 {
		var many []imap.Flag
		for i := range 999 {
			many = append(many, imap.Flag(fmt.Sprintf("kw-%d-%d", part, i)))
		}
		f.commit(store(inbox, "1", imap.StoreFlagsSet, many...))
	}
	var nine []imap.Flag
	for i := range 9 {
		nine = append(nine, imap.Flag(fmt.Sprint("last", i)))
	}
	f.commit(store(inbox, "1", imap.StoreFlagsSet, nine...))
	f.same("code", f.fails(mailbox.TooLarge, store(inbox, "1", imap.StoreFlagsAdd, "one-more")).Code, "LIMIT")
	f.commit(store(inbox, "1", imap.StoreFlagsSet, "KW-0-0"))
	f.same("known ones still work", f.flags(inbox, 1), "kw-0-0")
}

func testUnchangedSince(f *fixture) {
	for _, text := range []string{"a", "b", "c"} {
		f.add(text, inbox)
	}
	since := f.snap(inbox).Mailbox.HighestModSeq
	f.commit(store(inbox, "2", imap.StoreFlagsAdd, imap.FlagFlagged))
	op := store(inbox, "1:3", imap.StoreFlagsAdd, imap.FlagSeen)
	op.UnchangedSince = &since
	res := f.commit(op)
	f.same("modified", res.Modified.String(), "2")
	f.same("flags", f.flags(inbox, 1)+"|"+f.flags(inbox, 2)+"|"+f.flags(inbox, 3), `\Seen|\Flagged|\Seen`)
	op.Flags, op.UnchangedSince = []imap.Flag{imap.FlagDraft}, new(mailbox.ModSeq)
	f.same("zero is before everything", f.commit(op).Modified.String(), "1:3")
	f.same("flags", f.flags(inbox, 1), `\Seen`)
}

func testMarkMessage(f *fixture) {
	id, _ := f.add("a", inbox, plain)
	f.commit(mailbox.MarkMessage{Message: id, Add: []imap.Flag{imap.FlagSeen, "$Approved"}})
	f.same("everywhere", f.flags(inbox, 1)+"|"+f.flags(plain, 1), `\Seen $Approved|\Seen $Approved`)
	f.commit(mailbox.MarkMessage{Message: id, Add: []imap.Flag{"x"}, Remove: []imap.Flag{"$approved", imap.FlagSeen}})
	f.same("changed", f.flags(plain, 1), "x")
	f.commit(mailbox.MarkMessage{Message: id + 50, Add: []imap.Flag{imap.FlagSeen}})
	f.fails(mailbox.Invalid, mailbox.MarkMessage{Message: id, Add: []imap.Flag{imap.FlagDeleted}})

	held := f.message("held")
	held.Hold = []string{"h"}
	f.commit(held)
	f.commit(mailbox.MarkMessage{Message: held.ID, Add: []imap.Flag{imap.FlagAnswered}})
	f.commit(mailbox.AddEntry{Message: held.ID, Mailbox: inbox})
	f.same("kept without entries", f.flags(inbox, 2), `\Answered`)
}

func testCopyAndMove(f *fixture) {
	id, _ := f.add("a", inbox)
	f.add("b", inbox)
	f.commit(mailbox.SetTag{Message: id, New: "t"}, store(inbox, "1", imap.StoreFlagsAdd, imap.FlagSeen, imap.FlagDeleted))
	res := f.commit(mailbox.CopyEntries{From: inbox, To: plain, UIDs: uidSet("1:9")})
	f.same("pairs", len(res.Copied), 2)
	f.same("first pair", res.Copied[0], mailbox.CopiedUID{UIDValidity: f.snap(plain).Mailbox.UIDValidity, From: 1, To: 1})
	f.same("flags, without \\Deleted", f.flags(plain, 1), `\Seen`)
	copied := f.entry(plain, 1)
	if copied.Message == id || copied.Date != f.entry(inbox, 1).Date {
		f.Errorf("the copy %+v of %+v", copied, f.entry(inbox, 1))
	}
	f.ok(f.s.Messages(f.ctx, account, []mailbox.MessageID{copied.Message}, func(m *mailbox.Message) error {
		f.same("copy", []any{m.Tag, m.Structure.Subject}, []any{"", "a"})
		return nil
	}))
	f.commit(store(plain, "1", imap.StoreFlagsSet))
	f.same("own flags", f.flags(inbox, 1), `\Seen \Deleted`)

	res = f.commit(mailbox.MoveEntries{From: inbox, To: plain, UIDs: uidSet("1")})
	f.same("move", res.Copied, []mailbox.CopiedUID{{UIDValidity: f.snap(plain).Mailbox.UIDValidity, From: 1, To: 3}})
	f.same("same message", f.entry(plain, 3).Message, id)
	f.same("left", f.uids(inbox), "2")
	f.same("body", f.body(id)+f.body(copied.Message), "aa")
	f.same("tag goes along", f.tag(id), "t")

	res = f.commit(mailbox.MoveEntries{From: plain, To: plain, UIDs: uidSet("1,3")})
	f.same("within a mailbox", f.uids(plain)+fmt.Sprint(len(res.Copied)), "2,4:52")
	f.commit(mailbox.AddEntry{Message: id, Mailbox: inbox})
	res = f.commit(mailbox.MoveEntries{From: plain, To: inbox, UIDs: uidSet("5")})
	f.same("to where it lies already", fmt.Sprint(res.Copied[0].To)+" "+f.places(id), "3 1/3")

	f.same("code", f.fails(mailbox.NotFound, mailbox.CopyEntries{From: inbox, To: 99, UIDs: uidSet("1")}).Code, "TRYCREATE")
	f.same("code", f.fails(mailbox.NotFound, mailbox.MoveEntries{From: inbox, To: 99, UIDs: uidSet("2")}).Code, "TRYCREATE")
	f.fails(mailbox.NotFound, mailbox.CopyEntries{From: 99, To: inbox, UIDs: uidSet("1")})
	f.same("nothing lost", f.uids(inbox), "2:3")
}

func (f *fixture) tag(id mailbox.MessageID) (tag string) {
	f.Helper()
	f.ok(f.s.Messages(f.ctx, account, []mailbox.MessageID{id}, func(m *mailbox.Message) error { tag = m.Tag; return nil }))
	return tag
}

func testUIDSets(f *fixture) {
	for i := range 6 {
		f.add(fmt.Sprint(i), inbox)
	}
	f.commit(mailbox.RemoveEntry{Message: f.entry(inbox, 3).Message, Mailbox: inbox})
	for i, tt := range []struct{ set, want string }{
		{"*", "6"}, {"5:*", "5:6"}, {"100:*", "6"}, {"1,1:2,2", "1:2"}, {"4:2", "2,4"}, {"3", ""}, {"6,1", "1,6"}, {"1:4294967295", "1:2,4:6"},
	} {
		kw := imap.Flag(fmt.Sprint("set", i))
		f.commit(store(inbox, tt.set, imap.StoreFlagsAdd, kw))
		var got imap.UIDSet
		for _, e := range f.snap(inbox).All() {
			if strings.Contains(f.flags(inbox, e.UID), string(kw)) {
				got.AddNum(e.UID)
			}
		}
		f.same("set "+tt.set, got.String(), tt.want)
	}
	f.commit(store(plain, "*", imap.StoreFlagsAdd, imap.FlagSeen)) // an empty mailbox
	f.fails(mailbox.Invalid, mailbox.StoreFlags{Mailbox: inbox, UIDs: imap.SearchRes(), Flags: []imap.Flag{imap.FlagSeen}})
}

func testExpunge(f *fixture) {
	for i := range 5 {
		f.add(fmt.Sprint(i), inbox)
	}
	kept := f.entry(inbox, 2).Message
	f.commit(mailbox.AddEntry{Message: kept, Mailbox: plain})
	f.commit(store(inbox, "2:4", imap.StoreFlagsAdd, imap.FlagDeleted))
	f.same("UID EXPUNGE", f.commit(mailbox.Expunge{Mailbox: inbox, UIDs: uidSet("1:2")}).Expunged, 1)
	f.same("left", f.uids(inbox), "1,3:5")
	gone := f.entry(inbox, 3).Message
	f.same("EXPUNGE", f.commit(mailbox.Expunge{Mailbox: inbox}).Expunged, 2)
	f.same("left", f.uids(inbox), "1,5")
	f.same("lives on", f.places(kept), "12/1")
	_, err := f.s.OpenMessage(f.ctx, account, gone)
	f.kind(err, mailbox.NotFound)
	f.same("nothing to do", f.commit(mailbox.Expunge{Mailbox: inbox}), mailbox.Result{})
}

func testUIDsNeverComeBack(f *fixture) {
	last := imap.UID(0)
	for round := range 4 {
		for range 3 {
			id, uid := f.add("m", inbox)
			if uid <= last {
				f.Fatalf("UID %d after %d", uid, last)
			}
			last = uid
			if round%2 == 0 {
				f.commit(mailbox.RemoveEntry{Message: id, Mailbox: inbox})
			}
		}
		validity := f.snap(inbox).Mailbox.UIDValidity
		f.reopen()
		f.same("UIDVALIDITY", f.snap(inbox).Mailbox.UIDValidity, validity)
		f.same("UIDNEXT", f.snap(inbox).UIDNext(), last+1)
	}
}
