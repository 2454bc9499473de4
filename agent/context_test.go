package agent

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

func evCut(n, upto, goal int) Event {
	return Event{Intent: &EvIntent{N: n, Cut: &Cut{Upto: upto, Goal: goal}}}
}
func evCompacted(n, upto int, summary string) Event {
	return Event{Compacted: &EvCompacted{N: n, Upto: upto, Summary: summary}}
}

// checkTold holds what a compaction keeps, and that what grows with the journal is what
// is made from the whole of it.
func checkTold(t *testing.T, s State, told *talk) {
	t.Helper()
	p := projection{State: s, Inputs: map[mailbox.MessageID][]providers.Part{}}
	mails := 0
	for id := range mailbox.MessageID(4) {
		p.Inputs[id] = []providers.Part{{Kind: providers.Text, Text: fmt.Sprintf("mail %d", id), Login: true}}
	}
	for _, turn := range s.Turns {
		if turn.Inbound != nil {
			mails++
		}
	}
	req := p.request()
	for _, m := range req.Messages {
		for _, part := range m.Parts {
			if part.Login {
				mails--
			}
		}
	}
	if mails != 0 {
		t.Fatalf("%d mails are not told, of %s", mails, mustJSON(s))
	}
	if s.Context.Upto > 0 {
		for _, turn := range s.Turns[:s.Context.Upto] {
			for _, c := range turn.Calls {
				if c.Decided != nil && !strings.Contains(s.recap(), "- "+c.decision()) {
					t.Fatalf("the decision about %s is not told in %s", c.ID, s.recap())
				}
			}
		}
	}
	if s.Pending && s.Context.Cut != nil {
		if err := providertest.Validate(s.digest("t")); err != nil {
			t.Fatalf("%v\nof %s", err, mustJSON(s))
		}
	}
	if !s.settled() {
		return
	}
	if grown, _ := told.next(p); !reflect.DeepEqual(grown, req) {
		t.Fatalf("grown: %s\nwhole: %s", mustJSON(grown), mustJSON(req))
	}
}

// story drives a run by Next alone, with a tool of a long result and a provider that
// refuses what is longer than its real window.
type story struct {
	t      *testing.T
	s      State
	real   int // window of the provider, in tokens of four bytes
	result int // bytes of a result
	steps  int // that the model makes before it answers
	events []Event

	summary func(req providers.Request) (providers.Reply, error)
	usage   func(tokens int) int // what the provider says it counted

	mail     string
	told     talk
	calls    int // answered calls of the model
	digests  int // calls for a summary
	refusals int
	asks     int
	longest  int // tokens of a request
}

func newStory(t *testing.T, window, result, steps int) *story {
	st := &story{t: t, mail: "Please do it.", real: window, result: result, steps: steps}
	st.summary = func(providers.Request) (providers.Reply, error) {
		return providertest.Say("Made some steps.").Reply, nil
	}
	st.usage = func(tokens int) int { return tokens }
	started := evStarted(Limits{})
	started.Started.Window = window
	started.Started.Tools = []providers.ToolSpec{{Name: readResultName}}
	st.add(started)
	st.add(evMail(1))
	return st
}

func (st *story) add(e Event) {
	st.t.Helper()
	e, err := decodeEvent(encodeEvent(e))
	if err == nil {
		err = st.s.Apply(e)
	}
	if err != nil {
		st.t.Fatal(err)
	}
	st.events = append(st.events, e)
}

// run goes on until the run ends, or asks and answer says no more.
func (st *story) run(answer func() string) Todo {
	st.t.Helper()
	for range 20 * (st.steps + 20) {
		act := Next(st.s)
		switch act.Do {
		case DoCall:
			st.add(Event{Intent: &EvIntent{N: act.N}})
			st.call()
		case DoCompact:
			st.add(Event{Intent: &EvIntent{N: act.N, Cut: act.Cut}})
			st.digest()
		case DoStep:
			for _, id := range act.Plan {
				st.add(evPolicy(id, tools.Allow))
			}
			for _, id := range act.Start {
				st.add(evStart(id, 1, tools.ReadOnly))
				st.add(Event{ToolEnd: &EvToolEnd{Call: id, Status: endOK, Content: excerptOf(st, id)}})
			}
		case DoAsk:
			st.asks++
			verb := answer()
			if verb == "" {
				return act
			}
			st.add(Event{Asked: &EvAsked{Decision: fmt.Sprint("d", st.asks), Kind: decisionLimit, Limit: act.Limit}})
			st.add(Event{Decided: &EvDecided{Decision: fmt.Sprint("d", st.asks), Verb: verb}})
		default:
			return act
		}
	}
	st.t.Fatalf("does not come to an end: %d calls, %d digests, %d asks", st.calls, st.digests, st.asks)
	return Todo{}
}

