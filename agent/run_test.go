package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

func TestPlainAnswer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	r := o.send("say Forty-two.", "Subject: The question", "Message-ID: <q@test>")
	mails := o.ended(1)
	if len(mails) != 1 {
		t.Fatalf("%d last mails: %v", len(mails), subjects(mails))
	}
	m := mails[0]
	if has(m.flags, imap.FlagSeen) || m.subject != "Re: The question" || !strings.Contains(m.raw, "Forty-two.") {
		t.Errorf("result: %v %q\n%s", m.flags, m.subject, m.raw)
	}
	for _, want := range []string{
		"In-Reply-To: <q@test>", "References: <q@test>", "Auto-Submitted: auto-replied", "X-Auto-Response-Suppress: All",
		"X-Pizza-Kind: result", "X-Pizza-Task: " + r.Task, "X-Pizza-Run: " + r.Task + ".1", "X-Pizza-Model: runbook:mail", "X-Pizza-Usage: steps=1",
		"pizza+t.", "<pizza@localhost>",
	} {
		if !strings.Contains(m.raw, want) {
			t.Errorf("the result lacks %q:\n%s", want, m.raw)
		}
	}
	if ref, ok, err := o.a.refOf(t.Context(), o.me.Account, m.mid); err != nil || !ok || ref.Task != r.Task || !ref.Ours || ref.Kind != KindResult {
		t.Errorf("ref of the result: %+v %v %v", ref, ok, err)
	}
	o.settledDown()
}

func TestTwoCommitsForAPlainAnswer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	r := o.send("say x")
	o.ended(1)
	if n := len(o.journal(r.Task + ".1")); n != 5 {
		t.Errorf("journal: %d events, want started, inbound, intent, reply, finished", n)
	}
}

func TestToolsRunTogetherAndResultsGoBack(t *testing.T) {
	t.Parallel()
	m := providertest.Script(
		providertest.Calls(providertest.Call("a", "read_file", `{"path":"/local/docs/a.txt"}`), providertest.Call("b", "list_folder", `{"path":"/local/docs"}`),
			providertest.Call("c", "nope", `{}`), providers.ToolCall{ID: "d", Name: "read_file", Args: []byte(`{}`), Bad: "cut off"},
			providertest.Call("e", "write_file", `{"path":"/out/made.txt","content":"made"}`)),
		providertest.Say("all read").If(func(req providers.Request) error {
			last := req.Messages[len(req.Messages)-1]
			for i, want := range []string{"alpha", "a.txt", "nope", "cut off", ""} {
				res := last.Parts[i].Result
				if !strings.Contains(res.Content, want) || res.Error != (i == 2 || i == 3) {
					return fmt.Errorf("result %d: %+v", i, res)
				}
			}
			return nil
		}))
	o := newOffice(t, m)
	o.file("a.txt", "alpha\n")
	o.send("please read")
	mails := o.ended(1)
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "all read") || !strings.Contains(mails[0].raw, "made.txt") {
		t.Fatalf("%v", mails)
	}
	o.settledDown()
}

