package agent

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pizza/providers"
	"pizza/providers/providertest"
)

// A status is replaced when there is something new to tell, 30 s after the last one and no
// earlier; and it says what is under way.
func TestStatusOfALongRun(t *testing.T) {
	t.Parallel()
	first, second := make(chan struct{}), make(chan struct{})
	m := providertest.Script(
		providertest.Calls(providertest.Call("c1", "list_folder", `{"path":"/local"}`)).After(first),
		providertest.Say("done").After(second))
	var looks atomic.Int64
	o := newOffice(t, m, func(opt *Options) {
		now := opt.Now
		opt.slow, opt.Now = time.Millisecond, func() time.Time { looks.Add(1); return now() }
	})
	ticks := func() { // each looks at the clock
		o.t.Helper()
		from := looks.Load()
		o.until("ticks", func() bool { return looks.Load() > from+5 })
	}
	id := o.send("hello").Task + ".1"
	head := func() Run {
		r, err := o.a.runRecord(t.Context(), o.me.Account, id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	o.until("the first status", func() bool { return head().Shown == Working })
	close(first)
	o.until("the second call", func() bool { return len(m.Requests()) == 2 })
	o.clock.add(29 * time.Second)
	ticks()
	if r := head(); len(r.Replaced) != 1 {
		t.Fatalf("replaced too early: %+v", r)
	}
	o.clock.add(time.Second)
	o.until("a new status", func() bool { return len(head().Replaced) == 2 })
	text := o.count(o.me.Account, Running, 1)[0].raw
	for _, want := range []string{"Now:   the model is called, since 12:00:00 UTC", "Steps: 1", "Last:  list_folder"} {
		if !strings.Contains(text, want) {
			t.Errorf("the status lacks %q:\n%s", want, text)
		}
	}
	o.clock.add(10 * time.Minute)
	ticks()
	if r := head(); len(r.Replaced) != 2 {
		t.Errorf("replaced with nothing new to tell: %+v", r)
	}
	close(second)
	o.ended(1)
}

// What a run waits for is told at once when it is something else, and a time that comes
// soon is not.
func TestStatusOfAWait(t *testing.T) {
	t.Parallel()
	busy := func(after time.Duration) providertest.Turn {
		return providertest.Turn{Err: &providers.Error{Class: providers.RateLimit, RetryAfter: after}}
	}
	m := providertest.Script(busy(time.Hour), busy(5*time.Second), busy(5*time.Second), providertest.Say("done"))
	o := newOffice(t, m, func(opt *Options) { opt.slow = time.Hour })
	id := o.send("hello").Task + ".1"
	for n, wait := range []time.Duration{time.Hour, 5 * time.Second, 5 * time.Second} {
		var r Run
		o.until("the wait", func() bool {
			r, _ = o.a.runRecord(t.Context(), o.me.Account, id)
			return r.State == Waiting && len(m.Requests()) == n+1
		})
		if want := min(n+1, 2); len(r.Replaced) != want {
			t.Errorf("wait %d: replaced %d times, want %d", n, len(r.Replaced), want)
		}
		if text := o.count(o.me.Account, Running, 1)[0].raw; n == 0 && !strings.Contains(text, "Next:  the model is called again at 13:") {
			t.Errorf("%s", text)
		}
		o.clock.add(r.Doing.Until.Sub(o.clock.Now()) + wait/2)
		o.commit(dueRun(id, o.clock.Now())) // wakes the dispatcher
	}
	o.ended(1)
}