func excerptOf(st *story, id string) string {
	text := strings.Repeat("word ", st.result/5)
	if limit := share(st.s.Context.Window); len(text) > limit {
		return excerpt(id, text, limit, true)
	}
	return text
}

func (st *story) call() {
	st.t.Helper()
	req, sent := st.told.next(projection{State: st.s, Inputs: map[mailbox.MessageID][]providers.Part{1: {{Kind: providers.Text, Text: st.mail, Login: true}}}})
	tokens := st.check(req)
	if tokens > st.real {
		st.refusals++
		st.add(evFail(st.s.Intents, providers.ContextLength, time.Time{}))
		return
	}
	st.calls++
	turn := providertest.Say("done")
	if st.calls <= st.steps {
		turn = calls(fmt.Sprint("c", st.calls))
	}
	turn.Reply.Usage.Input = st.usage(tokens)
	st.add(Event{Reply: &EvReply{N: st.s.Intents, Reply: turn.Reply, Sent: sent}})
}

func (st *story) digest() {
	st.t.Helper()
	req := st.s.digest("t")
	st.digests++
	if tokens := st.check(req); tokens > st.real {
		st.refusals++
		st.add(evFail(st.s.Intents, providers.ContextLength, time.Time{}))
		return
	}
	r, err := st.summary(req)
	if err != nil {
		st.add(evFail(st.s.Intents, providers.Invalid, time.Time{}))
		return
	}
	st.add(Event{Compacted: st.s.summarised(outcome{n: st.s.Intents, reply: r})})
}

// check validates a request as the strictest provider, and counts it.
func (st *story) check(req providers.Request) int {
	st.t.Helper()
	req.Tools = nil
	if err := providertest.Validate(req); err != nil {
		st.t.Fatalf("call %d: %v", st.s.Intents, err)
	}
	if err := checkPairs(req); err != nil {
		st.t.Fatal(err)
	}
	tokens := (sizeOfFrozen(req.System, nil) + func() (n int) {
		for _, m := range req.Messages {
			n += sizeOfParts(m.Parts)
		}
		return n
	}()) / 4
	st.longest = max(st.longest, tokens)
	return tokens
}

func never() string { return "" }

func TestSmallWindowManySteps(t *testing.T) {
	t.Parallel()
	for _, result := range []int{100, 3000, 1 << 20} {
		t.Run(fmt.Sprint(result), func(t *testing.T) {
			t.Parallel()
			st := newStory(t, 8000, result, 300)
			if act := st.run(never); act.Do != DoFinish {
				t.Fatalf("ends with %+v after %d calls", act, st.calls)
			}
			if st.refusals != 0 || st.calls != 301 || st.digests == 0 {
				t.Errorf("%d refusals, %d calls, %d summaries", st.refusals, st.calls, st.digests)
			}
			if st.digests > 110 {
				t.Errorf("%d summaries in 300 steps", st.digests)
			}
			t.Logf("%d summaries, longest request %d tokens", st.digests, st.longest)
		})
	}
}

func TestWindowSmallerThanThought(t *testing.T) {
	t.Parallel()
	st := newStory(t, defaultWindow, 16<<10, 100)
	st.real = 12_000
	if act := st.run(never); act.Do != DoFinish {
		t.Fatalf("ends with %+v after %d calls, %d refusals", act, st.calls, st.refusals)
	}
	if st.refusals == 0 || st.refusals > 3 {
		t.Errorf("%d refusals: the first should teach", st.refusals)
	}
}

func TestProviderThatCountsNothing(t *testing.T) {
	t.Parallel()
	for name, usage := range map[string]func(int) int{
		"nothing": func(int) int { return 0 }, "ten": func(int) int { return 10 }, "double": func(n int) int { return 2 * n },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStory(t, 8000, 2000, 60)
			st.usage = usage
			if act := st.run(never); act.Do != DoFinish || st.digests == 0 {
				t.Errorf("ends with %+v after %d calls, %d summaries", act, st.calls, st.digests)
			}
		})
	}
}

