package imapserver

import (
	"context"
	"sync"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// recorder notes what sessions commit.
type recorder struct {
	store
	mu   sync.Mutex
	gone []string
}

func (r *recorder) Commit(ctx context.Context, id mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error) {
	r.mu.Lock()
	for _, op := range tx.Ops {
		switch op := op.(type) {
		case mailbox.StoreFlags:
			r.gone = append(r.gone, op.Gone.String())
		case mailbox.MoveEntries:
			r.gone = append(r.gone, op.Gone.String())
		}
	}
	r.mu.Unlock()
	return r.store.Commit(ctx, id, tx)
}

func (r *recorder) last(t *testing.T) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.gone) == 0 {
		t.Fatal("nothing was committed")
	}
	return r.gone[len(r.gone)-1]
}

// A client that was not told yet may choose messages that are gone, or that go before the
// commit. The commit names what it chose, each by itself, and never one that the client
// was told about or did not choose.
func TestChosenGone(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	h := newHouse(t, func(o *Options) { rec.store, o.Store = o.Store, rec })
	for range 6 {
		h.deliver("INBOX", []byte(mail))
	}
	w := h.dial("client")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	expunge := func(uids ...imap.UID) {
		t.Helper()
		box := mailbox.Inbox
		_, err := rec.store.Commit(t.Context(), account, mailbox.Tx{Ops: []mailbox.Op{
			mailbox.StoreFlags{Mailbox: box, UIDs: imap.UIDSetNum(uids...), Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}},
			mailbox.Expunge{Mailbox: box, UIDs: imap.UIDSetNum(uids...)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		gone    []imap.UID
		command string
		want    string
	}{
		{nil, `UID STORE 1:6 +FLAGS (\Seen)`, "1:6"},
		{[]imap.UID{2, 4}, `UID STORE 2:3 +FLAGS (\Deleted)`, "2:3"}, // told within the answer
		{nil, `UID STORE 1:6 +FLAGS (\Flagged)`, "1,3,5:6"},          // and not chosen again
		{[]imap.UID{5}, `UID STORE 1,6 +FLAGS (\Flagged)`, "1,6"},
		{[]imap.UID{1}, `UID MOVE 1 Trash`, "1"},
	} {
		if step.gone != nil {
			expunge(step.gone...)
		}
		w.must("%s", step.command)
		if got := rec.last(t); got != step.want {
			t.Errorf("%s after %v: gone %q, want %q", step.command, step.gone, got, step.want)
		}
	}
}
