package imapserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"pizza/mailbox"
)

const (
	// maxBad is how many commands in a row may be BAD.
	maxBad = 20
	// maxBeforeLogin is how many commands a client has to log in.
	maxBeforeLogin = 100
)

// conn is one connection. Its goroutine owns all fields; stop and cut may be called
// by others.
type conn struct {
	srv      *Server
	id       string
	log      *slog.Logger
	raw      *progressConn
	net      net.Conn // raw, or TLS on it
	implicit *tls.Config
	isTLS    bool
	in       *bufio.Reader
	rd       *reader
	out      *writer
	ctx      context.Context // ends with cut
	cut      context.CancelCauseFunc
	reading  bool // another goroutine reads (IDLE, NOTIFY): a read does not flush

	state    state
	ident    mailbox.Identity
	failures int      // logins in a row
	bads     int      // BAD commands in a row
	utf8     bool     // ENABLE UTF8=ACCEPT
	rev2     bool     // ENABLE IMAP4rev2
	hidden   []string // capabilities that this account is not told of
	// condstore: mod-sequences are told (see aware); qresync: ENABLE QRESYNC
	condstore, qresync bool
	sel                *selected
	listening          *notifying // NOTIFY; nil: not used so far
	changing           bool       // the command that runs changes the store
	tag                string     // of the command that runs
	commands           int
	bye                string // why the connection ends, "" while it goes on
	upgrade            func() // what to do after the reply: STARTTLS
}

// state of a connection (RFC 3501 section 3); commands.go says what each allows.
type state uint8

const (
	notAuthenticated state = 1 << iota
	authenticated
	selectedState
	loggedOut
)

func newConn(s *Server, raw net.Conn, implicit *tls.Config) *conn {
	c := &conn{srv: s, implicit: implicit, state: notAuthenticated}
	c.id = "i" + strconv.FormatUint(s.nextID.Add(1), 10)
	c.log = s.opt.Log.With("conn", c.id)
	c.raw = &progressConn{Conn: raw, write: s.opt.WriteTimeout}
	ctx, cut := context.WithCancelCause(context.Background())
	c.ctx = ctx
	c.cut = func(cause error) { cut(cause); raw.Close() }
	c.attach(c.raw)
	return c
}

// attach makes the connection speak through nc.
func (c *conn) attach(nc net.Conn) {
	c.net = nc
	var sent int64
	if c.out != nil {
		sent = c.out.sent
	}
	c.out = &writer{w: nc, sent: sent}
	c.in = bufio.NewReaderSize(flushing{c}, 4096)
	c.rd = &reader{in: c.in, max: c.srv.opt.MaxCommand, proceed: func() { c.out.str("+ OK\r\n") }}
}

// flushing sends what waits before it waits for input.
type flushing struct{ c *conn }

func (f flushing) Read(b []byte) (int, error) {
	if !f.c.reading {
		if err := f.c.out.flush(); err != nil {
			return 0, err
		}
	}
	return f.c.net.Read(b)
}

// stop asks the connection to end after the command that runs.
func (c *conn) stop() { c.raw.stop() }

// turnAway ends a connection that there is no room for.
func (c *conn) turnAway() {
	defer c.cut(net.ErrClosed)
	if c.implicit == nil {
		c.raw.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		io.WriteString(c.raw.Conn, "* BYE Too many connections, try again later\r\n")
	}
}

// serve runs the connection to its end.
func (c *conn) serve() {
	start := time.Now()
	defer c.close(start)
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("imap: panic", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			c.end("Internal error")
		}
	}()
	c.raw.waitFor(c.srv.opt.LoginTimeout, start.Add(c.srv.opt.LoginTimeout))
	if c.implicit != nil && !c.handshake(c.implicit) {
		return
	}
	c.out.str("* OK [CAPABILITY ").str(c.capabilities()).str("] ").str(c.srv.opt.Name).str(" ready").crlf()
	for c.bye == "" {
		if err := c.command(); err != nil {
			c.end(c.reason(err))
		}
	}
}

