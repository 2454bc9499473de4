package agent

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// fillable gives an office a disk that the test fills.
func fillable(t *testing.T, o *office) *atomic.Bool {
	t.Helper()
	var full atomic.Bool
	o.halt()
	o.closing()
	o.disk = func() (int64, int64, error) {
		if full.Load() {
			return 0, 1 << 40, nil
		}
		return 1 << 40, 1 << 40, nil
	}
	o.open(t, func(s mailbox.Store) mailbox.Store { return s })
	return &full
}

// TestFullDiskHoldsTools: what is under way is recorded, then the run waits, says so,
// and goes on by itself.
func TestFullDiskHoldsTools(t *testing.T) {
	t.Parallel()
	var full *atomic.Bool
	read := providertest.Call("a", "read_file", `{"path":"/local/docs/a.txt"}`)
	m := providertest.Script(
		providertest.Calls(read).If(func(providers.Request) error { full.Store(true); return nil }),
		providertest.Say("done"))
	o := newOffice(t, m)
	full = fillable(t, o)
	o.file("a.txt", "alpha\n")
	r := o.send("please read")
	o.until("the wait", func() bool { run := o.runs(o.me.Account)[0]; return run.State == Waiting && run.For == forRoom })
	for _, e := range o.journal(r.Task + ".1") {
		if e.ToolStart != nil {
			t.Error("an intent was made on a full disk")
		}
	}
	status := o.list(o.me.Account, Running)
	if len(status) != 1 || !strings.Contains(status[0].raw, "waiting for room on the disk") {
		t.Fatalf("Running: %v", status)
	}
	if _, err := o.give(o.me, o.message(o.me, "another"), "pizza@localhost"); !isKind(err, mailbox.Full) {
		t.Errorf("a further mail: %v, want Full", err)
	}
	full.Store(false)
	o.clock.add(roomEvery + time.Second)
	o.send("say x", "X-Pizza-Model: runbook:mail") // wakes the dispatcher
	o.ended(2)
	if err := m.Err(); err != nil || m.Left() != 0 {
		t.Errorf("%v, %d turns left", err, m.Left())
	}
	o.settledDown()
}

// TestFullDiskAndCancel: a run that waits for room ends when its owner says so.
func TestFullDiskAndCancel(t *testing.T) {
	t.Parallel()
	o, run, _ := waitingForRoom(t)
	if err := o.a.Cancel(t.Context(), o.me.Account, taskOf(run), DecidedBy{Login: "me", Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	o.ended(1)
	o.settledDown()
}

// TestStillFull: a look that finds the disk full commits nothing, and keeps no worker.
func TestStillFull(t *testing.T) {
	t.Parallel()
	o, run, full := waitingForRoom(t)
	before, err := o.store.Record(t.Context(), o.me.Account, runKey(run))
	if err != nil {
		t.Fatal(err)
	}
	o.clock.add(roomEvery + time.Second)
	poke := mailbox.Tx{Ops: []mailbox.Op{mailbox.PutRecord{Key: "poke", Any: true}}} // wakes the dispatcher
	if _, err := o.store.Commit(t.Context(), o.me.Account, poke); err != nil {
		t.Fatal(err)
	}
	o.until("the next look", func() bool {
		o.a.mu.Lock()
		defer o.a.mu.Unlock()
		s := o.a.sessions[run]
		return s != nil && s.held && len(o.a.slots) == 0
	})
	after, err := o.store.Record(t.Context(), o.me.Account, runKey(run))
	if err != nil || after.Version != before.Version || !full.Load() {
		t.Errorf("the run's record went from version %d to %d (%v)", before.Version, after.Version, err)
	}
}

// waitingForRoom is an office with one run that waits for room.
func waitingForRoom(t *testing.T) (o *office, run string, full *atomic.Bool) {
	t.Helper()
	m := providertest.Script(providertest.Calls(providertest.Call("a", "list_folder", `{"path":"/local"}`)).If(func(providers.Request) error {
		full.Store(true)
		return nil
	}))
	o = newOffice(t, m)
	full = fillable(t, o)
	r := o.send("please list")
	o.until("the wait", func() bool { run := o.runs(o.me.Account)[0]; return run.State == Waiting && run.For == forRoom })
	return o, r.Task + ".1", full
}
