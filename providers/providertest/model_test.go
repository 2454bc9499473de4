package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pizza/providers"
)

func user(text string) providers.Message {
	return providers.Message{Role: providers.User, Parts: []providers.Part{{Kind: providers.Text, Text: text, Login: true}}}
}

func result(id, content string) providers.Message {
	return providers.Message{Role: providers.Tool, Parts: []providers.Part{{Kind: providers.ResultPart, Result: &providers.ToolResult{ID: id, Content: content}}}}
}

func TestScript(t *testing.T) {
	t.Parallel()
	m := Script(
		Calls(Call("c1", "list_folder", `{"path":"/"}`)).If(func(r providers.Request) error {
			if len(r.Messages) != 1 {
				return errors.New("want one message")
			}
			return nil
		}),
		Fail(providers.Overloaded, "busy"),
		Say("done"),
	)
	ctx := context.Background()
	req := providers.Request{Messages: []providers.Message{user("hello")}}
	r, err := m.Complete(ctx, req)
	if err != nil || r.Stop != providers.StopTools || r.Message.Parts[0].Call.ID != "c1" {
		t.Fatalf("first turn = %+v, %v", r, err)
	}
	req.Messages = append(req.Messages, r.Message, result("c1", "in out local"))
	var pe *providers.Error
	if _, err := m.Complete(ctx, req); !errors.As(err, &pe) || !pe.Retryable() {
		t.Fatalf("second turn: %v; want overloaded", err)
	}
	r, err = m.Complete(ctx, req)
	if err != nil || r.Message.Parts[0].Text != "done" {
		t.Fatalf("third turn = %+v, %v", r, err)
	}
	if err := m.Err(); err != nil || m.Left() != 0 || len(m.Requests()) != 3 {
		t.Fatalf("Err %v, Left %d, Requests %d", err, m.Left(), len(m.Requests()))
	}
	if _, err := m.Complete(ctx, req); err == nil || m.Err() == nil {
		t.Fatal("a call after the last turn passed")
	}
}

func TestScriptWaits(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	m := Script(Say("late").After(gate), Say("never").After(make(chan struct{})))
	req := providers.Request{Messages: []providers.Message{user("x")}}
	done := make(chan error)
	go func() {
		_, err := m.Complete(context.Background(), req)
		done <- err
	}()
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	if _, err := m.Complete(ctx, req); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want canceled", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	call := Calls(Call("c1", "x", "{}")).Reply.Message
	call.Role = providers.Assistant
	for _, tt := range []struct {
		name string
		req  providers.Request
		want string
	}{
		{"nothing", providers.Request{}, "first message"},
		{"assistant first", providers.Request{Messages: []providers.Message{call, result("c1", "x")}}, "first message"},
		{"assistant last", providers.Request{Messages: []providers.Message{user("a"), call}}, "last message"},
		{"no result", providers.Request{Messages: []providers.Message{user("a"), call, user("b")}}, "no result"},
		{"foreign result", providers.Request{Messages: []providers.Message{user("a"), call, result("c2", "x")}}, "answers no call"},
		{"result without call", providers.Request{Messages: []providers.Message{user("a"), result("c2", "x")}}, "answers no call"},
		{"two users", providers.Request{Messages: []providers.Message{user("a"), user("b")}}, "same role"},
		{"id twice", providers.Request{Messages: []providers.Message{user("a"), call, result("c1", "x"), call, result("c1", "x")}}, "used before"},
		{"bad tool", providers.Request{Messages: []providers.Message{user("a")}, Tools: []providers.ToolSpec{{Name: "a b"}}}, "not legal"},
		{"bad schema", providers.Request{Messages: []providers.Message{user("a")}, Tools: []providers.ToolSpec{{Name: "a", Schema: json.RawMessage(`{"type":"object"}`)}}}, "properties"},
		{"good", providers.Request{Messages: []providers.Message{user("a"), call, result("c1", "x"), user("b")}}, ""},
	} {
		err := Validate(tt.req)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
