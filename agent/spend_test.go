package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// answering is a model made of a function.
type answering func(providers.Request) providers.Reply

func (answering) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "test", Joins: true}
}

func (f answering) Complete(_ context.Context, req providers.Request) (providers.Reply, error) {
	return f(req), nil
}

// readStore notes the keys of the records that are read.
type readStore struct {
	mailbox.Store
	mu   sync.Mutex
	keys []string
}

func (s *readStore) Record(ctx context.Context, id mailbox.AccountID, key string) (mailbox.Record, error) {
	s.mu.Lock()
	s.keys = append(s.keys, key)
	s.mu.Unlock()
	return s.Store.Record(ctx, id, key)
}

func (s *readStore) read() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

func TestCountersAreTheSumOfTheJournals(t *testing.T) {
	t.Parallel()
	const runs = 200
	var mu sync.Mutex
	n := 0
	m := answering(func(req providers.Request) providers.Reply {
		mu.Lock()
		n++
		use := providers.Usage{Input: 10 + n, CacheRead: n % 7, Output: n % 13, Cost: float64(n) / 1e6}
		mu.Unlock()
		turn := providertest.Say("done")
		if len(req.Messages) == 1 {
			turn = providertest.Calls(providertest.Call("", "list_folder", `{"path":"/local"}`))
		}
		turn.Reply.Usage, turn.Reply.Message.Role = use, providers.Assistant
		return turn.Reply
	})
	o := newOffice(t, m)
	var wg sync.WaitGroup
	for i := range runs {
		raw := o.message(o.me, "count", fmt.Sprintf("Message-ID: <n%d@test>", i))
		wg.Go(func() { o.mustGive(o.me, raw, "pizza@localhost") })
	}
	wg.Wait()
	o.ended(runs)
	want := ModelUsage{}
	for _, r := range o.runs(o.me.Account) {
		one := ModelUsage{}
		for _, e := range o.journal(r.ID) {
			if e.Reply != nil {
				u := e.Reply.Reply.Usage
				one.add(ModelUsage{Calls: 1, Input: int64(u.Input), Cached: int64(u.CacheRead), Output: int64(u.Output), MicroUSD: micro(u.Cost)})
			}
		}
		if int64(r.Spent.ModelCalls) != one.Calls || int64(r.Spent.Usage.Input) != one.Input || micro(r.Spent.Usage.Cost) != one.MicroUSD || r.Spent.ToolCalls != 1 {
			t.Fatalf("%s: the record says %+v, its journal %+v", r.ID, r.Spent, one)
		}
		want.add(one)
	}
	for _, when := range []string{"day", "month", "2026-12-01", "2026-12"} {
		u, err := o.a.UsageOf(t.Context(), o.me.Account, when)
		if err != nil || u.Total != want || len(u.Models) != 1 || u.Models[0].Model != "script:test" || want.Calls != 2*runs {
			t.Errorf("%s: %+v, want %+v (%v)", when, u, want, err)
		}
	}
	task := o.runs(o.me.Account)[0]
	u, err := o.a.UsageOf(t.Context(), o.me.Account, task.Task)
	if err != nil || u.Total.Calls != 2 || u.Total.Input != int64(task.Spent.Usage.Input) {
		t.Errorf("of a task: %+v, %v", u, err)
	}
	if u, err := o.a.UsageOf(t.Context(), o.me.Account, "2026-11"); err != nil || u.Total != (ModelUsage{}) {
		t.Errorf("of another month: %+v, %v", u, err)
	}
	if _, err := o.a.UsageOf(t.Context(), o.me.Account, "2026-13"); !isKind(err, mailbox.Invalid) {
		t.Errorf("of no month: %v", err)
	}
	if _, err := o.a.UsageOf(t.Context(), o.me.Account, "nosuchtask"); !isKind(err, mailbox.NotFound) {
		t.Errorf("of no task: %v", err)
	}
}

