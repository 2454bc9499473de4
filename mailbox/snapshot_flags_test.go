package mailbox

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/emersion/go-imap/v2"
)

// flagUses is FlagSets by looking at every entry.
func flagUses(s *Snapshot) (out []FlagUse) {
	for i, e := range s.All() {
		if !slices.ContainsFunc(out, func(u FlagUse) bool { return u.Flags == e.Flags }) {
			out = append(out, FlagUse{e.Flags, i})
		}
	}
	return out
}

func TestFlagSets(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	s := NewSnapshot(Mailbox{}, numbered(1, 1000))
	next := imap.UID(1001)
	past := []*Snapshot{s}
	for range 400 {
		var edits []Change
		uid := imap.UID(1 + rnd.IntN(int(next)))
		switch e := (Entry{UID: uid, Flags: FlagSet(rnd.IntN(5))}); rnd.IntN(3) {
		case 0: // arrives; mostly in place, where older snapshots have their memory
			e.UID, next = next, next+1
			edits = []Change{{UID: e.UID, New: &e}}
		case 1:
			edits = []Change{{UID: uid, New: &e}}
		default:
			edits = []Change{{UID: uid}}
		}
		s = s.With(Mailbox{}, edits)
		past = append(past, s)
		for _, old := range []*Snapshot{s, past[rnd.IntN(len(past))]} {
			if got, want := old.FlagSets(), flagUses(old); !slices.Equal(got, want) {
				t.Fatalf("%d entries: %v, want %v", old.Len(), got, want)
			}
		}
	}
	if got := (&Snapshot{}).FlagSets(); len(got) != 0 {
		t.Errorf("an empty one: %v", got)
	}
}
