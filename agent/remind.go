package agent

import (
	"context"
	"slices"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
)

// remindAt is when a decision is called to mind next, after now: each Options.Remind from
// when it was asked, before it expires. Zero: not again.
func (a *Agent) remindAt(d Decision, now time.Time) time.Time {
	every := a.opt.Remind
	if every <= 0 || d.Created.IsZero() {
		return time.Time{}
	}
	at := d.Created.Add((max(now.Sub(d.Created), 0)/every + 1) * every)
	if !d.Expires.IsZero() && !at.Before(d.Expires) {
		return time.Time{}
	}
	return at
}

// remind tells of the open decisions of which it is time, all in one mail. The mail, the
// times of the next and the versions of the records are one commit: what was decided
// meanwhile is not told.
func (a *Agent) remind(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	now := a.now()
	recs, err := a.store.Lookup(ctx, account, indexOpenDecisions)
	if err != nil {
		return err
	}
	ops := []mailbox.Op{mailbox.DeleteDue{Kind: DueRemind, Key: due.Key}} // put anew below where it goes on
	var told []Decision
	for _, rec := range recs {
		d, err := decodeDecision(rec)
		if err != nil {
			return err
		}
		if d.Remind.IsZero() || now.Before(d.Remind) {
			if d.ID == due.Key && !d.Remind.IsZero() { // told with others a moment ago, or the clock went back
				due.At = d.Remind
				ops = append(ops, mailbox.PutDue{Due: due})
			}
			continue
		}
		if d.State == Open && (d.Expires.IsZero() || now.Before(d.Expires)) {
			told = append(told, d)
		}
		if d.Remind = a.remindAt(d, now); !d.Remind.IsZero() {
			ops = append(ops, mailbox.PutDue{Due: mailbox.Due{Kind: DueRemind, Key: d.ID, At: d.Remind}})
		}
		ops = append(ops, decisionPut(d, rec.Version))
	}
	note, err := a.reminderOps(ctx, account, told)
	if err != nil {
		return err
	}
	return a.commit(ctx, account, append(ops, note...)...)
}

// reminderOps is the mail. A reply to one about a single decision is for that.
func (a *Agent) reminderOps(ctx context.Context, account mailbox.AccountID, told []Decision) ([]mailbox.Op, error) {
	if len(told) == 0 || a.opt.Remind <= 0 {
		return nil, nil
	}
	o, err := a.owner(ctx, account)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(told, oldestFirst)
	var list []mail.About
	for _, d := range told {
		list = append(list, a.about(d))
	}
	n := note{subject: mail.ReminderSubject(list), text: mail.ReminderText(list)}
	if len(told) == 1 {
		d := told[0]
		n.ref = MessageRef{Task: d.Task, Run: d.Run, Decision: d.ID}
		n.answers = Inbound{MessageID: d.MailID}
	}
	return a.noteOps(ctx, o, n)
}
