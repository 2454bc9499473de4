package chat

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"pizza/providers"
	"pizza/providers/wire"
)

// chunk is an event of the stream, or a whole reply of a server that does not
// stream. Members whose type differs between servers are read by hand.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Object  string          `json:"object"`
	Message json.RawMessage `json:"message"` // of an old error form
	Detail  json.RawMessage `json:"detail"`
}

type choice struct {
	Index        int             `json:"index"`
	Delta        *delta          `json:"delta"`
	Message      *delta          `json:"message"`
	FinishReason *string         `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

type delta struct {
	Content          json.RawMessage   `json:"content"` // text, null, or parts
	Refusal          json.RawMessage   `json:"refusal"`
	ReasoningContent json.RawMessage   `json:"reasoning_content"`
	Reasoning        json.RawMessage   `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []callDelta       `json:"tool_calls"`
	FunctionCall     *functionDelta    `json:"function_call"` // the form before tool_calls
}

// assembler builds a reply from its chunks.
type assembler struct {
	redact wire.Redact
	used   map[string]bool   // call ids of the thread
	names  map[string]string // tool names as sent -> as declared

	any              bool // part of a reply has come
	text             strings.Builder
	refusal          strings.Builder
	reasoningContent strings.Builder
	reasoning        strings.Builder
	details          details
	calls            calls
	finish           string
	usage            providers.Usage
}

func newAssembler(req providers.Request, redact wire.Redact) *assembler {
	a := &assembler{redact: redact, used: map[string]bool{}, names: map[string]string{}}
	for _, t := range req.Tools {
		a.names[wire.Name(t.Name)] = t.Name
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Kind == providers.Call && p.Call != nil {
				a.used[p.Call.ID] = true
				a.used[wire.ID(p.Call.ID)] = true
			}
		}
	}
	return a
}

// event takes one event of a stream.
func (a *assembler) event(ev wire.Event) error {
	data := bytes.TrimSpace(ev.Data)
	if len(data) == 0 {
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if ev.Type == "error" {
			return wire.ParseFailure(data).Error(0, nil, a.redact)
		}
		return &providers.Error{Class: providers.Network, Message: "the stream holds something that is no chunk of a reply"}
	}
	return a.take(c, ev.Type == "error", data)
}

// whole takes a reply that was not streamed.
func (a *assembler) whole(body []byte) error {
	body = bytes.TrimSpace(body)
	var c chunk
	if err := json.Unmarshal(body, &c); err != nil {
		if len(body) > 0 && body[0] == '{' {
			return &providers.Error{Class: providers.Network, Message: "the reply is no complete JSON"}
		}
		f := wire.ParseFailure(body)
		return &providers.Error{Class: providers.Invalid, Status: 200, Message: "this is no Chat Completions server, or the base URL is wrong: " + a.redact.Clean(f.Message)}
	}
	return a.take(c, len(c.Choices) == 0, body)
}

// take adds a chunk. failed says that it must be an error whatever its form is.
func (a *assembler) take(c chunk, failed bool, data []byte) error {
	switch {
	case given(c.Error):
		return wire.FailureOf(c.Error).Error(0, nil, a.redact)
	case failed, c.Object == "error", len(c.Choices) == 0 && (given(c.Detail) || given(c.Message)):
		f := wire.ParseFailure(data)
		if f.Message == "" {
			f.Message = "the reply has no choices"
		}
		return f.Error(0, nil, a.redact)
	}
	if given(c.Usage) {
		a.usage = readUsage(c.Usage)
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // one answer was asked for
		}
		if given(ch.Error) {
			return wire.FailureOf(ch.Error).Error(0, nil, a.redact)
		}
		for _, d := range []*delta{ch.Delta, ch.Message} {
			if d != nil {
				a.any = true
				a.delta(d)
			}
		}
		if ch.FinishReason != nil && *ch.FinishReason != "" {
			a.finish = *ch.FinishReason
		}
	}
	return nil
}

// given reports whether a member is there, and not null, false, {} or "".
func given(v json.RawMessage) bool {
	switch string(bytes.TrimSpace(v)) {
	case "", "null", "false", "{}", `""`:
		return false
	}
	return true
}

func (a *assembler) delta(d *delta) {
	text, thought := contentText(d.Content)
	a.text.WriteString(text)
	a.reasoningContent.WriteString(thought + str(d.ReasoningContent))
	a.refusal.WriteString(str(d.Refusal))
	a.reasoning.WriteString(str(d.Reasoning))
	for _, r := range d.ReasoningDetails {
		a.details.add(r)
	}
	a.calls.add(d.ToolCalls)
	if d.FunctionCall != nil {
		a.calls.add([]callDelta{{Index: json.RawMessage("0"), Function: *d.FunctionCall}})
	}
}

