package smtpgate

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"pizza/internal/scram"
	"pizza/mailbox"
)

const (
	// maxFailures is how many refused logins a connection gets.
	maxFailures = 3
	// maxDelay is the longest wait before a refused login is answered.
	maxDelay = 10 * time.Second
)

var (
	errPlainText   = refuse(538, 7, 11, "encryption is needed to log in: use STARTTLS or the TLS port")
	errMechanism   = refuse(504, 5, 4, "no such mechanism: use SCRAM-SHA-256, PLAIN or LOGIN")
	errCredentials = refuse(535, 7, 8, "wrong user name or password")
	errIdentity    = refuse(535, 7, 8, "the authorization identity is not the user")
	errReadOnly    = refuse(535, 7, 8, "this password may only read mail, not send")
	errLoginFault  = refuse(454, 7, 0, "cannot check the login now, try again later")
	errFailures    = refuse(421, 7, 0, "too many refused logins, closing connection")
	errResponse    = refuse(501, 5, 2, "malformed authentication response")
)

// mayLogin reports whether a password may be sent on this connection.
func (s *session) mayLogin() bool { return s.g.tls != nil || s.g.link.loopback }

// AuthMechanisms are those that EHLO offers.
func (s *session) AuthMechanisms() []string {
	if !s.mayLogin() {
		return nil
	}
	return []string{sasl.Plain, sasl.Login, scram.Mechanism}
}

// Auth begins an exchange.
func (s *session) Auth(mech string) (sasl.Server, error) {
	if !s.mayLogin() {
		return nil, s.answer("auth", errPlainText)
	}
	switch mech {
	case sasl.Plain:
		return &exchange{s: s, server: sasl.NewPlainServer(s.plainLogin)}, nil
	case sasl.Login:
		return &exchange{s: s, server: &loginServer{login: s.logIn}}, nil
	case scram.Mechanism:
		return &exchange{s: s, server: newScram(s)}, nil
	}
	return nil, s.answer("auth", errMechanism)
}

// scramServer is SCRAM-SHA-256. The client answers the server's proof with nothing.
type scramServer struct {
	s *session
	*scram.Server
}

func newScram(s *session) *scramServer {
	return &scramServer{s, scram.New(func(login string) (mailbox.Verifiers, error) {
		return s.g.srv.opts.Accounts.Verifiers(s.ctx, login)
	})}
}

func (m *scramServer) Next(response []byte) (challenge []byte, done bool, err error) {
	challenge, done, err = m.Server.Next(response)
	user, authzid := m.User()
	switch {
	case errors.Is(err, scram.ErrProof):
		return nil, true, m.s.refused(user, errCredentials)
	case errors.Is(err, scram.ErrSyntax):
		return nil, true, errResponse
	case err != nil || !done:
		return challenge, done, m.s.fault(err)
	case !sameLogin(authzid, user):
		return nil, true, m.s.refused(user, errIdentity)
	}
	return nil, true, m.s.admit(user, m.Identity())
}

// exchange stands around a mechanism: it tells the guard when the next line is a
// response, and lets only mapped errors out.
type exchange struct {
	s      *session
	server sasl.Server
}

func (e *exchange) Next(response []byte) (challenge []byte, done bool, err error) {
	wire := e.s.safely("auth", func() error {
		challenge, done, err = e.server.Next(response)
		var own *refusal
		if err != nil && !errors.As(err, &own) {
			err = errResponse // the library's: wrong number of parts, or a line too many
		}
		return err
	})
	if wire != nil {
		return nil, true, wire
	}
	e.s.g.sasl = !done
	return challenge, done, nil
}

// loginServer is the LOGIN mechanism (draft-murchison-sasl-login), which Outlook and
// printers want: user name and password, each after a prompt.
type loginServer struct {
	login func(user, password string) error
	user  string
	asked int
}

func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	switch {
	case l.asked == 0 && response == nil:
		l.asked = 1
		return []byte("Username:"), false, nil
	case l.asked < 2: // the user name, also as an initial response
		l.user, l.asked = string(response), 2
		return []byte("Password:"), false, nil
	case l.asked == 2:
		l.asked = 3
		return nil, true, l.login(l.user, string(response))
	}
	return nil, false, sasl.ErrUnexpectedClientResponse
}

// plainLogin accepts an authorization identity that names the user (neomutt sends
// one), in any of the forms a login has.
func (s *session) plainLogin(identity, user, password string) error {
	if !sameLogin(identity, user) {
		return s.refused(user, errIdentity)
	}
	return s.logIn(user, password)
}

// sameLogin reports whether an authorization identity, if there is one, is the user.
func sameLogin(identity, user string) bool {
	return identity == "" || strings.EqualFold(localPart(identity), localPart(user))
}

func localPart(addr string) string {
	local, _, _ := strings.Cut(addr, "@")
	return local
}

func (s *session) logIn(user, password string) error {
	id, err := s.g.srv.opts.Accounts.Authenticate(s.ctx, user, password)
	switch {
	case isDenied(err):
		return s.refused(user, errCredentials)
	case err != nil:
		return s.fault(err)
	}
	return s.admit(user, id)
}

// fault answers a login that could not be checked.
func (s *session) fault(err error) error {
	if err == nil {
		return nil
	}
	s.g.link.log.Error("smtp login", "err", err)
	return errLoginFault
}

// admit lets a login in, if it may send.
func (s *session) admit(user string, id mailbox.Identity) error {
	if id.Scope != mailbox.ScopeFull && id.Scope != mailbox.ScopeSend {
		return s.refused(user, errReadOnly)
	}
	s.mu.Lock()
	s.id = &id
	s.mu.Unlock()
	s.g.link.authed.Store(true)
	s.g.link.set(func(l *link) { l.login = id.Login })
	return nil
}

// isDenied reports a wrong password, or an unknown login: which of them is not told.
func isDenied(err error) bool {
	var me *mailbox.Error
	return errors.As(err, &me) && (me.Kind == mailbox.Denied || me.Kind == mailbox.NotFound)
}

// refused counts a refused login, waits, by what was tried here and by what was tried at
// this login anywhere, and after the third ends the connection.
func (s *session) refused(user string, err error) error {
	n := s.g.link.failures.Add(1)
	s.g.link.log.Warn("smtp login refused", "remote", s.g.link.remote, "err", err)
	delay := min(s.g.srv.opts.AuthDelay<<(n-1), maxDelay)
	if g := s.g.srv.opts.Guesses; g != nil && errors.Is(err, errCredentials) {
		delay = max(delay, g.Wrong(user))
	}
	if !wait(s.ctx, delay) {
		return context.Cause(s.ctx)
	}
	if n >= maxFailures {
		s.g.link.set(func(l *link) { l.end = "too many refused logins" })
		return errFailures
	}
	return err
}

var _ smtp.AuthSession = (*session)(nil)
