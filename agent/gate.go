package agent

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"pizza/providers"
)

// Model calls with one key go through one gate (providers.Info.Gate), whoever makes them:
//
//   - so many at once as the provider bears: the number grows with replies, and is halved
//     when it says that it is too much (additive increase, multiplicative decrease);
//   - none before the time that it named, and after openAfter failures in a row none for
//     a while that doubles (the breaker). Then one call tries, and the others follow its
//     success one by one.
//
// A run that may not call now waits in the gate's queue without a worker and without a
// commit; the gate wakes who is next. All of it is in memory: after a restart the gates
// learn anew.
const (
	openAfter  = 5               // failures in a row that open the breaker
	openTops   = 60              // units that it stays open at the most
	shutMost   = 5 * time.Minute // the longest one answer shuts the gate for the others
	startWidth = 8               // calls at once of a gate that has seen nothing
	mostWidth  = 256
	grantFor   = 30 * time.Second // in which a run that was woken comes
	heldMost   = time.Minute      // a run that waits longer does so in the store
)

// gates are those of the process.
type gates struct {
	now  func() time.Time
	wake func(run string)
	unit time.Duration // the first time that a breaker stays open; 1 s

	mu   sync.Mutex
	by   map[string]*gate
	runs map[string]*gate // where a run waits, is granted or calls
}

func newGates(now func() time.Time, unit time.Duration, wake func(string)) *gates {
	return &gates{now: now, unit: unit, wake: wake, by: map[string]*gate{}, runs: map[string]*gate{}}
}

// gate is one of them; gates.mu guards it.
type gate struct {
	width   float64 // calls at once
	steep   bool    // it was never too much: the width doubles
	cut     time.Time
	calls   map[string]time.Time // under way, since when
	granted map[string]time.Time // woken and not yet come, since when
	queue   []string
	shut    span
	fails   int // in a row
	opened  int // how often in a row the breaker opened, last
	broke   time.Time
	timer   *time.Timer
}

// span is a time from at on. A clock that went back behind at begins it anew: it is never
// longer than it was meant to be.
type span struct {
	at     time.Time
	length time.Duration
}

func (s *span) left(now time.Time) time.Duration {
	if now.Before(s.at) {
		s.at = now
	}
	return max(0, s.length-now.Sub(s.at))
}

// enter asks for a call of run. 0: it may, and says leave afterwards. Else it waits in the
// queue, and asks again when it is woken or after that time.
func (g *gates) enter(key, run string) time.Duration {
	g.mu.Lock()
	now := g.now()
	at := g.at(key)
	if in := g.runs[run]; in != nil && in != at {
		in.forget(run)
	}
	g.runs[run] = at
	_, calls := at.calls[run]
	if _, granted := at.granted[run]; !calls && !granted && !slices.Contains(at.queue, run) {
		at.queue = append(at.queue, run)
	}
	woken := g.pump(at, now)
	wait := max(at.shut.left(now), time.Millisecond)
	if _, granted := at.granted[run]; granted || calls {
		delete(at.granted, run)
		at.calls[run], wait = now, 0
	} else if wait == time.Millisecond {
		wait = heldMost
	}
	g.mu.Unlock()
	for _, other := range woken {
		if other != run {
			g.wake(other)
		}
	}
	return wait
}

// at is the gate of a key.
func (g *gates) at(key string) *gate {
	if g.by[key] == nil {
		g.by[key] = &gate{width: startWidth, steep: true, calls: map[string]time.Time{}, granted: map[string]time.Time{}}
	}
	return g.by[key]
}

// leave says how the call of run ended: err is that of Complete. cut: it was given up
// here, and tells nothing.
func (g *gates) leave(run string, err *providers.Error, cut bool) {
	g.mu.Lock()
	at := g.runs[run]
	if at == nil {
		g.mu.Unlock()
		return
	}
	now := g.now()
	began, called := at.calls[run]
	at.forget(run)
	delete(g.runs, run)
	if called && !cut {
		at.learn(err, began, now, g.unit)
	}
	woken := g.pump(at, now)
	g.mu.Unlock()
	for _, other := range woken {
		g.wake(other)
	}
}

// learn adapts a gate to the end of a call that began then.
func (at *gate) learn(err *providers.Error, began, now time.Time, unit time.Duration) {
	switch {
	case err == nil:
		at.fails, at.opened = 0, 0
		if at.steep {
			at.width++
		} else {
			at.width += 1 / at.width
		}
		at.width = min(at.width, mostWidth)
		return
	case !err.Retryable(): // it answered
		at.fails, at.opened = 0, 0
		return
	}
	at.fails++
	busy := err.Class == providers.RateLimit || err.Class == providers.Overloaded
	if busy && !began.Before(at.cut) { // one cut for all calls that were under way together
		at.width, at.steep, at.cut = max(1, at.width/2), false, now
	}
	if after := min(err.RetryAfter, shutMost); after > at.shut.left(now) {
		at.shut = span{now, after}
	}
	if at.fails >= openAfter && !began.Before(at.broke) {
		at.width, at.steep, at.broke = 1, false, now
		top := min(unit<<min(at.opened, 6), openTops*unit)
		at.opened++
		if open := top/2 + rand.N(top/2); open > at.shut.left(now) {
			at.shut = span{now, open}
		}
	}
}

// pump grants calls to those that wait longest, as many as there may be, and sees to it
// that it is called again when the gate opens. It returns who is to be woken.
func (g *gates) pump(at *gate, now time.Time) (woken []string) {
	for run, since := range at.granted {
		if now.Sub(since).Abs() > grantFor {
			at.forget(run)
			delete(g.runs, run)
		}
	}
	if left := at.shut.left(now); left > 0 {
		if len(at.queue) > 0 && at.timer == nil {
			at.timer = time.AfterFunc(min(left, lookEvery), func() { g.open(at) })
		}
		return nil
	}
	for len(at.queue) > 0 && len(at.calls)+len(at.granted) < int(at.width) {
		run := at.queue[0]
		at.queue = at.queue[1:]
		at.granted[run] = now
		woken = append(woken, run)
	}
	return woken
}

// open looks at a gate whose time may be over.
func (g *gates) open(at *gate) {
	g.mu.Lock()
	at.timer = nil
	woken := g.pump(at, g.now())
	g.mu.Unlock()
	for _, run := range woken {
		g.wake(run)
	}
}

func (at *gate) forget(run string) {
	delete(at.calls, run)
	delete(at.granted, run)
	if i := slices.Index(at.queue, run); i >= 0 {
		at.queue = slices.Delete(at.queue, i, i+1)
	}
}
