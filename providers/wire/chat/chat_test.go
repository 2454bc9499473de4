package chat

import (
	"errors"
	"strings"
	"testing"

	"pizza/providers"
	"pizza/providers/providertest"
)

func TestTooLargeReply(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1<<20)
	stream := providertest.SSE(providertest.Text(big), providertest.Text(big), providertest.Finish("stop"))
	whole := providertest.JSON(`{"choices":[{"message":{"content":"` + big + big + `"},"finish_reason":"stop"}]}`)
	s := providertest.NewChat(providertest.ChatTurn{Answer: stream}, providertest.ChatTurn{Answer: whole}, providertest.ChatTurn{Answer: stream})
	t.Cleanup(s.Close)
	c := New(Config{BaseURL: s.URL, Model: "m"})
	c.wire.Max = 1 << 20
	req := providers.Request{Messages: []providers.Message{{Role: providers.User, Parts: []providers.Part{{Kind: providers.Text, Text: "x"}}}}}
	for range 2 {
		var pe *providers.Error
		if _, err := c.Complete(t.Context(), req); !errors.As(err, &pe) || pe.Class != providers.Failed || !strings.Contains(pe.Message, "larger than 1 MiB") {
			t.Errorf("%v", err)
		}
	}
	c.wire.Max = 3 << 20
	if r, err := c.Complete(t.Context(), req); err != nil || len(r.Message.Parts[0].Text) != 2<<20 {
		t.Errorf("%v", err)
	}
}
