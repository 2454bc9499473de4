package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"pizza/internal/crockford"
	"pizza/mailbox"
	"pizza/providers"
)

// Shown is all there is to tell about a task.
type Shown struct {
	Task    string   `json:"task"`
	Subject string   `json:"subject"`
	State   RunState `json:"state"`         // of the newest run
	For     string   `json:"for,omitempty"` // what it waits for
	// Refused is the provider or model whose key it, or a worker of it, waits for; Why is
	// why that is refused.
	Refused string     `json:"refused,omitempty"`
	Why     string     `json:"why,omitempty"`
	Text    string     `json:"text,omitempty"`  // what the newest run ended with
	Queue   int        `json:"queue,omitempty"` // mails that wait for the next run
	Runs    []ShownRun `json:"runs"`            // oldest first
	// From is where the task branched off another one; Branches are the tasks that did from it.
	From     *Fork      `json:"from,omitempty"`
	Branches []string   `json:"branches,omitempty"`
	Open     []Decision `json:"open,omitempty"` // decisions that wait, oldest first
	// Decision is the one that was asked for by its id, open or not.
	Decision *Decision `json:"decision,omitempty"`
}

// ShownRun is a run with its journal in words.
type ShownRun struct {
	Run
	Usage providers.Usage `json:"usage"`
	Text  string          `json:"text,omitempty"` // what it ended with
	Lines []Line          `json:"lines"`
}

// Line is one event of a journal.
type Line struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	Text string    `json:"text"` // one line
}

// Found says what an id names.
type Found struct {
	Task, Run, Decision string // Run and Decision are empty unless the id names one
}

// Find says what id names in an account: a task, a run or a decision, in any letter
// case. *mailbox.Error NotFound when it names none.
func (a *Agent) Find(ctx context.Context, account mailbox.AccountID, id string) (Found, error) {
	typed, id := id, crockford.Fold(id)
	if d, _, err := a.loadDecision(ctx, account, id); err == nil {
		return Found{Task: d.Task, Run: d.Run, Decision: d.ID}, nil
	} else if !isKind(err, mailbox.NotFound) {
		return Found{}, err
	}
	f := Found{Task: taskOf(id)}
	key := threadKey(id)
	if f.Task != id {
		f.Run, key = id, runKey(id)
	}
	_, err := a.store.Record(ctx, account, key)
	if th := a.forgottenTask(ctx, account, id); th != nil {
		return Found{}, a.forgotten(th)
	}
	if isKind(err, mailbox.NotFound) {
		return Found{}, noSuchRun(typed)
	}
	return f, err
}

