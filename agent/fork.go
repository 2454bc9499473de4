package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
)

// A reply whose first line is fork begins a task of its own that knows the thread up to
// the run which the answered mail belongs to. Nothing is copied: its runs read the
// journals of the other task (history.go), as far as they went when it branched off.

// Fork is where a task branched off another one; or, without a run, that the mail it
// began with answers a task that was forgotten.
type Fork struct {
	Task    string    `json:"task"`
	Run     string    `json:"run,omitempty"` // the last one that the branch knows
	Seq     uint64    `json:"seq,omitempty"` // of its journal then: what came later is not known
	At      time.Time `json:"at"`
	Subject string    `json:"subject,omitempty"` // of Task
}

// String says it to a person, in one line; nothing of nil.
func (f *Fork) String() string {
	switch {
	case f == nil:
		return ""
	case f.Run == "":
		return "Answers task " + f.Task + ", which was forgotten: this one is new and knows nothing of it."
	}
	return fmt.Sprintf("Branched off from task %s (%s) after its run %s.", f.Task, oneLine(clip(f.Subject, 100)), f.Run)
}

// origin is where the first run of a task tells that it came from.
func (r *Run) origin() string {
	if runNumber(r.ID) != 1 {
		return ""
	}
	return r.From.String()
}

// runNumber is n of the run id <task>.<n>, 0 of anything else.
func runNumber(id string) int {
	_, n, _ := strings.Cut(id, ".")
	number, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return number
}

// forkReply begins a branch when a reply to a mail of the person's own begins with fork.
// To a mail of ours wordReply does.
func (a *Agent) forkReply(ctx context.Context, in *intake, p *plan, ref MessageRef) (bool, error) {
	if ref.Task == "" {
		return false, nil
	}
	r, err := mail.Read(in.body, in.body.Size(), in.structure, "")
	if err != nil {
		return false, err
	}
	d, outcome, _ := mail.ParseDecision(mail.ForResult, r.New)
	if outcome != mail.Decided || d.Verb != mail.Fork {
		return false, nil
	}
	return a.forkOps(ctx, in, p, ref, d.Text != "" || len(r.Attachments) > 0)
}

// forkOps begins the branch. When the mail asks for nothing (says) it has no run yet: a
// notice in its thread waits for the first mail. done is false when the task to branch off
// from is gone.
func (a *Agent) forkOps(ctx context.Context, in *intake, p *plan, ref MessageRef, says bool) (done bool, err error) {
	src, version, err := a.thread(ctx, in.account(), ref.Task)
	if isKind(err, mailbox.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	from, err := a.forkPoint(ctx, in, src, ref)
	if err != nil {
		return false, err
	}
	th := &Thread{Task: newTaskID(), Token: newToken(), Subject: in.structure.Subject, Created: a.now(),
		From: from, Depth: src.Depth, Scope: src.Scope}
	msg := in.inbound(p.msg.ID)
	msg.Fork = true
	th.follow(msg.MessageID)
	p.receipt.Task = th.Task
	p.receipt.Note = "a new task, branched off from " + from.Task + " after its run " + from.Run
	p.add(mailbox.CheckRecord{Key: threadKey(src.Task), Version: version}) // it is not forgotten meanwhile
	p.add(in.refOps(MessageRef{Task: th.Task, Message: p.msg.ID})...)
	if says {
		ops, run, err := a.beginRun(ctx, in.owner, th, []Inbound{msg})
		if err != nil {
			return false, err
		}
		p.msg.Hold = append(p.msg.Hold, runHold(run.ID))
		p.add(ops...)
	} else {
		out := a.letter(in.owner, th, KindNotice, "", msg)
		out.Plain = from.String() + "\n\nReply to this mail with what is to be done; the other task stays as it is.\n"
		ops, err := a.deliver(ctx, in.owner, out, MessageRef{Task: th.Task, Kind: KindNotice, Ours: true})
		if err != nil {
			return false, err
		}
		th.joined(out)
		p.add(ops...)
	}
	p.add(threadPut(th, 0))
	return true, nil
}

// forkPoint is where a branch begins that answers a mail of a thread: after the run that
// the mail belongs to, else after the newest one.
func (a *Agent) forkPoint(ctx context.Context, in *intake, src *Thread, ref MessageRef) (*Fork, error) {
	if src.Runs == 0 && src.From != nil { // a branch to which nobody wrote yet
		from := *src.From
		return &from, nil
	}
	from := &Fork{Task: src.Task, At: a.now(), Subject: src.Subject}
	answers := in.structure.InReplyTo
	if n := len(in.structure.References); len(answers) == 0 && n > 0 {
		answers = in.structure.References[n-1:]
	}
	for n := src.Runs; n >= 1; n-- {
		run, err := a.runRecord(ctx, in.account(), runID(src.Task, n))
		if err != nil {
			return nil, err
		}
		of := run.ID == topOf(ref.Run) || ref.Run == "" && slices.ContainsFunc(run.Inputs, func(m Inbound) bool {
			return m.MessageID != "" && slices.Contains(answers, m.MessageID)
		})
		if of || from.Run == "" {
			from.Run, from.Seq = run.ID, run.Seq
		}
		if of {
			break
		}
	}
	return from, nil
}

// past is an earlier run of a thread, as far as this one knows it.
type past struct {
	run string
	seq uint64    // of its journal, up to there; 0: all
	at  time.Time // mails that came later are not known; zero: all are
}

// lineage lists the runs before this one, newest first: of the task, then of the one it
// branched off from, and so on.
func (s *session) lineage(ctx context.Context) ([]past, error) {
	var list []past
	task, n, from := s.run.Task, runNumber(topOf(s.id))-1, s.run.From
	for {
		for ; n >= 1 && len(list) < maxEarlierRuns; n-- {
			list = append(list, past{run: runID(task, n)})
		}
		if from == nil || from.Run == "" || len(list) >= maxEarlierRuns {
			return list, nil
		}
		rec, err := s.a.store.Record(ctx, s.account, runKey(from.Run))
		if isKind(err, mailbox.NotFound) { // forgotten
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		run, err := decodeRun(rec)
		if err != nil {
			return list, nil // its worker parked it
		}
		list = append(list, past{run: run.ID, seq: from.Seq, at: from.At})
		task, n, from = run.Task, runNumber(run.ID)-1, run.From
	}
}

// branches are the threads that branched off from a task, oldest first.
func (a *Agent) branches(ctx context.Context, account mailbox.AccountID, task string) ([]*Thread, error) {
	recs, err := a.store.Lookup(ctx, account, indexForks+task)
	if err != nil {
		return nil, err
	}
	var list []*Thread
	for _, rec := range recs {
		th, err := decodeThread(rec)
		if err != nil {
			return nil, err
		}
		if th.From.Run != "" {
			list = append(list, th)
		}
	}
	slices.SortFunc(list, func(x, y *Thread) int { return x.Created.Compare(y.Created) })
	return list, nil
}
