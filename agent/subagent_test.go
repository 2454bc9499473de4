package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// crew are the workers of the tests: clerk does what its prompt says, line by line.
func crew(extra ...Worker) func(*Options) {
	list := append([]Worker{{
		Name: "clerk", Description: "does as told", Instructions: "Do as told.",
		Tools: []string{"read_file", "edit_file", "list_*", "write_file"}, Model: "runbook:mail",
	}}, extra...)
	return func(o *Options) { o.Subagents = func() []Worker { return list } }
}

// work is a call of task with the lines of a prompt.
func work(worker string, lines ...string) string {
	return fmt.Sprintf("call task %s", mustJSON(taskArgs{Worker: worker, Prompt: strings.Join(lines, "\n")}))
}

func workArgs(worker string, lines ...string) string {
	return string(mustJSON(taskArgs{Worker: worker, Prompt: strings.Join(lines, "\n")}))
}

// run reads the record of a run.
func (d *desk) run(id string) Run {
	d.t.Helper()
	r, err := d.a.runRecord(d.t.Context(), d.me.Account, id)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *desk) fold(run string) State {
	d.t.Helper()
	s, err := Fold(d.journal(run))
	if err != nil {
		d.t.Fatalf("journal of %s: %v", run, err)
	}
	return s
}

// TestWorkersWorkAtTheSameTime: several calls of one reply are runs of their own, on fewer
// workers of the server than there are runs; the results come back in one reply.
func TestWorkersWorkAtTheSameTime(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew(), func(opt *Options) { opt.Workers = 1 })
	o.file("a.txt", "alpha")
	o.file("b.txt", "beta")
	r := o.send(work("clerk", `call read_file {"path":"/local/docs/a.txt"}`, "say first") + "\nand " +
		work("clerk", `call read_file {"path":"/local/docs/b.txt"}`, "say second") + "\nand " +
		work("clerk", "say third") + "\nsay all done")
	mails := o.ended(4)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "X-Pizza-Kind: result") {
		t.Fatalf("mails: %v", subjects(mails))
	}
	for _, want := range []string{"all done", "first", "alpha", "second", "beta", "third", "X-Pizza-Usage: steps=7; tools=5;", "7 steps"} {
		if !strings.Contains(mails[0].raw, want) {
			t.Errorf("the result lacks %q:\n%s", want, mails[0].raw)
		}
	}
	for n := 1; n <= 3; n++ {
		id := childID(r.Task+".1", n)
		run, st := o.run(id), o.fold(id)
		if run.State != Done || run.Result != "" || run.Path[0] != "clerk" || st.Started.Worker != "clerk" || st.Started.Limits.ToolCalls != 80 {
			t.Errorf("%s: %+v, %+v", id, run, st.Started)
		}
		if !strings.HasPrefix(st.Started.System, "Do as told.") || !strings.Contains(st.Started.System, dataRule) || len(st.Started.Tools) != 5 { // its four and read_result
			t.Errorf("%s started with %d tools and %q", id, len(st.Started.Tools), st.Started.System)
		}
	}
	if top := o.fold(r.Task + ".1"); top.ModelCalls != 2 || top.Below.ModelCalls != 5 {
		t.Errorf("the task called its model %d times, its workers %d", top.ModelCalls, top.Below.ModelCalls)
	}
	o.settledDown()
}

// TestWorkerFilesComeBack: what lay in /out a worker can read, and what it makes there is
// the task's.
func TestWorkerFilesComeBack(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew())
	o.send(`call write_file {"path":"/out/draft.txt","content":"draft"}` + "\n" +
		work("clerk", `call read_file {"path":"/out/draft.txt"}`, `call write_file {"path":"/out/final.txt","content":"final words"}`) +
		"\n" + `call read_file {"path":"/out/final.txt"}`)
	mails := o.ended(2)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "final words") || strings.Count(mails[0].raw, "attachment; filename") != 2 {
		t.Errorf("the result:\n%s", mails[0].raw)
	}
}

// TestWorkerIsHeldToItsTools: a worker has what its declaration names, whatever it calls.
func TestWorkerIsHeldToItsTools(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew())
	o.file("a.txt", "alpha")
	r := o.send(work("clerk", `call delete_file {"path":"/local/docs/a.txt"}`, `call task {"worker":"clerk","prompt":"say no"}`, "say tried"))
	mails := o.ended(2)
	if o.read("a.txt") != "alpha" {
		t.Error("it deleted the file")
	}
	for _, c := range o.fold(childID(r.Task+".1", 1)).Turns {
		for _, call := range c.Calls {
			if call.End.Status != endError || !strings.Contains(call.End.Content, "for this worker") {
				t.Errorf("%s: %+v", call.Name, call.End)
			}
		}
	}
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "tried") {
		t.Errorf("mails: %v", subjects(mails))
	}
}

