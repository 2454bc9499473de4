package agent

import (
	"strings"
	"testing"

	"pizza/mailbox"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	for _, id := range []string{dec.Run, strings.ToUpper(dec.Task), dec.ID} {
		if err := d.a.Cancel(t.Context(), d.me.Account, id, by("me")); err != nil {
			t.Fatalf("Cancel(%s): %v", id, err)
		}
	}
	events := d.journal(dec.Run)
	st, err := Fold(events)
	if err != nil || st.Cancel == nil || st.Cancel.By.Login != "me" {
		t.Fatalf("fold: %+v, %v", st.Cancel, err)
	}
	if r := d.runs(d.me.Account)[0]; r.State != Queued || r.Seq != uint64(len(events)) {
		t.Errorf("run %s at %d, want queued at %d", r.State, r.Seq, len(events))
	}
	due, err := d.store.Claim(t.Context(), d.me.Account, DueRun, d.clock.Now(), 1, 10)
	if err != nil || len(due) != 1 {
		t.Errorf("due %v, %v; want the run", due, err)
	}
}

func TestCancelRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	dec := d.ask(decisionApproval)
	if err := d.a.Cancel(t.Context(), d.bob.Account, dec.Task, by("bob")); !isKind(err, mailbox.NotFound) {
		t.Errorf("foreign: %v, want NotFound", err)
	}
	rec, err := d.store.Record(t.Context(), d.me.Account, runKey(dec.Run))
	if err != nil {
		t.Fatal(err)
	}
	run, _ := decodeRun(rec)
	run.State = Done
	d.commit(runPut(run, rec.Version))
	if err := d.a.Cancel(t.Context(), d.me.Account, dec.Run, by("me")); !isKind(err, mailbox.Conflict) ||
		!strings.Contains(textOfError(err), "has ended already") {
		t.Errorf("ended: %v, want Conflict saying so", err)
	}
}

// A wrong id is repeated as it was typed, not as it was understood.
func TestUnknownIDsAreRepeatedAsTyped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const id = "Oil"
	_, decide := d.a.Decide(t.Context(), d.me.Account, id, "approve", "", by("me"))
	_, find := d.a.Find(t.Context(), d.me.Account, id)
	for name, err := range map[string]error{
		"cancel": d.a.Cancel(t.Context(), d.me.Account, id, by("me")), "decide": decide, "find": find,
	} {
		if !isKind(err, mailbox.NotFound) || !strings.Contains(textOfError(err), " "+id) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
