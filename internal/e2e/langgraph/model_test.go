//go:build bench

package langgraph

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"pizza/internal/tools"
	"pizza/providers"
)

const (
	textSize   = 1024  // of a mail and of a reply
	resultSize = 10240 // of a tool result
)

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// texts are made once: making them is not what is measured.
var texts sync.Map

// text is n letters of the workload, drawn by xorshift32.
func text(step, n int) string {
	key := [2]int{step % 256, n}
	if s, ok := texts.Load(key); ok {
		return s.(string)
	}
	x := uint32(step%256)*2654435761 + 1
	if x == 0 {
		x = 1
	}
	b := make([]byte, n)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = letters[x&63]
	}
	texts.Store(key, string(b))
	return string(b)
}

// stepOf reads k from "step=k ".
func stepOf(s string) (int, bool) {
	rest, ok := strings.CutPrefix(s, "step=")
	if !ok {
		return 0, false
	}
	k, err := strconv.Atoi(rest[:max(0, strings.IndexByte(rest, ' '))])
	return k, err == nil
}

// scripted is the model of the workload: stateless, answers at once. send: its last call is
// send, which asks.
type scripted struct {
	steps int
	send  bool
	calls atomic.Int64
	// ended is told when it gave a final answer.
	ended func()
}

func (*scripted) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "steps", Joins: true, Free: true}
}

func (m *scripted) Complete(_ context.Context, req providers.Request) (providers.Reply, error) {
	m.calls.Add(1)
	k := 0
	if last := req.Messages[len(req.Messages)-1]; last.Role == providers.Tool {
		n, ok := stepOf(last.Parts[len(last.Parts)-1].Result.Content)
		if !ok {
			return providers.Reply{}, &providers.Error{Class: providers.Invalid, Message: "a result without step="}
		}
		k = n + 1
	}
	if k >= m.steps {
		return answer("DONE " + text(k, textSize-5)), nil
	}
	name := "lookup"
	if m.send && k == m.steps-1 {
		name = "send"
	}
	return reply(text(k, textSize), call(fmt.Sprintf("call_%d", k), name, map[string]any{"step": k, "q": text(k, 64)})), nil
}

func call(id, name string, args map[string]any) providers.ToolCall {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // a map of ours
	}
	return providers.ToolCall{ID: id, Name: name, Args: b}
}

func answer(s string) providers.Reply {
	return providers.Reply{Stop: providers.StopEnd, Usage: providers.Usage{Input: 1, Output: 1},
		Message: providers.Message{Role: providers.Assistant, Parts: []providers.Part{{Kind: providers.Text, Text: s}}}}
}

func reply(s string, calls ...providers.ToolCall) providers.Reply {
	r := answer(s)
	r.Stop = providers.StopTools
	if s == "" {
		r.Message.Parts = nil
	}
	for _, c := range calls {
		r.Message.Parts = append(r.Message.Parts, providers.Part{Kind: providers.Call, Call: &c})
	}
	return r
}

// counter are the tools of the workload: lookup is free, send asks. Both have an effect in
// the world that happens once.
type counter struct {
	schema json.RawMessage
	// run does the call; what it returns is the result.
	run func(ctx context.Context, name string, args map[string]any) string
	// class of both; "" is once-only.
	class tools.Class
}

const stepSchema = `{"type":"object","properties":{"step":{"type":"number"},"q":{"type":"string"}},"required":["step","q"]}`

// lookups are the tools of W1 to W5. hook runs first, nil: nothing does.
func lookups(hook func(name string, step int)) *counter {
	return &counter{schema: json.RawMessage(stepSchema), run: func(_ context.Context, name string, args map[string]any) string {
		k := int(args["step"].(float64))
		if hook != nil {
			hook(name, k)
		}
		head := fmt.Sprintf("step=%d ", k)
		return head + text(k, resultSize-9)
	}}
}

func (c *counter) Specs() []tools.Spec {
	return []tools.Spec{
		{Name: "lookup", Description: "look a thing up", Schema: c.schema},
		{Name: "send", Description: "send a thing (needs approval)", Schema: c.schema},
	}
}

func (c *counter) Plan(call tools.Call) tools.Plan {
	class := c.class
	if class == "" {
		class = tools.OnceOnly
	}
	var args map[string]any
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tools.Plan{Class: class, Rule: tools.Invalid, Reason: err.Error()}
	}
	switch call.Name {
	case "lookup":
		return tools.Plan{Class: class, Rule: tools.Allow, Effect: tools.Reads, Sentence: "Look a thing up."}
	case "send":
		return tools.Plan{Class: class, Rule: tools.Ask, Sentence: "Send a thing."}
	}
	return tools.Plan{Rule: tools.Invalid, Reason: "no such tool"}
}

func (c *counter) Run(ctx context.Context, _ tools.Workspace, call tools.Call) tools.Outcome {
	var args map[string]any
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tools.Outcome{Error: true, Content: err.Error()}
	}
	return tools.Outcome{Content: c.run(ctx, call.Name, args)}
}

// one is a model under its name.
type one struct{ model providers.Model }

func (o one) Model(context.Context, string) (providers.Model, error) { return o.model, nil }
func (one) Default() string                                          { return "script:steps" }