func TestDaysAreThoseOfTheZone(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("NZDT", 13*3600)
	o := newOffice(t, &loop{use: providers.Usage{Input: 7, Output: 2}}, func(opt *Options) { opt.Location = zone })
	o.clock.add(30*24*time.Hour + 11*time.Hour) // 31 December, 23:00 UTC
	o.send("say it")
	o.ended(1)
	u, err := o.a.UsageOf(t.Context(), o.me.Account, "2027-01-01")
	if err != nil || u.Total.Input != 7 {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err = o.a.UsageOf(t.Context(), o.me.Account, "2026-12"); err != nil || u.Total.Calls != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

// capOffice is an office whose account has a cap. A test changes it while nobody works.
func capOffice(t *testing.T, m providers.Model, c Cap) (*office, *Cap) {
	t.Helper()
	now := &c
	return newOffice(t, m, func(opt *Options) {
		opt.Account = func(string) AccountSettings { return AccountSettings{Cap: *now} }
	}), now
}

// capAsked waits until n runs wait for the month and its question is open.
func (o *office) capAsked(n int) Decision {
	o.t.Helper()
	o.until("the runs to wait for the month", func() bool {
		recs, err := o.store.Lookup(o.t.Context(), o.me.Account, indexMonth)
		open, _ := o.store.Lookup(o.t.Context(), o.me.Account, indexOpenDecisions)
		return err == nil && len(recs) == n && len(open) == 1
	})
	return o.waitingAlone()
}

func TestAtTheCapAllRunsWaitForOneAnswer(t *testing.T) {
	t.Parallel()
	const runs = 25
	m := &loop{use: providers.Usage{Input: 900, Output: 100, Cost: 0.01}}
	o, _ := capOffice(t, m, Cap{USD: 0.2})
	o.send("what does it cost?")
	o.ended(1)
	var wg sync.WaitGroup
	for i := range runs - 1 {
		raw := o.message(o.me, "do it", fmt.Sprintf("Message-ID: <n%d@test>", i))
		wg.Go(func() { o.mustGive(o.me, raw, "pizza@localhost") })
	}
	wg.Wait()
	first := 0
	o.until("the cap", func() bool {
		first = 0
		all := o.runs(o.me.Account)
		for _, r := range all {
			if !r.State.Ended() && r.For != forMonth {
				return false
			}
			if r.State.Ended() {
				first++
			}
		}
		return len(all) == runs
	})
	d := o.capAsked(runs - first)
	if first < 2 || first > 20 || m.count() != first {
		t.Errorf("%d runs ended, %d calls of $0.01 under a cap of $0.20", first, m.count())
	}
	o.count(o.me.Account, Action, 1)
	for _, want := range []string{"December 2026", "limit of the month is $0.20", "raised by $0.20", "pizza running", "goes on with the new month"} {
		if !strings.Contains(strings.Join(strings.Fields(d.Text), " "), want) {
			t.Errorf("the question lacks %q:\n%s", want, d.Text)
		}
	}
	var waits Run
	for _, r := range o.runs(o.me.Account) {
		if r.For == forMonth {
			waits = r
		}
	}
	if s, err := o.a.Show(t.Context(), o.me.Account, waits.Task); err != nil || len(s.Open) != 1 || s.Open[0].ID != d.ID {
		t.Errorf("show of a task that waits: %+v, %v", s.Open, err)
	}
	o.reopen(t)
	o.answerBy(d, "continue 10")
	if mails := o.ended(runs); m.count() != runs || len(mails) < runs {
		t.Errorf("%d calls, %d mails", m.count(), len(mails))
	}
	o.settledDown()
	u, err := o.a.UsageOf(t.Context(), o.me.Account, "month")
	if err != nil || u.Total.MicroUSD != runs*10_000 || u.CapMicroUSD != 10_200_000 || u.ReservedMicroUSD != 0 || u.ReservedTokens != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestStopAtTheCapEndsWhatWaitsAndWhatComes(t *testing.T) {
	t.Parallel()
	m := &loop{calls: 1, use: providers.Usage{Input: 900, Output: 100}}
	o, _ := capOffice(t, m, Cap{Tokens: 12_000})
	o.send("loop")
	d := o.capAsked(1)
	if m.count() == 0 || !strings.Contains(d.Sentence, "limit of the month is 12,000") {
		t.Errorf("%d calls: %s", m.count(), d.Sentence)
	}
	o.answerBy(d, "cancel task") // it is of no task
	o.until("help", func() bool { return len(o.ofKind(mailbox.Inbox, KindNotice)) == 1 })
	o.decide(d.ID, "stop", "")
	o.until("the end", func() bool { return o.runs(o.me.Account)[0].State.Ended() })
	before := m.count()
	o.send("another")
	o.ended(2)
	notices := o.ofKind(mailbox.Inbox, KindNotice)
	if len(notices) != 3 || m.count() != before || !strings.Contains(notices[2].raw, "limit of the month") {
		t.Errorf("%d notices, %d calls after stop", len(notices), m.count()-before)
	}
	o.settledDown()
	o.send("say free", "X-Pizza-Model: runbook:mail") // costs nothing
	o.ended(3)
}

func TestWithoutAnAnswerTheCapEndsWithTheMonth(t *testing.T) {
	t.Parallel()
	m := &loop{use: providers.Usage{Input: 900, Output: 100}}
	o, _ := capOffice(t, m, Cap{Tokens: 100})
	o.send("hello")
	d := o.capAsked(1)
	if d.Expires.Format(time.RFC3339) != "2027-01-01T00:00:00Z" || m.count() != 0 {
		t.Errorf("expires %v, %d calls", d.Expires, m.count())
	}
	o.clock.add(31 * 24 * time.Hour)
	o.a.tendOnce(t.Context(), o.me.Account)
	o.state(d, Expired)
	next := o.capAsked(1) // of January, whose cap is as small
	if next.ID == d.ID || next.Month != "2027-01" {
		t.Errorf("%+v", next)
	}
	o.decide(next.ID, "continue 20000", "")
	o.ended(1)
	o.settledDown()
}

func TestAnotherCapInTheSettingsLetsTheRunsGoOn(t *testing.T) {
	t.Parallel()
	m := &loop{use: providers.Usage{Input: 900, Output: 100}}
	o, settings := capOffice(t, m, Cap{Tokens: 100})
	o.send("hello")
	d := o.capAsked(1)
	o.halt()
	*settings = Cap{Tokens: 50_000}
	o.reopen(t)
	o.clock.add(2 * capEvery)
	o.a.tendOnce(t.Context(), o.me.Account)
	o.ended(1)
	o.state(d, Expired)
	o.settledDown()
}

func TestNoCapCostsNoRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	seen := &readStore{}
	o.halt()
	o.closing()
	o.open(t, func(s mailbox.Store) mailbox.Store { seen.Store = s; return seen })
	o.send("call list_folder {\"path\":\"/local\"}\nsay done")
	o.ended(1)
	for _, key := range seen.read() {
		if strings.HasPrefix(key, "usage/") || strings.HasPrefix(key, "cap/") {
			t.Errorf("%s was read", key)
		}
	}
}

// TestALostReplyStaysBookedInTheMonth is class 25 under a cap: the process stops with the
// reply on its way.
func TestALostReplyStaysBookedInTheMonth(t *testing.T) {
	t.Parallel()
	m := &loop{use: providers.Usage{Input: 900, Output: 100}}
	o, _ := capOffice(t, m, Cap{Tokens: 100_000})
	o.halt()
	o.closing()
	cs := &crashStore{crashPoint: crashPoint{when: hasReply}, down: make(chan struct{})}
	o.open(t, func(s mailbox.Store) mailbox.Store { cs.Store = s; return cs })
	o.send("hello")
	<-cs.down
	o.halt()
	o.closing()
	o.open(t, func(s mailbox.Store) mailbox.Store { return s })
	o.ended(1)
	u, err := o.a.UsageOf(t.Context(), o.me.Account, "month")
	if err != nil || m.count() != 2 || u.Total.Calls != 1 || u.Total.Input != 900 {
		t.Errorf("%d calls: %+v, %v", m.count(), u, err)
	}
	var lost int64
	for _, e := range o.journal(o.runs(o.me.Account)[0].ID) {
		if e.Intent != nil && e.Intent.N == 1 {
			lost = e.Intent.Reserve.Tokens()
		}
	}
	if lost == 0 || u.ReservedTokens != lost {
		t.Errorf("%d tokens stay booked, want the %d of the lost call", u.ReservedTokens, lost)
	}
}

func TestSummariesAreSpentToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := &State{Reserved: Reserve{Input: 5, Output: 2, Month: "2026-11"}}
	d.commit(d.a.spendOps("x:y", before, []Event{{At: d.clock.Now(), Compacted: &EvCompacted{Usage: providers.Usage{Input: 30, Output: 4, Cost: 0.5}}}})...)
	u, err := d.a.UsageOf(t.Context(), d.me.Account, "day")
	if want := (ModelUsage{Calls: 1, Input: 30, Output: 4, MicroUSD: 500_000}); err != nil || u.Total != want {
		t.Errorf("%+v, %v", u, err)
	}
	sums, err := d.a.sums(t.Context(), d.me.Account, monthKey("2026-11"))
	if err != nil || sums[sumReservedTokens] != -7 {
		t.Errorf("of the month it was booked in: %v, %v", sums, err)
	}
}

// TestThreeWorkersShareASmallBudget is class 25: a task gives work to three that would
// never end, and all four together stay within the budget of the task.
func TestThreeWorkersShareASmallBudget(t *testing.T) {
	t.Parallel()
	m := answering(func(req providers.Request) providers.Reply {
		turn := providertest.Calls(providertest.Call("", "list_folder", `{"path":"/local"}`))
		if !strings.Contains(req.System, "You work for another agent") && len(req.Messages) == 1 {
			args := workArgs("clerk", "loop")
			turn = providertest.Calls(providertest.Call("", "task", args), providertest.Call("", "task", args), providertest.Call("", "task", args))
		}
		turn.Reply.Usage, turn.Reply.Message.Role = providers.Usage{Input: 1000, Output: 100}, providers.Assistant
		return turn.Reply
	})
	const budget = 60_000
	crew := func(o *Options) {
		o.Subagents = func() []Worker {
			return []Worker{{Name: "clerk", Description: "does as told", Instructions: "Do as told.", Tools: []string{"list_*"}}}
		}
		o.Limits = Limits{ModelCalls: -1, ToolCalls: -1, Tokens: budget}
		o.WorkerLimits = Limits{ModelCalls: -1, ToolCalls: -1}
	}
	o := newOffice(t, m, crew)
	o.send("give it away")
	for range 3 {
		o.until("a question", func() bool {
			recs, err := o.store.Lookup(t.Context(), o.me.Account, indexOpenDecisions)
			return err == nil && len(recs) > 0
		})
		recs, err := o.store.Lookup(t.Context(), o.me.Account, indexOpenDecisions)
		if err != nil {
			t.Fatal(err)
		}
		d, err := decodeDecision(recs[0])
		if err != nil || d.Kind != decisionLimit || !strings.Contains(d.Sentence, "tokens") {
			t.Fatalf("%+v, %v", d, err)
		}
		o.decide(d.ID, "stop", "")
	}
	o.until("the task itself to ask", func() bool {
		recs, err := o.store.Lookup(t.Context(), o.me.Account, indexOpenDecisions)
		return err == nil && len(recs) == 1 && !strings.Contains(string(recs[0].Value), ".1.")
	})
	spent := int64(0)
	for _, r := range o.runs(o.me.Account) {
		spent += int64(r.Spent.Usage.Input + r.Spent.Usage.Output)
	}
	if spent > budget || spent < budget/4 || len(o.runs(o.me.Account)) != 4 {
		t.Errorf("%d tokens spent by %d runs on a budget of %d", spent, len(o.runs(o.me.Account)), budget)
	}
	o.decide(o.waitingAlone().ID, "stop", "")
	o.ended(4)
	o.settledDown()
}
