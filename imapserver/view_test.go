package imapserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// client is what a mail program believes: it sees updates only.
type client struct {
	uids  []imap.UID // by sequence number
	flags map[imap.UID]mailbox.Entry
}

func (c *client) apply(t *testing.T, v *view, u update) {
	t.Helper()
	for _, n := range u.expunged {
		if n < 1 || int(n) > len(c.uids) {
			t.Fatalf("EXPUNGE %d of %d", n, len(c.uids))
		}
		c.uids = slices.Delete(c.uids, int(n)-1, int(n))
	}
	if u.exists {
		if v.len() <= len(c.uids) {
			t.Fatalf("EXISTS %d although the client has %d", v.len(), len(c.uids))
		}
		for pos := len(c.uids); pos < v.len(); pos++ { // as it would fetch them
			e, ghost := v.at(pos)
			if ghost {
				t.Fatalf("new message %d is a ghost", pos)
			}
			c.uids = append(c.uids, e.UID)
			c.flags[e.UID] = e
		}
	}
	for _, e := range u.flags {
		if n := v.seq(e.UID); int(n) > len(c.uids) || c.uids[n-1] != e.UID {
			t.Fatalf("FETCH %d for UID %d, which the client has elsewhere", n, e.UID)
		}
		c.flags[e.UID] = e
	}
}

// agree checks that what the client believes is the view.
func (c *client) agree(t *testing.T, v *view) {
	t.Helper()
	if len(c.uids) != v.len() {
		t.Fatalf("client has %d messages, view %d", len(c.uids), v.len())
	}
	spans, _ := v.resolve(numSet{ranges: []numRange{{1, 0}}}, false)
	seen := map[uint32]imap.UID{}
	ghosts := v.each(spans, func(seq uint32, e mailbox.Entry) bool { seen[seq] = e.UID; return true })
	if ghosts+len(seen) != len(c.uids) {
		t.Fatalf("each gives %d messages and %d ghosts of %d", len(seen), ghosts, len(c.uids))
	}
	for i, uid := range c.uids {
		e, ghost := v.at(i)
		if e.UID != uid || v.seq(uid) != uint32(i+1) {
			t.Fatalf("position %d: client has UID %d, view %d, seq %d", i, uid, e.UID, v.seq(uid))
		}
		if got, listed := seen[uint32(i+1)]; listed == ghost || listed && got != uid {
			t.Fatalf("position %d: each gives UID %d (%v), at says ghost=%v", i, got, listed, ghost)
		}
		if have := c.flags[uid]; !ghost && (have.Flags != e.Flags || have.Deleted != e.Deleted) {
			t.Fatalf("UID %d: client has flags %v, view %v", uid, have, e)
		}
	}
}

// TestViewProperty makes random changes under several views and checks after every
// step that each client agrees with its view, and with the store as soon as EXPUNGE
// may be told.
func TestViewProperty(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			viewProperty(t, rand.New(rand.NewPCG(seed, 7)))
		})
	}
}

func viewProperty(t *testing.T, rnd *rand.Rand) {
	snap := mailbox.NewSnapshot(mailbox.Mailbox{ID: 1, UIDNext: 1}, nil)
	views, clients := make([]*view, 3), make([]*client, 3)
	for i := range views {
		views[i] = &view{snap: snap}
		clients[i] = &client{flags: map[imap.UID]mailbox.Entry{}}
	}
	for range 150 {
		snap = randomChange(rnd, snap)
		for i, v := range views {
			if rnd.IntN(3) > 0 {
				continue
			}
			expunge := rnd.IntN(2) == 0
			u := v.advance(snap, mailbox.Diff(v.snap, snap), expunge)
			if !expunge && len(u.expunged) > 0 {
				t.Fatal("EXPUNGE where it is not allowed")
			}
			clients[i].apply(t, v, u)
			clients[i].agree(t, v)
			if expunge && (v.len() != snap.Len() || len(v.ghosts) > 0) {
				t.Fatalf("after EXPUNGE: %d messages, store has %d", v.len(), snap.Len())
			}
		}
	}
}

