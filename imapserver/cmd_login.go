package imapserver

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"pizza/internal/scram"
	"pizza/mailbox"
)

// maxLogins is how many failed logins a connection has.
const maxLogins = 3

// maxSASL is how long a line of a SASL exchange may be.
const maxSASL = 12 << 10

func (c *conn) login(p *parser) (reply, error) {
	p.sp()
	user := p.astring()
	p.sp()
	password := p.astring()
	if err := p.end(); err != nil {
		return reply{}, err
	}
	if !c.mayLogin() {
		return needsTLS(), nil
	}
	return c.enter("", user, password)
}

func needsTLS() reply {
	return reply{no, "PRIVACYREQUIRED", "Use TLS to log in"}
}

// authenticate runs AUTHENTICATE with PLAIN (RFC 4616), LOGIN or SCRAM-SHA-256, with an initial
// response (RFC 4959) or without.
func (c *conn) authenticate(p *parser) (reply, error) {
	p.sp()
	mechanism := p.word()
	var initial []byte
	given := p.accept(' ')
	if given {
		initial = []byte(p.take(func(b byte) bool { return b > ' ' && b < 0x7f }))
	}
	if err := p.end(); err != nil {
		return reply{}, err
	}
	if !c.mayLogin() {
		return needsTLS(), nil
	}
	x := exchange{c: c, next: initial, given: given}
	switch mechanism {
	case "PLAIN":
		parts := bytes.Split(x.ask(""), []byte{0})
		if x.err == nil && len(parts) != 3 {
			return reply{kind: bad, text: "Malformed PLAIN response"}, nil
		}
		if x.err != nil {
			return x.reply()
		}
		return c.enter(string(parts[0]), string(parts[1]), string(parts[2]))
	case "LOGIN":
		user := x.ask("Username:")
		password := x.ask("Password:")
		if x.err != nil {
			return x.reply()
		}
		return c.enter("", string(user), string(password))
	case scram.Mechanism:
		return c.scram(&x)
	}
	return reply{kind: no, text: "Unknown mechanism: use SCRAM-SHA-256, PLAIN or LOGIN"}, nil
}

// exchange is the challenges and responses of one AUTHENTICATE.
type exchange struct {
	c     *conn
	next  []byte // the initial response
	given bool   // next is to be used
	err   error
}

var (
	errCancelled = syntaxError("Authentication cancelled")
	errBase64    = syntaxError("Malformed base64")
)

func (x *exchange) ask(challenge string) []byte {
	if x.err != nil {
		return nil
	}
	coded := x.next
	if !x.given {
		x.c.out.str("+ ").str(base64.StdEncoding.EncodeToString([]byte(challenge))).crlf()
		coded, x.err = x.c.rd.readLine(maxSASL)
		if x.err != nil {
			return nil
		}
		if string(coded) == "*" {
			x.err = errCancelled
			return nil
		}
	}
	if x.given && string(coded) == "=" {
		coded = nil
	}
	x.given = false
	plain, err := base64.StdEncoding.DecodeString(string(coded))
	if err != nil {
		x.err = errBase64
	}
	return plain
}

// reply is how an exchange that broke off ends.
func (x *exchange) reply() (reply, error) {
	var syntax syntaxError
	if errors.As(x.err, &syntax) {
		return reply{}, x.err
	}
	if errors.Is(x.err, errLineTooLong) {
		x.c.end("Line too long")
		return reply{kind: bad, text: "Line too long"}, nil
	}
	x.c.end(x.c.reason(x.err))
	return reply{kind: none}, nil
}

// enter checks a password and logs in. Which of login and password was wrong, or how
// the check failed, is not told.
func (c *conn) enter(authzid, user, password string) (reply, error) {
	id, err := c.srv.opt.Accounts.Authenticate(c.ctx, user, password)
	return c.admit(authzid, user, id, err)
}

// scram runs SCRAM-SHA-256. The server's proof is the last challenge; the client answers
// it with nothing.
func (c *conn) scram(x *exchange) (reply, error) {
	s := scram.New(func(login string) (mailbox.Verifiers, error) { return c.srv.opt.Accounts.Verifiers(c.ctx, login) })
	challenge, ended, err := "", false, error(nil)
	for !ended {
		response := x.ask(challenge)
		if x.err != nil {
			return x.reply()
		}
		var next []byte
		if next, ended, err = s.Next(response); err != nil {
			break
		}
		challenge = string(next)
	}
	user, authzid := s.User()
	switch {
	case errors.Is(err, scram.ErrSyntax):
		return reply{kind: bad, text: "Malformed SCRAM message"}, nil
	case errors.Is(err, scram.ErrProof):
		return c.loginFailed(user), nil
	}
	return c.admit(authzid, user, s.Identity(), err)
}

// admit lets in who a mechanism found to be id, or answers with what is in the way.
func (c *conn) admit(authzid, user string, id mailbox.Identity, err error) (reply, error) {
	switch {
	case err == nil && !speaksFor(id, user, authzid):
		return reply{no, "AUTHORIZATIONFAILED", "A login may only speak for itself"}, nil
	case err == nil && id.Scope == mailbox.ScopeSend:
		return reply{no, "AUTHORIZATIONFAILED", "This password is for sending mail only: use one that may read"}, nil
	case err == nil && !c.srv.login(id.Account):
		return reply{no, "LIMIT", "Too many connections of this account: close some of them"}, nil
	case err == nil:
		c.ident, c.state, c.failures = id, authenticated, 0
		c.hide(id.Login)
		return reply{ok, "CAPABILITY " + c.capabilities(), "Logged in"}, nil
	case isKind(err, mailbox.Denied, mailbox.NotFound, mailbox.Invalid):
		return c.loginFailed(user), nil
	}
	return reply{}, err
}

// speaksFor reports whether an authorization identity is the login's own (neomutt
// sends the user's name).
func speaksFor(id mailbox.Identity, user, authzid string) bool {
	return authzid == "" || strings.EqualFold(authzid, user) || strings.EqualFold(authzid, id.Login) ||
		slices.Contains(id.Addresses, strings.ToLower(authzid))
}

// loginFailed answers a wrong password, each time later, by what was tried here and by
// what was tried at this login anywhere; the last one ends the connection.
func (c *conn) loginFailed(user string) reply {
	c.failures++
	wait := c.srv.opt.LoginDelay << (c.failures - 1)
	if c.srv.opt.Guesses != nil {
		wait = max(wait, c.srv.opt.Guesses.Wrong(user))
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ctx.Done():
	case <-c.srv.done:
	}
	if c.failures >= maxLogins {
		c.end("Too many failed logins")
	}
	return reply{no, "AUTHENTICATIONFAILED", "Wrong login or password"}
}
