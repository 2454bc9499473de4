package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// Short forms of events.
func evStarted(l Limits) Event {
	return Event{Started: &EvStarted{Model: "script:test", System: "be good", Limits: l}}
}
func evMail(id mailbox.MessageID) Event {
	return Event{Inbound: &Inbound{Message: id, MessageID: fmt.Sprintf("m%d@test", id)}}
}
func evIntent(n int) Event { return Event{Intent: &EvIntent{N: n}} }
func evReply(n int, turn providertest.Turn) Event {
	return Event{Reply: &EvReply{N: n, Reply: turn.Reply}}
}
func evPolicy(call string, r tools.Rule) Event {
	return Event{Policy: &EvPolicy{Call: call, Rule: string(r), Text: "because"}}
}
func evAsked(call, decision, kind string) Event {
	return Event{Asked: &EvAsked{Call: call, Decision: decision, Kind: kind}}
}
func evDecided(call, decision, verb string) Event {
	return Event{Decided: &EvDecided{Call: call, Decision: decision, Verb: verb, By: DecidedBy{Login: "me"}}}
}
func evStart(call string, attempt int, class tools.Class) Event {
	return Event{ToolStart: &EvToolStart{Call: call, Attempt: attempt, Class: string(class)}}
}
func evProbe(call string, attempt int) Event {
	e := evStart(call, attempt, tools.Reconcilable)
	e.ToolStart.Probe = true
	return e
}
func evEnd(call, status string) Event {
	return Event{ToolEnd: &EvToolEnd{Call: call, Status: status, Content: status + " of " + call}}
}
func evFinished(s RunState) Event { return Event{Finished: &EvFinished{State: s}} }
func evCancel() Event             { return Event{Cancel: &EvCancel{By: DecidedBy{Login: "me", Via: "cli"}}} }

var failedAt = time.Date(2026, 12, 1, 12, 30, 0, 0, time.UTC)

func evFail(n int, c providers.Class, retry time.Time) Event {
	return Event{At: failedAt, ModelFail: &EvModelFail{N: n, Class: c, Text: "no", Retry: retry}}
}

// calls is a reply that asks for calls with these ids, each of the tool "t<id>".
func calls(ids ...string) providertest.Turn {
	var list []providers.ToolCall
	for _, id := range ids {
		list = append(list, providertest.Call(id, "t"+id, `{"id":"`+id+`"}`))
	}
	return providertest.Calls(list...)
}

func begun(more ...Event) []Event {
	return append([]Event{evStarted(Limits{}), evMail(1), evIntent(1)}, more...)
}

