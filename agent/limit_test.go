package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// loop is a model that never comes to an end: each answer asks for calls of list_folder.
type loop struct {
	calls int             // in an answer
	use   providers.Usage // of an answer
	free  bool
	busy  func()

	mu       sync.Mutex
	answered int
	most     []int // MaxTokens of the requests
}

func (m *loop) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "test", Joins: true, Free: m.free}
}

func (m *loop) Complete(_ context.Context, req providers.Request) (providers.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered++
	m.most = append(m.most, req.MaxTokens)
	if m.busy != nil {
		m.busy()
	}
	var list []providers.ToolCall
	for range m.calls {
		list = append(list, providertest.Call("", "list_folder", `{"path":"/local"}`))
	}
	turn := providertest.Calls(list...)
	turn.Reply.Usage, turn.Reply.Message.Role = m.use, providers.Assistant
	turn.Reply.Message.Parts = append([]providers.Part{{Kind: providers.Text, Text: "I look once more."}}, turn.Reply.Message.Parts...)
	return turn.Reply, nil
}

func (m *loop) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered
}

// answerBy answers a question by mail.
func (o *office) answerBy(d Decision, text string) mailbox.Receipt {
	o.t.Helper()
	return o.mustGive(o.me, o.message(o.me, text, "In-Reply-To: <"+d.MailID+">"), "pizza+a."+d.ID+"@localhost")
}

// askedAgain waits for a question that is not d.
func (o *office) askedAgain(d Decision) Decision {
	o.t.Helper()
	o.until("the next question", func() bool {
		recs, err := o.store.Lookup(o.t.Context(), o.me.Account, indexOpenDecisions)
		return err == nil && len(recs) == 1 && recs[0].Key != decisionKey(d.ID)
	})
	return o.waiting(1)[0]
}

func TestALoopAsksAtItsLimitAndGoesOnAsFarAsItIsLet(t *testing.T) {
	t.Parallel()
	m := &loop{calls: 1}
	o := newOffice(t, m, func(opt *Options) { opt.Limits.ModelCalls = 3 })
	o.send("loop")
	d := o.waiting(1)[0]
	if d.Kind != decisionLimit || m.count() != 3 || !strings.Contains(d.Sentence, "3 model calls") {
		t.Fatalf("asked after %d calls: %+v", m.count(), d)
	}
	for _, want := range []string{"Still missing", "The answer", "with 3 further model calls", "continue 5", "ends with what it has", "I look once more."} {
		if !strings.Contains(strings.Join(strings.Fields(d.Text), " "), want) {
			t.Errorf("the question lacks %q:\n%s", want, d.Text)
		}
	}
	if strings.ContainsAny(d.Text, "`*") {
		t.Errorf("Markdown in the plain text:\n%s", d.Text)
	}
	o.count(o.me.Account, Action, 1)
	if r := o.runs(o.me.Account)[0]; r.State != Waiting || r.For != "limit" {
		t.Errorf("%+v", r)
	}
	o.answerBy(d, "continue")
	d = o.askedAgain(d)
	if m.count() != 6 {
		t.Errorf("%d calls after continue", m.count())
	}
	o.answerBy(d, "continue 2")
	d = o.askedAgain(d)
	if m.count() != 8 {
		t.Errorf("%d calls after continue 2", m.count())
	}
	o.decide(d.ID, "continue 1", "")
	d = o.askedAgain(d)
	if m.count() != 9 {
		t.Errorf("%d calls after continue 1 on the command line", m.count())
	}
	o.answerBy(d, "stop")
	mails := o.ended(1)
	if r := o.runs(o.me.Account)[0]; r.State != Cancelled || m.count() != 9 {
		t.Errorf("%s after %d calls", r.State, m.count())
	}
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "9 model calls") || !strings.Contains(mails[0].raw, "stopped there by me") || !strings.Contains(mails[0].raw, "I look once more.") {
		t.Errorf("the last mail: %v", mails)
	}
	o.settledDown()
}

