package smtpgate

import (
	"context"
	"errors"
	"strings"

	"github.com/emersion/go-smtp"

	"pizza/mailbox"
)

// reply is an SMTP reply: code, enhanced code (RFC 3463) and text.
type reply struct {
	code     int
	enhanced smtp.EnhancedCode
	text     string
}

// refusal is an error of this package: its reply is fixed where the fault is found.
type refusal struct{ reply }

func (r *refusal) Error() string { return r.text }

func refuse(code int, subject, detail int, text string) error {
	return &refusal{reply{code, smtp.EnhancedCode{code / 100, subject, detail}, text}}
}

// Faults after which the connection cannot go on: 421.
var (
	errCut      = refuse(421, 4, 2, "connection lost or silent within a message; nothing was accepted")
	errPanicked = refuse(421, 3, 0, "internal error, closing connection; nothing was accepted")
)

// replyFor is the one place where errors become SMTP replies. The text of a cause
// never goes out; Text of a *mailbox.Error is made for people and does. What is not
// known is our fault: the sender tries again, and a bug costs delay, not mail.
func replyFor(err error) reply {
	var (
		own *refusal
		me  *mailbox.Error
	)
	switch {
	case err == nil:
		return reply{250, smtp.EnhancedCode{2, 0, 0}, "ok"}
	case errors.As(err, &own):
		return own.reply
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errShutdown):
		return reply{451, smtp.EnhancedCode{4, 3, 2}, "try again later"}
	case errors.As(err, &me):
		return replyForKind(me)
	}
	return internalError
}

var internalError = reply{451, smtp.EnhancedCode{4, 3, 0}, "internal error, try again later"}

func replyForKind(e *mailbox.Error) reply {
	r := internalError
	switch e.Kind {
	case mailbox.NotFound:
		r = reply{550, smtp.EnhancedCode{5, 1, 1}, "no such recipient"}
	case mailbox.Invalid:
		r = reply{554, smtp.EnhancedCode{5, 6, 0}, "message not acceptable"}
	case mailbox.TooLarge:
		r = reply{552, smtp.EnhancedCode{5, 3, 4}, "message too large"}
	case mailbox.Refused:
		r = reply{550, smtp.EnhancedCode{5, 7, 1}, "refused"}
	case mailbox.Denied:
		r = reply{550, smtp.EnhancedCode{5, 7, 1}, "this login may not do that"}
	case mailbox.Transient, mailbox.Conflict:
		r = reply{451, smtp.EnhancedCode{4, 3, 2}, "busy, try again later"}
	case mailbox.Full:
		r = reply{452, smtp.EnhancedCode{4, 3, 1}, "out of space, try again later"}
	default: // Internal, Exists and what may come: our fault, and Text is not for strangers
		return r
	}
	if e.Text != "" {
		r.text = e.Text
	}
	return r
}

// maxText keeps a reply line within 512 octets (RFC 5321 section 4.5.3.1.5).
const maxText = 490

// wire is the reply as go-smtp sends it as it is. It sends any other error's text to
// the peer, so it is never given one.
func (r reply) wire() *smtp.SMTPError {
	return &smtp.SMTPError{Code: r.code, EnhancedCode: r.enhanced, Message: plain(r.text)}
}

// plain makes one printable ASCII line of s.
func plain(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\r' || c == '\t':
			return ' '
		case c < ' ' || c > '~':
			return '?'
		}
		return c
	}, s)
	if len(s) > maxText {
		s = s[:maxText] + "..."
	}
	return s
}

// accepted is the reply to a message that was taken.
func accepted(r mailbox.Receipt) reply {
	text := "accepted"
	if r.Task != "" {
		text = "queued as " + r.Task
	}
	if r.Note != "" {
		text += "; " + r.Note
	}
	return reply{250, smtp.EnhancedCode{2, 0, 0}, text}
}
