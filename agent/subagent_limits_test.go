package agent

import (
	"strings"
	"testing"
	"time"

	"pizza/mailbox"
	"pizza/providers/providertest"
)

// TestWorkersDrawOnTheBudget: what workers get is taken from the task's budget with their
// start, is no more than a part of it, and what they did not use comes back with their end.
func TestWorkersDrawOnTheBudget(t *testing.T) {
	t.Parallel()
	thrifty := Worker{Name: "thrifty", Description: "d", Instructions: "i", Tools: []string{"edit_file"}, Model: "runbook:mail", Limits: Limits{Tokens: 2000}}
	o := newOffice(t, nil, crew(thrifty), func(opt *Options) { opt.Limits = Limits{Tokens: 40_000, Cost: 2} })
	o.models["script:w"] = providertest.Script(providertest.Say("thought"))
	paid := Worker{Name: "paid", Description: "d", Instructions: "i", Model: "script:w"}
	crew(thrifty, paid)(&o.a.opt)
	o.file("a.txt", "END")
	edit := `call edit_file {"path":"/local/docs/a.txt","old":"END","new":"x END"}`
	r := o.send(work("clerk", edit) + "\nand " + work("thrifty", edit) + "\nand " + work("paid", "think") + "\nsay end")
	o.waiting(2)
	top := r.Task + ".1"
	o.until("the paid worker's end", func() bool { return o.run(childID(top, 3)).State.Ended() })
	// A quarter of 40,000; thrifty holds no more than it may use.
	for n, want := range map[int]Limits{1: {Tokens: 10_000, Cost: 0.5}, 2: {Tokens: 2000, Cost: 0.5}} {
		if l := o.fold(childID(top, n)).Started.Limits; l.Tokens != want.Tokens || l.Cost != want.Cost || l.ModelCalls != 20 || l.ToolCalls != 80 {
			t.Errorf("worker %d: %+v, want %+v", n, l, want)
		}
	}
	st := o.fold(top)
	spent := st.Spent().Usage
	if used := st.used(LimitTokens); spent.Output == 0 || used != 12_000+int64(spent.Input+spent.Output) || st.used(LimitCost) != 1_000_000 {
		t.Errorf("%d tokens and %d count as used, %+v spent", used, st.used(LimitCost), spent)
	}
	for _, d := range o.waiting(2) {
		o.decide(d.ID, "reject", "")
	}
	mails := o.ended(4)
	st = o.fold(top)
	if used := st.used(LimitTokens); used != int64(spent.Input+spent.Output) || st.used(LimitCost) != 0 {
		t.Errorf("%d tokens and %d count as used at the end", used, st.used(LimitCost))
	}
	if !strings.Contains(mails[0].raw, "tokens in") {
		t.Errorf("the footer does not count the workers:\n%s", mails[0].raw)
	}
}

// TestNoBudgetForWorkers: with too little left no worker begins.
func TestNoBudgetForWorkers(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew(), func(opt *Options) { opt.Limits = Limits{Tokens: 2 * leastPart} })
	o.send(work("clerk", "say x") + "\nand " + work("clerk", "say y") + "\n" + work("clerk", "say z") + "\nsay end")
	mails := o.ended(3) // of the two at once there is enough for the second only; both forms of the mail say it
	if n := strings.Count(mails[0].raw, "Nothing of the budget"); n != 2 {
		t.Errorf("%d were refused:\n%s", n, mails[0].raw)
	}
}

// smallTask has a worker reach its limit of one tool call.
func smallTask(t *testing.T) (*office, string, Decision) {
	t.Helper()
	small := Worker{Name: "small", Description: "d", Instructions: "i", Tools: []string{"list_folder"}, Model: "runbook:mail", Limits: Limits{ToolCalls: 1}}
	o := newOffice(t, nil, crew(small))
	r := o.send(work("small", `call list_folder {"path":"/local"}`, `call list_folder {"path":"/out"}`, "say small end") + "\nsay went on")
	return o, r.Task, o.waiting(1)[0]
}

