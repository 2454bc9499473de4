package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"pizza/providers"
)

// That a server cannot be reached is told with its host and port, and with nothing else
// of its address.
func TestCannotConnect(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connect: connection refused")}
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "llm.example", Server: "10.0.0.1:53"}}
	for _, tt := range []struct {
		url  string
		err  error
		want string
	}{
		{"http://127.0.0.1:11434/v1/chat", refused, "cannot connect to 127.0.0.1:11434: connection refused"},
		{"http://[::1]/v1", refused, "cannot connect to [::1]:80: connection refused"},
		{"https://me:hidden@llm.example/hidden?key=hidden#hidden", refused, "cannot connect to llm.example:443: connection refused"},
		{"https://llm.example/v1", unknown, "cannot connect to llm.example:443: no such host"},
	} {
		c := &Client{HTTP: &http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, tt.err },
		}}}
		_, _, err := c.Post(t.Context(), tt.url, http.Header{}, nil, Redact{})
		var pe *providers.Error
		if !errors.As(err, &pe) || pe.Class != providers.Network || pe.Message != tt.want {
			t.Errorf("%s: %v, want %q", tt.url, err, tt.want)
		}
	}
}
