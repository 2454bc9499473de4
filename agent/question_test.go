package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pizza/mailbox"
)

func TestAskOwner(t *testing.T) {
	t.Parallel()
	o, _ := bank(t, nil)
	o.send("call ask_owner {\"question\":\"Which of them?\\nThe red one or the blue one?\"}\nsay thank you", "Subject: Socks")
	d := o.waiting(1)[0]
	if d.Kind != decisionQuestion || !slices.Equal(d.Verbs(), []string{"answer", "cancel"}) {
		t.Fatalf("%s %v", d.Kind, d.Verbs())
	}
	asks := o.ofKind(Action, KindQuestion)
	if len(asks) != 1 || !strings.HasPrefix(asks[0].subject, "Question: Which of them?") || !strings.Contains(asks[0].raw, "  | The red one or the blue one?") {
		t.Fatalf("Action: %+v", asks)
	}
	// Moving it decides nothing: it is answered by words.
	o.refused(o.move(d, Action, Approve))
	// Words that decide elsewhere are words here.
	if r := o.reply(d, "approve?\n\nNo - the red one, but only if it is not too small."); r.Note != "answer" {
		t.Errorf("receipt %+v", r)
	}
	mails := o.ended(1)
	if len(mails) != 1 || !strings.Contains(unfolded(mails[0].raw), "No - the red one, but only if it is not too small.") {
		t.Errorf("%v", mails)
	}
	o.state(d, Answered)
	o.lies(d, mailbox.Inbox)
	// Late.
	if r := o.reply(d, "the blue one"); !strings.HasPrefix(r.Note, "too late") {
		t.Errorf("receipt %+v", r)
	}
	o.settledDown()
}

func TestAskOwnerEndsOtherwise(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do    func(*office, Decision)
		state RunState
		told  string
	}{
		"cancel task":          {func(o *office, d Decision) { o.reply(d, "cancel task") }, Cancelled, "cancelled"},
		"command line":         {func(o *office, d Decision) { o.decide(d.ID, "answer", "cancel the order") }, Done, "cancel the order"},
		"command line, cancel": {func(o *office, d Decision) { o.decide(d.ID, "answer", "Cancel task") }, Cancelled, "cancelled"},
		"expired": {func(o *office, _ Decision) {
			o.clock.add(8 * 24 * time.Hour)
			o.a.tendOnce(o.t.Context(), o.me.Account)
		}, Done, "did not answer within 7 days"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _ := bank(t, nil)
			o.send(`call ask_owner {"question":"Why?"}`)
			d := o.waiting(1)[0]
			tt.do(o, d)
			mails := o.ended(1)
			if got := o.runs(o.me.Account)[0].State; got != tt.state || !strings.Contains(unfolded(mails[0].raw), tt.told) {
				t.Errorf("%s\n%s", got, mails[0].raw)
			}
			o.settledDown()
		})
	}
}

func TestAskOwnerRefusesWhatIsNoQuestion(t *testing.T) {
	t.Parallel()
	o, _ := bank(t, nil)
	o.send("call ask_owner {}\ncall ask_owner {\"question\":\"  \"}\ncall ask_owner {\"question\":\"" + strings.Repeat("x", maxQuestion+1) + "\"}\nsay no")
	mails := o.ended(1)
	for _, want := range []string{"must have question", "is empty", "at most 4000 characters"} {
		if !strings.Contains(unfolded(mails[0].raw), want) {
			t.Errorf("the model is not told %q:\n%s", want, mails[0].raw)
		}
	}
	o.settledDown()
}

func TestAnswerInThePlaceOfADecision(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	o.send(`call pay {"to":"ann","amount":1}
and call pay {"to":"bob","amount":1}`)
	open := o.waiting(2)
	o.reply(byArgs(t, open, "ann"), "answer: take eve\nshe is nearer")
	o.decide(byArgs(t, open, "bob").ID, "answer", "who is that?")
	mails := o.ended(1)
	l.expect(t)
	for _, want := range []string{"answered instead: take eve she is nearer", "answered instead: who is that?"} {
		if !strings.Contains(unfolded(mails[0].raw), want) {
			t.Errorf("the model is not told %q:\n%s", want, mails[0].raw)
		}
	}
	for _, d := range open {
		if got := o.state(d, Answered); got.Reason == "" {
			t.Errorf("%+v", got)
		}
	}
	o.settledDown()
}

