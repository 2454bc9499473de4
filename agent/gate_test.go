package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// gateDesk is gates with a hand clock, and who was woken.
type gateDesk struct {
	*gates
	clock *handClock
	mu    sync.Mutex
	woken []string
}

func newGateDesk() *gateDesk {
	d := &gateDesk{clock: &handClock{now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}}
	d.gates = newGates(d.clock.Now, time.Second, func(run string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.woken = append(d.woken, run)
	})
	return d
}

func (d *gateDesk) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.woken
	d.woken = nil
	return w
}

// enterAll has runs ask, and says which may call.
func (d *gateDesk) enterAll(n, from int) (in []string) {
	for i := range n {
		run := fmt.Sprint("r", from+i)
		if d.enter("k", run) == 0 {
			in = append(in, run)
		}
	}
	return in
}

var busyNow = &providers.Error{Class: providers.RateLimit}

func TestGateLetsThroughWhatTheProviderBears(t *testing.T) {
	t.Parallel()
	d := newGateDesk()
	in := d.enterAll(20, 0)
	if len(in) != startWidth {
		t.Fatalf("%d calls at once of a gate that has seen nothing", len(in))
	}
	d.leave(in[0], nil, false) // a place, and one more for the success
	if got := d.take(); !slices.Equal(got, []string{"r8", "r9"}) {
		t.Errorf("a success wakes %v, want the two that wait longest", got)
	}
	d.clock.add(time.Second)
	for _, run := range in[1:3] { // both were under way when the first was too much
		d.leave(run, busyNow, false)
	}
	if got := d.by["k"].width; got != 4.5/1 && got != 4 {
		t.Errorf("after too much: width %v, want half of 9", got)
	}
	if got := d.take(); len(got) != 0 {
		t.Errorf("woken after too much: %v", got)
	}
	if d.enter("other", "x") != 0 {
		t.Error("another key waits for this one")
	}
}

func TestGateGivesAPlaceThatNobodyTakesToTheNext(t *testing.T) {
	t.Parallel()
	d := newGateDesk()
	in := d.enterAll(12, 0)
	d.leave("r9", nil, true) // went away while it waited
	for _, run := range in {
		d.leave(run, nil, true)
	}
	if got := d.take(); !slices.Equal(got, []string{"r8", "r10", "r11"}) {
		t.Fatalf("woken: %v", got)
	}
	d.by["k"].width = 1
	d.clock.add(grantFor + time.Second) // none of the three comes
	if d.enter("k", "late") != 0 {
		t.Error("places that nobody took are gone")
	}
}

func TestGateShutsForAsLongAsIsAskedFor(t *testing.T) {
	t.Parallel()
	d := newGateDesk()
	if d.enter("k", "a") != 0 {
		t.Fatal("shut")
	}
	d.leave("a", &providers.Error{Class: providers.RateLimit, RetryAfter: 40 * time.Second}, false)
	if got := d.enter("k", "b"); got != 40*time.Second {
		t.Errorf("waits %v", got)
	}
	d.clock.add(39 * time.Second)
	if got := d.enter("k", "b"); got != time.Second {
		t.Errorf("a second before: waits %v", got)
	}
	d.clock.add(time.Second)
	if got := d.enter("k", "b"); got != 0 {
		t.Errorf("afterwards: waits %v", got)
	}
	d.leave("b", &providers.Error{Class: providers.RateLimit, RetryAfter: 16 * 24 * time.Hour}, false)
	if got := d.enter("k", "c"); got != shutMost {
		t.Errorf("one long answer shuts all for %v", got)
	}
}

func TestGateBreakerOpensAndOneTries(t *testing.T) {
	t.Parallel()
	d := newGateDesk()
	fail := &providers.Error{Class: providers.Network}
	for i := range openAfter {
		run := fmt.Sprint("f", i)
		if wait := d.enter("k", run); wait != 0 {
			t.Fatalf("failure %d: waits %v", i, wait)
		}
		d.leave(run, fail, false)
	}
	var last time.Duration
	for i := range 8 {
		if in := d.enterAll(10, 0); len(in) != 0 {
			t.Fatalf("open, and %v call", in)
		}
		wait := d.enter("k", "r0")
		if wait > time.Minute || i > 2 && wait < last/4 {
			t.Errorf("opened the %d. time: for %v after %v", i+1, wait, last)
		}
		last = wait
		d.clock.add(wait)
		in := d.enterAll(10, 0)
		if !slices.Equal(in, []string{"r0"}) {
			t.Fatalf("half open: %v call, want the one that waits longest", in)
		}
		d.leave("r0", fail, false)
		d.leave("r0", nil, true)
		d.gates.mu.Lock()
		d.by["k"].queue = nil
		d.gates.mu.Unlock()
	}
	d.clock.add(time.Minute)
	if d.enter("k", "ok") != 0 {
		t.Fatal("still open")
	}
	d.enterAll(10, 0)
	d.take()
	d.leave("ok", nil, false)
	if got := d.take(); len(got) != 2 {
		t.Errorf("after the success %v go on: not one by one", got)
	}
}