func TestApprove(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	o.file("n.txt", "END")
	o.send("call edit_file {\"path\":\"/local/docs/n.txt\",\"old\":\"END\",\"new\":\"x END\"}\nsay done")
	d := o.waiting(1)[0]
	asks := o.ofKind(Action, KindApproval)
	if len(asks) != 1 || has(asks[0].flags, imap.FlagSeen) || asks[0].tag != decisionTag(d.ID) {
		t.Fatalf("Action: %+v", asks)
	}
	inbox := o.ofKind(mailbox.Inbox, KindApproval)
	if len(inbox) != 1 || inbox[0].id != asks[0].id {
		t.Fatalf("INBOX: %+v", inbox)
	}
	for _, want := range []string{"X-Pizza-Approval: " + d.ID, "Pizza decision", "pizza+a." + d.ID + "@localhost", "In-Reply-To: <m1@test>"} {
		if !strings.Contains(asks[0].raw, want) {
			t.Errorf("the approval lacks %q:\n%s", want, asks[0].raw)
		}
	}
	if got := o.read("n.txt"); got != "END" {
		t.Fatalf("done before the decision: %q", got)
	}
	if s := o.count(o.me.Account, Running, 1)[0]; !strings.Contains(strings.ToLower(s.raw), "wait") || !has(s.flags, imap.FlagSeen) {
		t.Errorf("status: %v %s", s.flags, s.raw)
	}
	o.decide(d.ID, "approve", "")
	mails := o.ended(1)
	if got := o.read("n.txt"); got != "x END" || len(mails) != 1 {
		t.Errorf("%q, %d mails", got, len(mails))
	}
	o.settledDown()
	if _, err := o.a.Decide(t.Context(), o.me.Account, d.ID, "approve", "", DecidedBy{Login: "me"}); !isKind(err, mailbox.Conflict) {
		t.Errorf("a second approval: %v", err)
	}
}

func TestSiblingsOfAnApprovalGoOn(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{"approve": "x END", "reject": "END", "expire": "END"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			m := providertest.Script(
				providertest.Calls(providertest.Call("a", "edit_file", `{"path":"/local/docs/n.txt","old":"END","new":"x END"}`),
					providertest.Call("b", "read_file", `{"path":"/local/docs/n.txt"}`), providertest.Call("c", "delete_file", `{"path":"/local/docs/gone.txt"}`)),
				providertest.Say("fine").If(func(req providers.Request) error {
					res := req.Messages[len(req.Messages)-1].Parts
					if res[0].Result.Error != (verb != "approve") || res[1].Result.Error || !res[2].Result.Error ||
						verb == "reject" && !strings.Contains(res[0].Result.Content, "not today") {
						return fmt.Errorf("results: %+v %+v %+v", res[0].Result, res[1].Result, res[2].Result)
					}
					return nil
				}))
			o := newOffice(t, m)
			o.file("n.txt", "END")
			o.file("gone.txt", "keep")
			o.send("edit it")
			for _, d := range o.waiting(2) { // the sibling that needs none has run
				switch {
				case verb == "expire":
					o.clock.add(8 * 24 * time.Hour)
					_, err := o.a.settle(t.Context(), o.me.Account, d.ID, verdict{verb: "expire", by: DecidedBy{Login: "me", Via: viaExpiry, At: o.clock.Now()}})
					if err != nil && !isKind(err, mailbox.Conflict) { // the sweep of expired ones may be first
						t.Fatal(err)
					}
				case d.Tool == "delete_file":
					o.decide(d.ID, "reject", "")
				case verb == "reject":
					o.decide(d.ID, verb, "not today")
				default:
					o.decide(d.ID, verb, "")
				}
			}
			o.until("the answer", func() bool { return o.runs(o.me.Account)[0].State.Ended() })
			if err := m.Err(); err != nil {
				t.Error(err)
			}
			if o.read("n.txt") != want || o.read("gone.txt") != "keep" {
				t.Errorf("%q %q", o.read("n.txt"), o.read("gone.txt"))
			}
			o.settledDown()
		})
	}
}

func TestApprovedCallIsCheckedAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	o.file("n.txt", "END")
	o.send("call edit_file {\"path\":\"/local/docs/n.txt\",\"old\":\"END\",\"new\":\"x END\"}")
	d := o.waiting(1)[0]
	o.halt()
	o.grants[0].Write = false // taken away while it waited
	o.reopen(t)
	o.decide(d.ID, "approve", "")
	mails := o.ended(1)
	if o.read("n.txt") != "END" {
		t.Error("ran against policy")
	}
	if len(mails) != 1 {
		t.Errorf("%v", subjects(mails))
	}
	o.settledDown()
}

