package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// session is one run while a worker has it. Only the worker's goroutine touches it,
// but for nudge and held. What the session knows of the run it has read or committed
// itself; whoever else changes the run is met as a Conflict, or by a nudge.
type session struct {
	a       *Agent
	account mailbox.AccountID
	id      string
	o       owner
	run     Run
	ver     uint64 // of the run's record
	st      State
	model   providers.Model
	noModel error // why there is none

	inputs  map[mailbox.MessageID]*input
	prior   []providers.Message // the thread before this run, once read
	before  []Inbound           // mails of earlier runs, once read
	talk    talk                // told so far
	foreign bool                // these, as far as they were told, hold text that the login did not write
	loaded  bool
	epoch   uint64 // of the account when it was loaded; every commit states it

	inflight map[string]context.CancelCauseFunc // what runs now: calls by id, modelCall
	outcomes chan outcome
	nudge    chan struct{} // somebody changed the run
	held     bool          // nobody works on it: the next try is later. Agent.mu guards it, and
	timer    *time.Timer   // that ends it, and
	woken    bool          // what it is about to be held for has come already

	gate *string       // the key of the gate that it has passed
	hold time.Duration // it waits so long for the gate

	quiet    bool // stopping: record what ends, begin nothing
	progress bool // something was committed
	over     bool // the run has ended or waits
}

// modelCall is the key of the model call in session.inflight; no call id is empty.
const modelCall = ""

// outcome is what became of something in flight.
type outcome struct {
	key     string
	n       int  // of modelCall: the intent
	sent    int  // of modelCall: bytes of text of the request
	foreign bool // of modelCall: the request has mail text that the login did not write
	attempt int
	probe   bool // it looked for the effect of an earlier attempt
	found   bool // of a probe
	reply   providers.Reply
	tool    tools.Outcome
	err     error // of modelCall and of a probe
	took    time.Duration
	broken  error // it panicked
	stopped bool  // its context had ended before it did, by us or by the owner
	late    bool  // its context had ended before it did, because its time was over
	lost    bool  // it has not returned, and is not waited for any more
}

var (
	errStopping  = errors.New("the server stops")
	errCancelled = errors.New("the owner cancelled the task")
)

// drive works the run until it ends, waits, or ctx ends.
func (s *session) drive(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("agent: panic in run %s: %v\n%s", s.id, p, debug.Stack())
		}
		s.drain()
	}()
	if err := s.count(ctx); err != nil {
		return err
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	if s.run.State.Ended() { // the due entry outlived it
		_, err := s.commitOps(ctx, mailbox.DeleteDue{Kind: DueRun, Key: s.id})
		return err
	}
	if s.stillFull(ctx) {
		return errNoRoom
	}
	if err := s.advance(ctx, nil); err != nil {
		return err
	}
	tick := time.NewTimer(s.a.opt.slow)
	defer tick.Stop()
	for !s.over && len(s.inflight) > 0 {
		if err := s.await(ctx, tick); err != nil {
			return err
		}
	}
	return nil
}

// statusEvery is how often a status is replaced at the most (DESIGN.md section 1).
const statusEvery = 30 * time.Second

// await waits for the next thing that happens to the run.
func (s *session) await(ctx context.Context, tick *time.Timer) error {
	done := ctx.Done()
	if s.quiet {
		done = nil
	}
	select {
	case out := <-s.outcomes:
		delete(s.inflight, out.key)
		return s.record(ctx, out)
	case <-s.nudge:
		if err := s.load(ctx); err != nil {
			return err
		}
		return s.advance(ctx, nil)
	case <-tick.C:
		tick.Reset(s.a.opt.slow)
		if s.run.Shown == Queued || s.a.now().Sub(s.run.ShownAt) >= statusEvery {
			return s.advance(ctx, func(d *draft) error { d.show = d.stale(); return nil })
		}
	case <-done:
		s.quiet = true // what is in flight has ctx too, or its grace
	}
	return nil
}

// record commits the outcome of something that was in flight.
func (s *session) record(ctx context.Context, out outcome) error {
	seen := s.observe(out)
	var err error
	if out.key == modelCall {
		err = s.recordModel(ctx, out)
	} else {
		err = s.recordTool(ctx, out)
	}
	seen(err)
	return err
}

