package imapserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unknownFlags stands for the flags of a message that were not fetched.
const unknownFlags = "?"

// wire is a client that keeps what the server says of the selected mailbox.
type wire struct {
	t     testing.TB
	c     net.Conn
	r     *bufio.Reader
	n     int
	name  string
	uids  []string // by sequence number; "" not known
	flags []string
	known map[string]bool // keywords and flags announced by FLAGS
	// quiet: EXPUNGE is not allowed in the command that runs
	quiet bool
	errs  []string
}

func (h *house) dial(name string) *wire {
	h.t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	w := &wire{t: h.t, c: c, r: bufio.NewReader(c), name: name, known: map[string]bool{}}
	w.response()
	return w
}

// response reads one response, literals in place.
func (w *wire) response() (string, error) {
	var b strings.Builder
	w.c.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		s, err := w.r.ReadString('\n')
		if err != nil {
			return b.String(), err
		}
		b.WriteString(s)
		lit := announced(trimEOL([]byte(s)))
		if lit == nil {
			return strings.TrimRight(b.String(), "\r\n"), nil
		}
		if _, err := io.CopyN(&b, w.r, lit.size); err != nil {
			return b.String(), err
		}
	}
}

// send sends a line.
func (w *wire) send(line string) {
	if _, err := io.WriteString(w.c, line+"\r\n"); err != nil {
		w.errs = append(w.errs, err.Error())
	}
}

// do sends a command, follows what the server tells and returns the responses.
func (w *wire) do(format string, args ...any) []string {
	w.n++
	tag := w.name + strconv.Itoa(w.n)
	command := fmt.Sprintf(format, args...)
	verb, _, _ := strings.Cut(command, " ")
	w.quiet = verb == "FETCH" || verb == "STORE" || verb == "SEARCH"
	if verb == "SELECT" {
		w.uids, w.flags, w.known = nil, nil, map[string]bool{}
	}
	if _, err := io.WriteString(w.c, tag+" "+command+"\r\n"); err != nil {
		w.errs = append(w.errs, err.Error())
		return nil
	}
	var got []string
	for {
		s, err := w.response()
		if err != nil {
			w.errs = append(w.errs, command+": "+err.Error())
			return got
		}
		got = append(got, s)
		if strings.HasPrefix(s, tag+" ") {
			return got
		}
		w.follow(command, s)
	}
}

func (w *wire) fail(format string, args ...any) {
	w.errs = append(w.errs, fmt.Sprintf(w.name+": "+format, args...))
}

// follow applies an untagged response to what the client believes.
func (w *wire) follow(command, s string) {
	f := strings.Fields(s)
	if len(f) < 3 || f[0] != "*" {
		return
	}
	n, err := strconv.Atoi(f[1])
	switch {
	case f[1] == "FLAGS":
		for _, k := range strings.Fields(strings.Trim(s[8:], "()")) {
			w.known[k] = true
		}
	case err != nil:
	case f[2] == "EXISTS":
		if n < len(w.uids) {
			w.fail("%s: EXISTS went down from %d to %d", command, len(w.uids), n)
		}
		for len(w.uids) < n {
			w.uids, w.flags = append(w.uids, ""), append(w.flags, unknownFlags)
		}
	case f[2] == "EXPUNGE":
		if w.quiet || n > len(w.uids) {
			w.fail("%s: %s (of %d)", command, s, len(w.uids))
			return
		}
		w.uids = append(w.uids[:n-1], w.uids[n:]...)
		w.flags = append(w.flags[:n-1], w.flags[n:]...)
	case f[2] == "FETCH":
		w.fetched(command, s, n)
	}
}

func (w *wire) fetched(command, s string, n int) {
	if n > len(w.uids) {
		w.fail("%s: %s before EXISTS", command, s)
		return
	}
	if _, rest, found := strings.Cut(s, "UID "); found {
		uid := strings.TrimRight(strings.Fields(rest)[0], ")")
		if w.uids[n-1] != "" && w.uids[n-1] != uid {
			w.fail("%s: message %d is UID %s, was %s", command, n, uid, w.uids[n-1])
		}
		w.uids[n-1] = uid
	}
	if _, rest, found := strings.Cut(s, "FLAGS ("); found {
		flags, _, _ := strings.Cut(rest, ")")
		for _, k := range strings.Fields(flags) {
			if k != `\Recent` && !w.known[k] {
				w.fail("%s: %s without being in FLAGS", command, k)
			}
		}
		w.flags[n-1] = strings.TrimSuffix(strings.ReplaceAll(flags, `\Recent`, ""), " ")
	}
}

func last(got []string) string {
	if len(got) == 0 {
		return ""
	}
	return got[len(got)-1]
}

// must runs a command that has to end with OK.
func (w *wire) must(format string, args ...any) []string {
	w.t.Helper()
	got := w.do(format, args...)
	if _, status, _ := strings.Cut(last(got), " "); !strings.HasPrefix(status, "OK") {
		w.t.Fatalf("%s: %q %v", fmt.Sprintf(format, args...), last(got), w.errs)
	}
	return got
}
