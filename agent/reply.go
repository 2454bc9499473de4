package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
)

// maxHelps is how many mails of ours a decision's replies get within an hour.
const maxHelps = 3

// replyOps is what a mail that answers another one does, by what it answers.
func (a *Agent) replyOps(ctx context.Context, in *intake, p *plan, ref MessageRef) error {
	switch {
	case ref.Ask != "":
		return a.askReply(ctx, in, p, ref)
	case ref.Decision != "" && !ref.Ours:
		// It answers an answer of the person's own: that is about the decision while
		// it is open, and about the task afterwards.
		d, _, err := a.loadDecision(ctx, in.account(), ref.Decision)
		if err == nil && d.State.undecided() {
			return a.decisionReply(ctx, in, p, d.ID)
		}
	case ref.Decision != "":
		err := a.decisionReply(ctx, in, p, ref.Decision)
		if !isKind(err, mailbox.NotFound) {
			return err
		}
	case ref.Kind != "":
		done, err := a.wordReply(ctx, in, p, ref)
		if done || err != nil {
			return err
		}
	default:
		done, err := a.forkReply(ctx, in, p, ref)
		if done || err != nil {
			return err
		}
	}
	return a.taskOps(ctx, in, p, ref.Task)
}

// wordReply is a reply to a result or status mail whose only words are cancel or
// stop, or that begins with fork; anything else is the next mail of the thread.
func (a *Agent) wordReply(ctx context.Context, in *intake, p *plan, ref MessageRef) (bool, error) {
	r, err := mail.Read(in.body, in.body.Size(), in.structure, "")
	if err != nil {
		return false, err
	}
	d, outcome, _ := mail.ParseDecision(mail.ForResult, r.New)
	if outcome != mail.Decided {
		return false, nil
	}
	switch d.Verb {
	case mail.CancelTask:
		return true, a.cancelReply(ctx, in, p, ref.Task)
	case mail.Fork:
		return a.forkOps(ctx, in, p, ref, d.Text != "" || len(r.Attachments) > 0)
	}
	return false, nil
}

// cancelReply cancels the live run of a task. The run's own last mail confirms it.
func (a *Agent) cancelReply(ctx context.Context, in *intake, p *plan, task string) error {
	p.receipt.Task = task
	p.add(in.refOps(MessageRef{Task: task, Message: p.msg.ID})...)
	run, err := a.findRun(ctx, in.account(), task)
	if err == nil {
		var ops []mailbox.Op
		var ids []string
		if ops, ids, err = a.cancelOps(ctx, in.account(), run, in.by(a.now())); err == nil {
			p.add(ops...)
			p.receipt.Note = "cancel requested"
			for _, id := range ids {
				p.done = append(p.done, func() { a.interrupt(id) })
			}
			return nil
		}
	}
	var me *mailbox.Error
	if !errors.As(err, &me) || me.Text == "" {
		return err
	}
	p.receipt.Note = "nothing to cancel; see your inbox"
	return a.tellOps(ctx, in, p, MessageRef{Task: task}, note{subject: "Nothing to cancel", text: "Nothing was cancelled: " + me.Text + ".\n"})
}

// by is the record of who decides with this mail.
func (in *intake) by(now time.Time) DecidedBy {
	return DecidedBy{Login: in.sub.Identity.Login, Credential: in.sub.Identity.Credential, Via: viaReply,
		Message: in.structure.MessageID, At: now}
}