// drain stops what is in flight and waits for it: nothing of this session is alive
// after it. Outcomes that come now are of a session that failed; the calls are then
// found started and without outcome.
func (s *session) drain() {
	for _, cancel := range s.inflight {
		cancel(errStopping)
	}
	for len(s.inflight) > 0 {
		out := <-s.outcomes
		delete(s.inflight, out.key)
	}
}

// load reads the run's record and the part of its journal not yet folded. Record and
// journal are two reads; they agree when no commit fell between them.
func (s *session) load(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for range 100 {
		rec, err := s.a.store.Record(ctx, s.account, runKey(s.id))
		if err != nil {
			return err
		}
		run, err := decodeRun(rec)
		if err != nil {
			return err
		}
		if err := s.a.readJournal(ctx, s.account, s.id, &s.st); err != nil {
			return err
		}
		s.run, s.ver = run, rec.Version
		if run.Seq == s.st.Seq {
			s.fresh()
			return nil
		}
		if run.Seq > s.st.Seq {
			return fmt.Errorf("agent: journal of %s ends at %d, its record says %d", s.id, s.st.Seq, run.Seq)
		}
	}
	return &mailbox.Error{Op: "load", Kind: mailbox.Transient, Name: s.id}
}

// fresh does what follows from a load: the first ages what a crash left open, later
// ones stop what is in flight when the owner asked the run to end.
func (s *session) fresh() {
	if !s.loaded {
		s.loaded = true
		s.epoch = s.a.store.Epoch(s.account)
		s.st.Age(s.epoch)
	}
	if s.st.ending() {
		for _, cancel := range s.inflight {
			cancel(errCancelled)
		}
	}
}

// readJournal folds the events after st.Seq into st.
func (a *Agent) readJournal(ctx context.Context, account mailbox.AccountID, run string, st *State) error {
	return a.store.Events(ctx, account, runKey(run), st.Seq+1, func(seq uint64, b []byte) error {
		e, err := decodeEvent(b)
		if err != nil {
			return &JournalError{Seq: seq, Event: "?", Reason: err.Error()}
		}
		if a.opt.folding != nil {
			a.opt.folding(run)
		}
		return st.Apply(e)
	})
}

// advance commits all that can be committed without an effect, and then starts the
// effects. base adds what has just happened; it is called again, on the state as it
// is then, when somebody else changed the run meanwhile: an outcome is never lost
// through a conflict.
func (s *session) advance(ctx context.Context, base func(*draft) error) error {
	for same := 0; same < maxSame; {
		d, err := s.draft(ctx, base)
		if err != nil {
			return err
		}
		if d.empty() {
			return s.begin(ctx, d)
		}
		_, err = s.commitOps(ctx, d.tx()...)
		if err == nil {
			s.st, s.run, s.ver = d.st, d.run, s.ver+1
			s.progress = s.progress || len(d.events) > 0
			s.committed()
			return s.begin(ctx, d)
		}
		if !isKind(err, mailbox.Conflict) {
			return err
		}
		before := s.ver
		if err := s.load(ctx); err != nil {
			return err
		}
		if same++; s.ver != before {
			same = 0
		}
	}
	return &mailbox.Error{Op: "advance", Kind: mailbox.Transient, Name: s.id}
}

// maxSame is how many commits in a row may conflict while the run itself stays as it was:
// somebody changed its thread, say. More means that the account is another process's.
const maxSame = 20

// storeTries is how often a commit is tried that fails for want of disk or the like:
// an outcome that only this process knows is worth waiting for.
const storeTries = 4

// commitOps commits, past a shutdown too: what happened must be on disk. Nothing ends
// the wait between two tries early: while the store is open a try less is an outcome
// lost, and that it has closed the next try says. The waits are 2.1 s in all, within
// the time that a shutdown has.
func (s *session) commitOps(ctx context.Context, ops ...mailbox.Op) (mailbox.Result, error) {
	ctx = context.WithoutCancel(ctx)
	wait := 100 * time.Millisecond
	for try := 1; ; try++ {
		res, err := s.a.store.Commit(ctx, s.account, mailbox.Tx{Ops: ops, Epoch: s.epoch})
		retry := isKind(err, mailbox.Transient) || isKind(err, mailbox.Full)
		if !retry || errors.Is(err, mailbox.ErrClosed) || try == storeTries {
			return res, err
		}
		time.Sleep(wait)
		wait *= 4
	}
}