func TestSummariserFaults(t *testing.T) {
	t.Parallel()
	bad := providertest.Say("").Reply
	for _, tt := range []struct {
		name    string
		summary func(providers.Request) (providers.Reply, error)
		digests int // until the owner is asked
	}{
		{"fails", func(providers.Request) (providers.Reply, error) {
			return bad, &providers.Error{Class: providers.Invalid}
		}, 1},
		{"empty", func(providers.Request) (providers.Reply, error) { return bad, nil }, maxBlank + 1},
		{"calls", func(providers.Request) (providers.Reply, error) { return calls("zz").Reply, nil }, maxBlank + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := newStory(t, 8000, 3000, 40)
			st.summary = tt.summary
			if act := st.run(never); act.Do != DoAsk || act.Limit != LimitContext || st.digests != tt.digests {
				t.Fatalf("%+v after %d summaries, want a question after %d", act, st.digests, tt.digests)
			}
			// Continue goes on with the conversation as it is, until the window is full; then
			// once more, and then it is over.
			act := st.run(func() string { return "continue" })
			if act.Do != DoFail || st.asks > 4 {
				t.Errorf("ends with %+v after %d questions, %d summaries", act, st.asks, st.digests)
			}
		})
	}
}

func TestFruitlessCompactionsAsk(t *testing.T) {
	t.Parallel()
	st := newStory(t, 8000, 900, 200)
	st.mail = strings.Repeat("The mail itself is long. ", 800)
	act := st.run(never)
	if act.Do != DoAsk || act.Limit != LimitContext || st.s.Context.Fruitless != maxFruitless || st.digests > 3*maxFruitless {
		t.Fatalf("%+v after %d calls, %d summaries; %+v", act, st.calls, st.digests, st.s.Context)
	}
	// The answer holds for the part it was about: what comes after it is compacted when
	// it is worth it.
	calls, digests := st.calls, st.digests
	act = st.run(func() string {
		if st.calls == calls {
			return "continue"
		}
		return ""
	})
	if act.Do == DoAsk && st.calls < calls+maxFruitless || st.digests-digests > 40 {
		t.Errorf("%+v after %d more calls, %d more summaries", act, st.calls-calls, st.digests-digests)
	}
}

// TestSummaryLongerThanItsInput: a summary is cut to its share of the window.
func TestSummaryLongerThanItsInput(t *testing.T) {
	t.Parallel()
	st := newStory(t, 4000, 900, 60)
	st.summary = func(providers.Request) (providers.Reply, error) {
		return providertest.Say(strings.Repeat("long ", 1<<20)).Reply, nil
	}
	if act := st.run(never); act.Do != DoFinish && act.Do != DoAsk || st.refusals > 0 || st.digests > 60 {
		t.Errorf("%+v after %d calls, %d summaries, %d refusals", act.Do, st.calls, st.digests, st.refusals)
	}
	if got := len(st.s.Context.Summary); got > share(4000) {
		t.Errorf("a summary of %d bytes", got)
	}
}

// TestRefusedAgain holds that a refused request is made shorter once, asked about once,
// and then ends the run.
func TestRefusedAgain(t *testing.T) {
	t.Parallel()
	st := newStory(t, 100_000, 2000, 10)
	st.steps = 3
	for st.calls < 3 {
		act := Next(st.s)
		if act.Do == DoCall {
			st.add(Event{Intent: &EvIntent{N: act.N}})
			st.call()
			continue
		}
		for _, id := range act.Plan {
			st.add(evPolicy(id, tools.Allow))
		}
		for _, id := range act.Start {
			st.add(evStart(id, 1, tools.ReadOnly))
			st.add(evEnd(id, endOK))
		}
	}
	st.real = 0 // from now on nothing is short enough
	st.summary = nil
	digests := 0
	for range 40 {
		act := Next(st.s)
		switch act.Do {
		case DoCall:
			st.add(Event{Intent: &EvIntent{N: act.N}})
			st.call()
			continue
		case DoCompact:
			st.add(Event{Intent: &EvIntent{N: act.N, Cut: act.Cut}})
			st.add(Event{Compacted: st.s.summarised(outcome{n: act.N, reply: providertest.Say("short").Reply})})
			digests++
			continue
		case DoStep:
			for _, id := range act.Plan {
				st.add(evPolicy(id, tools.Deny))
			}
			for _, id := range act.Settle {
				st.add(evEnd(id, endDenied))
			}
			continue
		case DoAsk:
			st.asks++
			st.add(Event{Asked: &EvAsked{Decision: "d", Kind: decisionLimit, Limit: act.Limit}})
			st.add(evDecided("", "d", "continue"))
			continue
		}
		if act.Do != DoFail || act.Fail != FailModel || digests != 1 || st.asks != 1 || st.refusals != 3 {
			t.Errorf("%+v, %d summaries, %d questions, %d refusals; want a failure after 1, 1 and 3", act, digests, st.asks, st.refusals)
		}
		return
	}
	t.Error("does not come to an end")
}

