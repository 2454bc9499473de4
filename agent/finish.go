package agent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
	"pizza/providers"
)

// ending is how a run ends and what its last mail says.
type ending struct {
	move  Move
	kind  string // of the mail
	text  string // Markdown
	error string // of a failed run, for lists
}

// end decides how a run ends.
func (d *draft) end(ctx context.Context, act Todo) error {
	if d.run.child() {
		return d.finishChild(ctx, d.childEnding(act))
	}
	switch act.Do {
	case DoFinish:
		return d.finish(ctx, ending{move: moveFinish, kind: KindResult, text: answerOf(&d.st)})
	case DoEnd:
		if ask := d.st.stoppedAt(); ask != nil {
			return d.stopAt(ctx, *ask)
		}
		return d.finish(ctx, ending{move: moveCancel, kind: KindNotice, text: d.cancelText()})
	}
	text, short := d.s.a.failText(&d.st, d.run, act.Fail)
	return d.finish(ctx, ending{move: moveFail, kind: KindFailure, text: text, error: short})
}

// finish ends the run. Journal, record, mail, status message, open decisions, thread
// and the thread's next run are one commit.
func (d *draft) finish(ctx context.Context, e ending) error {
	a, o := d.s.a, d.s.o
	if err := d.move(e.move); err != nil {
		return err
	}
	th, version, err := a.thread(ctx, o.Account, d.run.Task)
	if err != nil {
		return err
	}
	var dropped []Inbound
	if e.move == moveCancel && d.st.Cancel != nil {
		dropped = th.cancelQueue(d.st.Cancel.By.At)
		e.text += notWorkedOn(dropped)
	}
	e.text += d.expiredText()
	out := a.lastMail(ctx, o, th, d, e)
	if err := d.add(Event{Finished: &EvFinished{State: d.run.State, Mail: out.MessageID, Text: e.text}}); err != nil {
		return err
	}
	ops, err := a.endOps(ctx, o, &d.run, out, e)
	if err != nil {
		return err
	}
	next, err := a.endThread(ctx, o, th, version, &d.run, out)
	if err != nil {
		return err
	}
	for _, m := range dropped {
		next = append(next, mailbox.Hold{Message: m.Message, Name: runHold(runID(d.run.Task, runNumber(d.run.ID)+1)), Release: true})
	}
	d.ops = append(append(d.ops, ops...), next...)
	d.over = true
	return nil
}

// cancelQueue takes out of the queue what was sent before the task was cancelled: that is
// part of it. What comes later is new.
func (th *Thread) cancelQueue(at time.Time) (dropped []Inbound) {
	var later []Inbound
	for _, m := range th.Queue {
		if m.Date.After(at) {
			later = append(later, m)
		} else {
			dropped = append(dropped, m)
		}
	}
	th.Queue = later
	return dropped
}

// notWorkedOn names the mails that a cancellation took with it.
func notWorkedOn(mails []Inbound) string {
	if len(mails) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nWhat you had sent to it meanwhile was not worked on either:\n\n")
	for _, m := range mails {
		fmt.Fprintf(&b, "- `%s`\n", strings.ReplaceAll(cmp.Or(oneLine(m.Subject), "(no subject)"), "`", "'"))
	}
	return b.String()
}

// lastMail writes the mail that tells how a run ended.
func (a *Agent) lastMail(ctx context.Context, o owner, th *Thread, d *draft, e ending) mail.Outgoing {
	out := a.letter(o, th, e.kind, d.run.ID, d.run.newest())
	out.Headers = append(out.Headers,
		[2]string{"X-Pizza-Model", d.run.Model}, [2]string{"X-Pizza-Usage", usageHeader(&d.st)})
	out.Markdown = e.text
	spent := d.st.Spent()
	out.Footer = mail.FooterText(mail.Usage{
		Model: d.run.Model, Steps: spent.ModelCalls,
		TokensIn: int64(spent.Usage.Input), TokensOut: int64(spent.Usage.Output),
		Cost: costText(spent.Usage.Cost), Took: a.now().Sub(d.run.Created),
	})
	out.Footer = strings.TrimSpace(d.run.origin() + " " + out.Footer)
	out.Attachments = a.attachments(ctx, o, d.st.Files())
	return out
}

