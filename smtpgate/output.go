package smtpgate

import (
	"bytes"
	"fmt"
	"time"
)

// outBuffer is how much of replies may wait before they are written in any case.
const outBuffer = 32 << 10

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
// 4.1.1.1), SIZE our limit (RFC 1870), commands out of order are 503, and a response
// that is no base64 is the client's fault, not a passing one (RFC 4954 section 4).
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
	case g.verb == "AUTH" && string(p) == "454 4.7.0 Invalid base64 data\r\n":
		return []byte("501 5.5.2 authentication response is not base64\r\n")
	}
	return p
}

// reply writes a reply of the guard's own.
func (g *guard) reply(code int, enhanced, text string) {
	fmt.Fprintf(g, "%d %s %s\r\n", code, enhanced, text)
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