// TestCutOffByTheWindow: a reply that the window cut off is asked again once, with less.
func TestCutOffByTheWindow(t *testing.T) {
	t.Parallel()
	events := begun(evReply(1, calls("a")), evPolicy("a", tools.Allow), evStart("a", 1, tools.ReadOnly), evEnd("a", endOK), evIntent(2),
		evReply(2, stopped(providers.StopContext, "half an ans")))
	events[0].Started.Window = 8000
	s := fold(t, events)
	act := Next(s)
	if act.Do != DoCompact || act.Cut.Goal != 3 {
		t.Fatalf("Next = %+v", act)
	}
	events = append(events, evCut(3, 3, 3), evCompacted(3, 3, "so far"))
	if act = Next(fold(t, events)); act.Do != DoCall {
		t.Fatalf("Next = %+v", act)
	}
	checkPrefix(t, fold(t, events))
	events = append(events, evIntent(4), evReply(4, stopped(providers.StopContext, "again")))
	if act = Next(fold(t, events)); act.Do != DoFail || act.Fail != FailWindow {
		t.Errorf("Next = %+v", act)
	}
}

func TestJournalsWithoutAWindowAreNotCompacted(t *testing.T) {
	t.Parallel()
	st := newStory(t, 0, 30_000, 50)
	st.real = 1 << 40
	if act := st.run(never); act.Do != DoFinish || st.digests != 0 {
		t.Errorf("%+v, %d summaries", act, st.digests)
	}
	if act := Next(fold(t, begun(evFail(1, providers.ContextLength, time.Time{})))); act.Do != DoFail || act.Fail != FailModel {
		t.Errorf("a refusal: %+v", act)
	}
}

// TestLongBatchIsShared: many long results of one batch leave room for what else there is.
func TestLongBatchIsShared(t *testing.T) {
	t.Parallel()
	ids := make([]string, 30)
	events := begun()
	for i := range ids {
		ids[i] = fmt.Sprint("c", i)
	}
	events[0].Started.Window = 32_000
	events[0].Started.Tools = []providers.ToolSpec{{Name: readResultName}}
	events = append(events, evReply(1, calls(ids...)))
	for _, id := range ids {
		events = append(events, evPolicy(id, tools.Allow), evStart(id, 1, tools.ReadOnly),
			Event{ToolEnd: &EvToolEnd{Call: id, Status: endOK, Content: strings.Repeat("x", 15<<10)}})
	}
	s := fold(t, events)
	req := projection{State: s}.request()
	last := req.Messages[len(req.Messages)-1]
	if size := sizeOfParts(last.Parts); size > 32_000*4/2 {
		t.Errorf("%d bytes of results for a window of 32,000 tokens", size)
	}
	if got := last.Parts[3].Result.Content; !strings.Contains(got, `read_result {"result":"c3"}`) {
		t.Errorf("no handle: %s", got)
	}
	if est := s.Context.estimate(); est > 32_000 {
		t.Errorf("estimate %d", est)
	}
}

// gauge is a model of a small window: it asks for a piece of a file until it has made its
// steps, and refuses what is too long, as a provider does.
type gauge struct {
	t      *testing.T
	window int
	steps  int

	mu      sync.Mutex
	calls   int
	digests int
	refused int
	seen    []providers.Request
}

func (g *gauge) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "test", Window: g.window, Joins: true, Free: true}
}