// close says goodbye and forgets the session.
func (c *conn) close(start time.Time) {
	c.deafen()
	c.leave()
	if c.bye != "" && c.bye != silent && c.state != loggedOut {
		c.out.str("* BYE ").str(c.bye).crlf()
	}
	err := c.out.flush()
	if err == nil && c.bye != "" && c.bye != silent {
		if t, ok := c.net.(*tls.Conn); ok {
			t.CloseWrite()
		}
		c.raw.linger()
	}
	c.cut(net.ErrClosed)
	if c.ident.Account != "" {
		c.srv.logout(c.ident.Account)
	}
	c.log.LogAttrs(context.Background(), slog.LevelInfo, "imap: session",
		slog.String("login", c.ident.Login), slog.Duration("dur", time.Since(start)),
		slog.Int("commands", c.commands), slog.Int64("sent", c.out.sent), slog.String("end", c.bye))
}

// silent ends a connection that nothing can be said to.
const silent = "connection lost"

func (c *conn) end(why string) {
	if c.bye == "" {
		c.bye = why
	}
}

// reason turns an error of the connection into the text of BYE.
func (c *conn) reason(err error) string {
	switch {
	case c.srv.isClosing():
		return "The server is shutting down"
	case errors.Is(err, os.ErrDeadlineExceeded) && c.out.err == nil && c.state == notAuthenticated:
		return "Too long without a login"
	case errors.Is(err, os.ErrDeadlineExceeded) && c.out.err == nil:
		return "Idle for too long"
	}
	return silent
}

func (c *conn) handshake(cfg *tls.Config) bool {
	t := tls.Server(c.raw, cfg)
	ctx, cancel := context.WithTimeout(c.ctx, c.srv.opt.LoginTimeout)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		c.log.Info("imap: TLS handshake", "err", err)
		c.end(silent)
		return false
	}
	c.attach(t)
	c.isTLS = true
	return true
}

// command reads one command, carries it out and answers.
func (c *conn) command() error {
	if c.srv.isClosing() && c.in.Buffered() == 0 {
		return os.ErrDeadlineExceeded
	}
	c.patience()
	if err := c.await(); err != nil {
		return err
	}
	c.hurry()
	l, err := c.rd.command()
	if err != nil {
		return err
	}
	c.commands++
	p := c.parser(l.raw)
	if l.message != nil {
		p.b = l.raw[:len(l.raw)-l.message.spec]
	}
	r := c.answer(l, p)
	if up := c.upgrade; up != nil {
		c.upgrade = nil
		if err := c.out.flush(); err != nil {
			return err
		}
		up()
	}
	if l.lost {
		c.end("Too much data in a refused literal")
	}
	c.count(r)
	return c.out.err
}

// parser reads text as this connection takes it.
func (c *conn) parser(text []byte) *parser {
	return &parser{b: text, utf8: c.utf8 || c.rev2, rev2: c.rev2, known: c.knows}
}

// patience sets how long to wait for the next command.
func (c *conn) patience() {
	opt := &c.srv.opt
	if c.state == notAuthenticated {
		c.raw.waitFor(opt.LoginTimeout, time.Now().Add(opt.LoginTimeout))
		return
	}
	c.raw.waitFor(opt.IdleTimeout, time.Time{})
}

// hurry sets how long to wait for the rest of a command that has begun. Before the login
// patience has set an end to everything.
func (c *conn) hurry() {
	if c.state != notAuthenticated {
		c.raw.waitFor(c.srv.opt.ReadTimeout, time.Time{})
	}
}

// answer finds the command, runs it and writes the one tagged reply.
func (c *conn) answer(l *line, p *parser) reply {
	tag := p.tag()
	if tag == "" || !p.accept(' ') && p.i < len(p.b) {
		c.skipMessage(l)
		r := reply{kind: bad, text: "Expected a tag and a command"}
		c.writeReply("*", r)
		return r
	}
	c.tag = tag
	name := p.word()
	r := c.run(l, p, name)
	c.trace(name, tag, l, r)
	c.writeReply(tag, r)
	return r
}

