package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/mailbox"
)

// crashPoint is a commit: the at-th, or the first that when picks.
type crashPoint struct {
	at    int
	when  func(mailbox.Tx) bool
	after bool // it is on disk, but nobody has heard of it
}

// crashStore stops the world at its point. Nothing works after that.
type crashStore struct {
	mailbox.Store
	crashPoint

	mu   sync.Mutex
	n    int
	down chan struct{} // closed at the crash
}

func (p crashPoint) is(n int, tx mailbox.Tx) bool {
	if p.when != nil {
		return p.when(tx)
	}
	return n == p.at
}

func (c *crashStore) dead() bool {
	select {
	case <-c.down:
		return true
	default:
		return false
	}
}

func (c *crashStore) Commit(ctx context.Context, id mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error) {
	c.mu.Lock()
	if c.dead() {
		c.mu.Unlock()
		return mailbox.Result{}, mailbox.ErrClosed
	}
	c.n++
	if !c.is(c.n, tx) {
		defer c.mu.Unlock() // one at a time: the numbers are of commits in order
		return c.Store.Commit(ctx, id, tx)
	}
	defer c.mu.Unlock()
	if c.after {
		if _, err := c.Store.Commit(ctx, id, tx); isKind(err, mailbox.Conflict) {
			c.n-- // nothing was committed; the next one counts
			return mailbox.Result{}, err
		}
	}
	close(c.down)
	return mailbox.Result{}, mailbox.ErrClosed
}

func (c *crashStore) Record(ctx context.Context, id mailbox.AccountID, key string) (mailbox.Record, error) {
	if c.dead() {
		return mailbox.Record{}, mailbox.ErrClosed
	}
	return c.Store.Record(ctx, id, key)
}

func (c *crashStore) Claim(ctx context.Context, id mailbox.AccountID, kind string, now time.Time, lease time.Duration, n int) ([]mailbox.Due, error) {
	if c.dead() {
		return nil, mailbox.ErrClosed
	}
	return c.Store.Claim(ctx, id, kind, now, lease, n)
}

// hookStore calls before ahead of each commit, with its number. What before commits itself
// is numbered too.
type hookStore struct {
	mailbox.Store
	before func(n int)

	mu sync.Mutex
	n  int
}

func (h *hookStore) Commit(ctx context.Context, id mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error) {
	h.mu.Lock()
	h.n++
	n := h.n
	h.mu.Unlock()
	h.before(n)
	return h.Store.Commit(ctx, id, tx)
}

// effects counts how often the once-only tool of the walk had its effect: each run of
// it puts one more "x " before END.
func (o *office) effects() int { return strings.Count(o.read("ledger.txt"), "x ") }

const walkTask = `call list_folder {"path":"/local/docs"}
and call read_file {"path":"/local/docs/ledger.txt"}
call edit_file {"path":"/local/docs/ledger.txt","old":"END","new":"x END"}
and call write_file {"path":"/out/made.txt","content":"made"}
say done`

// answer decides what waits, as a person who sees what has happened.
func (o *office) answer(happened func(Decision) bool) {
	recs, err := o.store.Lookup(context.Background(), o.me.Account, indexOpenDecisions)
	if err != nil {
		return
	}
	for _, rec := range recs {
		d, err := decodeDecision(rec)
		if err != nil {
			o.t.Error(err)
			continue
		}
		verb := "approve"
		if d.Kind == decisionUnknown {
			verb = "happened"
			if !happened(d) {
				verb = "repeat"
			}
		}
		_, _ = o.a.Decide(context.Background(), o.me.Account, d.ID, verb, "", DecidedBy{Login: "me", Via: "cli"}) // the world may have stopped
	}
}

// finishAll is decideAll by who looks at the ledger.
func (o *office) finishAll(n int, down <-chan struct{}) (crashed bool) {
	return o.decideAll(n, down, func(Decision) bool { return o.effects() > 0 })
}

// decideAll answers decisions until n runs have ended or the world stops.
func (o *office) decideAll(n int, down <-chan struct{}, happened func(Decision) bool) (crashed bool) {
	o.until("the end of all runs", func() bool {
		select {
		case <-down:
			crashed = true
			return true
		default:
		}
		o.answer(happened)
		ended := 0
		for _, r := range o.runs(o.me.Account) {
			if r.State.Ended() {
				ended++
			}
		}
		return ended == n
	})
	return crashed
}

// TestCrashAtEveryCommit walks all commits of a task with tools, an approval and a
// second mail that waits: the world stops before and after each of them, starts again,
// and must come to the same end: one answer a mail, the effect exactly once.
func TestCrashAtEveryCommit(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := 1
			for crashed := true; crashed; at++ {
				crashed, _ = crashWalk(t, crashPoint{at: at, after: after})
			}
			if at <= 8 {
				t.Fatalf("only %d commits: the walk does not walk", at-1)
			}
		})
	}
}

// TestCrashBeforeTheOutcome stops the world when the once-only tool has had its effect
// and its outcome is not on disk: nobody knows, and the owner is asked.
func TestCrashBeforeTheOutcome(t *testing.T) {
	t.Parallel()
	crashed, unknown := crashWalk(t, crashPoint{when: func(tx mailbox.Tx) bool {
		for _, op := range tx.Ops {
			add, ok := op.(mailbox.Append)
			if !ok {
				continue
			}
			for _, b := range add.Events {
				if e, err := decodeEvent(b); err == nil && e.ToolEnd != nil && e.ToolEnd.Call == "rb1_0" {
					return true
				}
			}
		}
		return false
	}})
	if !crashed || unknown != 1 {
		t.Errorf("crashed %v, asked %d times what happened; want once", crashed, unknown)
	}
}

func crashWalk(t *testing.T, point crashPoint) (crashed bool, unknown int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Fatalf("at commit %d, after %v", point.at, point.after)
		}
	}()
	o := newOffice(t, nil)
	o.halt()
	o.file("ledger.txt", "END")
	r := o.send(walkTask, "Message-ID: <one@test>")
	o.send("say second", "Message-ID: <two@test>", "In-Reply-To: <one@test>")
	o.closing()

	down := make(chan struct{})
	o.open(t, func(s mailbox.Store) mailbox.Store { return &crashStore{Store: s, crashPoint: point, down: down} })
	crashed = o.finishAll(2, down)
	o.reopen(t)
	if o.finishAll(2, nil); t.Failed() {
		return
	}
	for n := 1; n <= 2; n++ {
		mails := 0
		for _, m := range o.list(o.me.Account, mailbox.Inbox) {
			if strings.Contains(m.raw, fmt.Sprintf("X-Pizza-Run: %s.%d\r\n", r.Task, n)) && strings.Contains(m.raw, "X-Pizza-Kind: result\r\n") {
				mails++
			}
		}
		if mails != 1 {
			t.Errorf("run %d has %d results", n, mails)
		}
	}
	if got := o.effects(); got != 1 {
		t.Errorf("the effect happened %d times", got)
	}
	for _, e := range o.journal(r.Task + ".1") {
		if e.Asked != nil && e.Asked.Kind == decisionUnknown {
			unknown++
		}
	}
	o.settledDown()
	o.halt()
	o.closing()
	return crashed, unknown
}
