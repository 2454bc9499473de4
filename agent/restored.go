package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
)

// An account that came out of a backup begins parked when it had anything open: what
// happened after the backup was made is not known here, and a task that simply went on
// might do a second time what it did then. One mail in Action asks. Until it is answered
// no run is claimed, no window ends, nothing expires and no decision is taken, by
// whatever way; mail comes in, and tasks that are new wait with the others.
//
// The state is the record restoredKey: it is there or not, and goes in the commit that
// answers the question.

// decisionRestored is the kind of decision that ends it: continue or stop.
const decisionRestored = mail.ForRestored

const restoredKey = "restored"

// restored is the record of a parked account.
type restored struct {
	From     time.Time `json:"from"` // when the backup was made
	At       time.Time `json:"at"`   // when it was restored
	Decision string    `json:"decision"`
}

// Parked is what a restored account had open.
type Parked struct {
	Tasks     int
	Decisions int
}

// Restored parks an account that was restored from a backup made at from, with the mail
// that asks, when it has live tasks or open decisions. It is called before Run, on an
// account that nobody uses yet. An account that is parked already stays so.
func (a *Agent) Restored(ctx context.Context, account mailbox.AccountID, from time.Time) (Parked, error) {
	o, err := a.owner(ctx, account)
	if isKind(err, mailbox.NotFound) { // without a login nothing of it runs
		return Parked{}, nil
	}
	if err != nil {
		return Parked{}, err
	}
	p, list, err := a.openThings(ctx, account)
	if err != nil {
		return p, err
	}
	if _, on, err := a.parked(ctx, account); err != nil || on || p == (Parked{}) {
		return p, err
	}
	ops, err := a.askRestored(ctx, o, from, p, list)
	if err != nil {
		return p, err
	}
	return p, a.commit(ctx, account, ops...)
}

// openThings counts and lists what an account has open.
func (a *Agent) openThings(ctx context.Context, account mailbox.AccountID) (p Parked, list []string, err error) {
	runs, err := a.store.Lookup(ctx, account, indexLiveRuns)
	if err != nil {
		return p, nil, err
	}
	for _, r := range tops(runsOf(runs)) {
		p.Tasks++
		list = append(list, fmt.Sprintf("task %s: %s (%s)", r.Task, oneLine(r.Subject), stateText(r)))
	}
	open, err := a.store.Lookup(ctx, account, indexOpenDecisions)
	if err != nil {
		return p, nil, err
	}
	for _, rec := range open {
		d, err := decodeDecision(rec)
		if err != nil {
			return p, nil, err
		}
		if d.Kind != decisionRestored {
			p.Decisions++
			list = append(list, "decision "+d.ID+": "+oneLine(d.Subject))
		}
	}
	return p, list, nil
}

// askRestored writes the record and the mail.
func (a *Agent) askRestored(ctx context.Context, o owner, from time.Time, p Parked, list []string) ([]mailbox.Op, error) {
	dec := Decision{ID: newToken(), Kind: decisionRestored, State: Open, Created: a.now()}
	dec.Sentence = "This store was restored from a backup of " + a.when(from) + ": " + p.text() + " open then."
	out := a.sheet(o, KindQuestion)
	a.asks(&out, dec.ID)
	out.Subject, out.Plain = "Restored from a backup: go on or stop?", restoredText(dec.Sentence, list)
	ops, err := a.openOps(ctx, o.Account, &dec, out)
	state := mustJSON(restored{From: from, At: a.now(), Decision: dec.ID})
	return append(ops, mailbox.PutRecord{Key: restoredKey, Value: state}), err
}

func (p Parked) text() string {
	tasks, decisions := "one task", "one decision"
	if p.Tasks != 1 {
		tasks = fmt.Sprintf("%d tasks", p.Tasks)
	}
	if p.Decisions != 1 {
		decisions = fmt.Sprintf("%d decisions", p.Decisions)
	}
	if p.Tasks+p.Decisions == 1 {
		return tasks + " and " + decisions + " was"
	}
	return tasks + " and " + decisions + " were"
}

// maxListed is how many open things the mail names.
const maxListed = 100

