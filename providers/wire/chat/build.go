package chat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"pizza/providers"
	"pizza/providers/wire"
)

// request is the body of a call.
type request struct {
	Model               string         `json:"model"`
	Messages            []any          `json:"messages"`
	Tools               []tool         `json:"tools,omitempty"`
	ToolChoice          any            `json:"tool_choice,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// message is one of ours; an assistant message that goes back as it came is raw.
type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // string, []part, or null
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function calledByName `json:"function"`
}

type calledByName struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
	File     *file     `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type file struct {
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
}

// build writes the body of a request. It is deterministic.
func build(req providers.Request, model string, own providers.Origin, q quirks) []byte {
	r := request{Model: model, Stream: true, Messages: messages(req, own, q)}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, tool{"function", function{wire.Name(t.Name), t.Description, parameters(t.Schema)}})
	}
	if len(r.Tools) > 0 && !q.noToolChoice {
		r.ToolChoice = toolChoice(req.Choice)
	}
	if q.completionTokens {
		r.MaxCompletionTokens = req.MaxTokens
	} else {
		r.MaxTokens = req.MaxTokens
	}
	if !q.noStreamOptions {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	return encode(r)
}

// encode is JSON without escapes for HTML. Its inputs are types of ours and JSON
// that has been checked.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("chat: request does not encode: %v", err)) // a type of ours, never input
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func toolChoice(c providers.ToolChoice) any {
	switch c.Mode {
	case "none", "required":
		return c.Mode
	case "tool":
		return map[string]any{"type": "function", "function": map[string]string{"name": wire.Name(c.Name)}}
	}
	return nil
}

// parameters makes a schema an object with properties: strict servers want both.
func parameters(schema json.RawMessage) json.RawMessage {
	var root map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil || root == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if string(root["type"]) == `"object"` && len(root["properties"]) > 0 {
		return schema
	}
	root["type"] = json.RawMessage(`"object"`)
	if len(root["properties"]) == 0 {
		root["properties"] = json.RawMessage(`{}`)
	}
	return encode(root)
}

// messages writes the conversation.
func messages(req providers.Request, own providers.Origin, q quirks) []any {
	var out []any
	if system := wire.CleanText(req.System); strings.TrimSpace(system) != "" {
		out = append(out, message{Role: "system", Content: system})
	}
	ids := func(id string) string { return wire.ID(id) }
	var media []part // of tool results: a user message after them, or part of the one that comes
	for _, m := range wire.Repair(req.Messages) {
		switch m.Role {
		case providers.User:
			out = append(out, message{Role: "user", Content: content(append(media, userParts(m.Parts)...))})
			media = nil
		case providers.Assistant:
			out, media = flush(out, media), nil
			var written any
			written, ids = assistant(m, own, q)
			out = append(out, written)
		case providers.Tool:
			out = append(out, results(m.Parts, ids)...)
			media = resultMedia(m.Parts)
		}
	}
	return flush(out, media)
}

func flush(out []any, media []part) []any {
	if len(media) == 0 {
		return out
	}
	return append(out, message{Role: "user", Content: content(media)})
}

// content is plain text where that is all: not every server takes parts.
func content(parts []part) any {
	var texts []string
	for _, p := range parts {
		if p.Type != "text" {
			return parts
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n\n")
}

func userParts(ps []providers.Part) []part {
	var out []part
	for _, p := range ps {
		if p.Kind == providers.Text {
			out = append(out, part{Type: "text", Text: p.Text})
		} else {
			out = append(out, mediaPart(p))
		}
	}
	return out
}

// mediaPart gives an image or a file in the form that fits its bytes; declared types
// are often wrong. What the wire cannot carry is named.
func mediaPart(p providers.Part) part {
	kind, _, _ := strings.Cut(http.DetectContentType(p.Data), ";")
	name := p.Name
	if name == "" {
		name = "file"
	}
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return part{Type: "image_url", ImageURL: &imageURL{dataURL(kind, p.Data)}}
	case "application/pdf":
		return part{Type: "file", File: &file{name, dataURL(kind, p.Data)}}
	}
	if utf8.Valid(p.Data) && !bytes.ContainsRune(p.Data, 0) {
		return part{Type: "text", Text: fmt.Sprintf("[file %s, %s]\n%s", name, p.Media, wire.CleanText(string(p.Data)))}
	}
	return part{Type: "text", Text: fmt.Sprintf("[file %s, %s, %d bytes: it cannot be shown to this model]", name, p.Media, len(p.Data))}
}

func dataURL(kind string, data []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// assistant writes a turn: as it came if the same model wrote it, else from its
// neutral parts. The function returned is how ids of its calls are written, so that
// the results carry the same.
func assistant(m providers.Message, own providers.Origin, q quirks) (any, func(string) string) {
	if m.From != nil && *m.From == own && json.Valid(m.Raw) {
		if raw, ok := replay(m, q); ok {
			return raw, func(id string) string { return id }
		}
	}
	out := message{Role: "assistant"}
	var texts []string
	for _, p := range m.Parts {
		switch p.Kind {
		case providers.Text:
			texts = append(texts, p.Text)
		case providers.Call:
			out.ToolCalls = append(out.ToolCalls, toolCall{
				ID: wire.ID(p.Call.ID), Type: "function",
				Function: calledByName{wire.Name(p.Call.Name), objectText(p.Call.Args)},
			})
		}
	}
	if text := strings.TrimRight(strings.Join(texts, "\n\n"), " \t\r\n"); text != "" {
		out.Content = text
	}
	return out, wire.ID
}

func objectText(args json.RawMessage) string {
	var o map[string]json.RawMessage
	if json.Unmarshal(args, &o) != nil || o == nil {
		return "{}"
	}
	return string(args)
}

var reasoningFields = []string{"reasoning_content", "reasoning", "reasoning_details"}

// replay returns a turn's raw form if it still agrees with its neutral one: the same
// calls in the same order.
func replay(m providers.Message, q quirks) (json.RawMessage, bool) {
	var raw struct {
		Role      string     `json:"role"`
		ToolCalls []toolCall `json:"tool_calls"`
	}
	if json.Unmarshal(m.Raw, &raw) != nil || raw.Role != "assistant" {
		return nil, false
	}
	n := 0
	for _, p := range m.Parts {
		if p.Kind != providers.Call {
			continue
		}
		if n >= len(raw.ToolCalls) || raw.ToolCalls[n].ID != p.Call.ID {
			return nil, false
		}
		n++
	}
	if n != len(raw.ToolCalls) {
		return nil, false
	}
	if !q.noReasoning {
		return m.Raw, true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(m.Raw, &fields) != nil {
		return nil, false
	}
	for _, f := range reasoningFields {
		delete(fields, f)
	}
	return encode(fields), true
}

// results writes each result as a message of role tool.
func results(parts []providers.Part, ids func(string) string) []any {
	var out []any
	for _, p := range parts {
		text := p.Result.Content
		if p.Result.Error {
			text = "Error: " + text
		}
		out = append(out, message{Role: "tool", ToolCallID: ids(p.Result.ID), Content: text})
	}
	return out
}

// resultMedia are the images and files of results: role tool takes text only.
func resultMedia(parts []providers.Part) []part {
	var out []part
	for _, p := range parts {
		if len(p.Result.Media) > 0 {
			out = append(out, part{Type: "text", Text: "From the result of " + wire.Name(p.Result.Name) + ":"})
			out = append(out, userParts(p.Result.Media)...)
		}
	}
	return out
}
