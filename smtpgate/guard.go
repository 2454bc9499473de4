package smtpgate

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-smtp"
)

const (
	// maxLine is the longest command line, with its CRLF. RFC 5321 section 4.5.3.1.4
	// asks for 512; AUTH responses and SMTPUTF8 paths need more.
	maxLine = 4096
	// maxJunk is how many lines a guard refuses before it hangs up.
	maxJunk = 10
	// maxAuth is how many AUTH commands a connection gets, aborted ones included.
	maxAuth = 8
	// lingerTime and lingerOctets bound what is still taken from a peer that was hung
	// up on, and thrown away.
	lingerTime   = time.Second
	lingerOctets = 4 << 20
	// outBuffer is how much of replies may wait before they are written in any case.
	outBuffer = 32 << 10
)

// guard is the net.Conn that go-smtp works on. It knows where a command, a SASL
// response and a message end, and hands over no octet beyond; messages themselves go
// past it, from the guard to the session (see body and chunks). Replies are
// collected and written when the guard is about to wait for the peer, so that a
// pipelined group (RFC 2920) and EHLO are answered in one segment.
//
// Read, Write and the fields up to mu belong to go-smtp's goroutine.
type guard struct {
	srv  *Server
	link *link
	tls  *tls.Conn // nil in clear
	conn net.Conn  // tls or the link's connection
	in   *bufio.Reader

	pending []byte    // rest of what Read hands over: a line, or the end of a message
	verb    string    // of the last command
	line    string    // the last command, without line end
	sasl    bool      // the next line answers a SASL challenge
	chunk   *chunk    // announced by BDAT and not read yet
	until   time.Time // deadline of the command line being read; zero: by progress
	grace   bool      // only StrayTime instead of DataTime
	junk    int
	end     error // what every further Read returns

	hangUp atomic.Bool // close when the reply is written

	mu      sync.Mutex // guards below: Shutdown comes from another goroutine
	out     []byte
	skip    bool // swallow the first line go-smtp writes: no greeting after STARTTLS
	command bool // waiting for a command
	mute    bool // the last word is said
	moved   bool // the connection belongs to another guard now
	shaken  bool // the handshake is done
}

func newGuard(s *Server, l *link, t *tls.Conn) *guard {
	g := &guard{srv: s, link: l, tls: t, conn: l.conn}
	if t != nil {
		g.conn = t
		l.set(func(l *link) { l.tls = true })
	}
	g.in = bufio.NewReaderSize(readerFunc(g.receive), maxLine)
	s.attach(g)
	return g
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Read hands over the rest of the line or message end at hand, else the next command
// line.
func (g *guard) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(g.pending) == 0 {
		if err := g.nextLine(); err != nil {
			return 0, err
		}
	}
	n := copy(p, g.pending)
	g.pending = g.pending[n:]
	return n, nil
}

// fail ends the connection: nothing that comes is read any more.
func (g *guard) fail(why string) {
	g.end = io.EOF
	g.hangUp.Store(true)
	g.link.set(func(l *link) {
		if l.end == "" {
			l.end = why
		}
	})
}

// reason is what a read error means, for the log.
func reason(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, io.EOF):
		return "closed by peer"
	}
	return err.Error()
}

// nextLine reads command lines until there is one for go-smtp.
func (g *guard) nextLine() error {
	for g.end == nil {
		if g.hangUp.Load() {
			g.end = io.EOF
			break
		}
		if g.chunk != nil { // refused: its octets come all the same
			g.skipChunk()
			continue
		}
		line, err := g.readLine()
		if err != nil {
			g.lineError(err)
			break
		}
		if g.admit(line) {
			return nil
		}
	}
	return g.end
}

// readLine reads one line within the time a command has.
func (g *guard) readLine() (string, error) {
	now := time.Now()
	g.until = now.Add(g.srv.opts.CommandTime)
	if !g.link.authed.Load() {
		if limit := now.Add(g.srv.opts.LoginTime - g.srv.opts.Now().Sub(g.link.started)); limit.Before(g.until) {
			g.until = limit
		}
	}
	g.setCommand(true)
	defer g.setCommand(false)
	// Also with pipelined commands at hand: what is in the buffer is not executed
	// once the server is stopping.
	if g.srv.closing.Load() {
		return "", errShutdown
	}
	b, err := g.in.ReadSlice('\n')
	return string(b), err
}

func (g *guard) setCommand(on bool) {
	g.mu.Lock()
	g.command = on
	g.mu.Unlock()
	if !on {
		g.until = time.Time{}
	}
}

