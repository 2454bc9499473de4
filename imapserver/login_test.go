package imapserver

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/internal/scram/scramtest"
)

// fakeGuesses notes who was guessed at and makes all wait alike.
type fakeGuesses struct {
	wait  time.Duration
	came  chan string
	mu    sync.Mutex
	wrong []string
}

func (g *fakeGuesses) Wrong(login string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrong = append(g.wrong, login)
	if g.came != nil {
		g.came <- login
	}
	return g.wait
}

// authenticate goes through SCRAM-SHA-256 and returns the tagged reply.
func (w *wire) scram(c *scramtest.Client, initial bool) string {
	w.t.Helper()
	send := func(s string) { fmt.Fprintf(w.c, "%s\r\n", s) }
	challenge := func() string {
		s, err := w.response()
		coded, found := strings.CutPrefix(s, "+ ")
		plain, err2 := base64.StdEncoding.DecodeString(coded)
		if err != nil || err2 != nil || !found {
			w.t.Fatalf("challenge %q, %v", s, err)
		}
		return string(plain)
	}
	first := base64.StdEncoding.EncodeToString([]byte(c.First()))
	if initial {
		send("s AUTHENTICATE SCRAM-SHA-256 " + first)
	} else {
		send("s AUTHENTICATE SCRAM-SHA-256")
		if s := challenge(); s != "" {
			w.t.Errorf("the first challenge is %q", s)
		}
		send(first)
	}
	final, err := c.Final(challenge())
	if err != nil {
		w.t.Fatal(err)
	}
	send(base64.StdEncoding.EncodeToString([]byte(final)))
	s, err := w.response()
	if err != nil || !strings.HasPrefix(s, "+ ") {
		return s
	}
	proof, err := base64.StdEncoding.DecodeString(s[2:])
	if err != nil || !c.Trusts(string(proof)) {
		w.t.Errorf("the server's proof is %q, %v", proof, err)
	}
	send("")
	s, err = w.response()
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func TestScram(t *testing.T) {
	t.Parallel()
	g := &fakeGuesses{}
	h := newHouse(t, func(o *Options) { o.Guesses = g })
	for _, tt := range []struct {
		client  scramtest.Client
		initial bool
		want    string
	}{
		{scramtest.Client{User: "me", Password: "secret"}, true, "s OK [CAPABILITY "},
		{scramtest.Client{User: "me", Password: "secret", Authzid: "me"}, false, "s OK [CAPABILITY "},
		{scramtest.Client{User: "me", Password: "secret", Authzid: "reader"}, false, "s NO [AUTHORIZATIONFAILED] "},
		{scramtest.Client{User: "me", Password: "wrong"}, true, "s NO [AUTHENTICATIONFAILED] "},
		{scramtest.Client{User: "nobody", Password: "secret"}, true, "s NO [AUTHENTICATIONFAILED] "},
		{scramtest.Client{User: "sender", Password: "secret"}, true, "s NO [AUTHORIZATIONFAILED] "},
	} {
		tt.client.Nonce = "abc"
		if got := h.dial("s").scram(&tt.client, tt.initial); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s/%s: %s", tt.client.User, tt.client.Password, got)
		}
	}
	if got := fmt.Sprint(g.wrong); got != "[me nobody]" {
		t.Errorf("wrong passwords of %s", got)
	}
	for _, m := range []string{"bm9uc2Vuc2U=", "=", "cD10bHMtdW5pcXVlLCxuPW1lLHI9eA=="} {
		got := h.dial("s").do("AUTHENTICATE SCRAM-SHA-256 %s", m)
		if len(got) != 1 || !strings.HasPrefix(got[0], "s1 BAD ") {
			t.Errorf("%s: %q", m, got)
		}
	}
}

// TestGuessedAt: while the answer to a wrong password waits, the right one gets in on
// another connection, and the server can stop.
func TestGuessedAt(t *testing.T) {
	t.Parallel()
	g := &fakeGuesses{wait: time.Hour, came: make(chan string, 3)}
	h := newHouse(t, func(o *Options) { o.Guesses = g })
	for i, command := range []string{"LOGIN Me wrong", "AUTHENTICATE PLAIN AG1lAHdyb25n"} {
		w := h.dial("g")
		fmt.Fprintf(w.c, "g%d %s\r\n", i, command)
		if login := <-g.came; !strings.EqualFold(login, "me") {
			t.Errorf("%s: %s", command, login)
		}
	}
	got := h.dial("a").do("LOGIN me secret")
	if !strings.HasPrefix(got[len(got)-1], "a1 OK ") {
		t.Error(got)
	}
	if got := h.dial("b").do("LOGIN reader secret"); !strings.HasPrefix(got[0], "b1 OK ") {
		t.Error(got)
	}
}
