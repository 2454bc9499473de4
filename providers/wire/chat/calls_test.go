package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// feed adds chunks, each a JSON list of tool_calls, and shows the calls.
func feed(t *testing.T, cut bool, chunks ...string) string {
	t.Helper()
	var cs calls
	for _, c := range chunks {
		var ds []callDelta
		if err := json.Unmarshal([]byte(c), &ds); err != nil {
			t.Fatal(err)
		}
		cs.add(ds)
	}
	var out []string
	for _, c := range cs.finish(cut) {
		s := fmt.Sprintf("%s %s%s", c.ID, c.Name, c.Args)
		if c.Bad != "" {
			s += " bad"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		cut    bool
		chunks []string
		want   string
	}{
		{"pieces by index", false, []string{
			`[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`, `[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\""}}]`,
			`[{"index":0,"function":{"arguments":"{}"}}]`, `[{"index":1,"function":{"arguments":":1}"}}]`}, `a f{}; b g{"x":1}`},
		{"no index, by id", false, []string{
			`[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`, `[{"id":"b","function":{"name":"g","arguments":"{}"}}]`, `[{"id":"a","function":{"arguments":":1}"}}]`}, `a f{"x":1}; b g{}`},
		{"no index, no id", false, []string{`[{"function":{"name":"f","arguments":"{\"x\""}}]`, `[{"function":{"arguments":":1}"}}]`, `[{"function":{"name":"g","arguments":"{}"}}]`}, ` f{"x":1};  g{}`},
		{"no index, same tool twice", false, []string{`[{"function":{"name":"f","arguments":"{}"}}]`, `[{"function":{"name":"f","arguments":"{}"}}]`}, ` f{};  f{}`},
		{"no index, two in a chunk, then by place", false, []string{`[{"function":{"name":"f"}},{"function":{"name":"g"}}]`, `[{"function":{"arguments":"{\"a\":1}"}},{"function":{"arguments":"{\"b\":1}"}}]`}, ` f{"a":1};  g{"b":1}`},
		{"index null", false, []string{`[{"index":null,"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"index":null,"id":"b","function":{"name":"g","arguments":"{}"}}]`}, "a f{}; b g{}"},
		{"every index 0", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]`}, "a f{}; b g{}"},
		{"every index 0, no ids", false, []string{`[{"index":0,"function":{"name":"f","arguments":"{}"}}]`, `[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]`}, ` f{};  f{"x":1}`},
		{"same id twice, no index", false, []string{`[{"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"id":"a","function":{"name":"f","arguments":"{}"}}]`}, "a f{}; a f{}"},
		{"name in every piece", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`, `[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]`}, "a f{}"},
		{"new id in every piece", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`, `[{"index":0,"id":"b","function":{"arguments":"}"}}]`}, "a f{}"},
		{"arguments empty, null, missing", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"f","arguments":null}},{"index":2,"id":"c","function":{"name":"f"}}]`}, "a f{}; b f{}; c f{}"},
		{"arguments an object", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":12345678901234567890}}},{"index":1,"id":"b","function":{"name":"f","arguments":{}}}]`}, `a f{"x":12345678901234567890}; b f{}`},
		{"object within a string", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"\"{\\\"x\\\":1}\""}}]`}, `a f{"x":1}`},
		{"wrapped twice", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"\"\\\"{}\\\"\""}}]`}, "a f{} bad"},
		{"a list", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}}]`}, "a f{} bad"},
		{"a number", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":7}}]`}, "a f{} bad"},
		{"no JSON", false, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{'x'}"}}]`}, "a f{} bad"},
		{"cut", true, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":\"y"}}]`}, "a f{}; b g{} bad"},
		{"cut before the arguments", true, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`}, "a f{} bad"},
		{"cut after the arguments", true, []string{`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]`}, `a f{"x":1}`},
		{"no name", false, []string{`[{"index":0,"id":"a","function":{"arguments":"{}"}}]`}, "a unnamed{} bad"},
	} {
		if got := feed(t, tt.cut, tt.chunks...); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestReasoningDetails(t *testing.T) {
	t.Parallel()
	var ds details
	for _, f := range []string{
		`{"type":"reasoning.text","index":0,"format":"anthropic-claude-v1","text":"let "}`,
		`{"type":"reasoning.text","index":0,"text":"me see <b>"}`,
		`{"type":"reasoning.text","index":0,"text":"","signature":"SIG+/="}`,
		`{"type":"reasoning.encrypted","index":1,"id":"r1","data":"AAA"}`,
		`{"type":"reasoning.encrypted","index":1,"id":"r2","data":"BBB"}`,
		`null`, `[]`,
	} {
		ds.add(json.RawMessage(f))
	}
	got := string(encode(ds.merged()))
	want := `[{"type":"reasoning.text","index":0,"format":"anthropic-claude-v1","text":"let me see <b>","signature":"SIG+/="},` +
		`{"type":"reasoning.encrypted","index":1,"id":"r1","data":"AAA"},{"type":"reasoning.encrypted","index":1,"id":"r2","data":"BBB"}]`
	if got != want || ds.text() != "let me see <b>" {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		message, sent string
		want          quirks
		ok            bool
	}{
		{"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", `{"max_tokens":5}`, quirks{completionTokens: true}, true},
		{"Unrecognized request argument supplied: max_completion_tokens", `{"max_completion_tokens":5}`, quirks{}, true},
		{"max_tokens is too large: 5. This model supports at most 4 completion tokens", `{"max_tokens":5}`, quirks{}, false},
		{"Unsupported parameter: max_tokens", `{"model":"x"}`, quirks{}, false},
		{"stream_options: Extra inputs are not permitted", `{"stream_options":{}}`, quirks{noStreamOptions: true}, true},
		{"tool_choice: only auto is supported", `{"tool_choice":"required"}`, quirks{noToolChoice: true}, true},
		{"property 'reasoning_content' is unsupported", `{"reasoning_content":"x"}`, quirks{noReasoning: true}, true},
		{"something else is not supported", `{"max_tokens":5}`, quirks{}, false},
	} {
		got, ok := quirks{}.learn(failure(tt.message), []byte(tt.sent))
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: %+v, %t; want %+v, %t", tt.message, got, ok, tt.want, tt.ok)
		}
	}
}
