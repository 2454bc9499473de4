package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"pizza/mailbox"
)

const (
	lookEvery   = 30 * time.Second       // due times are compared with the clock at least that often
	newAccounts = 2 * time.Second        // how often accounts that were made are looked for
	watchPause  = 200 * time.Millisecond // between two looks for cancelled runs
	claimLease  = 2 * ever
	maxFalls    = 3 // steps without progress after which a run is parked
)

// Run works the due runs of all accounts until ctx ends, and then returns nil when
// every run has stopped at a commit point. What was not done is due at the next
// start. It is called once.
func (a *Agent) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { a.tend(ctx) })
	tick := time.NewTicker(newAccounts)
	defer tick.Stop()
	for {
		ids, err := a.store.Accounts(ctx)
		if err != nil && ctx.Err() == nil {
			a.log.LogAttrs(ctx, slog.LevelError, "list accounts", slog.Any("err", err))
		}
		for _, id := range ids {
			a.dispatchFor(ctx, &wg, id)
		}
		select {
		case id := <-a.fresh:
			a.dispatchFor(ctx, &wg, id)
		case <-tick.C:
		case <-ctx.Done():
			wg.Wait()
			return nil
		}
	}
}

// adopt asks for a dispatcher of an account that may have none yet.
func (a *Agent) adopt(id mailbox.AccountID) {
	a.mu.Lock()
	known := a.accounts[id]
	a.mu.Unlock()
	if known {
		return
	}
	select {
	case a.fresh <- id:
	default: // the next look at Accounts finds it
	}
}

func (a *Agent) dispatchFor(ctx context.Context, wg *sync.WaitGroup, id mailbox.AccountID) {
	a.mu.Lock()
	known := a.accounts[id]
	a.accounts[id] = true
	a.mu.Unlock()
	if !known {
		d := &dispatcher{a: a, account: id, poke: make(chan struct{}, 1)}
		wg.Go(func() { d.run(ctx) })
	}
}

// dispatcher gives the due runs of one account to workers.
type dispatcher struct {
	a       *Agent
	account mailbox.AccountID
	poke    chan struct{} // look again
	wg      sync.WaitGroup
}

