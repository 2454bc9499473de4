package agent

import (
	"context"
	"slices"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mail"
	"pizza/mailbox"
)

// beginRun begins the next run of a thread over the mails in (at least one). It
// changes th (Active, Runs, and Sends when it tells of the cap); the caller commits
// th with the ops, and holds the mails under runHold. The first model intent is part
// of it, unless the budget does not reach so far: a worker starts with the call and needs
// no commit before.
func (a *Agent) beginRun(ctx context.Context, o owner, th *Thread, in []Inbound) ([]mailbox.Op, *Run, error) {
	now := a.now()
	th.Runs++
	run := &Run{
		ID: runID(th.Task, th.Runs), Task: th.Task, State: Queued, Inputs: in,
		Model: a.modelOf(in), Subject: in[len(in)-1].Subject, Created: now, Changed: now, From: th.From,
		Epoch: a.store.Epoch(o.Account),
	}
	th.Active = run.ID
	started, err := a.frozen(ctx, o, th, run.Model)
	if err != nil {
		return nil, nil, err
	}
	a.budget(ctx, started, in)
	events := []Event{{At: now, Started: started}}
	for _, m := range in {
		events = append(events, Event{At: now, Inbound: &m})
	}
	st, err := Fold(events)
	if err != nil {
		return nil, nil, err
	}
	if act := Next(st); act.Do == DoCall && !a.capped(ctx, o.Login, run.Model) { // else a worker looks first
		events = append(events, Event{At: now, Intent: act.intent(a.store.Epoch(o.Account))})
	}
	run.Seq = uint64(len(events))

	at, ops, err := a.throttle(ctx, o, th, run)
	if err != nil {
		return nil, nil, err
	}
	status, err := a.showStatus(ctx, o, th, run, nil)
	if err != nil {
		return nil, nil, err
	}
	ops = append(ops, appendOp(run.ID, 0, events...))
	ops = append(ops, status...)
	a.adopt(o.Account)
	return append(ops, runPut(*run, 0), dueRun(run.ID, at)), run, nil
}

// started freezes what the first run of a thread works with.
func (a *Agent) started(ctx context.Context, o owner, model string) *EvStarted {
	e := &EvStarted{Model: model, System: systemPrompt(o), Limits: a.opt.Limits, Window: a.window(ctx, model)}
	for _, t := range a.specs() {
		e.Tools = append(e.Tools, toModel(t))
	}
	return e
}

// modelOf is the model the newest mail asks for, or the default.
func (a *Agent) modelOf(in []Inbound) string {
	for _, m := range slices.Backward(in) {
		if m.Model != "" {
			return m.Model
		}
	}
	return a.opt.Models.Default()
}

// throttle says when a run may start: now, or when the thread has had fewer than
// Options.Sends mails of ours within the hour (invariant 7). The first run that has
// to wait is told by mail, and only the first.
func (a *Agent) throttle(ctx context.Context, o owner, th *Thread, run *Run) (time.Time, []mailbox.Op, error) {
	now, limit := a.now(), a.opt.Sends
	th.forget(now)
	if len(th.Sends) < limit {
		return now, nil, nil
	}
	at := time.Unix(th.Sends[len(th.Sends)-limit], 0).Add(sendsWithin)
	run.State, run.For, run.Doing = Waiting, forMails, Doing{Until: at}
	if len(th.Sends) > limit {
		return at, nil, nil
	}
	out := a.letter(o, th, KindNotice, run.ID, run.Inputs[len(run.Inputs)-1])
	out.Plain = cappedText(limit, a.when(at))
	ops, err := a.deliver(ctx, o, out, MessageRef{Task: th.Task, Run: run.ID, Kind: KindNotice, Ours: true})
	th.Sends = append(th.Sends, now.Unix())
	return at, ops, err
}

// forMails is what a run waits for when its thread had its mails of the hour.
const forMails = "a later time: its thread had very many mails within the hour"

