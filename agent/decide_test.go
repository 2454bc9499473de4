package agent

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind, verb string
		want       DecisionState
		keyword    imap.Flag
	}{
		{decisionApproval, "approve", Approved, "$Approved"},
		{decisionApproval, "Reject", Rejected, "$Rejected"},
		{decisionUnknown, "happened", Answered, "$Answered"},
		{decisionUnknown, "repeat", Answered, "$Answered"},
		{decisionUnknown, "stop", Answered, "$Answered"},
	} {
		t.Run(tt.kind+" "+tt.verb, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			dec := d.ask(tt.kind)
			got, err := d.a.Decide(t.Context(), d.me.Account, strings.ToUpper(dec.ID), tt.verb, "because", by("me"))
			if err != nil {
				t.Fatal(err)
			}
			if got.State != tt.want {
				t.Errorf("returned %s, want %s", got.State, tt.want)
			}
			rec := d.state(dec, tt.want)
			if rec.By == nil || rec.By.Login != "me" || rec.By.Via != "cli" || !rec.By.At.Equal(d.clock.Now()) || rec.Reason != "because" {
				t.Errorf("recorded %+v, %q", rec.By, rec.Reason)
			}
			events := d.decidedEvents(dec.Run)
			if len(events) != 1 || events[0].Verb != strings.ToLower(tt.verb) || events[0].Call != "c1" {
				t.Fatalf("journal %+v", events)
			}
			d.lies(dec, mailbox.Inbox)
			shown := d.list(d.me.Account, mailbox.Inbox)[0]
			if !slices.Contains(shown.flags, imap.FlagSeen) || !slices.Contains(shown.flags, tt.keyword) || shown.tag != "" {
				t.Errorf("in INBOX with %v, tag %q", shown.flags, shown.tag)
			}
			if r := d.runs(d.me.Account)[0]; r.State != Queued {
				t.Errorf("run is %s, want queued", r.State)
			}
			if due, err := d.store.NextDue(t.Context(), d.me.Account, DueExpire); err != nil || !due.IsZero() {
				t.Errorf("it still expires at %v, %v", due, err)
			}
		})
	}
}

func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	dec := d.ask(decisionApproval)
	ask := func(account mailbox.AccountID, id, verb string) error {
		verb, text, _ := strings.Cut(verb, " ")
		_, err := d.a.Decide(t.Context(), account, id, verb, text, by("me"))
		return err
	}
	for _, tt := range []struct {
		name    string
		account mailbox.AccountID
		id      string
		verb    string
		want    mailbox.Kind
		text    string
	}{
		{"foreign", d.bob.Account, dec.ID, "approve", mailbox.NotFound, "no decision"},
		{"unknown id", d.me.Account, "zzz", "approve", mailbox.NotFound, "no decision"},
		{"verb of another kind", d.me.Account, dec.ID, "happened", mailbox.Invalid, "approve, reject, edit, answer, cancel"},
		{"expire is no verb", d.me.Account, dec.ID, "expire", mailbox.Invalid, "approve, reject, edit, answer, cancel"},
		{"approve, with words that take it back", d.me.Account, dec.ID, "answer approve: but only if it is empty", mailbox.Invalid, "may take it back"},
		{"the same to approve", d.me.Account, dec.ID, "approve only if it is empty", mailbox.Invalid, "may take it back"},
		{"approve, and no", d.me.Account, dec.ID, "approve no, wait", mailbox.Invalid, "decides nothing"},
		{"always, in doubt", d.me.Account, dec.ID, "always really?", mailbox.Invalid, "question mark"},
		{"no verb", d.me.Account, dec.ID, "", mailbox.Invalid, "approve, reject, edit, answer, cancel"},
	} {
		if err := ask(tt.account, tt.id, tt.verb); !isKind(err, tt.want) || !strings.Contains(textOfError(err), tt.text) {
			t.Errorf("%s: %v, want %v with %q", tt.name, err, tt.want, tt.text)
		}
	}
	d.state(dec, Open)
	if err := ask(d.me.Account, dec.Task, "approve"); err != nil { // by the task's id
		t.Fatal(err)
	}
	err := ask(d.me.Account, dec.ID, "reject")
	if !isKind(err, mailbox.Conflict) || !strings.Contains(textOfError(err), "already approved on") ||
		!strings.Contains(textOfError(err), "by me (on the command line)") {
		t.Errorf("second decision: %v", err)
	}
	d.state(dec, Approved)
	if n := len(d.decidedEvents(dec.Run)); n != 1 {
		t.Errorf("%d decisions in the journal, want 1", n)
	}
}