// TestWorkerLimitContinue: a worker's limit asks in the task's thread and names the worker.
func TestWorkerLimitContinue(t *testing.T) {
	t.Parallel()
	o, task, dec := smallTask(t)
	asked := strings.Join(strings.Fields(o.ofKind(Action, KindQuestion)[0].raw), " ")
	for _, want := range []string{"Worker small made one tool call", "Worker small of task " + task + " asks this (" + task + " > small)", "the worker ends with what it has"} {
		if !strings.Contains(asked, want) {
			t.Errorf("the question lacks %q:\n%s", want, asked)
		}
	}
	o.decide(dec.ID, "continue", "")
	mails := o.ended(2)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "small end") || !strings.Contains(mails[0].raw, "went on") {
		t.Errorf("mails %v", subjects(mails))
	}
	o.settledDown()
}

// TestWorkerLimitStop: stopped or not answered there, it is an error result, and the task
// goes on.
func TestWorkerLimitStop(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{"stop": "Worker small was ended by me (on the command line)", "expire": "Nobody said whether it shall go on."} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			o, task, dec := smallTask(t)
			if verb == "expire" {
				o.clock.add(8 * 24 * time.Hour)
				o.tend()
			} else {
				o.decide(dec.ID, "stop", "")
			}
			mails := o.ended(2)
			end := o.fold(task + ".1").Turns[1].Calls[0].End
			if len(mails) != 1 || !strings.Contains(mails[0].raw, "went on") || end.Status != endError || !strings.Contains(end.Content, want) {
				t.Errorf("%+v; mails %v", end, subjects(mails))
			}
			o.settledDown()
		})
	}
}

// TestStopEndsWorkers: the owner's stop of an unknown outcome of the task ends its workers,
// and the mail tells what is not known of them.
func TestStopEndsWorkers(t *testing.T) {
	t.Parallel()
	o, f, _ := newW6(t)
	o.send(`call mystery {"who":"task"}` + "\nand " + work("agent", `call mystery {"who":"worker"}`) + "\nand " + work("agent", `call send {"who":"w2"}`) + "\nsay end")
	for _, d := range o.waiting(3) {
		if d.Run == topOf(d.Run) {
			o.decide(d.ID, "stop", "")
		}
	}
	notice := o.cancelled(3)
	for _, want := range []string{"was stopped by me", "`Do mystery task`", "`Do mystery worker`"} {
		if !strings.Contains(notice.raw, want) {
			t.Errorf("the notice lacks %q:\n%s", want, notice.raw)
		}
	}
	if f.count("send w2") != 0 {
		t.Error("it was sent")
	}
}

// spoil makes a journal unreadable and the run due.
func (o *office) spoil(run string) {
	o.t.Helper()
	seq, err := o.a.lastSeq(o.t.Context(), o.me.Account, run)
	if err != nil {
		o.t.Fatal(err)
	}
	o.commit(mailbox.Append{Stream: runKey(run), Expect: seq, Events: [][]byte{{9, 'x'}}}, dueRun(run, o.clock.Now()))
}

// TestParkedWorker: a worker's run that this release cannot work is an error result.
func TestParkedWorker(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew())
	task, open := o.twoWaiting()
	o.spoil(open[0].Run)
	o.waiting(1)
	o.decide(open[1].ID, "reject", "")
	mails := o.ended(3)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "X-Pizza-Kind: result") || !strings.Contains(mails[0].raw, "something went wrong inside") {
		t.Errorf("mails %v\n%s", subjects(mails), mails[0].raw)
	}
	if r := o.run(open[0].Run); r.State != Failed || taskOf(r.ID) != task {
		t.Errorf("%+v", r)
	}
}