func TestToolLimitInTheMiddleOfABatchRunsItAfterContinue(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{"continue": 15, "continue 1": 9} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			m := &loop{calls: 3}
			o := newOffice(t, m, func(opt *Options) { opt.Limits.ToolCalls = 8 })
			o.send("loop")
			d := o.waiting(1)[0]
			if !strings.Contains(d.Sentence, "made 6 tool calls and asks for 3 more; its limit is 8") || strings.Count(d.Text, "- List") != 3 {
				t.Errorf("%s\n%s", d.Sentence, d.Text)
			}
			if n := ranTools(o); n != 6 {
				t.Errorf("%d tools ran before the answer", n)
			}
			o.answerBy(d, answer)
			d = o.askedAgain(d)
			if n := ranTools(o); n != want {
				t.Errorf("%d tools ran after %s, want %d", n, answer, want)
			}
			o.decide(d.ID, "stop", "")
			o.ended(1)
			o.settledDown()
		})
	}
}

// ranTools counts the calls of the only run that were begun.
func ranTools(o *office) int {
	n := 0
	for _, e := range o.journal(o.runs(o.me.Account)[0].ID) {
		if e.ToolStart != nil {
			n++
		}
	}
	return n
}

func TestTokensAndMoneyAreReservedBeforeACall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		limits Limits
		use    providers.Usage
		spent  func(providers.Usage) bool
		says   string
	}{
		{"tokens", Limits{Tokens: 30_000}, providers.Usage{Input: 4000, Output: 300}, func(u providers.Usage) bool { return u.Input+u.Output <= 30_000 }, "30,000 tokens"},
		{"cost", Limits{Cost: 1}, providers.Usage{Input: 8000, Output: 500, Cost: 0.17}, func(u providers.Usage) bool { return u.Cost <= 1 }, "of $1.00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := &loop{calls: 1, use: tt.use}
			o := newOffice(t, m, func(opt *Options) { opt.Limits = tt.limits })
			o.send("loop")
			d := o.waiting(1)[0]
			s, err := Fold(o.journal(o.runs(o.me.Account)[0].ID))
			if err != nil || !tt.spent(s.Usage) || m.count() < 2 || s.Reserved.Tokens()+s.Booked.Tokens() != 0 {
				t.Errorf("%v; after %d calls: %+v %+v", err, m.count(), s.Usage, s.Booked)
			}
			if !strings.Contains(d.Sentence, tt.says) {
				t.Errorf("%s", d.Sentence)
			}
			before := m.count()
			o.decide(d.ID, "continue", "")
			d = o.askedAgain(d)
			if m.count() == before {
				t.Error("continue let nothing happen")
			}
			o.answerBy(d, "continue 1")
			d = o.askedAgain(d)
			o.answerBy(d, "stop")
			o.ended(1)
			o.settledDown()
		})
	}
}

