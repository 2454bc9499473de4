package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pizza/mailbox"
)

// answerOps answers mail to pizza+help@ and pizza+status@.
func (a *Agent) answerOps(ctx context.Context, in *intake, p *plan) error {
	if _, ok := in.has(toHelp); ok {
		if err := a.tellOps(ctx, in, p, MessageRef{}, note{subject: "How to use Pizza", text: a.helpText()}); err != nil {
			return err
		}
	}
	if _, ok := in.has(toStatus); ok {
		text, err := a.statusText(ctx, in.account())
		if err != nil {
			return err
		}
		if err := a.tellOps(ctx, in, p, MessageRef{}, note{subject: "What is going on", text: text}); err != nil {
			return err
		}
	}
	p.receipt.Note = "answered by mail"
	return nil
}

func (a *Agent) helpText() string {
	at := func(user string) string { return user + "@" + a.opt.Domain }
	return `Everything here is mail.

` + at(pizzaUser) + `
  A new mail starts a task. Its result comes unread into INBOX; reply to it to go on.

Decisions
  What only you can decide waits in Action, and in INBOX. Reply approve or reject
  (a reason after a colon), or move the mail to Action/Approve or Action/Reject.
  edit takes the arguments as you changed them in the quoted mail, answer: TEXT tells
  the agent something instead, always approves this tool for the rest of the task where
  the mail says so. A question is answered by any reply. cancel task ends the task.

Running
  One message a live task. Delete it to cancel the task; or reply cancel.

` + at(statusUser) + `
  Answers with what is running and what waits for you.

` + at("NAME") + `
  Straight into the INBOX of that account.
`
}

// statusText lists the live tasks and the open decisions of an account.
func (a *Agent) statusText(ctx context.Context, account mailbox.AccountID) (string, error) {
	var b strings.Builder
	if r, on, err := a.parked(ctx, account); err != nil {
		return "", err
	} else if on {
		fmt.Fprintf(&b, "Nothing runs: this store was restored from a backup of %s. Answer the mail about that in Action.\n\n", a.when(r.From))
	}
	recs, err := a.store.Lookup(ctx, account, indexLiveRuns)
	if err != nil {
		return "", err
	}
	runs := tops(runsOf(recs))
	fmt.Fprintf(&b, "Live tasks: %d\n", len(runs))
	for _, r := range runs {
		r.State = a.stateNow(account, r)
		fmt.Fprintf(&b, "- %s: %s, since %s\n", oneLine(r.Subject), stateText(r), a.when(r.Created))
	}
	if _, off := a.Subagents(); len(off) > 0 {
		b.WriteString("\nWorkers that are off until their settings are mended:\n")
		for _, w := range off {
			fmt.Fprintf(&b, "- %s: %s\n", oneLine(w.Name), oneLine(w.Why))
		}
	}
	recs, err = a.store.Lookup(ctx, account, indexOpenDecisions)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nDecisions that wait for you: %d\n", len(recs))
	var open []Decision
	for _, rec := range recs {
		d, err := decodeDecision(rec)
		if err != nil {
			return "", err
		}
		open = append(open, d)
	}
	slices.SortFunc(open, oldestFirst)
	for _, d := range open {
		fmt.Fprintf(&b, "- %s (until %s)\n", oneLine(d.Subject), a.when(d.Expires))
	}
	return b.String(), nil
}

func stateText(r Run) string {
	if r.For != "" {
		return string(r.State) + " for " + r.For
	}
	return string(r.State)
}
