package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pizza/internal/mail"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// ChildEnd is what the run of a worker came to, beside its text.
type ChildEnd struct {
	State RunState `json:"state"`
	Spent Spent    `json:"spent"` // by it and those below it
	Used  Part     `json:"used"`  // of the budget, calls whose reply was lost too
	// Done are the tools that changed something; Unsure the calls, in words, of which nobody
	// knows whether they had their effect.
	Done   []string `json:"done,omitempty"`
	Unsure []string `json:"unsure,omitempty"`
}

// finishChild ends the run of a worker. Its end, the result of the call that began it, and
// that the run which made the call goes on are one commit; no mail is sent. A run that
// has ended meanwhile gets nothing.
func (d *draft) finishChild(ctx context.Context, e ending) error {
	a := d.s.a
	if err := d.move(e.move); err != nil {
		return err
	}
	if err := d.add(Event{Finished: &EvFinished{State: d.run.State, Text: e.text}}); err != nil {
		return err
	}
	end, blobs, err := d.handBack(ctx, e)
	if err != nil {
		return err
	}
	d.run.For, d.run.Error = "", e.error
	d.over = true
	ops, err := a.endChild(ctx, d.s.o, d.run, end, blobs)
	d.ops, d.nudge = append(d.ops, ops...), append(d.nudge, parentOf(d.run.ID))
	return err
}

// handBack is the result that the run above gets: the text, and what was made in /out.
func (d *draft) handBack(ctx context.Context, e ending) (EvToolEnd, []mailbox.Blob, error) {
	end := EvToolEnd{Call: d.run.Call, Status: endOK, Content: e.text, Took: d.st.Worked,
		Child: &ChildEnd{State: d.run.State, Spent: d.st.Spent(), Used: d.st.usedUp(),
			Done: did(&d.st), Unsure: d.unsureCalls()}}
	if d.run.State != Done {
		end.Status = endError
	}
	blobs, err := d.s.stageResult(ctx, &end, tools.Outcome{})
	if err != nil {
		return end, nil, err
	}
	end.Out = d.st.Out[len(d.st.Started.Out):]
	for _, f := range end.Out {
		if !f.Deleted && f.Blob.Size > 0 {
			blobs = append(blobs, f.Blob)
		}
	}
	return end, blobs, nil
}

// endChild takes away what only a live run has, and tells the run above.
func (a *Agent) endChild(ctx context.Context, o owner, run Run, end EvToolEnd, blobs []mailbox.Blob) ([]mailbox.Op, error) {
	ops, err := a.dropDecisions(ctx, o.Account, run.ID)
	if err != nil {
		return nil, err
	}
	ops = append(ops, mailbox.DeleteDue{Kind: DueRun, Key: run.ID})
	up := parentOf(run.ID)
	rec, err := a.store.Record(ctx, o.Account, runKey(up))
	if isKind(err, mailbox.NotFound) {
		return ops, nil
	}
	if err != nil {
		return nil, err
	}
	parent, err := decodeRun(rec)
	if err != nil || parent.State.Ended() { // who cannot read it parks it
		return append(ops, mailbox.CheckRecord{Key: rec.Key, Version: rec.Version}), nil
	}
	live, err := a.liveWorkers(ctx, o.Account, run.Task)
	if err != nil {
		return nil, err
	}
	live = slices.DeleteFunc(live, func(l liveRun) bool { return l.ID == run.ID })
	beside := slices.ContainsFunc(live, func(l liveRun) bool { return parentOf(l.ID) == up })
	add := appendOp(up, parent.Seq, Event{At: a.now(), ToolEnd: &end})
	add.Blobs = blobs
	parent.Seq++
	ops = append(ops, add)
	if !beside || parent.State != Waiting { // else it would only begin to wait again
		if parent.State == Waiting {
			parent.State, parent.For, parent.Changed = Queued, "", a.now()
		}
		ops = append(ops, dueRun(up, a.now()))
	}
	if len(live) > 0 {
		shown, err := a.showFamily(ctx, o, &parent, live)
		if err != nil {
			return nil, err
		}
		ops = append(ops, shown...)
	}
	return append(ops, runPut(parent, rec.Version)), nil
}

// childEnding is how the run of a worker ends and what its result says.
func (d *draft) childEnding(act Todo) ending {
	name := d.run.worker()
	switch act.Do {
	case DoFinish:
		return ending{move: moveFinish, text: childAnswer(&d.st)}
	case DoEnd:
		by := d.st.endedBy()
		if ask := d.st.stoppedAt(); ask != nil && d.st.Stop.Verb == "expire" {
			return ending{move: moveFail, error: "limit reached",
				text: limitSentence(&d.st, ask.Limit) + " Nobody said whether it shall go on.\n" + doneText(&d.st) + partText(&d.st)}
		}
		text := fmt.Sprintf("Worker %s was ended by %s before it was done.", name, by.who())
		return ending{move: moveCancel, text: text + "\n" + d.unsureText() + doneText(&d.st) + partText(&d.st), error: "ended"}
	}
	why := string(act.Fail)
	switch act.Fail {
	case FailModel:
		why = fmt.Sprintf("its model %s failed (%s): %s", d.run.Model, d.st.Failed.Class, short(d.st.Failed.Text))
	case FailFilter:
		why = "its model refused, by its own rules about content"
	case FailWindow:
		why = "the work became too long for its model"
	}
	return ending{move: moveFail, error: why, text: fmt.Sprintf("Worker %s failed: %s.\n", name, why) + doneText(&d.st) + partText(&d.st)}
}

// who names who decided in a sentence.
func (by DecidedBy) who() string {
	if by.Login == "" {
		return "the end of the task"
	}
	return mail.ByText(by.Login, by.Via)
}

// childAnswer is the result of a worker: the model's last text.
func childAnswer(s *State) string {
	last := s.Turns[len(s.Turns)-1].Reply
	text := textOf(last.Reply.Message)
	switch {
	case text == "" && len(s.Out) > len(s.Started.Out):
		return "The worker gave no text. What it made is in /out."
	case text == "":
		return "The worker gave no text."
	case last.Reply.Stop == providers.StopLength:
		return text + "\n\n(The text was cut off here: the worker's model reached its length limit.)"
	}
	return text
}

// did names the tools that changed something, the workers' too.
func did(s *State) []string {
	var names []string
	for _, t := range s.Turns {
		for _, c := range t.Calls {
			switch {
			case c.Class == classWorker && c.End != nil && c.End.Child != nil:
				names = append(names, c.End.Child.Done...)
			case c.changed() && c.Class != classWorker:
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// unsureCalls are the calls, in words, of which nobody knows whether they had their effect.
func (d *draft) unsureCalls() []string {
	var list []string
	for _, c := range d.st.open() {
		if c.Class == classWorker {
			if c.End != nil && c.End.Child != nil {
				list = append(list, c.End.Child.Unsure...)
			}
			continue
		}
		unsure := c.State == callStarted || c.State == callUnsure || c.Kind == decisionUnknown && !c.confirmed()
		if unsure && c.Class != "" && c.Class != tools.ReadOnly {
			list = append(list, d.s.a.sentence(c))
		}
	}
	return list
}

func (d *draft) unsureText() string {
	var b strings.Builder
	for _, s := range d.unsureCalls() {
		fmt.Fprintf(&b, "\nIt is not known whether this call had its effect: %s\n", s)
	}
	return b.String()
}