func TestAnAnswerHasNoMoreRoomThanTheBudget(t *testing.T) {
	t.Parallel()
	m := &loop{calls: 1, use: providers.Usage{Input: 3000, Output: 100}}
	o := newOffice(t, m, func(opt *Options) { opt.Limits.Tokens = 20_000 })
	o.send("loop")
	o.waiting(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, most := range m.most {
		if left := 20_000 - i*3100; most <= 0 || most > left {
			t.Errorf("call %d may answer with %d tokens of %d", i+1, most, left)
		}
	}
}

func TestTimeCountsWorkAndNotWaiting(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	later := func(d time.Duration, e Event) Event { at = at.Add(d); e.At = at; return e }
	took := func(d time.Duration, e Event) Event { e.Reply.Reply.Took = d; return e }
	events := []Event{
		later(0, evStarted(Limits{Time: 10 * time.Minute})), later(0, evMail(1)), later(0, evIntent(1)),
		later(9*time.Hour, took(time.Minute, evReply(1, calls("a", "b")))), // a night without a server, and a minute of work
		later(0, evPolicy("a", tools.Ask)), later(0, evPolicy("b", tools.Allow)), later(0, evAsked("a", "d1", decisionApproval)),
		later(0, evStart("b", 1, tools.ReadOnly)),
		later(2*time.Minute, Event{ToolEnd: &EvToolEnd{Call: "b", Status: endOK, Took: 2 * time.Minute}}),
		later(48*time.Hour, evDecided("a", "d1", "approve")), later(0, evStart("a", 1, tools.ReadOnly)),
		later(time.Minute, Event{ToolEnd: &EvToolEnd{Call: "a", Status: endOK, Took: 10 * time.Hour}}), // the clock was set back meanwhile
		later(0, evIntent(2)),
		later(time.Minute, Event{ModelFail: &EvModelFail{N: 2, Class: providers.Overloaded, Took: time.Minute, Retry: at.Add(4 * time.Minute)}}),
		later(5*time.Minute, evIntent(3)),
		later(time.Minute, took(time.Minute, evReply(3, calls("c")))), later(0, evPolicy("c", tools.Deny)), later(0, evEnd("c", endDenied)),
	}
	s := fold(t, events)
	if want := 9 * time.Minute; s.Worked != want {
		t.Errorf("worked %v, want %v", s.Worked, want)
	}
	if got := Next(s); got.Do != DoCall {
		t.Errorf("%+v", got)
	}
	events = append(events, later(0, evIntent(4)), later(2*time.Minute, took(2*time.Minute, evReply(4, calls("e")))), later(0, evPolicy("e", tools.Deny)), later(0, evEnd("e", endDenied)))
	if got := Next(fold(t, events)); got.Do != DoAsk || got.Limit != LimitTime {
		t.Errorf("%+v", got)
	}
	events = append(events, later(0, evAskedLimit("q", LimitTime)), later(time.Hour, Event{Decided: &EvDecided{Decision: "q", Verb: "continue", N: 1}}))
	if s := fold(t, events); Next(s).Do != DoCall || s.allowed(LimitTime) != int64(12*time.Minute) {
		t.Errorf("after continue 1: %+v, %v allowed", Next(s), time.Duration(s.allowed(LimitTime)))
	}
}

func TestTimeLimitAsks(t *testing.T) {
	t.Parallel()
	m := &loop{calls: 1}
	o := newOffice(t, m, func(opt *Options) { opt.Limits.Time = time.Nanosecond })
	m.busy = func() { o.clock.add(time.Second) }
	o.send("loop")
	d := o.waiting(1)[0]
	if m.count() != 1 || !strings.Contains(d.Sentence, "worked for") {
		t.Errorf("%d calls: %s", m.count(), d.Sentence)
	}
	o.answerBy(d, "continue 5")
	o.until("more work", func() bool { return m.count() > 3 })
}

func evAskedLimit(decision string, l Limit) Event {
	return Event{Asked: &EvAsked{Decision: decision, Kind: decisionLimit, Limit: l}}
}

func TestTwoLimitsAtOnceAreTwoQuestionsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	m := &loop{calls: 1, use: providers.Usage{Input: 4900, Output: 100}}
	o := newOffice(t, m, func(opt *Options) { opt.Limits = Limits{ModelCalls: 2, Tokens: 11_000} })
	o.send("loop")
	d := o.waiting(1)[0]
	if !strings.Contains(d.Sentence, "2 model calls") {
		t.Fatal(d.Sentence)
	}
	o.answerBy(d, "continue")
	d = o.askedAgain(d)
	if !strings.Contains(d.Sentence, "11,000 tokens") || m.count() != 2 {
		t.Fatalf("%d calls: %s", m.count(), d.Sentence)
	}
	o.answerBy(d, "continue")
	d = o.askedAgain(d)
	if m.count() <= 2 {
		t.Errorf("%d calls after both", m.count())
	}
	o.answerBy(d, "cancel task")
	o.ended(1)
	o.settledDown()
}

