package storetest

import (
	"fmt"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func testSeeds(f *fixture) {
	all, err := f.s.Mailboxes(f.ctx, account)
	f.ok(err)
	var got []string
	for _, m := range all {
		got = append(got, fmt.Sprint(m.ID, m.Name, m.SpecialUse, m.Subscribed, m.System, m.Hidden, m.UIDNext))
	}
	want := []string{
		`2 Action \Important true true false 1`, `3 Action/Approve  true true false 1`, `12 Archive \Archive false false false 1`,
		`1 INBOX  true false false 1`, `14 Trash \Trash false true true 1`,
	}
	f.same("mailboxes", strings.ReplaceAll(strings.Join(got, "\n"), " ", ""), strings.ReplaceAll(strings.Join(want, "\n"), " ", ""))

	f.commit(mailbox.CreateMailbox{Name: "Notes/Old"})
	f.ok(f.s.CreateAccount(f.ctx, account, append(seeds, mailbox.Mailbox{ID: 20, Name: "Notes", System: true})))
	f.same("a person's mailbox makes way", f.names(), "Notes (2) Notes (2)/Old")
	m, ok := f.mailbox("Notes")
	f.same("seed", []any{m.ID, ok}, []any{20, true})

	f.ok(f.s.CreateAccount(f.ctx, "other0000", nil))
	m2, err := f.s.Mailboxes(f.ctx, "other0000")
	f.ok(err)
	f.same("INBOX in any case", []any{len(m2), m2[0].Name, m2[0].ID}, []any{1, "INBOX", 1})
	ids, err := f.s.Accounts(f.ctx)
	f.ok(err)
	f.same("accounts", ids, []mailbox.AccountID{account, "other0000"})
	_, err = f.s.Mailboxes(f.ctx, "nobody000")
	f.kind(err, mailbox.NotFound)
	_, err = f.s.Commit(f.ctx, "../"+account, mailbox.Tx{})
	f.kind(err, mailbox.NotFound)
	f.kind(f.s.CreateAccount(f.ctx, "../x", nil), mailbox.Invalid)
}

func testCreateMailbox(f *fixture) {
	res := f.commit(mailbox.CreateMailbox{Name: "Projekte/Überblick/2026", SpecialUse: imap.MailboxAttrArchive})
	f.same("levels", f.names(), "Projekte Projekte/Überblick Projekte/Überblick/2026")
	m, _ := f.mailbox("Projekte/Überblick/2026")
	f.same("row", []any{m.ID, m.SpecialUse, m.UIDNext, m.Subscribed, m.System}, []any{res.Mailbox, imap.MailboxAttrArchive, 1, false, false})
	if m.ID < mailbox.FirstUserMailbox || m.HighestModSeq == 0 {
		f.Errorf("row %+v", m)
	}
	for _, taken := range []string{"Projekte", "inbox", "INBOX", "Action"} {
		f.same("code", f.fails(mailbox.Exists, mailbox.CreateMailbox{Name: taken}).Code, "ALREADYEXISTS")
	}
	f.commit(mailbox.CreateMailbox{Name: "trailing/"}, mailbox.CreateMailbox{Name: "inBox/sub"})
	f.same("names", f.names(), "INBOX/sub Projekte Projekte/Überblick Projekte/Überblick/2026 trailing")
	f.commit(mailbox.Subscribe{Mailbox: m.ID, On: true})
	f.fails(mailbox.NotFound, mailbox.Subscribe{Mailbox: 5000, On: true})
	f.reopen()
	again, _ := f.mailbox("Projekte/Überblick/2026")
	f.same("subscribed", again.Subscribed, true)
}

func testMailboxNames(f *fixture) {
	for _, bad := range []string{
		"", "/", "/a", "a//b", "a\x00b", "a\nb", "a\u0085b", "\xff", "a\u2028", strings.Repeat("x", 256),
		strings.Repeat("x/", 600) + "x", "a//",
	} {
		f.fails(mailbox.Invalid, mailbox.CreateMailbox{Name: bad})
	}
	f.commit(mailbox.CreateMailbox{Name: strings.Repeat("x", 255)})
	f.fails(mailbox.Invalid, mailbox.RenameMailbox{Mailbox: plain, Name: "a//b"})
}

func testDeleteMailbox(f *fixture) {
	res := f.commit(mailbox.CreateMailbox{Name: "A/B"})
	b := res.Mailbox
	a, _ := f.mailbox("A")
	id, _ := f.add("gone with it", b)
	shared, _ := f.add("elsewhere too", b, inbox)
	old := f.snap(b)
	wake, cancel := f.s.Watch(account, b)
	defer cancel()
	f.commit(mailbox.DeleteMailbox{Mailbox: a.ID}) // what is below stays
	if _, there := f.mailbox("A"); there {
		f.Error("a mailbox with children is not deleted")
	}
	for _, system := range []mailbox.MailboxID{inbox, action, trash} {
		f.same("code", f.fails(mailbox.Refused, mailbox.DeleteMailbox{Mailbox: system}).Code, "CANNOT")
	}
	f.fails(mailbox.NotFound, mailbox.DeleteMailbox{Mailbox: 4711})
	f.commit(mailbox.DeleteMailbox{Mailbox: b})
	f.within(wake, "watcher of a deleted mailbox")
	_, err := f.s.Snapshot(f.ctx, account, b)
	f.kind(err, mailbox.NotFound)
	_, err = f.s.OpenMessage(f.ctx, account, id)
	f.kind(err, mailbox.NotFound)
	f.same("shared", f.places(shared), "1/1")
	f.same("an old snapshot stays readable", old.Len(), 2)
	res = f.commit(mailbox.CreateMailbox{Name: "A/B"})
	m, _ := f.mailbox("A/B")
	if m.ID == b || m.UIDValidity == old.Mailbox.UIDValidity || m.ID != res.Mailbox {
		f.Errorf("made again: %+v, before %+v", m, old.Mailbox)
	}
}

// testRenameOnto: a level whose mailbox was deleted is free, but what lies below it is not
// replaced.
func testRenameOnto(f *fixture) {
	f.commit(mailbox.CreateMailbox{Name: "A/x"}, mailbox.CreateMailbox{Name: "B/x"}, mailbox.CreateMailbox{Name: "C/y"})
	a, _ := f.mailbox("A")
	b, _ := f.mailbox("B")
	c, _ := f.mailbox("C")
	bx, _ := f.mailbox("B/x")
	f.commit(mailbox.DeleteMailbox{Mailbox: b.ID})
	f.fails(mailbox.Exists, mailbox.RenameMailbox{Mailbox: a.ID, Name: "B"})
	f.commit(mailbox.RenameMailbox{Mailbox: c.ID, Name: "B"})
	now, _ := f.mailbox("B/x")
	f.same("what lay there", now.ID, bx.ID)
	_, there := f.mailbox("B/y")
	f.same("moved below", there, true)
}

func testRenameMailbox(f *fixture) {
	f.commit(mailbox.CreateMailbox{Name: "A/B/C"}, mailbox.CreateMailbox{Name: "AB"}, mailbox.CreateMailbox{Name: "X"})
	a, _ := f.mailbox("A")
	c, _ := f.mailbox("A/B/C")
	f.add("stays", c.ID)
	f.fails(mailbox.Exists, mailbox.RenameMailbox{Mailbox: a.ID, Name: "X"})
	f.fails(mailbox.Refused, mailbox.RenameMailbox{Mailbox: a.ID, Name: "A/B/D"})
	f.fails(mailbox.NotFound, mailbox.RenameMailbox{Mailbox: 4711, Name: "N"})
	f.same("code", f.fails(mailbox.Refused, mailbox.RenameMailbox{Mailbox: action, Name: "N"}).Code, "CANNOT")
	f.fails(mailbox.Invalid, mailbox.RenameMailbox{Mailbox: a.ID, Name: strings.Repeat("long/", 199) + "long"})
	f.same("nothing changed", f.names(), "A A/B A/B/C AB X")
	f.commit(mailbox.RenameMailbox{Mailbox: a.ID, Name: "New/Place"})
	f.same("names", f.names(), "AB New New/Place New/Place/B New/Place/B/C X")
	moved, _ := f.mailbox("New/Place/B/C")
	f.same("same mailbox", []any{moved.ID, moved.UIDValidity, moved.Exists}, []any{c.ID, c.UIDValidity, 1})
	f.reopen()
	f.same("after a new start", f.names(), "AB New New/Place New/Place/B New/Place/B/C X")
	f.commit(mailbox.CreateMailbox{Name: "A"})
}

func testRenameInbox(f *fixture) {
	f.add("a", inbox)
	id, _ := f.add("b", inbox)
	f.commit(store(inbox, "2", imap.StoreFlagsAdd, imap.FlagDeleted), mailbox.CreateMailbox{Name: "INBOX/child"})
	f.commit(mailbox.RenameMailbox{Mailbox: inbox, Name: "Old/Mail"})
	m, _ := f.mailbox("Old/Mail")
	f.same("moved", []any{f.uids(m.ID), f.flags(m.ID, 2), f.places(id)}, []any{"1:2", `\Deleted`, fmt.Sprintf("%d/2", m.ID)})
	in, _ := f.mailbox("INBOX")
	f.same("INBOX", []any{in.ID, in.Exists, in.UIDNext}, []any{1, 0, 3})
	f.same("names", f.names(), "INBOX/child Old Old/Mail")
}
