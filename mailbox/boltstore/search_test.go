package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/fold"
	"pizza/internal/mime"
	"pizza/mailbox"
)

// shelf is a store with mail whose texts are known.
type shelf struct {
	t     testing.TB
	root  string
	s     *Store
	texts map[uint64]string // by content: all decoded and folded texts, a NUL between any two
	heads map[uint64]string
}

func newShelf(t testing.TB) *shelf {
	h := &shelf{t: t, root: t.TempDir(), texts: map[uint64]string{}, heads: map[uint64]string{}}
	h.s = open(t, h.root, Options{})
	return h
}

func (h *shelf) reopen() {
	h.t.Helper()
	if err := h.s.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.s = open(h.t, h.root, Options{})
}

// add puts messages into INBOX and learns their texts.
func (h *shelf) add(raws ...[]byte) {
	h.t.Helper()
	ctx := context.Background()
	var ops []mailbox.Op
	for _, raw := range raws {
		blob, err := h.s.Stage(ctx, me, bytes.NewReader(raw), 0)
		if err != nil {
			h.t.Fatal(err)
		}
		st, err := mime.Parse(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			h.t.Fatal(err)
		}
		id, err := h.s.NextMessageID(me)
		if err != nil {
			h.t.Fatal(err)
		}
		ops = append(ops, mailbox.AddMessage{ID: id, Blob: blob, Structure: st, Places: []mailbox.MailboxID{mailbox.Inbox}})
	}
	res, err := h.s.Commit(ctx, me, mailbox.Tx{Ops: ops})
	if err != nil {
		h.t.Fatal(err)
	}
	snap := h.snapshot()
	for i, op := range ops {
		e, ok := snap.Find(res.UIDs[op.(mailbox.AddMessage).ID][0].UID)
		if !ok || e.Content == 0 {
			h.t.Fatalf("no entry with a content: %+v", e)
		}
		h.texts[e.Content], h.heads[e.Content] = textsOf(h.t, raws[i], op.(mailbox.AddMessage).Structure)
	}
}

func (h *shelf) snapshot() *mailbox.Snapshot {
	h.t.Helper()
	snap, err := h.s.Snapshot(context.Background(), me, mailbox.Inbox)
	if err != nil {
		h.t.Fatal(err)
	}
	return snap
}

