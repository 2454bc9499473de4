package storetest

import (
	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func testSpace(f *fixture) {
	used := func(octets, messages int) {
		f.Helper()
		sp, err := f.s.Space(f.ctx, account)
		f.ok(err)
		f.same("used", []int64{sp.Used, sp.Messages}, []int{octets, messages})
		f.same("full", sp.Full(), sp.Left <= 0)
	}
	used(0, 0)
	_, uid := f.add("12345", inbox)
	f.add("123", action, plain) // a message in two mailboxes counts in both: each shows its size
	used(11, 3)
	f.commit(mailbox.CopyEntries{From: inbox, To: plain, UIDs: uidSet("1")})
	used(16, 4)
	f.commit(store(inbox, "1", imap.StoreFlagsAdd, `\Deleted`), mailbox.Expunge{Mailbox: inbox})
	used(11, 3)
	f.same("uid", uid, 1)
	f.reopen()
	used(11, 3)
	_, err := f.s.Space(f.ctx, "nobody")
	f.kind(err, mailbox.NotFound)
}
