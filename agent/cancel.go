package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"pizza/internal/crockford"
	"pizza/mailbox"
)

// Cancel asks a run to end: id is a run, a task (its live run), or a decision (the
// run that waits for it). The request is in the journal when Cancel returns; the
// run's worker then ends it with a notice. The workers below it are asked to end in the
// same commit. A worker's run ends alone when its own id is given: whoever gave it the
// work is told.
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
		ops, ids, err := a.cancelOps(ctx, account, run, by)
		if err != nil {
			return err
		}
		_, err = a.store.Commit(ctx, account, mailbox.Tx{Ops: ops})
		if err == nil {
			a.log.InfoContext(ctx, "cancel requested", "run", run, "via", by.Via, "login", by.Login)
			for _, id := range ids {
				a.interrupt(id)
				a.stir(account, id)
			}
			return nil
		}
		if !isKind(err, mailbox.Conflict) {
			return err
		}
	}
	return &mailbox.Error{Op: "cancel", Kind: mailbox.Transient, Name: run}
}

// cancelOps asks a run and those below it to end; ids are theirs.
func (a *Agent) cancelOps(ctx context.Context, account mailbox.AccountID, run string, by DecidedBy) (ops []mailbox.Op, ids []string, err error) {
	rec, err := a.store.Record(ctx, account, runKey(run))
	if isKind(err, mailbox.NotFound) {
		err = noSuchRun(run)
	}
	if err != nil {
		return nil, nil, err
	}
	live, err := a.liveWorkers(ctx, account, taskOf(run))
	if err != nil {
		return nil, nil, err
	}
	return a.cancelTree(rec, live, by)
}

// cancelTree is cancelOps for records that were read already, as the guard does.
func (a *Agent) cancelTree(rec mailbox.Record, live []liveRun, by DecidedBy) (ops []mailbox.Op, ids []string, err error) {
	r, err := decodeRun(rec)
	if err != nil {
		return nil, nil, err
	}
	ops, err = a.cancelRun(r, rec.Version, by)
	if err != nil {
		return nil, nil, err
	}
	below, ids, err := a.endBelow(live, r.ID, by)
	return append(ops, below...), append(ids, r.ID), err
}

// findRun finds the run that id means.
func (a *Agent) findRun(ctx context.Context, account mailbox.AccountID, id string) (string, error) {
	typed, id := id, crockford.Fold(id)
	if strings.Contains(id, ".") {
		return id, nil
	}
	if d, _, err := a.loadDecision(ctx, account, id); err == nil {
		return topOf(d.Run), nil
	}
	th, _, err := a.thread(ctx, account, id)
	if isKind(err, mailbox.NotFound) && a.forgottenTask(ctx, account, id) == nil {
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
	return a.wakeRun(r, rec.Version, evs...)
}

// wakeRun is wakeRecord for a run that was decoded already.
func (a *Agent) wakeRun(r Run, version uint64, evs ...Event) ([]mailbox.Op, error) {
	if r.State.Ended() {
		return nil, &mailbox.Error{Op: "wake", Kind: mailbox.Conflict, Name: r.ID,
			Text: "task " + r.Task + " has ended already (" + string(r.State) + ")"}
	}
	add := appendOp(r.ID, r.Seq, evs...)
	r.Seq += uint64(len(evs))
	if r.State == Waiting {
		r.State, r.For, r.Changed = Queued, "", a.now()
	}
	return []mailbox.Op{add, runPut(r, version), dueRun(r.ID, a.now())}, nil
}

// wakeBatch is how many runs one commit makes due.
const wakeBatch = 100

// wakeAll makes the runs among recs due, which wait for the same thing.
func (a *Agent) wakeAll(ctx context.Context, account mailbox.AccountID, recs []mailbox.Record) error {
	for batch := range slices.Chunk(runsOf(recs), wakeBatch) {
		var ops []mailbox.Op
		for _, r := range batch {
			ops = append(ops, dueRun(r.ID, a.now()))
		}
		if err := a.commit(ctx, account, ops...); err != nil {
			return err
		}
	}
	return nil
}

// dueRun makes a run due.
func dueRun(run string, at time.Time) mailbox.PutDue {
	return mailbox.PutDue{Due: mailbox.Due{Kind: DueRun, Key: run, At: at}}
}

func decodeRun(rec mailbox.Record) (Run, error) { return decode[Run](rec) }
