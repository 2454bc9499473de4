package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"pizza/providers"
	"pizza/providers/providertest"
	"pizza/providers/wire"
)

func failure(message string) wire.Failure { return wire.Failure{Message: message} }

// Whatever a server sends, the result is an error or a reply that can be sent back.
func FuzzReply(f *testing.F) {
	for _, a := range []providertest.Answer{
		providertest.SSE(providertest.Text("hi"), providertest.ToolDelta(0, "a", "f", `{"x":1}`), providertest.Finish("tool_calls"), providertest.Tokens(1, 2), providertest.Done),
		providertest.SSE(providertest.Delta(`"reasoning_details":[{"index":0,"type":"reasoning.text","text":"a"}],"content":[{"type":"text","text":"b"}]`), providertest.Finish("length")),
		providertest.JSON(`{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":{}}}]},"finish_reason":"stop"}]}`),
		providertest.JSON(`{"error":{"code":5}}`),
	} {
		f.Add(a.Body, true)
		f.Add(a.Body, false)
	}
	own := providers.Origin{Provider: "p", Model: "m"}
	user := providers.Message{Role: providers.User, Parts: []providers.Part{{Kind: providers.Text, Text: "x"}}}
	f.Fuzz(func(t *testing.T, body []byte, sse bool) {
		resp := &wire.Response{Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
		if sse {
			resp.Header.Set("Content-Type", "text/event-stream")
		}
		a := newAssembler(providers.Request{}, wire.Redact{})
		var reply providers.Reply
		err := receive(resp, a)
		if err == nil {
			reply, err = a.reply(own)
		}
		var pe *providers.Error
		if err != nil {
			if err = a.failed(err); !errors.As(err, &pe) || pe.Class == "" {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		req := providers.Request{Messages: []providers.Message{user, reply.Message}}
		if body := build(req, "m", own, quirks{}); !json.Valid(body) {
			t.Errorf("next request: %s", body)
		}
		if err := providertest.Validate(providers.Request{Messages: wire.Repair(req.Messages)}); err != nil {
			t.Error(err)
		}
	})
}
