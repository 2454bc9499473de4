package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

// mine returns the opened account of the tests.
func (s *Store) mine(t testing.TB) *account {
	t.Helper()
	a, err := s.account(context.Background(), me)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// thin adds n messages of size octets and deletes all but every tenth.
func thin(t testing.TB, s *Store, n, size int) (kept []mailbox.MessageID) {
	t.Helper()
	var gone imap.UIDSet
	for i := range n {
		id := mustAdd(t, s, fmt.Sprintf("%06d%s", i, strings.Repeat("x", size)))
		if i%10 == 0 {
			kept = append(kept, id)
		} else {
			gone.AddNum(imap.UID(i + 1))
		}
	}
	_, err := s.Commit(context.Background(), me, mailbox.Tx{Ops: []mailbox.Op{
		mailbox.StoreFlags{Mailbox: mailbox.Inbox, UIDs: gone, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}},
		mailbox.Expunge{Mailbox: mailbox.Inbox}}})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// dump is everything that an account's file holds.
func dump(t testing.TB, a *account) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := a.db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				all[string(name)+"/"+string(k)] = string(v)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t testing.TB, got, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			t.Errorf("%q: %q (there: %v), want %q", k, g, ok, v)
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
}

// notes reports whether commits note for a compaction what they change.
func (a *account) notes() bool {
	a.commitMu.Lock()
	defer a.commitMu.Unlock()
	return a.compacting != nil
}

func TestCompact(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("open files are not replaced")
	}
	root := t.TempDir()
	s := open(t, root, Options{})
	kept := thin(t, s, 160, 100<<10)
	a := s.mine(t)
	if a.worthCompacting(time.Hour) {
		t.Error("worth it while it is busy")
	}
	if !a.worthCompacting(0) {
		t.Error("not worth it with nine tenths deleted")
	}
	if a.worthCompacting(0) {
		t.Error("looked again without anything deleted")
	}
	before, was := dump(t, a), fileSize(a.db.Path())
	reader, err := a.db.Begin(false) // readers of the old file go on
	if err != nil {
		t.Fatal(err)
	}
	done, old := make(chan error), a.db.now.Load()
	go func() { done <- a.compact(context.Background()) }()
	for a.db.now.Load() == old || a.notes() { // compact waits for the reader with the swap done, and notes nothing any more
		runtime.Gosched()
	}
	if n := reader.Bucket([]byte("msg")).Stats().KeyN; n != len(kept) {
		t.Errorf("an open reader sees %d messages, want %d", n, len(kept))
	}
	if err := errors.Join(reader.Rollback(), <-done); err != nil {
		t.Fatal(err)
	}
	same(t, dump(t, a), before)
	if now := fileSize(a.db.Path()); now > was/3 {
		t.Errorf("the file went from %d to %d octets", was, now)
	}
	mustAdd(t, s, "after")
	after := dump(t, a)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, root, Options{})
	again := dump(t, s.mine(t))
	for _, m := range []map[string]string{after, again} { // the epoch differs
		delete(m, "meta/epoch")
	}
	same(t, again, after)
}

// TestCompactUnderLoad: commits go on while the file is written anew, and what they did
// is in it.
func TestCompactUnderLoad(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("open files are not replaced")
	}
	root := t.TempDir()
	s := open(t, root, Options{})
	thin(t, s, 60, 20<<10)
	a := s.mine(t)
	want := &sync.Map{} // message -> text
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() { scribble(ctx, t, s, w, want) })
	}
	for range 5 {
		if err := a.compact(context.Background()); err != nil {
			t.Error(err)
		}
	}
	stop()
	wg.Wait()
	check := func(s *Store) {
		t.Helper()
		n := 0
		want.Range(func(id, text any) bool {
			n++
			if got := body(t, s, id.(mailbox.MessageID)); got != text {
				t.Errorf("message %v is %.20q, want %.20q", id, got, text)
			}
			return true
		})
		snap, err := s.Snapshot(t.Context(), me, mailbox.Inbox)
		if err != nil || snap.Len() != n+6 {
			t.Errorf("INBOX has %d entries, want %d (%v)", snap.Len(), n+6, err)
		}
	}
	check(s)
	before := dump(t, a)
	if err := a.compact(context.Background()); err != nil {
		t.Fatal(err)
	}
	same(t, dump(t, a), before)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(open(t, root, Options{}))
}