func TestALimitIsAnsweredAfterRestarts(t *testing.T) {
	t.Parallel()
	m := &loop{calls: 1}
	o := newOffice(t, m, func(opt *Options) { opt.Limits.ModelCalls = 2 })
	o.send("loop")
	d := o.waiting(1)[0]
	o.reopen(t)
	o.reopen(t)
	if m.count() != 2 {
		t.Errorf("%d calls while it waited", m.count())
	}
	o.answerBy(d, "continue 1")
	o.reopen(t)
	d = o.askedAgain(d)
	if m.count() != 3 {
		t.Errorf("%d calls after continue 1", m.count())
	}
	o.decide(d.ID, "stop", "")
	o.ended(1)
	o.settledDown()
}

func TestALimitThatNobodyAnswersEndsTheRun(t *testing.T) {
	t.Parallel()
	write := providertest.Turn{Reply: providertest.Calls(providertest.Call("a", "write_file", `{"path":"/out/half.txt","content":"half"}`)).Reply}
	o := newOffice(t, providertest.Script(write), func(opt *Options) { opt.Limits.ModelCalls = 1 })
	o.send("make it")
	d := o.waiting(1)[0]
	if !strings.Contains(d.Text, "half.txt") {
		t.Errorf("the question does not say what was done:\n%s", d.Text)
	}
	o.clock.add(8 * 24 * time.Hour)
	o.a.tendOnce(t.Context(), o.me.Account)
	mails := o.ended(1)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "Nobody said whether") || !strings.Contains(mails[0].raw, "half.txt") ||
		!strings.Contains(mails[0].raw, "X-Pizza-Kind: failure") {
		t.Errorf("%v", mails)
	}
	if r := o.runs(o.me.Account)[0]; r.State != Failed || r.Error != "limit reached" {
		t.Errorf("%+v", r)
	}
	o.settledDown()
}

// TestALostReplyStaysBooked is class 25: whatever a crash takes between the reservation and
// the settlement counts as spent, and a run that loses call after call stops at its limit.
func TestALostReplyStaysBooked(t *testing.T) {
	t.Parallel()
	intent := func(n int) Event {
		return Event{Intent: &EvIntent{N: n, Reserve: &Reserve{Input: 2000, Output: 1000, Cost: 50_000}}}
	}
	events := []Event{evStarted(Limits{Tokens: 8000, Cost: 5}), evMail(1), intent(1)}
	s := fold(t, events)
	if s.used(LimitTokens) != 3000 || s.used(LimitCost) != 50_000 {
		t.Errorf("reserved: %d tokens, %d", s.used(LimitTokens), s.used(LimitCost))
	}
	events = append(events, intent(2)) // the first reply was lost
	reply := evReply(2, calls("a"))
	reply.Reply.Reply.Usage = providers.Usage{Input: 1500, Output: 100, Cost: 0.02}
	events = append(events, reply, evPolicy("a", tools.Deny), evEnd("a", endDenied))
	s = fold(t, events)
	if s.used(LimitTokens) != 4600 || s.used(LimitCost) != 70_000 {
		t.Errorf("after a lost and a settled call: %d tokens, %d", s.used(LimitTokens), s.used(LimitCost))
	}
	events = append(events, intent(3))
	s = fold(t, events)
	s.Age(7)
	if got := Next(s); got.Do != DoAsk || got.Limit != LimitTokens {
		t.Errorf("with %d of 8000 booked: %+v", s.used(LimitTokens), got)
	}
	events = append(events, evAskedLimit("q", LimitTokens)) // and it folds in a later process, which knows no age
	s = fold(t, append(events, Event{Decided: &EvDecided{Decision: "q", Verb: "continue"}}))
	if got := Next(s); got.Do != DoCall || got.N != 4 || s.used(LimitTokens) != 7600 {
		t.Errorf("after continue: %+v with %d used", got, s.used(LimitTokens))
	}
	for class, booked := range map[providers.Class]int64{providers.Timeout: 3000, providers.RateLimit: 0, providers.Network: 0} {
		s := fold(t, []Event{evStarted(Limits{Tokens: 8000}), evMail(1), intent(1), evFail(1, class, time.Unix(9, 0))})
		if s.used(LimitTokens) != booked {
			t.Errorf("after %s: %d tokens booked", class, s.used(LimitTokens))
		}
	}
}

