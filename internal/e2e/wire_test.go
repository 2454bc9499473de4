//go:build e2e || bench || soak

package e2e

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// plain is the initial response of SASL PLAIN (RFC 4616).
func plain(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
}

// readPasswordFile reads the generated password of the account me.
func readPasswordFile(tb testing.TB, s *server) string {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(s.root, "credentials", "me"))
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func httpGet(tb testing.TB, url string) (status int, body string) {
	tb.Helper()
	resp, err := http.Get(url)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// wire is a raw connection that speaks lines, for input no client library would send
// and for exact times.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dialWire(t *testing.T, addr string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &wire{t, conn, bufio.NewReader(conn)}
}

func (w *wire) send(s string) {
	// A server that has already answered and hung up is seen when reading.
	_, _ = w.conn.Write([]byte(s))
}

// line reads one line; what names what is waited for.
func (w *wire) line(what string) string {
	w.t.Helper()
	if err := w.conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	s, err := w.r.ReadString('\n')
	if err != nil {
		w.t.Fatalf("waiting for %q: %v", what, err)
	}
	return s
}

// until reads lines up to one that begins with prefix and returns it.
func (w *wire) until(prefix string) string {
	w.t.Helper()
	for {
		if s := w.line(prefix); strings.HasPrefix(s, prefix) {
			return s
		}
	}
}

// want is until, but any other line that looks like a final answer of SMTP fails.
func (w *wire) want(prefix string) string {
	w.t.Helper()
	for {
		s := w.line(prefix)
		if strings.HasPrefix(s, prefix) {
			return s
		}
		if len(s) > 3 && s[3] == ' ' && s[0] >= '2' && s[0] <= '5' {
			w.t.Fatalf("got %q, want %q", s, prefix)
		}
	}
}