// A clock that goes back leaves no gate shut for longer than was asked for.
func TestGateAndTheClock(t *testing.T) {
	t.Parallel()
	d := newGateDesk()
	d.clock.add(10 * 365 * 24 * time.Hour)
	d.enter("k", "a")
	d.leave("a", &providers.Error{Class: providers.RateLimit, RetryAfter: 20 * time.Second}, false)
	d.clock.add(-10 * 365 * 24 * time.Hour)
	if got := d.enter("k", "b"); got != 20*time.Second {
		t.Errorf("waits %v", got)
	}
	d.clock.add(20 * time.Second)
	if got := d.enter("k", "b"); got != 0 {
		t.Errorf("then %v", got)
	}
}

// pressed is a provider that says 429 until it is well, and notes when it is called.
type pressed struct {
	after time.Duration
	well  <-chan struct{}

	mu    sync.Mutex
	calls []time.Time
	waits chan struct{} // gets a token with each refusal
}

func (p *pressed) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "test", Joins: true, Gate: "pressed"}
}

func (p *pressed) Complete(ctx context.Context, _ providers.Request) (providers.Reply, error) {
	p.mu.Lock()
	p.calls = append(p.calls, time.Now())
	p.mu.Unlock()
	select {
	case <-p.well:
		return providertest.Say("fine").Reply, nil
	default:
		select {
		case p.waits <- struct{}{}:
		default:
		}
		return providers.Reply{}, &providers.Error{Class: providers.RateLimit, Status: 429, RetryAfter: p.after, Message: "slow down"}
	}
}

// rate is the largest number of calls within a window.
func (p *pressed) rate(window time.Duration, from int) (most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := from; i < len(p.calls); i++ {
		n := 0
		for j := i; j < len(p.calls) && p.calls[j].Sub(p.calls[i]) < window; j++ {
			n++
		}
		most = max(most, n)
	}
	return most
}

func (p *pressed) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// TestClass14RetryStorm: 200 runs whose provider says 429 do not call it more often than it
// allows, hold no worker, and all end when it is well again.
func TestClass14RetryStorm(t *testing.T) {
	t.Parallel()
	const runs, after = 200, 100 * time.Millisecond
	well := make(chan struct{})
	p := &pressed{after: after, well: well, waits: make(chan struct{}, 1000)}
	o := newOffice(t, p, func(opt *Options) { opt.Now, opt.backoff = time.Now, 50*time.Millisecond })
	began := time.Now()
	for range runs {
		o.send("hello")
	}
	for range startWidth + 5 { // answers: five open the breaker, then one tries at a time
		<-p.waits
	}
	o.until("idle workers", func() bool { return len(o.a.slots) == 0 })
	pressedFor, first := time.Since(began), p.count()
	// What a naive loop does: 200 runs that come every 100 ms.
	if first > startWidth+10 {
		t.Errorf("%d calls in %v while it said 429", first, pressedFor)
	}
	if got := p.rate(after, startWidth); got > 2 {
		t.Errorf("%d calls within %v after the first burst", got, after)
	}
	commits := len(o.runs(o.me.Account))
	close(well)
	o.until("the end", func() bool {
		live, err := o.store.Lookup(t.Context(), o.me.Account, indexLiveRuns)
		return err == nil && len(live) == 0
	})
	t.Logf("%d calls in %v while refused, %d in all, %d runs", first, pressedFor.Round(time.Millisecond), p.count(), commits)
	if got := p.count(); got > runs+first+20 {
		t.Errorf("%d calls for %d answers", got, runs)
	}
	if got := len(o.ofKind(mailbox.Inbox, KindResult)); got != runs {
		t.Errorf("%d results", got)
	}
	o.settledDown()
}