func TestDecideSeveralOpen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	second := dec
	second.ID = newToken()
	d.commit(d.askingOps(&second)...)
	_, err := d.a.Decide(t.Context(), d.me.Account, dec.Task, "approve", "", by("me"))
	if !isKind(err, mailbox.Invalid) || !strings.Contains(textOfError(err), dec.ID) || !strings.Contains(textOfError(err), second.ID) {
		t.Fatalf("got %v, want Invalid listing both", err)
	}
	d.state(dec, Open)
	d.state(second, Open)
}

func TestDecideOnceAmongMany(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		verb := []string{"approve", "reject"}[i%2]
		wg.Go(func() {
			switch _, err := d.a.Decide(t.Context(), d.me.Account, dec.ID, verb, "", by("me")); {
			case err == nil:
				won.Add(1)
			case isKind(err, mailbox.Conflict) && strings.HasPrefix(textOfError(err), "already "):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 49 {
		t.Errorf("%d won, %d lost", won.Load(), lost.Load())
	}
	if n := len(d.decidedEvents(dec.Run)); n != 1 {
		t.Errorf("%d decisions in the journal, want 1", n)
	}
}

// The worker appends to the journal between the read and the commit of a decision.
func TestDecideMeetsWorker(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	_, ops, err := d.a.decideOps(t.Context(), d.me.Account, dec.ID, verdict{verb: "approve", by: by("me")})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := d.store.Record(t.Context(), d.me.Account, runKey(dec.Run))
	if err != nil {
		t.Fatal(err)
	}
	run, _ := decodeRun(rec)
	run.State = Working
	d.commit(runPut(run, rec.Version)) // somebody else's move
	if err := d.a.commit(t.Context(), d.me.Account, ops...); !isKind(err, mailbox.Conflict) {
		t.Fatalf("a decision over a moved run: %v, want Conflict", err)
	}
	d.state(dec, Open)
	if _, err := d.a.Decide(t.Context(), d.me.Account, dec.ID, "approve", "", by("me")); err != nil {
		t.Fatal(err)
	}
}

func TestDecideLateAndExpiry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	d.clock.add(24*time.Hour + time.Second)
	_, err := d.a.Decide(t.Context(), d.me.Account, dec.ID, "approve", "", by("me"))
	if !isKind(err, mailbox.Conflict) || !strings.Contains(textOfError(err), "expired") {
		t.Fatalf("after the expiry: %v", err)
	}
	d.state(dec, Open) // until expiry itself is recorded
	d.tend()
	rec := d.state(dec, Expired)
	if rec.By == nil || rec.By.Via != viaExpiry {
		t.Errorf("recorded %+v", rec.By)
	}
	if ev := d.decidedEvents(dec.Run); len(ev) != 1 || ev[0].Verb != "expire" {
		t.Errorf("journal %+v", ev)
	}
	d.lies(dec, mailbox.Inbox)
	if s := d.list(d.me.Account, mailbox.Inbox)[0]; !slices.Contains(s.flags, imap.Flag("$Expired")) {
		t.Errorf("flags %v", s.flags)
	}
	d.tend()
	if n := len(d.decidedEvents(dec.Run)); n != 1 {
		t.Errorf("expired %d times", n)
	}
}

func TestDecideCancel(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	if _, err := d.a.Decide(t.Context(), d.me.Account, dec.ID, "cancel", "", by("me")); err != nil {
		t.Fatal(err)
	}
	if e := d.journal(dec.Run); e[len(e)-1].Cancel == nil {
		t.Errorf("last event %+v, want a cancel", e[len(e)-1])
	}
}
