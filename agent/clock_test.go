package agent

import (
	"testing"
	"time"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

const tenYears = 10 * 365 * 24 * time.Hour

// look has everybody who sleeps look at the clock, as they do every 30 s: a due entry is
// committed.
func (o *office) look() {
	o.t.Helper()
	o.commit(mailbox.PutDue{Due: mailbox.Due{Kind: "test", Key: "look", At: o.clock.Now()}})
}

// TestClass19ClockJumpsAndRetries: the clock jumps while a run waits for its next try.
func TestClass19ClockJumpsAndRetries(t *testing.T) {
	t.Parallel()
	for name, jumps := range map[string]struct{ before, after time.Duration }{
		"ahead when it failed":  {tenYears, -tenYears},
		"a day ahead":           {24 * time.Hour, -24 * time.Hour},
		"behind when it failed": {-time.Hour, time.Hour},
		"back while it waits":   {0, -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy := &providers.Error{Class: providers.RateLimit, Message: "slow down", RetryAfter: time.Minute}
			m := providertest.Script(providertest.Turn{Err: busy}, providertest.Say("at last"))
			o := newOffice(t, m)
			o.clock.add(jumps.before)
			o.look()
			o.send("hello")
			o.until("the pause", func() bool { r := o.runs(o.me.Account)[0]; return r.State == Waiting && r.For == "timer" })
			o.clock.add(jumps.after)
			if jumps.before == 0 { // and it is right again, when a minute has passed
				o.look()
				o.clock.add(time.Hour + 90*time.Second)
			}
			o.until("the answer", func() bool { // 30 s in which nothing else happens are a look
				o.look()
				return o.runs(o.me.Account)[0].State.Ended()
			})
			if len(m.Requests()) != 2 {
				t.Errorf("%d calls", len(m.Requests()))
			}
			o.settledDown()
		})
	}
}

// TestClass19ClockJumpsAndDecisions: what expired stays expired, nothing is decided twice,
// and what was asked under a clock that ran ahead expires in its time.
func TestClass19ClockJumpsAndDecisions(t *testing.T) {
	t.Parallel()
	const task = "call edit_file {\"path\":\"/local/docs/n.txt\",\"old\":\"END\",\"new\":\"x END\"}\nsay done"
	o := newOffice(t, nil)
	o.file("n.txt", "END")
	o.send(task)
	first := o.waiting(1)[0]
	for _, jump := range []time.Duration{-time.Hour, time.Hour, 24 * time.Hour, -24 * time.Hour} {
		o.clock.add(jump)
		o.look()
		o.waiting(1)
	}
	o.clock.add(tenYears)
	o.until("the expiry", func() bool { o.look(); return o.runs(o.me.Account)[0].State.Ended() })
	o.send(task)
	second := o.waiting(1)[0]
	o.clock.add(-tenYears)
	o.look()
	o.until("an expiry by the right clock", func() bool {
		d, _, err := o.a.loadDecision(t.Context(), o.me.Account, second.ID)
		return err == nil && !d.Expires.After(o.clock.Now().Add(7*24*time.Hour))
	})
	if _, err := o.a.Decide(t.Context(), o.me.Account, first.ID, "approve", "", by("me")); !isKind(err, mailbox.Conflict) {
		t.Errorf("approving what expired under the other clock: %v", err)
	}
	o.clock.add(7*24*time.Hour + time.Minute)
	o.until("the second expiry", func() bool {
		o.look()
		d, _, err := o.a.loadDecision(t.Context(), o.me.Account, second.ID)
		return err == nil && d.State == Expired
	})
	o.until("the end", func() bool {
		for _, r := range o.runs(o.me.Account) {
			if !r.State.Ended() {
				return false
			}
		}
		return true
	})
	if got := o.read("n.txt"); got != "END" {
		t.Errorf("done: %q", got)
	}
	for _, r := range o.runs(o.me.Account) {
		if got := o.decidedEvents(r.ID); len(got) != 1 || got[0].Verb != "expire" {
			t.Errorf("%s is decided %d times", r.ID, len(got))
		}
	}
	o.settledDown()
}

// TestClass14LongWaitAsks: a provider that wants 16 days is not waited for in silence.
func TestClass14LongWaitAsks(t *testing.T) {
	t.Parallel()
	days := &providers.Error{Class: providers.RateLimit, Message: "quota", RetryAfter: 16 * 24 * time.Hour}
	m := providertest.Script(providertest.Turn{Err: days}, providertest.Say("at last"))
	o := newOffice(t, m)
	o.send("hello")
	d := o.waiting(1)[0]
	if d.Kind != decisionLimit || len(m.Requests()) != 1 {
		t.Fatalf("%s, %d calls", d.Kind, len(m.Requests()))
	}
	o.decide(d.ID, "continue", "")
	o.until("the wait", func() bool { r := o.runs(o.me.Account)[0]; return r.State == Waiting && r.For == "timer" })
	o.clock.add(17 * 24 * time.Hour)
	o.until("the answer", func() bool { o.look(); return o.runs(o.me.Account)[0].State.Ended() })
	if len(m.Requests()) != 2 {
		t.Errorf("%d calls", len(m.Requests()))
	}
	o.settledDown()
}
