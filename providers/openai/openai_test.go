package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pizza/providers"
	pt "pizza/providers/providertest"
)

var listTool = providers.ToolSpec{Name: "list_folder", Description: "lists", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}

func says(role providers.Role, text string) providers.Message {
	return providers.Message{Role: role, Parts: []providers.Part{{Kind: providers.Text, Text: text}}}
}

func results(rs ...providers.ToolResult) providers.Message {
	m := providers.Message{Role: providers.Tool}
	for i := range rs {
		m.Parts = append(m.Parts, providers.Part{Kind: providers.ResultPart, Result: &rs[i]})
	}
	return m
}

func ask(ms ...providers.Message) providers.Request {
	return providers.Request{System: "Be brief.", Tools: []providers.ToolSpec{listTool}, Messages: ms}
}

const key = "top-secret-key-0123456789"

// start gives a model on a scripted server.
func start(t *testing.T, change func(*Config), turns ...pt.ChatTurn) (*Model, *pt.ChatServer) {
	t.Helper()
	s := pt.NewChat(turns...)
	s.Key = key
	t.Cleanup(s.Close)
	cfg := Config{BaseURL: s.URL, Model: "test-1", Key: func() (string, error) { return key, nil }}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

func answer(a pt.Answer) pt.ChatTurn { return pt.ChatTurn{Answer: a} }

func complete(t *testing.T, m *Model, req providers.Request) providers.Reply {
	t.Helper()
	r, err := m.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shown is a reply in one line.
func shown(r providers.Reply) string {
	s := string(r.Stop)
	for _, p := range r.Message.Parts {
		switch p.Kind {
		case providers.Call:
			s += fmt.Sprintf(" %s%s", p.Call.Name, p.Call.Args)
			if p.Call.Bad != "" {
				s += "!"
			}
		default:
			s += fmt.Sprintf(" %s=%q", p.Kind, p.Text)
		}
	}
	return s
}

func TestReplies(t *testing.T) {
	t.Parallel()
	hello := pt.SSE(pt.Delta(`"role":"assistant","content":""`), pt.Text("Hällo, "), pt.Text("Wörld 😀"), pt.Finish("stop"), pt.Tokens(11, 7), pt.Done)
	for _, tt := range []struct {
		name   string
		answer pt.Answer
		want   string
	}{
		{"text", hello, `end text="Hällo, Wörld 😀"`},
		{"CRLF", hello.CRLF(), `end text="Hällo, Wörld 😀"`},
		{"split characters", hello.Split(3), `end text="Hällo, Wörld 😀"`},
		{"comments", pt.SSE(": OPENROUTER PROCESSING", "", pt.Text("a"), ": ping", "", pt.Finish("stop")), `end text="a"`},
		{"no DONE, no usage", pt.SSE(pt.Text("a"), pt.Finish("stop")), `end text="a"`},
		{"error null", pt.SSE(`{"error":null,"choices":[{"delta":{"content":"a"}}]}`, pt.Finish("stop")), `end text="a"`},
		{"empty choices", pt.SSE(`{"choices":[]}`, `{"choices":null}`, pt.Text("a"), pt.Finish("stop"), pt.Tokens(1, 1)), `end text="a"`},
		{"changing chunk ids", pt.SSE(`{"id":"1","choices":[{"delta":{"content":"a"}}]}`, `{"id":"2","choices":[{"delta":{"content":"b"}}]}`, pt.Finish("stop")), `end text="ab"`},
		{"finish with the last piece", pt.SSE(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`), `end text="a"`},
		{"other choice is left", pt.SSE(pt.Text("a"), `{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}`, pt.Finish("stop")), `end text="a"`},
		{"content parts", pt.SSE(pt.Delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]`), pt.Finish("stop")), `end reasoning="hm" text="a"`},
		{"reasoning_content", pt.SSE(pt.Delta(`"reasoning_content":"let me "`), pt.Delta(`"reasoning_content":"see","content":null`), pt.Text("a"), pt.Finish("stop")), `end reasoning="let me see" text="a"`},
		{"reasoning", pt.SSE(pt.Delta(`"reasoning":"let me see"`), pt.Text("a"), pt.Finish("stop")), `end reasoning="let me see" text="a"`},
		{"call", pt.SSE(pt.ToolDelta(0, "a", "list_folder", ""), pt.ToolDelta(0, "", "", `{"path":`), pt.ToolDelta(0, "", "", `"/"}`), pt.Finish("tool_calls")), `tools list_folder{"path":"/"}`},
		{"parallel calls", pt.SSE(pt.Text("I look."), pt.ToolDelta(0, "a", "list_folder", ""), pt.ToolDelta(1, "b", "list_folder", `{"path":"/in"}`), pt.ToolDelta(0, "", "", `{}`), pt.Finish("tool_calls")), `tools text="I look." list_folder{} list_folder{"path":"/in"}`},
		{"stop with calls", pt.SSE(pt.ToolDelta(0, "a", "list_folder", ""), pt.Finish("stop")), `tools list_folder{}`},
		{"call cut by length", pt.SSE(pt.ToolDelta(0, "a", "list_folder", `{"path":"/lo`), pt.Finish("length")), `length list_folder{}!`},
		{"text cut by length", pt.SSE(pt.Text("Once"), pt.Finish("length")), `length text="Once"`},
		{"filter", pt.SSE(pt.Text("Once"), pt.Finish("content_filter")), `filter text="Once"`},
		{"refusal", pt.SSE(pt.Delta(`"refusal":"I will not."`), pt.Finish("stop")), `filter text="I will not."`},
		{"not streamed", pt.JSON(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"q","type":"function","function":{"name":"list_folder","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}`), `tools text="a" list_folder{}`},
		{"old function_call", pt.SSE(pt.Delta(`"function_call":{"name":"list_folder","arguments":""}`), pt.Delta(`"function_call":{"arguments":"{}"}`), pt.Finish("function_call")), `tools list_folder{}`},
		{"wrong content type", pt.Answer{Header: http.Header{"Content-Type": {"text/plain"}}, Body: pt.SSE(pt.Text("a"), pt.Finish("stop")).Body}, `end text="a"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, s := start(t, nil, answer(tt.answer))
			r := complete(t, m, ask(says(providers.User, "hi")))
			if got := shown(r); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if err := s.Err(); err != nil {
				t.Error(err)
			}
			if r.Message.Role != providers.Assistant || *r.Message.From != (providers.Origin{Provider: "openai", Endpoint: s.URL, Model: "test-1"}) || r.Took <= 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	m, _ := start(t, nil, answer(pt.SSE(pt.Text("a"), pt.Finish("stop"),
		`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":5},"cost":0.25}}`, pt.Done)))
	r := complete(t, m, ask(says(providers.User, "hi")))
	if want := (providers.Usage{Input: 100, CacheRead: 60, Output: 20, Reasoning: 5, Cost: 0.25}); r.Usage != want {
		t.Errorf("%+v", r.Usage)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	part := pt.SSE(pt.Text("Once upon"), pt.Text(" a time"), pt.Finish("stop"), pt.Done)
	for _, tt := range []struct {
		name    string
		answer  pt.Answer
		class   providers.Class
		partial bool
		text    string
	}{
		{"cut between chunks", part.Cut(len(pt.SSE(pt.Text("Once upon")).Body)), providers.Network, true, "middle"},
		{"cut within a chunk", part.Cut(150), providers.Network, true, ""},
		{"cut before the first", part.Cut(0), providers.Network, false, ""},
		{"DONE without a finish", pt.SSE(pt.Text("a"), pt.Done), providers.Network, true, "middle"},
		{"reset", part.Reset(150), providers.Network, true, ""},
		{"reset before the first", part.Reset(0), providers.Network, false, ""},
		{"error event", pt.SSE(pt.Text("a"), "event: error", `{"error":{"type":"overloaded_error","message":"Overloaded"}}`), providers.Overloaded, true, "Overloaded"},
		{"error in a chunk", pt.SSE(pt.Text("a"), `{"error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), providers.Overloaded, true, "disconnected"},
		{"rate limit in a chunk", pt.SSE(`{"error":{"code":429,"message":"slow down"}}`), providers.RateLimit, false, ""},
		{"error in a choice", pt.SSE(`{"choices":[{"error":{"code":504,"message":"upstream"}}]}`), providers.Timeout, false, ""},
		{"finish error", pt.SSE(pt.Text("a"), pt.Finish("error")), providers.Overloaded, true, ""},
		{"finish unknown", pt.SSE(pt.Text("a"), pt.Finish("mystery")), providers.Failed, true, "mystery"},
		{"200 with an error", pt.JSON(`{"error":{"code":503,"message":"No provider"}}`), providers.Overloaded, false, "No provider"},
		{"200 with an error text", pt.JSON(`{"error":"model is too big"}`), providers.Overloaded, false, "too big"},
		{"200 with something else", pt.JSON(`{"hello":"world"}`), providers.Overloaded, false, "no choices"},
		{"200 with a web page", pt.Answer{Body: []byte("<!DOCTYPE html><title>Welcome</title>")}, providers.Invalid, false, "base URL"},
		{"200 with nothing", pt.JSON(""), providers.Invalid, false, ""},
		{"no JSON in the stream", pt.SSE("hello"), providers.Network, false, ""},
		{"empty reply", pt.SSE(pt.Finish("stop"), pt.Done), providers.Overloaded, false, "empty"},
		{"429", pt.Status(429, "7", `{"error":{"message":"Rate limit"}}`), providers.RateLimit, false, "Rate limit"},
		{"503", pt.Status(503, "", "busy"), providers.Overloaded, false, "busy"},
		{"529", pt.Status(529, "", `{"error":{"message":"Overloaded"}}`), providers.Overloaded, false, "Overloaded"},
		{"404", pt.Status(404, "", `{"error":{"message":"The model test-1 does not exist","code":"model_not_found"}}`), providers.Invalid, false, "does not exist"},
		{"context", pt.Status(400, "", `{"error":{"message":"too long","code":"context_length_exceeded"}}`), providers.ContextLength, false, ""},
		{"redirect", pt.Answer{Code: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, providers.Invalid, false, "redirect"},
		{"echoed key", pt.Status(500, "", `{"error":{"message":"bad header Bearer `+key+` and `+key+`"}}`), providers.Overloaded, false, "[key]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, s := start(t, nil, answer(tt.answer))
			_, err := m.Complete(t.Context(), ask(says(providers.User, "hi")))
			var pe *providers.Error
			if !errors.As(err, &pe) || pe.Class != tt.class || pe.Partial != tt.partial || !strings.Contains(pe.Message, tt.text) {
				t.Errorf("got %+v, want %s, partial %t, %q", err, tt.class, tt.partial, tt.text)
			}
			if strings.Contains(fmt.Sprintf("%v %+v", err, pe), key) {
				t.Errorf("the error tells the key: %v", err)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests: an adapter does not retry", n)
			}
			if tt.name == "429" && pe.RetryAfter != 7*time.Second {
				t.Errorf("retry after %v", pe.RetryAfter)
			}
		})
	}
}

func TestAuth(t *testing.T) {
	t.Parallel()
	var pe *providers.Error
	wrong := "wrong-key-abcdefgh"
	m, s := start(t, func(c *Config) { c.Key = func() (string, error) { return wrong + "\n", nil } }, answer(pt.Answer{}))
	if _, err := m.Complete(t.Context(), ask(says(providers.User, "hi"))); !errors.As(err, &pe) || pe.Class != providers.Auth || pe.Status != 401 || strings.Contains(err.Error(), wrong) {
		t.Errorf("wrong key: %v", err)
	}
	if got := s.Requests()[0].Header.Get("Authorization"); got != "Bearer "+wrong {
		t.Errorf("sent %q", got)
	}
	for name, k := range map[string]func() (string, error){
		"no keyring":  func() (string, error) { return "", errors.New("the keyring is locked") },
		"line in key": func() (string, error) { return "a\r\nX-Evil: 1", nil },
	} {
		m, s := start(t, func(c *Config) { c.Key = k }, answer(pt.Answer{}))
		if _, err := m.Complete(t.Context(), ask(says(providers.User, "hi"))); !errors.As(err, &pe) || pe.Class != providers.Auth || len(s.Requests()) != 0 || strings.Contains(err.Error(), "Evil") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The key goes to the base URL only: a redirect is not followed.
func TestKeyStaysHome(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(other.Close)
	m, _ := start(t, func(c *Config) { c.HTTP = &http.Client{} }, answer(pt.Answer{Code: 302, Header: http.Header{"Location": {other.URL}}}))
	if _, err := m.Complete(t.Context(), ask(says(providers.User, "hi"))); err == nil {
		t.Error("no error")
	}
}

// No variable of the environment changes where a call goes or what it carries.
func TestEnvironmentIsNotRead(t *testing.T) {
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a trap was called") }))
	defer trap.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "OPENAI_BASE_URL", "OPENAI_API_BASE"} {
		t.Setenv(name, trap.URL)
	}
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("NO_PROXY", "")
	s := pt.NewChat(answer(pt.SSE(pt.Text("a"), pt.Finish("stop"))))
	defer s.Close()
	m, err := New(Config{BaseURL: s.URL, Model: "x"})
	if err != nil {
		t.Fatal(err)
	}
	complete(t, m, ask(says(providers.User, "hi")))
	if got := s.Requests()[0].Header.Get("Authorization"); got != "" {
		t.Errorf("Authorization %q", got)
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	part := pt.SSE(pt.Text("Once"), pt.Finish("stop"))
	short := func(c *Config) { c.Idle, c.First = 50*time.Millisecond, 50*time.Millisecond }
	var pe *providers.Error
	for name, a := range map[string]pt.Answer{"in the middle": part.Stall(120), "before the first byte": part.Stall(0)} {
		m, _ := start(t, short, answer(a))
		if _, err := m.Complete(t.Context(), ask(says(providers.User, "hi"))); !errors.As(err, &pe) || pe.Class != providers.Timeout {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m, s := start(t, nil, pt.ChatTurn{
		Check:  func(pt.ChatRequest) error { cancel(); return nil },
		Answer: pt.SSE(pt.Text("Once")).Stall(0),
	})
	if _, err := m.Complete(ctx, ask(says(providers.User, "hi"))); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := m.Complete(ctx, ask(says(providers.User, "hi"))); !errors.Is(err, context.Canceled) || len(s.Requests()) != 1 {
		t.Errorf("a call with an ended context: %v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	dead, err := New(Config{BaseURL: gone.URL, Model: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var pe *providers.Error
	if _, err := dead.Complete(t.Context(), ask(says(providers.User, "hi"))); !errors.As(err, &pe) || pe.Class != providers.Network || pe.Partial || !strings.HasPrefix(pe.Message, "cannot connect to "+strings.TrimPrefix(gone.URL, "http://")+": ") {
		t.Errorf("no server: %v", err)
	}
}

// A tool loop: what the model said goes back to it as it came, with its reasoning.
func TestLoop(t *testing.T) {
	t.Parallel()
	check := func(r pt.ChatRequest) error {
		a := r.Messages[2]
		switch {
		case string(a.ReasoningDetails) != `[{"type":"reasoning.text","index":0,"text":"let me see","signature":"SIG"}]`:
			return fmt.Errorf("reasoning_details %s", a.ReasoningDetails)
		case len(a.ToolCalls) != 2 || a.ToolCalls[0].ID != "a" || a.ToolCalls[1].ID == "a" || a.ToolCalls[1].Function.Arguments != "{}":
			return fmt.Errorf("calls %+v", a.ToolCalls)
		case r.Messages[3].Text() != "in out" || r.Messages[4].Text() != "Error: no such folder":
			return fmt.Errorf("results %+v", r.Messages[3:])
		}
		return nil
	}
	m, s := start(t, nil,
		answer(pt.SSE(pt.Delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"let "}]`), pt.Delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"me see","signature":null}]`),
			pt.Delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"SIG"}]`),
			pt.ToolDelta(0, "a", "list_folder", `{"path":"/"}`), pt.ToolDelta(1, "a", "list_folder", ""), pt.Finish("tool_calls"))),
		pt.ChatTurn{Check: check, Answer: pt.SSE(pt.ToolDelta(0, "a", "list_folder", ""), pt.Finish("tool_calls"))},
		pt.ChatTurn{Answer: pt.SSE(pt.Text("done"), pt.Finish("stop"))},
	)
	req := ask(says(providers.User, "hi"))
	r := complete(t, m, req)
	one, two := r.Message.Parts[1].Call, r.Message.Parts[2].Call
	// The results come in the wrong order; they go out in the right one.
	req.Messages = append(req.Messages, r.Message, results(providers.ToolResult{ID: two.ID, Content: "no such folder", Error: true}, providers.ToolResult{ID: one.ID, Content: "in out"}))
	r = complete(t, m, req)
	three := r.Message.Parts[0].Call
	if three.ID == one.ID || three.ID == two.ID {
		t.Errorf("id %s is not unique in the thread", three.ID)
	}
	req.Messages = append(req.Messages, r.Message, results(providers.ToolResult{ID: three.ID}))
	if got := shown(complete(t, m, req)); got != `end text="done"` {
		t.Error(got)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// History of another model: its raw content stays out, its ids and names are made
// legal alike in call and result, an orphaned call is answered.
func TestForeignHistory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("mcp__server__", 10) + "tool"
	var sent pt.ChatRequest
	m, s := start(t, nil, pt.ChatTurn{
		Check:  func(r pt.ChatRequest) error { sent = r; return nil },
		Answer: pt.SSE(pt.ToolDelta(0, "x", "PLACEHOLDER", ""), pt.Finish("tool_calls")),
	})
	call := func(id, name string) providers.Part {
		return providers.Part{Kind: providers.Call, Call: &providers.ToolCall{ID: id, Name: name, Args: json.RawMessage(`{"n":12345678901234567890}`)}}
	}
	turn := providers.Message{
		Role: providers.Assistant, From: &providers.Origin{Provider: "anthropic", Model: "x"}, Raw: json.RawMessage(`{"role":"assistant","content":"RAW","signature":"FOREIGN"}`),
		Parts: []providers.Part{{Kind: providers.Reasoning, Text: "SECRET THOUGHT"}, {Kind: providers.Text, Text: "I look. \n"}, call("functions.x:0", long), call("lost", "list_folder")},
	}
	req := ask(says(providers.User, "hi\x00"), turn, results(
		providers.ToolResult{ID: "functions.x:0", Name: long, Content: "see", Media: []providers.Part{{Kind: providers.Image, Media: "image/gif", Data: []byte("\x89PNG\r\n\x1a\n0000")}}},
		providers.ToolResult{ID: "nobody", Content: "x"}), says(providers.User, "and?"))
	req.Tools = append(req.Tools, providers.ToolSpec{Name: long, Schema: json.RawMessage(`{}`)})
	complete(t, m, req)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{"RAW", "FOREIGN", "THOUGHT", "nobody", "lost\\u"} {
		if strings.Contains(string(sent.Body), foreign) {
			t.Errorf("%s was sent", foreign)
		}
	}
	a := sent.Messages[2]
	if a.Text() != "I look." || a.ToolCalls[0].ID != sent.Messages[3].ToolCallID || a.ToolCalls[0].Function.Arguments != `{"n":12345678901234567890}` {
		t.Errorf("%+v", a)
	}
	if a.ToolCalls[0].Function.Name != sent.Tools[1].Function.Name {
		t.Errorf("called %s, declared %s", a.ToolCalls[0].Function.Name, sent.Tools[1].Function.Name)
	}
	if !strings.Contains(sent.Messages[4].Text(), "may or may not have run") {
		t.Errorf("%+v", sent.Messages[4])
	}
	last := string(sent.Messages[5].Content)
	if len(sent.Messages) != 6 || !strings.Contains(last, "data:image/png;base64,") || !strings.Contains(last, "and?") {
		t.Errorf("media of a result: %s", last)
	}
}

// A name that had to be changed for the wire comes back as it was declared.
func TestNamesComeBack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 100)
	spec := providers.ToolSpec{Name: long, Schema: listTool.Schema}
	probe, s := start(t, nil, answer(pt.SSE(pt.Text("a"), pt.Finish("stop"))))
	req := providers.Request{Tools: []providers.ToolSpec{spec}, Messages: []providers.Message{says(providers.User, "hi")}}
	complete(t, probe, req)
	wireName := s.Requests()[0].Tools[0].Function.Name
	m, _ := start(t, nil, answer(pt.SSE(pt.ToolDelta(0, "a", wireName, ""), pt.Finish("tool_calls"))))
	if got := complete(t, m, req).Message.Parts[0].Call.Name; got != long {
		t.Errorf("got %s", got)
	}
}

func TestUserParts(t *testing.T) {
	t.Parallel()
	var sent pt.ChatRequest
	m, s := start(t, nil, pt.ChatTurn{Check: func(r pt.ChatRequest) error { sent = r; return nil }, Answer: pt.SSE(pt.Text("a"), pt.Finish("stop"))})
	req := ask(providers.Message{Role: providers.User, Parts: []providers.Part{
		{Kind: providers.Text, Text: " "}, {Kind: providers.Text, Text: "look"},
		{Kind: providers.Image, Media: "image/jpeg", Data: []byte("\xff\xd8\xff\xe0 jpeg")},
		{Kind: providers.File, Media: "application/pdf", Name: "a.pdf", Data: []byte("%PDF-1.7 x")},
		{Kind: providers.File, Media: "text/csv", Name: "a.csv", Data: []byte("a,b\n1,2")},
		{Kind: providers.File, Media: "application/zip", Name: "a.zip", Data: []byte("PK\x03\x04\xff")},
	}})
	req.Choice = providers.ToolChoice{Mode: "tool", Name: "list_folder"}
	complete(t, m, req)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	got := string(sent.Messages[1].Content)
	for _, want := range []string{`{"type":"text","text":"look"}`, `data:image/jpeg;base64,/9j/4`, `"filename":"a.pdf","file_data":"data:application/pdf;base64,`, `[file a.csv, text/csv]\na,b\n1,2`, `[file a.zip, application/zip, 5 bytes: it cannot be shown`} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s: %s", want, got)
		}
	}
	if string(sent.ToolChoice) != `{"function":{"name":"list_folder"},"type":"function"}` || sent.StreamOptions == nil || !sent.StreamOptions.IncludeUsage {
		t.Errorf("%s", sent.Body)
	}
}

