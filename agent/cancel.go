package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"pizza/internal/crockford"
	"pizza/mailbox"
)

// Cancel asks a run to end: id is a run, a task (its live run), or a decision (the
// run that waits for it). The request is in the journal when Cancel returns; the
// run's worker then ends it with a notice.
//
// Errors are *mailbox.Error: NotFound (nothing of this account has the id),
// Conflict (it has ended already).
func (a *Agent) Cancel(ctx context.Context, account mailbox.AccountID, id string, by DecidedBy) error {
	if by.At.IsZero() {
		by.At = a.now()
	}
	run, err := a.findRun(ctx, account, id)
	if err != nil {
		return err
	}
	for range attempts {
		ops, err := a.cancelOps(ctx, account, run, by)
		if err != nil {
			return err
		}
		_, err = a.store.Commit(ctx, account, mailbox.Tx{Ops: ops})
		if err == nil {
			a.log.InfoContext(ctx, "cancel requested", "run", run, "via", by.Via, "login", by.Login)
			a.interrupt(run)
			return nil
		}
		if !isKind(err, mailbox.Conflict) {
			return err
		}
	}
	return &mailbox.Error{Op: "cancel", Kind: mailbox.Transient, Name: run}
}

func (a *Agent) cancelOps(ctx context.Context, account mailbox.AccountID, run string, by DecidedBy) ([]mailbox.Op, error) {
	return a.wakeOps(ctx, account, run, Event{At: a.now(), Cancel: &EvCancel{By: by}})
}

// findRun finds the run that id means.
func (a *Agent) findRun(ctx context.Context, account mailbox.AccountID, id string) (string, error) {
	typed, id := id, crockford.Fold(id)
	if strings.Contains(id, ".") {
		return id, nil
	}
	if d, _, err := a.loadDecision(ctx, account, id); err == nil {
		return d.Run, nil
	}
	th, _, err := a.thread(ctx, account, id)
	if isKind(err, mailbox.NotFound) {
		return "", noSuchRun(typed)
	}
	if err != nil {
		return "", err
	}
	if th.Active == "" {
		return "", &mailbox.Error{Op: "cancel", Kind: mailbox.Conflict, Name: id, Text: "task " + id + " has ended already"}
	}
	return th.Active, nil
}

func noSuchRun(id string) error {
	return &mailbox.Error{Op: "cancel", Kind: mailbox.NotFound, Name: printable(id), Text: "no task has the id " + printable(id)}
}

// wakeOps appends events to the journal of a run and makes it due. They fail with
// Conflict when the journal or the run's record moved since it was read here; the
// worker that owns the run meets the same conflict at its next commit and reads
// the journal again.
func (a *Agent) wakeOps(ctx context.Context, account mailbox.AccountID, run string, evs ...Event) ([]mailbox.Op, error) {
	rec, err := a.store.Record(ctx, account, runKey(run))
	if isKind(err, mailbox.NotFound) {
		return nil, noSuchRun(run)
	}
	if err != nil {
		return nil, err
	}
	return a.wakeRecord(rec, evs...)
}

// wakeRecord is wakeOps for a record that was read already, as the guard does.
func (a *Agent) wakeRecord(rec mailbox.Record, evs ...Event) ([]mailbox.Op, error) {
	r, err := decodeRun(rec)
	if err != nil {
		return nil, err
	}
	if r.State.Ended() {
		return nil, &mailbox.Error{Op: "wake", Kind: mailbox.Conflict, Name: r.ID,
			Text: "task " + r.Task + " has ended already (" + string(r.State) + ")"}
	}
	add := mailbox.Append{Stream: runKey(r.ID), Expect: r.Seq}
	for _, e := range evs {
		add.Events = append(add.Events, encodeEvent(e))
	}
	r.Seq += uint64(len(evs))
	if r.State == Waiting {
		r.State, r.For, r.Changed = Queued, "", a.now()
	}
	return []mailbox.Op{add, runPut(r, rec.Version), dueRun(r.ID, a.now())}, nil
}

// dueRun makes a run due.
func dueRun(run string, at time.Time) mailbox.PutDue {
	return mailbox.PutDue{Due: mailbox.Due{Kind: DueRun, Key: run, At: at}}
}

func decodeRun(rec mailbox.Record) (Run, error) {
	var r Run
	if err := json.Unmarshal(rec.Value, &r); err != nil {
		return r, fmt.Errorf("agent: decode %s: %w", rec.Key, err)
	}
	return r, nil
}
