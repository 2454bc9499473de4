package boltstore

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// testDisk is a disk whose free space the test says.
type testDisk struct {
	free atomic.Int64
	err  atomic.Pointer[error]
}

func (d *testDisk) ask() (int64, int64, error) {
	if err := d.err.Load(); err != nil {
		return 0, 0, *err
	}
	return d.free.Load(), 1_000_000, nil
}

func TestDefaultKeep(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]int64{
		0: 0, 100_000_000: 5_000_000, 4_000_000_000: 200_000_000, 4_000_000_000_000: 200_000_000,
	} {
		if got := defaultKeep(size); got != want {
			t.Errorf("defaultKeep(%d) = %d, want %d", size, got, want)
		}
	}
}

// TestIndexRestsOnAFullDisk: what is kept free is not for what can be made again.
func TestIndexRestsOnAFullDisk(t *testing.T) {
	t.Parallel()
	d := &testDisk{}
	d.free.Store(60_000)
	s := open(t, t.TempDir(), Options{Disk: d.ask})
	if err := s.CatchUp(t.Context(), me); err != nil {
		t.Fatal(err)
	}
	d.free.Store(50_000)
	mustAdd(t, s, "an outcome")
	if err := s.CatchUp(t.Context(), me); kind(err) != "full" {
		t.Errorf("CatchUp on a full disk: %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	d, log := &testDisk{}, &bytes.Buffer{}
	d.free.Store(60_000)
	s := open(t, t.TempDir(), Options{Disk: d.ask, Log: slog.New(slog.NewTextHandler(log, nil))})
	trash := mailbox.Mailbox{ID: 14, Name: "Trash", SpecialUse: imap.MailboxAttrTrash, System: true}
	if err := s.CreateAccount(t.Context(), me, []mailbox.Mailbox{trash, {ID: 12, Name: "Archive"}}); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, "one")
	if sp, err := s.Space(t.Context(), me); err != nil || sp.Left != 10_000 || sp.Full() { // 5 % of the disk is kept
		t.Errorf("%+v, %v", sp, err)
	}
	blob, err := s.Stage(t.Context(), me, strings.NewReader("two"), 0)
	if err != nil {
		t.Fatal(err)
	}
	d.free.Store(50_000)
	if sp, err := s.Space(t.Context(), me); err != nil || !sp.Full() || sp.Used != 3 {
		t.Errorf("%+v, %v", sp, err)
	}
	one := imap.UIDSetNum(1)
	person := func(op mailbox.Op) error {
		_, err := s.Commit(t.Context(), me, mailbox.Tx{Actor: &mailbox.Actor{Login: "me"}, Ops: []mailbox.Op{op}})
		return err
	}
	id, err := s.NextMessageID(me)
	if err != nil {
		t.Fatal(err)
	}
	append_ := mailbox.AddMessage{ID: id, Blob: blob, Places: []mailbox.MailboxID{mailbox.Inbox}}
	for _, tt := range []struct {
		name string
		op   mailbox.Op
		want string
	}{
		{"append", append_, "full"},
		{"copy", mailbox.CopyEntries{From: mailbox.Inbox, To: 12, UIDs: one}, "full"},
		{"flag", mailbox.StoreFlags{Mailbox: mailbox.Inbox, UIDs: one, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}}, "<nil>"},
		{"copy to the trash", mailbox.CopyEntries{From: mailbox.Inbox, To: 14, UIDs: one}, "<nil>"},
		{"expunge", mailbox.Expunge{Mailbox: mailbox.Inbox}, "<nil>"},
		{"move", mailbox.MoveEntries{From: 14, To: mailbox.Inbox, UIDs: one}, "<nil>"},
		{"folder", mailbox.CreateMailbox{Name: "Mine"}, "<nil>"},
	} {
		if got := kind(person(tt.op)); got != tt.want {
			t.Errorf("%s on a full disk: %s, want %s", tt.name, got, tt.want)
		}
	}
	mustAdd(t, s, "an outcome of the system itself")
	d.free.Store(50_100)
	if err := person(append_); err != nil { // the refused one waits still
		t.Errorf("with room again: %v", err)
	}
	if n := strings.Count(log.String(), "almost full"); n != 1 || !strings.Contains(log.String(), "room on the disk again") {
		t.Errorf("log:\n%s", log)
	}
}

func TestWhatIsStagedCounts(t *testing.T) {
	t.Parallel()
	asked := 0
	d := &disk{every: 1 << 60, keep: 100, log: slog.New(slog.DiscardHandler), ask: func() (int64, int64, error) {
		asked++
		return 1000, 1 << 40, nil
	}}
	d.left()
	d.took(899)
	if got := d.left(); got != 1 || asked != 1 {
		t.Errorf("left %d after being asked %d times", got, asked)
	}
	d.took(500)
	if got := d.left(); got != 0 {
		t.Errorf("left %d", got)
	}
}

func TestDiskThatDoesNotTell(t *testing.T) {
	t.Parallel()
	d, log := &testDisk{}, &bytes.Buffer{}
	err := errors.New("no statfs here")
	d.err.Store(&err)
	s := open(t, t.TempDir(), Options{Disk: d.ask, Log: slog.New(slog.NewTextHandler(log, nil))})
	for range 3 {
		if sp, err := s.Space(t.Context(), me); err != nil || sp.Full() {
			t.Errorf("%+v, %v", sp, err)
		}
	}
	if n := strings.Count(log.String(), "does not tell"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log)
	}
}

// TestNoSpaceInCommit: a write that fails for want of space fails its group as Full,
// loses nothing that was acknowledged, and the store works on when there is room.
func TestNoSpaceInCommit(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	root := t.TempDir()
	s := open(t, root, Options{hook: func(string) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return nil
	}})
	first := mustAdd(t, s, "first")
	full.Store(true)
	if _, err := add(s, "lost"); kind(err) != "full" {
		t.Errorf("error %v, want Full", err)
	}
	full.Store(false)
	second := mustAdd(t, s, "second")
	check := func() {
		t.Helper()
		snap, err := s.Snapshot(t.Context(), me, mailbox.Inbox)
		if err != nil || snap.Len() != 2 || snap.At(0).UID != 1 || snap.At(1).UID != 2 || body(t, s, first) != "first" || body(t, s, second) != "second" {
			t.Errorf("%+v, %v", snap, err)
		}
	}
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, root, Options{})
	check()
}
