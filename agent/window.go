package agent

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
)

const (
	tendLease    = time.Minute     // an entry whose handling failed is tried again after it
	tendAccounts = 5 * time.Second // how soon a new account is noticed
	tendBatch    = 32
	tendPause    = 25 * time.Millisecond // at least so long between two looks: commits come in storms
)

// dueHandler works one due entry; on success the entry is gone or put anew.
type dueHandler func(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error

func (a *Agent) dueHandlers() map[string]dueHandler {
	return map[string]dueHandler{
		DueExpire:  a.expire,
		DueWindow:  a.endWindow,
		DueDeliver: a.deliverDue,
		DuePrune:   a.prune,
		DueForget:  a.forgetDue,
		DueRetain:  a.retain,
		DueDrop:    a.takeDrop,
		DueRemind:  a.remind,
		DueLeaving: a.endLeaving,
		DueMonth:   a.tendMonth,
	}
}

// tend works what is due beside the runs: expiry, the windows of moves, mail for
// other accounts, records that go, what was dropped or taken out. It returns when ctx ends, with all it started ended. An entry
// that fails is logged and tried again after tendLease; the others go on.
func (a *Agent) tend(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	seen := map[mailbox.AccountID]bool{}
	tick := time.NewTicker(tendAccounts)
	defer tick.Stop()
	for {
		ids, err := a.store.Accounts(ctx)
		if err != nil && ctx.Err() == nil {
			a.log.ErrorContext(ctx, "list accounts", "err", err)
		}
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				wg.Go(func() { a.tendAccount(ctx, id) })
				wg.Go(func() { a.tendUnread(ctx, id) })
				wg.Go(func() { a.keepKeys(ctx, id) })
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tendAccount sleeps until the next entry is due or the due entries change.
func (a *Agent) tendAccount(ctx context.Context, account mailbox.AccountID) {
	wake, cancel := a.store.Watch(account, mailbox.DueEntries)
	defer cancel()
	if err := a.startRetention(ctx, account); err != nil {
		a.logStore(ctx, "keep_days", err)
	}
	clock := backwards{seen: a.now()}
	for ctx.Err() == nil {
		if clock.jumped(a.now()) {
			a.mendDue(ctx, account)
		}
		wait := lookEvery
		if next := a.tendOnce(ctx, account); !next.IsZero() {
			wait = max(min(next.Sub(a.now()), lookEvery), time.Millisecond)
		}
		timer := time.After(wait)
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-timer:
		}
		select {
		case <-ctx.Done():
		case <-time.After(tendPause):
		}
	}
}

// tendOnce works everything that is due now and returns when it is to be called
// again; zero: when something changes.
func (a *Agent) tendOnce(ctx context.Context, account mailbox.AccountID) time.Time {
	if a.rests(ctx, account) {
		return a.now().Add(tendLease)
	}
	var next time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for kind, handle := range a.dueHandlers() {
		sooner(a.tendAll(ctx, account, kind, handle))
	}
	return next
}

// tendAll works all that is due of a kind and returns when the next is. A batch that
// was not full is the last one: what comes due meanwhile is seen with the next look.
func (a *Agent) tendAll(ctx context.Context, account mailbox.AccountID, kind string, handle dueHandler) time.Time {
	retry := false
	for n := tendBatch; n == tendBatch && ctx.Err() == nil; {
		at, err := a.store.NextDue(ctx, account, kind)
		if err != nil {
			retry = true
			break
		}
		if at.IsZero() || at.After(a.now()) {
			break
		}
		var failed bool
		n, failed = a.tendKind(ctx, account, kind, handle)
		retry = retry || failed
	}
	next, err := a.store.NextDue(ctx, account, kind)
	if lease := a.now().Add(tendLease); err != nil || retry && (next.IsZero() || next.After(lease)) {
		next = lease
	}
	return next
}

// tendKind works one batch of a kind.
func (a *Agent) tendKind(ctx context.Context, account mailbox.AccountID, kind string, handle dueHandler) (n int, failed bool) {
	list, err := a.store.Claim(ctx, account, kind, a.now(), tendLease, tendBatch)
	if err != nil {
		if ctx.Err() == nil {
			a.log.ErrorContext(ctx, "claim due", "kind", kind, "err", err)
		}
		return 0, true
	}
	for _, due := range list {
		if err := patient(func() error { return handle(ctx, account, due) }); err != nil {
			failed = true
			if ctx.Err() == nil {
				a.log.ErrorContext(ctx, "work due", "kind", kind, "key", due.Key, "err", err)
			}
			continue // its lease keeps it from coming back at once
		}
		a.store.Release(account, kind, due.Key)
	}
	return len(list), failed
}

// patient calls f again when its commit lost against another one.
func patient(f func() error) error {
	for range attempts {
		if err := guarded(f); !isKind(err, mailbox.Conflict) {
			return err
		}
	}
	return &mailbox.Error{Op: "due", Kind: mailbox.Transient}
}

// guarded turns a panic into an error: one bad entry stops no other.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("agent: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// expire closes a decision that nobody made in time. One in a window is left to it.
func (a *Agent) expire(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	d, _, err := a.loadDecision(ctx, account, due.Key)
	switch {
	case isKind(err, mailbox.NotFound):
		return a.dropDue(ctx, account, due)
	case err != nil:
		return err
	case d.State == Deciding: // the end of the window comes first, also when both are past
		due.At = d.Until.Add(time.Second)
		if now := a.now(); due.At.Before(now) {
			due.At = now.Add(time.Second)
		}
		return a.commit(ctx, account, mailbox.PutDue{Due: due})
	case d.State == Open && a.now().Before(d.Expires):
		due.At = d.Expires
		return a.commit(ctx, account, mailbox.PutDue{Due: due})
	case d.State != Open:
		return a.dropDue(ctx, account, due)
	}
	by := DecidedBy{Via: viaExpiry, At: a.now()}
	_, err = a.settle(ctx, account, d.ID, verdict{verb: "expire", by: by})
	return a.settled(ctx, account, due, err)
}

// settled ends the handling of a due entry after a decision: that somebody else
// decided first is an answer.
func (a *Agent) settled(ctx context.Context, account mailbox.AccountID, due mailbox.Due, err error) error {
	if isKind(err, mailbox.Conflict) {
		return a.dropDue(ctx, account, due)
	}
	return err
}

// endWindow is the end of the time in which a move can be taken back.
func (a *Agent) endWindow(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	d, version, err := a.loadDecision(ctx, account, due.Key)
	switch {
	case isKind(err, mailbox.NotFound):
		return a.dropDue(ctx, account, due)
	case err != nil:
		return err
	case d.Until.IsZero() || !d.State.undecided():
		return a.dropDue(ctx, account, due)
	case a.now().Before(d.Until) && d.Until.Sub(a.now()) <= a.opt.Window+clockSlack: // not of a clock that ran ahead
		due.At = d.Until
		return a.commit(ctx, account, mailbox.PutDue{Due: due})
	case d.State == Open: // copied, and the source stayed
		ops := []mailbox.Op{mailbox.RemoveEntry{Message: d.Mail, Mailbox: verbBox(d.Verb), IfPresent: true}}
		d.reopen()
		return a.commit(ctx, account, append(ops, decisionPut(d, version), mailbox.DeleteDue{Kind: DueWindow, Key: d.ID})...)
	case d.Crowd:
		return a.giveBack(ctx, account, d.By.Login)
	case d.Copied && d.SourceUID == 0: // of before it was kept: whatever was deleted then may have begun this
		places, err := a.store.Places(ctx, account, d.Mail)
		if err != nil {
			return err
		}
		return a.commit(ctx, account, backOps(d, version, places)...)
	}
	v := verdict{verb: d.Verb, by: *d.By}
	if d.By.Via == viaDelete {
		v.text = reasonDeleted
	}
	_, err = a.settle(ctx, account, d.ID, v)
	return a.settled(ctx, account, due, err)
}

// giveBack puts the decisions of a crowd back undecided, with one mail that asks.
func (a *Agent) giveBack(ctx context.Context, account mailbox.AccountID, login string) error {
	recs, err := a.store.Lookup(ctx, account, indexDeciding+login)
	if err != nil {
		return err
	}
	var ops []mailbox.Op
	var back []Decision
	for _, rec := range recs {
		d, err := decodeDecision(rec)
		if err != nil {
			return err
		}
		if !d.Crowd {
			continue
		}
		places, err := a.store.Places(ctx, account, d.Mail)
		if err != nil {
			return err
		}
		back = append(back, d)
		ops = append(ops, backOps(d, rec.Version, places)...)
	}
	if len(back) == 0 {
		return nil
	}
	asking, err := a.crowdNotice(ctx, account, back)
	if err != nil {
		return err
	}
	return a.commit(ctx, account, append(ops, asking...)...)
}

// backOps puts one decision's message back to where it lay.
func backOps(d Decision, version uint64, places []mailbox.Place) []mailbox.Op {
	var ops []mailbox.Op
	if !liesIn(places, Action) {
		ops = append(ops, mailbox.AddEntry{Message: d.Mail, Mailbox: Action})
	}
	if d.Source == mailbox.Inbox && !liesIn(places, mailbox.Inbox) {
		ops = append(ops, mailbox.AddEntry{Message: d.Mail, Mailbox: mailbox.Inbox})
		d.Alone = false
	}
	for _, box := range []mailbox.MailboxID{Approve, Reject} {
		ops = append(ops, mailbox.RemoveEntry{Message: d.Mail, Mailbox: box, IfPresent: true})
	}
	if d.By != nil && d.By.Via == viaDelete && liesIn(places, Trash) {
		ops = append(ops, mailbox.RemoveEntry{Message: d.Mail, Mailbox: Trash, IfPresent: true})
		d.Alone = !liesIn(places, mailbox.Inbox) && aloneAfter(places, Trash, 0)
	}
	d.reopen()
	return append(ops, decisionPut(d, version), mailbox.DeleteDue{Kind: DueWindow, Key: d.ID})
}

// crowdNotice is the one mail that asks about all of them.
func (a *Agent) crowdNotice(ctx context.Context, account mailbox.AccountID, back []Decision) ([]mailbox.Op, error) {
	o, err := a.owner(ctx, account)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(back, func(x, y Decision) int { return cmp.Compare(x.ID, y.ID) })
	var list strings.Builder
	for _, d := range back {
		fmt.Fprintf(&list, "\n- %s", d.Subject)
	}
	return a.noteOps(ctx, o, note{
		subject: fmt.Sprintf("%d decisions moved at once: nothing was decided", len(back)),
		text:    mail.AskAgainText(len(back), back[0].Verb) + "\n" + list.String() + "\n",
	})
}

func (a *Agent) dropDue(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	return a.commit(ctx, account, mailbox.DeleteDue{Kind: due.Kind, Key: due.Key})
}

func (a *Agent) commit(ctx context.Context, account mailbox.AccountID, ops ...mailbox.Op) error {
	_, err := a.store.Commit(ctx, account, mailbox.Tx{Ops: ops})
	return err
}
