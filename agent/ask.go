package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"

	"pizza/internal/crockford"
	"pizza/internal/mail"
	"pizza/internal/tools"
	"pizza/mailbox"
)

// ask opens a decision about a call, with its mail: an approval, or the question
// what became of a call whose outcome nobody knows. Event, record, mail and expiry
// are of one commit.
func (d *draft) ask(ctx context.Context, c Call) error {
	a, o := d.s.a, d.s.o
	dec, plan, err := d.decision(c)
	if err != nil {
		return err
	}
	th, _, err := a.thread(ctx, o.Account, d.run.Task)
	if err != nil {
		return err
	}
	out := a.askingMail(o, th, d, &dec, plan, c)
	if err := d.open(ctx, &dec, out); err != nil {
		return err
	}
	return d.add(Event{Asked: &EvAsked{Call: c.ID, Decision: dec.ID, Kind: dec.Kind}})
}

// decision is the record of what is asked, bound to the call and to the hash of its
// canonical arguments.
func (d *draft) decision(c Call) (Decision, tools.Plan, error) {
	args, err := canonical(c.Args)
	if err != nil {
		return Decision{}, tools.Plan{}, err
	}
	kind, own := decisionApproval, ownTool(c.Name)
	switch {
	case c.State == callUnsure:
		kind = decisionUnknown
	case own != nil && own.asks != "":
		kind = own.asks
	}
	now, plan := d.s.a.now(), d.s.a.judge(c)
	return Decision{
		ID: newToken(), Kind: kind, Task: d.run.Task, Run: d.run.ID, Call: c.ID,
		Tool: c.Name, Args: args, Hash: hashArgs(args), Nonce: crockford.Random(8),
		State: Open, Created: now, Expires: now.Add(d.s.a.opt.Expiry),
		Schema: d.s.a.schemaHash(c.Name), Always: kind == decisionApproval && plan.Effect.Standing(),
	}, plan, nil
}

// kindOf is the kind of mail that asks for a kind of decision.
func kindOf(decision string) string {
	if decision == decisionApproval {
		return KindApproval
	}
	return KindQuestion
}

// askingMail writes the mail of a decision.
func (a *Agent) askingMail(o owner, th *Thread, d *draft, dec *Decision, plan tools.Plan, c Call) mail.Outgoing {
	out := a.letter(o, th, kindOf(dec.Kind), d.run.ID, d.run.newest())
	a.asks(&out, dec.ID)
	sentence := plan.Sentence
	if sentence == "" {
		sentence = "Call " + dec.Tool + "."
	}
	dec.Sentence = sentence
	var attach []byte
	by := d.run.pathText()
	switch dec.Kind {
	case decisionQuestion:
		q, _ := questionOf(dec.Args) // policy took it for one
		out.Subject = mail.QuestionSubject(q)
		out.Plain, out.HTML = mail.QuestionText(mail.Question{By: by, Task: d.run.Subject, Question: q, Expires: a.local(dec.Expires)})
	case decisionUnknown:
		out.Subject = mail.UnknownSubject(sentence)
		out.Plain, out.HTML, attach = mail.UnknownText(mail.Unknown{
			Sentence: sentence, By: by, Task: d.run.Subject, Tool: dec.Tool, Args: dec.Args, Nonce: dec.Nonce,
			Started: a.local(c.Begun), Said: saidOf(c), Expires: a.local(dec.Expires),
			ReplyAddress: out.ReplyTo.String(), Subject: out.Subject,
		})
	default:
		out.Subject = mail.ApprovalSubject(sentence)
		out.Plain, out.HTML, attach = mail.ApprovalText(mail.Approval{
			Sentence: sentence, By: by, Task: d.run.Subject, Tool: dec.Tool, Args: dec.Args, Nonce: dec.Nonce, Expires: a.local(dec.Expires),
			ReplyAddress: out.ReplyTo.String(), Subject: out.Subject, Reason: d.reason(), Outside: d.outside(plan) && plan.Rule == tools.Allow,
			Always: dec.Always, Again: strings.Join(again(c), " and "),
		})
	}
	out.Attachments = argumentsFile(attach)
	return out
}