func restoredText(sentence string, list []string) string {
	more := ""
	if n := len(list) - maxListed; n > 0 {
		list, more = list[:maxListed], fmt.Sprintf("\n- and %d more", n)
	}
	return sentence + `

Until you answer nothing runs and nothing is decided: approvals by reply, by move or
by command line do nothing. Mail comes in as usual, and new tasks wait.

What happened after the backup is not known here. A task that goes on may do a second
time what it did then.

Reply with the word continue to let everything go on.
Reply with the word stop to end the tasks that were open. New ones then run.

- ` + strings.Join(list, "\n- ") + more + "\n"
}

// parked says whether an account waits for the answer.
func (a *Agent) parked(ctx context.Context, account mailbox.AccountID) (r restored, on bool, err error) {
	rec, err := a.store.Record(ctx, account, restoredKey)
	if isKind(err, mailbox.NotFound) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	return r, true, json.Unmarshal(rec.Value, &r)
}

// rests reports whether nothing of an account is to be worked: it is parked, or that
// cannot be read.
func (a *Agent) rests(ctx context.Context, account mailbox.AccountID) bool {
	_, on, err := a.parked(ctx, account)
	if err != nil {
		a.logStore(ctx, "is it parked", err)
	}
	return on || err != nil
}

// whyParked says why nothing is decided, for the person.
func (a *Agent) whyParked(r restored) string {
	return "not decided: this store was restored from a backup of " + a.when(r.From) +
		"; first answer the mail about that in Action, with continue or stop"
}

// notParked refuses a decision of a parked account.
func (a *Agent) notParked(ctx context.Context, account mailbox.AccountID, d Decision) error {
	r, on, err := a.parked(ctx, account)
	if on && err == nil {
		err = decideError(mailbox.Refused, d, a.whyParked(r))
	}
	return err
}

// notParked refuses an act that would decide.
func (r *review) notParked() error {
	rec, on := r.view.Record(restoredKey)
	if !on {
		return nil
	}
	var p restored
	if err := json.Unmarshal(rec.Value, &p); err != nil {
		return err
	}
	return cannot(r.a.whyParked(p))
}

// byReply says how a decision is answered that no move answers.
func byReply(d Decision) error {
	switch d.Kind {
	case decisionRestored:
		return cannot("this waits for your answer by reply: continue or stop")
	case decisionLimit:
		return cannot("this asks whether to go on: answer it by reply with continue or stop")
	case decisionQuestion:
		return cannot("the agent asks you this: reply with your answer")
	}
	return cannot("this asks what came of a call: answer it by reply with happened, repeat or stop")
}

// releaseOps ends the parking: continue lets everything go on, stop ends the runs that
// were live when the account was restored.
func (a *Agent) releaseOps(ctx context.Context, account mailbox.AccountID, d Decision, version uint64, v verdict) (Decision, []mailbox.Op, error) {
	to, err := a.decidable(d, v)
	if err != nil {
		return d, nil, err
	}
	r, _, err := a.parked(ctx, account)
	if err != nil {
		return d, nil, err
	}
	d.By, d.Verb = &v.by, v.verb
	ops := append(closeOps(d, version, to), mailbox.DeleteRecord{Key: restoredKey})
	d.State = to
	if v.verb != "stop" {
		return d, ops, nil
	}
	live, err := a.store.Lookup(ctx, account, indexLiveRuns)
	if err != nil {
		return d, nil, err
	}
	for _, rec := range live {
		run, err := decodeRun(rec)
		if err != nil || run.Created.After(r.At) {
			continue // its worker parks one that does not decode
		}
		end, err := a.cancelRun(run, rec.Version, v.by)
		if err != nil {
			return d, nil, err
		}
		ops = slices.Concat(ops, end)
	}
	return d, ops, nil
}

// showAlone shows a decision that belongs to no task.
func (a *Agent) showAlone(ctx context.Context, account mailbox.AccountID, id string) (Shown, error) {
	d, _, err := a.loadDecision(ctx, account, id)
	s := Shown{Subject: d.Subject, Decision: &d}
	if d.State == Open {
		s.State, s.For, s.Open = Waiting, "question", []Decision{d}
	}
	return s, err
}
