package boltstore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

// unpack puts an account's file from testdata into a new root. schema2.db was written
// by the last release of schema 2:
//
//	INBOX    1 ""  2 \Seen \Deleted $Label2  3 $Label1, also in Action  4 tagged  5 "same"
//	Action   1 the message of INBOX 3
//	Archive  1 held too  2 "same" \Seen, identical to INBOX 5  3 a copy of INBOX 2, \Seen
//	no entry: message 5, held, \Flagged
//	many     1:60
func unpack(t *testing.T, name string) (root string) {
	t.Helper()
	root = t.TempDir()
	packed, err := os.ReadFile(filepath.Join("testdata", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	db, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "accounts", string(me))
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "mail.db"), db, 0o600)); err != nil {
		t.Fatal(err)
	}
	return root
}

// boxOf describes a mailbox: UID, message, content and flags of each entry.
func boxOf(t *testing.T, s *Store, id mailbox.MailboxID) string {
	t.Helper()
	snap, err := s.Snapshot(t.Context(), me, id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range snap.All() {
		flags := fmt.Sprint(s.Flags(me, e.Flags))
		if e.Deleted {
			flags += "D"
		}
		out = append(out, fmt.Sprintf("%d:%d:%d%s", e.UID, e.Message, e.Content, flags))
	}
	return strings.Join(out, " ")
}

func testMigrated(t *testing.T, s *Store) {
	t.Helper()
	for id, want := range map[mailbox.MailboxID]string{
		1:  `1:1:1[] 2:2:2[\Seen $Label2]D 3:3:3[$Label1] 4:4:4[] 5:7:7[]`,
		2:  `1:3:3[$Label1]`,
		12: `1:6:6[] 2:8:7[\Seen] 3:10:2[\Seen]`,
	} {
		if got := boxOf(t, s, id); got != want {
			t.Errorf("mailbox %d has %s, want %s", id, got, want)
		}
	}
	if got := boxOf(t, s, 1000); strings.Count(got, "[]") != 60 || !strings.HasPrefix(got, "1:11:9[] 2:12:10[]") {
		t.Errorf("the large mailbox has %s", got)
	}
	bitsAgree(t, s)
}

func TestMigrate2(t *testing.T) {
	t.Parallel()
	root := unpack(t, "schema2.db")
	s := open(t, root, Options{})
	testMigrated(t, s)
	if !strings.HasPrefix(body(t, s, 1), "Message-ID: <1@old>\r\nSubject: plain\r\n\r\nplain plain") {
		t.Errorf("message 1 reads %q", body(t, s, 1))
	}
	commit := func(ops ...mailbox.Op) {
		t.Helper()
		if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: ops}); err != nil {
			t.Fatal(err)
		}
	}
	commit(mailbox.StoreFlags{Mailbox: 1, UIDs: imap.UIDSet{{Start: 1, Stop: 0}}, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen}})
	if got, want := boxOf(t, s, 2), `1:3:3[\Seen $Label1]`; got != want {
		t.Errorf("the shared message is %s in Action, want %s", got, want)
	}
	commit(mailbox.AddEntry{Message: 5, Mailbox: 1}) // whose flags lie in its own row
	if got := boxOf(t, s, 1); !strings.HasSuffix(got, `7:5:5[\Flagged]`) {
		t.Errorf("the held message came as %s", got)
	}
	before := boxOf(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, root, Options{}) // already at the present schema
	if got := boxOf(t, s, 1); got != before {
		t.Errorf("after the next start %s, before %s", got, before)
	}
	bitsAgree(t, s)
}

// A migration that does not come to its end changes nothing; the next start makes it.
func TestMigrateStopped(t *testing.T) {
	t.Parallel()
	root := unpack(t, "schema2.db")
	stop := errors.New("stop")
	s, err := Open(root, Options{hook: func(point string) error {
		if point == "migrated" {
			return stop
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mailboxes(t.Context(), me); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	testMigrated(t, open(t, root, Options{}))
}

// bitsAgree checks that every entry's row knows what is so of its message.
func bitsAgree(t *testing.T, s *Store) {
	t.Helper()
	err := s.open[me].view("test", func(bs buckets) error {
		return bs.at(bktEntry).ForEach(func(k, v []byte) error {
			e, err := decodeEntry(k, v)
			if err != nil {
				return err
			}
			m, err := messageRow(bs, e.Message)
			if err != nil || m == nil {
				return fmt.Errorf("entry % x: no message %d: %w", k, e.Message, err)
			}
			if e.shared != (len(m.spots) > 1) || e.tagged != (m.tag != "") || e.Content != m.body {
				t.Errorf("entry % x is %+v, its message %+v", k, e, m)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// What an entry's row knows of its message stays true whatever happens to them.
func TestRowsAgree(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	if err := s.CreateAccount(t.Context(), me, []mailbox.Mailbox{{ID: 2, Name: "Action"}, {ID: 3, Name: "Archive"}}); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		mustAdd(t, s, fmt.Sprint("text ", i%9))
	}
	one := func(n int) mailbox.MailboxID { return mailbox.MailboxID(1 + rnd.IntN(n)) }
	for range 150 {
		id := mailbox.MessageID(1 + rnd.IntN(16))
		from := imap.UID(1 + rnd.IntN(20))
		uids := imap.UIDSet{{Start: from, Stop: from + imap.UID(rnd.IntN(3))}}
		tags := []string{"", "t"}
		ops := []mailbox.Op{
			mailbox.AddEntry{Message: id, Mailbox: one(3)},
			mailbox.RemoveEntry{Message: id, Mailbox: one(3), IfPresent: true},
			mailbox.SetTag{Message: id, Old: tags[rnd.IntN(2)], New: tags[rnd.IntN(2)]},
			mailbox.Hold{Message: id, Name: "h", Release: rnd.IntN(2) == 0},
			mailbox.MoveEntries{From: one(3), To: one(3), UIDs: uids},
			mailbox.CopyEntries{From: one(3), To: one(3), UIDs: uids},
			mailbox.StoreFlags{Mailbox: one(3), UIDs: uids, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted, "$x"}},
			mailbox.Expunge{Mailbox: one(3), UIDs: uids},
		}
		rnd.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		_, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: ops[:1+rnd.IntN(3)]}) // some fail, and are taken back
		var me *mailbox.Error
		if err != nil && (!errors.As(err, &me) || me.Kind == mailbox.Internal) {
			t.Fatal(err)
		}
	}
	bitsAgree(t, s)
}

// to2 makes a file of schema 2 of the present one.
func to2(tx *bolt.Tx) error {
	old, err := tx.CreateBucket([]byte(bucketEntries2))
	if err != nil {
		return err
	}
	name := []byte(bucketNames[bktEntry])
	err = tx.Bucket(name).ForEach(func(k, v []byte) error {
		short := bytes.Clone(v[:entrySize2])
		short[42] &= bitDeleted
		return old.Put(k, short)
	})
	return errors.Join(err, tx.DeleteBucket(name), tx.Bucket([]byte("meta")).Put(keySchema, key64(2)))
}

// BenchmarkMigrate100k opens an account of 100,000 messages in the format before.
func BenchmarkMigrate100k(b *testing.B) {
	root := b.TempDir()
	s := open(b, root, Options{})
	fill(b, s, 100_000)
	for b.Loop() {
		b.StopTimer()
		if err := errors.Join(s.open[me].db.Update(to2), s.Close()); err != nil {
			b.Fatal(err)
		}
		var err error
		if s, err = Open(root, Options{}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := s.Mailboxes(b.Context(), me); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
