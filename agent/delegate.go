package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pizza/mailbox"
)

// forWorkers is what a run waits for while all that is left to come is work it gave away.
const forWorkers = "workers"

// maxDepth bounds Options.WorkerDepth: run ids grow with it.
const maxDepth = 4

// ordinal counts a call among all calls of the run, from 1.
func (s *State) ordinal(call string) int {
	n := 0
	for _, t := range s.Turns {
		for _, c := range t.Calls {
			if n++; c.ID == call {
				return n
			}
		}
	}
	return 0
}

// handing are the calls by which the run has workers at work.
func (s *State) handing() []Call {
	var list []Call
	for _, c := range s.open() {
		if c.State == callStarted && c.Class == classWorker {
			list = append(list, c)
		}
	}
	return list
}

// beginTask commits the intent of a call of task. The worker's record, its journal, its
// due entry and its part of the budget are of the same commit.
func beginTask(ctx context.Context, d *draft, c Call) error {
	a := d.s.a
	args, w, why := a.taskFor(c.Args)
	waiting := 0
	for _, o := range d.st.open() {
		if o.Name == taskName && o.State == callAllowed {
			waiting++
		}
	}
	part, ok := d.st.part(waiting)
	left := d.st.timeLeft()
	switch {
	case why != "":
	case len(d.run.Path) >= a.opt.WorkerDepth:
		why = "A worker cannot give work on here (setting limits.worker_depth): do it yourself."
	case len(d.st.handing()) >= a.opt.WorkerFanout:
		why = fmt.Sprintf("%d workers are at work for you, which is the most at once (setting limits.worker_fanout). Give this work again when one of them has ended.", a.opt.WorkerFanout)
	case !ok || left == 0:
		why = "Nothing of the budget of this task is left to give to a worker."
	}
	if why != "" {
		return d.add(Event{ToolEnd: &EvToolEnd{Call: c.ID, Status: endDenied, Content: why}})
	}
	raw, err := canonical(c.Args)
	if err != nil {
		return err
	}
	limits, part := w.Limits.within(part)
	limits.Time = left.of(limits.Time)
	if err := d.hire(ctx, c, w, args.Prompt, limits); err != nil {
		return err
	}
	return d.add(Event{ToolStart: &EvToolStart{
		Call: c.ID, Attempt: c.Attempt + 1, Hash: hashArgs(raw), Class: string(classWorker), Part: &part,
	}})
}

// hire puts the run of a worker into the commit.
func (d *draft) hire(ctx context.Context, c Call, w Worker, prompt string, limits Limits) error {
	a, now := d.s.a, d.s.a.now()
	run := Run{
		ID: childID(d.run.ID, d.st.ordinal(c.ID)), Task: d.run.Task, State: Queued, Inputs: d.run.Inputs,
		Model: d.run.Model, Subject: d.run.Subject, Created: now, Changed: now, From: d.run.From,
		Call: c.ID, Path: append(slices.Clip(d.run.Path), w.Name), Epoch: a.store.Epoch(d.s.account),
	}
	if w.Model != "" {
		run.Model = w.Model
	}
	out := d.st.Files()
	started := &EvStarted{
		Model: run.Model, System: workerPrompt(w), Limits: limits, Worker: w.Name, Out: out,
		Foreign: d.st.Foreign,
		Tools:   a.offered(w, len(run.Path) < a.opt.WorkerDepth), Window: a.window(ctx, run.Model),
	}
	a.budget(ctx, started, nil)
	events := []Event{
		{At: now, Started: started},
		{At: now, Inbound: &Inbound{Date: now, Prompt: prompt, Login: a.verbatim(ctx, d.run.Model), Size: len(prompt)}},
	}
	st, err := Fold(events)
	if err != nil {
		return err
	}
	if act := Next(st); act.Do == DoCall && !a.capped(ctx, d.s.o.Login, run.Model) { // else it asks first
		events = append(events, Event{At: now, Intent: act.intent(a.store.Epoch(d.s.account))})
	}
	run.Seq = uint64(len(events))
	add := appendOp(run.ID, 0, events...)
	for _, f := range out {
		add.Blobs = append(add.Blobs, f.Blob)
	}
	d.born = append(d.born, run)
	d.ops = append(d.ops, add, runPut(run, 0), dueRun(run.ID, now))
	return nil
}

// verbatim reports whether a model passes on what the login wrote and nothing else.
func (a *Agent) verbatim(ctx context.Context, name string) bool {
	info, _ := a.info(ctx, name)
	return info.Verbatim
}

// awaitWorkers has the run wait for its workers. When it is to end, they are asked to end
// too, those that nobody asked before. goOn says that something was settled instead.
func (d *draft) awaitWorkers(ctx context.Context) (goOn bool, err error) {
	live, err := d.s.a.liveWorkers(ctx, d.s.account, d.run.Task)
	if err != nil {
		return false, err
	}
	for _, c := range d.st.handing() {
		id := childID(d.run.ID, d.st.ordinal(c.ID))
		here := func(r Run) bool { return r.ID == id }
		if slices.ContainsFunc(d.born, here) || slices.ContainsFunc(live, func(l liveRun) bool { return here(l.Run) }) {
			continue
		}
		goOn = true // its record is gone: nobody will ever end the call
		if err := d.add(Event{ToolEnd: &EvToolEnd{Call: c.ID, Status: endError, Content: "The worker's run is gone."}}); err != nil {
			return false, err
		}
	}
	if goOn {
		return true, nil
	}
	if d.st.ending() {
		ops, ids, err := d.s.a.endBelow(live, d.run.ID, d.st.endedBy())
		if err != nil {
			return false, err
		}
		d.ops, d.nudge = append(d.ops, ops...), append(d.nudge, ids...)
	}
	return false, d.pause(ctx, forWorkers, time.Time{})
}

// endedBy is who asked the run to end.
func (s *State) endedBy() DecidedBy {
	if s.Cancel != nil {
		return s.Cancel.By
	}
	return s.Stop.By
}

// liveRun is a worker's run that has not ended, and the version of its record.
type liveRun struct {
	Run
	version uint64
}

// liveWorkers are the runs of workers of a task that have not ended, in the order they
// began. One that does not decode is left out: its worker parks it.
func (a *Agent) liveWorkers(ctx context.Context, account mailbox.AccountID, task string) ([]liveRun, error) {
	recs, err := a.store.Lookup(ctx, account, indexWorkers+task)
	return liveOf(recs), err
}

func liveOf(recs []mailbox.Record) []liveRun {
	var live []liveRun
	for _, rec := range recs {
		if r, err := decodeRun(rec); err == nil && !r.State.Ended() {
			live = append(live, liveRun{r, rec.Version})
		}
	}
	slices.SortFunc(live, func(x, y liveRun) int { return inTree(x.Run, y.Run) })
	return live
}

// endBelow asks the live runs below one to end, but those that were asked before.
func (a *Agent) endBelow(live []liveRun, run string, by DecidedBy) (ops []mailbox.Op, ids []string, err error) {
	for _, l := range live {
		if !isBelow(l.ID, run) || l.Ending {
			continue
		}
		end, err := a.cancelRun(l.Run, l.version, by)
		if err != nil {
			return nil, nil, err
		}
		ops, ids = append(ops, end...), append(ids, l.ID)
	}
	return ops, ids, nil
}

// cancelRun asks one run to end.
func (a *Agent) cancelRun(r Run, version uint64, by DecidedBy) ([]mailbox.Op, error) {
	r.Ending = true
	return a.wakeRun(r, version, Event{At: a.now(), Cancel: &EvCancel{By: by}})
}
