package storetest

import (
	"fmt"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// testFlagsAreTheMessages: flags belong to the message however it comes to its entries
// and loses them; \Deleted does not.
func testFlagsAreTheMessages(f *fixture) {
	op := f.message("a", inbox)
	op.Hold = []string{"h"}
	f.commit(op)
	of := func() string {
		f.Helper()
		var out []string
		f.ok(f.s.Messages(f.ctx, account, []mailbox.MessageID{op.ID}, func(m *mailbox.Message) error {
			for _, fl := range m.Flags {
				out = append(out, string(fl))
			}
			return nil
		}))
		return strings.Join(out, " ")
	}
	f.commit(store(inbox, "1", imap.StoreFlagsAdd, imap.FlagSeen))
	f.same("alone", of(), `\Seen`)
	f.commit(mailbox.AddEntry{Message: op.ID, Mailbox: plain}, mailbox.AddEntry{Message: op.ID, Mailbox: action})
	f.commit(store(plain, "1", imap.StoreFlagsAdd, imap.FlagFlagged, imap.FlagDeleted))
	f.same("three entries", f.flags(inbox, 1)+"|"+f.flags(plain, 1)+"|"+f.flags(action, 1), `\Seen \Flagged|\Seen \Flagged \Deleted|\Seen \Flagged`)
	f.commit(mailbox.RemoveEntry{Message: op.ID, Mailbox: inbox}, mailbox.RemoveEntry{Message: op.ID, Mailbox: action})
	f.commit(store(plain, "1", imap.StoreFlagsDel, imap.FlagSeen))
	f.same("one left", of(), `\Flagged`)
	f.commit(mailbox.MoveEntries{From: plain, To: inbox, UIDs: uidSet("1")}, store(inbox, "*", imap.StoreFlagsAdd, "x"))
	f.same("moved", f.flags(inbox, 2)+"|"+of(), `\Flagged x|\Flagged x`)
	f.commit(mailbox.SetTag{Message: op.ID, New: "t"}, store(inbox, "2", imap.StoreFlagsAdd, imap.FlagDraft))
	f.same("tagged", f.tag(op.ID)+"|"+of(), `t|\Flagged \Draft x`)
	f.commit(mailbox.RemoveEntry{Message: op.ID, Mailbox: inbox})
	f.same("held without an entry", of(), `\Flagged \Draft x`)
	f.reopen()
	f.commit(mailbox.AddEntry{Message: op.ID, Mailbox: action})
	f.same("back again", f.flags(action, 2), `\Flagged \Draft x`)
	f.commit(store(action, "2", imap.StoreFlagsAdd, imap.FlagSeen), mailbox.CopyEntries{From: action, To: inbox, UIDs: uidSet("2")})
	f.commit(store(inbox, "3", imap.StoreFlagsSet))
	f.same("a copy's are its own", f.flags(action, 2)+"|"+f.flags(inbox, 3), `\Seen \Flagged \Draft x|`)
}

// testContent: Entry.Content names the bytes.
func testContent(f *fixture) {
	of := func(id mailbox.MailboxID, uid imap.UID) uint64 { f.Helper(); return f.entry(id, uid).Content }
	first, _ := f.add("one", inbox)
	f.add("two", inbox)
	f.add("one", inbox)                            // identical bytes
	f.add(strings.Repeat("large ", 40_000), inbox) // in a file of its own
	f.commit(f.message("", inbox, action))         // no bytes at all
	one, two, large := of(inbox, 1), of(inbox, 2), of(inbox, 4)
	if one == 0 || two <= one || large <= two || of(inbox, 5) <= large {
		f.Errorf("contents %d, %d, %d, %d do not grow", one, two, large, of(inbox, 5))
	}
	f.same("identical", of(inbox, 3), one)
	f.same("a further entry", of(action, 1), of(inbox, 5))
	f.commit(mailbox.CopyEntries{From: inbox, To: plain, UIDs: uidSet("1,4")})
	f.same("copies", []uint64{of(plain, 1), of(plain, 2)}, []uint64{one, large})
	f.commit(mailbox.MoveEntries{From: inbox, To: plain, UIDs: uidSet("2")})
	f.same("moved", of(plain, 3), two)
	f.commit(store(inbox, "1", imap.StoreFlagsAdd, imap.FlagSeen))
	f.same("with other flags", of(inbox, 1), one)

	// A Tx that fails leaves no trace; numbers of what is gone do not come back.
	f.fails(mailbox.Conflict, f.message("three", inbox), mailbox.CheckRecord{Key: "none", Version: 1})
	f.add("three", inbox)
	three := of(inbox, 6)
	f.commit(store(inbox, "1:*", imap.StoreFlagsAdd, imap.FlagDeleted), store(plain, "1:*", imap.StoreFlagsAdd, imap.FlagDeleted))
	f.commit(mailbox.Expunge{Mailbox: inbox}, mailbox.Expunge{Mailbox: plain})
	f.reopen()
	f.add("one", inbox)
	if again := of(inbox, 7); again <= three || f.places(first) != "" {
		f.Errorf("content %d after %d, first message at %q", again, three, f.places(first))
	}
	f.same("on disk", fmt.Sprint(of(action, 1) > large), "true")
}
