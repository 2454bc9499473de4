package agent

import (
	"context"
	"time"

	"pizza/mailbox"
)

// Clocks jump: set by hand or by the network, after a suspend. Nothing is ordered by time
// (journals go by number), due times are compared with the clock every lookEvery, and how
// long something takes is measured by a clock that nobody sets. What is left is what was put
// off under a clock that ran ahead: when the clock goes back it would come years late. So a
// clock that went back has what is due later looked through once, and what was put off
// while it was wrong comes as late as it was meant to. What has expired stays expired.

const (
	clockSlack = time.Second                // of a clock that is corrected, not set
	ever       = 100 * 365 * 24 * time.Hour // beyond what is put off under any clock
)

// backwards notices that a clock went back.
type backwards struct{ seen time.Time }

func (b *backwards) jumped(now time.Time) bool {
	back := now.Before(b.seen.Add(-clockSlack))
	b.seen = now
	return back
}

// dueLater claims everything of a kind that is due at any time and calls f with it. The
// entries are given back. It is for who works the kind.
func (a *Agent) dueLater(ctx context.Context, account mailbox.AccountID, kind string, f func(mailbox.Due) error) error {
	list, err := a.store.Claim(ctx, account, kind, a.now().Add(ever), ever, 1<<20)
	for _, due := range list {
		if err == nil && due.At.After(a.now()) {
			err = f(due)
		}
		a.store.Release(account, kind, due.Key)
	}
	return err
}

// mendRuns makes runs due that were put off under a clock that ran ahead.
func (d *dispatcher) mendRuns(ctx context.Context) {
	a := d.a
	err := a.dueLater(ctx, d.account, DueRun, func(due mailbox.Due) error {
		rec, err := a.store.Record(ctx, d.account, runKey(due.Key))
		if err != nil {
			return err
		}
		run, err := decodeRun(rec)
		if err != nil || !run.Changed.After(a.now().Add(clockSlack)) {
			return nil // its worker tells what does not decode
		}
		return a.commit(ctx, d.account, dueRun(due.Key, a.now()))
	})
	if err != nil {
		a.logStore(ctx, "runs after the clock went back", err)
	}
}

// mendDue does the same for all else that is due.
func (a *Agent) mendDue(ctx context.Context, account mailbox.AccountID) {
	for kind, most := range map[string]time.Duration{
		DueExpire: a.opt.Expiry, DueWindow: a.opt.Window, DueLeaving: a.opt.Window, DueDeliver: 0, DueDrop: 0,
	} {
		err := a.dueLater(ctx, account, kind, func(due mailbox.Due) error {
			latest := a.now().Add(most)
			if !due.At.After(latest.Add(clockSlack)) {
				return nil
			}
			due.At = latest
			if kind == DueExpire {
				return a.mendExpiry(ctx, account, due)
			}
			return a.commit(ctx, account, mailbox.PutDue{Due: due})
		})
		if err != nil {
			a.logStore(ctx, kind+" after the clock went back", err)
		}
	}
}

// mendExpiry has a decision expire at the time of due.
func (a *Agent) mendExpiry(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	d, version, err := a.loadDecision(ctx, account, due.Key)
	if err != nil || d.State != Open {
		return ignoreNotFound(err)
	}
	d.Expires = due.At
	return ignoreConflict(a.commit(ctx, account, decisionPut(d, version), mailbox.PutDue{Due: due}))
}

func ignoreNotFound(err error) error {
	if isKind(err, mailbox.NotFound) {
		return nil
	}
	return err
}
