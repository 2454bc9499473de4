package imapserver

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	mailboxIDOf = regexp.MustCompile(`MAILBOXID \(([A-Za-z0-9_-]+)\)`)
	savedOf     = regexp.MustCompile(`SAVEDATE "([^"]+)"`)
)

func (w *wire) mailboxID(format string, args ...any) string {
	w.t.Helper()
	got := strings.Join(w.must(format, args...), "\n")
	m := mailboxIDOf.FindStringSubmatch(got)
	if m == nil {
		w.t.Fatalf("no MAILBOXID in %s", got)
	}
	return m[1]
}

// TestMailboxID: CREATE, SELECT and STATUS agree; a rename keeps the identifier, and no
// mailbox gets one that another had.
func TestMailboxID(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.deliver("INBOX", []byte(mail))
	w := h.dial("a")
	w.must("LOGIN me secret")
	created := w.mailboxID("CREATE A")
	w.must("RENAME A B")
	for _, cmd := range []string{"STATUS B (MAILBOXID)", "SELECT B", "EXAMINE B"} {
		if id := w.mailboxID("%s", cmd); id != created {
			t.Errorf("%s: %s, created as %s", cmd, id, created)
		}
	}
	w.must("DELETE B")
	inbox := w.mailboxID("STATUS INBOX (MAILBOXID)")
	w.must("RENAME INBOX C") // makes another mailbox and moves what is in INBOX
	seen := map[string]string{created: "B"}
	for _, cmd := range []string{"CREATE B", "CREATE A", "STATUS C (MAILBOXID)", "STATUS INBOX (MAILBOXID)", "STATUS Trash (MAILBOXID)"} {
		id := w.mailboxID("%s", cmd)
		if other := seen[id]; other != "" {
			t.Errorf("%s: %s, which is of %s", cmd, id, other)
		}
		seen[id] = cmd
	}
	if id := w.mailboxID("STATUS INBOX (MAILBOXID)"); id != inbox {
		t.Errorf("INBOX was %s, is %s", inbox, id)
	}
}

// TestSaveDate: the date is now, and the keys agree with it.
func TestSaveDate(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	before := time.Now().Truncate(time.Second)
	h.deliver("INBOX", []byte(mail))
	after := time.Now()
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	got := strings.Join(w.must("FETCH 1 SAVEDATE"), "\n")
	m := savedOf.FindStringSubmatch(got)
	if m == nil {
		t.Fatal(got)
	}
	saved, err := time.Parse("_2-Jan-2006 15:04:05 -0700", m[1])
	if err != nil || saved.Before(before) || saved.After(after) {
		t.Fatalf("%s (%v) is not between %v and %v", m[1], err, before, after)
	}
	for off, want := range map[int]string{-1: "SAVEDSINCE", 0: "SAVEDON SAVEDSINCE", 1: "SAVEDBEFORE"} {
		day := saved.AddDate(0, 0, off).Format("2-Jan-2006")
		for _, key := range []string{"SAVEDSINCE", "SAVEDON", "SAVEDBEFORE"} {
			found := strings.Contains(w.must("SEARCH %s %s", key, day)[0], "SEARCH 1")
			if found != strings.Contains(want, key) {
				t.Errorf("saved %v: SEARCH %s %s finds it: %v", saved, key, day, found)
			}
		}
	}
}
