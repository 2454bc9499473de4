package imapserver

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/mailbox/boltstore"
)

// TestModel sends random commands from several sessions, one after another, to a
// server and to a model of plain slices and maps. After each command the reply, and
// what each client was told, must be what the model says; now and then the server
// starts anew. PIZZA_MODEL_TIME=1h goes on that long; PIZZA_MODEL_SEED begins with one
// seed.
func TestModel(t *testing.T) {
	t.Parallel()
	first, _ := strconv.ParseUint(os.Getenv("PIZZA_MODEL_SEED"), 10, 64)
	if first == 0 {
		first = 1 + rand.Uint64N(1<<40)
	}
	end := time.Now()
	if d, err := time.ParseDuration(os.Getenv("PIZZA_MODEL_TIME")); err == nil {
		end = end.Add(d)
	}
	for seed := first; seed < first+2 || time.Now().Before(end); seed++ {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { newWorld(t, seed).run(200) }) {
			return
		}
	}
}

// world is the server, the model, and the clients that see both.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	dir   string
	h     *house
	stop  func()
	wires []*wire // every connection that was made
	boxes map[string]*refBox
	tabs  []*tab
	names int // sessions so far
	mails int // messages made so far
	uidvs map[string]bool
	log   []string
}

// refBox is a mailbox of the model.
type refBox struct {
	name     string
	validity string
	next     int
	msgs     []*refMsg // in UID order
}

type refMsg struct {
	uid   int
	body  string
	flags map[string]bool
}

// tab is a session: what its client was told, and what it has open.
type tab struct {
	*wire
	box      *refBox // nil: none
	readOnly bool
}

var modelFlags = []string{`\Seen`, `\Answered`, `\Flagged`, `\Draft`, `\Deleted`, "$Junk", "one", "Two"}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), dir: t.TempDir(), boxes: map[string]*refBox{}, uidvs: map[string]bool{}}
	w.start()
	t.Cleanup(func() { w.stop() })
	for range 3 {
		w.tabs = append(w.tabs, w.login())
	}
	for _, name := range []string{"INBOX", "Drafts", "Trash"} {
		w.adopt(name)
	}
	return w
}

func (w *world) start() {
	st, err := boltstore.Open(w.dir, boltstore.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := st.CreateAccount(w.t.Context(), account, seeds()); err != nil {
		w.t.Fatal(err)
	}
	srv := New(Options{Store: st, Accounts: logins{}})
	w.h = &house{t: w.t, store: st, srv: srv, log: &syncBuffer{}}
	w.h.addr = w.h.listen(srv.Serve)
	w.stop = func() {
		var clients sync.WaitGroup
		for _, c := range w.wires {
			clients.Go(c.hangUp)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			w.t.Errorf("Shutdown: %v", err)
		}
		clients.Wait()
		if err := st.Close(); err != nil {
			w.t.Errorf("Close: %v", err)
		}
	}
}

// client connects.
func (w *world) client(name string) *wire {
	c := w.h.dial(name)
	w.wires = append(w.wires, c)
	return c
}

// hangUp closes the connection once the server has: until then the server lingers, so
// that its last words are read.
func (w *wire) hangUp() {
	io.Copy(io.Discard, w.c)
	w.c.Close()
}

func (w *world) login() *tab {
	w.names++
	s := &tab{wire: w.client(fmt.Sprintf("s%d-", w.names))}
	s.must("LOGIN me secret")
	return s
}

// adopt takes a new mailbox into the model. Its UIDVALIDITY must be a fresh one.
func (w *world) adopt(name string) *refBox {
	w.t.Helper()
	v := w.status(w.tabs[0], name)
	if w.uidvs[v["UIDVALIDITY"]] {
		w.failf("UIDVALIDITY %s of %s was used before", v["UIDVALIDITY"], name)
	}
	w.uidvs[v["UIDVALIDITY"]] = true
	b := &refBox{name: name, validity: v["UIDVALIDITY"], next: 1}
	w.boxes[name] = b
	return b
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log[max(0, len(w.log)-40):], "\n"))
}

