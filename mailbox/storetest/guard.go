package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// guard notes what it is asked and answers what the test wants.
type guard struct {
	mu     sync.Mutex
	asked  []string
	answer func(view mailbox.View, act mailbox.Act) (mailbox.Verdict, error)
}

func (g *guard) Review(view mailbox.View, acc mailbox.AccountID, actor mailbox.Actor, act mailbox.Act) (mailbox.Verdict, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := func(m *mailbox.Mailbox) string {
		if m == nil {
			return "-"
		}
		return m.Name
	}
	var items []string
	for _, it := range act.Items {
		header := view.MessageID(it.Message)
		if add, ok := act.Op.(mailbox.AddMessage); ok && header == "" {
			header = add.Structure.MessageID
		}
		items = append(items, fmt.Sprint(it.UID, " ", it.Message, " ", it.Tag, " ", it.Deleted, " ", it.Flags, " ", header))
	}
	op := strings.TrimPrefix(fmt.Sprintf("%T", act.Op), "mailbox.")
	g.asked = append(g.asked, fmt.Sprintf("%s %s %s>%s [%s]", actor.Login, op, name(act.From), name(act.To), strings.Join(items, "; ")))
	if g.answer == nil {
		return mailbox.Verdict{}, nil
	}
	return g.answer(view, act)
}

func (f *fixture) guarded() *guard {
	f.Helper()
	s, ok := f.s.(interface{ SetGuard(mailbox.Guard) })
	if !ok {
		f.Skip("the store takes no guard afterwards")
	}
	g := &guard{}
	s.SetGuard(g)
	return g
}

// act commits ops as a person.
func (f *fixture) act(ops ...mailbox.Op) (mailbox.Result, error) {
	return f.s.Commit(f.ctx, account, mailbox.Tx{Actor: &mailbox.Actor{Login: "me", Scope: mailbox.ScopeFull, Via: "imap"}, Ops: ops})
}

// questions returns what the guard was asked since the last call.
func (g *guard) questions() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := strings.Join(g.asked, "\n")
	g.asked = nil
	return out
}

func testGuardAsked(f *fixture) {
	g := f.guarded()
	id, _ := f.add("plain", inbox)
	tagged := f.message("tagged", inbox, action)
	tagged.Tag = "approval:x"
	f.commit(tagged)
	own := f.commit(mailbox.CreateMailbox{Name: "Own"}).Mailbox
	f.same("the system is not asked", g.questions(), "")

	next := f.nextID() + 1
	it := func(uid int, deleted bool, flags string) string {
		return fmt.Sprintf("%d %d approval:x %v [%s] tagged@test", uid, tagged.ID, deleted, flags)
	}
	for _, tt := range []struct {
		op   mailbox.Op
		want string // "": not asked
	}{
		{store(inbox, "1", imap.StoreFlagsAdd, imap.FlagSeen), ""},
		{mailbox.CopyEntries{From: inbox, To: plain, UIDs: uidSet("1")}, ""},
		{mailbox.CreateMailbox{Name: "Mine/Deep"}, ""},
		{mailbox.Subscribe{Mailbox: action}, ""},
		{mailbox.PutRecord{Key: "k"}, ""},
		{store(inbox, "1:2", imap.StoreFlagsAdd, `\seen`), fmt.Sprintf("StoreFlags INBOX>- [1 %d  false [\\Seen] plain@test; %s]", id, it(2, false, ""))},
		{store(inbox, "2", imap.StoreFlagsAdd, imap.FlagDeleted), "StoreFlags INBOX>- [" + it(2, false, `\Seen`) + "]"},
		{store(action, "9", imap.StoreFlagsAdd, imap.FlagSeen), "StoreFlags Action>- []"},
		{mailbox.CopyEntries{From: inbox, To: below, UIDs: uidSet("2")}, "CopyEntries INBOX>Action/Approve [" + it(2, true, `\Seen`) + "]"},
		{mailbox.MoveEntries{From: inbox, To: plain, UIDs: uidSet("2")}, "MoveEntries INBOX>Archive [" + it(2, true, `\Seen`) + "]"},
		{mailbox.Expunge{Mailbox: action}, "Expunge Action>- []"},
		{mailbox.RemoveEntry{Message: tagged.ID, Mailbox: action}, "RemoveEntry Action>- [" + it(1, false, `\Seen`) + "]"},
		{mailbox.MarkMessage{Message: tagged.ID, Add: []imap.Flag{imap.FlagFlagged}}, "MarkMessage ->- [" + it(0, false, `\Seen`) + "]"},
		{f.message("in", action), fmt.Sprintf("AddMessage ->Action [0 %d  false [] in@test]", next)},
		{mailbox.AddEntry{Message: id, Mailbox: action}, fmt.Sprintf("AddEntry ->Action [0 %d  false [\\Seen] plain@test]", id)},
		{mailbox.CreateMailbox{Name: "Action/Sub/Deep"}, "CreateMailbox Action>Action/Sub/Deep []"},
		{mailbox.RenameMailbox{Mailbox: own, Name: "Action/Own"}, "RenameMailbox Action>Own []"},
	} {
		_, err := f.act(tt.op)
		f.ok(err)
		if tt.want != "" {
			tt.want = "me " + tt.want
		}
		f.same(fmt.Sprintf("%T", tt.op), g.questions(), tt.want)
	}
}

