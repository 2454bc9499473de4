// Package registry turns model names ("provider:id") into models.
//
// It is where adapters are known by name; package providers cannot be it, because
// the adapters import that. Models are made when they are first asked for and kept.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"pizza/providers"
	"pizza/providers/openai"
	"pizza/providers/runbook"
)

// Kinds of providers: which adapter speaks to them.
const (
	Runbook = "runbook"
	OpenAI  = "openai" // Chat Completions
)

// Provider is one configured provider.
type Provider struct {
	Kind    string                 // "": OpenAI
	BaseURL string                 // "": of the preset of that name
	Key     func() (string, error) // nil or empty: none
	KeyHint string                 // how to set the key, for the error that there is none: "set OPENAI_API_KEY"
	NoKey   bool                   // works without a key
	Windows map[string]int         // context windows by model id, where known
}

// Config of a Registry.
type Config struct {
	Default   string // "provider:id"; "": runbook:mail
	Providers map[string]Provider
	HTTP      *http.Client // nil: one without a proxy
}

// presets are the providers that need no base URL.
var presets = map[string]Provider{
	"runbook":    {Kind: Runbook, NoKey: true},
	"openai":     {Kind: OpenAI, BaseURL: openai.DefaultBaseURL, KeyHint: "set OPENAI_API_KEY, or PIZZA_OPENAI_BASE_URL to a server that needs no key"},
	"openrouter": {Kind: OpenAI, BaseURL: "https://openrouter.ai/api/v1", KeyHint: "set OPENROUTER_API_KEY"},
	"ollama":     {Kind: OpenAI, BaseURL: "http://127.0.0.1:11434/v1", NoKey: true},
	"vllm":       {Kind: OpenAI, BaseURL: "http://127.0.0.1:8000/v1", NoKey: true},
	"llamacpp":   {Kind: OpenAI, BaseURL: "http://127.0.0.1:8080/v1", NoKey: true},
}

// Registry resolves model names. It is safe for concurrent use.
type Registry struct {
	def       string
	providers map[string]Provider
	http      *http.Client

	mu     sync.Mutex
	models map[string]providers.Model
}

// New returns a registry. Providers of cfg complete or replace the presets.
func New(cfg Config) *Registry {
	r := &Registry{def: cfg.Default, providers: map[string]Provider{}, http: cfg.HTTP, models: map[string]providers.Model{}}
	if strings.TrimSpace(r.def) == "" {
		r.def = "runbook:mail"
	}
	for name, p := range presets {
		r.providers[name] = p
	}
	for name, p := range cfg.Providers {
		r.providers[name] = complete(p, presets[name])
	}
	return r
}

// complete fills what p leaves out from the preset of its name. A base URL of its
// own is another server, which may need no key.
func complete(p, preset Provider) Provider {
	if p.Kind == "" {
		p.Kind = preset.Kind
	}
	if p.Kind == "" {
		p.Kind = OpenAI
	}
	if p.BaseURL == "" {
		p.BaseURL, p.NoKey = preset.BaseURL, p.NoKey || preset.NoKey
	} else if base, err := openai.BaseURL(p.BaseURL); err == nil && base != preset.BaseURL {
		p.NoKey = true
	}
	if p.KeyHint == "" {
		p.KeyHint = preset.KeyHint
	}
	return p
}

// Default is the name of the model that "" stands for.
func (r *Registry) Default() string { return r.def }

// Providers lists the names that can be used, sorted.
func (r *Registry) Providers() []string {
	var names []string
	for name := range r.providers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Model returns the model of a name, "" for the default. Errors say in words for a
// person what to set. They are *providers.Error: Auth for a missing key, else Invalid.
func (r *Registry) Model(ctx context.Context, name string) (providers.Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, provider, err := r.find(name)
	if err != nil {
		return nil, err
	}
	if err := r.providers[provider].check(provider); err != nil {
		return nil, err
	}
	return m, nil
}

// Check says what is wrong with a name, "" for the default: that nobody of that name
// provides models, or that the model cannot be. A missing key is not looked for: it may
// be set when the model is used. The error is a *providers.Error.
func (r *Registry) Check(name string) error {
	_, _, err := r.find(name)
	return err
}

// find returns the model of a name and its provider.
func (r *Registry) find(name string) (providers.Model, string, error) {
	if name = strings.TrimSpace(name); name == "" {
		name = r.def
	}
	provider, id, _ := strings.Cut(name, ":")
	p, ok := r.providers[provider]
	if !ok {
		return nil, "", &providers.Error{Class: providers.Invalid, Message: fmt.Sprintf("there is no model provider %q; there are %s (a model is named provider:id)", provider, strings.Join(r.Providers(), ", "))}
	}
	m, err := r.made(name, provider, id, p)
	if err != nil {
		return nil, "", &providers.Error{Class: providers.Invalid, Message: fmt.Sprintf("model %s: %v", name, err)}
	}
	return m, provider, nil
}

// made returns the model of a name, and makes it at the first time.
func (r *Registry) made(name, provider, id string, p Provider) (providers.Model, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.models[name]; m != nil {
		return m, nil
	}
	m, err := r.make(provider, id, p)
	if err == nil {
		r.models[name] = m
	}
	return m, err
}

// check looks for a key at every call: one that is set later acts at once.
func (p Provider) check(name string) error {
	hint := p.KeyHint
	if hint == "" {
		hint = "set providers." + name + ".key in settings.json"
	}
	missing := &providers.Error{Class: providers.Auth, Code: providers.NoKey, Message: fmt.Sprintf("provider %s has no key: %s", name, hint)}
	if p.Key == nil && p.NoKey {
		return nil
	}
	if p.Key == nil {
		return missing
	}
	key, err := p.Key()
	if err != nil {
		return &providers.Error{Class: providers.Auth, Code: providers.NoKey, Message: fmt.Sprintf("the key of provider %s cannot be read: %s", name, hint), Err: err}
	}
	if strings.TrimSpace(key) == "" && !p.NoKey {
		return missing
	}
	return nil
}

// make is the one place where a kind becomes an adapter.
func (r *Registry) make(provider, id string, p Provider) (providers.Model, error) {
	if p.Kind == OpenAI && p.BaseURL == "" { // never another's address: the key would go there
		return nil, fmt.Errorf("provider %s has no address: set its base_url in the settings", provider)
	}
	switch p.Kind {
	case Runbook:
		if id != "" && id != "mail" {
			return nil, errors.New("the runbook has one model, runbook:mail")
		}
		return runbook.New(), nil
	case OpenAI:
		return openai.New(openai.Config{
			Provider: provider, BaseURL: p.BaseURL, Model: id, Key: p.Key, Window: p.Windows[id], HTTP: r.http,
		})
	}
	return nil, fmt.Errorf("provider %s is of the unknown kind %q; there are %s and %s", provider, p.Kind, Runbook, OpenAI)
}
