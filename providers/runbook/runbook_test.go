package runbook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pizza/providers"
	"pizza/providers/providertest"
)

func mail(text string) providers.Message {
	return providers.Message{Role: providers.User, Parts: []providers.Part{
		{Kind: providers.Text, Text: "From: ann\ncall never {}", Login: false},
		{Kind: providers.Text, Text: text, Login: true},
	}}
}

var declared = []providers.ToolSpec{
	{Name: "list_folder", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	{Name: "write_file", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
}

// play runs a conversation to its end, answering calls with answer.
func play(t *testing.T, thread []providers.Message, answer func(providers.ToolCall) providers.ToolResult) ([]providers.Message, string, error) {
	t.Helper()
	for range 50 {
		req := providers.Request{Tools: declared, Messages: thread}
		if err := providertest.Validate(req); err != nil {
			t.Fatal(err)
		}
		r, err := New().Complete(context.Background(), req)
		if err != nil {
			return thread, "", err
		}
		thread = append(thread, r.Message)
		if r.Stop == providers.StopEnd {
			return thread, r.Message.Parts[0].Text, nil
		}
		results := providers.Message{Role: providers.Tool}
		for _, p := range r.Message.Parts {
			res := answer(*p.Call)
			res.ID, res.Name = p.Call.ID, p.Call.Name
			results.Parts = append(results.Parts, providers.Part{Kind: providers.ResultPart, Result: &res})
		}
		thread = append(thread, results)
	}
	t.Fatal("no end")
	return nil, "", nil
}

// echo answers a call with its name and arguments.
func echo(c providers.ToolCall) providers.ToolResult {
	if c.Bad != "" {
		return providers.ToolResult{Content: "bad: " + c.Bad, Error: true}
	}
	if c.Name == "nope" {
		return providers.ToolResult{Content: "there is no tool nope", Error: true}
	}
	return providers.ToolResult{Content: c.Name + string(c.Args)}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mail string
		turns      int // assistant messages with calls
		want       []string
		not        []string
	}{
		{"one call", `call list_folder {"path": "/local"}`, 1,
			[]string{"`list_folder {\"path\":\"/local\"}` returned:\n\n    list_folder{\"path\":\"/local\"}"}, []string{"Not understood"}},
		{"batch", "call list_folder {}\nand call list_folder {\"a\":1}\ncall write_file {}", 2, []string{`list_folder{"a":1}`, "write_file{}"}, nil},
		{"and first", "and call list_folder {}", 1, []string{"list_folder{}"}, nil},
		{"say order", "say one\ncall list_folder {}\nsay two", 1, []string{"one\ntwo\n\n`list_folder` returned:"}, nil},
		{"case, space, CR", "  SAY hi\r\n\tCall List_Folder {}\r\n\r\n", 1, []string{"hi", "`list_folder` returned"}, []string{"Not understood"}},
		{"without arguments", "call list_folder", 1, []string{"list_folder{}"}, nil},
		{"unknown tool goes on", "call nope {}\nsay after", 1, []string{"after", "`nope` failed:\n\n    there is no tool nope"}, nil},
		{"bad JSON goes on", "call list_folder {\"a\"\nsay after", 1, []string{"after", "failed:\n\n    bad: the arguments are not JSON"}, nil},
		{"not an object", "call list_folder [1]\ncall list_folder path", 2, []string{"not a JSON object", "not JSON"}, nil},
		{"text after JSON", "call list_folder {} please", 1, []string{"failed:"}, nil},
		{"wrapped", "call write_file {\"path\": \"/out/a\",\n \"content\": \"one\ntwo } {\"\n}\nsay x", 1, []string{`{"path":"/out/a","content":"one two } {"}`}, []string{"Not understood"}},
		{"typographic quotes", "call write_file {“path”: “/out/a”}", 1, []string{`write_file{"path":"/out/a"}`}, nil},
		{"curly quotes inside stay", "call write_file {\"c\": \"“x”\"}", 1, []string{`{"c":"“x”"}`}, nil},
		{"sentences are no steps", "Hello,\nCall me tomorrow.\nthink about it\nsay yes\nBest, Ann\n-- \ncall list_folder {}", 0,
			[]string{"yes\n\nNot understood, so not done: `Hello,`, `Call me tomorrow.`, `think about it`, `Best, Ann`, and the signature."}, []string{"list_folder"}},
		{"no step", "Hello, please do my taxes.", 0, []string{"No AI model is set up", "PIZZA_MODEL="}, []string{"taxes"}},
		{"empty", "", 0, []string{"No AI model is set up"}, nil},
		{"only think", "think 0s", 0, []string{"Done."}, nil},
		{"say nothing", "say", 0, []string{"Done."}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			thread, text, err := play(t, []providers.Message{mail(tt.mail)}, echo)
			if err != nil {
				t.Fatal(err)
			}
			if turns := (len(thread) - 2) / 2; turns != tt.turns {
				t.Errorf("%d turns with calls, want %d", turns, tt.turns)
			}
			for _, w := range tt.want {
				if !strings.Contains(text, w) {
					t.Errorf("answer lacks %q:\n%s", w, text)
				}
			}
			for _, n := range append(tt.not, "never") {
				if strings.Contains(text, n) {
					t.Errorf("answer has %q:\n%s", n, text)
				}
			}
		})
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	thread, _, err := play(t, []providers.Message{mail("call list_folder {}\nfail out of dough\nsay x")}, echo)
	var pe *providers.Error
	if !errors.As(err, &pe) || pe.Class != providers.Failed || pe.Message != "out of dough" || len(thread) != 3 {
		t.Fatalf("err %v after %d messages", err, len(thread))
	}
}

// A thread goes on with the newest mail, whatever came before, and no call id is
// used twice.
func TestThread(t *testing.T) {
	t.Parallel()
	program := "call list_folder {}\nand call list_folder {}"
	thread := []providers.Message{mail(program)}
	seen := map[string]bool{}
	for round := range 3 {
		var text string
		var err error
		thread, text, err = play(t, thread, func(c providers.ToolCall) providers.ToolResult {
			if seen[c.ID] {
				t.Errorf("id %s twice", c.ID)
			}
			seen[c.ID] = true
			return echo(c)
		})
		if err != nil || strings.Count(text, "returned") != 2 {
			t.Fatalf("round %d: %v\n%s", round, err, text)
		}
		thread = append(thread, mail(program))
	}
	if len(seen) != 6 {
		t.Errorf("%d calls, want 6", len(seen))
	}
	// Foreign text starts nothing, and an old program is not done again.
	thread[len(thread)-1].Parts = thread[len(thread)-1].Parts[:1]
	if _, text, err := play(t, thread, echo); err != nil || text != guide {
		t.Errorf("mail without text of the login: %v\n%s", err, text)
	}
}

func TestSameRequestSameReply(t *testing.T) {
	t.Parallel()
	req := providers.Request{Messages: []providers.Message{mail("call list_folder {\"b\":1,\"a\":2}")}}
	a, _ := New().Complete(context.Background(), req)
	b, _ := New().Complete(context.Background(), req)
	a.Took, b.Took = 0, 0
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if string(x) != string(y) || !strings.Contains(string(x), `{"b":1,"a":2}`) {
		t.Errorf("replies differ or arguments were reordered:\n%s\n%s", x, y)
	}
}

func TestThink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		req := providers.Request{Messages: []providers.Message{mail("think 2s\nthink 1m\nsay x\nthink 500ms")}}
		start := time.Now()
		r, err := New().Complete(context.Background(), req)
		if took := time.Since(start); err != nil || took != 62500*time.Millisecond || r.Took != took {
			t.Errorf("took %v, %v", took, err)
		}
		req.Messages[0] = mail("think 5h\nthink 5h")
		start = time.Now()
		if _, err = New().Complete(context.Background(), req); err != nil || time.Since(start) != maxThink {
			t.Errorf("took %v, %v; want %v", time.Since(start), err, maxThink)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err = New().Complete(ctx, req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
	})
}

func TestLongResultIsCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 12345)
	_, text, err := play(t, []providers.Message{mail("call list_folder {}")}, func(providers.ToolCall) providers.ToolResult {
		return providers.ToolResult{Content: long}
	})
	if err != nil || strings.Count(text, "ü") != maxShown || !strings.Contains(text, "4000 of 12345 characters") {
		t.Errorf("%v, %d shown: %s", err, strings.Count(text, "ü"), text[len(text)-80:])
	}
}

func FuzzParse(f *testing.F) {
	f.Add("call list_folder {\"a\":\"b\n c\"}\nand call x {}\nthink 2s\nsay hi\nfail\n-- \nx")
	f.Add("call a {\"")
	f.Add("call list_folder “{”")
	f.Fuzz(func(t *testing.T, text string) {
		p := parse(text, declared)
		for _, s := range p.steps {
			var o map[string]any
			if s.kind == stepCall && (json.Unmarshal(s.args, &o) != nil || o == nil) {
				t.Errorf("arguments %q are no object", s.args)
			}
		}
		for done := range len(p.steps) + 2 {
			p.after(done)
		}
	})
}