// open puts a decision with its mail into the commit.
func (d *draft) open(ctx context.Context, dec *Decision, out mail.Outgoing) error {
	ops, err := d.s.a.openOps(ctx, d.s.account, dec, out)
	d.ops = append(d.ops, ops...)
	return err
}

// openOps store a decision with its mail: in Action, and in INBOX where the settings say so.
// They complete dec. One without a time to expire at waits for ever.
func (a *Agent) openOps(ctx context.Context, account mailbox.AccountID, dec *Decision, out mail.Outgoing) ([]mailbox.Op, error) {
	add := mailbox.AddMessage{
		Places: []mailbox.MailboxID{Action}, Hold: []string{decisionKey(dec.ID)}, Tag: decisionTag(dec.ID),
	}
	if a.opt.ActionInInbox {
		add.Places = append(add.Places, mailbox.Inbox)
	}
	dec.Alone = !a.opt.ActionInInbox
	add, err := a.post(ctx, account, out, add)
	if err != nil {
		return nil, err
	}
	dec.Mail, dec.MailID, dec.Subject, dec.Text = add.ID, out.MessageID, out.Subject, mail.PlainText(out)
	ref := MessageRef{Task: dec.Task, Run: dec.Run, Decision: dec.ID, Kind: kindOf(dec.Kind), Ours: true}
	var ops []mailbox.Op
	if !dec.Expires.IsZero() {
		dec.Remind = a.remindAt(*dec, dec.Created)
		ops = append(ops, mailbox.PutDue{Due: mailbox.Due{Kind: DueExpire, Key: dec.ID, At: dec.Expires}})
	}
	if !dec.Remind.IsZero() {
		ops = append(ops, mailbox.PutDue{Due: mailbox.Due{Kind: DueRemind, Key: dec.ID, At: dec.Remind}})
	}
	return append(ops, add, decisionPut(*dec, 0), refPut(out.MessageID, ref)), nil
}

// argumentsFile attaches arguments that a mail shows in part; nil: none.
func argumentsFile(attach []byte) []mail.OutAttachment {
	if attach == nil {
		return nil
	}
	return []mail.OutAttachment{{Name: "arguments.json", Media: "application/json",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(attach)), nil }}}
}

// again names the arguments of a call that the owner changed.
func again(c Call) []string {
	if c.Asked == nil {
		return nil
	}
	return changedNames(canonicalOr(c.Asked), canonicalOr(c.Args))
}

// saidOf is what is known of a call whose outcome is not; "" when it was just cut off.
func saidOf(c Call) string {
	if c.End == nil || c.End.Content == noResult {
		return ""
	}
	return c.End.Content
}

// reason is what the model said with its calls.
func (d *draft) reason() string {
	if i := d.st.lastReply(); i >= 0 {
		return textOf(d.st.Turns[i].Reply.Reply.Message)
	}
	return ""
}

// approved says why a decided call is not the one that was decided, "" when it is; then
// its decision is used up in the same commit.
func (d *draft) approved(ctx context.Context, c Call, args json.RawMessage) (refused string, err error) {
	a := d.s.a
	dec, version, err := a.loadDecision(ctx, d.s.account, c.Decision)
	switch {
	case isKind(err, mailbox.NotFound):
		return "Not done: the record of its approval is gone.", nil
	case err != nil:
		return "", err
	case dec.Call != c.ID || dec.Tool != c.Name || dec.final() != hashArgs(args):
		return "Not done: it is not the call that was approved.", nil
	case dec.Used > 0 && c.State == callAllowed:
		return "Not done: what was approved has been begun once already.", nil
	case dec.Schema != "" && dec.Schema != a.schemaHash(c.Name):
		return "Not done: the tool changed since this was approved. Make the call again if it is needed.", nil
	}
	dec.Used = c.Attempt + 1
	d.ops = append(d.ops, decisionPut(dec, version))
	return "", nil
}

// final is the hash of what may run: the arguments shown, or those of the edit.
func (d Decision) final() string {
	if d.Edited != nil {
		return hashArgs(canonicalOr(d.Edited))
	}
	return d.Hash
}

// newest is the mail a run answers.
func (r *Run) newest() Inbound {
	if len(r.Inputs) == 0 {
		return Inbound{Subject: r.Subject}
	}
	return r.Inputs[len(r.Inputs)-1]
}
