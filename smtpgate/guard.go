package smtpgate

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
)

// maxLine is the longest command line, with its CRLF. RFC 5321 section 4.5.3.1.4
// asks for 512; AUTH responses and SMTPUTF8 paths need more.
const maxLine = 4096

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

// guardOf returns the guard under a go-smtp connection.
func guardOf(c *smtp.Conn) *guard { return c.Conn().(*guard) }