func (g *gauge) Complete(ctx context.Context, req providers.Request) (providers.Reply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return providers.Reply{}, err
	}
	if err := providertest.Validate(req); err != nil {
		g.t.Errorf("invalid request: %v", err)
	}
	size := sizeOfFrozen(req.System, req.Tools)
	for _, m := range req.Messages {
		size += sizeOfParts(m.Parts)
	}
	usage := providers.Usage{Input: size / 4, Output: 10}
	if usage.Input > g.window {
		g.refused++
		return providers.Reply{}, &providers.Error{Class: providers.ContextLength, Message: "too long"}
	}
	if len(req.Tools) == 0 {
		g.digests++
		r := providertest.Say(fmt.Sprintf("summary %d of the steps", g.digests)).Reply
		r.Usage = usage
		return r, nil
	}
	g.seen = append(g.seen, req)
	g.calls++
	turn := providertest.Say("All is done.")
	if g.calls <= g.steps {
		turn = providertest.Calls(providertest.Call(fmt.Sprintf("s%d", g.calls), "read_file", `{"path":"/local/docs/piece.txt"}`))
	}
	turn.Reply.Usage = usage
	return turn.Reply, nil
}

func TestLongRunInASmallWindow(t *testing.T) {
	t.Parallel()
	g := &gauge{t: t, window: 8000, steps: 300}
	o := newOffice(t, g, func(opt *Options) { opt.Limits = Limits{ModelCalls: 2000, ToolCalls: 2000} })
	o.file("piece.txt", strings.Repeat("a line of text\n", 200))
	r := o.send("read it again and again", "Subject: long")
	mails := o.ended(1)
	if len(mails) != 1 || !strings.Contains(mails[0].raw, "All is done.") || g.refused != 0 || g.digests == 0 {
		t.Fatalf("%d mails, %d refused, %d summaries: %v", len(mails), g.refused, g.digests, mails)
	}
	s := fold(t, o.journal(r.Task+".1"))
	if s.ModelCalls != g.calls+g.digests || s.Intents != s.ModelCalls || len(s.Turns) != 302 {
		t.Errorf("%d model calls of %d and %d, %d turns", s.ModelCalls, g.calls, g.digests, len(s.Turns))
	}
	last := g.seen[len(g.seen)-1]
	if first := last.Messages[0]; !strings.Contains(first.Parts[1].Text, "read it again") || !first.Parts[1].Login ||
		!strings.Contains(first.Parts[2].Text, fmt.Sprintf("summary %d", g.digests)) {
		t.Errorf("the first message: %+v", first)
	}
	shown, err := o.a.Show(t.Context(), o.me.Account, r.Task)
	if err != nil || !strings.Contains(fmt.Sprint(shown.Runs[0].Lines), "compacted: earlier steps") {
		t.Errorf("show tells of no compaction: %v", err)
	}
	if shown.Runs[0].Usage != s.Usage {
		t.Errorf("usage %+v, the journal has %+v", shown.Runs[0].Usage, s.Usage)
	}
	o.settledDown()
}

// TestCrashInACompaction stops the world before and after each commit that a compaction
// is made of, and at those around it.
func TestCrashInACompaction(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := 5
			for crashed := true; crashed; at++ {
				crashed = compactWalk(t, crashPoint{at: at, after: after})
			}
			if at < 12 {
				t.Errorf("only %d commits", at)
			}
		})
	}
}

func compactWalk(t *testing.T, point crashPoint) (crashed bool) {
	t.Helper()
	g := &gauge{t: t, window: 4000, steps: 5}
	o := newOffice(t, g)
	o.halt()
	o.file("piece.txt", strings.Repeat("a line of text\n", 120))
	r := o.send("read it again and again")
	o.closing()
	down := make(chan struct{})
	o.open(t, func(s mailbox.Store) mailbox.Store { return &crashStore{Store: s, crashPoint: point, down: down} })
	crashed = o.finishAll(1, down)
	o.reopen(t)
	o.finishAll(1, nil)
	s := fold(t, o.journal(r.Task+".1"))
	if mails := o.ended(1); len(mails) != 1 || s.Finished == nil || s.Finished.State != Done || s.Context.Upto == 0 || g.refused > 0 {
		t.Errorf("crash at %d (after: %v): %d mails, %+v, %+v, %d refused", point.at, point.after, len(mails), s.Finished, s.Context, g.refused)
	}
	if s.ModelCalls > 12 {
		t.Errorf("crash at %d: %d model calls", point.at, s.ModelCalls)
	}
	o.settledDown()
	o.halt()
	o.closing()
	return crashed
}
