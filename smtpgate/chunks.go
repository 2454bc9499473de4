package smtpgate

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/emersion/go-smtp"
)

// chunk is what a BDAT command announces (RFC 3030).
type chunk struct {
	left int64
	last bool
}

// announce reads a BDAT command. The octets follow whatever the answer will be, so a
// size that cannot be read, or that a stranger announces, ends the connection.
func (g *guard) announce(line string) bool {
	args := strings.Fields(line)
	var size uint64
	err := error(nil)
	if len(args) >= 2 {
		size, err = strconv.ParseUint(args[1], 10, 62)
	}
	last := len(args) == 3 && strings.EqualFold(args[2], "LAST")
	switch {
	case !g.link.authed.Load():
		g.reply(530, "5.7.0", "log in first, closing connection")
	case g.verb != "BDAT", err != nil, len(args) < 2, len(args) > 3, len(args) == 3 && !last:
		g.reply(501, "5.5.4", "malformed BDAT, closing connection")
	default:
		g.chunk = &chunk{int64(size), last}
		return true
	}
	g.fail("bad BDAT")
	return false
}

// skipChunk throws away the octets of a chunk that nobody wanted.
func (g *guard) skipChunk() {
	src := &chunks{g: g, chunk: *g.chunk}
	g.chunk = nil
	src.drain(2 * g.srv.opts.MaxSize)
	if !src.inStep() {
		g.fail("chunk refused")
	}
}

// chunks reads the message of a group of BDAT commands and answers all but the last.
// To go-smtp the group is one DATA command: its own BDAT runs the session beside
// itself, takes a lost connection for the end of a chunk, and can give the result of
// an aborted message to the next.
type chunks struct {
	g *guard
	chunk
	err error // io.EOF after the last chunk; other errors stay
}

// Replies to what ends a group early. To go-smtp they are the answer to DATA.
var (
	errReset = &refusal{reply{250, smtp.EnhancedCode{2, 0, 0}, "message aborted, session reset"}}
	errQuit  = &refusal{reply{221, smtp.EnhancedCode{2, 0, 0}, "message aborted, bye"}}
)

func (c *chunks) Read(p []byte) (int, error) {
	for c.err == nil && c.left == 0 {
		if c.last {
			c.err = io.EOF
			break
		}
		c.g.reply(250, "2.0.0", "continue")
		c.err = c.nextChunk()
	}
	if c.err != nil {
		return 0, c.err
	}
	return c.take(p)
}

// take reads from the present chunk.
func (c *chunks) take(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.g.in.Read(p)
	c.left -= int64(n)
	if err != nil && c.left > 0 {
		c.err = cut(err)
	}
	return n, c.err
}

// nextChunk reads commands up to the next BDAT.
func (c *chunks) nextChunk() error {
	g := c.g
	for {
		line, err := g.readLine()
		if err != nil {
			g.lineError(err)
			return c.silence()
		}
		line = strings.TrimRight(line, "\r\n")
		verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
		switch {
		case strings.HasPrefix(verb, "BDAT"):
			g.verb = verb
			if !g.announce(line) {
				return c.silence()
			}
			c.chunk, g.chunk = *g.chunk, nil
			return nil
		case verb == "NOOP":
			g.reply(250, "2.0.0", "ok")
		case verb == "RSET":
			g.verb = verb
			return errReset
		case verb == "QUIT":
			g.hangUp.Store(true)
			return errQuit
		default:
			if g.refuse(503, "5.5.1", "a message is being transferred: BDAT, RSET or QUIT"); g.end != nil {
				return c.silence()
			}
		}
	}
}

// errSilent ends a message after the guard has answered and hung up.
var errSilent = refuse(421, 4, 2, "connection ended within a message")

// silence keeps the reply of go-smtp back that would follow the guard's last word.
func (c *chunks) silence() error {
	c.g.mu.Lock()
	c.g.mute = true
	c.g.mu.Unlock()
	return errSilent
}

// drain reads the rest of the present chunk.
func (c *chunks) drain(limit int64) {
	var scratch [4096]byte
	for n := int64(0); c.left > 0 && n <= limit; {
		m, err := c.take(scratch[:])
		n += int64(m)
		if err != nil {
			return
		}
	}
}

// inStep reports whether the next octet begins a command: a message may be refused in
// any chunk, and those behind it are refused one by one.
func (c *chunks) inStep() bool { return c.left == 0 && c.g.end == nil && !errors.Is(c.err, errSilent) }