// costText is a cost, "" where nobody said one.
func costText(usd float64) string {
	if usd <= 0 {
		return ""
	}
	return dollars(micro(usd))
}

// attachments are the files of /out.
func (a *Agent) attachments(ctx context.Context, o owner, files []OutChange) []mail.OutAttachment {
	ctx = context.WithoutCancel(ctx)
	var list []mail.OutAttachment
	for _, f := range files {
		list = append(list, mail.OutAttachment{
			Name:  strings.ReplaceAll(f.Name, "/", "_"),
			Media: cmp.Or(mime.TypeByExtension(path.Ext(f.Name)), "application/octet-stream"),
			Open:  func() (io.ReadCloser, error) { return a.openBlob(ctx, o.Account, f.Blob) },
		})
	}
	return list
}

// endOps stores the last mail and takes away what only a live run has.
func (a *Agent) endOps(ctx context.Context, o owner, run *Run, out mail.Outgoing, e ending) ([]mailbox.Op, error) {
	ops, err := a.deliver(ctx, o, out, MessageRef{Task: run.Task, Run: run.ID, Kind: e.kind, Ours: true})
	if err != nil {
		return nil, err
	}
	dropped, err := a.dropDecisions(ctx, o.Account, run.ID)
	if err != nil {
		return nil, err
	}
	ops = append(ops, dropped...)
	filed, err := a.fileDropped(ctx, o.Account, run)
	if err != nil {
		return nil, err
	}
	ops = append(ops, filed...)
	if run.Status != 0 {
		ops = append(ops, mailbox.RemoveEntry{Message: run.Status, Mailbox: Running, IfPresent: true})
	}
	run.Status, run.For, run.Result, run.Error = 0, "", out.MessageID, e.error
	return append(ops, mailbox.DeleteDue{Kind: DueRun, Key: run.ID}), nil
}

// dropDecisions closes what a run that ends has open.
func (a *Agent) dropDecisions(ctx context.Context, account mailbox.AccountID, run string) ([]mailbox.Op, error) {
	open, err := a.store.Lookup(ctx, account, indexOfRun+run)
	var ops []mailbox.Op
	for _, rec := range open {
		if dec, err := decodeDecision(rec); err == nil && dec.State.undecided() {
			ops = append(ops, closeOps(dec, rec.Version, Dropped)...)
		}
	}
	return ops, err
}

// endThread frees the thread and begins its next run, if a mail waits.
func (a *Agent) endThread(ctx context.Context, o owner, th *Thread, version uint64, run *Run, out mail.Outgoing) ([]mailbox.Op, error) {
	if th == nil {
		return nil, nil
	}
	now := a.now()
	th.forget(now)
	th.Sends = append(th.Sends, now.Unix())
	th.joined(out)
	if th.Active == run.ID {
		th.Active = ""
	}
	var ops []mailbox.Op
	if th.Active == "" && len(th.Queue) > 0 {
		in := th.take(a.joins(ctx, run.Model))
		begin, next, err := a.beginRun(ctx, o, th, in)
		if err != nil {
			return nil, err
		}
		for _, m := range in {
			ops = append(ops, mailbox.Hold{Message: m.Message, Name: runHold(next.ID)})
		}
		ops = append(ops, begin...)
	}
	if th.idle() {
		th.Ended = now
	}
	return append(ops, threadPut(th, version)), nil
}

// joined puts a mail of ours into the chain of the thread. When a later mail has
// come meanwhile, it stays the newest.
func (th *Thread) joined(out mail.Outgoing) {
	if th.Last == out.InReplyTo || th.Last == "" {
		th.follow(out.MessageID)
		return
	}
	th.References = append(th.References, out.MessageID)
}

