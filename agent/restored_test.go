package agent

import (
	"strings"
	"testing"
	"time"

	"pizza/mailbox"
)

// restoredOffice has an approval waiting and has come out of a backup: it is open again,
// with workers, and parked. question is the decision that ends that.
func restoredOffice(t *testing.T) (o *office, approval, question Decision) {
	t.Helper()
	o = newOffice(t, nil)
	o.file("n.txt", "END")
	o.send("call edit_file {\"path\":\"/local/docs/n.txt\",\"old\":\"END\",\"new\":\"x END\"}\nsay done")
	approval = o.waiting(1)[0]
	o.halt()
	for range 2 { // once more changes nothing
		p, err := o.a.Restored(t.Context(), o.me.Account, o.clock.Now().Add(-48*time.Hour))
		if err != nil || p != (Parked{Tasks: 1, Decisions: 1}) {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	o.withBob()
	if p, err := o.a.Restored(t.Context(), o.bob.Account, o.clock.Now()); err != nil || p != (Parked{}) {
		t.Errorf("an account with nothing open: %+v, %v", p, err)
	}
	o.count(o.bob.Account, mailbox.Inbox, 0)
	o.reopen(t)
	r, on, err := o.a.parked(t.Context(), o.me.Account)
	if err != nil || !on {
		t.Fatalf("not parked: %v", err)
	}
	if question, _, err = o.a.loadDecision(t.Context(), o.me.Account, r.Decision); err != nil {
		t.Fatal(err)
	}
	return o, approval, question
}

func TestRestoredAsks(t *testing.T) {
	t.Parallel()
	o, approval, question := restoredOffice(t)
	asks := o.ofKind(Action, KindQuestion)
	if len(asks) != 1 {
		t.Fatalf("Action: %v", asks)
	}
	for _, want := range []string{"restored from a backup of Sun 29 Nov 2026 12:00 UTC: one task and one decision were open then", "continue", "stop", approval.ID, approval.Task, "A task that goes on may do"} {
		if !strings.Contains(strings.ReplaceAll(asks[0].raw, "=\r\n", ""), want) {
			t.Errorf("the mail lacks %q:\n%s", want, asks[0].raw)
		}
	}
	if len(o.ofKind(mailbox.Inbox, KindQuestion)) != 1 {
		t.Error("INBOX does not show it")
	}
	// Every way of deciding says why it does not.
	_, err := o.a.Decide(t.Context(), o.me.Account, approval.ID, "approve", "", DecidedBy{Login: "me", Via: "cli"})
	if !isKind(err, mailbox.Refused) || !strings.Contains(err.Error(), "restored from a backup") {
		t.Errorf("by command line: %v", err)
	}
	o.refused(o.move(approval, Action, Approve))
	o.refused(mailbox.CopyEntries{From: Action, To: Approve, UIDs: o.uid(Action, approval.Mail)})
	o.refused(o.move(question, Action, Approve))
	if r := o.mustGive(o.me, o.message(o.me, "approve\n"), token(approval)); r.Note != "not decided; see your inbox" {
		t.Errorf("by reply: %+v", r)
	}
	o.state(approval, Open)
	// Time passes: nothing expires, nothing runs, new mail waits.
	o.clock.add(30 * day)
	o.send("say new")
	o.a.tendOnce(t.Context(), o.me.Account)
	o.state(approval, Open)
	for _, r := range o.runs(o.me.Account) {
		if r.State.Ended() {
			t.Errorf("%s ended", r.ID)
		}
	}
	if r := o.mustGive(o.me, o.message(o.me, "perhaps\n"), token(question)); r.Note != "unclear; see your inbox" {
		t.Errorf("an unclear answer: %+v", r)
	}
	if s, err := o.a.Show(t.Context(), o.me.Account, question.ID); err != nil || len(s.Open) != 1 {
		t.Errorf("Show: %+v, %v", s, err)
	}
	if text, err := o.a.statusText(t.Context(), o.me.Account); err != nil || !strings.HasPrefix(text, "Nothing runs") {
		t.Errorf("status: %q, %v", text, err)
	}
	o.state(question, Open)
}

func TestRestoredContinue(t *testing.T) {
	t.Parallel()
	o, approval, question := restoredOffice(t)
	o.send("say new")
	if r := o.mustGive(o.me, o.message(o.me, "continue\n\n"+quoted(question.Text)), token(question)); r.Note != "continue" {
		t.Errorf("receipt %+v", r)
	}
	o.state(question, Answered)
	o.decide(approval.ID, "approve", "")
	o.ended(2)
	if got := o.read("n.txt"); got != "x END" {
		t.Errorf("the approved call: %q", got)
	}
	o.settledDown()
}

func TestRestoredStop(t *testing.T) {
	t.Parallel()
	o, approval, question := restoredOffice(t)
	o.clock.add(time.Minute)
	o.send("say new")
	o.decide(question.ID, "stop", "")
	o.ended(2)
	o.state(approval, Dropped)
	var states []RunState
	for _, r := range o.runs(o.me.Account) {
		states = append(states, r.State)
	}
	if strings.Count(strings.Join([]string{string(states[0]), string(states[1])}, " "), string(Cancelled)) != 1 {
		t.Errorf("the runs are %v", states)
	}
	if got := o.read("n.txt"); got != "END" {
		t.Errorf("the file: %q", got)
	}
	o.settledDown()
	if _, err := o.a.Decide(t.Context(), o.me.Account, question.ID, "continue", "", DecidedBy{}); !isKind(err, mailbox.Conflict) {
		t.Errorf("answered twice: %v", err)
	}
}
