package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pizza/internal/crockford"
	"pizza/internal/mail"
	"pizza/mailbox"
)

// Limit is why a run stops to ask its owner whether it shall go on.
type Limit string

const (
	LimitModelCalls Limit = "model_calls" // of the run
	LimitToolCalls  Limit = "tool_calls"
	LimitTokens     Limit = "tokens" // of the run and its workers
	LimitCost       Limit = "cost"
	LimitTime       Limit = "time"    // since it began, waiting for a person aside
	LimitMonth      Limit = "month"   // what the account spends in a month
	LimitContext    Limit = "context" // compacting the conversation frees too little
	LimitWait       Limit = "wait"    // the provider wants a longer wait than a day
)

// LimitAsk is a question about the run as a whole: continue or stop.
type LimitAsk struct {
	Limit    Limit
	Decision string
	Decided  *EvDecided // nil while it is open
}

// askedLimit opens the question. One is open at a time, and nothing runs beside it.
func (s *State) askedLimit(e EvAsked) string {
	switch {
	case e.Kind != decisionLimit || e.Limit == "":
		return "asked about nothing"
	case s.asking():
		return "asked while a question about the run is open"
	case s.Pending && !s.Stale:
		return "asked while the model is called"
	}
	s.Asks = append(s.Asks, LimitAsk{Limit: e.Limit, Decision: e.Decision})
	return ""
}

// decidedLimit closes it.
func (s *State) decidedLimit(e *EvDecided) string {
	if !s.asking() || s.Asks[len(s.Asks)-1].Decision != e.Decision {
		return "decision " + e.Decision + " is not open"
	}
	s.Asks = slices.Clone(s.Asks)
	s.Asks[len(s.Asks)-1].Decided = e
	switch e.Verb {
	case "continue":
	case "stop", "expire":
		s.Stop = e
	default:
		return "verb " + e.Verb + " for a limit"
	}
	return ""
}

// asking reports whether a question about the run as a whole is open.
func (s *State) asking() bool {
	return len(s.Asks) > 0 && s.Asks[len(s.Asks)-1].Decided == nil
}

// granted counts how often the owner answered continue to a limit, and sums the
// numbers given with it.
func (s *State) granted(l Limit) (times, sum int) {
	for _, ask := range s.Asks {
		if ask.Limit == l && ask.Decided != nil && ask.Decided.Verb == "continue" {
			times++
			sum += ask.Decided.N
		}
	}
	return times, sum
}

// askLimit opens the question whether the run shall go on, and has it wait.
func (d *draft) askLimit(ctx context.Context, l Limit) error {
	a, o := d.s.a, d.s.o
	now := a.now()
	dec := Decision{
		ID: newToken(), Kind: decisionLimit, Task: d.run.Task, Run: d.run.ID, Nonce: crockford.Random(8),
		State: Open, Created: now, Expires: now.Add(a.opt.Expiry), Sentence: limitSentence(&d.st, l),
	}
	th, _, err := a.thread(ctx, o.Account, d.run.Task)
	if err != nil {
		return err
	}
	out := a.letter(o, th, KindQuestion, d.run.ID, d.run.newest())
	out.ReplyTo = &mail.Address{Name: "Pizza decision", Local: pizzaUser + "+a." + dec.ID, Host: a.opt.Domain}
	out.Headers = append(out.Headers, [2]string{"X-Pizza-Approval", dec.ID})
	out.Subject = mail.LimitSubject(dec.Sentence)
	out.Plain, out.HTML = mail.LimitText(mail.Limit{
		Sentence: dec.Sentence, So: doneText(&d.st) + partText(&d.st), Expires: a.local(dec.Expires),
		ReplyAddress: out.ReplyTo.String(), Subject: out.Subject,
	})
	if err := d.open(ctx, &dec, out); err != nil {
		return err
	}
	if err := d.add(Event{Asked: &EvAsked{Decision: dec.ID, Kind: decisionLimit, Limit: l}}); err != nil {
		return err
	}
	return d.pause(ctx, decisionLimit, time.Time{})
}

// limitSentence says which limit is reached.
func limitSentence(s *State, l Limit) string {
	switch l {
	case LimitModelCalls:
		return fmt.Sprintf("The task made %d model calls, which is its limit.", s.ModelCalls)
	case LimitToolCalls:
		return fmt.Sprintf("The task asked for %d tool calls, which is its limit.", s.ToolCalls)
	}
	return "The task reached its limit of " + string(l) + "."
}

// open stores a decision with its mail: in Action, and in INBOX where the settings say so.
func (d *draft) open(ctx context.Context, dec *Decision, out mail.Outgoing) error {
	a := d.s.a
	add := mailbox.AddMessage{
		Places: []mailbox.MailboxID{Action}, Hold: []string{decisionKey(dec.ID)}, Tag: decisionTag(dec.ID),
	}
	if a.opt.ActionInInbox {
		add.Places = append(add.Places, mailbox.Inbox)
	}
	dec.Alone = !a.opt.ActionInInbox
	add, err := a.post(ctx, d.s.account, out, add)
	if err != nil {
		return err
	}
	dec.Mail, dec.MailID, dec.Subject, dec.Text = add.ID, out.MessageID, out.Subject, mail.PlainText(out)
	ref := MessageRef{Task: d.run.Task, Run: d.run.ID, Decision: dec.ID, Kind: kindOf(dec.Kind), Ours: true}
	d.ops = append(d.ops, add, decisionPut(*dec, 0), refPut(out.MessageID, ref),
		mailbox.PutDue{Due: mailbox.Due{Kind: DueExpire, Key: dec.ID, At: dec.Expires}})
	return nil
}