// TestAKillBetweenReserveAndSettle is class 25 with a real store: the process stops with
// the reply on its way, again and again.
func TestAKillBetweenReserveAndSettle(t *testing.T) {
	t.Parallel()
	m := &loop{calls: 1, use: providers.Usage{Input: 1000, Output: 100}}
	o := newOffice(t, m, func(opt *Options) { opt.Limits.Tokens = 30_000 })
	o.halt()
	o.closing()
	lost := 0
	for {
		cs := &crashStore{crashPoint: crashPoint{when: hasReply}, down: make(chan struct{})}
		o.open(t, func(s mailbox.Store) mailbox.Store { cs.Store = s; return cs })
		if lost == 0 {
			o.send("loop")
		}
		asked := false
		o.until("a lost reply or the question", func() bool {
			select {
			case <-cs.down:
				return true
			default:
			}
			recs, err := o.store.Lookup(t.Context(), o.me.Account, indexOpenDecisions)
			asked = err == nil && len(recs) == 1
			return asked
		})
		o.halt()
		if asked {
			break
		}
		o.closing()
		if lost++; lost > 9 {
			t.Fatal("it goes on and on")
		}
	}
	if lost < 2 || m.count() != lost {
		t.Errorf("%d replies lost of %d calls", lost, m.count())
	}
	s, err := Fold(o.journal(o.runs(o.me.Account)[0].ID))
	if err != nil || s.Booked.Tokens() == 0 || s.used(LimitTokens) > 30_000 {
		t.Errorf("%v: %+v", err, s.Booked)
	}
	d := o.waitingAlone()
	if !slices.Contains(d.Verbs(), "continue") {
		t.Errorf("%v", d.Verbs())
	}
}

// waitingAlone is the only open decision.
func (o *office) waitingAlone() Decision {
	o.t.Helper()
	recs, err := o.store.Lookup(o.t.Context(), o.me.Account, indexOpenDecisions)
	if err != nil || len(recs) != 1 {
		o.t.Fatalf("%d open decisions, %v", len(recs), err)
	}
	d, err := decodeDecision(recs[0])
	if err != nil {
		o.t.Fatal(err)
	}
	return d
}

// hasReply picks a commit that settles a model call.
func hasReply(tx mailbox.Tx) bool {
	for _, op := range tx.Ops {
		add, ok := op.(mailbox.Append)
		if !ok {
			continue
		}
		for _, b := range add.Events {
			if e, err := decodeEvent(b); err == nil && e.Reply != nil {
				return true
			}
		}
	}
	return false
}

