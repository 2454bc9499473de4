package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pizza/mailbox"
)

// one is a plot of one mail with one reply that asks for calls.
func one(calls ...simCall) plot {
	return plot{seed: 1, programs: []program{{name: "a", turns: []simTurn{{calls: calls}}}}}
}

// step lets a process go on until cond holds when everything waits.
func (p *process) until(cond func() bool) {
	for range 1000 {
		synctest.Wait()
		if cond() {
			return
		}
		if list := p.events(); len(list) > 0 {
			list[p.rng.IntN(len(list))]()
			continue
		}
		time.Sleep(10 * time.Second)
	}
	p.t.Fatalf("it never came\n%s", p.story())
}

func (p *process) asks() []mailbox.Record {
	recs, _ := p.mem.Lookup(context.Background(), simAccount, indexOpenDecisions)
	return recs
}

// finish lets a world go on without crashes, and checks it.
func (w *world) finish(p *process) {
	if p == nil {
		p = w.start(crashPoint{})
	}
	if !p.live(0) {
		w.fault("it came to no end")
	}
	w.check()
	if len(w.wrong) > 0 {
		w.t.Errorf("%s\n%s", strings.Join(w.wrong, "\n"), w.story())
	}
}

// Class 2: what nobody knows is asked, whatever the reason; each answer leads on, the
// model is told what is so, in the order of its calls, and no tool holds the run.
func TestClass02UnknownOutcomes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		call  simCall
		asked bool
		says  string
	}{
		{simCall{tool: "pay", how: "unknown", effect: true}, true, "the line went dead"},
		{simCall{tool: "pay", how: "hang", effect: true}, true, "did not end within 10m0s"},
		{simCall{tool: "pay", how: "hang"}, true, "did not end within 10m0s"},
		{simCall{tool: "pay", how: "panic", effect: true}, true, "failed inside"},
		{simCall{tool: "pay", how: "unknown", answer: "expire"}, true, "the line went dead"},
		{simCall{tool: "pay", how: "unknown", effect: true, answer: "stop"}, true, "the line went dead"},
		{simCall{tool: "book", how: "hang", effect: true}, false, ""},
		{simCall{tool: "book", how: "unknown"}, false, ""},
		{simCall{tool: "book", how: "panic", effect: true}, false, ""},
		{simCall{tool: "book", how: "unknown", effect: true, blind: true}, true, "the other side does not answer"},
		{simCall{tool: "put", how: "unknown", effect: true}, false, ""},
		{simCall{tool: "put", how: "hang"}, false, ""},
		{simCall{tool: "look", how: "hang"}, false, ""},
		{simCall{tool: "look", how: "panic"}, false, ""},
	} {
		t.Run(fmt.Sprintf("%+v", tt.call), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := one(simCall{tool: "put"}, tt.call, simCall{tool: "pay"})
				seen := ""
				p.look = func(p *process) {
					for _, id := range p.mem.disk.box(Action) {
						body, err := p.mem.OpenMessage(context.Background(), simAccount, id)
						if err != nil {
							t.Fatal(err)
						}
						b := make([]byte, body.Size())
						_, _ = body.ReadAt(b, 0)
						seen = string(b)
					}
				}
				simulate(t, p)
				if (seen != "") != tt.asked || !strings.Contains(strings.Join(strings.Fields(seen), " "), tt.says) {
					t.Errorf("asked %v with\n%s", seen != "", seen)
				}
			})
		})
	}
}

// Class 2: an idempotent call whose outcomes stay unknown is not begun for ever, and a
// reconcilable one whose looking up hangs is asked about.
func TestClass02IsBounded(t *testing.T) {
	t.Parallel()
	st := fold(t, begun(evReply(1, calls("a"))))
	c := *st.call("a")
	for n, want := range map[int]string{1: fateAgain, maxRepeats - 1: fateAgain, maxRepeats: endUnknown} {
		c.Class, c.Attempt = "idempotent", n
		if got := fate(c, outcome{lost: true}, false); got != want {
			t.Errorf("attempt %d: %s, want %s", n, got, want)
		}
	}
	c.Class, c.Attempt = "reconcilable", 2
	if got := fate(c, outcome{probe: true, lost: true, err: context.DeadlineExceeded}, false); got != endUnknown {
		t.Errorf("a probe that hangs: %s", got)
	}
	if got := fate(c, outcome{probe: true, stopped: true, err: context.Canceled}, false); got != fateLeft {
		t.Errorf("a probe that a shutdown cut off: %s", got)
	}
}

// Class 3: an approval outlives the process that asked for it.
func TestClass03ApprovalOutlivesRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, one(simCall{tool: "send", owner: "approve"}))
		p := w.start(crashPoint{})
		p.until(func() bool { return len(p.asks()) == 1 })
		p.end(true)
		first := w.disk.records
		for range 3 { // nothing is to be done meanwhile
			p = w.start(crashPoint{})
			synctest.Wait()
			time.Sleep(time.Minute)
			synctest.Wait()
			p.end(true)
		}
		if len(w.disk.records) != len(first) || w.commits != 0 {
			t.Errorf("a restart made %d commits, %d records of %d", w.commits, len(w.disk.records), len(first))
		}
		w.finish(nil)
		if len(w.ledger) != 1 {
			t.Errorf("effects %v", w.ledger)
		}
	})
}

