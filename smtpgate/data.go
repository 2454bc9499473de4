package smtpgate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// body reads the message of one DATA from a guard: leading dots removed, io.EOF
// after CR LF . CR LF and never after anything else (RFC 5321 section 4.5.2). Any
// other error means that the end did not come; it stays.
type body struct {
	g    *guard
	rest []byte // of the last slice, valid until the next
	prev byte   // last octet before rest
	bol  bool   // the next octet begins a line, after CRLF
	weak bool   // the next octet begins a line after a bare LF
	err  error
}

// source is where a message comes from: a body or chunks.
type source interface {
	io.Reader
	// drain reads on to the point where the next command begins, at most limit octets.
	drain(limit int64)
	// inStep reports whether that point is reached.
	inStep() bool
}

// beginData starts the message of a DATA or BDAT command.
func (g *guard) beginData() source {
	if c := g.chunk; c != nil {
		g.chunk = nil
		return &chunks{g: g, chunk: *c}
	}
	return &body{g: g, bol: true}
}

// endData lets go-smtp see the end of the message, which it waits for, or the end of
// the connection.
func (g *guard) endData(src source) {
	g.grace = false
	if src.inStep() {
		g.pending = []byte(".\r\n")
		return
	}
	g.fail("message cut")
}

func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.next()
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	for n < len(p) && len(b.rest) == 0 && b.err == nil && b.lineWaits() {
		b.next()
		m := copy(p[n:], b.rest)
		b.rest = b.rest[m:]
		n += m
	}
	return n, nil
}

// lineWaits reports whether a whole line can be had without waiting for the peer.
func (b *body) lineWaits() bool {
	waiting, _ := b.g.in.Peek(b.g.in.Buffered()) // no error: they are there
	return bytes.IndexByte(waiting, '\n') >= 0
}

func (b *body) inStep() bool { return b.err == io.EOF }

// next takes the next line, or a part of it when it is longer than the buffer.
func (b *body) next() {
	s, err := b.g.in.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		b.err = b.cut(err)
		return
	}
	if b.bol && string(s) == ".\r\n" {
		b.err = io.EOF
		return
	}
	b.g.grace = b.isStray(s)
	dot := b.bol && s[0] == '.'
	last := b.prev
	if len(s) > 1 {
		last = s[len(s)-2]
	}
	newline := s[len(s)-1] == '\n'
	b.bol, b.weak = newline && last == '\r', newline && last != '\r'
	b.prev = s[len(s)-1]
	if dot {
		s = s[1:]
	}
	b.rest = s
}

// isStray reports whether s looks like the end of the message but for bare CR or LF
// around it. The sender may be done then and wait for our answer, or it may want to
// hide a second message here: so if silence follows, the message is refused and the
// connection closed.
func (b *body) isStray(s []byte) bool {
	return (b.bol || b.weak) && string(s) == ".\n" ||
		b.weak && string(s) == ".\r\n" ||
		bytes.HasSuffix(s, []byte("\r.\r\n")) || bytes.HasSuffix(s, []byte("\r.\n"))
}

func (b *body) cut(err error) error {
	if b.g.grace && errors.Is(err, os.ErrDeadlineExceeded) {
		return errBareLF
	}
	return cut(err)
}

func cut(err error) error { return fmt.Errorf("%w: %s", errCut, reason(err)) }

func (b *body) drain(limit int64) {
	b.rest = nil
	for n := int64(0); b.err == nil && n <= limit; b.rest = nil {
		b.next()
		n += int64(len(b.rest))
	}
}

// What a message must not hold: such octets mean different things to different
// readers (RFC 5321 sections 2.3.8 and 4.1.1.4).
var (
	errBareLF = refuse(554, 6, 0, "the message has a line feed without carriage return; lines must end in CR LF")
	errBareCR = refuse(554, 6, 0, "the message has a carriage return without line feed; lines must end in CR LF")
	errNUL    = refuse(554, 6, 0, "the message has a NUL octet")
)

// checked passes on a message's octets and refuses what may not be in them. It gives
// io.EOF only for a message that is complete and clean; any other error stays.
type checked struct {
	src   io.Reader
	limit int64
	n     int64 // octets so far
	cr    bool  // the last octet was CR
	err   error
}

func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.src.Read(p)
	c.n += int64(n)
	switch fault := c.look(p[:n]); {
	case fault != nil:
		c.err = fault
	case c.n > c.limit:
		c.err = tooLarge(c.limit)
	case err == io.EOF && c.cr:
		c.err = errBareCR
	case err != nil:
		c.err = err
	default:
		return n, nil
	}
	if c.err == io.EOF {
		return n, io.EOF
	}
	return 0, c.err
}

// look finds the first fault of p, which follows what was looked at before.
func (c *checked) look(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if bytes.IndexByte(p, 0) >= 0 {
		return errNUL
	}
	if c.cr && p[0] != '\n' {
		return errBareCR
	}
	for i := 0; i < len(p); i++ {
		j := bytes.IndexByte(p[i:], '\n')
		if j < 0 {
			break
		}
		i += j
		if after := i > 0 && p[i-1] == '\r' || i == 0 && c.cr; !after {
			return errBareLF
		}
	}
	last := p[len(p)-1] == '\r'
	crs, lfs := bytes.Count(p, []byte{'\r'}), bytes.Count(p, []byte{'\n'})
	if c.cr {
		crs++ // it belongs to the LF that p begins with
	}
	if last {
		crs--
	}
	// Every LF follows a CR; more CRs than LFs are bare ones.
	if crs != lfs {
		return errBareCR
	}
	c.cr = last
	return nil
}

// tooLarge names the limit the way people count.
func tooLarge(limit int64) error {
	return refuse(552, 3, 4, "the message is over the limit of "+megabytes(limit))
}

func megabytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KB", n>>10)
	}
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