// run takes random steps.
func (w *world) run(steps int) {
	acts := []struct {
		weight int
		do     func(*tab)
	}{
		{20, w.appendSome}, {20, w.store}, {8, w.copyOrMove}, {8, w.expunge}, {10, w.fetch}, {10, w.search},
		{8, w.noop}, {5, w.idle}, {10, w.open}, {3, w.leave}, {3, w.create}, {2, w.remove}, {2, w.rename}, {6, w.counters}, {1, w.restart},
	}
	total := 0
	for _, a := range acts {
		total += a.weight
	}
	for range steps {
		n := w.rnd.IntN(total)
		for _, a := range acts {
			if n -= a.weight; n < 0 {
				a.do(w.tabs[w.rnd.IntN(len(w.tabs))])
				break
			}
		}
		w.judge()
	}
	for _, s := range w.tabs {
		w.noop(s)
	}
	for name := range w.boxes {
		w.compare(name)
	}
}

// judge fails when a client was told what cannot be, or believes flags of a message
// that is there which it was told since and that are not so.
func (w *world) judge() {
	for _, s := range w.tabs {
		if len(s.errs) > 0 {
			w.failf("%s", strings.Join(s.errs, "\n"))
		}
	}
}

// do sends a command and checks how it ends: OK, NO or BAD.
func (w *world) do(s *tab, want, format string, args ...any) []string {
	w.t.Helper()
	command := fmt.Sprintf(format, args...)
	w.log = append(w.log, s.name+": "+command)
	got := s.do("%s", command)
	_, status, _ := strings.Cut(last(got), " ")
	w.log = append(w.log, "    "+status)
	if !strings.HasPrefix(status, want) {
		w.failf("%s: %q, want %s", command, got, want)
	}
	return got
}

// fresh checks that a client knows exactly what the mailbox holds.
func (w *world) fresh(s *tab, command string) {
	w.t.Helper()
	if wrong := s.stale(); wrong != "" {
		w.failf("%s after %s: %s", s.name, command, wrong)
	}
}

// stale returns what the client has wrong, "" if nothing.
func (s *tab) stale() string {
	if s.box == nil {
		return ""
	}
	if len(s.uids) != len(s.box.msgs) {
		return fmt.Sprintf("%d messages, want %d", len(s.uids), len(s.box.msgs))
	}
	for i, m := range s.box.msgs {
		if s.uids[i] != "" && s.uids[i] != strconv.Itoa(m.uid) {
			return fmt.Sprintf("message %d is UID %s, want %d", i+1, s.uids[i], m.uid)
		}
		if s.flags[i] != unknownFlags && sorted(s.flags[i]) != m.text() {
			return fmt.Sprintf("message %d (UID %d) has flags %q, want %q", i+1, m.uid, s.flags[i], m.text())
		}
	}
	return ""
}

func (m *refMsg) text() string {
	var names []string
	for f, on := range m.flags {
		if on {
			names = append(names, f)
		}
	}
	return sorted(strings.Join(names, " "))
}

func sorted(s string) string {
	f := strings.Fields(s)
	slices.Sort(f)
	return strings.Join(f, " ")
}

// known returns the UIDs that the client has by number. What it has not been told it
// asks for first.
func (w *world) known(s *tab) []int {
	if slices.Contains(s.uids, "") {
		got := s.do("FETCH 1:* (UID FLAGS)") // NO [EXPUNGEISSUED] is fine
		w.log = append(w.log, s.name+": FETCH 1:* (UID FLAGS) "+last(got))
	}
	uids := make([]int, len(s.uids))
	for i, u := range s.uids {
		uids[i], _ = strconv.Atoi(u) // 0: went before it was seen
	}
	return uids
}

func (b *refBox) find(uid int) *refMsg {
	for _, m := range b.msgs {
		if m.uid == uid {
			return m
		}
	}
	return nil
}

func (b *refBox) drop(gone func(*refMsg) bool) { b.msgs = slices.DeleteFunc(b.msgs, gone) }

// add takes a message in under the UID that the server gave it, which has to grow.
func (w *world) add(b *refBox, uid int, body string, flags map[string]bool) {
	w.t.Helper()
	if uid < b.next {
		w.failf("UID %d in %s, where UIDNEXT was %d", uid, b.name, b.next)
	}
	b.msgs = append(b.msgs, &refMsg{uid: uid, body: body, flags: flags})
	b.next = uid + 1
}
