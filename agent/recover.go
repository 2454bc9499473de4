package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"pizza/mailbox"
)

// A run that takes the whole process down (a tool that exits, memory without end, a fault
// that nothing catches) would do so at every start. So the first claim of a run in an epoch
// of the store is counted in its record before its journal is read, and the count goes back
// to nothing when the run makes progress, comes to rest, or the server stops in order. A
// run that was counted maxFalls times is put aside with a mail, and the others go on.
//
// A count may be due to a neighbour. So those that have one come last, fewest first, and
// one at a time, and wait a while: then the process goes down with the one that does it.

// errPoison: the process went down with the run again and again.
var errPoison = errors.New("agent: the process ended again and again while it worked on this run")

// aloneFor is how long a run with a count is left alone before the next one begins.
const aloneFor = time.Minute

// count counts the first claim of the run in this epoch.
func (s *session) count(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	epoch := s.a.store.Epoch(s.account)
	for range attempts {
		rec, err := s.a.store.Record(ctx, s.account, runKey(s.id))
		if err != nil {
			return err
		}
		run, err := decodeRun(rec)
		switch {
		case err != nil:
			return err
		case run.State.Ended() || run.Epoch == epoch:
			return nil
		case run.Claims >= maxFalls:
			return errPoison
		}
		run.Claims++
		run.Epoch = epoch
		if _, err = s.commitOps(ctx, runPut(run, rec.Version)); !isKind(err, mailbox.Conflict) {
			return err
		}
	}
	return &mailbox.Error{Op: "count", Kind: mailbox.Transient, Name: s.id}
}

// uncount takes the count back when the session ended in order without a commit that did.
func (s *session) uncount(ctx context.Context) {
	if s.run.Claims == 0 || s.run.State.Ended() {
		return
	}
	run := s.run
	run.Claims = 0
	if _, err := s.commitOps(ctx, runPut(run, s.ver)); err == nil {
		s.run, s.ver = run, s.ver+1
	} else if !isKind(err, mailbox.Conflict) { // whoever changed it meanwhile has it made due
		s.a.logStore(ctx, "uncount "+s.id, err)
	}
}

// progress reports whether events say more than that something is begun.
func progress(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Intent == nil && e.ToolStart == nil })
}

// left is a run that an earlier process has left due.
type left struct {
	run    string
	claims int
}

// recover claims what earlier processes have left due and works it beside the new: with
// half of the workers, so that new mail is not behind all of it.
func (d *dispatcher) recover(ctx context.Context) {
	if d.a.rests(ctx, d.account) {
		return
	}
	list, fresh, err := d.backlog(ctx)
	if err != nil {
		d.a.logStore(ctx, "recover", err)
	}
	for _, run := range fresh {
		d.a.store.Release(d.account, DueRun, run)
	}
	if len(list) == 0 {
		return
	}
	slices.SortStableFunc(list, func(x, y left) int { return cmp.Compare(x.claims, y.claims) })
	first, _ := slices.BinarySearchFunc(list, 1, func(l left, n int) int { return cmp.Compare(l.claims, n) })
	d.a.log.InfoContext(ctx, "runs of before the start go on", "runs", len(list), "suspects", len(list)-first)
	d.wg.Go(func() {
		d.feed(ctx, list[:first])
		d.feedAlone(ctx, list[first:])
	})
}

// backlog claims all that is due; fresh are those that began in this epoch.
func (d *dispatcher) backlog(ctx context.Context) (list []left, fresh []string, err error) {
	epoch := d.a.store.Epoch(d.account)
	for {
		due, err := d.a.store.Claim(ctx, d.account, DueRun, d.a.now(), claimLease, 256)
		if err != nil || len(due) == 0 {
			return list, fresh, err
		}
		for _, e := range due {
			run := Run{}
			rec, err := d.a.store.Record(ctx, d.account, runKey(e.Key))
			if err == nil {
				run, err = decodeRun(rec)
			}
			if err == nil && run.Epoch == epoch {
				fresh = append(fresh, e.Key)
			} else {
				list = append(list, left{e.Key, run.Claims})
			}
		}
	}
}

// feed works runs in lanes.
func (d *dispatcher) feed(ctx context.Context, list []left) {
	lanes := make(chan struct{}, max(1, cap(d.a.slots)/2))
	for _, l := range list {
		select {
		case lanes <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if d.one(ctx, l.run, func() { <-lanes }) == nil {
			return
		}
	}
}

// feedAlone works runs one at a time, each after a while that grows with its count.
func (d *dispatcher) feedAlone(ctx context.Context, list []left) {
	for _, l := range list {
		if l.claims > 1 && !sleep(ctx, d.a.opt.backoff<<min(l.claims-2, 4)) {
			return
		}
		ended := d.one(ctx, l.run, func() {})
		if ended == nil {
			return
		}
		most := time.NewTimer(aloneFor)
		select {
		case <-ended:
		case <-most.C:
		case <-ctx.Done():
		}
		most.Stop()
	}
}

// one gives a claimed run to a worker and returns a channel that is closed when that is
// done; nil when ctx ended before there was one.
func (d *dispatcher) one(ctx context.Context, run string, after func()) <-chan struct{} {
	select {
	case d.a.slots <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	ended := make(chan struct{})
	d.wg.Go(func() {
		defer close(ended)
		defer after()
		defer func() { <-d.a.slots }()
		d.work(ctx, run)
	})
	return ended
}

// sleep waits, and reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
