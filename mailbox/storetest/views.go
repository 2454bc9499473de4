package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// unread is a view of all mailboxes but Trash.
const unread = mailbox.MailboxID(9)

// viewed gives the account the view, switched on.
func (f *fixture) viewed() {
	f.Helper()
	f.withView()
	f.show(true)
}

func (f *fixture) withView() {
	f.Helper()
	view := mailbox.Mailbox{ID: unread, Name: "Unread", System: true, Hidden: true, View: true}
	f.ok(f.s.CreateAccount(f.ctx, account, append(slices.Clone(seeds), view)))
}

func (f *fixture) show(on bool) {
	f.Helper()
	f.ok(f.s.SetView(f.ctx, account, mailbox.ViewRule{Mailbox: unread, On: on, Except: []mailbox.MailboxID{trash}}))
}

// shows lists the messages of the view by subject, in order of UID, with \Deleted as "!".
func (f *fixture) shows() string {
	f.Helper()
	var out []string
	for _, e := range f.snap(unread).All() {
		f.ok(f.s.Messages(f.ctx, account, []mailbox.MessageID{e.Message}, func(m *mailbox.Message) error {
			out = append(out, m.Structure.Subject+map[bool]string{true: "!"}[e.Deleted])
			return nil
		}))
	}
	return strings.Join(out, " ")
}

// standsFor checks an entry of a view: it says what the one says that it stands for.
func (f *fixture) standsFor(e mailbox.Entry, places []mailbox.Place) {
	f.Helper()
	places = slices.DeleteFunc(slices.Clone(places), func(p mailbox.Place) bool { return p.Mailbox == trash })
	if len(places) == 0 {
		f.Errorf("entry %+v of the view stands for nothing", e)
		return
	}
	home := slices.MinFunc(places, func(a, b mailbox.Place) int { return int(a.Mailbox) - int(b.Mailbox) }).Entry
	got, want := e, home
	got.UID, got.ModSeq, got.Saved = 0, 0, 0
	want.UID, want.ModSeq, want.Saved = 0, 0, 0
	if got != want {
		f.Errorf("entry %+v of the view stands for %+v", e, home)
	}
}

func testView(f *fixture) {
	a, _ := f.add("a", inbox)
	f.add("b", plain)
	f.add("in-trash", trash)
	seen := f.message("seen", inbox)
	seen.Flags = []imap.Flag{imap.FlagSeen}
	f.commit(seen)
	f.withView()
	row, _ := f.mailbox("Unread")
	f.same("before", []any{row.Hidden, row.View, row.Exists}, []any{true, true, 0})
	f.show(true)
	row, _ = f.mailbox("Unread")
	f.same("row", []any{row.Hidden, row.Exists, row.Unseen}, []any{false, 2, 2})
	f.same("filled", f.shows(), "a b")
	sp, err := f.s.Space(f.ctx, account)
	f.ok(err)
	f.same("what a view shows takes no space of its own", sp.Messages, 4)
	f.same("a lies where it lay", f.places(a), "1/1")

	f.add("c", inbox, plain) // two entries, one message
	f.same("added", f.shows(), "a b c")
	f.commit(mailbox.CopyEntries{From: inbox, To: plain, UIDs: uidSet("1")})
	f.same("copied", f.shows(), "a b c a")
	f.commit(store(inbox, "1", imap.StoreFlagsAdd, imap.FlagSeen))
	f.same("read", f.shows(), "b c a")
	f.commit(store(inbox, "1", imap.StoreFlagsDel, imap.FlagSeen), store(inbox, "1", imap.StoreFlagsAdd, "$k"))
	f.same("unread again", f.shows(), "b c a a")
	f.same("flags", f.flags(unread, 5), "$k")
	f.commit(mailbox.MoveEntries{From: inbox, To: trash, UIDs: uidSet("1")})
	f.same("gone to Trash", f.shows(), "b c a")
	f.commit(mailbox.MoveEntries{From: trash, To: inbox, UIDs: uidSet("*")})
	f.same("back", f.shows(), "b c a a")
	f.commit(store(inbox, "*", imap.StoreFlagsAdd, imap.FlagDeleted))
	f.same("marked", f.shows(), "b c a a!")
	f.commit(mailbox.Expunge{Mailbox: inbox})
	f.same("expunged", f.shows(), "b c a")
	own := f.commit(mailbox.CreateMailbox{Name: "Own"}).Mailbox
	d, _ := f.add("d", own)
	f.commit(mailbox.MarkMessage{Message: d, Add: []imap.Flag{imap.FlagFlagged}})
	f.commit(mailbox.RenameMailbox{Mailbox: inbox, Name: "Old"})
	f.same("renamed", f.shows(), "b c a d")
	f.commit(mailbox.DeleteMailbox{Mailbox: own})
	f.same("mailbox deleted", f.shows(), "b c a")
	f.fails(mailbox.Conflict, f.message("x", inbox), store(plain, "1:*", imap.StoreFlagsAdd, imap.FlagSeen), never)
	f.same("a Tx that fails changes nothing", f.shows(), "b c a")

	f.consistent()
	f.reopen()
	f.same("on disk", f.shows(), "b c a")
	f.add("e", inbox)
	f.same("goes on", f.shows(), "b c a e")
	f.show(false)
	row, _ = f.mailbox("Unread")
	f.same("off", []any{row.Hidden, row.Exists, f.shows()}, []any{true, 0, ""})
	f.add("f", inbox)
	f.same("stays off", f.shows(), "")
	before := row
	f.show(true)
	row, _ = f.mailbox("Unread")
	f.same("on again", f.shows(), "b c a e f")
	if row.UIDValidity != before.UIDValidity || f.snap(unread).At(0).UID < before.UIDNext {
		f.Errorf("UIDs came back: %+v after %+v", row, before)
	}
}

