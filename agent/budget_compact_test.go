package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"pizza/providers"
)

// What a compaction took out is not reserved for the next call.
func TestReserveAfterCompaction(t *testing.T) {
	t.Parallel()
	reply := func(id string, input int) *providers.Reply {
		call := &providers.ToolCall{ID: id, Name: "x", Args: json.RawMessage(`{}`)}
		return &providers.Reply{Stop: providers.StopTools, Usage: providers.Usage{Input: input, Output: 100},
			Message: providers.Message{Role: providers.Assistant, Parts: []providers.Part{{Kind: providers.Call, Call: call}}}}
	}
	events := []Event{
		{Started: &EvStarted{Model: "m", Limits: Limits{Tokens: 1 << 20}, Window: 20_000}},
		{Inbound: &Inbound{Subject: "s", Size: 100}},
	}
	for i, id := range []string{"a", "b"} {
		events = append(events,
			Event{Intent: &EvIntent{N: i + 1}}, Event{Reply: &EvReply{N: i + 1, Reply: *reply(id, 1000+9000*i), Sent: 4000 + 36_000*i}},
			Event{Policy: &EvPolicy{Call: id, Rule: "allow"}}, Event{ToolStart: &EvToolStart{Call: id, Attempt: 1, Class: "read-only"}},
			Event{ToolEnd: &EvToolEnd{Call: id, Status: endOK, Content: strings.Repeat("x ", 8_000)}})
	}
	s, err := Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	before := s.estimate().Input
	for _, e := range []Event{
		{Intent: &EvIntent{N: 3, Cut: &Cut{Upto: 2, Goal: 2}}},
		{Compacted: &EvCompacted{N: 3, Upto: 2, Summary: "short", Usage: providers.Usage{Input: 5000, Output: 10}}},
	} {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	after := s.estimate()
	if want := int64(s.Context.estimate()); after.Input != want || after.Input >= before || after.Output != outputReserve {
		t.Errorf("reserves %+v after a compaction to %d tokens, %d before", after, want, before)
	}
}