// Class 10: of fifty who decide at once one wins, and what is approved is done once.
func TestClass10FiftyDecideOneApproval(t *testing.T) {
	t.Parallel()
	for _, verbs := range [][]string{{"approve"}, {"approve", "reject"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, one(simCall{tool: "send", owner: "approve"}))
			p := w.start(crashPoint{})
			p.until(func() bool { return len(p.asks()) == 1 })
			d, err := decodeDecision(p.asks()[0])
			if err != nil {
				t.Fatal(err)
			}
			var won atomic.Int32
			var verb atomic.Value
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					v := verbs[i%len(verbs)]
					_, err := p.a.Decide(context.Background(), simAccount, d.ID, v, "", DecidedBy{Login: "me", Via: "cli"})
					if err == nil {
						won.Add(1)
						verb.Store(v)
					} else if !isKind(err, mailbox.Conflict) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			w.finish(p)
			if done := len(w.ledger) == 1; won.Load() != 1 || done != (verb.Load() == "approve") {
				t.Errorf("%d won with %v; effects %v", won.Load(), verb.Load(), w.ledger)
			}
		})
	}
}

// Class 16: the task is cancelled just before each of its commits. What the owner is told
// holds, and exactly one mail tells how it ended.
func TestClass16CancelAtEveryCommit(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string][]simCall{
		"plain": nil, "tools": {{tool: "pay"}, {tool: "book"}, {tool: "look"}}, "asked": {{tool: "send", owner: "approve"}, {tool: "pay"}},
		"unknown": {{tool: "pay", how: "unknown", effect: true}, {tool: "book", how: "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := one(calls...)
				if calls == nil {
					p.programs[0].turns = nil
				}
				n := simulate(t, p)
				told := map[string]int{}
				for at := 2; at <= n+1 && !t.Failed(); at++ {
					last := ""
					p.before = func(p *process, commit int) {
						if commit == at && p.cancels == "" && p.mails[0].task != "" {
							p.cancel()
							last = p.cancels
						}
					}
					simulate(t, p)
					told[last]++
				}
				if told["accepted"] < n-2 {
					t.Errorf("%d commits, cancelled %v", n, told)
				}
			})
		})
	}
}

// Class 24: twenty mails to four threads at once. Each thread works them in order, one at
// a time.
func TestClass24ThreadsInOrder(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := plot{seed: 24, threads: 4, alone: alone}
			for i := range 20 {
				p.programs = append(p.programs, program{name: fmt.Sprintf("p%d", i), turns: []simTurn{{calls: []simCall{{tool: "pay"}}}}})
			}
			most := 0
			p.look = func(p *process) {
				at := map[string]int{}
				for name := range p.gates {
					_, rest, _ := strings.Cut(name, " ")
					task, _, _ := strings.Cut(strings.TrimPrefix(rest, string(simAccount)+"/"), ".")
					at[task]++
				}
				for task, n := range at {
					if n > 1 {
						t.Errorf("thread %s does %d things at once", task, n)
					}
				}
				most = max(most, len(at))
			}
			w := newWorld(t, p)
			pr := w.start(crashPoint{})
			var wg sync.WaitGroup
			for thread := range 4 {
				wg.Go(func() {
					for i := thread; i < 20; i += 4 {
						if err := pr.submit(&pr.mails[i]); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			w.sent = len(w.mails)
			w.finish(pr)
			w.checkOrder(t)
			if most != 4 {
				t.Errorf("%d threads at once, want 4", most)
			}
		})
	}
}

// checkOrder: the mails of a thread are inputs of its runs in the order they came in.
func (w *world) checkOrder(t *testing.T) {
	t.Helper()
	for thread := range 4 {
		task := w.mails[thread].task
		var got, want []string
		for n := 1; ; n++ {
			rec, ok := w.disk.records[runKey(runID(task, n))]
			if !ok {
				break
			}
			run, err := decodeRun(rec)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range run.Inputs {
				got = append(got, in.MessageID)
			}
		}
		for i := thread; i < len(w.mails); i += 4 {
			want = append(want, w.mails[i].mid)
		}
		if !slices.Equal(got, want) {
			t.Errorf("thread %s worked %v, want %v", task, got, want)
		}
	}
}

// A process that was taken for dead while its tool ran writes nothing any more: the epoch
// has gone on. Who opened the account then asks what became of the call.
func TestClass24StragglerIsFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, one(simCall{tool: "pay"}))
		old := w.start(crashPoint{})
		old.until(func() bool {
			return slices.ContainsFunc(gateNames(old), func(name string) bool { return strings.HasPrefix(name, "tool ") })
		})
		old.mem.mu.Lock()
		taken := old.mem.disk.clone()
		taken.epoch++
		old.mem.disk = taken
		old.mem.mu.Unlock()
		for _, act := range old.events() {
			act()
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for name, stream := range old.mem.disk.streams {
			if len(stream) != len(taken.streams[name]) {
				t.Errorf("the straggler wrote to %s", name)
			}
		}
		old.end(true)
		w.finish(nil)
		if len(w.ledger) != 1 {
			t.Errorf("effects %v", w.ledger)
		}
	})
}

func gateNames(p *process) (names []string) {
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	for name := range p.gates {
		names = append(names, name)
	}
	return names
}