// What was read stays until the last who has the view open leaves.
func testViewRead(f *fixture) {
	f.viewed()
	f.add("a", inbox)
	f.add("b", inbox)
	f.add("c", inbox)
	first, second := f.s.Enter(account, unread), f.s.Enter(account, unread)
	f.s.Enter(account, inbox)() // nobody's view
	f.commit(store(unread, "1", imap.StoreFlagsAdd, imap.FlagSeen))
	f.commit(store(inbox, "2", imap.StoreFlagsAdd, imap.FlagSeen))
	f.same("both stay", f.shows(), "a b c")
	f.same("seen", f.flags(unread, 1), `\Seen`)
	row, _ := f.mailbox("Unread")
	f.same("counted", []any{row.Exists, row.Unseen}, []any{3, 1})
	first()
	first() // once more is nothing
	f.same("somebody is there", f.shows(), "a b c")
	f.commit(store(unread, "2", imap.StoreFlagsDel, imap.FlagSeen))
	f.commit(mailbox.MoveEntries{From: inbox, To: trash, UIDs: uidSet("3")})
	f.same("what is gone does not stay", f.shows(), "a b")
	second()
	f.same("left", f.shows(), "b")

	f.s.Enter(account, unread)
	f.commit(store(unread, "2", imap.StoreFlagsAdd, imap.FlagSeen))
	f.same("stays", f.shows(), "b")
	f.reopen() // nobody left
	f.same("tidied at the start", f.shows(), "")
}

func testViewThrough(f *fixture) {
	f.viewed()
	own := f.commit(mailbox.CreateMailbox{Name: "Own"}).Mailbox
	a, _ := f.add("a", plain)
	b, _ := f.add("b", inbox)
	c, _ := f.add("c", plain, inbox)

	res := f.commit(mailbox.CopyEntries{From: unread, To: own, UIDs: uidSet("2:3")})
	f.same("copies", copies(res), "2>1 3>2")
	f.same("copies are unseen too", f.shows(), "a b c b c")

	res = f.commit(mailbox.MoveEntries{From: unread, To: own, UIDs: uidSet("1:2")})
	f.same("moved, by UID here", copies(res), "1>4 2>3")
	f.same("where they lie", f.places(a)+" "+f.places(b), "1000/4 1000/3")
	f.same("they come back under new UIDs", f.shows(), "c b c a b")
	f.same("whose UIDs", f.uids(unread), "3:7")

	f.commit(mailbox.MoveEntries{From: unread, To: trash, UIDs: uidSet("6")})
	f.same("to Trash", f.shows()+"; "+f.places(a), "c b c b; 14/1")

	f.commit(store(unread, "3", imap.StoreFlagsAdd, imap.FlagDeleted))
	f.same("marked", f.flags(inbox, 2)+" "+f.flags(plain, 2)+".", `\Deleted .`)
	f.same("shown", f.shows(), "c! b c b")
	f.commit(store(inbox, "2", imap.StoreFlagsDel, imap.FlagDeleted))
	f.same("taken back elsewhere", f.shows(), "c b c b")
	f.commit(store(unread, "3,7", imap.StoreFlagsAdd, imap.FlagDeleted))
	res = f.commit(mailbox.Expunge{Mailbox: unread})
	f.same("expunged", res.Expunged, 2)
	f.same("c lies in Archive yet", f.places(c)+" "+f.shows(), "12/2 b c c")
	f.same("b is gone", f.places(b), "")

	// A conditional STORE looks at what is shown here.
	since := f.entry(unread, 4).ModSeq
	f.commit(store(unread, "4", imap.StoreFlagsAdd, "$x"))
	op := store(unread, "4:5", imap.StoreFlagsAdd, "$y")
	op.UnchangedSince = &since
	res = f.commit(op)
	f.same("modified", res.Modified.String(), "4")
	f.same("flags", f.flags(unread, 4)+" "+f.flags(unread, 5), "$x $y")
}

