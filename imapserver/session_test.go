package imapserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pizza/mailbox"
)

const mail = "From: Ann <ann@localhost>\r\nTo: me@localhost\r\nSubject: Hello\r\n" +
	"Date: Sun, 1 Feb 2026 21:52:25 -0800\r\nMessage-ID: <one@localhost>\r\n\r\nBody.\r\n"

// TestManySessions lets several sessions change one mailbox at random, at the same
// time. What each client was told must never contradict itself, and in the end be
// what the mailbox holds.
func TestManySessions(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for range 20 {
		h.deliver("INBOX", []byte(mail))
	}
	const sessions = 6
	clients := make([]*wire, sessions)
	var wg sync.WaitGroup
	for i := range clients {
		w := h.dial(string(rune('a' + i)))
		clients[i] = w
		w.must("LOGIN me secret")
		w.must("SELECT INBOX")
		wg.Go(func() { w.wander(rand.New(rand.NewPCG(uint64(i), 3)), 60) })
	}
	wg.Wait()
	want := ""
	for _, w := range clients {
		w.must("NOOP")
		believed := slices.Clone(w.flags)
		w.must("FETCH 1:* (UID FLAGS)")
		for i, flags := range believed {
			if flags != unknownFlags && flags != w.flags[i] {
				w.fail("message %d: believed %s, is %s", i+1, flags, w.flags[i])
			}
		}
		state := fmt.Sprint(w.uids, w.flags)
		if want == "" {
			want = state
		}
		if state != want {
			w.fail("ends with %s, others with %s", state, want)
		}
		for _, e := range w.errs {
			t.Error(e)
		}
	}
	if strings.Contains(h.log.String(), "panic") {
		t.Error("panic in the log")
	}
}

// wander sends random commands. What is new is fetched once, so that the client knows
// its flags from then on by what it is told.
func (w *wire) wander(rnd *rand.Rand, steps int) {
	w.do("FETCH 1:* (UID FLAGS)")
	for range steps {
		n := len(w.uids)
		pick := 1
		if n > 0 {
			pick = 1 + rnd.IntN(n)
		}
		switch rnd.IntN(12) {
		case 0:
			w.do("APPEND INBOX (k%d) {%d+}\r\n%s", rnd.IntN(5), len(mail), mail)
		case 1:
			w.do("STORE %d +FLAGS (\\Deleted k%d)", pick, rnd.IntN(9))
		case 2:
			w.do("STORE %d,%d -FLAGS.SILENT (\\Deleted k1)", pick, max(1, n/2))
			w.do("FETCH 1:* (UID FLAGS)") // what was silent
		case 3:
			w.do("EXPUNGE")
		case 4:
			w.do("UID FETCH 1:* (FLAGS)")
		case 5:
			w.do("FETCH %d (FLAGS BODY[])", pick)
		case 6:
			w.do("COPY %d INBOX", pick)
		case 7:
			w.do("MOVE %d Trash", pick)
		case 8:
			w.do("SEARCH OR DELETED KEYWORD k1")
		case 9:
			w.do("UID STORE 1:* FLAGS (k%d)", rnd.IntN(3))
		default:
			w.do("NOOP")
		}
		if i := slices.Index(w.flags, unknownFlags); i >= 0 {
			w.do("FETCH %d:* (UID FLAGS)", i+1)
		}
	}
}

// A client that reads a large message in chunks gets exactly its octets (Thunderbird
// loops otherwise), and a message held in a file too.
func TestChunks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	raw := []byte(mail + strings.Repeat("0123456789abcde\n", 30000))
	h.deliver("INBOX", raw)
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	var got []byte
	size := 65536
	for off := 0; ; size += 10000 {
		s := w.must("UID FETCH 1 (UID BODY[]<%d.%d>)", off, size)[0]
		head, rest, _ := strings.Cut(s, "\r\n")
		lit := announced([]byte(head))
		if !strings.Contains(head, fmt.Sprintf("BODY[]<%d> ", off)) {
			t.Fatalf("label: %s", head)
		}
		if lit == nil {
			break
		}
		got = append(got, rest[:lit.size]...)
		off += int(lit.size)
	}
	if !bytes.Equal(got, raw) {
		t.Errorf("chunks make %d octets, message has %d", len(got), len(raw))
	}
	whole := w.must("FETCH 1 (BODY.PEEK[] FLAGS)")[0]
	if !strings.Contains(whole, string(raw)) || !strings.Contains(whole, `FLAGS (\Seen`) {
		t.Error("the whole message differs, or reading it did not set \\Seen")
	}
}

// An APPEND of many megabytes is taken and given back as it was.
func TestLargeAppend(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	body := mail + strings.Repeat("x", 3<<20) + "\r\n"
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("APPEND Drafts (\\Draft) {%d+}\r\n%s", len(body), body)
	w.must("SELECT Drafts")
	if s := w.must("FETCH 1 BODY.PEEK[]")[0]; !strings.Contains(s, body) {
		t.Error("octets differ")
	}
}