// sendsWithin is the time over which a thread's mails are counted.
const sendsWithin = time.Hour

// forget drops the times of mails that no longer count. A clock that went back
// leaves none in the future.
func (th *Thread) forget(now time.Time) {
	th.Sends = slices.DeleteFunc(th.Sends, func(t int64) bool {
		return now.Sub(time.Unix(t, 0)).Abs() >= sendsWithin
	})
}

// deliver makes the ops that put a mail of ours unread into INBOX.
func (a *Agent) deliver(ctx context.Context, o owner, out mail.Outgoing, ref MessageRef) ([]mailbox.Op, error) {
	add, err := a.post(ctx, o.Account, out, mailbox.AddMessage{Places: []mailbox.MailboxID{mailbox.Inbox}})
	if err != nil {
		return nil, err
	}
	ref.Message = add.ID
	return []mailbox.Op{add, refPut(out.MessageID, ref)}, nil
}

// showStatus makes the ops that replace a run's message in Running, and notes in run
// what it shows. live are its workers.
func (a *Agent) showStatus(ctx context.Context, o owner, th *Thread, run *Run, live []liveRun) ([]mailbox.Op, error) {
	out := a.letter(o, th, KindStatus, run.ID, run.Inputs[len(run.Inputs)-1])
	s := mail.Status{
		Task: run.Task, Subject: run.Subject, State: string(run.State), For: run.For, Model: run.Model,
		Since: a.local(run.Created), Now: a.local(a.now()), Steps: run.Steps, Last: run.Last,
		Origin: run.origin(), Workers: a.workerLines(o.Account, live),
	}
	if run.State != Queued { // what it did before it was queued is over
		s.Doing = a.doingLine(run.Doing)
	}
	out.Subject, out.Plain, out.AutoSubmitted = mail.StatusSubject(s), mail.StatusText(s), "auto-generated"
	add, err := a.post(ctx, o.Account, out, mailbox.AddMessage{
		Places: []mailbox.MailboxID{Running}, Flags: []imap.Flag{imap.FlagSeen}, Tag: statusTag(run.ID),
	})
	if err != nil {
		return nil, err
	}
	var ops []mailbox.Op
	if run.Status != 0 {
		if err := a.noteReplaced(ctx, o.Account, run); err != nil {
			return nil, err
		}
		ops = append(ops, mailbox.RemoveEntry{Message: run.Status, Mailbox: Running, IfPresent: true})
	}
	run.Status, run.Shown, run.ShownAt = add.ID, run.State, a.now()
	run.ShownSeq, run.Tells = run.Seq, run.Doing.What
	ref := MessageRef{Task: run.Task, Run: run.ID, Kind: KindStatus, Ours: true}
	return append(ops, add, refPut(out.MessageID, ref)), nil
}

// maxReplaced is how many replaced status messages of a run are remembered: a program
// that was not told of that many changes has not been there for minutes.
const maxReplaced = 16

// noteReplaced keeps the UID of the status message that is about to be replaced: a
// program may still show it, and the person may delete it there to cancel the task.
func (a *Agent) noteReplaced(ctx context.Context, account mailbox.AccountID, run *Run) error {
	places, err := a.store.Places(ctx, account, run.Status)
	if err != nil && !isKind(err, mailbox.NotFound) {
		return err
	}
	for _, p := range places {
		if p.Mailbox == Running {
			run.Replaced = append(run.Replaced, p.Entry.UID)
		}
	}
	run.Replaced = run.Replaced[max(0, len(run.Replaced)-maxReplaced):]
	return nil
}

// lastDone names the newest thing a run did, for its status.
func lastDone(st *State) string {
	for i := len(st.Turns) - 1; i >= 0; i-- {
		for _, c := range slices.Backward(st.Turns[i].Calls) {
			if c.End != nil {
				return c.Name
			}
		}
	}
	return ""
}