// begin starts the effects a draft ends in.
func (s *session) begin(ctx context.Context, d *draft) error {
	s.over, s.hold = d.over, d.held
	if d.keeper {
		s.a.refusals.tell()
	}
	for _, run := range d.nudge {
		s.a.interrupt(run)
	}
	for _, c := range d.launch {
		s.launchTool(ctx, c)
	}
	if d.call {
		if _, on := s.inflight[modelCall]; !on {
			return s.launchModel(ctx)
		}
	}
	return nil
}

// linger is how long something in flight may take to return after its context has ended.
// What does not return then is not waited for: no tool holds a run, or a shutdown, for
// ever. It fits with grace and the tries of a commit into the time that a shutdown has.
const linger = 2 * time.Second

// launch runs fn beside the session. Exactly one outcome comes of it.
func (s *session) launch(ctx context.Context, cancel context.CancelCauseFunc, out outcome, fn func(context.Context, *outcome)) {
	s.inflight[out.key] = cancel
	start := time.Now()
	lost := out
	ended := make(chan outcome, 1) // when it ends late, nobody reads it
	go func() {
		out.broken = errors.New("agent: it did not return")
		defer func() {
			if p := recover(); p != nil {
				out.broken = fmt.Errorf("agent: panic in run %s: %v\n%s", s.id, p, debug.Stack())
			}
			ended <- out
		}()
		fn(ctx, &out)
		out.broken = nil
	}()
	go func() {
		res := waitFor(ctx, ended, lost)
		res.took = time.Since(start)
		res.late = errors.Is(context.Cause(ctx), errCallTime)
		res.stopped = ctx.Err() != nil && !res.late
		cancel(nil)
		s.outcomes <- res
	}()
}

// waitFor waits for an outcome, and for linger after ctx has ended; then it is lost.
func waitFor(ctx context.Context, ended <-chan outcome, lost outcome) outcome {
	select {
	case out := <-ended:
		return out
	case <-ctx.Done():
	}
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case out := <-ended:
		return out
	case <-timer.C:
		lost.lost, lost.err = true, context.Cause(ctx)
		return lost
	}
}

// launchModel makes the call whose intent is on disk.
func (s *session) launchModel(ctx context.Context) error {
	req, sent, err := s.request(ctx)
	if err != nil {
		return err
	}
	model, name := s.model, s.run.Model
	ctx, cancel := context.WithCancelCause(ctx)
	s.launch(ctx, cancel, outcome{key: modelCall, n: s.st.Intents, sent: sent, foreign: s.foreign}, func(ctx context.Context, out *outcome) {
		if model == nil {
			out.err = s.noModel
			return
		}
		out.reply, out.err = model.Complete(ctx, req)
		if pe := out.failed(); pe != nil && pe.Class == providers.Invalid {
			s.a.logInvalid(ctx, s.id, name, pe, req)
		}
	})
	return nil
}

// recordModel commits a reply, or a failure.
func (s *session) recordModel(ctx context.Context, out outcome) error {
	s.called(out)
	switch {
	case out.broken != nil:
		return out.broken
	case out.err != nil && out.stopped: // cut off by us: the run ends, or the server does
		s.quiet = s.quiet || ctx.Err() != nil
		return s.advance(ctx, func(d *draft) error {
			if !s.quiet || !d.st.Pending || d.st.Intents != out.n || d.st.ending() {
				return nil
			}
			return d.add(Event{ModelFail: &EvModelFail{N: out.n, Stopped: true, Text: "the server stopped", Retry: s.a.now(), Took: out.took}})
		})
	}
	return s.advance(ctx, func(d *draft) error {
		if !d.st.Pending || d.st.Intents != out.n || d.st.ending() {
			return nil
		}
		if out.err != nil {
			return d.add(Event{ModelFail: s.a.modelFail(&d.st, out)})
		}
		if d.st.Context.Cut != nil {
			return d.add(Event{Compacted: d.st.summarised(out)})
		}
		out.reply.Took = out.took
		return d.add(Event{Reply: &EvReply{N: out.n, Reply: d.uniqueCalls(out.reply), Sent: out.sent, Foreign: out.foreign}})
	})
}
