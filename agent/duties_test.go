package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pizza/providers"
	"pizza/providers/providertest"
)

// Class 19: the clock jumps while a task is worked on. Nothing is lost, repeated or out of
// order, no minutes are counted that were none, and nobody is asked.
func TestClass19ClockJumps(t *testing.T) {
	t.Parallel()
	for name, jumps := range map[string][]time.Duration{
		"back an hour":           {-time.Hour, 0, -time.Hour},
		"on a day":               {24 * time.Hour, 0, 24 * time.Hour},
		"on ten years, and back": {87_600 * time.Hour, 0, -87_600 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o *office
			jump := func(i int) func(providers.Request) error {
				return func(providers.Request) error { o.clock.add(jumps[i]); return nil }
			}
			m := providertest.Script(
				providertest.Calls(providertest.Call("a", "read_file", `{"path":"/local/docs/n.txt"}`)).If(jump(0)),
				providertest.Calls(providertest.Call("b", "edit_file", `{"path":"/local/docs/n.txt","old":"END","new":"x END"}`)).If(jump(1)),
				providertest.Say("done").If(jump(2)),
			)
			o = newOffice(t, m, func(opt *Options) { opt.Limits.Time = time.Minute })
			o.file("n.txt", "END")
			r := o.send("edit it")
			o.decide(o.waiting(1)[0].ID, "approve", "")
			if mails := o.ended(1); len(mails) != 1 || !strings.Contains(mails[0].raw, "X-Pizza-Kind: result") {
				t.Fatalf("%v", subjects(mails))
			}
			if got := o.read("n.txt"); got != "x END" {
				t.Errorf("the file holds %q", got)
			}
			next := uint64(1)
			err := o.store.Events(t.Context(), o.me.Account, runKey(runID(r.Task, 1)), 1, func(seq uint64, _ []byte) error {
				if seq != next {
					return errors.New("a gap in the journal")
				}
				next++
				return nil
			})
			if err != nil || m.Err() != nil || m.Left() != 0 {
				t.Errorf("%v, %v, %d turns left", err, m.Err(), m.Left())
			}
			o.settledDown()
		})
	}
}

// Class 20: a program that did not see the answer sends the mail again, to the same
// process or to the next one: it is one task.
func TestClass20RepeatAfterARestart(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	raw := o.message(o.me, "say once", "Message-ID: <once@test>", "X-Pizza-Model: runbook:mail")
	first := o.mustGive(o.me, raw, "pizza@localhost")
	o.ended(1)
	for range 2 {
		o.reopen(t)
		if again := o.mustGive(o.me, raw, "pizza@localhost"); again != first {
			t.Errorf("repeat got %+v, want %+v", again, first)
		}
	}
	if n := len(o.runs(o.me.Account)); n != 1 || len(o.ended(1)) != 1 {
		t.Errorf("%d runs, ended: %v", n, subjects(o.ended(1)))
	}
	o.count(o.me.Account, Sent, 1)
	o.settledDown()
}

// Class 22: what a program answers by itself decides nothing, though it quotes the request
// and holds the verb; nor does a sentence with the verb in it.
func TestClass22AVacationReplyDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, header, text string }{
		{"vacation (RFC 3834)", "Auto-Submitted: auto-replied", "approve\n"},
		{"vacation of old", "Precedence: bulk", "approve\n"},
		{"a list", "List-Id: <all.example.org>", "approve\n"},
		{"no mark, but words of its own", "X-None: 1", "I am away until Monday. Ask Bob to approve it.\n"},
		{"no mark, and the verb of what it quotes", "X-None: 1", "I am away.\n\n> approve\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			dec := d.ask(decisionApproval)
			if _, err := d.give(d.me, d.message(d.me, tt.text+"\n"+quoted(dec.Text), tt.header), token(dec)); err != nil {
				t.Fatal(err)
			}
			d.state(dec, Open)
			if n := len(d.runs(d.me.Account)); n != 1 {
				t.Errorf("%d runs, want 1", n)
			}
		})
	}
}

// Class 26: a journal holds what is new, each once. Four times the steps are four times
// the octets, with results of 10 kB and text of 1 kB.
func TestClass26JournalsGrowWithTheirSteps(t *testing.T) {
	t.Parallel()
	octets := func(steps int) (n int) {
		st := newStory(t, 0, 10_000, steps)
		st.real = 1 << 30
		st.run(func() string { return "" })
		if st.calls != steps+1 {
			t.Fatalf("%d calls, want %d", st.calls, steps+1)
		}
		for _, e := range st.events {
			n += len(encodeEvent(e))
		}
		return n
	}
	few, many := octets(50), octets(200)
	if few < 50*10_000 || float64(many) >= 4.5*float64(few) {
		t.Errorf("50 steps take %d octets, 200 take %d: %.1f times as many", few, many, float64(many)/float64(few))
	}
}
