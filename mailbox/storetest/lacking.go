package storetest

import (
	"context"
	"fmt"
	"strings"

	"pizza/internal/fold"
	"pizza/internal/mime"
	"pizza/mailbox"
)

// testLacking: Lacking never names a content that holds the text; a store whose index can
// be awaited names the others then. It follows copies, and knows no other account.
func testLacking(f *fixture) {
	fruit := []string{"Äpfel", "Birnen", "Kirschen", "東京のりんご"}
	for i, name := range fruit {
		f.addMail(fmt.Sprintf("From: gardener%d@example.org\r\nSubject: about %s\r\n\r\nfresh %s today\r\n", i, name, name))
	}
	f.commit(mailbox.CopyEntries{From: inbox, To: plain, UIDs: uidSet("1:4")})
	folder := fold.New()
	check := func(caughtUp bool) {
		f.Helper()
		for _, in := range []mailbox.TextIn{mailbox.InMessage, mailbox.InEnvelope} {
			for _, q := range append(fruit, "today", "gardener2@", "no such fruit", "", "a", "ÄPFEL") {
				got, err := f.s.Lacking(f.ctx, account, in, folder.String(q))
				f.ok(err)
				f.checkLacking(got, in, folder.String(q), caughtUp)
			}
		}
	}
	check(false)
	f.reopen()
	check(false)
	if s, ok := f.s.(interface {
		CatchUp(context.Context, mailbox.AccountID) error
	}); ok {
		f.ok(s.CatchUp(f.ctx, account))
		check(true)
		f.kind(s.CatchUp(f.ctx, "nobody"), mailbox.NotFound)
	}
	_, err := f.s.Lacking(f.ctx, "nobody", mailbox.InMessage, "apples")
	f.kind(err, mailbox.NotFound)
}

// addMail adds a message as it is parsed.
func (f *fixture) addMail(raw string) {
	f.Helper()
	st, err := mime.Parse(strings.NewReader(raw), int64(len(raw)))
	f.ok(err)
	f.commit(mailbox.AddMessage{ID: f.nextID(), Blob: f.stage(raw), Structure: st, Places: []mailbox.MailboxID{inbox}})
}

// checkLacking compares an answer with the messages, whose texts are plain.
func (f *fixture) checkLacking(got *mailbox.Contents, in mailbox.TextIn, text string, caughtUp bool) {
	f.Helper()
	for _, box := range []mailbox.MailboxID{inbox, plain} {
		for _, e := range f.snap(box).All() {
			all := fold.New().String(f.body(e.Message))
			if in == mailbox.InEnvelope {
				all, _, _ = strings.Cut(all, " fresh")
			}
			holds := strings.Contains(all, text)
			if holds && got.Has(e.Content) {
				f.Errorf("%q is said to be lacking in %q", text, all)
			}
			if !holds && !got.Has(e.Content) && caughtUp && len(text) > 2 {
				f.Errorf("%q is not known to be lacking in %q", text, all)
			}
		}
	}
}
