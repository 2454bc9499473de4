package boltstore

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

const me = mailbox.AccountID("me0000000")

func open(t testing.TB, root string, opts Options) *Store {
	t.Helper()
	s, err := Open(root, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.CreateAccount(context.Background(), me, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// add adds a message of a text to INBOX.
func add(s *Store, text string) (mailbox.MessageID, error) {
	ctx := context.Background()
	b, err := s.Stage(ctx, me, strings.NewReader(text), 0)
	if err != nil {
		return 0, err
	}
	id, err := s.NextMessageID(me)
	if err != nil {
		return 0, err
	}
	_, err = s.Commit(ctx, me, mailbox.Tx{Ops: []mailbox.Op{mailbox.AddMessage{ID: id, Blob: b, Places: []mailbox.MailboxID{mailbox.Inbox}}}})
	return id, err
}

func mustAdd(t testing.TB, s *Store, text string) mailbox.MessageID {
	t.Helper()
	id, err := add(s, text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func body(t testing.TB, s *Store, id mailbox.MessageID) string {
	t.Helper()
	b, err := s.OpenMessage(context.Background(), me, id)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	all, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func kind(err error) string {
	var me *mailbox.Error
	if !errors.As(err, &me) {
		return fmt.Sprintf("%v", err)
	}
	return me.Kind.String()
}

func TestSecondProcess(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	open(t, root, Options{})
	_, err := Open(root, Options{})
	want := fmt.Sprintf("data root %s is in use by process %d", root, os.Getpid())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	root := t.TempDir()
	s := open(t, root, Options{})
	mustAdd(t, s, strings.Repeat("large", 50<<10))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	walk := func(fn func(path string, info os.FileInfo)) {
		if err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
			if err == nil {
				fn(path, info)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	walk(func(path string, info os.FileInfo) {
		if err := os.Chmod(path, info.Mode().Perm()|0o077); err != nil {
			t.Error(err)
		}
	})
	open(t, root, Options{})
	files := 0
	walk(func(path string, info os.FileInfo) {
		files++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	})
	if files < 8 {
		t.Errorf("only %d files seen", files)
	}
}

func blobFiles(t *testing.T, root string) int {
	t.Helper()
	n := 0
	err := filepath.Walk(filepath.Join(root, "accounts", string(me), "blob"), func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, Options{})
	kept := strings.Repeat("kept!", 50<<10)
	id := mustAdd(t, s, kept)
	if _, err := s.Stage(t.Context(), me, strings.NewReader(strings.Repeat("stale", 50<<10)), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(root, "accounts", string(me), "blob", tempPrefix+"123")
	if err := os.WriteFile(temp, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := blobFiles(t, root); n != 3 {
		t.Fatalf("%d files before", n)
	}
	s = open(t, root, Options{})
	if n := blobFiles(t, root); n != 1 {
		t.Errorf("%d files after the sweep, want the one that is needed", n)
	}
	if body(t, s, id) != kept {
		t.Error("the kept body changed")
	}
}

func TestFileGoesWithItsMessage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, Options{})
	id := mustAdd(t, s, strings.Repeat("large", 50<<10))
	if n := blobFiles(t, root); n != 1 {
		t.Fatalf("%d files", n)
	}
	if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.RemoveEntry{Message: id, Mailbox: mailbox.Inbox}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // waits for the writer, which removes after it answers
		t.Fatal(err)
	}
	if n := blobFiles(t, root); n != 0 {
		t.Errorf("%d files left", n)
	}
}

func TestStagedExpires(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Now()
	root := t.TempDir()
	s := open(t, root, Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	stored := strings.Repeat("stored", 50<<10)
	id := mustAdd(t, s, stored)
	for _, text := range []string{"small", strings.Repeat("large", 50<<10), stored} {
		if _, err := s.Stage(t.Context(), me, strings.NewReader(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	a := s.open[me]
	a.stage.expire(a.hasFile)
	if n := len(a.stage.held); n != 3 {
		t.Fatalf("%d blobs wait, want 3", n)
	}
	mu.Lock()
	now = now.Add(stageTime + time.Second)
	mu.Unlock()
	a.stage.expire(a.hasFile)
	if len(a.stage.held) != 0 || a.stage.bytes != 0 || blobFiles(t, root) != 1 {
		t.Errorf("%d blobs wait with %d octets in memory, %d files", len(a.stage.held), a.stage.bytes, blobFiles(t, root))
	}
	if body(t, s, id) != stored {
		t.Error("a stored body went with its second staging")
	}
}

// A small blob goes to disk when memory is short, and into the database all the
// same.
func TestStageRoom(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, Options{})
	a, err := s.account(t.Context(), me)
	if err != nil {
		t.Fatal(err)
	}
	a.stage.mu.Lock()
	a.stage.bytes += stageRoom
	a.stage.mu.Unlock()
	b, err := s.Stage(t.Context(), me, strings.NewReader("small"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := blobFiles(t, root); n != 1 {
		t.Fatalf("%d files", n)
	}
	if sb, err := s.OpenBlob(t.Context(), me, b.ID); err != nil || sb.Size() != 5 {
		t.Fatalf("staged: %v", err)
	} else if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	id := mustAdd(t, s, "small") // staged a second time: the same one
	if got := body(t, s, id); got != "small" {
		t.Errorf("body %q", got)
	}
	id2, _ := s.NextMessageID(me)
	if _, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.AddMessage{ID: id2, Blob: b, Hold: []string{"h"}}}}); err != nil {
		t.Fatal(err)
	}
	if n := blobFiles(t, root); n != 0 {
		t.Errorf("%d files after the commit", n)
	}
}

// When the transaction of a group fails, all of its Txs fail and nothing of them
// is in memory or on disk; the next one works.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var mu sync.Mutex
	var fault error
	s := open(t, root, Options{hook: func(string) error { mu.Lock(); defer mu.Unlock(); return fault }})
	set := func(err error) { mu.Lock(); defer mu.Unlock(); fault = err }
	mustAdd(t, s, "before")
	flag := func(f imap.Flag) error {
		_, err := s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{
			mailbox.StoreFlags{Mailbox: mailbox.Inbox, UIDs: imap.UIDSetNum(1), Flags: []imap.Flag{f}}, mailbox.CreateMailbox{Name: "M" + string(f)}}})
		return err
	}
	snap, err := s.Snapshot(t.Context(), me, mailbox.Inbox)
	if err != nil {
		t.Fatal(err)
	}
	set(syscall.ENOSPC)
	if err := flag("lost"); kind(err) != "full" {
		t.Errorf("disk full gives %v", err)
	}
	set(errors.New("input/output error"))
	for range 3 {
		if _, err := add(s, strings.Repeat("x", 300<<10)); kind(err) != "internal" {
			t.Errorf("a fault of the disk gives %v", err)
		}
	}
	set(nil)
	again, err := s.Snapshot(t.Context(), me, mailbox.Inbox)
	if err != nil || len(mailbox.Diff(snap, again)) != 0 {
		t.Errorf("after the faults: %v, %v", mailbox.Diff(snap, again), err)
	}
	if err := flag("kept"); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, strings.Repeat("x", 300<<10))
	check := func(s *Store) {
		t.Helper()
		snap, err := s.Snapshot(t.Context(), me, mailbox.Inbox)
		if err != nil {
			t.Fatal(err)
		}
		boxes, err := s.Mailboxes(t.Context(), me)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(snap.Len(), snap.UIDNext(), s.Flags(me, snap.At(0).Flags), len(boxes), " ", boxes[1].Name)
		if want := "2 3 [kept] 2 Mkept"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(open(t, root, Options{}))
}

// TestKilledAtCommit copies the files at the last moment before a commit and right
// after its answer: what a start finds is the state before, and the state after.
func TestKilledAtCommit(t *testing.T) {
	t.Parallel()
	root, before, after := t.TempDir(), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "a")
	armed := false
	s := open(t, root, Options{hook: func(string) error {
		if !armed {
			return nil
		}
		return os.CopyFS(before, os.DirFS(root))
	}})
	mustAdd(t, s, "first")
	armed = true
	large := strings.Repeat("x", 300<<10)
	id := mustAdd(t, s, large)
	if err := os.CopyFS(after, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]int{before: 1, after: 2} {
		copied := open(t, dir, Options{})
		snap, err := copied.Snapshot(t.Context(), me, mailbox.Inbox)
		if err != nil || snap.Len() != want {
			t.Errorf("%s: %d messages, want %d (%v)", filepath.Base(dir), snap.Len(), want, err)
		}
		if want == 2 && body(t, copied, id) != large {
			t.Error("the committed body is not whole")
		}
		if n := blobFiles(t, dir); n != want-1 {
			t.Errorf("%s: %d files", filepath.Base(dir), n)
		}
	}
}

// TestDamaged opens files that are broken in many ways: an error with advice, or a
// store that works, but no panic.
func TestDamaged(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, Options{})
	for i := range 30 {
		mustAdd(t, s, fmt.Sprint(strings.Repeat("text", 4000), i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good := pagesOf(t, accountFile(root))
	garbage := func(from, to int) []byte {
		b := append([]byte{}, good...)
		for i := from; i < min(to, len(b)); i++ {
			b[i] = byte(i*7 + 3)
		}
		return b
	}
	type damage struct {
		data []byte
		must bool // must be refused
	}
	all := map[string]damage{
		"both meta pages": {garbage(0, 8192), true},
		"all pages":       {garbage(8192, len(good)), true},
		"noise":           {[]byte(strings.Repeat("noise", 10_000)), true},
		"cut":             {good[:16<<10], true},
		"cut in meta":     {good[:100], true},
		"one meta page":   {garbage(0, 4096), false},
	}
	for page := 2; page < 60; page += 3 { // some are free, or the insides of a body
		all[fmt.Sprint("page ", page)] = damage{garbage(page*4096, (page+1)*4096), false}
	}
	for name, page := range rootsOf(t, accountFile(root)) {
		all["root of "+name] = damage{garbage(page*os.Getpagesize(), (page+1)*os.Getpagesize()), true}
	}
	s = open(t, t.TempDir(), Options{})
	for name, tt := range all { // each an account of its own: one does not keep the others from opening
		id := mailbox.AccountID(strings.ReplaceAll(name, " ", "-"))
		if err := os.MkdirAll(s.dir(id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir(id), "mail.db"), tt.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Mailboxes(t.Context(), id)
		var e *mailbox.Error
		switch {
		case err == nil && tt.must:
			t.Errorf("%s: opened", name)
		case err != nil && (!errors.As(err, &e) || !strings.Contains(e.Text, "backup")):
			t.Errorf("%s: error without advice: %v", name, err)
		}
	}
	if _, err := s.Mailboxes(t.Context(), me); err != nil {
		t.Errorf("the account beside them: %v", err)
	}
}

// rootsOf gives the first page of each bucket that has pages of its own, but of those
// that are looked through after the start.
func rootsOf(t *testing.T, path string) map[string]int {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	roots := map[string]int{}
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			if page := int(b.Root()); page != 0 && !isBulk(name) {
				roots[string(name)] = page
			}
			return nil
		})
	})
	if err != nil || len(roots) < 3 {
		t.Fatal(roots, err)
	}
	return roots
}

func TestOtherSchema(t *testing.T) {
	t.Parallel()
	testSchema(t, schemaVersion+1, "newer release")
	testSchema(t, 1, "before the first release")
}

func testSchema(t *testing.T, version uint64, want string) {
	root := t.TempDir()
	s := open(t, root, Options{})
	a := s.open[me]
	tx, err := a.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.Bucket([]byte("meta")).Put(keySchema, key64(version)), tx.Commit(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s, err = Open(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Mailboxes(t.Context(), me); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
}

// The verifier is SCRAM's: the example of RFC 7677 section 3.
func TestVerifier(t *testing.T) {
	t.Parallel()
	a := &Accounts{slots: make(chan struct{}, 1)}
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	stored, server, err := a.derive(t.Context(), "pencil", salt, 4096)
	if err != nil {
		t.Fatal(err)
	}
	auth := "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096," +
		"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	if got := base64.StdEncoding.EncodeToString(mac(server, auth)); got != "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=" {
		t.Errorf("server signature %s", got)
	}
	proof, err := base64.StdEncoding.DecodeString("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
	if err != nil {
		t.Fatal(err)
	}
	client := mac(stored, auth) // ClientSignature; XOR the proof it is ClientKey
	for i := range client {
		client[i] ^= proof[i]
	}
	if got := sum256(client); got != hex.EncodeToString(stored) {
		t.Errorf("StoredKey %x, of the client's key %s", stored, got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeMessage(&message{spots: []spot{{1, 2}}, holds: []string{"h"}}))
	f.Add(encodeBox(&box{Mailbox: mailbox.Mailbox{Name: "INBOX"}}))
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 255, 127})
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeMessage(1, b); err == nil {
			if again, err := decodeMessage(1, encodeMessage(m)); err != nil || fmt.Sprint(again) != fmt.Sprint(m) {
				t.Errorf("%+v became %+v, %v", m, again, err)
			}
		}
		_, _ = decodeBox(key32(1), b)
		_, _ = decodeBlob(b)
		_, _ = decodeRecord("k", b)
		_, _ = decodeCounters(b)
		_, _ = decodeUIDs(b)
		_, _ = decodeEntry(entryKey(1, 1), b)
	})
}
