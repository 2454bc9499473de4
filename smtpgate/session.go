package smtpgate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/emersion/go-smtp"

	"pizza/internal/msgid"
	"pizza/mailbox"
)

// session is what go-smtp calls for one connection, or for its part after STARTTLS.
// Logout may come from another goroutine while a message is worked on, which is why
// Data works on a copy of the transaction.
type session struct {
	g      *guard
	ctx    context.Context // of the connection: go-smtp has none to give
	cancel context.CancelFunc
	helo   string

	mu sync.Mutex // guards below
	id *mailbox.Identity
	tx *mailbox.Envelope // nil: no transaction
}

func newSession(s *Server, c *smtp.Conn) (smtp.Session, error) {
	ses := &session{g: guardOf(c), helo: c.Hostname()}
	ses.ctx, ses.cancel = context.WithCancel(s.ctx)
	return ses, nil
}

// Reset ends the transaction.
func (s *session) Reset() {
	s.mu.Lock()
	s.tx = nil
	s.mu.Unlock()
}

// Logout ends the session.
func (s *session) Logout() error {
	s.Reset()
	s.cancel()
	return nil
}

var (
	errLoginFirst = refuse(530, 7, 0, "log in first")
	errNested     = refuse(503, 5, 1, "a message is already begun: RSET first")
	errUTF8From   = refuse(550, 6, 7, "an address outside ASCII needs SMTPUTF8")
	errUTF8To     = refuse(553, 6, 7, "an address outside ASCII needs SMTPUTF8")
	errFromSyntax = refuse(501, 1, 7, "malformed sender address")
	errToSyntax   = refuse(501, 1, 3, "malformed recipient address")
	errNoMail     = refuse(503, 5, 1, "MAIL first")
)

// Mail begins a transaction.
func (s *session) Mail(_ string, opts *smtp.MailOptions) error {
	return s.safely("mail", func() error { return s.mail(opts) })
}

func (s *session) mail(opts *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, err := pathOf(s.g.line)
	switch {
	case s.id == nil:
		return errLoginFirst
	case s.tx != nil:
		return errNested
	case err != nil:
		return errFromSyntax
	case !isASCII(from) && !opts.UTF8:
		return errUTF8From
	case from != "" && !s.id.Owns(from):
		return notYours(*s.id, from)
	case opts.Size > s.g.srv.opts.MaxSize:
		return tooLarge(s.g.srv.opts.MaxSize)
	}
	if err := s.room(opts.Size); err != nil {
		return err
	}
	s.tx = &mailbox.Envelope{
		From:       from,
		UTF8:       opts.UTF8,
		EightBit:   opts.Body == smtp.Body8BitMIME,
		RemoteAddr: s.g.link.host(),
		Helo:       s.helo,
		TLS:        s.g.tls != nil,
		Protocol:   protocol(opts.UTF8, s.g.tls != nil),
	}
	return nil
}

// room refuses mail before it is sent when the disk has no room for it (RFC 1870
// section 6.1). size is 0 when the client did not say.
func (s *session) room(size int64) error {
	sp, err := s.g.srv.opts.Stager.Space(s.ctx, s.id.Account)
	if err == nil && !sp.Takes(size) {
		return &mailbox.Error{Op: "mail", Kind: mailbox.Full}
	}
	return err
}

// protocol is the keyword for Received (RFC 3848, RFC 6531 section 4.3). There is no
// mail without a login, hence the A.
func protocol(utf8, tls bool) string {
	p := "ESMTP"
	if utf8 {
		p = "UTF8SMTP"
	}
	if tls {
		p += "S"
	}
	return p + "A"
}

func notYours(id mailbox.Identity, addr string) error {
	return refuse(553, 7, 1, fmt.Sprintf("this login may not write as <%s>, but as %s", addr, strings.Join(id.Addresses, " or ")))
}

// Rcpt adds a recipient.
func (s *session) Rcpt(string, *smtp.RcptOptions) error {
	return s.safely("rcpt", s.rcpt)
}