func fold(t *testing.T, events []Event) State {
	t.Helper()
	s, err := Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNextTable(t *testing.T) {
	t.Parallel()
	later := time.Date(2026, 12, 1, 13, 0, 0, 0, time.UTC)
	asked := begun(evReply(1, calls("a", "b")), evPolicy("a", tools.Ask), evPolicy("b", tools.Allow), evAsked("a", "d1", decisionApproval), evStart("b", 1, tools.ReadOnly))
	once := begun(evReply(1, calls("a")), evPolicy("a", tools.Allow), evStart("a", 1, tools.OnceOnly))
	book := begun(evReply(1, calls("a")), evPolicy("a", tools.Allow), evStart("a", 1, tools.Reconcilable))
	probed := slices.Concat(book, []Event{evProbe("a", 2)})
	unknown := slices.Concat(once, []Event{evEnd("a", endUnknown), evAsked("a", "d9", decisionUnknown)})
	for _, tt := range []struct {
		name   string
		events []Event
		aged   bool
		want   Todo
	}{
		{"empty journal", nil, false, Todo{Do: DoFail, Fail: FailJournal}},
		{"started without a mail", []Event{evStarted(Limits{})}, false, Todo{Do: DoFail, Fail: FailJournal}},
		{"first mail", []Event{evStarted(Limits{}), evMail(1)}, false, Todo{Do: DoCall, N: 1}},
		{"intent open", begun(), false, Todo{Do: DoCall, N: 1, Open: true}},
		{"intent lost", begun(), true, Todo{Do: DoCall, N: 2}},
		{"answer", begun(evReply(1, providertest.Say("done"))), false, Todo{Do: DoFinish}},
		{"calls", begun(evReply(1, calls("a", "b"))), false, Todo{Do: DoStep, Plan: []string{"a", "b"}}},
		{"policy", begun(evReply(1, calls("a", "b", "c")), evPolicy("a", tools.Ask), evPolicy("b", tools.Allow), evPolicy("c", tools.Deny)), false,
			Todo{Do: DoStep, Ask: []string{"a"}, Start: []string{"b"}, Settle: []string{"c"}}},
		{"one asks, one runs", asked, false, Todo{Do: DoBusy}},
		{"one asks, one was lost", asked, true, Todo{Do: DoStep, Start: []string{"b"}}},
		{"one asks, one is done", slices.Concat(asked, []Event{evEnd("b", endOK)}), false, Todo{Do: DoWait, For: decisionApproval}},
		{"approved", slices.Concat(asked, []Event{evEnd("b", endOK), evDecided("a", "d1", "approve")}), false, Todo{Do: DoStep, Start: []string{"a"}}},
		{"rejected", slices.Concat(asked, []Event{evEnd("b", endOK), evDecided("a", "d1", "reject")}), false, Todo{Do: DoStep, Settle: []string{"a"}}},
		{"settled", slices.Concat(asked, []Event{evEnd("b", endOK), evDecided("a", "d1", "expire"), evEnd("a", endDenied)}), false, Todo{Do: DoCall, N: 2}},
		{"once-only lost", once, true, Todo{Do: DoStep, Unsure: []string{"a"}}},
		{"idempotent lost", begun(evReply(1, calls("a")), evPolicy("a", tools.Allow), evStart("a", 1, tools.Idempotent)), true, Todo{Do: DoStep, Start: []string{"a"}}},
		{"reconcilable lost", book, true, Todo{Do: DoStep, Probe: []string{"a"}}},
		{"probe under way", probed, false, Todo{Do: DoBusy}},
		{"probe lost", probed, true, Todo{Do: DoStep, Probe: []string{"a"}}},
		{"probe: found", slices.Concat(probed, []Event{evEnd("a", endOK)}), false, Todo{Do: DoCall, N: 2}},
		{"probe: never happened", slices.Concat(probed, []Event{evEnd("a", endAbsent)}), true, Todo{Do: DoStep, Start: []string{"a"}}},
		{"probe: cannot be told", slices.Concat(probed, []Event{evEnd("a", endUnknown)}), false, Todo{Do: DoStep, Ask: []string{"a"}}},
		{"unsure", slices.Concat(once, []Event{evEnd("a", endUnknown)}), false, Todo{Do: DoStep, Ask: []string{"a"}}},
		{"question", unknown, false, Todo{Do: DoWait, For: "question"}},
		{"happened", slices.Concat(unknown, []Event{evDecided("a", "d9", "happened")}), false, Todo{Do: DoStep, Settle: []string{"a"}}},
		{"repeat", slices.Concat(unknown, []Event{evDecided("a", "d9", "repeat")}), false, Todo{Do: DoStep, Start: []string{"a"}}},
		{"stop", slices.Concat(unknown, []Event{evDecided("a", "d9", "stop")}), false, Todo{Do: DoEnd}},
		{"cancel while a tool runs", slices.Concat(asked, []Event{evCancel()}), false, Todo{Do: DoBusy}},
		{"cancel", slices.Concat(asked, []Event{evEnd("b", endOK), evCancel()}), false, Todo{Do: DoEnd}},
		{"cancel while the model thinks", begun(evCancel()), false, Todo{Do: DoEnd}},
		{"ended", begun(evReply(1, providertest.Say("x")), evFinished(Done)), false, Todo{Do: DoNothing}},
		{"retry", begun(evFail(1, providers.Overloaded, later)), false, Todo{Do: DoCall, N: 2, After: later, Since: failedAt}},
		{"no retry", begun(evFail(1, providers.Auth, time.Time{})), false, Todo{Do: DoFail, Fail: FailModel}},
		{"filtered", begun(evReply(1, stopped(providers.StopFilter, ""))), false, Todo{Do: DoFail, Fail: FailFilter}},
		{"window", begun(evReply(1, stopped(providers.StopContext, "x"))), false, Todo{Do: DoFail, Fail: FailWindow}},
		{"paused", begun(evReply(1, stopped(providers.StopPause, "x"))), false, Todo{Do: DoCall, N: 2}},
		{"empty once", begun(evReply(1, providertest.Say(" "))), false, Todo{Do: DoCall, N: 2}},
		{"empty again and again", begun(evReply(1, providertest.Say("")), evIntent(2), evReply(2, providertest.Say("")), evIntent(3), evReply(3, providertest.Say(""))),
			false, Todo{Do: DoFinish}},
		{"too many tool calls", append([]Event{evStarted(Limits{ToolCalls: 1}), evMail(1), evIntent(1)}, evReply(1, calls("a", "b"))), false, Todo{Do: DoAsk, Limit: LimitToolCalls}},
		{"too many model calls", append([]Event{evStarted(Limits{ModelCalls: 1}), evMail(1), evIntent(1)}, evReply(1, calls("a")), evPolicy("a", tools.Deny), evEnd("a", endDenied)), false, Todo{Do: DoAsk, Limit: LimitModelCalls}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := fold(t, tt.events)
			if tt.aged {
				s.Age(7)
			}
			if got := Next(s); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("Next = %+v\nwant   %+v", got, tt.want)
			}
		})
	}
}

