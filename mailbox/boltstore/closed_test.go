package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

func accountFile(root string) string {
	return filepath.Join(root, "accounts", string(me), "mail.db")
}

// pagesOf reads a bbolt file without the room behind its last page, which is most of a
// small one.
func pagesOf(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newestMeta(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return b[:int64(m.pages)*m.pageSize]
}

// closedWith makes an account with messages, some of them deleted again, and closes it.
func closedWith(t *testing.T, n int) (root string, free int) {
	t.Helper()
	root = t.TempDir()
	s := open(t, root, Options{})
	for i := range n {
		id := mustAdd(t, s, fmt.Sprintf("message %d %s", i, strings.Repeat("text ", 300)))
		if i%3 == 0 {
			op := mailbox.RemoveEntry{Message: id, Mailbox: mailbox.Inbox}
			if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(accountFile(root), 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	free = db.Stats().FreePageN
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return root, free
}

// A file closed in order opens with the list of free pages that it has; one whose
// process was killed, without.
func TestClosedInOrder(t *testing.T) {
	t.Parallel()
	root, free := closedWith(t, 60)
	s := open(t, root, Options{})
	a := s.open[me]
	if !a.sealed || free == 0 {
		t.Errorf("sealed %v, %d free pages", a.sealed, free)
	}
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	size := fileSize(accountFile(root))
	for i := range 10 { // takes pages of the list
		mustAdd(t, s, fmt.Sprint("new ", i, strings.Repeat("text ", 300)))
	}
	if now := fileSize(accountFile(root)); now != size {
		t.Errorf("the file grew from %d to %d octets beside %d free pages", size, now, free)
	}
	k := open(t, killed, Options{})
	if k.open[me].sealed {
		t.Error("a file that was in use counts as closed")
	}
	for _, s := range []*Store{s, k} {
		whole(t, s)
	}
}

// whole lets bbolt check an account's file, and reads all messages.
func whole(t *testing.T, s *Store) {
	t.Helper()
	snap, err := s.Snapshot(t.Context(), me, mailbox.Inbox)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range snap.All() {
		if got := body(t, s, e.Message); !strings.HasSuffix(got, "text ") {
			t.Errorf("message %d reads %.30q", e.Message, got)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(accountFile(s.root), 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		var errs []error
		for err := range tx.Check() {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
}

// A list of free pages that cannot be is damage: with it pages in use would be lost.
func TestFreelistDamaged(t *testing.T) {
	t.Parallel()
	root, _ := closedWith(t, 60)
	f, err := os.Open(accountFile(root))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newestMeta(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	good := pagesOf(t, accountFile(root))
	at := int(m.page) * int(m.pageSize)
	word := func(b []byte, i int, n uint64) { binary.NativeEndian.PutUint64(b[at+8*i:], n) }
	for name, damage := range map[string]func(b []byte){
		"another page's number": func(b []byte) { word(b, 0, m.page+1) },
		"not a list":            func(b []byte) { binary.NativeEndian.PutUint16(b[at+8:], 0x02) },
		"too many":              func(b []byte) { binary.NativeEndian.PutUint16(b[at+10:], 0xfffe) },
		"far too many":          func(b []byte) { binary.NativeEndian.PutUint16(b[at+10:], 0xffff); word(b, 2, 1<<60) },
		"a meta page":           func(b []byte) { word(b, 2, 1) },
		"out of order":          func(b []byte) { word(b, 3, 2) },
		"outside of the file":   func(b []byte) { word(b, 3, m.pages) },
	} {
		b := bytes.Clone(good)
		damage(b)
		if err := os.WriteFile(accountFile(root), b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := openFileDB(accountFile(root))
		if e := new(mailbox.Error); !errors.As(err, &e) || !strings.Contains(e.Text, "backup") {
			t.Errorf("%s: error %v", name, err)
		}
		if err == nil {
			_ = db.Close()
		}
	}
}

// Damage to the bytes of messages is found after the start, and is an error for whoever
// reads them meanwhile.
func TestBodyDamaged(t *testing.T) {
	t.Parallel()
	root, _ := closedWith(t, 60)
	b := pagesOf(t, accountFile(root))
	for at := 0; at < len(b); at += os.Getpagesize() {
		if page := b[at : at+os.Getpagesize()]; bytes.Contains(page, []byte("message 4")) { // 4, and 40 to 49
			copy(page, bytes.Repeat([]byte{0xa5}, 64))
		}
	}
	if err := os.WriteFile(accountFile(root), b, 0o600); err != nil {
		t.Fatal(err)
	}
	found := make(logged, 1)
	s := open(t, root, Options{Log: slog.New(slog.NewTextHandler(found, nil))})
	defer s.Close()
	broken := 0
	for id := range mailbox.MessageID(60) {
		body, err := s.OpenMessage(t.Context(), me, id+1)
		if err == nil {
			_ = body.Close()
		} else if kind(err) == "internal" {
			broken++
		}
	}
	if broken == 0 {
		t.Error("damaged bytes were read")
	}
	select {
	case line := <-found:
		if !strings.Contains(line, "backup") {
			t.Errorf("logged %s", line)
		}
	case <-time.After(10 * time.Second):
		t.Error("damage was not found")
	}
}

// logged gets the first line that tells of damage.
type logged chan string

func (l logged) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("damage found")) {
		select {
		case l <- string(b):
		default:
		}
	}
	return len(b), nil
}