func str(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// contentText reads a content that is text, or a list of text and thinking parts.
func contentText(v json.RawMessage) (text, thought string) {
	var parts []struct {
		Type     string          `json:"type"`
		Text     json.RawMessage `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if len(v) == 0 || v[0] != '[' || json.Unmarshal(v, &parts) != nil {
		return str(v), ""
	}
	for _, p := range parts {
		text += str(p.Text)
		inner, _ := contentText(p.Thinking)
		thought += inner
	}
	return text, thought
}

// failed completes an error that ended the reply.
func (a *assembler) failed(err error) error {
	var pe *providers.Error
	switch {
	case errors.As(err, &pe):
		pe.Partial = pe.Partial || a.any
		return pe
	case errors.Is(err, wire.ErrTooLong):
		return &providers.Error{Class: providers.Failed, Message: err.Error(), Partial: true}
	}
	return err // ctx's
}

// reply is what has been assembled, once the stream has ended.
func (a *assembler) reply(own providers.Origin) (providers.Reply, error) {
	stop, err := a.stop()
	if err != nil {
		return providers.Reply{}, err
	}
	out := a.calls.finish(a.finish == "length")
	for i := range out {
		a.name(&out[i])
	}
	text := a.text.String()
	if a.refusal.Len() > 0 && strings.TrimSpace(text) == "" {
		text = a.refusal.String()
	}
	m := providers.Message{Role: providers.Assistant, From: &own}
	if thought := a.thought(); strings.TrimSpace(thought) != "" {
		m.Parts = append(m.Parts, providers.Part{Kind: providers.Reasoning, Text: thought})
	}
	if strings.TrimSpace(text) != "" {
		m.Parts = append(m.Parts, providers.Part{Kind: providers.Text, Text: text})
	}
	for i := range out {
		m.Parts = append(m.Parts, providers.Part{Kind: providers.Call, Call: &out[i].ToolCall})
	}
	if stop == providers.StopEnd && len(out) == 0 && strings.TrimSpace(text) == "" {
		return providers.Reply{}, &providers.Error{Class: providers.Overloaded, Code: "empty_reply", Message: "the model gave an empty reply"}
	}
	m.Raw = a.raw(out)
	return providers.Reply{Message: m, Stop: stop, Usage: a.usage}, nil
}

// stop gives the finish reason its meaning. Some servers say "stop" where there are
// calls.
func (a *assembler) stop() (providers.Stop, error) {
	fail := func(class providers.Class, text string) (providers.Stop, error) {
		return "", &providers.Error{Class: class, Code: a.redact.Clean(a.finish), Message: text, Partial: a.any}
	}
	switch a.finish {
	case "":
		return fail(providers.Network, "the reply ended in the middle")
	case "stop", "tool_calls", "function_call":
		switch {
		case a.calls.len() > 0:
			return providers.StopTools, nil
		case a.refusal.Len() > 0:
			return providers.StopFilter, nil
		}
		return providers.StopEnd, nil
	case "length":
		return providers.StopLength, nil
	case "content_filter":
		return providers.StopFilter, nil
	case "error", "network_error", "abort", "insufficient_system_resource":
		return fail(providers.Overloaded, "the server ended the reply: "+a.finish)
	}
	return fail(providers.Failed, "the server ended the reply for a reason that is not known: "+a.redact.Clean(a.finish))
}

// thought is the reasoning that can be shown.
func (a *assembler) thought() string {
	for _, s := range []string{a.reasoningContent.String(), a.reasoning.String()} {
		if s != "" {
			return s
		}
	}
	return a.details.text()
}

// name gives a call its declared name and an id that the thread has not used.
func (a *assembler) name(c *calledTool) {
	if declared, ok := a.names[c.sent]; ok {
		c.Name = declared
	}
	if c.ID == "" || len(c.ID) > 256 || a.used[c.ID] {
		c.ID = "call_" + strings.ToLower(rand.Text())
	}
	a.used[c.ID] = true
}

// raw is the assistant message as it goes back to the same model. Arguments that
// cannot be read go back as {}: servers parse them again.
func (a *assembler) raw(out []calledTool) json.RawMessage {
	m := struct {
		Role             string            `json:"role"`
		Content          *string           `json:"content"`
		Refusal          string            `json:"refusal,omitempty"`
		ReasoningContent string            `json:"reasoning_content,omitempty"`
		Reasoning        string            `json:"reasoning,omitempty"`
		ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
		ToolCalls        []toolCall        `json:"tool_calls,omitempty"`
	}{Role: "assistant", Refusal: a.refusal.String(), ReasoningContent: a.reasoningContent.String(), Reasoning: a.reasoning.String(), ReasoningDetails: a.details.merged()}
	if text := strings.TrimRight(a.text.String(), " \t\r\n"); text != "" {
		m.Content = &text
	}
	for _, c := range out {
		m.ToolCalls = append(m.ToolCalls, toolCall{c.ID, "function", calledByName{c.sent, string(c.Args)}})
	}
	return encode(m)
}

// readUsage reads token counts. Input includes what was cached.
func readUsage(v json.RawMessage) providers.Usage {
	var u struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Input      struct {
			Cached int `json:"cached_tokens"`
			Write  int `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Output struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		CacheHit int     `json:"prompt_cache_hit_tokens"` // DeepSeek
		Cost     float64 `json:"cost"`                    // OpenRouter
	}
	if json.Unmarshal(v, &u) != nil {
		return providers.Usage{} // counts that cannot be read are no reason to lose a reply
	}
	return providers.Usage{
		Input: u.Prompt, CacheRead: max(u.Input.Cached, u.CacheHit), CacheWrite: u.Input.Write,
		Output: u.Completion, Reasoning: u.Output.Reasoning, Cost: u.Cost,
	}
}