// runsOf decodes the run records among recs; one that does not decode is left out,
// its worker parks it.
func runsOf(recs []mailbox.Record) []Run {
	var runs []Run
	for _, rec := range recs {
		var r Run
		if strings.HasPrefix(rec.Key, runKey("")) && json.Unmarshal(rec.Value, &r) == nil {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(x, y Run) int {
		if x.Task == y.Task {
			return inTree(x, y)
		}
		return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
	})
	return runs
}

// Show tells everything about the task that id names or belongs to; of a run or a
// decision, with that run only. *mailbox.Error NotFound when it names nothing.
func (a *Agent) Show(ctx context.Context, account mailbox.AccountID, id string) (Shown, error) {
	f, err := a.Find(ctx, account, id)
	if isKind(err, mailbox.NotFound) {
		if ask, _, askErr := a.asked(ctx, account, crockford.Fold(id)); askErr == nil {
			d := ask.decision(crockford.Fold(id))
			return Shown{Subject: d.Subject, State: Waiting, For: "question", Open: []Decision{d}, Decision: &d}, nil
		}
	}
	if err != nil {
		return Shown{}, err
	}
	if f.Task == "" { // a decision of no task: restored
		return a.showAlone(ctx, account, f.Decision)
	}
	return a.showTask(ctx, account, f)
}

// showTask tells of a task what f names.
func (a *Agent) showTask(ctx context.Context, account mailbox.AccountID, f Found) (Shown, error) {
	th, _, err := a.thread(ctx, account, f.Task)
	if err != nil {
		return Shown{}, err
	}
	recs, err := a.store.Lookup(ctx, account, indexOfTask+f.Task)
	if err != nil {
		return Shown{}, err
	}
	s := Shown{Task: f.Task, Subject: th.Subject, Queue: len(th.Queue), From: th.From}
	branches, err := a.branches(ctx, account, f.Task)
	if err != nil {
		return Shown{}, err
	}
	for _, b := range branches {
		s.Branches = append(s.Branches, b.Task)
	}
	if th.Runs == 0 {
		s.State, s.Text = Done, "Nothing was sent to this task yet."
	}
	if err := a.showRuns(ctx, account, &s, runsOf(recs), f); err != nil {
		return Shown{}, err
	}
	s.Open, s.Decision = openOf(recs, f)
	if n := len(s.Runs); n > 0 {
		month, err := a.askedOfMonth(ctx, account, s.Runs[n-1].Run)
		if err != nil {
			return Shown{}, err
		}
		s.Open = append(s.Open, month...)
	}
	return s, nil
}

// showRuns adds the runs to s, with their journals those that f names.
func (a *Agent) showRuns(ctx context.Context, account mailbox.AccountID, s *Shown, runs []Run, f Found) error {
	for _, r := range runs {
		r.State = a.stateNow(account, r)
		if why := a.whyRefused(ctx, account, r); why != "" {
			s.Refused, s.Why = r.Refused, why
		}
		if !r.child() {
			s.State, s.For = r.State, r.For
		}
		if f.Run != "" && f.Run != r.ID && !isBelow(r.ID, f.Run) {
			continue
		}
		run, err := a.showRun(ctx, account, r)
		if err != nil {
			return err
		}
		s.Runs = append(s.Runs, run)
		if !r.child() || f.Run == r.ID {
			s.Text = run.Text
		}
	}
	if f.Run != "" && len(s.Runs) > 0 {
		s.State, s.For = s.Runs[0].State, s.Runs[0].For
	}
	return nil
}

// openOf are the open decisions among records, and the one asked for.
func openOf(recs []mailbox.Record, f Found) (open []Decision, asked *Decision) {
	for _, d := range decisionsOf(recs) {
		if f.Run != "" && d.Run != f.Run && !isBelow(d.Run, f.Run) {
			continue
		}
		if d.State.undecided() {
			open = append(open, d)
		}
		if d.ID == f.Decision {
			asked = &d
		}
	}
	return open, asked
}

// showRun puts a journal into words. What does not decode is told as such.
func (a *Agent) showRun(ctx context.Context, account mailbox.AccountID, r Run) (ShownRun, error) {
	run := ShownRun{Run: r}
	var tell teller
	err := a.store.Events(ctx, account, runKey(r.ID), 1, func(seq uint64, b []byte) error {
		l, e := tell.line(seq, b)
		if e.Reply != nil {
			run.Usage = run.Usage.Add(e.Reply.Reply.Usage)
		}
		if e.Compacted != nil {
			run.Usage = run.Usage.Add(e.Compacted.Usage)
		}
		if e.Finished != nil {
			run.Text = e.Finished.Text
		}
		run.Lines = append(run.Lines, l)
		return nil
	})
	if isKind(err, mailbox.NotFound) {
		err = nil
	}
	return run, err
}

// teller puts the events of a journal into words, in order.
type teller struct {
	names map[string]string // of calls, by id
}

// line tells an event as it is stored. One that does not decode is told as such.
func (t *teller) line(seq uint64, b []byte) (Line, Event) {
	e, err := decodeEvent(b)
	if err != nil {
		return Line{Seq: seq, Text: "cannot be read by this release"}, Event{}
	}
	if e.Reply != nil {
		for _, c := range callsOf(e.Reply.Reply.Message) {
			if t.names == nil {
				t.names = map[string]string{}
			}
			t.names[c.ID] = callName(c)
		}
	}
	return Line{Seq: seq, At: e.At, Text: oneLine(e.words(t.names))}, e
}

// short is text cut to a line.
func short(s string) string { return strings.ToValidUTF8(clip(oneLine(s), 200), "") }

// words tells an event to a person.
func (e Event) words(names map[string]string) string {
	call := cmp.Or(names[e.callID()], e.callID(), "going on")
	switch {
	case e.Started != nil:
		return "started with " + e.Started.Model
	case e.Inbound != nil && e.Inbound.Prompt != "":
		return "asked: " + short(e.Inbound.Prompt)
	case e.Inbound != nil:
		return "mail: " + e.Inbound.Subject
	case e.Intent != nil && e.Intent.Cut != nil:
		return fmt.Sprintf("model call %d, for a summary of earlier steps", e.Intent.N)
	case e.Intent != nil:
		return fmt.Sprintf("model call %d", e.Intent.N)
	case e.Reply != nil:
		return e.replyWords()
	case e.Compacted != nil:
		return e.Compacted.words()
	case e.ModelFail != nil && e.ModelFail.Stopped:
		return "model call cut off: the server stopped"
	case e.ModelFail != nil && e.ModelFail.Retry.IsZero():
		return fmt.Sprintf("model failed (%s): %s", e.ModelFail.Class, e.ModelFail.Text)
	case e.ModelFail != nil:
		return fmt.Sprintf("model failed (%s), tried again later: %s", e.ModelFail.Class, e.ModelFail.Text)
	case e.Policy != nil:
		return e.Policy.words(call)
	case e.Asked != nil && e.Asked.Call == "":
		return fmt.Sprintf("asks you whether to go on: its limit of %s, decision %s", e.Asked.Limit.words(), e.Asked.Decision)
	case e.Asked != nil:
		return fmt.Sprintf("%s: asks you, decision %s", call, e.Asked.Decision)
	case e.Decided != nil:
		return e.decidedWords(call)
	case e.ToolStart != nil && e.ToolStart.Probe:
		return fmt.Sprintf("%s: looked whether it happened%s", call, attempt(e.ToolStart.Attempt))
	case e.ToolStart != nil:
		return call + " begins" + attempt(e.ToolStart.Attempt)
	case e.ToolEnd != nil:
		return fmt.Sprintf("%s: %s: %s", call, e.ToolEnd.Status, short(e.ToolEnd.Content))
	case e.Cancel != nil:
		return fmt.Sprintf("cancelled by %s", e.Cancel.By.who())
	case e.Finished != nil:
		return "ended: " + string(e.Finished.State)
	}
	return "nothing"
}

// attempt counts from the second time on.
func attempt(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", n)
}

// words says what the rules make of a call.
func (e *EvPolicy) words(call string) string {
	rule := map[string]string{"allow": "allowed", "ask": "needs your decision", "deny": "denied"}[e.Rule]
	text := call + ": " + cmp.Or(rule, e.Rule)
	if e.By != "" {
		text += " (rule " + e.By + ")"
	}
	return text
}

// words names a limit to a person.
func (l Limit) words() string {
	switch l {
	case LimitCost:
		return "money"
	case LimitMonth:
		return "the month"
	case LimitContext:
		return "what its model can take"
	case LimitWait:
		return "how long a provider is waited for"
	}
	return strings.ReplaceAll(string(l), "_", " ")
}

func (e Event) replyWords() string {
	m := e.Reply.Reply.Message
	text := short(textOf(m))
	for _, c := range callsOf(m) {
		text += " " + c.Name + " " + short(string(c.Args))
	}
	return "model: " + strings.TrimSpace(text)
}

func (e Event) decidedWords(call string) string {
	verb := e.Decided.Verb
	if e.Decided.N > 0 {
		verb += fmt.Sprintf(" %d", e.Decided.N)
	}
	text := fmt.Sprintf("%s: %s by %s", call, verb, e.Decided.By.who())
	if len(e.Decided.Args) > 0 {
		text += ": " + short(string(e.Decided.Args))
	}
	if e.Decided.Again {
		text += ", asked once more"
	}
	if e.Decided.Text != "" {
		text += ": " + short(e.Decided.Text)
	}
	return text
}
