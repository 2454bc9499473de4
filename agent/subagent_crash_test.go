package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/runbook"
)

// effects are the tools of W6, counted outside: a lookup that is read-only, a send that is
// once-only and asked; and one whose outcome nobody ever knows.
type effects struct {
	mu sync.Mutex
	n  map[string]int // by tool and who
}

func (f *effects) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n[what]
}

func (f *effects) Specs() []tools.Spec {
	schema := []byte(`{"type":"object","properties":{"who":{"type":"string"}}}`)
	return []tools.Spec{{Name: "lookup", Schema: schema}, {Name: "send", Schema: schema}, {Name: "mystery", Schema: schema}}
}

func who(c tools.Call) string {
	var args struct{ Who string }
	_ = json.Unmarshal(c.Args, &args) // of this test
	return c.Name + " " + args.Who
}

// sent reports whether the call of a decision has had its effect.
func (f *effects) sent(d Decision) bool {
	return f.count(who(tools.Call{Name: d.Tool, Args: d.Args})) > 0
}

func (f *effects) Plan(c tools.Call) tools.Plan {
	switch c.Name {
	case "lookup":
		return tools.Plan{Class: tools.ReadOnly, Rule: tools.Allow, Effect: tools.Reads}
	case "send":
		return tools.Plan{Class: tools.OnceOnly, Rule: tools.Ask, Sentence: "Do " + who(c)}
	}
	return tools.Plan{Class: tools.OnceOnly, Rule: tools.Allow, Effect: tools.Changes, Sentence: "Do " + who(c)}
}

func (f *effects) Run(_ context.Context, _ tools.Workspace, c tools.Call) tools.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n[who(c)]++
	return tools.Outcome{Content: "ok " + who(c), Unknown: c.Name == "mystery"}
}

// counting counts the calls of a model by thread.
type counting struct {
	runbook.Model
	mu sync.Mutex
	n  map[string]int
}

func (m *counting) Complete(ctx context.Context, req providers.Request) (providers.Reply, error) {
	m.mu.Lock()
	m.n[req.Thread]++
	m.mu.Unlock()
	return m.Model.Complete(ctx, req)
}

// newW6 is an office with the tools and the worker of W6. Its workers stand still.
func newW6(t *testing.T) (*office, *effects, *counting) {
	t.Helper()
	f, m := &effects{n: map[string]int{}}, &counting{n: map[string]int{}}
	o := newOffice(t, nil, func(opt *Options) {
		opt.Tools = f
		opt.Subagents = func() []Worker {
			return []Worker{{Name: "agent", Description: "looks up and sends", Instructions: "i", Tools: []string{"lookup", "send", "mystery"}}}
		}
	})
	o.models["runbook:mail"] = m
	return o, f, m
}

// w6Task gives n workers a lookup and a send each, in one reply.
func w6Task(n int) string {
	var calls []string
	for i := 1; i <= n; i++ {
		calls = append(calls, work("agent", fmt.Sprintf(`call lookup {"who":"w%d"}`, i), fmt.Sprintf(`call send {"who":"w%d"}`, i), fmt.Sprintf("say ended w%d", i)))
	}
	return strings.Join(calls, "\nand ") + "\nsay all ended"
}

// TestW6 is workload W6: three workers at once, their approvals in the order 3, 1, 2, each
// decided in a store that was opened anew. Each looks up once and sends once, and the
// model of the task is called twice.
func TestW6(t *testing.T) {
	t.Parallel()
	o, f, m := newW6(t)
	r := o.send(w6Task(3))
	for i, n := range []int{3, 1, 2} {
		open := map[string]Decision{}
		for _, d := range o.waiting(3 - i) {
			open[d.Run] = d
		}
		dec, ok := open[childID(r.Task+".1", n)]
		if !ok {
			t.Fatalf("no decision of worker %d among %v", n, open)
		}
		o.reopen(t)
		o.decide(dec.ID, "approve", "")
		o.until("the worker's end", func() bool { return o.run(dec.Run).State == Done })
		if got := f.count(fmt.Sprintf("send w%d", n)); got != 1 {
			t.Errorf("after approval %d: sent %d times", n, got)
		}
	}
	mails := o.ended(4)
	for n := 1; n <= 3; n++ {
		if l, s := f.count(fmt.Sprintf("lookup w%d", n)), f.count(fmt.Sprintf("send w%d", n)); l != 1 || s != 1 {
			t.Errorf("worker %d: %d lookups, %d sends", n, l, s)
		}
	}
	if got := m.n["a1/"+r.Task]; got != 2 {
		t.Errorf("the task's model was called %d times", got)
	}
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "ended w1") || !strings.Contains(mails[0].raw, "ended w2") || !strings.Contains(mails[0].raw, "ended w3") {
		t.Errorf("mails %v", subjects(mails))
	}
	o.settledDown()
}

// TestWorkersCrashAtEveryCommit stops the world before and after each commit of a task with
// two workers that look up and send: both go on, each sends exactly once, and the task
// is told of each once.
func TestWorkersCrashAtEveryCommit(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := 1
			for workersCrash(t, crashPoint{at: at, after: after}) {
				at++
			}
			if at <= 12 {
				t.Fatalf("only %d commits: the walk does not walk", at)
			}
		})
	}
}