// copies writes a COPYUID.
func copies(res mailbox.Result) string {
	var out []string
	for _, c := range res.Copied {
		out = append(out, fmt.Sprintf("%d>%d", c.From, c.To))
	}
	return strings.Join(out, " ")
}

func testViewClosed(f *fixture) {
	f.viewed()
	id, _ := f.add("a", inbox)
	for _, op := range []mailbox.Op{
		f.message("x", unread), f.message("x", inbox, unread),
		mailbox.AddEntry{Message: id, Mailbox: unread}, mailbox.RemoveEntry{Message: id, Mailbox: unread},
		mailbox.CopyEntries{From: inbox, To: unread, UIDs: uidSet("1")}, mailbox.MoveEntries{From: inbox, To: unread, UIDs: uidSet("1")},
		mailbox.MoveEntries{From: unread, To: unread, UIDs: uidSet("1")},
		mailbox.DeleteMailbox{Mailbox: unread}, mailbox.RenameMailbox{Mailbox: unread, Name: "Other"},
	} {
		f.same(fmt.Sprintf("%T", op), f.fails(mailbox.Refused, op).Code, "CANNOT")
	}
	f.same("nothing happened", f.shows(), "a")
	f.kind(f.s.SetView(f.ctx, account, mailbox.ViewRule{Mailbox: inbox, On: true}), mailbox.Invalid)
	f.kind(f.s.SetView(f.ctx, account, mailbox.ViewRule{Mailbox: 999, On: true}), mailbox.NotFound)
	f.kind(f.s.SetView(f.ctx, "nobody", mailbox.ViewRule{Mailbox: unread}), mailbox.NotFound)
}

// The guard is asked about the place where a message lies, and may refuse.
func testViewGuard(f *fixture) {
	g := f.guarded()
	f.viewed()
	tagged := f.message("tagged", action, inbox)
	tagged.Tag = "x"
	f.commit(tagged)
	f.add("plain", plain)
	var through []string
	g.answer = func(_ mailbox.View, act mailbox.Act) (mailbox.Verdict, error) {
		name := "-"
		if act.Through != nil {
			name = act.Through.Name
		}
		through = append(through, name)
		return mailbox.Verdict{}, nil
	}
	it := func(flags string) string { return fmt.Sprintf("[1 %d x false [%s] tagged@test]", tagged.ID, flags) }
	for _, tt := range []struct {
		op   mailbox.Op
		want string
	}{
		{store(unread, "1:2", imap.StoreFlagsAdd, imap.FlagFlagged), "me StoreFlags INBOX>- " + it("")},
		{mailbox.CopyEntries{From: unread, To: below, UIDs: uidSet("1")}, "me CopyEntries INBOX>Action/Approve " + it(`\Flagged`)},
		{mailbox.MoveEntries{From: unread, To: below, UIDs: uidSet("1")}, "me MoveEntries INBOX>Action/Approve " + it(`\Flagged`)},
	} {
		_, err := f.act(tt.op)
		f.ok(err)
		f.same(fmt.Sprintf("%T", tt.op), g.questions(), tt.want)
	}
	f.same("through", strings.Join(through, " "), "Unread Unread Unread")
	no := &mailbox.Error{Op: "guard", Kind: mailbox.Refused, Text: "not there", Code: "CANNOT"}
	g.answer = func(mailbox.View, mailbox.Act) (mailbox.Verdict, error) { return mailbox.Verdict{}, no }
	_, err := f.act(store(unread, "1:*", imap.StoreFlagsAdd, imap.FlagSeen))
	f.same("refused", err, no)
	f.same("nothing happened", f.snap(unread).Mailbox.Unseen, f.snap(unread).Len())
}

