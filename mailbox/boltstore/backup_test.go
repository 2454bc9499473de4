package boltstore

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// into writes a backup's files below a folder. before is called before each of them.
func into(root string, before func(name string)) Put {
	return func(name string, size int64, write func(io.Writer) error) error {
		if before != nil {
			before(name)
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		err = write(f)
		if info, serr := f.Stat(); serr == nil && err == nil && info.Size() != size {
			err = errors.New(name + " has another size")
		}
		return errors.Join(err, f.Close())
	}
}

// TestBackup: the copy is of one moment, whatever is changed, deleted and compacted
// while it is written.
func TestBackup(t *testing.T) {
	t.Parallel()
	s, copied := open(t, t.TempDir(), Options{}), t.TempDir()
	large := strings.Repeat("large ", 40<<10)
	first, second := mustAdd(t, s, large), mustAdd(t, s, "small")
	a := s.mine(t)
	want := dump(t, a)
	files := func() int {
		list, err := filepath.Glob(filepath.Join(s.dir(me), "blob", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	compacted := make(chan error, 1)
	err := s.Backup(t.Context(), into(copied, func(name string) {
		if name != "accounts.db" { // the first
			return
		}
		for _, id := range []mailbox.MessageID{first, second} {
			if _, err := s.Commit(context.Background(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.RemoveEntry{Message: id, Mailbox: mailbox.Inbox}}}); err != nil {
				t.Error(err)
			}
		}
		mustAdd(t, s, "later")
		go func() { compacted <- a.compact(context.Background()) }()
	}))
	if err := errors.Join(err, <-compacted); err != nil {
		t.Fatal(err)
	}
	if n := files(); n != 0 {
		t.Errorf("%d files of large bodies after the backup, want none", n)
	}
	r := open(t, copied, Options{})
	got := dump(t, r.mine(t))
	delete(got, "meta/epoch")
	delete(want, "meta/epoch")
	same(t, got, want)
	if body(t, r, first) != large || body(t, r, second) != "small" {
		t.Error("the bodies differ")
	}
}

// TestBackupOfExpiredBody: bytes that a backup needs stay, also when they were deleted,
// handed in once more and given up while it is at work.
func TestBackupOfExpiredBody(t *testing.T) {
	t.Parallel()
	var late atomic.Int64
	s := open(t, t.TempDir(), Options{Now: func() time.Time { return time.Unix(1e9+late.Load(), 0) }})
	large, copied := strings.Repeat("large ", 40<<10), t.TempDir()
	id := mustAdd(t, s, large)
	a := s.mine(t)
	err := s.Backup(t.Context(), into(copied, func(name string) {
		if name != "accounts.db" {
			return
		}
		_, err := s.Commit(context.Background(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.RemoveEntry{Message: id, Mailbox: mailbox.Inbox}}})
		if err == nil {
			_, err = s.Stage(context.Background(), me, strings.NewReader(large), 0)
		}
		if err != nil {
			t.Error(err)
		}
		late.Store(3600)
		a.stage.expire(a.hasFile)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if body(t, open(t, copied, Options{}), id) != large {
		t.Error("the bytes differ")
	}
	if list, err := filepath.Glob(filepath.Join(s.dir(me), "blob", "*", "*")); err != nil || len(list) != 0 {
		t.Errorf("%v stay after the backup (%v)", list, err)
	}
}

func TestBackupStops(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	mustAdd(t, s, strings.Repeat("large ", 40<<10))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Backup(ctx, into(t.TempDir(), func(name string) {
		if strings.Contains(name, "blob") {
			cancel()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := s.mine(t).compact(t.Context()); err != nil { // no transaction stayed open
		t.Error(err)
	}
}

// TestBackupWantsAll: a missing body, or an account that does not open, makes no backup.
func TestBackupWantsAll(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	mustAdd(t, s, strings.Repeat("large ", 40<<10))
	list, err := filepath.Glob(filepath.Join(s.dir(me), "blob", "*", "*"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if err := os.Remove(list[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), into(t.TempDir(), nil)); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("without a body: %v", err)
	}
	dir := s.dir("other")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "mail.db"), []byte(strings.Repeat("no", 9000)), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), into(t.TempDir(), nil)); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("with a damaged account: %v", err)
	}
}

func TestRenumber(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, Options{})
	id := mustAdd(t, s, "one")
	res, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.CreateMailbox{Name: "Mine"}, mailbox.AddEntry{Message: id, Mailbox: mailbox.FirstUserMailbox}}})
	if err != nil {
		t.Fatal(err)
	}
	boxes := func() map[string]mailbox.Mailbox {
		list, err := s.Mailboxes(t.Context(), me)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]mailbox.Mailbox{}
		for _, b := range list {
			m[b.Name] = b
		}
		return m
	}
	before := boxes()
	seen := map[uint32]bool{before["INBOX"].UIDValidity: true, before["Mine"].UIDValidity: true}
	for range 2 {
		if err := s.Renumber(t.Context(), me); err != nil {
			t.Fatal(err)
		}
		for name, b := range boxes() {
			if seen[b.UIDValidity] || b.ID != before[name].ID || b.UIDNext != 2 || b.Exists != 1 || b.HighestModSeq < res.ModSeq+skipNumbers {
				t.Errorf("%s: %+v, was %+v", name, b, before[name])
			}
			seen[b.UIDValidity] = true
			if _, ok, err := s.Gone(t.Context(), me, b.ID, res.ModSeq); ok || err != nil {
				t.Errorf("%s: history before the restore is said to be whole (%v)", name, err)
			}
		}
	}
	if next := mustAdd(t, s, "two"); next < id+skipNumbers {
		t.Errorf("message %d after %d", next, id)
	}
	res, err = s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.CreateMailbox{Name: "New"}}})
	if err != nil || res.Mailbox <= mailbox.FirstUserMailbox+skipMailboxes || seen[boxes()["New"].UIDValidity] {
		t.Errorf("a new mailbox is %d with UIDVALIDITY %d (%v)", res.Mailbox, boxes()["New"].UIDValidity, err)
	}
	snap, err := s.Snapshot(t.Context(), me, mailbox.Inbox)
	if err != nil || snap.Len() != 2 || snap.At(0).UID != 1 || snap.At(1).UID != 2 || snap.At(1).Content < snap.At(0).Content+skipNumbers {
		t.Errorf("%+v, %v", snap, err)
	}
	if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.StoreFlags{Mailbox: mailbox.Inbox, UIDs: imap.UIDSetNum(1), Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen}}}}); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, root, Options{})
	for name, b := range boxes() {
		if before[name].UIDValidity == b.UIDValidity {
			t.Errorf("%s has its old UIDVALIDITY after a restart", name)
		}
	}
}
