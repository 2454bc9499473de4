//go:build linux

package boltstore

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// TestDiskReallyFull fills a file system of 10 MB. What was acknowledged stays, the store
// goes on when there is room, and deleting makes some.
func TestDiskReallyFull(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	root := t.TempDir()
	if err := syscall.Mount("none", root, "tmpfs", 0, "size=10m"); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	var s *Store
	t.Cleanup(func() { // before the folder is removed
		_ = s.Close()
		if err := syscall.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(root, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := Options{Keep: -1}
	s = open(t, root, opts)
	kept := map[mailbox.MessageID]string{}
	fillUp := func() {
		t.Helper()
		refused := 0
		for i := 0; refused < 5; i++ {
			text := strings.Repeat(string(rune('a'+i%26)), 1000+i*37%150_000) // some lie in files
			id, err := add(s, text)
			switch kind(err) {
			case "<nil>":
				kept[id] = text
			case "full":
				refused++
			default:
				t.Fatalf("message %d: %v", i, err)
			}
		}
	}
	check := func() {
		t.Helper()
		snap, err := s.Snapshot(t.Context(), me, mailbox.Inbox)
		if err != nil || snap.Len() != len(kept) {
			t.Fatalf("%d entries, want %d (%v)", snap.Len(), len(kept), err)
		}
		for id, text := range kept {
			if got := body(t, s, id); got != text {
				t.Errorf("message %d has %d octets, want %d", id, len(got), len(text))
			}
		}
	}
	fillUp()
	check()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	before := len(kept)
	fillUp()
	if len(kept) == before {
		t.Error("nothing is taken with room again")
	}
	check()
	for id := range kept { // deletes go through while anything does, and give room
		_, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.RemoveEntry{Message: id, Mailbox: mailbox.Inbox}}})
		if k := kind(err); k != "<nil>" && k != "full" {
			t.Fatal(err)
		} else if k == "<nil>" {
			delete(kept, id)
		}
		if len(kept) < before/2 {
			break
		}
	}
	if len(kept) >= before/2 {
		t.Errorf("%d of %d messages could not be deleted on the full disk", len(kept), before)
	}
	check()
	fillUp()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, root, opts)
	check()
	if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.StoreFlags{Mailbox: mailbox.Inbox, UIDs: imap.UIDSet{{Start: 1, Stop: 5}}, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen}}}}); err != nil && kind(err) != "full" {
		t.Error(err)
	}
}