func testGuardRefuses(f *fixture) {
	g := f.guarded()
	f.add("a", inbox, action)
	no := &mailbox.Error{Op: "guard", Kind: mailbox.Refused, Text: "not there", Code: "CANNOT"}
	g.answer = func(mailbox.View, mailbox.Act) (mailbox.Verdict, error) { return mailbox.Verdict{}, no }
	_, err := f.act(mailbox.PutRecord{Key: "k"}, mailbox.CopyEntries{From: inbox, To: action, UIDs: uidSet("1")})
	f.same("error", err, no)
	_, err = f.s.Record(f.ctx, account, "k")
	f.kind(err, mailbox.NotFound)
	f.same("nothing happened", f.uids(action), "1")
	f.commit(mailbox.CopyEntries{From: inbox, To: action, UIDs: uidSet("1")}) // the system may

	cause := errors.New("a fault")
	g.answer = func(mailbox.View, mailbox.Act) (mailbox.Verdict, error) { return mailbox.Verdict{}, cause }
	_, err = f.act(mailbox.Expunge{Mailbox: action})
	f.kind(err, mailbox.Internal)
	g.answer = func(mailbox.View, mailbox.Act) (mailbox.Verdict, error) { panic("guard") }
	_, err = f.act(mailbox.Expunge{Mailbox: action})
	f.kind(err, mailbox.Internal)
	g.answer = nil
	_, err = f.act(mailbox.Expunge{Mailbox: action})
	f.ok(err)
	_, err = f.act(mailbox.DeleteMailbox{Mailbox: action}) // also when the guard has nothing against it
	f.kind(err, mailbox.Refused)
}

func testGuardAlso(f *fixture) {
	g := f.guarded()
	f.add("a", inbox)
	g.answer = func(view mailbox.View, act mailbox.Act) (mailbox.Verdict, error) {
		return mailbox.Verdict{Also: []mailbox.Op{mailbox.PutRecord{Key: "moved"},
			mailbox.MarkMessage{Message: act.Items[0].Message, Add: []imap.Flag{"$Approved"}}, due("run", "x", 0, "")}}, nil
	}
	res, err := f.act(mailbox.MoveEntries{From: inbox, To: action, UIDs: uidSet("1")})
	f.ok(err)
	f.same("result", []any{len(res.Copied), f.flags(action, 1), f.uids(inbox), f.nextDue("run")}, []any{1, "$Approved", "", 0})
	g.questions()
	f.add("b", inbox)
	_, err = f.act(mailbox.MoveEntries{From: inbox, To: action, UIDs: uidSet("2")})
	f.kind(err, mailbox.Conflict) // the record is there
	f.same("not moved", f.uids(inbox), "2")
	f.same("asked once: what the guard adds is the system's", strings.Count(g.questions(), "\n"), 0)
}