func TestShutdownSaysBye(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	idle, plain := h.dial("a"), h.dial("b")
	for _, w := range []*wire{idle, plain} {
		w.must("LOGIN me secret")
		w.must("SELECT INBOX")
	}
	io.WriteString(idle.c, "x IDLE\r\n")
	if s, err := idle.response(); s != "+ idling" {
		t.Fatal(s, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- h.srv.Shutdown(ctx) }()
	for _, w := range []*wire{idle, plain} {
		if s, err := w.response(); s != "* BYE The server is shutting down" {
			t.Errorf("got %q %v", s, err)
		}
		if s, err := w.response(); !errors.Is(err, io.EOF) {
			t.Errorf("after BYE: %q %v", s, err)
		}
		w.c.Close()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestTimeouts: a client that stops is told why and cut off, each time after what is set
// for it. The clock is that of a bubble.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	const login, idle, read = 3 * time.Second, 7 * time.Second, 5 * time.Second
	say := func(s string) func(*wire) {
		return func(w *wire) { w.must("LOGIN me secret"); io.WriteString(w.c, s) }
	}
	for _, tt := range []struct {
		name  string
		talk  func(*wire)
		after time.Duration
		want  []string
	}{
		{"before login", func(*wire) {}, login, []string{"* BYE Too long without a login"}},
		{"no command", say(""), idle, []string{"* BYE Idle for too long"}},
		{"half a command", say("x NO"), read, []string{"* BYE Idle for too long"}},
		{"idle", say("x IDLE\r\n"), idle, []string{"+ idling", "* BYE Idle for too long"}},
		{"half a literal", say("x SEARCH SUBJECT {100+}\r\nabc"), read, []string{"* BYE Idle for too long"}},
		{"half a message", say("x APPEND INBOX {100+}\r\nabc"), read, []string{"x NO [UNAVAILABLE] The message did not arrive", "* BYE Idle for too long"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newQuietHouse(t, func(o *Options) { o.LoginTimeout, o.IdleTimeout, o.ReadTimeout = login, idle, read })
				w := h.pipe("a")
				tt.talk(w)
				began := time.Now()
				for _, want := range tt.want {
					if s, err := w.response(); s != want {
						t.Errorf("got %q %v, want %q", s, err, want)
					}
				}
				if after := time.Since(began); after != tt.after {
					t.Errorf("after %v, want %v", after, tt.after)
				}
				w.c.Close()
				if n := h.box("INBOX").Exists; n != 0 {
					t.Errorf("%d messages stored", n)
				}
			})
		})
	}
}

// A connection that is cut in the middle of a literal stores nothing.
func TestCutLiteral(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	w := h.dial("a")
	w.must("LOGIN me secret")
	io.WriteString(w.c, "x APPEND INBOX {100+}\r\nabc")
	w.c.(*net.TCPConn).CloseWrite()
	for {
		if _, err := w.response(); err != nil {
			break
		}
	}
	if n := h.box("INBOX").Exists; n != 0 {
		t.Errorf("%d messages stored", n)
	}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) { o.MaxConns = 1 })
	first := h.dial("a")
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, _ := io.ReadAll(c); !strings.HasPrefix(string(b), "* BYE Too many connections") {
		t.Errorf("got %q", b)
	}
	first.must("NOOP")
}

func TestEndsNonsense(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for name, command := range map[string]string{
		"bad commands": "NONSENSE",
		"no login":     "NOOP",
	} {
		w := h.dial("a")
		for range 200 {
			if w.do("%s", command); len(w.errs) > 0 {
				break
			}
		}
		if len(w.errs) == 0 {
			t.Errorf("%s: the connection goes on", name)
		}
		if w.n != maxBad+1 && w.n != maxBeforeLogin+1 {
			t.Errorf("%s: ended after %d commands", name, w.n)
		}
	}
}

// panicking is a store that fails in the worst way.
type panicking struct{ mailbox.Store }

func (panicking) Mailboxes(context.Context, mailbox.AccountID) ([]mailbox.Mailbox, error) {
	panic("boom")
}

func TestPanicEndsOneConnection(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) { o.Store = panicking{o.Store.(mailbox.Store)} })
	w, other := h.dial("a"), h.dial("b")
	w.must("LOGIN me secret")
	other.must("LOGIN me secret")
	w.do("LIST \"\" *")
	other.must("NOOP")
	if !strings.Contains(h.log.String(), "boom") {
		t.Error("the panic is not in the log")
	}
}

