package imapserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// What other servers got wrong, each pinned through a socket:
//
//	 1  octets of a refused literal run as commands     append_refused.txtar
//	 2  literals over 4096 octets                       TestLiteralSizes, literals.txtar
//	 3  text behind the message of an APPEND            append_garbage.txtar, multiappend.txtar
//	 4  BODYSTRUCTURE of a multipart without parts      odd_structure.txtar
//	 5  IDLE forgets what came before it; "done"        idle.txtar
//	 6  malformed header lines, bare LF, no empty line  odd_header.txtar, odd_octets.txtar, TestOddMails
//	 7  ENVELOPE of groups and broken addresses         odd_header.txtar
//	 8  Content-Type garbage, parameters given twice    odd_structure.txtar
//	 9  partials read the whole message                 TestPartialsCost
//	10  deep nesting costs its square                   TestDeepNestingCost, TestMIMELimits
//	11  LIST patterns cost exponentially                TestListPatternCost
//	12  syntax errors are NO [SERVERBUG]                bad.txtar
//	13  SAVE answers, EXAMINE takes STORE               search.txtar, select.txtar
//	14  AUTHENTICATE blocks while a password is checked TestAuthenticateWaits
//	15  empty sets in COPYUID and SEARCH                copy.txtar, search.txtar
//	16  a write for each line; HEADER.FIELDS requoted   TestWritesAreJoined, fetch.txtar
//	17  keywords not in FLAGS, \seen                    store.txtar, TestManySessions

func TestLiteralSizes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, n := range []int{4096, 4097, 5000, 9000, 65000} {
		for _, plus := range []string{"", "+"} {
			w := h.dial("a")
			long := strings.Repeat("x", n)
			w.literal("LOGIN me", plus, long, "NO ")
			w.must("LOGIN me secret")
			w.must("SELECT INBOX")
			w.literal("SEARCH SUBJECT", plus, long, "OK ")
			w.must("NOOP")
			if len(w.errs) > 0 {
				t.Errorf("{%d%s}: %v", n, plus, w.errs)
			}
			w.c.Close()
		}
	}
}

// literal sends a command that ends in a literal and checks its tagged reply.
func (w *wire) literal(command, plus, octets, want string) {
	w.t.Helper()
	fmt.Fprintf(w.c, "lit %s {%d%s}\r\n", command, len(octets), plus)
	if plus == "" {
		if s, err := w.response(); !strings.HasPrefix(s, "+") {
			w.t.Fatalf("%s {%d}: %q %v", command, len(octets), s, err)
		}
	}
	io.WriteString(w.c, octets+"\r\n")
	for {
		s, err := w.response()
		if err != nil || strings.HasPrefix(s, "lit ") {
			if !strings.HasPrefix(s, "lit "+want) {
				w.t.Errorf("%s {%d%s}: %q %v", command, len(octets), plus, s, err)
			}
			return
		}
	}
}

// TestDeepNestingCost: one BODYSTRUCTURE took 7.5 s elsewhere. Here a message is looked at
// once, when it is stored, and what is described of it does not grow with its levels.
func TestDeepNestingCost(t *testing.T) {
	t.Parallel()
	st := &countingStore{}
	h := newHouse(t, func(o *Options) { st.Store, o.Store = o.Store.(mailbox.Store), st })
	w := h.dial("a")
	w.must("LOGIN me secret")
	deep := nestedMail(3000)
	w.must("APPEND INBOX {%d+}\r\n%s", len(deep), deep)
	w.must("SELECT INBOX")
	answer := w.must("FETCH 1 (BODYSTRUCTURE BODY ENVELOPE)")[0]
	if n := st.read.Load(); n != 0 {
		t.Errorf("FETCH reads %d octets of the message", n)
	}
	if len(answer) > 200*mime.MaxDepth {
		t.Errorf("the answer has %d octets", len(answer))
	}
}

// TestListPatternCost: where the cost is exponential the test does not end before it is
// given up.
func TestListPatternCost(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("CREATE %s", strings.Repeat("a", 200))
	for _, wild := range []string{"*", "%", "*%"} {
		pattern := strings.Repeat(wild+"a", 40) + wild + "b"
		for _, command := range []string{"LIST", "LSUB", "XLIST"} {
			if got := w.must("%s \"\" %s", command, pattern); len(got) != 1 {
				t.Errorf("%s: %q", command, got)
			}
		}
	}
}

// slowLogins lets one login wait until the test says so.
type slowLogins struct {
	logins
	asked, goOn chan struct{}
}

func (s slowLogins) Authenticate(ctx context.Context, login, password string) (mailbox.Identity, error) {
	if login == "reader" {
		close(s.asked)
		<-s.goOn
	}
	return s.logins.Authenticate(ctx, login, password)
}

// TestAuthenticateWaits: while a password is checked nobody else waits, a long answer is
// no trouble, and the reply comes.
func TestAuthenticateWaits(t *testing.T) {
	t.Parallel()
	slow := slowLogins{asked: make(chan struct{}), goOn: make(chan struct{})}
	h := newHouse(t, func(o *Options) { o.Accounts = slow })
	w, other := h.dial("a"), h.dial("b")
	plain := func(login, password string) string {
		return base64.StdEncoding.EncodeToString([]byte("\x00" + login + "\x00" + password))
	}
	fmt.Fprintf(w.c, "x AUTHENTICATE PLAIN %s\r\n", plain("reader", "secret"))
	<-slow.asked
	if s := last(other.do("AUTHENTICATE PLAIN %s", plain("me", strings.Repeat("p", 6000)))); !strings.Contains(s, " NO ") {
		t.Errorf("a long password: %q %v", s, other.errs)
	}
	other.must("AUTHENTICATE PLAIN %s", plain("me", "secret"))
	other.must("SELECT INBOX")
	close(slow.goOn)
	if s, err := w.response(); !strings.HasPrefix(s, "x OK ") {
		t.Errorf("%q %v", s, err)
	}
}

// countingListener counts the writes of the server.
type countingListener struct {
	net.Listener
	writes *atomic.Int64
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.writes}, err
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func TestWritesAreJoined(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.fill(500)
	var writes atomic.Int64
	h.addr = h.listen(func(l net.Listener) error { return h.srv.Serve(countingListener{l, &writes}) })
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	before, octets := writes.Load(), 0
	for _, s := range w.must("FETCH 1:* (UID FLAGS ENVELOPE)") {
		octets += len(s)
	}
	if n := int(writes.Load() - before); n > octets/(32<<10)+2 {
		t.Errorf("%d writes for %d octets", n, octets)
	}
}