func workersCrash(t *testing.T, point crashPoint) (crashed bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Fatalf("at commit %d, after %v", point.at, point.after)
		}
	}()
	o, f, _ := newW6(t)
	o.halt()
	r := o.send(w6Task(2))
	o.closing()
	down := make(chan struct{})
	o.open(t, func(s mailbox.Store) mailbox.Store { return &crashStore{Store: s, crashPoint: point, down: down} })
	crashed = o.decideAll(3, down, f.sent)
	o.reopen(t)
	o.decideAll(3, nil, f.sent)
	if mails := o.ended(3); len(mails) != 1 || !strings.Contains(mails[0].raw, "X-Pizza-Kind: result") {
		t.Errorf("mails %v", subjects(mails))
	}
	top := o.fold(r.Task + ".1")
	if top.ModelCalls != 2 || top.Below.ModelCalls != 6 {
		t.Errorf("the task called its model %d times, the workers %d", top.ModelCalls, top.Below.ModelCalls)
	}
	for n := 1; n <= 2; n++ {
		if got := f.count(fmt.Sprintf("send w%d", n)); got != 1 {
			t.Errorf("worker %d sent %d times", n, got)
		}
		if c := top.Turns[1].Calls[n-1]; c.Attempt != 1 || c.End.Status != endOK || !strings.HasPrefix(c.End.Content, fmt.Sprintf("ended w%d", n)) {
			t.Errorf("call %d: %+v, %+v", n, c, c.End)
		}
	}
	o.settledDown()
	o.halt()
	o.closing()
	return crashed
}

// afterCommit calls f once, beside the at-th commit that went through.
type afterCommit struct {
	mailbox.Store
	mu sync.Mutex
	n  int
	at int
	f  func()
}

func (s *afterCommit) Commit(ctx context.Context, id mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error) {
	res, err := s.Store.Commit(ctx, id, tx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if s.n++; s.n == s.at {
			go s.f()
		}
	}
	return res, err
}

// TestCancelWorkersAtEveryCommit cancels the task beside each of its commits: all its runs
// end, and exactly one mail tells how.
func TestCancelWorkersAtEveryCommit(t *testing.T) {
	t.Parallel()
	for part := range 2 {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			at := 1 + part
			for cancelAt(t, at) {
				at += 2
			}
			if at < 7 {
				t.Errorf("only %d commits could be met", at-1)
			}
		})
	}
}

// cancelAt reports whether the cancellation came in time.
func cancelAt(t *testing.T, at int) (cancelled bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Fatalf("cancelled beside commit %d", at)
		}
	}()
	o, f, _ := newW6(t)
	o.halt()
	r := o.send(w6Task(2))
	o.closing()
	asked := make(chan error, 1)
	o.open(t, func(s mailbox.Store) mailbox.Store {
		return &afterCommit{Store: s, at: at, f: func() { asked <- o.a.Cancel(context.Background(), o.me.Account, r.Task, by("me")) }}
	})
	o.until("the end of the task", func() bool {
		recs, err := o.store.Lookup(t.Context(), o.me.Account, indexOpenDecisions)
		if err != nil {
			t.Error(err)
		}
		for _, rec := range recs {
			if d, err := decodeDecision(rec); err == nil {
				_, _ = o.a.Decide(t.Context(), o.me.Account, d.ID, "approve", "", by("me")) // it may have ended
			}
		}
		live, err := o.store.Lookup(t.Context(), o.me.Account, indexLiveRuns)
		return err == nil && len(live) == 0
	})
	select {
	case err := <-asked:
		cancelled = err == nil
	default: // there were not so many commits
	}
	mails := o.ended(len(o.runs(o.me.Account)))
	want := "X-Pizza-Kind: result"
	if cancelled {
		want = "X-Pizza-Kind: notice"
	}
	if len(mails) != 1 || !strings.Contains(mails[0].raw, want) {
		t.Errorf("mails %v, cancelled %v:\n%s", subjects(mails), cancelled, mails[0].raw)
	}
	for n := 1; n <= 2; n++ {
		if got := f.count(fmt.Sprintf("send w%d", n)); got > 1 {
			t.Errorf("worker %d sent %d times", n, got)
		}
	}
	o.settledDown()
	o.halt()
	o.closing()
	return cancelled
}

// TestCancelledWorkersCrash stops the world at each commit of a cancellation while two
// workers wait for approvals.
func TestCancelledWorkersCrash(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashed := true
			for at := 1; crashed; at++ {
				o, f, _ := newW6(t)
				r := o.send(w6Task(2))
				o.waiting(2)
				o.halt()
				o.closing()
				down := make(chan struct{})
				o.open(t, func(s mailbox.Store) mailbox.Store {
					return &crashStore{Store: s, crashPoint: crashPoint{at: at, after: after}, down: down}
				})
				err := o.a.Cancel(t.Context(), o.me.Account, r.Task, by("me"))
				crashed = false
				o.until("the end or the crash", func() bool {
					select {
					case <-down:
						crashed = true
						return true
					default:
					}
					live, err := o.store.Lookup(context.Background(), o.me.Account, indexLiveRuns)
					return err == nil && len(live) == 0
				})
				o.reopen(t)
				if err != nil { // nobody was told that it is cancelled
					_ = o.a.Cancel(t.Context(), o.me.Account, r.Task, by("me")) // it may be on disk
				}
				o.cancelled(3)
				if f.count("send w1")+f.count("send w2") != 0 {
					t.Error("something was sent")
				}
				o.halt()
				o.closing()
			}
		})
	}
}