func TestSecondMailWaitsItsTurn(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	m := providertest.Script(
		providertest.Say("first answer").After(gate),
		providertest.Say("second answer").If(func(req providers.Request) error {
			if len(req.Messages) != 3 || textOf(req.Messages[1]) != "first answer" || req.Messages[2].Role != providers.User {
				return fmt.Errorf("%d messages: %+v", len(req.Messages), req.Messages)
			}
			return nil
		})).WithInfo(providers.Info{Provider: "script", Model: "test"})
	o := newOffice(t, m)
	o.send("one", "Message-ID: <one@test>", "Subject: S")
	o.until("the first call", func() bool { return len(m.Requests()) == 1 })
	o.send("two", "Message-ID: <two@test>", "In-Reply-To: <one@test>", "References: <one@test>", "Subject: Re: S")
	close(gate)
	mails := o.ended(2)
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	if len(mails) != 2 || !strings.Contains(mails[0].raw, "In-Reply-To: <one@test>") || !strings.Contains(mails[1].raw, "In-Reply-To: <two@test>") {
		t.Fatalf("%v", subjects(mails))
	}
	if !strings.Contains(mails[1].raw, "<one@test>") || !strings.Contains(mails[1].raw, "<"+mails[0].mid+">") {
		t.Errorf("References of the second answer:\n%s", mails[1].raw)
	}
	o.settledDown()
}

func TestModelErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		class providers.Class
		want  string
	}{
		{providers.ContextLength, ""}, {providers.Filtered, ""}, {providers.Failed, "the words"}, {providers.Invalid, ""},
	} {
		t.Run(string(tt.class), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, providertest.Script(providertest.Fail(tt.class, "the words")))
			o.send("hello")
			mails := o.ended(1)
			if len(mails) != 1 || !strings.Contains(mails[0].raw, "X-Pizza-Kind: failure") || !strings.Contains(strings.ToLower(mails[0].raw), tt.want) {
				t.Errorf("%v\n%s", subjects(mails), mails[0].raw)
			}
			if r := o.runs(o.me.Account)[0]; r.State != Failed || r.Error == "" {
				t.Errorf("%+v", r)
			}
			o.settledDown()
		})
	}
}

func TestRunbookFail(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	o.send("fail the disk is on fire")
	if mails := o.ended(1); len(mails) != 1 || !strings.Contains(mails[0].raw, "the disk is on fire") {
		t.Errorf("%v", mails)
	}
}

func TestModelThatIsNotSetUp(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	o.send("hello", "X-Pizza-Model: nobody:home")
	mails := o.ended(1)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "X-Pizza-Kind: failure") || !strings.Contains(mails[0].raw, "no such model: nobody:home") {
		t.Errorf("%v", mails)
	}
	if strings.Contains(mails[0].raw, "key") {
		t.Errorf("a model that does not exist did not refuse a key:\n%s", mails[0].raw)
	}
	o.settledDown()
}

func TestRetryIsATimerAndHoldsNoWorker(t *testing.T) {
	t.Parallel()
	again := &providers.Error{Class: providers.RateLimit, Message: "slow down", RetryAfter: 10 * time.Minute}
	m := providertest.Script(providertest.Turn{Err: again}, providertest.Say("at last"))
	o := newOffice(t, m, func(opt *Options) { opt.Workers = 1 })
	o.send("hello")
	o.until("the pause", func() bool { r := o.runs(o.me.Account)[0]; return r.State == Waiting && r.For == "timer" })
	next, err := o.store.NextDue(t.Context(), o.me.Account, DueRun)
	if wait := next.Sub(o.clock.Now()); err != nil || wait < 10*time.Minute {
		t.Errorf("next call in %v (%v)", wait, err)
	}
	o.send("X", "X-Pizza-Model: runbook:mail") // the only worker is free
	o.until("another task", func() bool { return o.runs(o.me.Account)[1].State.Ended() || o.runs(o.me.Account)[0].State.Ended() })
	o.clock.add(11 * time.Minute)
	o.send("Y", "X-Pizza-Model: runbook:mail") // wakes the dispatcher
	if mails := o.ended(3); len(mails) != 3 {
		t.Errorf("%v", subjects(mails))
	}
	if err := m.Err(); err != nil || m.Left() != 0 {
		t.Errorf("%v, %d turns left", err, m.Left())
	}
	o.settledDown()
}