func textsOf(t testing.TB, raw []byte, s *mime.Structure) (all, envelope string) {
	t.Helper()
	f := fold.New()
	r := bytes.NewReader(raw)
	header, err := mime.RawHeader(r, s.Root)
	if err != nil {
		t.Fatal(err)
	}
	err = s.EachSearched(r, header, func(p mime.Searched) bool {
		p.EachField(func(v string) bool { all += f.String(v) + "\x00"; return true })
		if p.HasText() {
			text, err := p.Text()
			if err != nil {
				t.Fatal(err)
			}
			all += f.String(text) + "\x00"
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	s.EachEnvelopeText(func(v string) { envelope += f.String(v) + "\x00" })
	return all, envelope
}

func (h *shelf) catchUp() {
	h.t.Helper()
	if err := h.s.CatchUp(context.Background(), me); err != nil {
		h.t.Fatal(err)
	}
}

// check asks for pieces of the texts, and compares. It returns how many were excluded.
func (h *shelf) check(r *rand.Rand, queries int) (excluded int) {
	h.t.Helper()
	for range queries {
		q := "no such words"
		for _, text := range h.texts {
			if runes := []rune(text); len(runes) > 0 {
				i := r.IntN(len(runes))
				q, _, _ = strings.Cut(string(runes[i:min(len(runes), i+1+r.IntN(12))]), "\x00")
			}
			break
		}
		for in, texts := range map[mailbox.TextIn]map[uint64]string{mailbox.InMessage: h.texts, mailbox.InEnvelope: h.heads} {
			got, err := h.s.Lacking(context.Background(), me, in, q)
			if err != nil {
				h.t.Fatal(err)
			}
			for n, text := range texts {
				switch has := strings.Contains(text, q); {
				case has && got.Has(n):
					h.t.Fatalf("content %d holds %q and was said to lack it", n, q)
				case got.Has(n):
					excluded++
				}
			}
		}
	}
	return excluded
}

func corpus(t testing.TB) (raws [][]byte) {
	files, err := filepath.Glob("../../internal/testkit/eml/*.eml")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	return raws
}

func note(subject, text string) []byte {
	return []byte("From: Ann <ann@example.org>\r\nTo: me@localhost\r\nSubject: " + subject +
		"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + text + "\r\n")
}

// notes makes n that differ.
func notes(n int, subject, text string) (raws [][]byte) {
	for i := range n {
		raws = append(raws, note(fmt.Sprint(subject, " ", i), fmt.Sprint(text, i)))
	}
	return raws
}

// TestSearchIndex: the index never excludes what the scan finds, for the nasty corpus
// and for random mail, while mail comes, goes, is copied, and the process ends and begins
// again.
func TestSearchIndex(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	r := rand.New(rand.NewPCG(3, 4))
	raws := corpus(t)
	h.add(raws...)
	h.add(note("large", strings.Repeat("a very long letter ", 20000)+"with a needle"), note("empty", ""), nil)
	if n := h.check(r, 20); n < 0 {
		t.Fatal(n)
	}
	h.catchUp()
	excluded := h.check(r, 150)
	for round := range 6 {
		var more [][]byte
		for i := range 40 {
			more = append(more, note(fmt.Sprint("round ", round, " número ", i), fmt.Sprint("Straße ", r.IntN(1000), " 東京 ", r.IntN(1000), " до встречи")))
		}
		h.add(more...)
		switch round {
		case 1, 3:
			h.catchUp()
		case 2:
			h.reopen()
		case 4:
			h.expunge(r)
		}
		excluded += h.check(r, 40)
	}
	h.catchUp()
	excluded += h.check(r, 100)
	if excluded < 20000 {
		t.Errorf("the index excluded %d only", excluded)
	}
	got, err := h.s.Lacking(t.Context(), me, mailbox.InMessage, "long letter with a needle")
	for n, text := range h.texts {
		if err != nil || got.Has(n) == strings.Contains(text, "long letter with a needle") {
			t.Errorf("content %d: lacking is %v, %v", n, got.Has(n), err)
		}
	}
}

// expunge deletes some of INBOX and copies the rest within it.
func (h *shelf) expunge(r *rand.Rand) {
	h.t.Helper()
	var some imap.UIDSet
	for _, e := range h.snapshot().All() {
		if r.IntN(2) == 0 {
			some.AddNum(e.UID)
		}
	}
	_, err := h.s.Commit(context.Background(), me, mailbox.Tx{Ops: []mailbox.Op{
		mailbox.StoreFlags{Mailbox: mailbox.Inbox, UIDs: some, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}},
		mailbox.Expunge{Mailbox: mailbox.Inbox, UIDs: some}}})
	if err != nil {
		h.t.Fatal(err)
	}
	kept := map[uint64]bool{}
	for _, e := range h.snapshot().All() {
		kept[e.Content] = true
	}
	for n := range h.texts {
		if !kept[n] {
			delete(h.texts, n)
			delete(h.heads, n)
		}
	}
}

// TestSearchIndexDamaged: damage costs time, not answers.
func TestSearchIndexDamaged(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	r := rand.New(rand.NewPCG(5, 6))
	h.add(notes(200, "letter", "word")...)
	h.catchUp()
	files, err := filepath.Glob(filepath.Join(h.root, "accounts", string(me), "search", "*.seg"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for i, damage := range []func(string) error{
		os.Remove,
		func(f string) error { return os.Truncate(f, 100) },
		func(f string) error { return os.WriteFile(f, []byte("something else"), 0o600) },
	} {
		if i > 0 { // and one that is found by the query, as the process runs
			h.reopen()
		}
		if err := damage(files[i]); err != nil {
			t.Fatal(err)
		}
		h.check(r, 30)
		h.reopen()
		h.check(r, 30)
		h.catchUp()
		if h.check(r, 30) == 0 {
			t.Error("nothing was excluded")
		}
	}
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(files[0])); err != nil {
		t.Fatal(err)
	}
	h.s = open(t, h.root, Options{})
	h.catchUp()
	if h.check(r, 30) == 0 {
		t.Error("nothing was excluded after the index was made again")
	}
}

// TestSearchIndexOfAnotherLife: a store put back from a backup gives numbers to other
// mail; what the index knew of them does not count.
func TestSearchIndexOfAnotherLife(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	r := rand.New(rand.NewPCG(7, 8))
	h.add(note("first", "kept"))
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.root, "accounts", string(me), "mail.db")
	backup, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h.s = open(t, h.root, Options{})
	h.add(notes(130, "lost", "secrets of another life")...)
	h.catchUp()
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	clear(h.texts)
	clear(h.heads)
	h.s = open(t, h.root, Options{})
	h.add(notes(130, "found", "wishes of this one")...)
	h.check(r, 50)
	h.reopen() // the numbers are all there now
	h.catchUp()
	if h.check(r, 100) == 0 {
		t.Error("nothing was excluded")
	}
}

// TestSearchIndexRenumbered: in a restored account the numbers of new contents lie far
// above those that came with the backup.
func TestSearchIndexRenumbered(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	r := rand.New(rand.NewPCG(11, 12))
	h.add(notes(70, "old", "came with the backup")...)
	h.catchUp()
	for range 2 {
		if err := h.s.Renumber(t.Context(), me); err != nil {
			t.Fatal(err)
		}
		h.add(notes(70, fmt.Sprint(len(h.texts)), "came afterwards")...)
	}
	h.check(r, 20)
	h.catchUp()
	h.reopen()
	h.catchUp()
	if h.check(r, 100) == 0 {
		t.Error("nothing was excluded")
	}
}

// TestSearchIndexLateStructure: a content that came without a structure, and gets one
// when the same bytes come again, is not excluded.
func TestSearchIndexLateStructure(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	raw := note("late", "structure")
	blob, err := h.s.Stage(t.Context(), me, bytes.NewReader(raw), 0)
	if err != nil {
		t.Fatal(err)
	}
	id, err := h.s.NextMessageID(me)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.s.Commit(t.Context(), me, mailbox.Tx{Ops: []mailbox.Op{mailbox.AddMessage{ID: id, Blob: blob, Places: []mailbox.MailboxID{mailbox.Inbox}}}}); err != nil {
		t.Fatal(err)
	}
	h.add(notes(100, "on time", "other")...)
	h.catchUp()
	h.add(raw)
	h.catchUp()
	h.check(rand.New(rand.NewPCG(9, 9)), 300)
}

// TestSearchIndexMeanwhile asks while mail comes in and the index is built.
func TestSearchIndexMeanwhile(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	end := make(chan struct{})
	asked := make(chan error, 1)
	go func() {
		for {
			select {
			case <-end:
				asked <- nil
				return
			default:
			}
			got, err := h.s.Lacking(context.Background(), me, mailbox.InMessage, "always there")
			if err != nil {
				asked <- err
				return
			}
			for n := range uint64(500) {
				if got.Has(n) {
					asked <- fmt.Errorf("content %d holds the words", n)
					return
				}
			}
		}
	}()
	for i := range 20 {
		h.add(notes(20, fmt.Sprint(i), "these words are always there")...)
		if i%5 == 4 {
			h.catchUp()
		}
	}
	close(end)
	if err := <-asked; err != nil {
		t.Error(err)
	}
}