// A refused optional field is learned: one more request now, none later.
func TestLearnsOnce(t *testing.T) {
	t.Parallel()
	refused := func(field string) pt.ChatTurn {
		return answer(pt.Status(400, "", `{"error":{"message":"Unsupported parameter: '`+field+`' is not supported with this model. Use another instead.","param":"`+field+`","code":"unsupported_parameter"}}`))
	}
	good := answer(pt.SSE(pt.Text("a"), pt.Finish("stop")))
	m, s := start(t, nil, refused("max_tokens"), good, good)
	req := ask(says(providers.User, "hi"))
	req.MaxTokens = 50
	complete(t, m, req)
	complete(t, m, req)
	var fields []string
	for _, r := range s.Requests() {
		fields = append(fields, fmt.Sprint(r.MaxTokens, r.MaxCompletionTokens))
	}
	if got := strings.Join(fields, ", "); got != "50 0, 0 50, 0 50" {
		t.Error(got)
	}
	m, s = start(t, nil, refused("max_tokens"), refused("max_completion_tokens"), good)
	var pe *providers.Error
	if _, err := m.Complete(t.Context(), req); !errors.As(err, &pe) || pe.Class != providers.Invalid || len(s.Requests()) != 2 {
		t.Errorf("%v after %d requests; there is no third try", err, len(s.Requests()))
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": DefaultBaseURL, "https://api.openai.com/v1/": "https://api.openai.com/v1", " https://H.example/v1/chat/completions/ ": "https://h.example/v1",
		"http://127.0.0.1:11434/v1": "http://127.0.0.1:11434/v1", "https://h": "https://h",
	} {
		if got, err := BaseURL(in); err != nil || got != want {
			t.Errorf("%q = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"api.openai.com/v1", "ftp://h/v1", "https://user:SECRET@h/v1", "https://h/v1?key=SECRET", "https://h/v1#SECRET", "https://h:SECRET/v1", "/v1"} {
		if got, err := BaseURL(in); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q = %q, %v", in, got, err)
		}
	}
	if !isOpenAI(DefaultBaseURL) || isOpenAI("https://api.openai.com.evil.example/v1") || isOpenAI("http://127.0.0.1/v1") {
		t.Error("isOpenAI")
	}
}