func TestCancelStopsTheModelCall(t *testing.T) {
	t.Parallel()
	m := providertest.Script(providertest.Say("never").After(make(chan struct{})))
	o := newOffice(t, m)
	r := o.send("hello")
	o.until("the call", func() bool { return len(m.Requests()) == 1 })
	if err := o.a.Cancel(t.Context(), o.me.Account, r.Task, DecidedBy{Login: "me", Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	mails := o.ended(1)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "cancelled by me") || o.runs(o.me.Account)[0].State != Cancelled {
		t.Errorf("%v %+v", mails, o.runs(o.me.Account))
	}
	o.settledDown()
}

func TestDeletingTheStatusMessageCancels(t *testing.T) {
	t.Parallel()
	m := providertest.Script(providertest.Say("never").After(make(chan struct{})))
	o := newOffice(t, m)
	o.send("hello")
	o.until("the call", func() bool { return len(m.Requests()) == 1 })
	s := o.count(o.me.Account, Running, 1)[0]
	_, err := o.store.Commit(t.Context(), o.me.Account, mailbox.Tx{
		Actor: &mailbox.Actor{Login: "me", Credential: "default", Scope: mailbox.ScopeFull, Session: "1", Via: "imap", At: o.clock.Now()},
		Ops:   []mailbox.Op{mailbox.MoveEntries{From: Running, To: Trash, UIDs: imap.UIDSetNum(s.uid)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mails := o.ended(1)
	if len(mails) != 1 || o.runs(o.me.Account)[0].State != Cancelled {
		t.Errorf("%v", mails)
	}
	o.settledDown()
}

func TestStatusShowsALongCallAsRunning(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	m := providertest.Script(providertest.Say("done").After(gate))
	o := newOffice(t, m, func(opt *Options) { opt.slow = time.Millisecond })
	o.send("hello")
	o.until("the status to change", func() bool {
		runs := o.runs(o.me.Account)
		return len(runs) == 1 && runs[0].Shown != Queued
	})
	o.count(o.me.Account, Running, 1)
	if r := o.runs(o.me.Account)[0]; r.Shown != Working || r.State != Working || r.Seq != uint64(len(o.journal(r.ID))) {
		t.Errorf("%+v", r)
	}
	close(gate)
	o.ended(1)
	o.settledDown()
}

// Show tells of a run that is at work before its first commit, and which one waits for a
// worker.
func TestShowKnowsWhatIsAtWork(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	m := providertest.Script(providertest.Say("done").After(gate), providertest.Say("done too"))
	o := newOffice(t, m, func(opt *Options) { opt.Workers = 1 })
	first := o.send("hello")
	o.until("the call", func() bool { return len(m.Requests()) == 1 })
	second := o.send("wait")
	for task, want := range map[string]RunState{first.Task: Working, second.Task: Queued} {
		got, err := o.a.Show(t.Context(), o.me.Account, task)
		if err != nil || got.State != want || got.Runs[0].State != want {
			t.Errorf("%s: %s, %+v, %v; want %s", task, got.State, got.Runs, err, want)
		}
	}
	close(gate)
	o.ended(2)
	o.settledDown()
}

func TestShowKnowsWhatIsHeld(t *testing.T) {
	t.Parallel()
	o := newOffice(t, panicking{}, func(opt *Options) { opt.backoff = time.Hour })
	task := o.send("hello").Task
	o.until("the step to fail", func() bool { return o.held(task + ".1") })
	if got, err := o.a.Show(t.Context(), o.me.Account, task); err != nil || got.State != Queued {
		t.Errorf("%s, %v", got.State, err)
	}
}

func (o *office) held(run string) bool {
	o.a.mu.Lock()
	defer o.a.mu.Unlock()
	s := o.a.sessions[run]
	return s != nil && s.held
}

func TestShutdownLeavesTheRunDue(t *testing.T) {
	t.Parallel()
	m := providertest.Script(providertest.Say("never").After(make(chan struct{})), providertest.Say("after the restart"))
	o := newOffice(t, m)
	o.send("hello")
	o.until("the call", func() bool { return len(m.Requests()) == 1 })
	o.reopen(t)
	mails := o.ended(1)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "after the restart") {
		t.Errorf("%v", mails)
	}
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	o.settledDown()
}

func TestPoisonIsParkedAndStopsNobody(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	o.halt()
	r := o.send("say never")
	run := runID(r.Task, 1)
	rec, err := o.store.Record(t.Context(), o.me.Account, runKey(run))
	if err != nil {
		t.Fatal(err)
	}
	head, err := decodeRun(rec)
	if err != nil {
		t.Fatal(err)
	}
	head.Seq++
	_, err = o.store.Commit(t.Context(), o.me.Account, mailbox.Tx{Ops: []mailbox.Op{
		mailbox.Append{Stream: runKey(run), Expect: head.Seq - 1, Events: [][]byte{{99, 'x'}}}, runPut(head, rec.Version),
	}})
	if err != nil {
		t.Fatal(err)
	}
	o.send("say healthy")
	o.reopen(t)
	mails := o.ended(2)
	all := mails[0].raw + mails[1].raw
	if len(mails) != 2 || !strings.Contains(all, "X-Pizza-Kind: failure") || !strings.Contains(all, "healthy") {
		t.Errorf("%v", subjects(mails))
	}
	o.count(o.me.Account, Running, 0)
}

func TestPanicInAModelIsParkedAfterThree(t *testing.T) {
	t.Parallel()
	o := newOffice(t, panicking{}, func(opt *Options) { opt.backoff = time.Millisecond })
	o.send("hello")
	o.send("say ok", "X-Pizza-Model: runbook:mail")
	mails := o.ended(2)
	if len(mails) != 2 {
		t.Errorf("%v", subjects(mails))
	}
	o.settledDown()
}

func TestManyRunsAndWaitingHoldsNoGoroutine(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, func(opt *Options) { opt.Workers = 8 })
	const n = 120
	for i := range n {
		if i%2 == 0 {
			o.send(fmt.Sprintf("call list_folder {\"path\":\"/local\"}\nsay %d", i))
		} else {
			o.send(fmt.Sprintf("call write_file {\"path\":\"/local/docs/n%d.txt\",\"content\":\"x\"}\nsay x", i))
		}
	}
	list := o.waiting(n / 2)
	o.until("the others", func() bool {
		live, err := o.store.Lookup(t.Context(), o.me.Account, indexLiveRuns)
		return err == nil && len(live) == n/2
	})
	o.until("idle workers", func() bool {
		o.a.mu.Lock()
		defer o.a.mu.Unlock()
		return len(o.a.sessions) == 0 && len(o.a.slots) == 0
	})
	for i, d := range list {
		o.decide(d.ID, []string{"approve", "reject"}[i%2], "")
	}
	mails := o.ended(n)
	files, err := os.ReadDir(o.docs)
	if err != nil || len(mails) != n || len(files) != n/4 {
		t.Errorf("%d mails, %d effects, %v", len(mails), len(files), err)
	}
	o.settledDown()
}

// panicking is a model with a fault of ours.
type panicking struct{}

func (panicking) Complete(context.Context, providers.Request) (providers.Reply, error) { panic("boom") }
func (panicking) Info() providers.Info                                                 { return providers.Info{Provider: "script", Model: "test"} }
