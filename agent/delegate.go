package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// forWorkers is what a run waits for while all that is left to come is work it gave away.
const forWorkers = "workers"

// maxDepth bounds Options.WorkerDepth: run ids grow with it.
const maxDepth = 4

// childID names the run of a worker: a function of the run that gave it work and of the
// call by which it did, the n-th of that run.
func childID(run string, n int) string { return run + "." + strconv.Itoa(n) }

// parentOf is the run that gave a worker's run its work, "" for a run that mail began.
func parentOf(run string) string {
	if i := strings.LastIndexByte(run, '.'); i > len(taskOf(run)) {
		return run[:i]
	}
	return ""
}

// topOf is the run that mail began, of a run at any depth.
func topOf(run string) string {
	for up := parentOf(run); up != ""; up = parentOf(run) {
		run = up
	}
	return run
}

// isBelow reports whether run works for above, at any depth.
func isBelow(run, above string) bool { return strings.HasPrefix(run, above+".") }

// child reports whether the run is a worker's.
func (r *Run) child() bool { return parentOf(r.ID) != "" }

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
	switch {
	case why != "":
	case len(d.run.Path) >= a.opt.WorkerDepth:
		why = "A worker cannot give work on here (setting limits.worker_depth): do it yourself."
	case len(d.st.handing()) >= a.opt.WorkerFanout:
		why = fmt.Sprintf("%d workers are at work for you, which is the most at once (setting limits.worker_fanout). Give this work again when one of them has ended.", a.opt.WorkerFanout)
	case !ok:
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
		Tools: a.offered(w, len(run.Path) < a.opt.WorkerDepth), Window: a.window(ctx, run.Model),
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

// ChildEnd is what the run of a worker came to, beside its text.
type ChildEnd struct {
	State RunState `json:"state"`
	Spent Spent    `json:"spent"` // by it and those below it
	Used  Part     `json:"used"`  // of the budget, calls whose reply was lost too
	// Done are the tools that changed something; Unsure the calls, in words, of which nobody
	// knows whether they had their effect.
	Done   []string `json:"done,omitempty"`
	Unsure []string `json:"unsure,omitempty"`
}

// finishChild ends the run of a worker. Its end, the result of the call that began it, and
// that the run which made the call goes on are one commit; no mail is sent. A run that
// has ended meanwhile gets nothing.
func (d *draft) finishChild(ctx context.Context, e ending) error {
	a := d.s.a
	if err := d.move(e.move); err != nil {
		return err
	}
	if err := d.add(Event{Finished: &EvFinished{State: d.run.State, Text: e.text}}); err != nil {
		return err
	}
	end, blobs, err := d.handBack(ctx, e)
	if err != nil {
		return err
	}
	d.run.For, d.run.Error = "", e.error
	d.over = true
	ops, err := a.endChild(ctx, d.s.o, d.run, end, blobs)
	d.ops, d.nudge = append(d.ops, ops...), append(d.nudge, parentOf(d.run.ID))
	return err
}

// handBack is the result that the run above gets: the text, and what was made in /out.
func (d *draft) handBack(ctx context.Context, e ending) (EvToolEnd, []mailbox.Blob, error) {
	end := EvToolEnd{Call: d.run.Call, Status: endOK, Content: e.text, Took: d.st.Worked,
		Child: &ChildEnd{State: d.run.State, Spent: d.st.Spent(), Used: d.st.usedUp(),
			Done: did(&d.st), Unsure: d.unsureCalls()}}
	if d.run.State != Done {
		end.Status = endError
	}
	blobs, err := d.s.stageResult(ctx, &end, tools.Outcome{})
	if err != nil {
		return end, nil, err
	}
	end.Out = d.st.Out[len(d.st.Started.Out):]
	for _, f := range end.Out {
		if !f.Deleted && f.Blob.Size > 0 {
			blobs = append(blobs, f.Blob)
		}
	}
	return end, blobs, nil
}

// endChild takes away what only a live run has, and tells the run above.
func (a *Agent) endChild(ctx context.Context, o owner, run Run, end EvToolEnd, blobs []mailbox.Blob) ([]mailbox.Op, error) {
	ops, err := a.dropDecisions(ctx, o.Account, run.ID)
	if err != nil {
		return nil, err
	}
	ops = append(ops, mailbox.DeleteDue{Kind: DueRun, Key: run.ID})
	up := parentOf(run.ID)
	rec, err := a.store.Record(ctx, o.Account, runKey(up))
	if isKind(err, mailbox.NotFound) {
		return ops, nil
	}
	if err != nil {
		return nil, err
	}
	parent, err := decodeRun(rec)
	if err != nil || parent.State.Ended() { // who cannot read it parks it
		return append(ops, mailbox.CheckRecord{Key: rec.Key, Version: rec.Version}), nil
	}
	live, err := a.liveWorkers(ctx, o.Account, run.Task)
	if err != nil {
		return nil, err
	}
	live = slices.DeleteFunc(live, func(l liveRun) bool { return l.ID == run.ID })
	beside := slices.ContainsFunc(live, func(l liveRun) bool { return parentOf(l.ID) == up })
	add := appendOp(up, parent.Seq, Event{At: a.now(), ToolEnd: &end})
	add.Blobs = blobs
	parent.Seq++
	ops = append(ops, add)
	if !beside || parent.State != Waiting { // else it would only begin to wait again
		if parent.State == Waiting {
			parent.State, parent.For, parent.Changed = Queued, "", a.now()
		}
		ops = append(ops, dueRun(up, a.now()))
	}
	if len(live) > 0 {
		shown, err := a.showFamily(ctx, o, &parent, live)
		if err != nil {
			return nil, err
		}
		ops = append(ops, shown...)
	}
	return append(ops, runPut(parent, rec.Version)), nil
}

// childEnding is how the run of a worker ends and what its result says.
func (d *draft) childEnding(act Todo) ending {
	name := d.run.worker()
	switch act.Do {
	case DoFinish:
		return ending{move: moveFinish, text: childAnswer(&d.st)}
	case DoEnd:
		by := d.st.endedBy()
		if ask := d.st.stoppedAt(); ask != nil && d.st.Stop.Verb == "expire" {
			return ending{move: moveFail, error: "limit reached",
				text: limitSentence(&d.st, ask.Limit) + " Nobody said whether it shall go on.\n" + doneText(&d.st) + partText(&d.st)}
		}
		text := fmt.Sprintf("Worker %s was ended by %s before it was done.", name, by.who())
		return ending{move: moveCancel, text: text + "\n" + d.unsureText() + doneText(&d.st) + partText(&d.st), error: "ended"}
	}
	why := string(act.Fail)
	switch act.Fail {
	case FailModel:
		why = fmt.Sprintf("its model %s failed (%s): %s", d.run.Model, d.st.Failed.Class, short(d.st.Failed.Text))
	case FailFilter:
		why = "its model refused, by its own rules about content"
	case FailWindow:
		why = "the work became too long for its model"
	}
	return ending{move: moveFail, error: why, text: fmt.Sprintf("Worker %s failed: %s.\n", name, why) + doneText(&d.st) + partText(&d.st)}
}

// who names who decided in a sentence.
func (by DecidedBy) who() string {
	if by.Login == "" {
		return "the end of the task"
	}
	return by.Login + " (" + by.Via + ")"
}

// childAnswer is the result of a worker: the model's last text.
func childAnswer(s *State) string {
	last := s.Turns[len(s.Turns)-1].Reply
	text := textOf(last.Reply.Message)
	switch {
	case text == "" && len(s.Out) > len(s.Started.Out):
		return "The worker gave no text. What it made is in /out."
	case text == "":
		return "The worker gave no text."
	case last.Reply.Stop == providers.StopLength:
		return text + "\n\n(The text was cut off here: the worker's model reached its length limit.)"
	}
	return text
}

// worker is the name of the worker whose run it is, "" for a run that mail began.
func (r *Run) worker() string {
	if len(r.Path) == 0 {
		return ""
	}
	return r.Path[len(r.Path)-1]
}

// pathText names the worker that asks the owner for something, "" for a run that mail began.
func (r *Run) pathText() string {
	if !r.child() {
		return ""
	}
	return fmt.Sprintf("Worker %s of task %s asks this (%s).", r.worker(), r.Task, r.path())
}

// path is the way from the task to the worker.
func (r *Run) path() string { return strings.Join(append([]string{r.Task}, r.Path...), " > ") }

// did names the tools that changed something, the workers' too.
func did(s *State) []string {
	var names []string
	for _, t := range s.Turns {
		for _, c := range t.Calls {
			switch {
			case c.Class == classWorker && c.End != nil && c.End.Child != nil:
				names = append(names, c.End.Child.Done...)
			case c.changed() && c.Class != classWorker:
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// unsureCalls are the calls, in words, of which nobody knows whether they had their effect.
func (d *draft) unsureCalls() []string {
	var list []string
	for _, c := range d.st.open() {
		if c.Class == classWorker {
			if c.End != nil && c.End.Child != nil {
				list = append(list, c.End.Child.Unsure...)
			}
			continue
		}
		unsure := c.State == callStarted || c.State == callUnsure || c.Kind == decisionUnknown && !c.confirmed()
		if unsure && c.Class != "" && c.Class != tools.ReadOnly {
			list = append(list, d.s.a.sentence(c))
		}
	}
	return list
}

func (d *draft) unsureText() string {
	var b strings.Builder
	for _, s := range d.unsureCalls() {
		fmt.Fprintf(&b, "\nIt is not known whether this call had its effect: %s\n", s)
	}
	return b.String()
}
