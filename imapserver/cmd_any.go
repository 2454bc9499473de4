package imapserver

import (
	"slices"
	"strings"
)

func (c *conn) capability(p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	c.out.str("* CAPABILITY ").str(c.capabilities()).crlf()
	return done("CAPABILITY"), nil
}

func (c *conn) noop(p *parser) (reply, error) { return c.asked("NOOP", p) }

func (c *conn) check(p *parser) (reply, error) { return c.asked("CHECK", p) }

// asked answers a command that asks for nothing but news.
func (c *conn) asked(name string, p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	c.news()
	return done(name), nil
}

func (c *conn) logout(p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	c.out.str("* BYE Logging out").crlf()
	c.leave()
	c.state = loggedOut
	c.end("logged out")
	return done("LOGOUT"), nil
}

// identify answers ID (RFC 2971). What the client says of itself goes to the log.
func (c *conn) identify(p *parser) (reply, error) {
	p.sp()
	var said []string
	if p.peek() == '(' {
		p.list(func() {
			key := p.string_()
			p.sp()
			value, _ := p.nstring()
			said = append(said, key+"="+value)
		})
	} else {
		p.nstring()
	}
	if err := p.end(); err != nil {
		return reply{}, err
	}
	c.log.Debug("imap: client", "id", oneLine(strings.Join(said, " ")))
	c.out.str(`* ID ("name" `).quoted(c.srv.opt.Name, false)
	if v := c.srv.opt.Version; v != "" {
		c.out.str(` "version" `).quoted(v, false)
	}
	c.out.str(")").crlf()
	return done("ID"), nil
}

// startTLS goes on under TLS. What the client sent ahead in the clear is never read
// as if it had come under TLS: the connection ends.
func (c *conn) startTLS(p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	if c.srv.opt.TLS == nil || c.isTLS {
		return reply{kind: bad, text: "STARTTLS is not available"}, nil
	}
	if c.in.Buffered() > 0 {
		c.end("Nothing may follow STARTTLS before its reply")
		return reply{kind: bad, text: "Nothing may follow STARTTLS before its reply"}, nil
	}
	c.upgrade = func() { c.handshake(c.srv.opt.TLS) }
	return reply{kind: ok, text: "Begin TLS negotiation now"}, nil
}

func (c *conn) enable(p *parser) (reply, error) {
	var caps []string
	for p.accept(' ') {
		caps = append(caps, p.word())
	}
	if err := p.end(); err != nil {
		return reply{}, err
	}
	if len(caps) == 0 {
		return reply{}, syntaxError("Missing argument")
	}
	c.out.str("* ENABLED")
	for i, name := range caps {
		if on := enables[name]; on != nil && c.offers(name) && !slices.Contains(caps[:i], name) {
			on(c)
			c.out.str(" ").str(canonical(name))
		}
	}
	c.out.crlf()
	if c.qresync || slices.Contains(caps, "CONDSTORE") && c.offers("CONDSTORE") {
		c.aware()
	}
	return done("ENABLE"), nil
}

// canonical is how a capability is written: in capitals, but for one.
func canonical(name string) string {
	if name == "IMAP4REV2" {
		return "IMAP4rev2"
	}
	return name
}

func (c *conn) namespace(p *parser) (reply, error) {
	if err := p.end(); err != nil {
		return reply{}, err
	}
	c.out.str(`* NAMESPACE (("" "/")) NIL NIL`).crlf()
	return done("NAMESPACE"), nil
}