// take takes from the queue what the next run works on: all that waits, or the
// oldest only when the model works one mail at a time.
func (th *Thread) take(all bool) []Inbound {
	n := 1
	if all {
		n = len(th.Queue)
	}
	in := slices.Clone(th.Queue[:n])
	th.Queue = slices.Clone(th.Queue[n:])
	return in
}

// joins reports whether a model may be given several mails at once.
func (a *Agent) joins(ctx context.Context, name string) bool {
	info, _ := a.info(ctx, name)
	return info.Joins
}

// answerOf is the text of the result: the model's last, or an honest sentence.
func answerOf(s *State) string {
	last := s.Turns[len(s.Turns)-1].Reply
	text := textOf(last.Reply.Message)
	switch {
	case text == "" && len(s.Files()) > 0:
		return "The model gave no text. What it made is attached."
	case text == "":
		return "The model gave an empty answer, also when asked again. What was done up to there stands; reply to go on."
	case last.Reply.Stop == providers.StopLength:
		return text + "\n\n*The answer was cut off here: the model reached its length limit. Reply to have it go on.*"
	}
	return text
}

// cancelText tells who ended the run, and which calls may have happened.
func (d *draft) cancelText() string {
	var b strings.Builder
	if d.st.Cancel != nil {
		by := d.st.Cancel.By
		fmt.Fprintf(&b, "This task was cancelled by %s on %s.", by.who(), d.s.a.when(by.At))
	} else {
		fmt.Fprintf(&b, "This task was stopped by %s on %s.", d.st.Stop.By.who(), d.s.a.when(d.st.Stop.By.At))
	}
	b.WriteString(" Nothing more will be done.\n")
	b.WriteString(d.unsureText())
	b.WriteString(doneText(&d.st))
	return b.String()
}

// expiredText tells what was not done because nobody decided in time.
func (d *draft) expiredText() string {
	var b strings.Builder
	for _, t := range d.st.Turns {
		for _, c := range t.Calls {
			became := map[string]string{decisionApproval: "not done", decisionQuestion: "not answered"}[c.Kind]
			if c.Decided != nil && c.Decided.Verb == "expire" && became != "" {
				fmt.Fprintf(&b, "- %s: %s\n", d.s.a.sentence(c), became)
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("\n\nThis waited for you until it expired after %s:\n\n%s", days(d.s.a.opt.Expiry), b.String())
}

// sentence says what a call does, as a code span: its arguments come from a model.
func (a *Agent) sentence(c Call) string {
	return "`" + strings.ReplaceAll(a.plainSentence(c), "`", "'") + "`"
}

// plainSentence says what a call does, on one line of at most 200 characters.
func (a *Agent) plainSentence(c Call) string {
	return short(cmp.Or(a.judge(c).Sentence, "Call "+c.Name))
}

// doneText lists the calls that changed something, for a mail without a result.
func doneText(s *State) string {
	var b strings.Builder
	for _, name := range did(s) {
		fmt.Fprintf(&b, "- `%s`: done\n", name)
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nWhat was done before:\n\n" + b.String()
}

// failText is the text of a failure mail, and one line for lists.
func (a *Agent) failText(s *State, run Run, why Fail) (text, short string) {
	f := mail.Failure{Model: run.Model, Task: run.Task, Tries: s.Failures}
	switch why {
	case FailModel:
		f.Class, f.Detail = string(s.Failed.Class), s.Failed.Text
		if s.Failed.Code == providers.NoKey {
			f.Class = providers.NoKey
		}
		short = "model: " + string(s.Failed.Class)
	case FailFilter:
		f.Class, short = string(providers.Filtered), "model: filtered"
	case FailWindow:
		f.Class, short = string(providers.ContextLength), "model: context_length"
	case FailLost:
		f.Class, f.Tries, short = "lost", s.Lost+1, string(why)
	default:
		f.Detail, short = "", string(why)
	}
	return mail.FailureText(f) + doneText(s) + partText(s), short
}

// partText is the newest text of a model that came to no end.
func partText(s *State) string {
	if text := lastSaid(s); text != "" {
		return "\nThe last it said:\n\n" + text + "\n"
	}
	return ""
}