func stopped(stop providers.Stop, text string) providertest.Turn {
	turn := providertest.Say(text)
	turn.Reply.Stop = stop
	return turn
}

func TestRetriesAndLostCallsAreBounded(t *testing.T) {
	t.Parallel()
	events := begun()
	for n := 1; n < maxFailures; n++ {
		events = append(events, evFail(n, providers.Network, time.Unix(1, 0)), evIntent(n+1))
	}
	if got := Next(fold(t, append(events, evFail(maxFailures, providers.Network, time.Unix(1, 0))))); got.Fail != FailModel {
		t.Errorf("after %d failures: %+v", maxFailures, got)
	}
	events = begun()
	for n := 1; n <= maxLost; n++ {
		events = append(events, evIntent(n+1))
	}
	s := fold(t, events)
	s.Age(7)
	if got := Next(s); got.Fail != FailLost {
		t.Errorf("after %d lost calls: %+v", maxLost, got)
	}
	events = begun(evReply(1, calls("a")), evPolicy("a", tools.Allow), evStart("a", 1, tools.Reconcilable))
	for n := 2; n <= maxAttempts; n++ {
		events = append(events, evProbe("a", n))
	}
	s = fold(t, events)
	s.Age(7)
	if got := Next(s); len(got.Unsure) != 1 {
		t.Errorf("after %d lost probes: %+v", maxAttempts, got)
	}
	events = begun(evReply(1, calls("a")), evPolicy("a", tools.Allow))
	for n := 1; n <= maxAttempts; n++ {
		events = append(events, evStart("a", n, tools.ReadOnly))
	}
	s = fold(t, events)
	s.Age(7)
	if got := Next(s); len(got.Unsure) != 1 {
		t.Errorf("after %d lost attempts: %+v", maxAttempts, got)
	}
}