// scribble adds, changes and deletes messages until ctx ends.
func scribble(ctx context.Context, t *testing.T, s *Store, w int, want *sync.Map) {
	rnd := rand.New(rand.NewPCG(uint64(w), 7))
	var mine []mailbox.MessageID
	for i := 0; ctx.Err() == nil; i++ {
		if len(mine) > 20 && rnd.IntN(2) == 0 {
			id := mine[0]
			mine = mine[1:]
			_, err := s.Commit(context.Background(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.RemoveEntry{Message: id, Mailbox: mailbox.Inbox}}})
			if err != nil {
				t.Error(err)
			}
			want.Delete(id)
			continue
		}
		text := fmt.Sprintf("%d/%d %s", w, i, strings.Repeat("y", rnd.IntN(4000)))
		id, err := add(s, text)
		if err != nil {
			t.Error(err)
			return
		}
		want.Store(id, text)
		mine = append(mine, id)
		if _, err := s.Commit(context.Background(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.MarkMessage{Message: id, Add: []imap.Flag{imap.FlagSeen}}}}); err != nil {
			t.Error(err)
		}
	}
}

// TestCompactKilled: whatever the moment at which the process ends, one whole file is
// under the name, with everything acknowledged.
func TestCompactKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("open files are not replaced")
	}
	for _, point := range []string{"compact copied", "compact synced", "compact ready", "compact renamed"} {
		for _, stops := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", point, stops), func(t *testing.T) {
				t.Parallel()
				compactKilled(t, point, stops)
			})
		}
	}
}

// compactKilled takes what a kill at point would leave; stops: the step fails there.
func compactKilled(t *testing.T, point string, stops bool) {
	root, left := t.TempDir(), t.TempDir()
	var s *Store
	var held map[string]string
	s = open(t, root, Options{hook: func(p string) error {
		if p == "compact copied" && p == point || p == "compact synced" && p == point {
			mustAdd(t, s, "while it runs") // commits go on
		}
		if p != point {
			return nil
		}
		held = dump(t, s.mine(t))
		if err := os.CopyFS(left, os.DirFS(root)); err != nil {
			t.Error(err)
		}
		if stops {
			return errors.New("stopped")
		}
		return nil
	}})
	thin(t, s, 40, 4<<10)
	err := s.mine(t).compact(context.Background())
	if failed := stops && point != "compact renamed"; (err != nil) != failed {
		t.Errorf("compact: %v", err)
	}
	if _, err := os.Stat(s.mine(t).db.Path() + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary file stays: %v", err)
	}
	mustAdd(t, s, "it goes on")
	dead := open(t, left, Options{})
	if _, err := os.Stat(dead.mine(t).db.Path() + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary file stays after a start: %v", err)
	}
	got := dump(t, dead.mine(t))
	delete(got, "meta/epoch")
	delete(held, "meta/epoch")
	same(t, got, held)
}

func TestCompactGivesUp(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("open files are not replaced")
	}
	s := open(t, t.TempDir(), Options{})
	thin(t, s, 20, 1000)
	a := s.mine(t)
	before := dump(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.compact(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	same(t, dump(t, a), before)
	if err := os.Mkdir(filepath.Join(filepath.Dir(a.db.Path()), "mail.db.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.compact(t.Context()); err != nil { // an empty folder is removed as a stale file is
		t.Error(err)
	}
	same(t, dump(t, a), before)
}
