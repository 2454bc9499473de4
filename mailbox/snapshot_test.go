package mailbox

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/emersion/go-imap/v2"
)

func numbered(from, to int) (out []Entry) {
	for i := from; i <= to; i++ {
		out = append(out, Entry{UID: imap.UID(i), Message: MessageID(i)})
	}
	return out
}

func added(from, to int) (out []Change) {
	for _, e := range numbered(from, to) {
		out = append(out, Change{UID: e.UID, New: &e})
	}
	return out
}

func list(s *Snapshot) (out []Entry) {
	for _, e := range s.All() {
		out = append(out, e)
	}
	return out
}

// Two successors of one snapshot do not see each other's entries, although an
// append normally shares memory.
func TestSuccessorsApart(t *testing.T) {
	t.Parallel()
	s := NewSnapshot(Mailbox{}, numbered(1, 10))
	a, b := s.With(Mailbox{}, added(11, 12)), s.With(Mailbox{}, added(20, 21))
	if got, want := list(a), numbered(1, 12); !slices.Equal(got, want) {
		t.Errorf("first: %v", got)
	}
	if got, want := list(b), append(numbered(1, 10), numbered(20, 21)...); !slices.Equal(got, want) {
		t.Errorf("second: %v", got)
	}
	if got := len(Diff(a, b)); got != 4 {
		t.Errorf("%d changes between them", got)
	}
	if s.Len() != 10 {
		t.Errorf("the old one has %d", s.Len())
	}
}

// A change touches one chunk, and emptying a mailbox leaves no crumbs.
func TestChunks(t *testing.T) {
	t.Parallel()
	s := NewSnapshot(Mailbox{}, numbered(1, 100_000))
	one := s.With(Mailbox{}, []Change{{UID: 500, New: &Entry{UID: 500, Deleted: true}}})
	other := 0
	for i, c := range one.chunks {
		if c.block != s.chunks[i].block {
			other++
		}
	}
	if other != 1 {
		t.Errorf("one change made %d chunks", other)
	}
	for uid := 1; uid <= 100_000; uid++ {
		if uid%1000 != 0 {
			continue
		}
		var gone []Change
		for i := uid - 999; i < uid; i++ {
			gone = append(gone, Change{UID: imap.UID(i)})
		}
		s = s.With(Mailbox{}, gone)
	}
	if s.Len() != 100 || len(s.chunks) > 4 {
		t.Errorf("%d entries in %d chunks", s.Len(), len(s.chunks))
	}
}

func TestSnapshotAccess(t *testing.T) {
	t.Parallel()
	var even []Entry
	for i := 2; i <= 2000; i += 2 {
		even = append(even, Entry{UID: imap.UID(i)})
	}
	s := NewSnapshot(Mailbox{}, even)
	for uid, want := range map[imap.UID]int{0: 0, 1: 0, 2: 0, 3: 1, 512: 255, 513: 256, 514: 256, 2000: 999, 2001: 1000} {
		if got := s.Search(uid); got != want {
			t.Errorf("Search(%d) = %d, want %d", uid, got, want)
		}
	}
	for _, r := range [][2]int{{0, 1000}, {255, 257}, {256, 256}, {999, 5000}, {-5, 1}, {1000, 1001}, {300, 200}} {
		var got []Entry
		for i, e := range s.Range(r[0], r[1]) {
			if s.At(i) != e {
				t.Errorf("index %d", i)
			}
			got = append(got, e)
		}
		from, to := max(r[0], 0), min(r[1], 1000)
		want := even[min(from, max(to, 0)):max(to, 0)]
		if from > to {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("Range%v: %d entries, want %d", r, len(got), len(want))
		}
	}
	for i := range s.All() { // may be left early
		if i == 300 {
			break
		}
	}
	if _, ok := s.Find(3); ok {
		t.Error("found UID 3")
	}
}

func TestCleanFlag(t *testing.T) {
	t.Parallel()
	for in, want := range map[imap.Flag]string{
		`\SEEN`: `\Seen`, `\deleted`: `\Deleted`, "NonJunk": "NonJunk", "$Label1": "$Label1", "a/b": "a/b",
		`\x`: "invalid", "": "invalid", "a b": "invalid", "a]": "invalid", "é": "invalid", "a\x7f": "invalid",
	} {
		got, err := CleanFlag(in)
		if me, ok := err.(*Error); ok {
			got = imap.Flag(me.Kind.String())
		}
		if string(got) != want {
			t.Errorf("CleanFlag(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestErrorIs(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("wrapped: %w", &Error{Op: "commit", Kind: Conflict, Name: "r"})
	if !errors.Is(err, &Error{Kind: Conflict}) || errors.Is(err, &Error{Kind: Invalid}) {
		t.Error("kinds are not told apart")
	}
}