func TestBudgetGrammar(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]Limits{
		"calls=50, tools=100, tokens=200k, usd=2.50, time=1h30m": {ModelCalls: 50, ToolCalls: 100, Tokens: 200_000, Cost: 2.5, Time: 90 * time.Minute},
		"CALLS = 5;Tokens=1m":     {ModelCalls: 5, Tokens: 1_000_000},
		"usd=$3":                  {Cost: 3},
		" time=90s,":              {Time: 90 * time.Second},
		"tools=1 , tokens=999999": {ToolCalls: 1, Tokens: 999_999},
	} {
		if got, err := ParseBudget(value); err != nil || *got != want {
			t.Errorf("%q: %+v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", ",", "5", "calls", "calls=", "calls=0", "calls=-1", "calls=1.5", "calls=5 tools=6", "call=5", "usd=", "usd=0", "usd=1,50",
		"usd=1e9", "usd=NaN", "time=5", "time=-1h", "time=1.5h", "time=0s", "tokens=2g", "calls=1,calls=2", "calls=9999999", "tokens=99999999999999", "time=h"} {
		if got, err := ParseBudget(value); err == nil {
			t.Errorf("%q: %+v", value, got)
		}
	}
}

func TestBudgetOfAMail(t *testing.T) {
	t.Parallel()
	m := &loop{calls: 1}
	o := newOffice(t, m, func(opt *Options) {
		opt.Account = func(string) AccountSettings { return AccountSettings{Cap: Cap{Tokens: 700_000}} }
	})
	o.send("loop", "X-Pizza-Budget: calls=2, tokens=5m")
	d := o.waiting(1)[0]
	if m.count() != 2 {
		t.Errorf("%d calls", m.count())
	}
	started := o.journal(o.runs(o.me.Account)[0].ID)[0].Started
	if want := (Limits{ModelCalls: 2, ToolCalls: 40, Tokens: 700_000}); started.Limits != want {
		t.Errorf("limits %+v, want %+v", started.Limits, want)
	}
	o.mustGive(o.me, o.message(o.me, "take more", "X-Pizza-Budget: calls=4", "In-Reply-To: <m1@test>"), "pizza@localhost")
	o.decide(d.ID, "continue 1", "")
	d = o.askedAgain(d) // 3 of the question; at its call the mail joined, whose 4 and the 1 hold
	if m.count() != 5 {
		t.Errorf("%d calls, want 5", m.count())
	}
	o.decide(d.ID, "stop", "")
	o.ended(1)
}

func TestMalformedBudgetIsRefusedBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := d.give(d.me, d.message(d.me, "do it", "X-Pizza-Budget: dollars=3"), "pizza@localhost")
	if !isKind(err, mailbox.Invalid) || !strings.Contains(textOfError(err), `"dollars" is not calls`) {
		t.Errorf("%v", err)
	}
	d.count(d.me.Account, Sent, 0)
	if runs := d.runs(d.me.Account); len(runs) != 0 {
		t.Errorf("%+v", runs)
	}
	d.withBob()
	d.mustGive(d.me, d.message(d.me, "for you", "X-Pizza-Budget: nonsense"), "bob@localhost") // none of our business

	d.mustGive(sendOnly(d.me), d.message(d.me, "from cron", "X-Pizza-Budget: calls=500, tools=3"), "pizza@localhost")
	run := d.runs(d.me.Account)[0]
	if got := d.journal(run.ID)[0].Started.Limits; got.ModelCalls != 20 || got.ToolCalls != 3 {
		t.Errorf("a credential that may only send raised the limits: %+v", got)
	}
	d.mustGive(d.me, d.message(d.me, "nothing goes", "X-Pizza-Budget: tokens=1"), "pizza@localhost")
	for _, run := range d.runs(d.me.Account) {
		if j := d.journal(run.ID); j[0].Started.Limits.Tokens == 1 && j[len(j)-1].Intent != nil {
			t.Error("a call was begun that the budget does not reach for")
		}
	}
}

func TestGrantsAddUp(t *testing.T) {
	t.Parallel()
	s := State{Started: &EvStarted{Limits: Limits{ToolCalls: 10, Tokens: 1000}}}
	yes := func(n int) *EvDecided { return &EvDecided{Verb: "continue", N: n} }
	for _, tt := range []struct {
		asks []LimitAsk
		want int64
	}{
		{nil, 10},
		{[]LimitAsk{{Limit: LimitToolCalls}}, 10},
		{[]LimitAsk{{Limit: LimitToolCalls, Decided: yes(0), Used: 9, Need: 12}}, 20},
		{[]LimitAsk{{Limit: LimitToolCalls, Decided: yes(1), Used: 9, Need: 15}}, 15},
		{[]LimitAsk{{Limit: LimitToolCalls, Decided: yes(5), Used: 9, Need: 12}, {Limit: LimitToolCalls, Decided: yes(2), Used: 14, Need: 16}}, 17},
		{[]LimitAsk{{Limit: LimitTokens, Decided: yes(5), Used: 9, Need: 12}}, 10},
	} {
		s.Asks = tt.asks
		if got := s.allowed(LimitToolCalls); got != tt.want {
			t.Errorf("%s: %d, want %d", fmt.Sprint(tt.asks), got, tt.want)
		}
	}
	s.Asks = []LimitAsk{{Limit: LimitTokens, Decided: yes(0), Used: 5000, Need: 9000}}
	if got := s.allowed(LimitTokens); got != 9000 {
		t.Errorf("what was overrun far goes on by one call: %d", got)
	}
}
