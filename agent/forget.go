package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"pizza/internal/crockford"
	"pizza/mailbox"
)

// What this server made of a task is dropped in batches: the runs with their journals,
// results and files; the decisions; which mail belongs to it. The mails themselves are the
// person's: those that lie in a mailbox stay, and a reply to one begins a new task that
// says so. The first commit marks the thread forgotten, and from then on nobody sees the
// task; a due entry goes on with the rest when the process ends in between.

const (
	// forgetRecords and forgetEvents bound what one commit drops.
	forgetRecords = 64
	forgetEvents  = 2000
)

// Forgot says what became of a task that was forgotten.
type Forgot struct {
	Task    string `json:"task"`
	Subject string `json:"subject"`
	Runs    int    `json:"runs"`  // dropped
	Mails   int    `json:"mails"` // that stay in mailboxes
}

// Forget drops all this server made of a task that has ended; id is the task's. When it
// returns nothing of it is left but its mails in mailboxes, and what recognises these.
//
// Errors are *mailbox.Error: NotFound, Invalid (id names a run or a decision), Conflict
// (the task is live, or one that branched off from it is: Text says what to do).
func (a *Agent) Forget(ctx context.Context, account mailbox.AccountID, id string) (Forgot, error) {
	f, err := a.Find(ctx, account, id)
	if err != nil {
		return Forgot{}, err
	}
	if f.Run != "" || f.Decision != "" || f.Task == "" {
		return Forgot{}, forgetError(mailbox.Invalid, id, "a task is forgotten as a whole: `pizza forget "+f.Task+"`")
	}
	var th *Thread
	var live string
	err = patient(func() (err error) {
		th, live, err = a.markForgotten(ctx, account, f.Task)
		return err
	})
	switch {
	case err != nil:
		return Forgot{}, err
	case live != "":
		return Forgot{}, forgetError(mailbox.Conflict, f.Task, live)
	}
	a.log.InfoContext(ctx, "task forgotten", "task", th.Task)
	kept, err := a.dropTask(ctx, account, th.Task)
	return Forgot{Task: th.Task, Subject: th.Subject, Runs: th.Runs, Mails: kept}, err
}

func forgetError(kind mailbox.Kind, id, text string) error {
	return &mailbox.Error{Op: "forget", Kind: kind, Name: printable(id), Text: text}
}

// markForgotten takes the task out of sight, or says what is live.
func (a *Agent) markForgotten(ctx context.Context, account mailbox.AccountID, task string) (th *Thread, live string, err error) {
	th, version, err := a.thread(ctx, account, task)
	if err != nil {
		return nil, "", err
	}
	if !th.idle() {
		return nil, "task " + task + " is live: end it with `pizza cancel " + task + "`, or wait for its end, and then forget it", nil
	}
	branches, err := a.branches(ctx, account, task)
	if err != nil {
		return nil, "", err
	}
	for _, b := range branches {
		if !b.idle() {
			return nil, "task " + b.Task + ", which branched off from " + task + " and reads in it, is live: end it with `pizza cancel " + b.Task + "`, or wait for its end", nil
		}
	}
	th.Forgotten = a.now()
	// Whoever marks it goes on at once: the entry is for the case that it cannot.
	later := mailbox.PutDue{Due: mailbox.Due{Kind: DueForget, Key: task, At: a.now().Add(tendLease)}}
	return th, "", a.commit(ctx, account, threadPut(th, version), later)
}

// forgetDue goes on with a task whose forgetting was cut off.
func (a *Agent) forgetDue(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	_, err := a.dropTask(ctx, account, due.Key)
	return err
}