// TestModelsWordsAreNoProgram: what a model asks a worker of the runbook is not the login's
// text, and nothing of it is done.
func TestModelsWordsAreNoProgram(t *testing.T) {
	t.Parallel()
	model := providertest.Script(
		providertest.Calls(providers.ToolCall{ID: "t1", Name: "task", Args: []byte(workArgs("clerk", `call list_folder {"path":"/local"}`, "say obeyed"))}),
		providertest.Say("done"))
	o := newOffice(t, model, crew())
	r := o.send("please")
	o.ended(2)
	st := o.fold(childID(r.Task+".1", 1))
	if st.ToolCalls != 0 || st.Turns[0].Inbound.Login {
		t.Errorf("it made %d calls; the prompt: %+v", st.ToolCalls, st.Turns[0].Inbound)
	}
	if err := model.Err(); err != nil {
		t.Error(err)
	}
}

// TestWorkersDenied: what cannot be given away is an error result in words.
func TestWorkersDenied(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew(Worker{Name: "broken", Description: "d", Instructions: "i", Tools: []string{"no_such_tool"}}),
		func(opt *Options) { opt.WorkerFanout = 2 })
	r := o.send(work("nobody", "say x") + "\nand " + work("broken", "say x") + "\nand " + work("clerk", "say 1") + "\nand " +
		work("clerk", "say 2") + "\nand " + work("clerk", "say 3") + "\nand " + work("clerk", " ") + "\nsay end")
	o.ended(3)
	want := []string{`There is no worker "nobody". There are: clerk.`, `The worker broken is off: there is no tool "no_such_tool".`, "1", "2", "2 workers are at work", "The prompt is empty"}
	for i, c := range o.fold(r.Task + ".1").Turns[1].Calls {
		if !strings.HasPrefix(c.End.Content, want[i]) {
			t.Errorf("call %d: %q, want %q", i, c.End.Content, want[i])
		}
	}
	on, off := o.a.Subagents()
	if len(on) != 1 || len(off) != 1 || off[0].Name != "broken" {
		t.Errorf("on %v, off %v", on, off)
	}
	text, err := o.a.statusText(t.Context(), o.me.Account)
	if err != nil || !strings.Contains(text, "broken: there is no tool") {
		t.Errorf("status: %s, %v", text, err)
	}
}

// TestWorkersOfWorkers: with a depth of two a worker that declares task gives work on, and
// its worker cannot.
func TestWorkersOfWorkers(t *testing.T) {
	t.Parallel()
	boss := Worker{Name: "boss", Description: "gives work on", Instructions: "Give work on.", Tools: []string{"task", "read_file"}}
	for depth, want := range map[int]int{1: 2, 2: 3} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, nil, crew(boss), func(opt *Options) { opt.WorkerDepth = depth })
			r := o.send(work("boss", work("clerk", "say deep"), "say boss done"))
			mails := o.ended(want)
			if deep := strings.Contains(mails[0].raw, "deep\r\n"); deep != (depth == 2) {
				t.Errorf("the result:\n%s", mails[0].raw)
			}
			if depth == 2 {
				if run := o.run(r.Task + ".1.1.1"); run.path() != r.Task+" > boss > clerk" || taskOf(run.ID) != r.Task || topOf(run.ID) != r.Task+".1" {
					t.Errorf("%s: %s", run.ID, run.path())
				}
				if top := o.fold(r.Task + ".1"); top.Spent().ModelCalls != 5 {
					t.Errorf("%d model calls in all", top.Spent().ModelCalls)
				}
			}
			o.settledDown()
		})
	}
}

// TestWorkerThatFails: its failure is an error result with the reason, no mail, and the
// task goes on.
func TestWorkerThatFails(t *testing.T) {
	t.Parallel()
	small := Worker{Name: "small", Description: "d", Instructions: "i", Tools: []string{"list_folder"}, Model: "runbook:mail", Limits: Limits{ToolCalls: 1}}
	o := newOffice(t, nil, crew(small))
	r := o.send(work("clerk", "fail the world ended") + "\n" + work("clerk", "say fine") + "\nsay went on")
	mails := o.ended(3)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "went on") || !strings.Contains(mails[0].raw, "the world ended") || !strings.Contains(mails[0].raw, "fine") {
		t.Errorf("mails: %v\n%s", subjects(mails), mails[0].raw)
	}
	if run := o.run(r.Task + ".1.1"); run.State != Failed || run.Error == "" {
		t.Errorf("%+v", run)
	}
	end := o.fold(r.Task + ".1").Turns[1].Calls[0].End
	if end.Status != endError || !strings.HasPrefix(end.Content, "Worker clerk failed: its model runbook:mail failed (failed): the world ended.") {
		t.Errorf("%+v", end)
	}
	o.settledDown()
}