// randomChange adds, removes and flags a few entries.
func randomChange(rnd *rand.Rand, s *mailbox.Snapshot) *mailbox.Snapshot {
	row := s.Mailbox
	var edits []mailbox.Change
	for _, e := range s.All() {
		switch rnd.IntN(12) {
		case 0:
			edits = append(edits, mailbox.Change{UID: e.UID})
		case 1:
			e.Flags, e.Deleted = mailbox.FlagSet(rnd.IntN(4)), rnd.IntN(2) == 0
			edits = append(edits, mailbox.Change{UID: e.UID, New: &e})
		}
	}
	for range rnd.IntN(5) {
		e := mailbox.Entry{UID: row.UIDNext, Message: mailbox.MessageID(row.UIDNext)}
		row.UIDNext += imap.UID(1 + rnd.IntN(3))
		edits = append(edits, mailbox.Change{UID: e.UID, New: &e})
	}
	next := s.With(row, edits)
	next.Mailbox.Exists = uint32(next.Len())
	return next
}

func entries(uids ...imap.UID) []mailbox.Entry {
	var out []mailbox.Entry
	for _, u := range uids {
		out = append(out, mailbox.Entry{UID: u})
	}
	return out
}

func TestResolve(t *testing.T) {
	t.Parallel()
	v := &view{snap: mailbox.NewSnapshot(mailbox.Mailbox{UIDNext: 30}, entries(2, 5, 9, 20)), ghosts: []imap.UID{7}}
	for _, tt := range []struct {
		set   string
		byUID bool
		want  string
		ok    bool
	}{
		{"1", false, "[{0 1}]", true},
		{"1:*", false, "[{0 5}]", true},
		{"*", false, "[{4 5}]", true},
		{"*:4", false, "[{3 5}]", true},
		{"4:2,1", false, "[{0 4}]", true},
		{"5,1,5", false, "[{0 1} {4 5}]", true},
		{"6", false, "[]", false},
		{"2:9", false, "[{1 5}]", false},
		{"1:*", true, "[{0 5}]", true},
		{"*", true, "[{4 5}]", true},
		{"100:*", true, "[{4 5}]", true}, // RFC 3501 section 6.4.8
		{"*:100", true, "[{4 5}]", true},
		{"21:100", true, "[]", true},
		{"3:8", true, "[{1 3}]", true},
		{"5,7,9", true, "[{1 4}]", true},
		{"4294967295", true, "[]", true},
		{"1:4294967295", true, "[{0 5}]", true},
	} {
		p := parser{b: []byte(tt.set)}
		spans, ok := v.resolve(p.numSet(), tt.byUID)
		if p.err != nil || ok != tt.ok || fmt.Sprint(spans) != tt.want {
			t.Errorf("%s (UID %v) = %v %v %v, want %s %v", tt.set, tt.byUID, spans, ok, p.err, tt.want, tt.ok)
		}
	}
	empty := &view{snap: mailbox.NewSnapshot(mailbox.Mailbox{}, nil)}
	if spans, ok := empty.resolve(numSet{ranges: []numRange{{1, 0}}}, false); !ok || len(spans) > 0 {
		t.Errorf("1:* of an empty mailbox = %v %v", spans, ok)
	}
}

func TestUIDsPassesOverGhosts(t *testing.T) {
	t.Parallel()
	v := &view{snap: mailbox.NewSnapshot(mailbox.Mailbox{}, entries(2, 5, 9, 20)), ghosts: []imap.UID{1, 7, 8, 30}}
	set, ghosts := v.uids([]span{{0, 8}})
	if got := fmt.Sprint([]imap.UIDRange(set)); got != "[{2 5} {9 20}]" || ghosts != 4 {
		t.Errorf("uids = %s, %d ghosts", got, ghosts)
	}
}

func TestRecent(t *testing.T) {
	t.Parallel()
	v := &view{snap: mailbox.NewSnapshot(mailbox.Mailbox{UIDNext: 21}, entries(2, 5, 9, 20))}
	v.claim(uidRange{9, 20})
	v.claim(uidRange{21, 20}) // nothing new
	v.claim(uidRange{21, 25})
	v.claim(uidRange{9, 25}) // again, as EXAMINE is told
	if v.isRecent(5) || !v.isRecent(9) || !v.isRecent(25) || v.isRecent(26) || v.numRecent() != 2 || len(v.recent) != 1 {
		t.Errorf("recent = %v, %d", v.recent, v.numRecent())
	}
}
