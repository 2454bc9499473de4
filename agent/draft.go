package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// draft is the next commit of a session in the making: the state as it will be, and
// what brings it about. A draft that meets a conflict is thrown away.
type draft struct {
	s      *session
	st     State
	run    Run
	events []Event
	blobs  []mailbox.Blob
	ops    []mailbox.Op

	launch []string      // calls to run once committed
	call   bool          // call the model once committed
	show   bool          // replace the status message
	over   bool          // the run ends or waits with this
	born   []Run         // runs of workers that begin with this
	nudge  []string      // runs whose sessions, if any, are to read their journal once committed
	keeper bool          // the keeper of the account's refused keys has something to look at
	held   time.Duration // the run waits for a gate so long, without a commit
	until  time.Time     // the run waits in the store until then
}

// draft makes the next commit: what base adds, and all that Next says until
// something has to happen outside.
func (s *session) draft(ctx context.Context, base func(*draft) error) (*draft, error) {
	ctx = context.WithoutCancel(ctx)
	d := &draft{s: s, st: s.st, run: s.run}
	var err error
	if d.run.State, err = claimed(d.run.State); err != nil {
		return nil, err
	}
	d.run.For, d.run.Refused = "", ""
	if base != nil {
		if err := base(d); err != nil {
			return nil, err
		}
	}
	if err := d.follow(ctx); err != nil {
		return nil, err
	}
	if d.show && !d.over {
		if err := d.status(ctx); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *draft) empty() bool { return len(d.events) == 0 && len(d.ops) == 0 }

// tx is the commit: fenced by the journal's end and by the version of the record.
func (d *draft) tx() []mailbox.Op {
	add := appendOp(d.run.ID, d.s.st.Seq, d.events...)
	add.Blobs = d.blobs
	d.run = d.told()
	d.run.Seq, d.run.Changed = d.st.Seq, d.s.a.now()
	d.run.Epoch = d.s.a.store.Epoch(d.s.account)
	if d.over || progress(d.events) {
		d.run.Claims = 0
	}
	d.run.Spent = Spent{ModelCalls: d.st.ModelCalls, ToolCalls: d.st.ToolCalls, Usage: d.st.Usage}
	var ops []mailbox.Op
	if len(d.events) > 0 {
		ops = append(ops, add)
	}
	ops = append(ops, runPut(d.run, d.s.ver))
	ops = append(ops, d.s.a.spendOps(d.run.Model, &d.s.st, d.events)...)
	return append(ops, d.ops...)
}

// add puts an event at the end of the journal to be.
func (d *draft) add(e Event) error {
	e.At = d.s.a.now()
	if err := d.st.Apply(e); err != nil {
		return fmt.Errorf("agent: draft: %s", err) // not a *JournalError: the journal itself is well
	}
	d.events = append(d.events, e)
	return nil
}

func (d *draft) move(m Move) (err error) {
	d.run.State, err = step(d.run.State, m)
	return err
}

// follow does what Next says until it takes an effect, a person or time to go on.
func (d *draft) follow(ctx context.Context) error {
	full := d.s.full(ctx)
	for range 1000 {
		act := Next(d.st)
		held := full && act.begins()
		if held {
			act.Start = nil
		}
		switch act.Do {
		case DoStep:
			before := d.st.Seq
			if err := d.step(ctx, act); err != nil {
				return err
			}
			if d.st.Seq == before && held {
				return d.awaitRoom(ctx)
			}
			if d.st.Seq == before {
				return nil // stopping: what is left would begin something
			}
		case DoCall, DoCompact:
			if held {
				return d.awaitRoom(ctx)
			}
			return d.callModel(ctx, act)
		case DoBusy:
			return nil
		case DoWait:
			if act.For != forWorkers {
				return d.pause(ctx, act.For, time.Time{})
			}
			if goOn, err := d.awaitWorkers(ctx); err != nil || !goOn {
				return err
			}
		case DoAsk:
			return d.askLimit(ctx, act.Limit)
		case DoNothing:
			d.over = true
			return nil
		default:
			return d.end(ctx, act)
		}
	}
	return errors.New("agent: the run does not come to rest")
}

// step commits what the lists of a DoStep say.
func (d *draft) step(ctx context.Context, act Todo) error {
	for _, list := range []struct {
		ids []string
		do  func(context.Context, Call) error
	}{
		{act.Plan, d.plan}, {act.Settle, d.close}, {act.Unsure, d.unsure}, {act.Ask, d.ask},
		{act.Probe, d.probe}, {act.Start, d.start},
	} {
		for _, id := range list.ids {
			if err := list.do(ctx, *d.st.call(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// plan lets policy judge a call.
func (d *draft) plan(ctx context.Context, c Call) error {
	p, err := d.weigh(ctx, c)
	if err != nil {
		return err
	}
	if p.Rule == tools.Invalid && d.s.a.gone(&d.st, c.Name) {
		p.Reason = "The tool " + c.Name + " was taken away since this task began. Do without it."
	}
	return d.add(Event{Policy: &EvPolicy{Call: c.ID, Rule: string(p.Rule), Text: p.Reason, By: p.By}})
}

// close gives a call that does not run its result.
func (d *draft) close(_ context.Context, c Call) error {
	status, text := closing(c, d.s.a.opt.Expiry)
	return d.add(Event{ToolEnd: &EvToolEnd{Call: c.ID, Status: status, Content: text}})
}

// closing is the result of a call that does not run, in words for the model.
func closing(c Call, expiry time.Duration) (status, text string) {
	switch {
	case c.Decided == nil && c.Rule == tools.Deny:
		return endDenied, "Not allowed. " + c.Why
	case c.Decided == nil:
		return endError, c.Why
	case c.Decided.Verb == "happened":
		return endOK, strings.TrimSpace("outcome confirmed by " + c.Decided.By.Login + ": it happened. " + c.Decided.Text)
	case c.Decided.Verb == "answer" && c.Kind == decisionQuestion:
		return endOK, c.Decided.Text
	case c.Decided.Verb == "answer":
		return endDenied, "Not done. The owner was asked to approve this call and answered instead: " + c.Decided.Text
	case c.Kind == decisionQuestion:
		return endError, fmt.Sprintf("The owner did not answer within %s. Go on without, or end and say what is missing.", days(expiry))
	case c.Decided.Verb == "reject" && c.Decided.Text != "":
		return endDenied, "The owner rejected this call. Reason: " + c.Decided.Text
	case c.Decided.Verb == "reject":
		return endDenied, "The owner rejected this call."
	case c.Kind == decisionUnknown:
		return endError, noResult + " The owner was asked and did not say. Do not repeat it."
	}
	return endDenied, fmt.Sprintf("Not done: nobody decided about this call within %s.", days(expiry))
}

func days(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}

// unsure records that nobody knows whether a call happened.
func (d *draft) unsure(_ context.Context, c Call) error {
	return d.add(Event{ToolEnd: &EvToolEnd{Call: c.ID, Status: endUnknown, Content: noResult}})
}

// probe commits that a call's effect is looked for. Nothing is begun by it.
func (d *draft) probe(_ context.Context, c Call) error {
	if d.s.quiet {
		return nil
	}
	d.launch = append(d.launch, c.ID)
	return d.add(Event{ToolStart: &EvToolStart{
		Call: c.ID, Attempt: c.Attempt + 1, Hash: c.Hash, Class: string(c.Class), Probe: true,
	}})
}

// start commits a call's intent. An approved call is checked once more: it must be
// the one that was approved (the hash of the arguments shown), and policy must not
// forbid it meanwhile.
func (d *draft) start(ctx context.Context, c Call) error {
	if d.s.quiet {
		return nil
	}
	args, err := canonical(c.Args)
	if err != nil {
		return err
	}
	p, err := d.weigh(ctx, c)
	if err != nil {
		return err
	}
	refused := ""
	if p.Rule == tools.Deny || p.Rule == tools.Invalid {
		refused = "Not allowed. " + p.Reason
	} else if c.Decision != "" {
		refused, err = d.approved(ctx, c, args)
	} else if p.Rule == tools.Ask && c.Rule == tools.Allow {
		refused = "Not allowed: the rules changed since, and this call now needs a decision. Make it again if it is needed."
	}
	switch {
	case err != nil:
		return err
	case refused != "" && c.State == callStarted && c.Class == tools.ReadOnly:
		return d.add(Event{ToolEnd: &EvToolEnd{Call: c.ID, Status: endError, Content: refused}})
	case refused != "" && c.State == callStarted: // what was begun may have happened
		return d.add(Event{ToolEnd: &EvToolEnd{Call: c.ID, Status: endUnknown, Content: refused}})
	case refused != "":
		return d.add(Event{ToolEnd: &EvToolEnd{Call: c.ID, Status: endDenied, Content: refused}})
	}
	if own := ownTool(c.Name); own != nil && own.begin != nil {
		return own.begin(ctx, d, c)
	}
	d.launch = append(d.launch, c.ID)
	return d.add(Event{ToolStart: &EvToolStart{
		Call: c.ID, Attempt: c.Attempt + 1, Hash: hashArgs(args), Class: string(p.Class),
	}})
}

// callModel commits the intent of the next call, or waits for its time, for the key or for
// the gate.
func (d *draft) callModel(ctx context.Context, act Todo) error {
	if now := d.s.a.now(); act.After.After(now) && !now.Before(act.Since) {
		return d.pause(ctx, forTimer, act.After)
	}
	if _, on := d.s.inflight[modelCall]; on {
		d.call = true
		return nil
	}
	if d.s.quiet {
		return nil
	}
	if may, err := d.admitted(ctx); err != nil || !may {
		return err
	}
	if act.Open {
		d.call = true
		return nil
	}
	if act.Do == DoCall {
		if err := d.join(ctx); err != nil {
			return err
		}
	}
	if act = Next(d.st); act.Do != DoCall && act.Do != DoCompact { // a mail that joined brought a smaller budget
		return d.follow(ctx)
	}
	if ok, err := d.underCap(ctx, &act); !ok || err != nil {
		return err
	}
	d.call = true
	return d.add(Event{Intent: act.intent(d.s.a.store.Epoch(d.s.account))})
}

// join takes the mails that came meanwhile into the run, when its model can be told
// of them. The next call sees them after the results.
func (d *draft) join(ctx context.Context) error {
	if d.run.child() {
		return nil // mail is for the run that mail began
	}
	a, account := d.s.a, d.s.account
	th, version, err := a.thread(ctx, account, d.run.Task)
	if err != nil || len(th.Queue) == 0 || !a.joins(ctx, d.run.Model) {
		return err
	}
	for _, m := range th.take(true) {
		if err := d.add(Event{Inbound: &m}); err != nil {
			return err
		}
		d.run.Inputs = append(slices.Clip(d.run.Inputs), m)
		d.ops = append(d.ops, mailbox.Hold{Message: m.Message, Name: runHold(d.run.ID)})
	}
	d.ops = append(d.ops, threadPut(th, version))
	return nil
}

// pause ends the worker's part: the run waits, for a person or until a time, and
// holds no goroutine.
func (d *draft) pause(ctx context.Context, what string, until time.Time) error {
	if err := d.move(movePause); err != nil {
		return err
	}
	d.run.For, d.over, d.until = what, true, until
	if until.IsZero() {
		d.ops = append(d.ops, mailbox.DeleteDue{Kind: DueRun, Key: d.run.ID})
	} else {
		d.ops = append(d.ops, dueRun(d.run.ID, until))
	}
	if d.waitUntold(until) {
		return d.status(ctx)
	}
	return nil
}

// status replaces the message in Running.
func (d *draft) status(ctx context.Context) error {
	if d.run.child() {
		return d.workerStatus(ctx)
	}
	var live []liveRun
	if len(d.st.handing()) > 0 {
		var err error
		if live, err = d.s.a.liveWorkers(ctx, d.s.account, d.run.Task); err != nil {
			return err
		}
		for _, r := range d.born {
			live = append(live, liveRun{Run: r})
		}
	}
	d.run = d.told()
	ops, err := d.s.a.showFamily(ctx, d.s.o, &d.run, live)
	d.ops = append(d.ops, ops...)
	return err
}

// uniqueCalls gives calls an id of their own where the provider's is empty or was
// used before in this run: results are paired by id. The provider's raw content
// holds the old ids and is then of no use.
func (d *draft) uniqueCalls(r providers.Reply) providers.Reply {
	parts := append([]providers.Part(nil), r.Message.Parts...)
	seen := map[string]bool{}
	for i, p := range parts {
		if p.Kind != providers.Call || p.Call == nil {
			continue
		}
		c := *p.Call
		if c.ID == "" || seen[c.ID] || d.st.known(c.ID) {
			c.ID = "call_" + newToken()
			r.Message.Raw, r.Message.From = nil, nil
		}
		if len(c.Args) == 0 {
			c.Args = []byte("{}")
		}
		seen[c.ID] = true
		parts[i].Call = &c
	}
	r.Message.Parts = parts
	return r
}
