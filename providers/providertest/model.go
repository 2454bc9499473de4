// Package providertest holds the test doubles of model providers: a scripted
// Model, and a scripted Chat Completions server on loopback that checks requests
// as strictly as the real API and injects faults.
//
// Both record what they were asked. What a test did not expect (a request that
// does not validate, a failed check, a call after the last turn) is an error of the
// call and is kept: Err returns all of it.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"pizza/providers"
)

// Turn is one call that the script expects and its answer. Exactly the first of
// Do, Err and Reply that is set answers.
type Turn struct {
	Check func(providers.Request) error // nil: any valid request
	Wait  <-chan struct{}               // nil, or the answer waits until it is closed (or ctx ends)
	Do    func(context.Context, providers.Request) (providers.Reply, error)
	Err   error
	Reply providers.Reply
}

// If returns the turn with a check of the request.
func (t Turn) If(check func(providers.Request) error) Turn {
	t.Check = check
	return t
}

// After returns the turn with its answer held back until c is closed.
func (t Turn) After(c <-chan struct{}) Turn {
	t.Wait = c
	return t
}

// Say answers with text and ends the run.
func Say(text string) Turn {
	return Turn{Reply: providers.Reply{
		Message: providers.Message{Role: providers.Assistant, Parts: []providers.Part{{Kind: providers.Text, Text: text}}},
		Stop:    providers.StopEnd,
		Usage:   providers.Usage{Input: 10, Output: 5},
	}}
}

// Call is one tool call; args is a JSON object.
func Call(id, name, args string) providers.ToolCall {
	return providers.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

// Calls answers with a batch of tool calls.
func Calls(calls ...providers.ToolCall) Turn {
	m := providers.Message{Role: providers.Assistant}
	for i := range calls {
		m.Parts = append(m.Parts, providers.Part{Kind: providers.Call, Call: &calls[i]})
	}
	return Turn{Reply: providers.Reply{Message: m, Stop: providers.StopTools, Usage: providers.Usage{Input: 10, Output: 5}}}
}

// Fail answers with a failed call of a class.
func Fail(class providers.Class, text string) Turn {
	return Turn{Err: &providers.Error{Class: class, Message: text}}
}

// Model answers calls from a script, in order. It is safe for concurrent use; with
// concurrent calls which of them gets which turn is the scheduler's choice.
type Model struct {
	info providers.Info

	mu       sync.Mutex
	turns    []Turn
	next     int
	requests []providers.Request
	problems []error
}

// Script returns a model with these turns.
func Script(turns ...Turn) *Model {
	return &Model{
		info:  providers.Info{Provider: "script", Model: "test", Window: 100_000, Joins: true, Free: true},
		turns: turns,
	}
}

// WithInfo sets what Info returns. It is for before the first call.
func (m *Model) WithInfo(i providers.Info) *Model {
	m.info = i
	return m
}

// Info describes the model.
func (m *Model) Info() providers.Info { return m.info }

// Append adds turns at the end of the script.
func (m *Model) Append(turns ...Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns = append(m.turns, turns...)
}

// Requests returns copies of the requests so far, in order.
func (m *Model) Requests() []providers.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]providers.Request(nil), m.requests...)
}

// Left says how many turns have not been used.
func (m *Model) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.turns) - m.next
}

// Err returns everything the script did not expect, nil if there was nothing.
func (m *Model) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(m.problems...)
}

// Complete answers with the next turn.
func (m *Model) Complete(ctx context.Context, req providers.Request) (providers.Reply, error) {
	if err := ctx.Err(); err != nil {
		return providers.Reply{}, err
	}
	turn, err := m.take(req)
	if err != nil {
		return providers.Reply{}, err
	}
	if turn.Wait != nil {
		select {
		case <-turn.Wait:
		case <-ctx.Done():
			return providers.Reply{}, ctx.Err()
		}
	}
	switch {
	case turn.Do != nil:
		return turn.Do(ctx, req)
	case turn.Err != nil:
		return providers.Reply{}, turn.Err
	}
	return m.reply(turn.Reply), nil
}

// take records the request and returns the turn for it.
func (m *Model) take(req providers.Request) (Turn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	req = clone(req)
	m.requests = append(m.requests, req)
	if m.next >= len(m.turns) {
		return Turn{}, m.problem(fmt.Errorf("call %d: the script has %d turns", m.next+1, len(m.turns)))
	}
	turn := m.turns[m.next]
	m.next++
	if err := Validate(req); err != nil {
		return Turn{}, m.problem(fmt.Errorf("call %d: invalid request: %w", m.next, err))
	}
	if turn.Check != nil {
		if err := turn.Check(req); err != nil {
			return Turn{}, m.problem(fmt.Errorf("call %d: %w", m.next, err))
		}
	}
	return turn, nil
}

func (m *Model) problem(err error) error {
	m.problems = append(m.problems, err)
	return &providers.Error{Class: providers.Invalid, Message: "script: " + err.Error()}
}

// reply completes what a test need not write: role, origin, stop.
func (m *Model) reply(r providers.Reply) providers.Reply {
	r.Message.Role = providers.Assistant
	if r.Message.From == nil {
		r.Message.From = &providers.Origin{Provider: m.info.Provider, Endpoint: m.info.Endpoint, Model: m.info.Model}
	}
	if r.Stop == "" {
		r.Stop = providers.StopEnd
	}
	if r.Took == 0 {
		r.Took = time.Millisecond
	}
	return r
}

// clone copies a request deeply, so that what was recorded cannot change later.
func clone(req providers.Request) providers.Request {
	b, err := json.Marshal(req)
	if err != nil {
		return req // Validate reports what does not encode
	}
	var c providers.Request
	if json.Unmarshal(b, &c) != nil {
		return req
	}
	return c
}
