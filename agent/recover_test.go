package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// exiting is a tool that takes the process with it.
type exiting struct{ tools.Set }

func (e exiting) Specs() []tools.Spec {
	return append(e.Set.Specs(), tools.Spec{Name: "exit", Description: "ends the process", Schema: []byte(`{"type":"object"}`)})
}

func (e exiting) Plan(c tools.Call) tools.Plan {
	if c.Name == "exit" {
		return tools.Plan{Rule: tools.Allow, Class: tools.ReadOnly, Effect: tools.Reads, Sentence: "End the process."}
	}
	return e.Set.Plan(c)
}

func (e exiting) Run(ctx context.Context, ws tools.Workspace, c tools.Call) tools.Outcome {
	if c.Name == "exit" {
		os.Exit(exitCode)
	}
	return e.Set.Run(ctx, ws, c)
}

const exitCode = 7

func withExit(opt *Options) {
	opt.Tools, opt.backoff = exiting{opt.Tools}, time.Millisecond
}

// TestRecoverChild is the process that TestClass15PoisonedRun starts again and again: it
// works an office until nothing is live.
func TestRecoverChild(t *testing.T) {
	root := os.Getenv("PIZZA_TEST_OFFICE")
	if root == "" {
		t.Skip("a process of TestClass15PoisonedRun")
	}
	o := officeIn(t, root, func(opt *Options) {
		withExit(opt)
		opt.folding = func(run string) {
			if run == os.Getenv("PIZZA_TEST_PANIC") {
				panic("a fault of the fold")
			}
		}
	})
	o.until("nothing to be live", func() bool {
		live, err := o.store.Lookup(t.Context(), o.me.Account, indexLiveRuns)
		return err == nil && len(live) == 0
	})
}

// officeIn opens an office over a store that exists.
func officeIn(t *testing.T, root string, change func(*Options)) *office {
	t.Helper()
	o := newOffice(t, nil, change)
	o.halt()
	o.closing()
	o.root = root
	o.open(t, func(s mailbox.Store) mailbox.Store { return s })
	return o
}

// TestClass15PoisonedRun: one run's tool ends the process, at every start; a journal of
// another makes the fold panic. Both are put aside with one mail each, and the other runs
// are done.
func TestClass15PoisonedRun(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, withExit)
	o.halt()
	poison := o.send("call exit {}\nsay never")
	broken := o.send("say never")
	const healthy = 20
	for i := range healthy {
		o.send(fmt.Sprintf("call list_folder {\"path\":\"/local\"}\nsay healthy %d", i))
	}
	o.closing()
	exits := 0
	for ; exits < 10; exits++ {
		if !o.process(t, runID(broken.Task, 1)) {
			break
		}
	}
	if exits < maxFalls || exits > maxFalls+1 {
		t.Errorf("the process ended %d times", exits)
	}
	o.open(t, func(s mailbox.Store) mailbox.Store { return s })
	if got := len(o.ofKind(mailbox.Inbox, KindResult)); got != healthy {
		t.Errorf("%d results of %d healthy runs", got, healthy)
	}
	failed := o.ofKind(mailbox.Inbox, KindFailure)
	if len(failed) != 2 {
		t.Fatalf("%d failure mails", len(failed))
	}
	for _, m := range failed {
		if strings.Contains(m.raw, "X-Pizza-Task: "+poison.Task) != strings.Contains(m.raw, "went down three times") {
			t.Errorf("the mail:\n%s", m.raw)
		}
	}
	o.count(o.me.Account, Running, 0)
}

// process runs one process over the office, in which the journal of the run panics makes the
// fold panic, and reports whether the tool ended it.
func (o *office) process(t *testing.T, panics string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRecoverChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), "PIZZA_TEST_OFFICE="+o.root, "PIZZA_TEST_PANIC="+panics)
	out, err := cmd.CombinedOutput()
	switch code := cmd.ProcessState.ExitCode(); {
	case code == exitCode:
		return true
	case err != nil:
		t.Fatalf("a process: %v\n%s", err, out)
	}
	return false
}

// claims are the counts of all runs.
func (o *office) claims() (list []int) {
	for _, r := range o.runs(o.me.Account) {
		list = append(list, r.Claims)
	}
	slices.Sort(list)
	return list
}

// A server that stops in order, again and again, in the middle of a call, puts nothing aside.
func TestOrderlyStopsCountNothing(t *testing.T) {
	t.Parallel()
	never := providertest.Say("never").After(make(chan struct{}))
	turns := []providertest.Turn{}
	for range maxLost + 2 {
		turns = append(turns, never)
	}
	m := providertest.Script(append(turns, providertest.Say("at last"))...)
	o := newOffice(t, m)
	o.send("hello")
	for n := 1; n <= maxLost+2; n++ {
		o.until("the call", func() bool { return len(m.Requests()) == n })
		o.halt()
		if got := o.claims(); got[0] != 0 {
			t.Fatalf("after stop %d: counts %v", n, got)
		}
		o.reopen(t)
	}
	if mails := o.ended(1); len(mails) != 1 || !strings.Contains(mails[0].raw, "at last") {
		t.Errorf("%v", subjects(mails))
	}
	o.settledDown()
}

// A claim in the epoch that the run began in costs no commit, and the first in a later one
// costs one.
func TestClaimsOfAnEarlierEpochAreCounted(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	m := providertest.Script(providertest.Say("fine").After(gate))
	o := newOffice(t, m)
	o.halt()
	o.send("hello")
	o.reopen(t)
	o.until("the call", func() bool { return len(m.Requests()) == 1 })
	if r := o.runs(o.me.Account)[0]; r.Claims != 1 || r.Epoch != o.store.Epoch(o.me.Account) {
		t.Errorf("in the call: %d claims, epoch %d of %d", r.Claims, r.Epoch, o.store.Epoch(o.me.Account))
	}
	close(gate)
	o.ended(1)
	if got := o.claims(); got[0] != 0 {
		t.Errorf("afterwards: %v", got)
	}
	o.settledDown()
}

// New mail does not stand behind what earlier processes have left: with all runs of before
// the start in a call that takes its time, half of the workers are there for it.
func TestRecoveryLeavesWorkersForNewMail(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	slow := waiting{gate}
	o := newOffice(t, slow, func(opt *Options) { opt.Workers = 4 })
	o.halt()
	for range 20 {
		o.send("hello")
	}
	o.reopen(t)
	o.send("say new", "X-Pizza-Model: runbook:mail")
	o.until("the answer to the new mail", func() bool { return len(o.ofKind(mailbox.Inbox, KindResult)) == 1 })
	close(gate)
	o.ended(21)
	o.settledDown()
}

// waiting answers when its channel is closed.
type waiting struct{ gate <-chan struct{} }

func (w waiting) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "test", Free: true}
}

func (w waiting) Complete(ctx context.Context, _ providers.Request) (providers.Reply, error) {
	select {
	case <-w.gate:
		return providertest.Say("fine").Reply, nil
	case <-ctx.Done():
		return providers.Reply{}, ctx.Err()
	}
}
