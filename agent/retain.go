package agent

import (
	"context"
	"encoding/json"
	"time"

	"pizza/mailbox"
)

// Tasks that ended longer ago than Options.Keep are forgotten when none of their mails
// lies in a mailbox but Trash, and no task that branched off from them is left. A thread at
// rest has an index key of the day on which it came to rest; once a day the days that have
// become old enough are looked up, and nothing else. A task that has to stay is looked at
// again later.

const (
	// retainAgain is when a task that could not go is looked at again at the latest.
	retainAgain = keepRecords
	retainKey   = "retain"
)

// retainFrom is a day before every task there is.
var retainFrom = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// retained is the record of how far the days were looked up.
type retained struct {
	Before time.Time `json:"before"` // the days before this one, at 0:00 UTC
}

// idle reports whether the thread is at rest.
func (th *Thread) idle() bool { return th.Active == "" && len(th.Queue) == 0 }

// restDay is the day whose looking up finds the thread.
func (th *Thread) restDay() string {
	at := th.Created
	if th.Ended.After(at) {
		at = th.Ended
	}
	if th.Kept.After(at) {
		at = th.Kept
	}
	return at.UTC().Format(time.DateOnly)
}

// startRetention has the days looked up, when the settings say so.
func (a *Agent) startRetention(ctx context.Context, account mailbox.AccountID) error {
	if a.opt.Keep <= 0 {
		return nil
	}
	next, err := a.store.NextDue(ctx, account, DueRetain)
	if err != nil || !next.IsZero() {
		return err
	}
	return a.commit(ctx, account, mailbox.PutDue{Due: mailbox.Due{Kind: DueRetain, Key: retainKey, At: a.now()}})
}

// retain is the daily look.
func (a *Agent) retain(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	if a.opt.Keep <= 0 {
		return a.dropDue(ctx, account, due)
	}
	state, err := a.retained(ctx, account)
	if err != nil {
		return err
	}
	old := a.now().UTC().Add(-a.opt.Keep).Truncate(24 * time.Hour)
	for state.Before.Before(old) {
		recs, err := a.store.Lookup(ctx, account, indexEnded+state.Before.Format(time.DateOnly))
		if err != nil {
			return err
		}
		for _, rec := range recs {
			if err := a.retainTask(ctx, account, rec); err != nil {
				return err
			}
		}
		state.Before = state.Before.Add(24 * time.Hour)
		if len(recs) == 0 {
			continue
		}
		if err := a.commit(ctx, account, state.put()); err != nil {
			return err
		}
	}
	due.At = a.now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	return a.commit(ctx, account, state.put(), mailbox.PutDue{Due: due})
}

func (a *Agent) retained(ctx context.Context, account mailbox.AccountID) (retained, error) {
	state := retained{Before: retainFrom}
	rec, err := a.store.Record(ctx, account, retainKey)
	if isKind(err, mailbox.NotFound) {
		return state, nil
	}
	if err != nil {
		return state, err
	}
	return decode[retained](rec)
}

func (r retained) put() mailbox.PutRecord {
	return mailbox.PutRecord{Key: retainKey, Any: true, Value: mustJSON(r)}
}

// retainTask forgets a task, or puts it on a later day.
func (a *Agent) retainTask(ctx context.Context, account mailbox.AccountID, rec mailbox.Record) error {
	th, err := decodeThread(rec)
	if err != nil {
		return err
	}
	stays, err := a.staysFor(ctx, account, th.Task)
	if err != nil {
		return err
	}
	if stays {
		th.Kept = a.now().Add(min(a.opt.Keep, retainAgain) - a.opt.Keep)
		err := a.commit(ctx, account, threadPut(th, rec.Version))
		if isKind(err, mailbox.Conflict) { // a mail came: it is on a later day now
			return nil
		}
		return err
	}
	_, err = a.Forget(ctx, account, th.Task)
	if isKind(err, mailbox.Conflict) || isKind(err, mailbox.NotFound) {
		return nil
	}
	return err
}

// staysFor reports whether a task has to stay: a mail of it lies in a mailbox other than
// Trash, or a branch of it is left.
func (a *Agent) staysFor(ctx context.Context, account mailbox.AccountID, task string) (bool, error) {
	branches, err := a.branches(ctx, account, task)
	if err != nil || len(branches) > 0 {
		return len(branches) > 0, err
	}
	mails, err := a.mailsOf(ctx, account, task)
	if err != nil {
		return false, err
	}
	for id := range mails {
		places, err := a.store.Places(ctx, account, id)
		if err != nil && !isKind(err, mailbox.NotFound) {
			return false, err
		}
		for _, p := range places {
			if p.Mailbox != Trash {
				return true, nil
			}
		}
	}
	return false, nil
}

// mailsOf are the messages of a task: what it was sent, what it answered and asked.
func (a *Agent) mailsOf(ctx context.Context, account mailbox.AccountID, task string) (map[mailbox.MessageID]bool, error) {
	mails := map[mailbox.MessageID]bool{}
	recs, err := a.store.Lookup(ctx, account, indexOfTask+task)
	if err != nil {
		return nil, err
	}
	for _, run := range runsOf(recs) {
		for _, in := range run.Inputs {
			mails[in.Message] = true
		}
	}
	for _, rec := range recs {
		if d, err := decodeDecision(rec); err == nil && d.Mail != 0 {
			mails[d.Mail] = true
		}
	}
	refs, err := a.store.Lookup(ctx, account, indexMails+task)
	for _, rec := range refs {
		var ref MessageRef
		if json.Unmarshal(rec.Value, &ref) == nil && ref.Message != 0 {
			mails[ref.Message] = true
		}
	}
	return mails, err
}