// decisionReply is a reply to a decision mail: it decides, or is answered by a mail
// that says why it does not. Either commits with the reply itself.
func (a *Agent) decisionReply(ctx context.Context, in *intake, p *plan, id string) error {
	d, version, err := a.loadDecision(ctx, in.account(), id)
	if err != nil {
		return err
	}
	p.receipt.Task = d.Task
	p.add(in.refOps(MessageRef{Task: d.Task, Run: d.Run, Decision: d.ID, Message: p.msg.ID})...)
	r, err := mail.Read(in.body, in.body.Size(), in.structure, d.Text)
	if err != nil {
		return err
	}
	said, outcome, why := mail.ParseDecision(d.Kind, r.New)
	switch elsewhere, err := a.answersAnother(ctx, in, d); {
	case err != nil:
		return err
	case elsewhere:
		outcome, why = mail.Unclear, "the mail answers one decision and is addressed to another"
	}
	verb := string(said.Verb)
	switch {
	case !d.State.undecided():
		p.receipt.Note = "too late; see your inbox"
		return a.explain(ctx, in, p, d, version, "Not done: "+d.Subject, a.lateText(d))
	case outcome != mail.Decided:
		p.receipt.Note = "unclear; see your inbox"
		return a.explain(ctx, in, p, d, version, "Please answer again: "+d.Subject, mail.HelpText(a.about(d), why))
	case said.Verb == mail.CancelTask && d.Task == "":
		p.receipt.Note = "not decided; see your inbox"
		return a.explain(ctx, in, p, d, version, "Please answer again: "+d.Subject, mail.HelpText(a.about(d), "this is of no task"))
	case said.Verb == mail.CancelTask:
		return a.cancelReply(ctx, in, p, d.Task)
	case outcomes[d.Kind][verb] == "":
		p.receipt.Note = "not available; see your inbox"
		return a.explain(ctx, in, p, d, version, "Please answer again: "+d.Subject,
			mail.HelpText(a.about(d), fmt.Sprintf("“%s” is not available yet", verb)))
	case said.Verb == mail.Approve || said.Verb == mail.Always || said.Verb == mail.Repeat:
		if diff, changed := changedBlock(d, r); changed {
			p.receipt.Note = "not decided: the block was changed; see your inbox"
			return a.explain(ctx, in, p, d, version, "Not decided: "+d.Subject, mail.DifferenceText(a.about(d), diff))
		}
	}
	v := verdict{verb: verb, text: said.Text, by: in.by(a.now()), n: said.N}
	if said.Verb == mail.Answer {
		v.text += filesText(r.Attachments)
	}
	if said.Verb == mail.Edit {
		v.text = ""
		if v.args, err = editedArgs(d, r); err != nil {
			p.receipt.Note = "not decided; see your inbox"
			return a.explain(ctx, in, p, d, version, "Not decided: "+d.Subject, mail.EditProblemText(a.about(d), editProblem(err)))
		}
	}
	return a.decideByReply(ctx, in, p, d, version, v)
}

// answersAnother reports whether the mail is a reply to the mail of another decision
// than d, to whose address it went: whoever wrote it saw the other one.
func (a *Agent) answersAnother(ctx context.Context, in *intake, d Decision) (bool, error) {
	ref, err := a.answered(ctx, in)
	return ref.Ours && ref.Decision != "" && ref.Decision != d.ID, err
}

func (a *Agent) decideByReply(ctx context.Context, in *intake, p *plan, d Decision, version uint64, v verdict) error {
	decided, ops, err := a.decideOps(ctx, in.account(), d.ID, v)
	var me *mailbox.Error
	if errors.As(err, &me) && (me.Kind == mailbox.Refused || me.Kind == mailbox.Invalid) {
		text := mail.RefusedText(a.about(d), me.Text)
		if v.verb == "edit" {
			text = mail.EditProblemText(a.about(d), me.Text)
		}
		p.receipt.Note = "not decided; see your inbox"
		return a.explain(ctx, in, p, d, version, "Not decided: "+d.Subject, text)
	}
	if errors.As(err, &me) && me.Text != "" { // expired, or decided a moment ago
		p.receipt.Note = "too late; see your inbox"
		return a.explain(ctx, in, p, d, version, "Not done: "+d.Subject, a.lateText(d))
	}
	if err != nil {
		return err
	}
	p.receipt.Note = v.verb
	if s := decided.State; s == Approved || s == Rejected || s == Edited {
		p.receipt.Note = string(s)
	}
	p.add(ops...)
	if decided.Edited != nil && len(decided.Again) == 0 { // else the next question shows it
		err = a.tellEdited(ctx, in, p, decided)
	}
	p.done = append(p.done, func() { a.logDecision(ctx, decided) })
	return err
}

// editedArgs are the arguments that the block of a reply makes of those that were shown.
func editedArgs(d Decision, r *mail.Reading) (json.RawMessage, error) {
	sent, ok := mail.FindBlock(d.Text, d.Nonce)
	if !ok {
		return nil, mail.ErrNoBlock
	}
	if diff, typed := mail.TypedArguments(sent, r.New); typed {
		_, line, _ := strings.Cut(diff, "\n+ ")
		line, _, _ = strings.Cut(line, "\n")
		return nil, fmt.Errorf("%w: “%s” stands outside the marks, where it changes nothing", mail.ErrBlock, line)
	}
	return mail.EditedArgs(d.Args, sent, d.Nonce, r.Text)
}

// filesText tells the agent of the files that came with an answer: it gets the text only.
func filesText(files []mail.Attachment) string {
	if len(files) == 0 {
		return ""
	}
	var names []string
	for _, f := range files[:min(len(files), maxListed)] {
		names = append(names, oneLine(f.Name))
	}
	return "\n\n(Files came with this answer that you cannot read: " + strings.Join(names, ", ") +
		". The owner can send them to this task in a mail of its own.)"
}

// editProblem says what is wrong with an edit, to a person.
func editProblem(err error) string {
	if errors.Is(err, mail.ErrNoBlock) {
		return "your reply does not hold the arguments with both the marks around them"
	}
	return strings.TrimPrefix(err.Error(), mail.ErrBlock.Error()+": ")
}