// TestWorkersShown: the status message tells each worker, the mail of a decision its path,
// and Show has the tree.
func TestWorkersShown(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew())
	o.file("a.txt", "END")
	r := o.send(work("clerk", `call list_folder {"path":"/local"}`, `call edit_file {"path":"/local/docs/a.txt","old":"END","new":"x END"}`) + "\nsay end")
	dec := o.waiting(1)[0]
	child := childID(r.Task+".1", 1)
	if dec.Run != child || dec.Task != r.Task {
		t.Fatalf("decision of %s", dec.Run)
	}
	asked := o.ofKind(Action, KindApproval)
	path := fmt.Sprintf("Worker clerk of task %s asks this (%s > clerk).", r.Task, r.Task)
	if len(asked) != 1 || !strings.Contains(strings.Join(strings.Fields(asked[0].raw), " "), path) || !strings.Contains(asked[0].raw, "In-Reply-To: <m1@test>") {
		t.Errorf("the approval:\n%s", asked[0].raw)
	}
	status := o.count(o.me.Account, Running, 1)[0]
	for _, want := range []string{"waiting for its workers", "Workers:", "clerk: waiting for your approval (see Action), 2 steps, last list_folder", "Asks:  Change the file a.txt"} {
		if !strings.Contains(status.raw, want) {
			t.Errorf("the status lacks %q:\n%s", want, status.raw)
		}
	}
	shown, err := o.a.Show(t.Context(), o.me.Account, r.Task)
	if err != nil || len(shown.Runs) != 2 || shown.Runs[0].ID != r.Task+".1" || shown.Runs[1].ID != child || shown.For != forWorkers || len(shown.Open) != 1 {
		t.Fatalf("%+v, %v", shown, err)
	}
	if line := shown.Runs[1].Lines[1].Text; !strings.HasPrefix(line, "asked: call list_folder") {
		t.Errorf("line %q", line)
	}
	if one, err := o.a.Show(t.Context(), o.me.Account, child); err != nil || len(one.Runs) != 1 || one.State != Waiting || one.For != decisionApproval || len(one.Open) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	if text, err := o.a.statusText(t.Context(), o.me.Account); err != nil || !strings.Contains(text, "Live tasks: 1\n") {
		t.Errorf("%s, %v", text, err)
	}
	o.decide(r.Task, "approve", "")
	o.ended(2)
	if got := o.read("a.txt"); got != "x END" {
		t.Errorf("a.txt: %q", got)
	}
	o.settledDown()
}

// cancelled checks that a task and its workers ended by one mail, the notice.
func (o *office) cancelled(n int) shown {
	o.t.Helper()
	mails := o.ended(n)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "X-Pizza-Kind: notice") {
		o.t.Fatalf("mails: %v", subjects(mails))
	}
	for _, r := range o.runs(o.me.Account) {
		if r.State != Cancelled {
			o.t.Errorf("%s is %s", r.ID, r.State)
		}
	}
	o.settledDown()
	return mails[0]
}

// twoWaiting begins a task of which two workers wait for an approval.
func (o *office) twoWaiting() (task string, open []Decision) {
	o.t.Helper()
	o.file("a.txt", "END")
	edit := `call edit_file {"path":"/local/docs/a.txt","old":"END","new":"x END"}`
	r := o.send(work("clerk", edit, "say one") + "\nand " + work("clerk", edit, "say two") + "\nsay end")
	return r.Task, o.waiting(2)
}

// TestCancelCascades: however the task is cancelled while its workers wait for approvals,
// all end, nothing of it happens, and one mail tells it.
func TestCancelCascades(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*office, string, Decision){
		"command": func(o *office, task string, _ Decision) {
			if err := o.a.Cancel(o.t.Context(), o.me.Account, task, by("me")); err != nil {
				o.t.Error(err)
			}
		},
		"decision": func(o *office, _ string, dec Decision) { o.decide(dec.ID, "cancel", "") },
		"reply": func(o *office, _ string, dec Decision) {
			o.mustGive(o.me, o.message(o.me, "cancel task", "In-Reply-To: <"+dec.MailID+">"), "pizza+a."+dec.ID+"@localhost")
		},
		"status message": func(o *office, _ string, _ Decision) {
			status := o.count(o.me.Account, Running, 1)[0]
			o.mustAct(mailbox.MoveEntries{From: Running, To: Trash, UIDs: o.uid(Running, status.id)})
		},
		"after a restart": func(o *office, task string, _ Decision) {
			o.reopen(o.t)
			if err := o.a.Cancel(o.t.Context(), o.me.Account, task, by("me")); err != nil {
				o.t.Error(err)
			}
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, nil, crew())
			task, open := o.twoWaiting()
			way(o, task, open[0])
			o.cancelled(3)
			if o.read("a.txt") != "END" {
				t.Error("it was done")
			}
			for _, dec := range open {
				o.state(dec, Dropped)
			}
		})
	}
}

// TestWorkerCancelledAlone: a worker's own id ends it and leaves the task, which is told.
func TestWorkerCancelledAlone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, crew())
	task, open := o.twoWaiting()
	slices.SortFunc(open, func(x, y Decision) int { return strings.Compare(x.Run, y.Run) })
	if err := o.a.Cancel(t.Context(), o.me.Account, open[0].Run, by("me")); err != nil {
		t.Fatal(err)
	}
	o.waiting(1)
	o.decide(open[1].ID, "approve", "")
	mails := o.ended(3)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "Worker clerk was ended by me (on the command line) before it was done.") || !strings.Contains(mails[0].raw, "two") {
		t.Errorf("mails: %v\n%s", subjects(mails), mails[0].raw)
	}
	if r := o.run(task + ".1"); r.State != Done {
		t.Errorf("the task is %s", r.State)
	}
	o.settledDown()
}