func TestIllegalEventsAreErrors(t *testing.T) {
	t.Parallel()
	planned := begun(evReply(1, calls("a")))
	once := append(slices.Clone(planned), evPolicy("a", tools.Allow), evStart("a", 1, tools.OnceOnly))
	for _, tt := range []struct {
		name   string
		events []Event
	}{
		{"mail before the start", []Event{evMail(1)}},
		{"started twice", begun(evStarted(Limits{}))},
		{"nothing", begun(Event{})},
		{"intent skips", begun(evIntent(3))},
		{"reply to no intent", []Event{evStarted(Limits{}), evMail(1), evReply(1, providertest.Say("x"))}},
		{"reply to another intent", begun(evReply(2, providertest.Say("x")))},
		{"second reply", begun(evReply(1, providertest.Say("x")), evReply(1, providertest.Say("x")))},
		{"reply after cancel", begun(evCancel(), evReply(1, providertest.Say("x")))},
		{"same call id", begun(evReply(1, calls("a", "a")))},
		{"no call id", begun(evReply(1, calls("")))},
		{"intent over an open call", append(slices.Clone(planned), evIntent(2))},
		{"policy twice", append(slices.Clone(planned), evPolicy("a", tools.Ask), evPolicy("a", tools.Allow))},
		{"policy nobody knows", append(slices.Clone(planned), evPolicy("a", "maybe"))},
		{"unknown call", append(slices.Clone(planned), evPolicy("z", tools.Allow))},
		{"start without policy", append(slices.Clone(planned), evStart("a", 1, tools.ReadOnly))},
		{"start before the approval", append(slices.Clone(planned), evPolicy("a", tools.Ask), evAsked("a", "d", decisionApproval), evStart("a", 1, tools.ReadOnly))},
		{"start after the rejection", append(slices.Clone(planned), evPolicy("a", tools.Ask), evAsked("a", "d", decisionApproval), evDecided("a", "d", "reject"), evStart("a", 1, tools.ReadOnly))},
		{"start after cancel", append(slices.Clone(planned), evPolicy("a", tools.Allow), evCancel(), evStart("a", 1, tools.ReadOnly))},
		{"once-only started again", append(slices.Clone(once), evStart("a", 2, tools.OnceOnly))},
		{"a probe of nothing", append(slices.Clone(planned), evPolicy("a", tools.Allow), evProbe("a", 1))},
		{"a probe of what cannot be probed", append(slices.Clone(once), evProbe("a", 2))},
		{"absent without a probe", append(slices.Clone(once), evEnd("a", endAbsent))},
		{"attempt skips", append(slices.Clone(planned), evPolicy("a", tools.Allow), evStart("a", 2, tools.ReadOnly))},
		{"result twice", append(slices.Clone(once), evEnd("a", endOK), evEnd("a", endOK))},
		{"ok without a start", append(slices.Clone(planned), evPolicy("a", tools.Deny), evEnd("a", endOK))},
		{"result nobody knows", append(slices.Clone(once), evEnd("a", "fine"))},
		{"cancelled without a request", append(slices.Clone(once), evEnd("a", endCancelled))},
		{"decided by another decision", append(slices.Clone(planned), evPolicy("a", tools.Ask), evAsked("a", "d", decisionApproval), evDecided("a", "e", "approve"))},
		{"decided twice", append(slices.Clone(planned), evPolicy("a", tools.Ask), evAsked("a", "d", decisionApproval), evDecided("a", "d", "approve"), evDecided("a", "d", "reject"))},
		{"verb of another kind", append(slices.Clone(planned), evPolicy("a", tools.Ask), evAsked("a", "d", decisionApproval), evDecided("a", "d", "happened"))},
		{"asked as unknown", append(slices.Clone(planned), evPolicy("a", tools.Ask), evAsked("a", "d", decisionUnknown))},
		{"done with a call open", append(slices.Clone(planned), evFinished(Done))},
		{"done while the model thinks", begun(evFinished(Done))},
		{"done after cancel", begun(evReply(1, providertest.Say("x")), evCancel(), evFinished(Done))},
		{"cancelled by nobody", begun(evFinished(Cancelled))},
		{"finished as running", begun(evFinished(Working))},
		{"after the end", begun(evFinished(Failed), evMail(2))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			legal, err := Fold(tt.events[:len(tt.events)-1])
			if err != nil {
				t.Fatalf("the journal before it: %v", err)
			}
			before := fmt.Sprintf("%+v", legal)
			var je *JournalError
			if err := legal.Apply(tt.events[len(tt.events)-1]); !errors.As(err, &je) {
				t.Fatalf("Apply = %v, want a JournalError", err)
			}
			if after := fmt.Sprintf("%+v", legal); after != before {
				t.Errorf("the state changed:\n%s\n%s", before, after)
			}
		})
	}
}

// randomJournal grows a journal by events of which many are illegal; those are
// refused. visit sees every prefix.
func randomJournal(r *rand.Rand, visit func(State)) []Event {
	var s State
	window := []int{0, 2000, defaultWindow}[r.IntN(3)]
	var journal []Event
	ids := []string{"a", "b", "c", "d", "e", "f"}
	verbs := []string{"approve", "reject", "expire", "happened", "repeat", "stop"}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	used := 0
	for range 120 {
		id := pick(ids[:max(1, used)])
		var e Event
		switch r.IntN(19) {
		case 0:
			e = evStarted(Limits{})
			e.Started.Window = window
		case 1:
			e = evMail(mailbox.MessageID(r.IntN(4)))
		case 2, 3:
			e = evIntent(s.Intents + r.IntN(2))
		case 4:
			e = evReply(s.Intents, providertest.Say(pick([]string{"", "text", "  "})))
		case 5:
			n := r.IntN(3)
			e = evReply(s.Intents, calls(ids[min(used, 6):min(used+n, 6)]...))
		case 6:
			e = evFail(s.Intents, providers.Network, time.Unix(1, 0))
		case 7:
			e = evPolicy(id, []tools.Rule{tools.Allow, tools.Ask, tools.Deny, tools.Invalid}[r.IntN(4)])
		case 8:
			e = evAsked(id, "d"+id, pick([]string{decisionApproval, decisionUnknown}))
		case 9:
			e = evDecided(id, "d"+id, pick(verbs))
		case 10:
			e = evStart(id, 1+r.IntN(3), pick2(r, tools.ReadOnly, tools.OnceOnly, tools.Reconcilable, tools.Reconcilable))
			e.ToolStart.Probe = e.ToolStart.Attempt > 1 && r.IntN(2) == 0
		case 13:
			e = evCut(s.Intents+1, s.Context.Upto+r.IntN(3), len(s.Turns)-r.IntN(2))
		case 14, 15:
			e = evCompacted(s.Intents, s.Context.Upto, pick([]string{"so far", "so far", ""}))
			if s.Context.Cut != nil {
				e.Compacted.Upto = s.Context.Cut.Upto
			}
		case 16:
			e = evFail(s.Intents, providers.ContextLength, time.Time{})
		case 11, 12:
			e = evEnd(id, pick([]string{endOK, endError, endDenied, endCancelled, endUnknown, endAbsent}))
		default:
			if r.IntN(20) == 0 {
				e = evCancel()
			} else if r.IntN(20) == 0 {
				e = evFinished(pick2(r, Done, Failed, Cancelled))
			}
		}
		if s.Apply(e) != nil {
			continue
		}
		if e.Reply != nil {
			used = min(6, used+len(callsOf(e.Reply.Reply.Message)))
		}
		journal = append(journal, e)
		visit(s)
	}
	return journal
}