// lineError ends the connection after a line that did not come.
func (g *guard) lineError(err error) {
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		g.reply(500, "5.5.2", fmt.Sprintf("line over %d octets, closing connection", maxLine))
		g.fail("line too long")
	case errors.Is(err, errShutdown), g.srv.closing.Load():
		g.reply(421, "4.3.2", "server is shutting down, try again later")
		g.fail("shutdown")
	case errors.Is(err, os.ErrDeadlineExceeded):
		g.reply(421, "4.4.2", "timeout, closing connection")
		g.fail("timeout")
	case errors.Is(err, io.EOF):
		g.end = io.EOF
	default:
		g.fail(reason(err))
	}
}

// reply writes a reply of the guard's own.
func (g *guard) reply(code int, enhanced, text string) {
	fmt.Fprintf(g, "%d %s %s\r\n", code, enhanced, text)
}

// refuse answers a line instead of go-smtp, and hangs up on a peer that sends
// nothing else.
func (g *guard) refuse(code int, enhanced, text string) bool {
	g.reply(code, enhanced, text)
	if g.junk++; g.junk >= maxJunk {
		g.reply(421, "4.7.0", "too many errors, closing connection")
		g.fail("too many errors")
	}
	return false
}

// admit decides what becomes of a line: true when go-smtp gets it.
func (g *guard) admit(raw string) bool {
	line := strings.TrimRight(raw, "\r\n")
	g.pending = []byte(line + "\r\n")
	if g.sasl {
		g.sasl = false
		return true
	}
	if !isText(line) {
		g.pending = nil
		return g.refuse(500, "5.5.2", "control characters or invalid UTF-8 in a command")
	}
	g.line, g.verb = line, ""
	if words := strings.Fields(line); len(words) > 0 {
		g.verb = strings.ToUpper(words[0])
	}
	ok := g.admitVerb(line)
	if !ok {
		g.pending = nil
	}
	return ok
}

func (g *guard) admitVerb(line string) bool {
	switch {
	case strings.HasPrefix(g.verb, "STARTTLS"):
		return g.startTLS(line)
	case strings.HasPrefix(g.verb, "BDAT"):
		if !g.announce(line) {
			return false
		}
		g.pending = []byte("DATA\r\n") // see chunks
	case g.verb == "AUTH":
		if g.link.attempts.Add(1) > maxAuth {
			g.reply(421, "4.7.0", "too many logins, closing connection")
			g.fail("too many logins")
			return false
		}
	case g.verb == "MAIL":
		g.pending = []byte(hugeSize.ReplaceAllString(line, "${1}4294967295") + "\r\n")
	case isHTTP(g.verb):
		// A web page can make a browser send this (cross-protocol request).
		g.reply(421, "5.7.0", "this is no web server, closing connection")
		g.fail("HTTP request")
		return false
	}
	return true
}

// hugeSize is a SIZE that go-smtp's 32 bits cannot hold; it is told the largest
// that they can, which is over every limit.
var hugeSize = regexp.MustCompile(`(?i)( SIZE=)[0-9]{10,20}`)

func isHTTP(verb string) bool {
	switch verb {
	case "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "CONNECT", "PATCH":
		return true
	}
	return false
}

