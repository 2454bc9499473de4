// Package providers holds the neutral form of a model call. An adapter lives in
// providers/<name>; the wire formats several of them share live in providers/wire;
// providers/registry turns names into models (adapters import this package, so it
// cannot); providers/providertest has the doubles for tests.
//
// Adapters keep the provider's own content byte for byte beside the neutral form
// (Message.Raw with its Origin), because reasoning signatures and item ids are
// bound to it. They never retry: the agent does, in one place.
//
// Adapters: runbook (no AI: does what the mail says), openai (Chat Completions, also
// Ollama, OpenRouter, vLLM, llama.cpp by base URL). To come, each a folder here:
// anthropic, bedrock, gemini, ollama, openrouter; wires: messages, responses,
// converse, gemini, ollama.
package providers

import (
	"context"
	"encoding/json"
	"time"
)

// A Model answers calls. Implementations are safe for concurrent use.
type Model interface {
	// Complete makes one call. It streams on the wire and returns when the reply is
	// complete; a stream without its terminal event is *Error Network with Partial.
	// Errors are *Error, or ctx's error when ctx ended.
	Complete(ctx context.Context, req Request) (Reply, error)
	// Info tells what the agent must know to plan.
	Info() Info
}

// Info describes a model.
type Info struct {
	Provider string // "runbook", "openai"
	Endpoint string // base URL without credentials; "" for local ones
	Model    string // "mail", "gpt-6"
	Window   int    // context window in tokens; 0: unknown; negative: there is no limit
	Joins    bool   // a mail that arrives during a run may join it at the next call
	Free     bool   // costs nothing and needs no network
	Verbatim bool   // what it says and calls is what the login wrote, and nothing else
	// Gate is Identity of endpoint and key as they are now: calls with one Gate share the
	// provider's limits. Kept in memory only. "": Provider and Endpoint say it.
	Gate string
}

// Origin says who produced raw content. Raw content goes back only to the same.
type Origin struct {
	Provider string `json:"provider"`
	Endpoint string `json:"endpoint,omitempty"`
	Model    string `json:"model"`
}

// Request is one model call.
type Request struct {
	System    string     // frozen per thread
	Tools     []ToolSpec // frozen per thread, in a fixed order
	Messages  []Message  // alternate user, assistant, tool...; starts with user
	MaxTokens int        // 0: provider's default
	Choice    ToolChoice
	Thread    string // cache key
}

// ToolChoice steers tool use; the zero value is auto.
type ToolChoice struct {
	Mode string // "" or "auto", "none", "required", "tool"
	Name string // for "tool"
}

// ToolSpec declares a tool to the model.
type ToolSpec struct {
	Name        string          `json:"name"` // ^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema, root type object
}

// Role of a message.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool" // results of the calls of the assistant message before it, all in one message
)

// Message is one turn.
type Message struct {
	Role  Role            `json:"role"`
	Parts []Part          `json:"parts"`
	Raw   json.RawMessage `json:"raw,omitempty"` // the provider's own content, as received (assistant turns)
	From  *Origin         `json:"from,omitempty"`
}

// PartKind tells what a Part holds.
type PartKind string

const (
	Text       PartKind = "text"
	Image      PartKind = "image"
	File       PartKind = "file"      // document given to the model as such
	Reasoning  PartKind = "reasoning" // shown or summarised reasoning; its signed form is in Raw
	Call       PartKind = "call"
	ResultPart PartKind = "result"
)

// Part is a piece of a message. Which fields count depends on Kind.
type Part struct {
	Kind   PartKind    `json:"kind"`
	Text   string      `json:"text,omitempty"`
	Login  bool        `json:"login,omitempty"` // user text written by the login itself, not quoted, forwarded or attached
	Media  string      `json:"media,omitempty"` // MIME type of Image and File
	Name   string      `json:"name,omitempty"`  // file name
	Data   []byte      `json:"data,omitempty"`
	Call   *ToolCall   `json:"call,omitempty"`
	Result *ToolResult `json:"result,omitempty"`
}

// ToolCall is what the model asks for.
type ToolCall struct {
	ID   string          `json:"id"` // unique within the thread; synthesised where the wire has none
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`          // always a JSON object
	Bad  string          `json:"bad,omitempty"` // why the arguments cannot be used (cut off, not an object): answer with an error result, do not run
}

// ToolResult answers a call.
type ToolResult struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Content string `json:"content"`
	Error   bool   `json:"error,omitempty"`
	Media   []Part `json:"media,omitempty"` // images and files of the result
}

// Stop is why the model stopped.
type Stop string

const (
	StopEnd     Stop = "end"
	StopTools   Stop = "tools"
	StopLength  Stop = "length"  // output budget used up
	StopFilter  Stop = "filter"  // refusal or content filter
	StopContext Stop = "context" // context window used up
	StopPause   Stop = "pause"   // call again with the same messages and this reply
)

// Reply is one answer.
type Reply struct {
	Message Message       `json:"message"` // Role Assistant
	Stop    Stop          `json:"stop"`
	Usage   Usage         `json:"usage"`
	Took    time.Duration `json:"took,omitempty"`
}

// Usage in tokens. Input includes the cached ones.
type Usage struct {
	Input      int     `json:"input"`
	CacheRead  int     `json:"cache_read,omitempty"`
	CacheWrite int     `json:"cache_write,omitempty"`
	Output     int     `json:"output"`
	Reasoning  int     `json:"reasoning,omitempty"` // part of Output
	Cost       float64 `json:"cost,omitempty"`      // USD where the provider says it
}

// Add sums two usages.
func (u Usage) Add(v Usage) Usage {
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.Cost += v.Cost
	return u
}