// The agent gets the text of an answer and is told of its files; an answer of files alone
// is none, and a move is refused in words about a question.
func TestAnswerWithFiles(t *testing.T) {
	t.Parallel()
	o, _ := bank(t, nil)
	o.send(`call ask_owner {"question":"Which?"}`)
	d := o.waiting(1)[0]
	_, err := o.act(o.move(d, Action, Approve))
	if !strings.Contains(textOfError(err), "reply with your answer") {
		t.Errorf("a move: %v", err)
	}
	with := func(text string) mailbox.Receipt {
		return o.mustGive(o.me, o.message(o.me, "--b\n\n"+text+"\n--b\nContent-Type: application/x-thing; name=a.bin\n"+
			"Content-Disposition: attachment; filename=a.bin\n\nDATA\n--b--", "In-Reply-To: <"+d.MailID+">",
			"MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=b"), token(d))
	}
	if r := with(""); !strings.HasPrefix(r.Note, "unclear") {
		t.Errorf("receipt %+v", r)
	}
	o.state(d, Open)
	if r := with("the attached one"); r.Note != "answer" {
		t.Errorf("receipt %+v", r)
	}
	o.ended(1)
	results := o.ofKind(mailbox.Inbox, KindResult)
	if len(results) != 1 {
		t.Fatalf("%d results", len(results))
	}
	if raw := unfolded(results[0].raw); !strings.Contains(raw, "the attached one") || !strings.Contains(raw, "you cannot read: a.bin") {
		t.Error(raw)
	}
	o.settledDown()
}

func TestAnswerMeans(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, text, verb, rest string }{
		{decisionApproval, "approve", "approve", ""}, {decisionApproval, "reject: not now", "reject", "not now"},
		{decisionApproval, "take: the other", "answer", "take: the other"}, {decisionApproval, "answer: x", "answer", "x"},
		{decisionApproval, "cancel task", "cancel", ""}, {decisionQuestion, "yes: all", "answer", "yes: all"},
		{decisionQuestion, "cancel", "answer", "cancel"}, {decisionUnknown, "Happened", "happened", ""},
		{decisionUnknown, "cancel", "cancel", ""}, {decisionLimit, "continue 5", "continue 5", ""}, {decisionKept, "keep", "keep", ""},
		{decisionUnknown, "no idea", "no idea", ""},
	} {
		if verb, rest := answerMeans(tt.kind, tt.text); verb != tt.verb || rest != tt.rest {
			t.Errorf("%s %q: %q %q", tt.kind, tt.text, verb, rest)
		}
	}
}

func TestReminders(t *testing.T) {
	t.Parallel()
	o, _ := bank(t, nil, func(opt *Options) { opt.Remind = 24 * time.Hour })
	o.send(threePays)
	open := o.waiting(3)
	o.halt() // what is due is looked at by hand: the clock is ours
	look := func(want int) {
		t.Helper()
		o.a.tendOnce(t.Context(), o.me.Account)
		if got := o.told("Still waiting"); len(got) != want {
			t.Fatalf("%d reminders, want %d: %v", len(got), want, subjects(got))
		}
	}
	look(0)
	o.clock.add(23 * time.Hour)
	look(0)
	o.clock.add(2 * time.Hour)
	look(1) // one mail for all three
	look(1)
	if r := o.told("Still waiting")[0]; !strings.Contains(r.subject, "3 decisions") || strings.Count(unfolded(r.raw), "- Call pay") != 6 /* in text and HTML */ {
		t.Errorf("%s\n%s", r.subject, r.raw)
	}
	// Three days without a look: one, not three.
	o.clock.add(72 * time.Hour)
	look(2)
	// What is decided is not called to mind; a reply to a reminder of one decides it.
	for _, d := range open[:2] {
		o.reply(d, "reject")
	}
	o.clock.add(24 * time.Hour)
	look(3)
	last := o.told("Still waiting")[2]
	if !strings.Contains(last.raw, "X-Pizza-Approval: "+open[2].ID) {
		t.Errorf("not about the one that is open:\n%s", last.raw)
	}
	o.mustGive(o.me, o.message(o.me, "reject", "In-Reply-To: <"+last.mid+">"), "pizza@localhost")
	if next, err := o.store.NextDue(t.Context(), o.me.Account, DueRemind); err != nil || !next.IsZero() {
		t.Errorf("a reminder is due at %v, %v", next, err)
	}
	o.clock.add(30 * 24 * time.Hour)
	look(3)
	o.reopen(t)
	o.ended(1)
	o.settledDown()
}

func TestNoRemindersByDefault(t *testing.T) {
	t.Parallel()
	o, _ := bank(t, nil)
	o.send(`call pay {"to":"ann","amount":1}`)
	o.waiting(1)
	o.halt()
	o.clock.add(6 * 24 * time.Hour)
	o.a.tendOnce(t.Context(), o.me.Account)
	if got := o.told("Still waiting"); len(got) != 0 {
		t.Errorf("%v", subjects(got))
	}
}
