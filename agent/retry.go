package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"pizza/providers"
)

// Retry bounds how often a model call that failed of no fault of its own is made again:
// the provider is busy or broken, or the network is. Each try waits a time by chance
// between nothing and a top that doubles from 1 s to 60 s (full jitter), and at least what
// the provider asks for. Waits are durable timers. A wait over a day asks the owner.
type Retry struct {
	Tries  int           // calls in a row that fail; 0: 100
	Within time.Duration // from the first of them to the last; 0: 24 h
}

// again reports whether the call may be tried once more, s being before this failure.
func (a *Agent) again(s *State) bool {
	tries := s.Failures + 1
	if tries >= a.opt.Retry.Tries {
		return false
	}
	return s.Failures == 0 || a.now().Sub(s.Since) < a.opt.Retry.Within
}

// retryIn is how long after the n-th failure in a row, counted from 0, the next call waits;
// unit is the first top.
// What the provider asked for is never cut short, and spread: it said the same to others.
func retryIn(unit time.Duration, n int, after time.Duration) time.Duration {
	top := min(unit<<min(n, 6), 60*unit)
	if after > 0 {
		return after + rand.N(min(top, after/10+unit))
	}
	return rand.N(top) + time.Millisecond
}

// failed is the error of a call as a *providers.Error, nil for none.
func (out outcome) failed() *providers.Error {
	var pe *providers.Error
	switch {
	case out.err == nil || errors.As(out.err, &pe):
		return pe
	case errors.Is(out.err, context.DeadlineExceeded):
		return &providers.Error{Class: providers.Timeout, Err: out.err}
	}
	return &providers.Error{Class: providers.Network, Err: out.err}
}

// modelFail is the event of a failed call, with the time of the next.
func (a *Agent) modelFail(s *State, out outcome) *EvModelFail {
	pe := out.failed()
	e := &EvModelFail{N: out.n, Class: pe.Class, Text: cmp.Or(pe.Message, out.err.Error()), Park: pe.Class == providers.Auth,
		Partial: pe.Partial, Took: out.took}
	if pe.Code == providers.NoKey {
		e.Code = providers.NoKey
	}
	if pe.Retryable() && a.again(s) {
		e.Retry = a.now().Add(retryIn(a.opt.backoff, s.Failures, pe.RetryAfter))
	}
	return e
}

// admitted reports whether the next call may be made now. If not, the draft ends with the
// run waiting: for another key, for a time, or held for the gate.
func (d *draft) admitted(ctx context.Context) (bool, error) {
	s := d.s
	if s.gate != nil {
		return true, nil // asked already
	}
	s.resolve(ctx)
	if s.model == nil {
		pe := outcome{err: s.noModel}.failed()
		if name := refusedName(d.run.Model, pe); name != "" {
			return false, d.awaitKey(ctx, name, "", pe.Code, cmp.Or(pe.Message, pe.Error()))
		}
		return true, nil // the call tells it
	}
	info := s.model.Info()
	if name := d.refusedNow(info); name != "" {
		code, text := "", ""
		if f := d.st.Failed; f != nil && f.Park {
			code, text = f.Code, f.Text
		}
		return false, d.awaitKey(ctx, name, keyOf(info), code, text)
	}
	key := keyOf(info)
	if !info.Free {
		if wait := s.a.gates.enter(key, s.id); wait > 0 {
			return false, d.awaitGate(ctx, wait)
		}
	}
	s.gate = &key
	return true, nil
}

// awaitGate holds the run for its gate: its claim without a worker, or, for longer than
// that is good for, in the store.
func (d *draft) awaitGate(ctx context.Context, wait time.Duration) error {
	if wait <= heldMost {
		d.held, d.over = wait, true
		return d.move(moveRelease)
	}
	d.s.a.gates.leave(d.s.id, nil, true)
	return d.pause(ctx, forTimer, d.s.a.now().Add(wait+rand.N(wait/4)))
}

// called tells gate and refusals how a call ended.
func (s *session) called(out outcome) {
	if s.gate == nil {
		return
	}
	cut := out.broken != nil || out.err != nil && out.stopped
	pe := out.failed()
	s.a.gates.leave(s.id, pe, cut)
	if cut {
		s.a.refusals.drop(s.id)
	} else {
		s.a.refusals.ended(s.id, s.run.Model, *s.gate, pe, s.a.now())
	}
	s.gate = nil
}

// logInvalid logs what a request was like that the provider did not accept, without what
// it says.
func (a *Agent) logInvalid(ctx context.Context, run, model string, pe *providers.Error, req providers.Request) {
	roles, size := map[providers.Role]int{}, len(req.System)
	for _, m := range req.Messages {
		roles[m.Role]++
		for _, p := range m.Parts {
			size += len(p.Text) + len(p.Data)
			if p.Result != nil {
				size += len(p.Result.Content)
			}
		}
	}
	a.log.LogAttrs(ctx, slog.LevelError, "the model did not accept a request", slog.String("run", run),
		slog.String("model", model), slog.Int("status", pe.Status), slog.String("code", pe.Code),
		slog.Int("messages", len(req.Messages)), slog.Int("user", roles[providers.User]),
		slog.Int("assistant", roles[providers.Assistant]), slog.Int("tool", roles[providers.Tool]),
		slog.Int("tools", len(req.Tools)), slog.Int("bytes", size), slog.Any("pairs", checkPairs(req)))
}