func (s *session) rcpt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, err := pathOf(s.g.line)
	switch {
	case s.tx == nil || s.id == nil:
		return errNoMail
	case err != nil || to == "":
		return errToSyntax
	case !isASCII(to) && !s.tx.UTF8:
		return errUTF8To
	case slices.Contains(s.tx.To, to):
		return nil
	case len(s.tx.To) >= s.g.srv.opts.MaxRecipients:
		return refuse(452, 5, 3, fmt.Sprintf("more than %d recipients", s.g.srv.opts.MaxRecipients))
	}
	if err := s.g.srv.opts.Handler.Recipient(s.ctx, *s.id, to); err != nil {
		return err
	}
	s.tx.To = append(s.tx.To, to)
	return nil
}

// Data takes a message from the guard and not through go-smtp, which counts lines
// differently (see body) and has no end of a chunk that is safe (see chunks). Whatever
// happens, the stream is where the next command begins afterwards, or the connection
// ends.
func (s *session) Data(io.Reader) error {
	src := s.g.beginData()
	defer s.g.endData(src)
	var receipt mailbox.Receipt
	wire := s.safely("data", func() error {
		var err error
		receipt, err = s.submit(src)
		return err
	})
	if wire != nil {
		src.drain(2 * s.g.srv.opts.MaxSize)
		return wire
	}
	return accepted(receipt).wire() // any reply but go-smtp's own is an error to it
}

// submit checks and stages a message while it arrives, and hands it over.
func (s *session) submit(r io.Reader) (mailbox.Receipt, error) {
	s.mu.Lock()
	if s.tx == nil || s.id == nil {
		s.mu.Unlock()
		return mailbox.Receipt{}, errNoMail
	}
	sub := mailbox.Submission{Identity: *s.id, Envelope: *s.tx, Received: s.g.srv.opts.Now()}
	sub.Envelope.To = slices.Clone(s.tx.To)
	s.mu.Unlock()

	in := &checked{src: r, limit: s.g.srv.opts.MaxSize}
	if err := s.stage(&sub, in); err != nil {
		return mailbox.Receipt{}, firstFault(in, err)
	}
	receipt, err := s.g.srv.opts.Handler.Submit(s.ctx, sub)
	if err != nil {
		return receipt, err
	}
	s.g.link.messages.Add(1)
	s.g.link.octets.Add(in.n)
	s.g.link.log.Debug("smtp message", "login", sub.Identity.Login, "task", receipt.Task, "octets", in.n, "recipients", len(sub.Envelope.To))
	return receipt, nil
}

// firstFault prefers the fault of the message to what the stager made of it.
func firstFault(in *checked, err error) error {
	if in.err == nil || in.err == io.EOF {
		return err
	}
	return in.err
}

// stage rewrites the header and stages the message, which is never in memory as a
// whole.
func (s *session) stage(sub *mailbox.Submission, in *checked) error {
	head, beyond, err := readHeader(in)
	if err != nil {
		return err
	}
	h, err := parseHeader(head)
	if err != nil {
		return err
	}
	if err := checkAuthors(h, sub.Identity); err != nil {
		return err
	}
	messageID := ""
	if len(h.all("message-id")) == 0 {
		sub.NoID, messageID = true, "<"+msgid.New()+">"
	}
	o := s.g.srv.opts
	whole := io.MultiReader(bytes.NewReader(h.render(o.Domain, *sub, messageID)), bytes.NewReader(beyond), in)
	sub.Blob, err = o.Stager.Stage(s.ctx, sub.Identity.Account, whole, 0)
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if in.err != io.EOF {
		return errors.New("smtpgate: the stager did not read the message to its end")
	}
	return nil
}

// answer maps an error for go-smtp and logs what is our fault.
func (s *session) answer(op string, err error) error {
	if err == nil {
		return nil
	}
	r := replyFor(err)
	if r.code == internalError.code && r.enhanced == internalError.enhanced {
		s.g.link.log.Error("smtp "+op, "err", err)
	}
	if r.code == 421 {
		s.g.hangUp.Store(true)
	}
	return r.wire()
}

// safely runs one call of the backend: what comes out is nil or an *smtp.SMTPError,
// also after a panic, which ends the connection.
func (s *session) safely(op string, call func() error) (wire error) {
	defer func() {
		if p := recover(); p != nil {
			s.g.link.log.Error("smtp panic in "+op, "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			wire = s.answer(op, errPanicked)
		}
	}()
	return s.answer(op, call())
}
