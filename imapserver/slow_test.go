package imapserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"pizza/mailbox"
)

// pipe connects a client without any buffer between it and the server: what the client
// does not read, the server has not written.
func (h *house) pipe(name string) *wire {
	h.t.Helper()
	here, there := net.Pipe()
	h.t.Cleanup(func() { here.Close() })
	h.srv.start(local{there}, nil)
	w := &wire{t: h.t, c: here, r: bufio.NewReaderSize(here, 16), name: name, known: map[string]bool{}}
	w.response()
	return w
}

// local is a connection from this machine, over which passwords are taken.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// TestSlowReader: a client that does not read what it asked for holds up nobody, not
// even the end of the store.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for range 40 {
		h.deliver("INBOX", []byte("Subject: big\r\n\r\n"+strings.Repeat("text of it\r\n", 5000)))
	}
	w := h.pipe("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	if _, err := io.WriteString(w.c, "zz FETCH 1:* (ENVELOPE BODY.PEEK[])\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.r.ReadByte(); err != nil { // now the server waits for us in the middle of it
		t.Fatal(err)
	}
	h.deliver("INBOX", []byte("Subject: meanwhile\r\n\r\n"))
	closed := make(chan error, 1)
	go func() { closed <- h.store.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the store waits for a slow reader")
	}
	w.c.Close()
}

// TestLongHeader: a header longer than what the store hands over is read whole all the
// same; fields are picked from its beginning.
func TestLongHeader(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	header := "Subject: first\r\nX-Long: " + strings.Repeat("y", mailbox.MaxHeader) + "\r\nFrom: far@away\r\n\r\n"
	h.deliver("INBOX", []byte(header+"body\r\n"))
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	literal := func(s string) string { return fmt.Sprintf("{%d}\r\n%s", len(s), s) }
	for item, want := range map[string]string{
		"BODY[HEADER]": literal(header),
		fmt.Sprintf("BODY[HEADER]<%d>", len(header)-10): literal(header[len(header)-10:]),
		"BODY[HEADER]<9>":                    literal("first"),
		"BODY[HEADER.FIELDS (Subject From)]": literal("Subject: first\r\n\r\n"),
		"BODY[TEXT]":                         literal("body\r\n"),
	} {
		asked := strings.Replace(item, "]<9>", "]<9.5>", 1)
		if strings.HasSuffix(asked, fmt.Sprintf("<%d>", len(header)-10)) {
			asked = strings.TrimSuffix(asked, ">") + ".100>"
		}
		got := w.must("FETCH 1 %s", strings.Replace(asked, "BODY", "BODY.PEEK", 1))
		if len(got) < 2 || got[0] != "* 1 FETCH ("+item+" "+want+")" {
			t.Errorf("%s: %d responses, the first of %d octets: %.60q", item, len(got), len(got[0]), got[0])
		}
	}
}