// dropTask drops what is left of a task that is marked, and says how many mails stay. It
// can be cut off anywhere and called again.
func (a *Agent) dropTask(ctx context.Context, account mailbox.AccountID, task string) (kept int, err error) {
	for more := true; more; {
		err := patient(func() (err error) {
			more, err = a.dropSome(ctx, account, task)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	for more := true; more; {
		err := patient(func() (err error) {
			more, kept, err = a.dropRefs(ctx, account, task)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return kept, patient(func() error { return a.dropThread(ctx, account, task, kept) })
}

// dropSome drops one batch of a task's runs, decisions and what else is kept under it.
func (a *Agent) dropSome(ctx context.Context, account mailbox.AccountID, task string) (more bool, err error) {
	recs, err := a.store.Lookup(ctx, account, indexOfTask+task)
	if err != nil || len(recs) == 0 {
		return false, err
	}
	var ops []mailbox.Op
	events := uint64(0)
	for i, rec := range recs {
		if i == forgetRecords || events > forgetEvents {
			return true, a.commit(ctx, account, ops...)
		}
		some, n, err := a.dropRecord(ctx, account, rec)
		if err != nil {
			return false, err
		}
		ops, events = append(ops, some...), events+n
	}
	return false, a.commit(ctx, account, ops...)
}

// dropRecord drops a record and what hangs on it; n is how many events that is.
func (a *Agent) dropRecord(ctx context.Context, account mailbox.AccountID, rec mailbox.Record) (ops []mailbox.Op, n uint64, err error) {
	ops = []mailbox.Op{mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version}}
	switch {
	case strings.HasPrefix(rec.Key, runKey("")):
		ops = append(ops, mailbox.DropStream{Stream: rec.Key})
		run, err := decodeRun(rec)
		if err != nil { // one that was parked: its mails cannot be told any more
			return ops, 0, nil
		}
		for _, m := range run.Inputs {
			ops = append(ops, mailbox.Hold{Message: m.Message, Name: runHold(run.ID), Release: true})
		}
		return ops, run.Seq, nil
	case strings.HasPrefix(rec.Key, decisionKey("")):
		d, err := decodeDecision(rec)
		if err != nil {
			return ops, 0, nil
		}
		held, err := a.liesAnywhere(ctx, account, d.Mail)
		if err != nil {
			return nil, 0, err
		}
		if held { // an answer to it is too late, and is told so
			gone := Decision{ID: d.ID, Kind: d.Kind, Task: d.Task, State: Dropped, Mail: d.Mail, MailID: d.MailID, Expires: d.Expires}
			ops = a.passing(mailbox.PutRecord{Key: rec.Key, Version: rec.Version, Value: mustJSON(gone)})
		}
		ops = append(ops,
			mailbox.Hold{Message: d.Mail, Name: rec.Key, Release: true},
			mailbox.DeleteDue{Kind: DueExpire, Key: d.ID}, mailbox.DeleteDue{Kind: DueWindow, Key: d.ID})
	}
	return ops, 1, nil
}

// dropRefs drops one batch of what says that a mail belongs to the task, but for mails
// that lie in a mailbox: those are to be recognised. They go when the mail has gone.
func (a *Agent) dropRefs(ctx context.Context, account mailbox.AccountID, task string) (more bool, kept int, err error) {
	recs, err := a.store.Lookup(ctx, account, indexMails+task)
	if err != nil {
		return false, 0, err
	}
	var ops []mailbox.Op
	for _, rec := range recs {
		needed, err := a.awaited(ctx, account, rec.Key, rec.Value)
		switch {
		case err != nil:
			return false, 0, err
		case needed:
			kept++
			if slices.ContainsFunc(rec.Index, isPruneIndex) {
				continue
			}
			ops = append(ops, a.passing(mailbox.PutRecord{Key: rec.Key, Version: rec.Version, Value: rec.Value, Index: rec.Index})...)
		default:
			ops = append(ops, mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version})
		}
		if len(ops) >= pruneBatch {
			return true, 0, a.commit(ctx, account, ops...)
		}
	}
	if len(ops) == 0 {
		return false, kept, nil
	}
	return false, kept, a.commit(ctx, account, ops...)
}

// dropThread is the last step: of the thread stays what its address is known by, as long
// as a mail of it lies in a mailbox.
func (a *Agent) dropThread(ctx context.Context, account mailbox.AccountID, task string, kept int) error {
	ops := []mailbox.Op{mailbox.DeleteDue{Kind: DueForget, Key: task}}
	rec, err := a.store.Record(ctx, account, threadKey(task))
	if isKind(err, mailbox.NotFound) {
		return a.commit(ctx, account, ops...)
	}
	if err != nil {
		return err
	}
	th, err := decodeThread(rec)
	if err != nil {
		return err
	}
	if kept == 0 {
		return a.commit(ctx, account, append(ops, mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version})...)
	}
	rest := &Thread{Task: th.Task, Token: th.Token, Forgotten: th.Forgotten}
	return a.commit(ctx, account, append(ops, a.passing(threadPut(rest, rec.Version))...)...)
}

// liesAnywhere reports whether a message has an entry in a mailbox.
func (a *Agent) liesAnywhere(ctx context.Context, account mailbox.AccountID, id mailbox.MessageID) (bool, error) {
	places, err := a.store.Places(ctx, account, id)
	if isKind(err, mailbox.NotFound) {
		return false, nil
	}
	return len(places) > 0, err
}

// awaited reports whether a record that passes is still needed: of a delivery that its
// sender may still try, or of a forgotten task whose mail lies in a mailbox.
func (a *Agent) awaited(ctx context.Context, account mailbox.AccountID, key string, value []byte) (bool, error) {
	switch kind, rest, _ := strings.Cut(key, "/"); kind + "/" {
	case receivedPrefix:
		return a.deliveryAwaited(ctx, rest)
	case threadKey(""):
		mails, err := a.store.Lookup(ctx, account, indexMails+rest)
		return len(mails) > 0, err
	case decisionKey(""):
		var d Decision
		if json.Unmarshal(value, &d) != nil {
			return false, nil
		}
		return a.liesAnywhere(ctx, account, d.Mail)
	case midPrefix:
		var ref MessageRef
		if json.Unmarshal(value, &ref) != nil {
			return false, nil
		}
		if ref.Message == 0 && ref.Ours && ref.Decision != "" {
			d, _, err := a.loadDecision(ctx, account, ref.Decision)
			if isKind(err, mailbox.NotFound) {
				return false, nil
			}
			ref.Message = d.Mail
			if err != nil {
				return false, err
			}
		}
		return a.liesAnywhere(ctx, account, ref.Message)
	}
	return false, nil
}

// forgotten is the answer about a task that was forgotten.
func (a *Agent) forgotten(th *Thread) error {
	return &mailbox.Error{Op: "find", Kind: mailbox.NotFound, Name: th.Task,
		Text: "task " + th.Task + " was forgotten on " + a.when(th.Forgotten)}
}

// forgottenTask is the thread of a task that id names and that was forgotten, nil if none.
func (a *Agent) forgottenTask(ctx context.Context, account mailbox.AccountID, id string) *Thread {
	rec, err := a.store.Record(ctx, account, threadKey(taskOf(crockford.Fold(id))))
	if err != nil {
		return nil
	}
	th, err := decodeThread(rec)
	if err != nil || th.Forgotten.IsZero() {
		return nil
	}
	return th
}