func pick2[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func TestEveryPrefixHasANextAndAProjection(t *testing.T) {
	t.Parallel()
	kinds, compacted := map[Do]int{}, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		var told talk
		journal := randomJournal(r, func(s State) {
			checkPrefix(t, s)
			checkTold(t, s, &told)
			compacted += min(s.Context.Upto, 1)
			kinds[Next(s).Do]++
			s.Age(9)
			checkPrefix(t, s)
			kinds[Next(s).Do]++
		})
		// The encoding keeps the meaning.
		var again State
		for _, e := range journal {
			e, err := decodeEvent(encodeEvent(e))
			if err == nil {
				err = again.Apply(e)
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if one, two := mustJSON(fold(t, journal)), mustJSON(again); string(one) != string(two) {
			t.Fatalf("seed %d:\n%s\n%s", seed, one, two)
		}
	}
	for _, do := range []Do{DoNothing, DoStep, DoCall, DoBusy, DoWait, DoFinish, DoFail, DoEnd, DoCompact} {
		if kinds[do] == 0 {
			t.Errorf("no prefix led to %s", do)
		}
	}
	if compacted < 500 {
		t.Errorf("only %d prefixes have a compaction", compacted)
	}
}

func checkPrefix(t *testing.T, s State) {
	t.Helper()
	act := Next(s)
	if act.Do == "" {
		t.Fatalf("no next action for %+v", s)
	}
	for _, list := range [][]string{act.Plan, act.Settle, act.Ask, act.Start, act.Probe, act.Unsure} {
		if act.Do == DoStep {
			break
		}
		if len(list) > 0 {
			t.Fatalf("%s with a list: %+v", act.Do, act)
		}
	}
	req := projection{State: s, Inputs: map[mailbox.MessageID][]providers.Part{
		1: {{Kind: providers.Text, Text: "one", Login: true}}, 2: {{Kind: providers.Text, Text: " "}},
	}}.request()
	if err := checkPairs(req); err != nil {
		t.Fatalf("%v\nof %s", err, mustJSON(s))
	}
	if act.Do == DoCall && len(req.Messages) > 0 && lastStop(s) != providers.StopPause {
		req.Tools = nil
		if err := providertest.Validate(req); err != nil && !strings.Contains(err.Error(), "last message is from the assistant") {
			t.Fatalf("%v\nof %s", err, mustJSON(req))
		}
	}
}

func lastStop(s State) providers.Stop {
	if i := s.lastReply(); i >= 0 {
		return s.Turns[i].Reply.Reply.Stop
	}
	return ""
}

func TestUnknownEventVersionIsAnError(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{nil, {9, '{', '}'}, {eventVersion, 'x'}} {
		if _, err := decodeEvent(b); err == nil {
			t.Errorf("decodeEvent(%q) took it", b)
		}
	}
}

func TestOutOverlay(t *testing.T) {
	t.Parallel()
	s := State{Out: []OutChange{
		{Name: "a", Blob: mailbox.Blob{ID: "1"}}, {Name: "b", Blob: mailbox.Blob{ID: "2"}},
		{Name: "a", Blob: mailbox.Blob{ID: "3"}}, {Name: "b", Deleted: true}, {Name: "c", Deleted: true},
	}}
	got := s.Files()
	if len(got) != 1 || got[0].Name != "a" || got[0].Blob.ID != "3" {
		t.Errorf("Files = %+v", got)
	}
}

func TestCanonicalArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{`{}`, `{}`},
		{` { "b" : 1 , "a" : [ true , null , "x" ] } `, `{"a":[true,null,"x"],"b":1}`},
		{`{"n":1.0,"m":1e21,"k":0.0000001,"j":-0,"i":12345678901234567890,"h":1.5e3}`,
			`{"h":1500,"i":12345678901234567890,"j":0,"k":1e-7,"m":1e+21,"n":1}`},
		{`{"s":"é\u00e9\u0001\n\"\\/<"}`, `{"s":"éé\u0001\n\"\\/<"}`},
		{`{"\ud83d\ude00":1,"\ufb33":2,"1":3,"\r":4}`, `{"\r":4,"1":3,"😀":1,"` + "\ufb33" + `":2}`},
	} {
		got, err := canonical(json.RawMessage(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("canonical(%s) = %s, %v; want %s", tt.in, got, err, tt.want)
			continue
		}
		again, err := canonical(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("canonical(%s) is not stable: %s, %v", got, again, err)
		}
	}
	for _, bad := range []string{``, `[]`, `1`, `null`, `{"a":1}{}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":`, `{"a":1e999}`, strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 300)} {
		if got, err := canonical(json.RawMessage(bad)); err == nil {
			t.Errorf("canonical(%.40s) = %s", bad, got)
		}
	}
}

