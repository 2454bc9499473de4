package imapserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pizza/mailbox"
	"pizza/mailbox/boltstore"
)

// watched is a store that counts the messages that are read, and may be told to know
// nothing of texts.
type watched struct {
	mailbox.Store
	read   atomic.Int64
	silent atomic.Bool
}

func (s *watched) Read(ctx context.Context, account mailbox.AccountID, ids []mailbox.MessageID, want mailbox.Want, fn func(*mailbox.Item) error) error {
	s.read.Add(int64(len(ids)))
	return s.Store.Read(ctx, account, ids, want, fn)
}

func (s *watched) Lacking(ctx context.Context, account mailbox.AccountID, in mailbox.TextIn, text string) (*mailbox.Contents, error) {
	if s.silent.Load() {
		return nil, nil
	}
	return s.Store.Lacking(ctx, account, in, text)
}

func newWatched(t *testing.T) (*house, *watched) {
	s := &watched{}
	h := newHouse(t, func(o *Options) {
		s.Store = o.Store.(mailbox.Store)
		o.Store = s
	})
	return h, s
}

func catchUp(t *testing.T, s *watched) {
	t.Helper()
	if err := s.Store.(*boltstore.Store).CatchUp(t.Context(), account); err != nil {
		t.Fatal(err)
	}
}

func bookLetter(i int) []byte {
	return fmt.Appendf(nil, "From: Ann %d <ann%d@example.org>\r\nTo: me@localhost\r\nSubject: letter %d of Größe\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\n\r\nSome words,\r\nand number%d of them.\r\n", i, i, i, i)
}

// TestSearchSparesReading: what the index excludes is not read, what it does not know
// yet is.
func TestSearchSparesReading(t *testing.T) {
	t.Parallel()
	h, s := newWatched(t)
	for i := range 100 {
		h.deliver("INBOX", bookLetter(i))
	}
	catchUp(t, s)
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	for _, tt := range []struct {
		keys  string
		found int
		reads int64
	}{
		{"TEXT nosuchword", 0, 0},
		{"BODY number77", 1, 1},
		{"TEXT \"words, and number7 \"", 1, 1},
		{"SUBJECT grösse", 100, 100},
		{"SUBJECT number77", 0, 0},
		{"FROM ann5@", 1, 1},
		{"HEADER Subject \"letter 31 \"", 1, 1},
		{"NOT BODY number77", 99, 1},
		{"OR BODY number3 SUBJECT \"letter 44\"", 12, 13},
		{"UNSEEN BODY number77", 1, 1},
	} {
		s.read.Store(0)
		got := w.must("SEARCH %s", tt.keys)
		if n := len(strings.Fields(got[0])) - 2; n != tt.found {
			t.Errorf("SEARCH %s found %d, want %d", tt.keys, n, tt.found)
		}
		if n := s.read.Load(); n > 2*tt.reads { // the cheap stage and the one for bodies
			t.Errorf("SEARCH %s read %d messages, want at most %d", tt.keys, n, 2*tt.reads)
		}
	}
	h.deliver("INBOX", bookLetter(777))
	if got := w.must("SEARCH BODY number777"); got[len(got)-1] == "* SEARCH" {
		t.Errorf("a new message is not found: %q", got)
	}
}

// TestSearchWithAndWithoutIndex: the index changes no answer.
func TestSearchWithAndWithoutIndex(t *testing.T) {
	t.Parallel()
	h, s := newWatched(t)
	files, err := filepath.Glob("../internal/testkit/eml/*.eml")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	var words []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h.deliver("INBOX", raw)
		text := strings.ToValidUTF8(string(raw), "")
		words = append(words, strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r == 0x7f })...)
	}
	for i := range 40 {
		h.deliver("INBOX", bookLetter(i))
	}
	words = append(words, "größe", "GRÖSSE", "number", "ann", "会議", "東京", "прив", "café")
	catchUp(t, s)
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	r := rand.New(rand.NewPCG(11, 12))
	spared, all := int64(0), int64(0)
	for range 150 {
		word := []rune(words[r.IntN(len(words))])
		i := r.IntN(len(word))
		word = word[i:min(len(word), i+2+r.IntN(10))]
		key := []string{"TEXT", "BODY", "SUBJECT", "FROM", "TO", "CC", "BCC", "HEADER Subject", "HEADER Content-Type"}[r.IntN(9)]
		command := fmt.Sprintf("SEARCH %s \"%s\"", key, string(word))
		s.read.Store(0)
		with := w.must("%s", command)
		read := s.read.Swap(0)
		s.silent.Store(true)
		without := w.must("%s", command)
		s.silent.Store(false)
		if with[0] != without[0] {
			t.Errorf("%s: %q, without the index %q", command, with, without)
		}
		all += s.read.Load()
		spared += s.read.Load() - read
	}
	if spared < all/4 {
		t.Errorf("%d of %d readings were spared", spared, all)
	}
}