func testGuardCopies(f *fixture) {
	g := f.guarded()
	f.add("a", inbox)
	f.add("b", inbox)
	var ids []mailbox.MessageID
	g.answer = func(view mailbox.View, act mailbox.Act) (v mailbox.Verdict, err error) {
		for range act.Items {
			ids = append(ids, view.NextMessageID())
			v.Also = append(v.Also, mailbox.SetTag{Message: ids[len(ids)-1], New: fmt.Sprint("t", len(ids))})
		}
		v.Copies = ids
		return v, nil
	}
	_, err := f.act(mailbox.CopyEntries{From: inbox, To: action, UIDs: uidSet("1:2")})
	f.ok(err)
	f.same("the copies", f.places(ids[0])+" "+f.places(ids[1]), "2/1 2/2")
	f.ok(f.s.Messages(f.ctx, account, ids[1:], func(m *mailbox.Message) error {
		f.same("the second", m.Structure.Subject+" "+m.Tag, "b t2")
		return nil
	}))
	g.answer = nil
	_, err = f.act(mailbox.CopyEntries{From: inbox, To: action, UIDs: uidSet("1")})
	f.ok(err)
}

// A view over many messages is filled and emptied in steps; others commit between them,
// and a step that is lost is made up for.
func testViewSteps(f *fixture) {
	const many = 2600
	blob := f.stage("many")
	var ops []mailbox.Op
	for range many {
		ops = append(ops, mailbox.AddMessage{ID: f.nextID(), Blob: blob, Places: []mailbox.MailboxID{inbox}})
	}
	f.commit(ops...)
	f.withView()
	var wg sync.WaitGroup
	wg.Go(func() { f.show(true) })
	for i := range 40 {
		f.commit(store(inbox, fmt.Sprint(1+i*60), imap.StoreFlagsAdd, imap.FlagSeen))
		f.add(fmt.Sprint("new", i), plain)
	}
	wg.Wait()
	f.same("filled", []any{f.snap(unread).Len(), f.snap(unread).Mailbox.Hidden}, []any{many, false})
	f.consistent()
	f.ok(f.s.SetView(f.ctx, account, mailbox.ViewRule{Mailbox: unread, On: true})) // Trash too
	f.show(true)
	f.same("another rule and back", f.snap(unread).Len(), many)
	f.show(false)
	f.same("emptied", f.snap(unread).Len(), 0)
}

// Whatever happens, the view shows exactly the unseen messages.
func testViewRandomOps(f *fixture) {
	seed := rand.Uint64()
	f.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	f.viewed()
	var seen []*mailbox.Snapshot
	for step := range 150 {
		ops := randomOps(f, rnd)
		set := uidSet(fmt.Sprintf("%d:%d", 1+rnd.IntN(60), 1+rnd.IntN(60)))
		switch rnd.IntN(6) {
		case 0:
			ops = append(ops, mailbox.StoreFlags{Mailbox: unread, UIDs: set, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}})
		case 1:
			ops = append(ops, mailbox.Expunge{Mailbox: unread})
		case 2:
			ops = append(ops, mailbox.MoveEntries{From: unread, To: []mailbox.MailboxID{inbox, plain, trash}[rnd.IntN(3)], UIDs: set})
		case 3:
			ops = append(ops, mailbox.StoreFlags{Mailbox: inbox, UIDs: set, Op: imap.StoreFlagsDel, Flags: []imap.Flag{imap.FlagSeen}})
		}
		if rnd.IntN(5) == 0 {
			f.fails(mailbox.Conflict, append(ops, never)...)
		} else {
			f.commit(ops...)
		}
		seen = append(seen, f.snap(unread))
		f.differs(seen[rnd.IntN(len(seen))], seen[len(seen)-1])
		if step%30 == 29 {
			f.consistent()
			f.unseenOnly()
		}
	}
	f.reopen()
	f.unseenOnly()
}

func (f *fixture) unseenOnly() {
	f.Helper()
	want := map[mailbox.MessageID]bool{}
	for _, box := range []mailbox.MailboxID{inbox, plain, action, below} {
		for _, e := range f.snap(box).All() {
			if !slices.Contains(f.s.Flags(account, e.Flags), imap.FlagSeen) {
				want[e.Message] = true
			}
		}
	}
	got := map[mailbox.MessageID]bool{}
	for _, e := range f.snap(unread).All() {
		got[e.Message] = true
	}
	f.same("messages of the view", got, want)
}
