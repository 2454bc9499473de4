package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"pizza/internal/mail"
	"pizza/mailbox"
)

// park ends a run that this release cannot work: its journal does not decode, or its
// steps fail again and again. The person is told by mail, nothing is deleted, and the
// queue moves on (invariant 10).
func (a *Agent) park(ctx context.Context, s *session, cause error) error {
	ctx = context.WithoutCancel(ctx)
	for range attempts {
		ops, err := a.parkOps(ctx, s, cause)
		if err != nil {
			return err
		}
		_, err = a.store.Commit(ctx, s.account, mailbox.Tx{Ops: ops})
		if err == nil {
			a.mu.Lock()
			delete(a.falls, s.id)
			a.mu.Unlock()
			a.log.LogAttrs(ctx, slog.LevelError, "run parked", slog.String("run", s.id), slog.Any("err", cause))
			a.ended(s.account, Run{ID: s.id, Task: taskOf(s.id), State: Failed, Error: string(FailStep), Created: s.run.Created, Model: s.run.Model}, nil)
			return nil
		}
		if !isKind(err, mailbox.Conflict) {
			return err
		}
	}
	return &mailbox.Error{Op: "park", Kind: mailbox.Transient, Name: s.id}
}

// parkOps ends the run without folding its journal.
func (a *Agent) parkOps(ctx context.Context, s *session, cause error) ([]mailbox.Op, error) {
	rec, err := a.store.Record(ctx, s.account, runKey(s.id))
	run := Run{ID: s.id, Task: taskOf(s.id)}
	switch {
	case isKind(err, mailbox.NotFound):
		return []mailbox.Op{mailbox.DeleteDue{Kind: DueRun, Key: s.id}}, nil
	case err != nil:
		return nil, err
	case json.Unmarshal(rec.Value, &run) != nil:
		run = Run{ID: s.id, Task: taskOf(s.id)}
	case run.State.Ended():
		return []mailbox.Op{mailbox.DeleteDue{Kind: DueRun, Key: s.id}}, nil
	}
	seq, err := a.lastSeq(ctx, s.account, s.id)
	if err != nil {
		return nil, err
	}
	live, err := a.liveWorkers(ctx, s.account, run.Task)
	if err != nil {
		return nil, err
	}
	below, _, err := a.endBelow(live, run.ID, DecidedBy{At: a.now()})
	if err != nil {
		return nil, err
	}
	if run.child() {
		ops, err := a.parkChild(ctx, s.o, run, rec.Version, seq)
		return append(ops, below...), err
	}
	th, version, err := a.thread(ctx, s.account, run.Task)
	known := err == nil
	if !known {
		th = &Thread{Task: run.Task}
	}
	out := a.letter(s.o, th, KindFailure, run.ID, run.newest())
	fail := mail.Failure{Model: run.Model, Task: run.Task}
	if errors.Is(cause, errPoison) {
		fail.Class = "poison"
	}
	text := mail.FailureText(fail)
	out.Markdown = text
	run.State, run.Seq, run.Changed = Failed, seq+1, a.now()
	ops, err := a.endOps(ctx, s.o, &run, out, ending{kind: KindFailure, error: string(FailStep)})
	if err != nil {
		return nil, err
	}
	if known {
		next, err := a.endThread(ctx, s.o, th, version, &run, out)
		if err != nil {
			return nil, err
		}
		ops = append(ops, next...)
	}
	end := Event{At: a.now(), Finished: &EvFinished{State: Failed, Mail: out.MessageID, Text: text}}
	ops = append(ops, below...)
	return append(ops,
		appendOp(run.ID, seq, end),
		runPut(run, rec.Version)), nil
}

// parkChild ends the run of a worker so; the run above is told, and nobody by mail. Of
// what it cost nothing is known.
func (a *Agent) parkChild(ctx context.Context, o owner, run Run, version, seq uint64) ([]mailbox.Op, error) {
	text := "Worker " + run.worker() + " failed: something went wrong inside."
	run.State, run.Seq, run.Changed, run.For, run.Error = Failed, seq+1, a.now(), "", string(FailStep)
	ops, err := a.endChild(ctx, o, run, EvToolEnd{
		Call: run.Call, Status: endError, Content: text, Child: &ChildEnd{State: Failed},
	}, nil)
	end := Event{At: a.now(), Finished: &EvFinished{State: Failed, Text: text}}
	return append(ops,
		appendOp(run.ID, seq, end),
		runPut(run, version)), err
}

// lastSeq is the end of a journal, whatever it holds.
func (a *Agent) lastSeq(ctx context.Context, account mailbox.AccountID, run string) (uint64, error) {
	var last uint64
	err := a.store.Events(ctx, account, runKey(run), 1, func(seq uint64, _ []byte) error {
		last = seq
		return nil
	})
	return last, err
}
