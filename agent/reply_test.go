package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pizza/mailbox"
)

// quoted is a parent's text as mail programs quote it.
func quoted(text string) string {
	return "On Tue, 1 Dec 2026 at 12:00, Pizza <pizza@localhost> wrote:\n> " +
		strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ") + "\n"
}

// token is the address of a decision.
func token(dec Decision) string { return "pizza+a." + dec.ID + "@localhost" }

func TestReplyDecides(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind, text string
		to               func(Decision) string
		header           func(Decision) string
		want             DecisionState
		verb, note       string
		reason           string
	}{
		{"word and token", decisionApproval, "approve\n", token, nil, Approved, "approve", "approved", ""},
		{"in-reply-to only", decisionApproval, "Yes.\n", nil,
			func(d Decision) string { return "In-Reply-To: <" + d.MailID + ">" }, Approved, "approve", "approved", ""},
		{"references only", decisionApproval, "yes\n", nil,
			func(d Decision) string { return "References: <root@x> <" + d.MailID + "> <unknown@x>" }, Approved, "approve", "approved", ""},
		{"reason", decisionApproval, "reject: not there\n", token, nil, Rejected, "reject", "rejected", "not there"},
		{"happened", decisionUnknown, "happened\n", token, nil, Answered, "happened", "happened", ""},
		{"stop", decisionUnknown, "stop\n", token, nil, Answered, "stop", "stop", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			dec := d.ask(tt.kind)
			to, header := "pizza@localhost", "X-None: 1"
			if tt.to != nil {
				to = tt.to(dec)
			}
			if tt.header != nil {
				header = tt.header(dec)
			}
			raw := d.message(d.me, tt.text+"\n"+quoted(dec.Text), header, "Message-ID: <answer@test>")
			r := d.mustGive(d.me, raw, to)
			if r.Task != dec.Task || r.Note != tt.note {
				t.Errorf("receipt %+v, want %s %q", r, dec.Task, tt.note)
			}
			rec := d.state(dec, tt.want)
			if rec.By.Message != "answer@test" || rec.By.Via != viaReply || rec.By.Credential != "default" || rec.Reason != tt.reason {
				t.Errorf("recorded %+v, %q", rec.By, rec.Reason)
			}
			if ev := d.decidedEvents(dec.Run); len(ev) != 1 || ev[0].Verb != tt.verb {
				t.Errorf("journal %+v", ev)
			}
			d.lies(dec, mailbox.Inbox)
			d.count(d.me.Account, mailbox.Inbox, 1) // no further mail
			if n := len(d.runs(d.me.Account)); n != 1 {
				t.Errorf("%d runs, want 1", n)
			}
			if again := d.mustGive(d.me, raw, to); again != r {
				t.Errorf("the same mail again: %+v, want %+v", again, r)
			}
		})
	}
}

func TestReplyDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind string
		text       func(Decision) string
		note       string
		told       string // in the answering mail
	}{
		{"unclear", decisionApproval, func(Decision) string { return "maybe later" }, "unclear", "approve"},
		{"empty", decisionApproval, func(d Decision) string { return quoted(d.Text) }, "unclear", "approve"},
		{"hedged", decisionApproval, func(Decision) string { return "approve\nbut only if it is free" }, "unclear", "approve"},
		{"an edit without the block", decisionApproval, func(Decision) string { return "edit\nto another file" }, "not decided", "does not hold the arguments"},
		{"an edit to what no tool takes", decisionApproval,
			func(d Decision) string { return "edit\n\n" + quoted(strings.ReplaceAll(d.Text, "path:", "paht:")) }, "not decided", "must have path"},
		{"always, of a folder that is not granted", decisionApproval, func(Decision) string { return "always" }, "not decided", "The reason: =E2=80=9Calways"},
		{"block changed in the quote", decisionApproval,
			func(d Decision) string { return "approve\n\n" + quoted(strings.ReplaceAll(d.Text, "forty", "thirty")) }, "not decided", "thirty"},
		{"always over a changed block", decisionApproval,
			func(d Decision) string { return "always\n\n" + quoted(strings.ReplaceAll(d.Text, "forty", "thirty")) }, "not decided", "thirty"},
		{"approve, with another argument typed below", decisionApproval,
			func(d Decision) string { return "approve\n\nPath: /local/x/b.txt\n\n" + quoted(d.Text) }, "not decided", "b.txt"},
		{"edit, with the change outside the marks", decisionApproval,
			func(d Decision) string { return "edit\npath: /local/x/b.txt\n\n" + quoted(d.Text) }, "not decided", "outside the marks"},
		{"edit that changes nothing", decisionApproval,
			func(d Decision) string { return "edit\n\n" + quoted(d.Text) }, "not decided", "nothing is changed"},
		{"verb of another kind", decisionUnknown, func(Decision) string { return "approve" }, "unclear", "happened"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			dec := d.ask(tt.kind)
			r := d.mustGive(d.me, d.message(d.me, tt.text(dec), "Message-ID: <answer@test>"), token(dec))
			if r.Task != dec.Task || !strings.HasPrefix(r.Note, tt.note) {
				t.Errorf("receipt %+v, want note %q", r, tt.note)
			}
			d.state(dec, Open)
			d.lies(dec, Action, mailbox.Inbox)
			told := d.count(d.me.Account, mailbox.Inbox, 2)[1]
			for _, want := range []string{tt.told, "Auto-Submitted: auto-replied", "In-Reply-To: <answer@test>", dec.ID} {
				if !strings.Contains(told.raw, want) {
					t.Errorf("the answer lacks %q:\n%s", want, told.raw)
				}
			}
			if len(told.flags) != 0 {
				t.Errorf("the answer has flags %v", told.flags)
			}
			// A reply to that answer decides.
			verb := (Decision{Kind: tt.kind}).Verbs()[0]
			d.mustGive(d.me, d.message(d.me, verb, "In-Reply-To: <"+told.mid+">"), "pizza@localhost")
			if rec, _, _ := d.a.loadDecision(t.Context(), d.me.Account, dec.ID); rec.By == nil {
				t.Errorf("%s in reply to the help mail decided nothing", verb)
			}
		})
	}
}

func TestHelpIsCapped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	for i := range maxHelps + 2 {
		r := d.mustGive(d.me, d.message(d.me, "maybe"), token(dec))
		if capped := strings.Contains(r.Note, "no more help"); capped != (i >= maxHelps) {
			t.Errorf("reply %d: note %q", i, r.Note)
		}
	}
	d.count(d.me.Account, mailbox.Inbox, 1+maxHelps)
	d.clock.add(time.Hour)
	d.mustGive(d.me, d.message(d.me, "maybe"), token(dec))
	d.count(d.me.Account, mailbox.Inbox, 2+maxHelps)
	d.state(dec, Open)
}

func TestLateReplies(t *testing.T) {
	t.Parallel()
	t.Run("decided", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dec := d.ask(decisionApproval)
		d.mustGive(d.me, d.message(d.me, "approve"), token(dec))
		r := d.mustGive(d.me, d.message(d.me, "reject"), token(dec))
		if !strings.HasPrefix(r.Note, "too late") || r.Task != dec.Task {
			t.Errorf("receipt %+v", r)
		}
		d.state(dec, Approved)
		if told := d.count(d.me.Account, mailbox.Inbox, 2)[1]; !strings.Contains(told.raw, "approved by me") {
			t.Errorf("told:\n%s", told.raw)
		}
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dec := d.ask(decisionApproval)
		d.clock.add(25 * time.Hour)
		r := d.mustGive(d.me, d.message(d.me, "approve"), token(dec))
		if !strings.HasPrefix(r.Note, "too late") {
			t.Errorf("receipt %+v", r)
		}
		d.state(dec, Open)
		if told := d.count(d.me.Account, mailbox.Inbox, 2)[1]; !strings.Contains(told.raw, "expired") {
			t.Errorf("told:\n%s", told.raw)
		}
	})
}

