package smtpgate

import (
	"crypto/tls"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// maxJunk is how many lines a guard refuses before it hangs up.
	maxJunk = 10
	// maxAuth is how many AUTH commands a connection gets, aborted ones included.
	maxAuth = 8
)

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
