package agent

import (
	"context"
	"slices"

	"pizza/mailbox"
)

const (
	// maxChain bounds the References that a thread keeps: the root and the newest.
	maxChain = 100
	// maxQueue bounds the mails that wait for a thread's next run.
	maxQueue = 200
)

// thread reads a task's record and its version; NotFound also for one that was forgotten.
func (a *Agent) thread(ctx context.Context, account mailbox.AccountID, task string) (*Thread, uint64, error) {
	rec, err := a.store.Record(ctx, account, threadKey(task))
	if err != nil {
		return nil, 0, err
	}
	th, err := decodeThread(rec)
	if err == nil && !th.Forgotten.IsZero() {
		return nil, 0, a.forgotten(th)
	}
	return th, rec.Version, err
}

func decodeThread(rec mailbox.Record) (*Thread, error) {
	th, err := decode[Thread](rec)
	if err != nil {
		return nil, err
	}
	return &th, nil
}

// threadPut writes a thread's record with its index keys.
func threadPut(th *Thread, version uint64) mailbox.PutRecord {
	index := []string{indexToken + th.Token}
	switch {
	case !th.Forgotten.IsZero():
	case th.From != nil:
		index = append(index, indexForks+th.From.Task)
		fallthrough
	default:
		if th.idle() {
			index = append(index, indexEnded+th.restDay())
		}
	}
	return mailbox.PutRecord{Key: threadKey(th.Task), Version: version, Value: mustJSON(th), Index: index}
}

// follow makes messageID the newest mail of the thread.
func (th *Thread) follow(messageID string) {
	if messageID == "" || messageID == th.Last {
		return
	}
	if th.Root == "" {
		th.Root = messageID
	}
	if th.Last != "" && !slices.Contains(th.References, th.Last) {
		th.References = append(th.References, th.Last)
	}
	if extra := len(th.References) - maxChain; extra > 0 {
		th.References = slices.Delete(th.References, 1, 1+extra)
	}
	th.Last = messageID
}

// refOf reads what a Message-ID belongs to in this account.
func (a *Agent) refOf(ctx context.Context, account mailbox.AccountID, messageID string) (MessageRef, bool, error) {
	var ref MessageRef
	if messageID == "" {
		return ref, false, nil
	}
	rec, err := a.store.Record(ctx, account, midKey(messageID))
	if isKind(err, mailbox.NotFound) {
		return ref, false, nil
	}
	if err != nil {
		return ref, false, err
	}
	ref, err = decode[MessageRef](rec)
	return ref, err == nil, err
}

// answered is what a mail answers: the first of In-Reply-To, then References newest
// first, that this account knows. A subject never decides.
func (a *Agent) answered(ctx context.Context, in *intake) (MessageRef, error) {
	ids := slices.Clone(in.structure.InReplyTo)
	for _, id := range slices.Backward(in.structure.References) {
		ids = append(ids, id)
	}
	for _, id := range ids[:min(len(ids), maxChain)] {
		ref, ok, err := a.refOf(ctx, in.account(), id)
		if err != nil {
			return ref, err
		}
		if ok && (ref.Task != "" || ref.Ask != "") {
			return ref, nil
		}
	}
	return MessageRef{}, nil
}

// taskOps joins the mail to the thread of task, or begins a new one ("" or one that
// is gone): its run begins, or it waits for the thread's next run.
func (a *Agent) taskOps(ctx context.Context, in *intake, p *plan, task string) error {
	th, version, err := a.threadFor(ctx, in, task)
	if err != nil {
		return err
	}
	mail := in.inbound(p.msg.ID)
	th.follow(mail.MessageID)
	run := runID(th.Task, th.Runs+1)
	if th.Active == "" {
		ops, r, err := a.beginRun(ctx, in.owner, th, []Inbound{mail})
		if err != nil {
			return err
		}
		run = r.ID
		p.add(ops...)
		if version == 0 && th.From != nil {
			p.receipt.Note = "a new task: " + task + ", which it answers, was forgotten"
		}
	} else {
		if len(th.Queue) >= maxQueue {
			return &mailbox.Error{Op: "submit", Kind: mailbox.Transient, Name: th.Task, Text: "too many mails wait in this task; try again later"}
		}
		th.Queue = append(th.Queue, mail)
		p.receipt.Note = "waits for the task's present run"
	}
	p.msg.Hold = append(p.msg.Hold, runHold(run))
	p.receipt.Task = th.Task
	p.add(threadPut(th, version))
	p.add(in.refOps(MessageRef{Task: th.Task, Message: p.msg.ID})...)
	return nil
}

// refOps records what the mail belongs to, for those that answer it.
func (in *intake) refOps(ref MessageRef) []mailbox.Op {
	if in.structure.MessageID == "" {
		return nil
	}
	return []mailbox.Op{refPut(in.structure.MessageID, ref)}
}

func (a *Agent) threadFor(ctx context.Context, in *intake, task string) (*Thread, uint64, error) {
	if task != "" {
		th, version, err := a.thread(ctx, in.account(), task)
		if !isKind(err, mailbox.NotFound) {
			return th, version, err
		}
	}
	th := &Thread{Task: newTaskID(), Token: newToken(), Subject: in.structure.Subject, Created: a.now()}
	if task != "" {
		th.From = &Fork{Task: task, At: th.Created}
	}
	if in.sub.Identity.Scope != mailbox.ScopeFull {
		th.Scope = string(in.sub.Identity.Scope)
	}
	return th, 0, nil
}