func TestForeignAndScopedReplies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	dec := d.ask(decisionApproval)
	ref := "In-Reply-To: <" + dec.MailID + ">"
	if _, err := d.give(d.bob, d.message(d.bob, "approve"), token(dec)); !isKind(err, mailbox.NotFound) {
		t.Errorf("bob at the token: %v, want NotFound", err)
	}
	if r := d.mustGive(d.bob, d.message(d.bob, "approve", ref), "pizza@localhost"); r.Task == dec.Task {
		t.Error("bob joined my task")
	}
	if _, err := d.give(sendOnly(d.me), d.message(d.me, "approve"), token(dec)); !isKind(err, mailbox.Denied) {
		t.Errorf("send-only at the token: %v, want Denied", err)
	}
	if r := d.mustGive(sendOnly(d.me), d.message(d.me, "approve", ref), "pizza@localhost"); r.Task == dec.Task || r.Task == "" {
		t.Errorf("send-only reply: %+v, want a new task", r)
	}
	d.state(dec, Open)
	second := d.ask(decisionApproval)
	if _, err := d.give(d.me, d.message(d.me, "approve"), token(dec), token(second)); !isKind(err, mailbox.Invalid) {
		t.Errorf("two decisions in one mail: %v, want Invalid", err)
	}
	d.state(dec, Open)
	d.state(second, Open)
}

func TestReplyCancels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind, text string
		cancels          bool
	}{
		{"status", KindStatus, "cancel", true},
		{"result", KindResult, "Stop.", true},
		{"more words", KindStatus, "stop\nusing the old file", false},
		{"something else", KindResult, "thanks, now say b", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			first := d.mustGive(d.me, d.message(d.me, "say a"), "pizza@localhost")
			d.commit(refPut("ours@test", MessageRef{Task: first.Task, Kind: tt.kind, Ours: true}))
			r := d.mustGive(d.me, d.message(d.me, tt.text, "In-Reply-To: <ours@test>"), "pizza@localhost")
			if r.Task != first.Task {
				t.Errorf("task %s, want %s", r.Task, first.Task)
			}
			cancelled := slices.ContainsFunc(d.journal(runID(first.Task, 1)), func(e Event) bool { return e.Cancel != nil })
			th, _, err := d.a.thread(t.Context(), d.me.Account, first.Task)
			if err != nil {
				t.Fatal(err)
			}
			if cancelled != tt.cancels || (len(th.Queue) == 0) != tt.cancels {
				t.Errorf("cancelled %v with %d waiting, want %v", cancelled, len(th.Queue), tt.cancels)
			}
		})
	}
}

func TestReplyCancelsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.mustGive(d.me, d.message(d.me, "say a"), "pizza@localhost")
	th, version, err := d.a.thread(t.Context(), d.me.Account, first.Task)
	if err != nil {
		t.Fatal(err)
	}
	th.Active = ""
	d.commit(threadPut(th, version))
	r := d.mustGive(d.me, d.message(d.me, "cancel"), fmt.Sprintf("pizza+t.%s@localhost", th.Token))
	if !strings.HasPrefix(r.Note, "nothing to cancel") {
		t.Errorf("receipt %+v", r)
	}
	if told := d.count(d.me.Account, mailbox.Inbox, 1)[0]; !strings.Contains(told.raw, "has ended already") {
		t.Errorf("told:\n%s", told.raw)
	}
	if n := len(d.runs(d.me.Account)); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

func TestDecisionReplyCancelsTask(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	r := d.mustGive(d.me, d.message(d.me, "cancel task"), token(dec))
	if r.Note != "cancel requested" {
		t.Errorf("receipt %+v", r)
	}
	if e := d.journal(dec.Run); e[len(e)-1].Cancel == nil {
		t.Errorf("last event %+v, want a cancel", e[len(e)-1])
	}
}

// A reply to the mail of one decision that goes to the address of another decides
// neither: its writer saw one and would decide the other.
func TestReplyToAnotherDecision(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b := d.ask(decisionApproval), d.ask(decisionApproval)
	r := d.mustGive(d.me, d.message(d.me, "approve", "In-Reply-To: <"+b.MailID+">"), token(a))
	if !strings.HasPrefix(r.Note, "unclear") {
		t.Errorf("note %q, want unclear", r.Note)
	}
	d.state(a, Open)
	d.state(b, Open)
}
