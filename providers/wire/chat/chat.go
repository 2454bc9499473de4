// Package chat is the wire of OpenAI Chat Completions, streaming, as OpenAI and the
// many compatible servers (Ollama, OpenRouter, vLLM, llama.cpp) speak it.
//
// A reply is complete when a finish_reason has come; a stream that ends without one
// is *providers.Error Network with Partial. What a server leaves out or does its own
// way (ids, indexes, arguments as an object, an error within a 200) is put right;
// what cannot be is an error or a call with Bad set, never a guess.
//
// Message.Raw is the assistant message as it must go back, with the reasoning fields
// of the server. It is sent only to the Origin that wrote it.
package chat

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"pizza/providers"
	"pizza/providers/wire"
)

// Config of a Client.
type Config struct {
	BaseURL string // "https://api.openai.com/v1", without a slash at its end
	Model   string
	Origin  providers.Origin
	// Key returns the bearer token; "" sends none. nil: none. It is called for each
	// call, so that a changed key acts at once.
	Key    func() (string, error)
	Header http.Header // sent with each call
	HTTP   *http.Client
	Idle   time.Duration // see wire.Client
	First  time.Duration
	// CompletionTokens sends max_completion_tokens in place of max_tokens.
	CompletionTokens bool
}

// Client calls one model. It is safe for concurrent use.
type Client struct {
	cfg  Config
	wire wire.Client

	mu     sync.Mutex
	quirks quirks // learned from refusals
}

// New returns a client.
func New(cfg Config) *Client {
	return &Client{
		cfg:    cfg,
		wire:   wire.Client{HTTP: cfg.HTTP, Idle: cfg.Idle, First: cfg.First},
		quirks: quirks{completionTokens: cfg.CompletionTokens},
	}
}

// Complete makes one call. It does not retry; only a request that the server refused
// because of one optional field is sent once more without it, and from then on so.
func (c *Client) Complete(ctx context.Context, req providers.Request) (providers.Reply, error) {
	start := time.Now()
	if err := ctx.Err(); err != nil {
		return providers.Reply{}, err
	}
	header, redact, err := c.header()
	if err != nil {
		return providers.Reply{}, err
	}
	resp, err := c.post(ctx, req, header, redact)
	if err != nil {
		return providers.Reply{}, err
	}
	defer resp.Body.Close()
	a := newAssembler(req, redact)
	if err := receive(resp, a); err != nil {
		return providers.Reply{}, a.failed(err)
	}
	reply, err := a.reply(c.cfg.Origin)
	reply.Took = time.Since(start)
	return reply, err
}

// header holds the key. A key that cannot be sent is told without showing it.
func (c *Client) header() (http.Header, wire.Redact, error) {
	h := c.cfg.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "pizza")
	if c.cfg.Key == nil {
		return h, wire.Redact{}, nil
	}
	key, err := c.cfg.Key()
	if err != nil {
		return nil, wire.Redact{}, &providers.Error{Class: providers.Auth, Message: err.Error()}
	}
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' }) {
		return nil, wire.Redact{}, &providers.Error{Class: providers.Auth, Message: "the key has characters that no key has; set it again"}
	}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h, wire.Redact{Key: key}, nil
}

// post sends the request, and a second time if the first taught something.
func (c *Client) post(ctx context.Context, req providers.Request, header http.Header, redact wire.Redact) (*wire.Response, error) {
	c.mu.Lock()
	q := c.quirks
	c.mu.Unlock()
	to := c.cfg.BaseURL + "/chat/completions"
	body := build(req, c.cfg.Model, c.cfg.Origin, q)
	resp, failure, err := c.wire.Post(ctx, to, header, body, redact)
	var pe *providers.Error
	if !errors.As(err, &pe) || pe.Status != http.StatusBadRequest && pe.Status != http.StatusUnprocessableEntity {
		return resp, err
	}
	learned, ok := q.learn(failure, body)
	if !ok {
		return nil, err
	}
	resp, _, err = c.wire.Post(ctx, to, header, build(req, c.cfg.Model, c.cfg.Origin, learned), redact)
	if err == nil {
		c.mu.Lock()
		c.quirks = learned
		c.mu.Unlock()
	}
	return resp, err
}

// receive feeds the assembler with the events of a stream, or with a whole JSON body
// of a server that does not stream.
func receive(resp *wire.Response, a *assembler) error {
	r := bufio.NewReaderSize(resp.Body, 16<<10)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "text/event-stream" && !streams(r) {
		body, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return a.whole(body)
	}
	events := wire.NewEventReader(r, wire.MaxReply)
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case strings.TrimSpace(string(ev.Data)) == "[DONE]":
			return nil
		}
		if err := a.event(ev); err != nil {
			return err
		}
	}
}

// streams looks whether a body without the right type begins like an event stream.
func streams(r *bufio.Reader) bool {
	head, _ := r.Peek(1)
	for n := 1; len(head) == n && strings.ContainsRune(" \t\r\n\uFEFF", rune(head[n-1])); n++ {
		head, _ = r.Peek(n + 1)
	}
	return len(head) > 0 && !slices.Contains([]byte("{[<"), head[len(head)-1]) && head[len(head)-1] > ' '
}