// isText reports whether a command has no control characters and is UTF-8.
func isText(s string) bool {
	for i := range len(s) {
		if (s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f {
			return false
		}
	}
	return utf8.ValidString(s)
}

// startTLS answers STARTTLS (RFC 3207) and gives the connection to a new guard and
// a new session, so that nothing said in clear survives. What the peer, or somebody
// on the way, sent behind the command is thrown away.
func (g *guard) startTLS(line string) bool {
	switch {
	case !strings.EqualFold(strings.TrimSpace(line), "STARTTLS"):
		return g.refuse(501, "5.5.4", "STARTTLS takes no argument")
	case g.tls != nil:
		return g.refuse(503, "5.5.1", "already under TLS")
	case g.srv.opts.TLS == nil:
		return g.refuse(502, "5.5.1", "TLS is not available")
	}
	g.reply(220, "2.0.0", "ready to start TLS")
	if err := g.flush(); err != nil {
		g.fail(reason(err))
		return false
	}
	g.in.Discard(g.in.Buffered())
	g.mu.Lock()
	g.moved = true
	g.mu.Unlock()
	g.end = io.EOF
	next := newGuard(g.srv, g.link, tls.Server(g.link.conn, g.srv.opts.TLS))
	next.skip = true
	g.srv.detach(g)
	g.srv.secure.serve(next)
	return false
}

// receive reads from the network. Everything that is to be sent goes out first.
func (g *guard) receive(p []byte) (int, error) {
	if err := g.handshake(); err != nil {
		return 0, err
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	g.setReadDeadline()
	return g.conn.Read(p)
}

func (g *guard) setReadDeadline() {
	g.mu.Lock()
	defer g.mu.Unlock()
	deadline := g.until
	switch {
	case g.command && g.srv.closing.Load():
		deadline = time.Unix(1, 0)
	case deadline.IsZero() && g.grace:
		deadline = time.Now().Add(g.srv.opts.StrayTime)
	case deadline.IsZero():
		deadline = time.Now().Add(g.srv.opts.DataTime)
	}
	g.conn.SetReadDeadline(deadline)
}

// nudge wakes a guard that waits for a command.
func (g *guard) nudge() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.command {
		g.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

func (g *guard) handshake() error {
	if g.tls == nil || g.shaken {
		return nil
	}
	g.tls.SetDeadline(time.Now().Add(g.srv.opts.HandshakeTime))
	if err := g.tls.HandshakeContext(g.srv.ctx); err != nil {
		return fmt.Errorf("tls handshake: %w", err)
	}
	g.shaken = true
	return nil
}

// Write collects replies. go-smtp writes line by line.
func (g *guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	if g.skip {
		g.skip = false
		g.mu.Unlock()
		return len(p), nil
	}
	if g.mute || g.verb == "BDAT" && bytes.HasPrefix(p, []byte("354 ")) { // nobody said DATA
		g.mu.Unlock()
		return len(p), nil
	}
	g.out = append(g.out, g.better(p)...)
	full := len(g.out) > outBuffer
	g.mu.Unlock()
	if full {
		return len(p), g.flush()
	}
	return len(p), nil
}

// better corrects lines of go-smtp: the greeting must name us (RFC 5321 section
// 4.1.1.1), SIZE our limit (RFC 1870), and commands out of order are 503.
func (g *guard) better(p []byte) []byte {
	switch {
	case g.verb == "EHLO" && string(p) == "250-SIZE\r\n", g.verb == "EHLO" && string(p) == "250 SIZE\r\n":
		return fmt.Appendf(nil, "%s %d\r\n", p[:8], g.srv.opts.MaxSize)
	case g.verb == "EHLO" && bytes.HasPrefix(p, []byte("250-Hello ")):
		return fmt.Appendf(nil, "250-%s hello %s", g.srv.opts.Domain, p[len("250-Hello "):])
	case g.verb == "HELO" && bytes.HasPrefix(p, []byte("250 2.0.0 Hello ")):
		return fmt.Appendf(nil, "250 %s hello %s", g.srv.opts.Domain, p[len("250 2.0.0 Hello "):])
	case bytes.HasPrefix(p, []byte("502 5.5.1 Missing ")), bytes.HasPrefix(p, []byte("502 5.5.1 Please ")):
		return append([]byte("503"), p[3:]...)
	}
	return p
}

func (g *guard) flush() error {
	g.mu.Lock()
	out := g.out
	g.out = nil
	moved := g.moved
	g.mu.Unlock()
	if len(out) == 0 || moved {
		return nil
	}
	g.conn.SetWriteDeadline(time.Now().Add(g.srv.opts.WriteTime))
	_, err := g.conn.Write(out)
	return err
}

// Close sends what waits and closes the connection, unless it was handed on.
func (g *guard) Close() error {
	g.mu.Lock()
	moved := g.moved
	g.mu.Unlock()
	if moved {
		return nil
	}
	if g.tls == nil || g.shaken {
		g.flush()
	}
	if g.shaken {
		g.tls.Close() // close_notify, within 5 s
	}
	if g.hangUp.Load() && !g.srv.closing.Load() {
		g.linger()
	}
	g.srv.detach(g)
	return g.link.close()
}

// linger lets the last reply arrive: closing a socket with octets unread resets the
// connection, and the peer may lose what it has not read yet.
func (g *guard) linger() {
	half, ok := g.link.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	g.link.conn.SetReadDeadline(time.Now().Add(lingerTime))
	io.CopyN(io.Discard, g.link.conn, lingerOctets)
}

func (g *guard) LocalAddr() net.Addr  { return g.link.conn.LocalAddr() }
func (g *guard) RemoteAddr() net.Addr { return g.link.conn.RemoteAddr() }

// Deadlines are the guard's own.
func (g *guard) SetDeadline(time.Time) error      { return nil }
func (g *guard) SetReadDeadline(time.Time) error  { return nil }
func (g *guard) SetWriteDeadline(time.Time) error { return nil }

// guardOf returns the guard under a go-smtp connection.
func guardOf(c *smtp.Conn) *guard { return c.Conn().(*guard) }
