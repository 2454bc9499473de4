// Package openai is the adapter for OpenAI Chat Completions and for every server
// that speaks the same: OpenRouter, vLLM, llama.cpp, Ollama, gateways. Which it is
// only depends on the base URL.
//
// It keeps no state but what it learned about the server's dialect, retries nothing,
// reads no environment variable and never sends the key anywhere but to the base URL.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"pizza/providers"
	"pizza/providers/wire/chat"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config of a Model.
type Config struct {
	Provider string                 // name in model names; "": openai
	BaseURL  string                 // "": DefaultBaseURL
	Model    string                 // "gpt-6"
	Key      func() (string, error) // asked at each call; nil, or an empty key: none is sent
	Window   int                    // context window in tokens; 0: unknown
	HTTP     *http.Client           // nil: one without a proxy. Pass one to use a proxy
	Idle     time.Duration          // longest silence within a reply; 0: 120 s
	First    time.Duration          // longest wait for a reply to begin; 0: 10 min
}

// Model is one model of one server. It is safe for concurrent use.
type Model struct {
	info providers.Info
	key  func() (string, error)
	chat *chat.Client
}

// New returns a model. The error is for a person: a base URL that is not usable, or
// no model name.
func New(cfg Config) (*Model, error) {
	base, err := BaseURL(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(cfg.Model) == "" {
		return nil, errors.New("no model is named: write it after the provider, as in openai:gpt-6")
	}
	if cfg.Provider == "" {
		cfg.Provider = "openai"
	}
	info := providers.Info{Provider: cfg.Provider, Endpoint: base, Model: cfg.Model, Window: cfg.Window, Joins: true}
	return &Model{info: info, key: cfg.Key, chat: chat.New(chat.Config{
		BaseURL:          base,
		Model:            cfg.Model,
		Origin:           providers.Origin{Provider: info.Provider, Endpoint: info.Endpoint, Model: info.Model},
		Key:              cfg.Key,
		HTTP:             cfg.HTTP,
		Idle:             cfg.Idle,
		First:            cfg.First,
		CompletionTokens: isOpenAI(base),
	})}, nil
}

// Info describes the model, with the key as it is now.
func (m *Model) Info() providers.Info {
	info, key := m.info, ""
	if m.key != nil {
		key, _ = m.key() // one that cannot be read is told by the call
	}
	info.Gate = providers.Identity(info.Provider, info.Endpoint, strings.TrimSpace(key))
	return info
}

// Complete makes one call.
func (m *Model) Complete(ctx context.Context, req providers.Request) (providers.Reply, error) {
	return m.chat.Complete(ctx, req)
}

// BaseURL normalises a base URL: no slash and no /chat/completions at its end.
// User name, password, query and fragment are refused: a key does not belong there.
func BaseURL(s string) (string, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return DefaultBaseURL, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", errors.New("the base URL cannot be read; write it as https://host/v1") // the cause would show it
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", errors.New("the base URL must begin with https:// or http:// and a host, as in https://host/v1")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("the base URL of %s must hold no user name, password, query or fragment; a key is set on its own", u.Host)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.Path = strings.TrimRight(strings.TrimSuffix(u.Path, "/chat/completions"), "/")
	u.RawPath = ""
	u.Host = strings.ToLower(u.Host)
	return u.String(), nil
}

func isOpenAI(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com"))
}