func testGuardInstead(f *fixture) {
	g := f.guarded()
	op := f.message("dropped", action)
	g.answer = func(view mailbox.View, act mailbox.Act) (mailbox.Verdict, error) {
		add := act.Op.(mailbox.AddMessage)
		add.Places, add.Tag = []mailbox.MailboxID{plain}, "task"
		return mailbox.Verdict{Instead: []mailbox.Op{add}, Also: []mailbox.Op{mailbox.AddEntry{Message: add.ID, Mailbox: inbox}}}, nil
	}
	res, err := f.act(op)
	f.ok(err)
	f.same("places", []any{f.places(op.ID), f.tag(op.ID), res.UIDs[op.ID][0].Mailbox}, []any{"1/1 12/1", "task", plain})
	g.answer = func(mailbox.View, mailbox.Act) (mailbox.Verdict, error) {
		return mailbox.Verdict{Instead: []mailbox.Op{}}, nil
	}
	res, err = f.act(store(inbox, "1", imap.StoreFlagsAdd, imap.FlagDeleted))
	f.ok(err)
	f.same("swallowed", []any{f.flags(inbox, 1), res}, []any{"", mailbox.Result{}})
}

func testGuardShares(f *fixture) {
	g := f.guarded()
	id, _ := f.add("a", inbox)
	f.commit(mailbox.SetTag{Message: id, New: "approval:x"})
	g.answer = func(mailbox.View, mailbox.Act) (mailbox.Verdict, error) {
		return mailbox.Verdict{ShareCopies: true}, nil
	}
	for range 2 { // the second time it lies there already
		res, err := f.act(mailbox.CopyEntries{From: inbox, To: below, UIDs: uidSet("1")})
		f.ok(err)
		f.same("pair", res.Copied, []mailbox.CopiedUID{{UIDValidity: f.snap(below).Mailbox.UIDValidity, From: 1, To: 1}})
		f.same("a further entry", f.places(id), "1/1 3/1")
	}
	g.answer = nil
	_, err := f.act(mailbox.CopyEntries{From: inbox, To: below, UIDs: uidSet("1")})
	f.ok(err)
	f.same("a copy has no tag", f.tag(f.entry(below, 2).Message), "")
}

func testGuardView(f *fixture) {
	g := f.guarded()
	id, _ := f.add("a", inbox)
	f.commit(mailbox.PutRecord{Key: "r", Value: []byte("v"), Index: []string{"i"}}, mailbox.Append{Stream: "s", Events: [][]byte{{1}}},
		mailbox.SetTag{Message: id, New: "t"})
	var fresh mailbox.MessageID
	g.answer = func(view mailbox.View, act mailbox.Act) (mailbox.Verdict, error) {
		rec, ok := view.Record("r")
		_, none := view.Record("none")
		tag, there := view.Tag(id)
		_, gone := view.Tag(id + 99)
		m, found := view.Mailbox(inbox)
		_, lost := view.Mailbox(4711)
		f.same("view", []any{string(rec.Value), rec.Version, ok, none, tag, there, gone, m.Name, found, lost, view.StreamSeq("s"), view.StreamSeq("t"),
			len(view.Lookup("i")), len(view.Lookup("j")), len(view.Places(id)), len(view.Places(id + 99))},
			[]any{"v", 2, true, false, "t", true, false, "INBOX", true, false, 1, 0, 1, 0, 1, 0})
		fresh = view.NextMessageID()
		return mailbox.Verdict{}, nil
	}
	// An earlier op of the same Tx shows.
	_, err := f.act(mailbox.PutRecord{Key: "r", Version: 1, Value: []byte("v"), Index: []string{"i"}}, store(inbox, "1", imap.StoreFlagsAdd, imap.FlagSeen))
	f.ok(err)
	if next := f.nextID(); fresh == 0 || next <= fresh {
		f.Errorf("the guard got message id %d, the next one was %d", fresh, next)
	}
}
