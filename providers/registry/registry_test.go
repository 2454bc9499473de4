package registry

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pizza/providers"
	"pizza/providers/providertest"
)

func TestNames(t *testing.T) {
	t.Parallel()
	r := New(Config{Providers: map[string]Provider{
		"openai": {Key: func() (string, error) { return "k", nil }, Windows: map[string]int{"gpt-6": 400_000}},
		"work":   {BaseURL: "https://llm.example/v1/"},
	}})
	for _, tt := range []struct{ name, provider, endpoint, model string }{
		{"", "runbook", "", "mail"}, {"runbook:mail", "runbook", "", "mail"}, {"runbook", "runbook", "", "mail"},
		{"openai:gpt-6", "openai", "https://api.openai.com/v1", "gpt-6"},
		{"ollama:qwen3:8b", "ollama", "http://127.0.0.1:11434/v1", "qwen3:8b"},
		{"work:m", "work", "https://llm.example/v1", "m"}, {" vllm:a/b ", "vllm", "http://127.0.0.1:8000/v1", "a/b"},
	} {
		m, err := r.Model(context.Background(), tt.name)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if i := m.Info(); i.Provider != tt.provider || i.Endpoint != tt.endpoint || i.Model != tt.model {
			t.Errorf("%s: %+v", tt.name, i)
		}
		if again, err := r.Model(context.Background(), tt.name); err != nil || again != m {
			t.Errorf("%s is made twice", tt.name)
		}
	}
	if m, _ := r.Model(context.Background(), "openai:gpt-6"); m.Info().Window != 400_000 {
		t.Errorf("%+v", m.Info())
	}
	if r.Default() != "runbook:mail" {
		t.Error(r.Default())
	}
}

func TestErrorsSayWhatToSet(t *testing.T) {
	t.Parallel()
	locked := errors.New("locked")
	r := New(Config{Default: "openai:gpt-6", Providers: map[string]Provider{
		"broken": {BaseURL: "llm.example"}, "odd": {Kind: "telepathy"},
		"openrouter": {Key: func() (string, error) { return "", locked }},
		"blank":      {BaseURL: "", Key: func() (string, error) { return " ", nil }},
	}})
	for _, tt := range []struct {
		name  string
		class providers.Class
		text  string
	}{
		{"", providers.Auth, "provider openai has no key: set OPENAI_API_KEY"},
		{"blank:x", providers.Invalid, "provider blank has no address: set its base_url"},
		{"openrouter:x", providers.Auth, "cannot be read"},
		{"gpt-6", providers.Invalid, `no model provider "gpt-6"; there are blank, broken, llamacpp`},
		{"broken:x", providers.Invalid, "must begin with https://"},
		{"ollama:", providers.Invalid, "no model is named"},
		{"runbook:gpt", providers.Invalid, "one model, runbook:mail"},
		{"odd:x", providers.Invalid, "unknown kind"},
	} {
		_, err := r.Model(context.Background(), tt.name)
		var pe *providers.Error
		if !errors.As(err, &pe) || pe.Class != tt.class || !strings.Contains(pe.Message, tt.text) {
			t.Errorf("%q: %v", tt.name, err)
		}
		if got := r.Check(tt.name); (got == nil) != (tt.class == providers.Auth) || got != nil && got.Error() != err.Error() {
			t.Errorf("%q: Check says %v", tt.name, got)
		}
	}
	if _, err := r.Model(context.Background(), "openrouter:x"); !errors.Is(err, locked) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// A key that is set while the server runs acts at the next call.
func TestKeyActsAtOnce(t *testing.T) {
	t.Parallel()
	s := providertest.NewChat(providertest.ChatTurn{Answer: providertest.SSE(providertest.Text("hi"), providertest.Finish("stop"))})
	t.Cleanup(s.Close)
	s.Key = "late"
	key := ""
	r := New(Config{Providers: map[string]Provider{"openai": {BaseURL: s.URL, Key: func() (string, error) { return key, nil }}}})
	m, err := r.Model(t.Context(), "openai:x")
	if err != nil {
		t.Fatal(err)
	}
	req := providers.Request{Messages: []providers.Message{{Role: providers.User, Parts: []providers.Part{{Kind: providers.Text, Text: "x"}}}}}
	var pe *providers.Error
	if _, err := m.Complete(t.Context(), req); !errors.As(err, &pe) || pe.Class != providers.Auth {
		t.Fatalf("without a key: %v", err)
	}
	key = "late"
	if _, err := m.Complete(t.Context(), req); err != nil {
		t.Error(err)
	}
}
