package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"pizza/mailbox"
)

// The loop itself: mail for another account arrives, and a window ends, without
// anybody calling it.
func TestTendLoop(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	d.a.opt.Now = time.Now
	d.a.opt.Window = 20 * time.Millisecond
	dec := d.ask(decisionApproval)
	arrived, stop := d.store.Watch(d.bob.Account, mailbox.Inbox)
	defer stop()
	changed, stop2 := d.store.Watch(d.me.Account, 0)
	defer stop2()

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.a.tend(ctx) }()
	d.mustGive(d.me, d.message(d.me, "hello"), "bob@localhost")
	wait(t, arrived)
	d.count(d.bob.Account, mailbox.Inbox, 1)

	dec.Expires = time.Now().Add(time.Hour)
	rec, err := d.store.Record(t.Context(), d.me.Account, decisionKey(dec.ID))
	if err != nil {
		t.Fatal(err)
	}
	d.commit(decisionPut(dec, rec.Version))
	d.clock.now = time.Now()
	d.mustAct(d.move(dec, Action, Approve))
	for {
		got, _, err := d.a.loadDecision(t.Context(), d.me.Account, dec.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.State == Approved {
			break
		}
		wait(t, changed)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("tend returned %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("tend does not end with its context")
	}
}

func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing happened within 10 s")
	}
}

// An entry that fails, or panics, does not keep the others from being worked, and
// comes back after its lease.
func TestTendPoison(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, key := range []string{"a", "b", "c"} {
		d.commit(mailbox.PutDue{Due: mailbox.Due{Kind: DueWindow, Key: key, At: d.clock.Now()}})
	}
	worked := map[string]int{}
	handle := func(_ context.Context, _ mailbox.AccountID, due mailbox.Due) error {
		worked[due.Key]++
		switch due.Key {
		case "a":
			return errors.New("bad")
		case "b":
			panic("worse")
		}
		return d.a.dropDue(t.Context(), d.me.Account, due)
	}
	for range 2 {
		d.a.tendKind(t.Context(), d.me.Account, DueWindow, handle)
	}
	if worked["a"] != 1 || worked["b"] != 1 || worked["c"] != 1 {
		t.Errorf("worked %v, want each once", worked)
	}
	d.clock.add(tendLease + time.Second)
	if n, failed := d.a.tendKind(t.Context(), d.me.Account, DueWindow, handle); n != 2 || !failed {
		t.Errorf("worked %d, failed %v", n, failed)
	}
	if worked["a"] != 2 || worked["b"] != 2 || worked["c"] != 1 {
		t.Errorf("worked %v after the lease", worked)
	}
}

// A decision that lost its commit against a worker is tried again at once.
func TestTendMeetsConflict(t *testing.T) {
	t.Parallel()
	tries := 0
	err := patient(func() error {
		if tries++; tries < 3 {
			return &mailbox.Error{Op: "commit", Kind: mailbox.Conflict}
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%v after %d tries", err, tries)
	}
}
