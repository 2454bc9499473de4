package agent

import (
	"strings"
	"testing"
	"time"

	"pizza/providers/providertest"
)

// Cancelling a task cancels what waited in it; what comes after is worked on.
func TestCancelTakesTheQueue(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) })
	m := providertest.Script(providertest.Say("never").After(gate), providertest.Say("the later one"))
	o := newOffice(t, m)
	first := o.send("hello", "Message-ID: <first@test>")
	o.until("the call", func() bool { return len(m.Requests()) == 1 })
	waiting := o.send("and this", "In-Reply-To: <first@test>", "Subject: waits")
	if waiting.Task != first.Task {
		t.Fatalf("%+v", waiting)
	}
	o.clock.add(time.Second)
	if err := o.a.Cancel(t.Context(), o.me.Account, first.Task, by("me")); err != nil {
		t.Fatal(err)
	}
	mails := o.ended(1)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "was not worked on either") || !strings.Contains(mails[0].raw, "waits") {
		t.Errorf("%v", mails)
	}
	o.settledDown()
	th, _, err := o.a.thread(t.Context(), o.me.Account, first.Task)
	if err != nil || len(th.Queue) != 0 || th.Active != "" {
		t.Errorf("%+v, %v", th, err)
	}
	o.clock.add(time.Second)
	if r := o.send("start again", "In-Reply-To: <first@test>"); r.Task != first.Task {
		t.Errorf("%+v", r)
	}
	if all := o.ended(2); !strings.Contains(all[len(all)-1].raw, "the later one") {
		t.Errorf("%v", subjects(all))
	}
	o.settledDown()
}