func TestLongResultsKeepBothEnds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", maxResult)
	got := headTail("head" + long + "tail")
	if len(got) > maxResult || !strings.HasPrefix(got, "head") || !strings.HasSuffix(got, "tail") || plain(got) != got {
		t.Errorf("headTail gives %d bytes, %.20q … %q", len(got), got, got[len(got)-20:])
	}
	if headTail("short") != "short" {
		t.Error("a short text was changed")
	}
}

func TestReplyGoesBackRawOnlyToItsOrigin(t *testing.T) {
	t.Parallel()
	turn := providertest.Say("hello")
	origin := providers.Origin{Provider: "p", Endpoint: "e", Model: "m"}
	turn.Reply.Message.Raw, turn.Reply.Message.From = json.RawMessage(`{"sig":1}`), &origin
	turn.Reply.Message.Parts = append(turn.Reply.Message.Parts, providers.Part{Kind: providers.Reasoning, Text: "hm"})
	s := fold(t, begun(evReply(1, turn), evMail(2)))
	for _, tt := range []struct {
		info providers.Info
		raw  bool
	}{
		{providers.Info{Provider: "p", Endpoint: "e", Model: "m"}, true},
		{providers.Info{Provider: "p", Endpoint: "e", Model: "other"}, false},
	} {
		req := projection{State: s, Info: tt.info, Inputs: map[mailbox.MessageID][]providers.Part{1: {{Kind: providers.Text, Text: "x"}}}}.request()
		if m := req.Messages[1]; (m.Raw != nil) != tt.raw || (len(m.Parts) == 2) != tt.raw {
			t.Errorf("%+v: %+v", tt.info, m)
		}
	}
}

func TestCheckPairsRefuses(t *testing.T) {
	t.Parallel()
	user := providers.Message{Role: providers.User, Parts: []providers.Part{{Kind: providers.Text, Text: "x"}}}
	asks := calls("a", "b").Reply.Message
	res := results([]Call{{ToolCall: providers.ToolCall{ID: "a"}}, {ToolCall: providers.ToolCall{ID: "b"}}}, maxResult, false)
	short := results([]Call{{ToolCall: providers.ToolCall{ID: "a"}}}, maxResult, false)
	swapped := results([]Call{{ToolCall: providers.ToolCall{ID: "b"}}, {ToolCall: providers.ToolCall{ID: "a"}}}, maxResult, false)
	for name, ms := range map[string][]providers.Message{
		"assistant first": {asks, res}, "no result": {user, asks}, "user instead of results": {user, asks, user},
		"one result short": {user, asks, short}, "swapped": {user, asks, swapped}, "orphan": {user, res},
		"twice user": {user, user}, "same ids again": {user, asks, res, asks, res},
	} {
		if checkPairs(providers.Request{Messages: ms}) == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := checkPairs(providers.Request{Messages: []providers.Message{user, asks, res}}); err != nil {
		t.Error(err)
	}
}