func (d *dispatcher) run(ctx context.Context) {
	defer d.wg.Wait()
	wake, stop := d.a.store.Watch(d.account, mailbox.DueEntries)
	defer stop()
	cancels, stopCancels := d.a.store.Watch(d.account, Running)
	defer stopCancels()
	decisions, stopDecisions := d.a.store.Watch(d.account, Action)
	defer stopDecisions()
	d.recover(ctx)
	d.mendRuns(ctx)
	clock := backwards{seen: d.a.now()}
	var look <-chan time.Time
	have := false // a slot
	for {
		if clock.jumped(d.a.now()) {
			d.mendRuns(ctx)
		}
		wait, starved := d.claim(ctx, have)
		have = false
		var slots chan<- struct{}
		if starved {
			slots = d.a.slots
		}
		timer := time.NewTimer(wait)
		select {
		case slots <- struct{}{}:
			have = true
		case <-wake:
		case <-d.poke:
		case <-timer.C:
		case <-cancels:
			look = soon(look)
		case <-decisions:
			look = soon(look)
		case <-look:
			look = nil
			d.a.nudgeAll(ctx, d.account)
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// soon is look, or a time to look.
func soon(look <-chan time.Time) <-chan time.Time {
	if look != nil {
		return look
	}
	return time.After(watchPause)
}

// again asks the dispatcher to look once more.
func (d *dispatcher) again() {
	select {
	case d.poke <- struct{}{}:
	default:
	}
}

// claim starts a worker for each due run, as far as there are workers (have: one is
// free already), and says how long until the next run is due, and whether a worker is
// what it lacks.
func (d *dispatcher) claim(ctx context.Context, have bool) (wait time.Duration, starved bool) {
	if d.a.rests(ctx, d.account) {
		if have {
			<-d.a.slots
		}
		return lookEvery, false
	}
	for ctx.Err() == nil {
		if !have {
			select {
			case d.a.slots <- struct{}{}:
			default:
				return lookEvery, true
			}
		}
		have = false
		due, err := d.a.store.Claim(ctx, d.account, DueRun, d.a.now(), claimLease, 1)
		if err != nil || len(due) == 0 {
			<-d.a.slots
			if err != nil {
				d.a.logStore(ctx, "claim", err)
				return time.Second, false
			}
			return d.untilNext(ctx), false
		}
		d.wg.Go(func() {
			defer func() { <-d.a.slots }()
			d.work(ctx, due[0].Key)
		})
	}
	return lookEvery, false
}

func (a *Agent) logStore(ctx context.Context, what string, err error) {
	if ctx.Err() == nil && !errors.Is(err, mailbox.ErrClosed) {
		a.log.LogAttrs(ctx, slog.LevelError, what, slog.Any("err", err))
	}
}

// untilNext is the time to the next due run. It is looked at anew every lookEvery,
// whatever the clock did meanwhile.
func (d *dispatcher) untilNext(ctx context.Context) time.Duration {
	next, err := d.a.store.NextDue(ctx, d.account, DueRun)
	if err != nil || next.IsZero() {
		return lookEvery
	}
	return max(time.Millisecond, min(next.Sub(d.a.now()), lookEvery))
}

// work has one run until it ends, waits, fails or ctx ends.
func (d *dispatcher) work(ctx context.Context, run string) {
	a := d.a
	s := a.enter(d.account, run)
	if s == nil {
		return // a session has it; it was nudged
	}
	var hold time.Duration
	if err := s.prepare(ctx); err != nil {
		a.logStore(ctx, "owner of "+run, err)
		hold = lookEvery
	} else {
		err := s.drive(ctx)
		if err == nil {
			s.uncount(ctx)
		}
		hold = d.failed(ctx, s, err)
	}
	if hold == 0 && s.hold > 0 {
		hold = s.hold
	} else {
		a.gates.leave(run, nil, true)
	}
	if hold > 0 && ctx.Err() == nil { // the claim is kept, not the worker
		d.keep(s, hold)
		return
	}
	a.leave(s)
	d.again()
}

// keep has a session sleep with its claim.
func (d *dispatcher) keep(s *session, hold time.Duration) {
	s.st, s.inputs, s.prior, s.before = State{}, nil, nil, nil
	d.a.mu.Lock()
	defer d.a.mu.Unlock()
	s.held = true
	if s.woken {
		hold = 0
	}
	s.timer = time.AfterFunc(hold, func() { d.a.leave(s); d.again() })
}

// release wakes a run that is held, or is about to be.
func (a *Agent) release(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[run]
	switch {
	case s == nil:
	case s.held:
		s.timer.Reset(0)
	default:
		s.woken = true
	}
}

// enter makes a session for a claimed run. When this process has one already, that
// one is nudged, and nil returned.
func (a *Agent) enter(account mailbox.AccountID, run string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[run]; s != nil {
		s.wake()
		return nil
	}
	s := &session{
		a: a, account: account, id: run,
		inputs:   map[mailbox.MessageID]*input{},
		inflight: map[string]context.CancelCauseFunc{},
		outcomes: make(chan outcome),
		nudge:    make(chan struct{}, 1),
	}
	a.sessions[run] = s
	a.stir(account, run)
	return s
}

// leave gives the claim back. Whoever claims the run next finds no session; the
// dispatcher must look again, because the run may have become due meanwhile.
func (a *Agent) leave(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[s.id] != s {
		return // left already
	}
	a.store.Release(s.account, DueRun, s.id)
	delete(a.sessions, s.id)
	a.stir(s.account, s.id)
}

func (s *session) wake() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// interrupt makes the session of a run, if it has one, read the journal again: it
// stops what is in flight when the owner asked the run to end.
func (a *Agent) interrupt(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[run]; s != nil {
		s.wake()
		if s.held {
			s.timer.Reset(0)
		}
	}
}

// stateNow is the state of a run as people are told it: a session does not commit that it
// begins, so the record of a run at work says queued until its first outcome.
func (a *Agent) stateNow(account mailbox.AccountID, r Run) RunState {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[r.ID]
	if r.State == Queued && s != nil && s.account == account && !s.held {
		return Working
	}
	return r.State
}

// nudgeAll is interrupt for all sessions of an account: a decision was made perhaps, or
// a status message deleted, which cancels inside a commit.
func (a *Agent) nudgeAll(ctx context.Context, account mailbox.AccountID) {
	var held []*session
	a.mu.Lock()
	for _, s := range a.sessions {
		if s.account == account && s.held {
			held = append(held, s)
		} else if s.account == account {
			s.wake()
		}
	}
	a.mu.Unlock()
	for _, s := range held { // those that something happened to do not sleep on
		rec, err := a.store.Record(ctx, account, runKey(s.id))
		if err == nil && rec.Version != s.ver {
			a.release(s.id)
		}
	}
}

// prepare finds the owner. An account without a login keeps its runs until it has
// one again.
func (s *session) prepare(ctx context.Context) error {
	o, err := s.a.owner(ctx, s.account)
	if err == nil {
		s.o = o
	}
	return err
}

// failed judges how a session ended: it counts steps without progress, parks the run
// that made three of them, and says how long to keep the claim.
func (d *dispatcher) failed(ctx context.Context, s *session, err error) time.Duration {
	a := d.a
	a.mu.Lock()
	if err == nil || s.progress {
		delete(a.falls, s.id)
	}
	if errors.Is(err, errNoRoom) {
		a.mu.Unlock()
		return roomEvery
	}
	if err == nil {
		a.mu.Unlock()
		return 0
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) || errors.Is(err, mailbox.ErrClosed) {
		a.mu.Unlock()
		return 0
	}
	own := !isKind(err, mailbox.Transient) && !isKind(err, mailbox.Full)
	if own {
		a.falls[s.id]++
	}
	falls := a.falls[s.id]
	a.mu.Unlock()
	a.log.LogAttrs(ctx, slog.LevelError, "step failed", slog.String("run", s.id), slog.Int("times", falls), slog.Any("err", err))

	var je *JournalError
	if own && (falls >= maxFalls || errors.As(err, &je) || errors.Is(err, errPoison)) {
		if err := a.park(ctx, s, err); err == nil {
			return 0
		} else {
			a.log.LogAttrs(ctx, slog.LevelError, "park", slog.String("run", s.id), slog.Any("err", err))
		}
		return time.Minute
	}
	return a.opt.backoff << min(falls, 5)
}