func (c *conn) run(l *line, p *parser, name string) reply {
	cmd, known := commands[name]
	if name == "UID" && p.accept(' ') {
		name = "UID " + p.word()
		cmd, known = commands[name]
	}
	if !c.knows(inCommand, name) {
		known = false
	}
	if refused := c.refusal(l, p, cmd, known); refused != nil {
		c.skipMessage(l)
		return *refused
	}
	c.changing = cmd.changes
	r, err := c.execute(l, p, cmd)
	if err != nil {
		var internal bool
		if r, internal = statusFor(err); internal {
			c.log.Error("imap: "+name, "err", err)
		}
	}
	if r.kind != bad && c.state == selectedState && c.sel != nil {
		before := c.sel.overheard
		c.tell(cmd.expunge && !p.byNumber)
		if cmd.message { // programs expect EXISTS of their own APPEND
			c.sel.overheard = before
		}
	}
	c.changing = false
	return c.settle(r)
}

// refusal says why a command cannot be run at all, nil when it can.
func (c *conn) refusal(l *line, p *parser, cmd *command, known bool) *reply {
	switch {
	case l.refused != nil:
		return l.refused
	case p.err != nil || !known:
		return &reply{kind: bad, text: "Unknown command"}
	case cmd.states&c.state == 0:
		return &reply{kind: bad, text: "Command not allowed in this state"}
	case l.message != nil && !cmd.message:
		return &reply{kind: bad, text: "Unexpected literal"}
	case cmd.changes && c.ident.Scope == mailbox.ScopeRead:
		return &reply{no, "NOPERM", "This password may only read: log in with one that may change mail"}
	}
	return nil
}

func (c *conn) execute(l *line, p *parser, cmd *command) (reply, error) {
	if cmd.message {
		return c.append_(l, p)
	}
	if c.sel != nil && cmd.states == selectedState {
		c.tell(false)
	}
	return cmd.run(c, p)
}

// skipMessage throws away the message of an APPEND that is not carried out.
func (c *conn) skipMessage(l *line) {
	if l.message == nil {
		return
	}
	c.hurry()
	lost, err := c.rd.drain(l.message, c.maxSkip())
	l.message = nil
	l.lost = l.lost || lost || err != nil
}

// maxSkip is how many octets of refused literals are read and thrown away: of a login as
// many as a message may have, so that a program that did not ask first can go on.
func (c *conn) maxSkip() int64 {
	if c.state == notAuthenticated {
		return maxDrain
	}
	return max(maxDrain, c.srv.opt.MaxLiteral)
}

func (c *conn) writeReply(tag string, r reply) {
	if r.kind == none {
		return
	}
	c.out.str(tag).str(" ").str(string(r.kind)).str(" ")
	if r.code != "" {
		c.out.str("[").str(r.code).str("] ")
	}
	c.out.str(oneLine(r.text)).crlf()
}

// oneLine makes a text fit for a response: resp-text is one line of ASCII.
func oneLine(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			b := []byte(s)
			for j := range b {
				if b[j] < ' ' || b[j] >= 0x7f {
					b[j] = '?'
				}
			}
			return string(b)
		}
	}
	if s == "" {
		return "Done"
	}
	return s
}

// count ends a connection that sends nothing but nonsense, or never logs in.
func (c *conn) count(r reply) {
	if c.state == notAuthenticated && c.commands >= maxBeforeLogin {
		c.end("Too many commands without a login")
	}
	if r.kind != bad {
		c.bads = 0
		return
	}
	if c.bads++; c.bads >= maxBad {
		c.end("Too many bad commands")
	}
}

// trace logs a command at level debug, without literals, and without what follows
// LOGIN and AUTHENTICATE.
func (c *conn) trace(name, tag string, l *line, r reply) {
	if !c.log.Enabled(c.ctx, slog.LevelDebug) {
		return
	}
	text := "(masked)"
	if name != "LOGIN" && name != "AUTHENTICATE" {
		text = firstLine(l.raw)
	}
	c.log.LogAttrs(c.ctx, slog.LevelDebug, "imap: command", slog.String("command", name), slog.String("tag", tag),
		slog.String("line", text), slog.String("reply", string(r.kind)), slog.String("code", r.code), slog.String("text", r.text))
}

func firstLine(b []byte) string {
	for i, c := range b {
		if c == '\r' || c == '\n' || i == 500 {
			return string(b[:i]) + " ..."
		}
	}
	return string(b)
}
