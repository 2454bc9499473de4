// Package runbook is the model provider that is no AI: model "runbook:mail" does
// exactly what the new text of the newest mail says, one step a line.
//
//	call TOOL {json}      calls a tool; the JSON may wrap over several lines
//	and call TOOL {json}  joins the batch above it
//	think 2s              takes that long (at most 10 minutes before one answer)
//	say TEXT              is text of the answer
//	fail TEXT             is a model error
//
// A rejected or failed call is told in the answer and the next line follows. After
// the last line it answers with what was said and what each call returned. Lines
// that are no step are not done, and are named at the end of the answer. A mail
// without a step gets an honest answer: no AI model is set up, and how to do it.
//
// Only user text with Login set is a program; quoted, forwarded and attached text
// never is. The model keeps no state: where it is in the program follows from the
// assistant messages after it, so the same request always has the same reply. It
// needs no key and no network.
package runbook

import (
	"context"
	"fmt"
	"strings"
	"time"

	"pizza/providers"
)

// maxThink bounds the time before one answer.
const maxThink = 10 * time.Minute

// Model is the runbook. The zero value is ready; it is safe for concurrent use.
type Model struct{}

// New returns the runbook.
func New() Model { return Model{} }

// Info describes the model: free, without network, one mail at a time.
func (Model) Info() providers.Info {
	return providers.Info{Provider: "runbook", Model: "mail", Window: -1, Free: true, Verbatim: true}
}

// Complete makes the next step of the newest program. Its errors are *providers.Error
// of class Failed (a fail line), and ctx's error.
func (m Model) Complete(ctx context.Context, req providers.Request) (providers.Reply, error) {
	start := time.Now()
	if err := ctx.Err(); err != nil {
		return providers.Reply{}, err
	}
	at := find(req.Messages)
	p := parse(at.text, req.Tools)
	next := p.after(at.done)
	if !at.open || !next.found {
		return m.answer(guide, start), nil
	}
	if err := think(ctx, next.think); err != nil {
		return providers.Reply{}, err
	}
	switch {
	case next.fail != nil:
		return providers.Reply{}, &providers.Error{Class: providers.Failed, Code: "fail", Message: *next.fail}
	case len(next.calls) > 0:
		return m.call(next.calls, req.Messages, start), nil
	}
	return m.answer(p.answer(req.Messages[at.index+1:]), start), nil
}

// place is where a conversation is in its newest program.
type place struct {
	index int    // of the user message that holds the program
	text  string // the program
	done  int    // assistant messages after it
	open  bool   // no later user message: the program is what is being worked on
}

// find looks for the newest user message with text of the login.
func find(ms []providers.Message) place {
	p := place{open: true}
	for i := len(ms) - 1; i >= 0; i-- {
		switch ms[i].Role {
		case providers.Assistant:
			p.done++
		case providers.User:
			if text, ok := loginText(ms[i]); ok {
				p.index, p.text = i, text
				return p
			}
			p.open = false
		}
	}
	return place{}
}

func loginText(m providers.Message) (string, bool) {
	var texts []string
	for _, p := range m.Parts {
		if p.Kind == providers.Text && p.Login {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}

// think takes d, or until ctx ends.
func think(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(min(d, maxThink))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m Model) answer(text string, start time.Time) providers.Reply {
	return m.reply([]providers.Part{{Kind: providers.Text, Text: text}}, providers.StopEnd, start)
}

// call returns a batch. The ids follow from the position in the thread, so that a
// repeated request gives the same ones and a later batch never reuses them.
func (m Model) call(batch []step, thread []providers.Message, start time.Time) providers.Reply {
	n, used := ids(thread)
	for used[callID(n, 0)] {
		n++
	}
	var parts []providers.Part
	for k, s := range batch {
		parts = append(parts, providers.Part{Kind: providers.Call, Call: &providers.ToolCall{
			ID: callID(n, k), Name: s.tool, Args: s.args, Bad: s.bad,
		}})
	}
	return m.reply(parts, providers.StopTools, start)
}

func callID(n, k int) string { return fmt.Sprintf("rb%d_%d", n, k) }

// ids counts the assistant messages and collects the call ids of a thread.
func ids(thread []providers.Message) (int, map[string]bool) {
	n, used := 0, map[string]bool{}
	for _, msg := range thread {
		if msg.Role == providers.Assistant {
			n++
		}
		for _, p := range msg.Parts {
			if p.Kind == providers.Call && p.Call != nil {
				used[p.Call.ID] = true
			}
		}
	}
	return n, used
}

func (m Model) reply(parts []providers.Part, stop providers.Stop, start time.Time) providers.Reply {
	return providers.Reply{
		Message: providers.Message{
			Role:  providers.Assistant,
			Parts: parts,
			From:  &providers.Origin{Provider: "runbook", Model: "mail"},
		},
		Stop: stop,
		Took: time.Since(start),
	}
}
