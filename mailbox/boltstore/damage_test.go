package boltstore

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	bolt "go.etcd.io/bbolt"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// TestDamagedRows: a row of any kind that is cut off is an error when the account is
// opened or the row is read: no panic, nothing made up, and nothing repaired.
func TestDamagedRows(t *testing.T) {
	t.Parallel()
	good := filledRoot(t)
	for b := range bktCount {
		if b == bktBody || b == bktIndex || b == bktKept { // bytes that may be any; keys without a value
			continue
		}
		t.Run(bucketNames[b], func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if err := os.CopyFS(root, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(root, "accounts", string(me), "mail.db")
			if cutRow(t, path, b) == 0 {
				t.Fatal("the bucket is empty: it is not tested")
			}
			s, err := Open(root, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = readAll(t, s)
			var me *mailbox.Error
			if !errors.As(err, &me) || me.Kind != mailbox.Internal {
				t.Errorf("read without an error: %v", err)
			}
			if again := readAll(t, s); again == nil {
				t.Error("it was repaired by itself")
			}
		})
	}
}

// filledRoot has something in every bucket.
func filledRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	s := open(t, root, Options{})
	for _, text := range []string{"Subject: a\r\n\r\none", "Subject: b\r\n\r\ntwo"} {
		blob, err := s.Stage(t.Context(), me, strings.NewReader(text), 0)
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.NextMessageID(me)
		if err != nil {
			t.Fatal(err)
		}
		structure, err := mime.Parse(strings.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{
			mailbox.AddMessage{ID: id, Blob: blob, Structure: structure, Places: []mailbox.MailboxID{mailbox.Inbox}, Flags: []imap.Flag{imap.FlagSeen, "Work"}},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(ops ...mailbox.Op) {
		t.Helper()
		if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: ops}); err != nil {
			t.Fatal(err)
		}
	}
	commit(
		mailbox.Append{Stream: "s", Events: [][]byte{[]byte("event")}},
		mailbox.PutRecord{Key: "r", Value: []byte("value"), Index: []string{"i"}},
		mailbox.PutDue{Due: mailbox.Due{Kind: "k", Key: "d"}},
		mailbox.CreateMailbox{Name: "Mine"}, mailbox.CopyEntries{From: mailbox.Inbox, To: mailbox.FirstUserMailbox, UIDs: imap.UIDSetNum(1)})
	commit(
		mailbox.StoreFlags{Mailbox: mailbox.FirstUserMailbox, UIDs: imap.UIDSetNum(1), Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}},
		mailbox.Expunge{Mailbox: mailbox.FirstUserMailbox})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return root
}

// cutRow leaves one octet of a bucket's first value, and none of one that has no more.
// It returns how many rows the bucket has.
func cutRow(t *testing.T, path string, b bkt) (rows int) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte(bucketNames[b]))
		rows = bucket.Stats().KeyN
		k, v := bucket.Cursor().First()
		if b == bktMeta { // the first one is the mark of an orderly close, which says nothing by its value
			k, v = keyCounters, bucket.Get(keyCounters)
		}
		if k == nil {
			return nil
		}
		keep := min(1, len(v)-1)
		if b == bktEvent { // one octet is an event without content
			keep = 0
		}
		return bucket.Put(bytes.Clone(k), bytes.Clone(v[:keep]))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return rows
}

// readAll reads and changes an account in all ways there are, and gives the first error.
func readAll(t *testing.T, s *Store) error {
	t.Helper()
	ctx := t.Context()
	boxes, err := s.Mailboxes(ctx, me)
	if err != nil {
		return err
	}
	var ids []mailbox.MessageID
	for _, b := range boxes {
		snap, err := s.Snapshot(ctx, me, b.ID)
		if err != nil {
			return err
		}
		for _, e := range snap.All() {
			ids = append(ids, e.Message)
		}
		if _, _, err := s.Gone(ctx, me, b.ID, b.HighestModSeq-1); err != nil {
			return err
		}
		if _, ok, err := s.Gone(ctx, me, b.ID, 0); err != nil || ok {
			return err
		}
	}
	if err := s.Messages(ctx, me, ids, func(*mailbox.Message) error { return nil }); err != nil {
		return err
	}
	for _, id := range ids {
		b, err := s.OpenMessage(ctx, me, id)
		if err != nil {
			return err
		}
		if err := b.Close(); err != nil {
			return err
		}
	}
	if err := s.Events(ctx, me, "s", 1, func(uint64, []byte) error { return nil }); err != nil {
		return err
	}
	if _, err := s.Lookup(ctx, me, "i"); err != nil {
		return err
	}
	if _, err := s.NextDue(ctx, me, "k"); err != nil {
		return err
	}
	_, err = s.Commit(ctx, me, mailbox.Tx{Ops: []mailbox.Op{
		mailbox.Append{Stream: "s", Expect: 1, Events: [][]byte{nil}}, mailbox.DeleteDue{Kind: "k", Key: "d"}, mailbox.CheckRecord{Key: "none", Version: 1},
	}})
	if errors.Is(err, &mailbox.Error{Kind: mailbox.Conflict}) && strings.Contains(err.Error(), "none") { // all well up to there
		return nil
	}
	return err
}

// TestMissingBody: a large body whose file is gone or cut is told at the start, and is
// an error when it is read; the rest goes on.
func TestMissingBody(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, Options{})
	large := mustAdd(t, s, strings.Repeat("large ", 40<<10))
	small := mustAdd(t, s, "small")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.dir(me), "blob", "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, breaks := range []func(string) error{func(p string) error { return os.Truncate(p, 100) }, os.Remove} {
		if err := breaks(files[0]); err != nil {
			t.Fatal(err)
		}
		log := &bytes.Buffer{}
		s := open(t, root, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		if !strings.Contains(log.String(), "put them back from the newest backup") || !strings.Contains(log.String(), files[0]) {
			t.Errorf("log:\n%s", log)
		}
		if b, err := s.OpenMessage(t.Context(), me, large); err == nil {
			b.Close()
			if b.Size() == 6*40<<10 {
				t.Error("the body is whole")
			}
		}
		if body(t, s, small) != "small" {
			t.Error("the other message")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