// TestParkedTaskEndsItsWorkers: so does the end of a task that cannot be worked.
func TestParkedTaskEndsItsWorkers(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew())
	task, open := o.twoWaiting()
	o.spoil(task + ".1")
	mails := o.ended(3)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "X-Pizza-Kind: failure") {
		t.Errorf("mails %v", subjects(mails))
	}
	for _, d := range open {
		if r := o.run(d.Run); r.State != Cancelled {
			t.Errorf("%s is %s", r.ID, r.State)
		}
		o.state(d, Dropped)
	}
	o.count(o.me.Account, Action, 0)
	o.count(o.me.Account, Running, 0)
}

// TestRestoredCountsATaskOnce: workers are no tasks of their own; stop ends them too.
func TestRestoredCountsATaskOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew())
	_, open := o.twoWaiting()
	o.clock.add(time.Minute)
	p, err := o.a.Restored(t.Context(), o.me.Account, o.clock.Now())
	if err != nil || p.Tasks != 1 || p.Decisions != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	recs, err := o.store.Lookup(t.Context(), o.me.Account, indexOpenDecisions)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		if d, err := decodeDecision(rec); err == nil && d.Kind == decisionRestored {
			o.decide(d.ID, "stop", "")
		}
	}
	o.cancelled(3)
	for _, d := range open {
		o.state(d, Dropped)
	}
}

// TestForgetTakesWorkersAlong: nothing of a worker's run outlives its task.
func TestForgetTakesWorkersAlong(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew())
	r := o.send(work("clerk", `call write_file {"path":"/out/a.txt","content":"a"}`, "say x"))
	o.ended(2)
	if _, err := o.a.Forget(t.Context(), o.me.Account, r.Task); err != nil {
		t.Fatal(err)
	}
	if runs := o.runs(o.me.Account); len(runs) != 0 {
		t.Errorf("left: %+v", runs)
	}
	if events := o.journal(childID(r.Task+".1", 1)); len(events) != 0 {
		t.Errorf("%d events left", len(events))
	}
}

// A worker has no more time than the run that gave it its work has left.
func TestWorkerTimeIsThatOfTheTask(t *testing.T) {
	t.Parallel()
	for own, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, time.Hour: 10 * time.Minute, time.Minute: time.Minute} {
		w := Worker{Name: "timed", Description: "d", Instructions: "i", Model: "runbook:mail", Limits: Limits{Time: own}}
		o := newOffice(t, nil, crew(w), func(opt *Options) { opt.Limits.Time = 10 * time.Minute })
		r := o.send(work("timed", "say x"))
		o.ended(2)
		if got := o.fold(childID(r.Task+".1", 1)).Started.Limits.Time; got != want {
			t.Errorf("own %v: %v, want %v", own, got, want)
		}
	}
	s := State{Started: &EvStarted{Limits: Limits{Time: time.Minute}}, Worked: 2 * time.Minute}
	if left := s.timeLeft(); left != 0 {
		t.Errorf("%v left of time that is used up", time.Duration(left))
	}
}

// The question of a worker says who asks.
func TestWorkerQuestionNamesIt(t *testing.T) {
	t.Parallel()
	asks := Worker{Name: "asker", Description: "d", Instructions: "i", Tools: []string{"ask_owner"}, Model: "runbook:mail"}
	o := newOffice(t, nil, crew(asks))
	r := o.send(work("asker", `call ask_owner {"question":"Which one?"}`))
	dec := o.waiting(1)[0]
	want := "Worker asker of task " + r.Task + " asks this (" + r.Task + " > asker)."
	if dec.Kind != decisionQuestion || !strings.Contains(strings.Join(strings.Fields(dec.Text), " "), want) {
		t.Errorf("the question lacks %q:\n%s", want, dec.Text)
	}
	o.decide(dec.ID, "answer", "the red one")
	o.ended(2)
	if end := o.fold(childID(r.Task+".1", 1)).Turns[1].Calls[0].End; end.Content != "the red one" {
		t.Errorf("answered %+v", end)
	}
}
