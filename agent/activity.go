package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pizza/mailbox"
)

// Activity is one thing that happened in a run: a line of its journal, or a new state.
type Activity struct {
	Task string `json:"task"`
	Run  string `json:"run"`
	// Worker is who works in the run, with those above it, as in "writer > checker"; "" for
	// the task's own run.
	Worker string    `json:"worker,omitempty"`
	Seq    uint64    `json:"seq,omitempty"` // of the line in the journal; 0 of a state
	At     time.Time `json:"at"`
	// Kind is "state", or what the journal has: started, inbound, model_intent, model_reply,
	// model_failed, policy, asked, decided, tool_intent, tool_result, cancel_requested,
	// finished, and what later releases add.
	Kind     string   `json:"kind"`
	State    RunState `json:"state,omitempty"`    // of Kind state
	For      string   `json:"for,omitempty"`      // of a state: what it waits for
	Decision string   `json:"decision,omitempty"` // of asked and decided
	Text     string   `json:"text,omitempty"`     // one line, for a person
}

// kindState is the Kind of a new state.
const kindState = "state"

// A Watch tells what happens in the tasks of an account. What it is woken for lies in
// memory and is merged; what it tells is read from the store then, so that no line of a
// journal is left out and none is told twice. States that change back at once may be.
type Watch struct {
	a       *Agent
	account mailbox.AccountID
	of      Found // what it is about; zero: everything

	told map[string]*telling // by run; only Next touches it

	wake    chan struct{}
	mu      sync.Mutex // guards pending
	pending []string   // runs, or tasks whose newest run, that changed
}

// telling is how far a run was told.
type telling struct {
	teller
	seq   uint64
	state RunState
	why   string
}

// watches are those who watch. Without any, what happens costs one look at n.
type watches struct {
	n   atomic.Int32
	mu  sync.Mutex // guards all
	all map[*Watch]struct{}
}

// stir tells those who watch that a run, or a task, changed. It is called after the commit.
func (a *Agent) stir(account mailbox.AccountID, id string) {
	if a.watches.n.Load() == 0 || id == "" {
		return
	}
	a.watches.mu.Lock()
	defer a.watches.mu.Unlock()
	for w := range a.watches.all {
		if w.account == account && w.wants(id) {
			w.note(id)
		}
	}
}

func (w *Watch) wants(id string) bool {
	switch {
	case w.of.Run != "":
		return id == w.of.Run || isBelow(id, w.of.Run) || id == w.of.Task
	case w.of.Task != "":
		return taskOf(id) == w.of.Task
	}
	return true
}

func (w *Watch) note(id string) {
	w.mu.Lock()
	if !slices.Contains(w.pending, id) {
		w.pending = append(w.pending, id)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watch begins to watch what id names, from its beginning: Next first tells all there is.
// Without an id it watches all tasks of the account, from now on; the state of those that
// are live comes first. The caller closes it. *mailbox.Error NotFound when id names nothing.
func (a *Agent) Watch(ctx context.Context, account mailbox.AccountID, id string) (*Watch, error) {
	w := &Watch{a: a, account: account, wake: make(chan struct{}, 1), told: map[string]*telling{}}
	if id != "" {
		var err error
		if w.of, err = a.Find(ctx, account, id); err != nil {
			return nil, err
		}
	}
	a.watches.mu.Lock()
	if a.watches.all == nil {
		a.watches.all = map[*Watch]struct{}{}
	}
	a.watches.all[w] = struct{}{}
	a.watches.n.Add(1)
	a.watches.mu.Unlock()
	index := indexLiveRuns
	if w.of.Task != "" {
		index = indexOfTask + w.of.Task
	}
	recs, err := a.store.Lookup(ctx, account, index)
	if err != nil {
		w.Close()
		return nil, err
	}
	for _, r := range runsOf(recs) {
		if !w.wants(r.ID) {
			continue
		}
		if id == "" { // its past is not told
			w.told[r.ID] = &telling{seq: r.Seq}
		}
		w.note(r.ID)
	}
	return w, nil
}

// Close ends it.
func (w *Watch) Close() {
	w.a.watches.mu.Lock()
	defer w.a.watches.mu.Unlock()
	if _, ok := w.a.watches.all[w]; ok {
		delete(w.a.watches.all, w)
		w.a.watches.n.Add(-1)
	}
}

// Next waits until something happened and tells it: of each run in order. The error is
// ctx's, or one of the store.
func (w *Watch) Next(ctx context.Context) ([]Activity, error) {
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		w.mu.Lock()
		ids := w.pending
		w.pending = nil
		w.mu.Unlock()
		var all []Activity
		for _, id := range ids {
			some, err := w.tell(ctx, id)
			if err != nil {
				return all, err
			}
			all = append(all, some...)
		}
		if len(all) > 0 {
			return all, nil
		}
	}
}

// tell reads what is new of a run.
func (w *Watch) tell(ctx context.Context, id string) ([]Activity, error) {
	if !strings.Contains(id, ".") {
		th, _, err := w.a.thread(ctx, w.account, id)
		if isKind(err, mailbox.NotFound) || err == nil && th.Active == "" {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if id = th.Active; !w.wants(id) {
			return nil, nil
		}
	}
	rec, err := w.a.store.Record(ctx, w.account, runKey(id))
	if isKind(err, mailbox.NotFound) {
		delete(w.told, id)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	run, err := decodeRun(rec)
	if err != nil {
		return nil, nil // its worker parks it
	}
	return w.lines(ctx, run)
}

func (w *Watch) lines(ctx context.Context, run Run) ([]Activity, error) {
	t := w.told[run.ID]
	if t == nil {
		t = &telling{}
		w.told[run.ID] = t
	}
	var list []Activity
	err := w.a.store.Events(ctx, w.account, runKey(run.ID), t.seq+1, func(seq uint64, b []byte) error {
		l, e := t.line(seq, b)
		act := Activity{Task: run.Task, Run: run.ID, Worker: run.Names(), Seq: seq, At: l.At, Kind: e.kind(), Text: l.Text}
		switch {
		case e.Asked != nil:
			act.Decision = e.Asked.Decision
		case e.Decided != nil:
			act.Decision = e.Decided.Decision
		}
		list = append(list, act)
		t.seq = seq
		return nil
	})
	if err != nil {
		return list, err
	}
	run.State = w.a.stateNow(w.account, run)
	if run.State == t.state && run.For == t.why {
		return list, nil
	}
	t.state, t.why = run.State, run.For
	list = append(list, Activity{Task: run.Task, Run: run.ID, Worker: run.Names(), At: w.a.now(), Kind: kindState, State: run.State, For: run.For, Text: stateText(run)})
	if run.State.Ended() { // nothing more comes; what is asked again is told again from here
		t.names = nil
	}
	return list, nil
}
