package boltstore

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// TestViewLeftDuringACommit: a commit that still saw a view open, and left what was read
// in it, is not missed by the last who leaves meanwhile.
func TestViewLeftDuringACommit(t *testing.T) {
	t.Parallel()
	const unread mailbox.MailboxID = 9
	var s *Store
	var leave atomic.Pointer[func()]
	left := make(chan struct{})
	s = open(t, t.TempDir(), Options{hook: func(point string) error {
		if f := leave.Swap(nil); point == "commit" && f != nil {
			go func() { (*f)(); close(left) }()
			for s.mine(t).open.any(unread) {
				runtime.Gosched()
			}
		}
		return nil
	}})
	view := mailbox.Mailbox{ID: unread, Name: "Unread", System: true, Hidden: true, View: true}
	if err := s.CreateAccount(t.Context(), me, []mailbox.Mailbox{view}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetView(t.Context(), me, mailbox.ViewRule{Mailbox: unread, On: true}); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, "new")
	f := s.Enter(me, unread)
	leave.Store(&f)
	read := mailbox.StoreFlags{Mailbox: unread, UIDs: imap.UIDSetNum(1), Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen}}
	if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{read}}); err != nil {
		t.Fatal(err)
	}
	<-left
	if snap, err := s.Snapshot(t.Context(), me, unread); err != nil || snap.Len() != 0 {
		t.Errorf("%d read messages stay in the view that everybody left (%v)", snap.Len(), err)
	}
}