// tellEdited shows the final arguments of an edit that is not asked about once more.
func (a *Agent) tellEdited(ctx context.Context, in *intake, p *plan, d Decision) error {
	c := shownCall(d)
	c.Args = d.Edited
	about := a.about(d)
	about.Sentence = cmp.Or(a.judge(c).Sentence, about.Sentence)
	text, attach := mail.EditedText(about, d.Tool, d.Edited, d.Nonce)
	return a.tellOps(ctx, in, p, MessageRef{Task: d.Task, Run: d.Run, Decision: d.ID}, note{
		subject: "Approved with your changes: " + d.Subject, text: text, attach: attach,
	})
}

// changedBlock compares the arguments as the reply shows and names them with those we sent.
func changedBlock(d Decision, r *mail.Reading) (diff string, changed bool) {
	sent, ok := mail.FindBlock(d.Text, d.Nonce)
	if !ok {
		return "", false
	}
	got, ok := mail.FindBlock(r.Text, d.Nonce)
	if !ok { // not quoted, or quoted without its marks
		diff, changed = mail.EditedOutsideMarks(sent, r.Text)
	} else {
		diff, changed = mail.DiffBlock(sent, got)
	}
	if changed {
		return diff, true
	}
	return mail.TypedArguments(sent, r.New)
}

// about names a decision in a mail of ours.
func (a *Agent) about(d Decision) mail.About {
	kind := mail.ForApproval
	if d.Kind != decisionApproval {
		kind = d.Kind
	}
	return mail.About{Kind: kind, Sentence: cmp.Or(d.Sentence, d.Subject), Expires: a.local(d.Expires), Always: d.Always}
}

// lateText says what became of a decision.
func (a *Agent) lateText(d Decision) string {
	switch {
	case d.State == Dropped:
		return mail.GoneText()
	case d.State == Expired || d.By == nil:
		return mail.ExpiredText(a.about(d))
	}
	return mail.DecidedText(a.about(d), cmp.Or(d.Verb, string(d.State)), d.By.Login, d.By.Via, a.local(d.By.At))
}

// explain answers a reply that decided nothing. A decision gets maxHelps such mails
// an hour: a program that answers by itself must not go on for ever.
func (a *Agent) explain(ctx context.Context, in *intake, p *plan, d Decision, version uint64, subject, text string) error {
	d.Helps = recent(d.Helps, a.now())
	if len(d.Helps) >= maxHelps {
		p.receipt.Note = strings.ReplaceAll(p.receipt.Note, "see your inbox", "no more help mails within this hour")
		return nil
	}
	subject = strings.TrimSuffix(subject, ": ") // of a task that was forgotten
	d.Helped++
	d.Helps = append(d.Helps, a.now().Unix())
	p.add(decisionPut(d, version))
	return a.tellOps(ctx, in, p, MessageRef{Task: d.Task, Run: d.Run, Decision: d.ID}, note{subject: subject, text: text})
}

// recent drops the times (Unix seconds) that lie more than an hour back.
func recent(times []int64, now time.Time) []int64 {
	var keep []int64
	for _, t := range times {
		if now.Sub(time.Unix(t, 0)).Abs() < time.Hour {
			keep = append(keep, t)
		}
	}
	return keep
}

// tellOps answers the mail with one of ours.
func (a *Agent) tellOps(ctx context.Context, in *intake, p *plan, ref MessageRef, n note) error {
	n.ref, n.answers = ref, in.inbound(p.msg.ID)
	n.chain = append(n.chain, in.structure.References...)
	ops, err := a.noteOps(ctx, in.owner, n)
	p.add(ops...)
	return err
}

// note is a mail of ours that is not about the course of a run.
type note struct {
	kind    string // KindNotice when empty
	subject string
	text    string
	attach  []byte   // arguments that the text shows in part
	answers Inbound  // the mail it answers, if any
	chain   []string // References up to that
	ref     MessageRef
}

// noteOps puts a note unread into INBOX. A reply to one about a decision goes to
// that decision.
func (a *Agent) noteOps(ctx context.Context, o owner, n note) ([]mailbox.Op, error) {
	if n.kind == "" {
		n.kind = KindNotice
	}
	out := a.sheet(o, n.kind)
	out.Subject, out.AutoSubmitted = n.subject, "auto-replied"
	out.Plain, out.Attachments = n.text, argumentsFile(n.attach)
	if id := n.answers.MessageID; id != "" {
		out.InReplyTo, out.References = id, append(n.chain, id)
	}
	if n.ref.Task != "" {
		out.Headers = append(out.Headers, [2]string{"X-Pizza-Task", n.ref.Task})
	}
	if n.ref.Run != "" {
		out.Headers = append(out.Headers, [2]string{"X-Pizza-Run", n.ref.Run})
	}
	if id := n.ref.Decision; id != "" {
		a.asks(&out, id)
	}
	ref := n.ref
	ref.Kind, ref.Ours = n.kind, true
	return a.deliver(ctx, o, out, ref)
}