// Secrets and messages never reach the log.
func TestLogIsMasked(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	w := h.dial("a")
	w.do("LOGIN me hunter2")
	w.do("LOGIN me {7+}\r\nhunter2")
	w.do("AUTHENTICATE PLAIN AG1lAGh1bnRlcjI=")
	io.WriteString(w.c, "zz\r\n")
	w.response()
	x := h.dial("b")
	x.must("LOGIN me secret")
	x.must("APPEND INBOX {9+}\r\ntopsecret")
	x.must("LOGOUT")
	for _, secret := range []string{"hunter2", "aHVudGVyMg", "AG1lAGh1bnRlcjI=", "topsecret", "secret"} {
		if strings.Contains(h.log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, h.log.String())
		}
	}
}

// remote is a connection that claims to come from another machine.
type remote struct{ net.Conn }

func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

type remoteListener struct{ net.Listener }

func (l remoteListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return remote{c}, nil
}

// Over the net a password needs TLS.
func TestLoginDisabled(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.addr = h.listen(func(l net.Listener) error { return h.srv.Serve(remoteListener{l}) })
	w := h.dial("a")
	caps := w.must("CAPABILITY")[0]
	if !strings.Contains(caps, "LOGINDISABLED") || strings.Contains(caps, "AUTH=") || !strings.Contains(caps, "STARTTLS") {
		t.Error(caps)
	}
	for _, command := range []string{"LOGIN me secret", "AUTHENTICATE PLAIN AG1lAHNlY3JldA=="} {
		if s := last(w.do("%s", command)); !strings.Contains(s, "NO [PRIVACYREQUIRED]") {
			t.Errorf("%s: %s", command, s)
		}
	}
}

func TestStatusFor(t *testing.T) {
	t.Parallel()
	fail := func(k mailbox.Kind) error {
		return fmt.Errorf("op: %w", &mailbox.Error{Op: "x", Kind: k, Err: errors.New("/secret/path")})
	}
	for _, tt := range []struct {
		err      error
		want     string
		internal bool
	}{
		{syntaxError("Bad date"), "BAD [] Bad date", false},
		{errors.New("/var/lib/x: input/output error"), "NO [SERVERBUG] Internal error", true},
		{fail(mailbox.Internal), "NO [SERVERBUG] Internal error", true},
		{fail(mailbox.NotFound), "NO [NONEXISTENT] There is no such mailbox", false},
		{fail(mailbox.Exists), "NO [ALREADYEXISTS] There is a mailbox of that name", false},
		{fail(mailbox.Full), "NO [OVERQUOTA] The disk is almost full: delete mail or other files first", false},
		{fail(mailbox.Denied), "NO [NOPERM] This login may not do that", false},
		{fail(mailbox.Transient), "NO [UNAVAILABLE] Try again later", false},
		{&mailbox.Error{Kind: mailbox.Refused, Text: "Decide first", Code: "NOPERM"}, "NO [NOPERM] Decide first", false},
		{context.Canceled, "NO [UNAVAILABLE] The server is shutting down", false},
	} {
		r, internal := statusFor(tt.err)
		if got := fmt.Sprintf("%s [%s] %s", r.kind, r.code, r.text); got != tt.want || internal != tt.internal {
			t.Errorf("%v = %s %v, want %s %v", tt.err, got, internal, tt.want, tt.internal)
		}
	}
}

// TestPython lets the standard library of Python do its round.
func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	h := newHouse(t, nil)
	h.deliver("INBOX", []byte(mail))
	_, port, _ := net.SplitHostPort(h.addr)
	script := `
import imaplib, sys, time
m = imaplib.IMAP4("127.0.0.1", int(sys.argv[1]))
m.starttls(__import__("ssl")._create_unverified_context())
m.login("me", "secret")
assert m.list()[0] == "OK" and len(m.lsub()[1]) == 6, m.lsub()
assert m.select("INBOX") == ("OK", [b"1"])
typ, data = m.append("INBOX", "(\\Seen)", imaplib.Time2Internaldate(time.time()), b"Subject: two\r\n\r\nhi\r\n")
assert typ == "OK", data
assert m.search(None, "UNSEEN")[1] == [b"1"], m.search(None, "UNSEEN")
typ, data = m.fetch("1:2", "(UID RFC822.SIZE BODY[])")
assert b"Subject: Hello" in data[0][1], data
assert m.store("1", "+FLAGS", "\\Deleted")[0] == "OK"
assert m.copy("2", "Trash")[0] == "OK"
assert m.expunge()[1] == [b"1"]
assert m.create("Mine")[0] == "OK" and m.rename("Mine", "Yours")[0] == "OK" and m.delete("Yours")[0] == "OK"
assert m.status("Trash", "(MESSAGES UNSEEN)")[1] == [b'"Trash" (MESSAGES 1 UNSEEN 0)'], m.status("Trash", "(MESSAGES UNSEEN)")
m.close(); m.logout()
`
	out, err := exec.Command(python, "-c", script, port).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
