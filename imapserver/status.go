package imapserver

import (
	"context"
	"errors"
	"slices"

	"pizza/mailbox"
)

// reply is the end of a command: what the tagged response says.
type reply struct {
	kind kind
	code string // response code without brackets
	text string
}

type kind string

const (
	ok  kind = "OK"
	no  kind = "NO"
	bad kind = "BAD"
	// none sends nothing: the command has answered, or the connection is gone.
	none kind = ""
)

// orNone is the reply, if there is one.
func (r *reply) orNone() reply {
	if r == nil {
		return reply{}
	}
	return *r
}

func done(command string) reply { return reply{kind: ok, text: command + " completed"} }

// expungeIssued ends a command by number that named a message which is gone (RFC 2180).
func expungeIssued() reply {
	return reply{no, "EXPUNGEISSUED", "Some of these messages have been expunged"}
}

// searched ends a command that has looked through the mailbox. By number it says when
// messages are gone that the client still counts, and that were not looked at (RFC 5530).
func (c *conn) searched(command string, num numbering) reply {
	r := done(command)
	if num == uidNumbers {
		return r
	}
	if len(c.sel.ghosts) > 0 || c.sel.missed.Load() {
		r.code = "EXPUNGEISSUED"
	}
	return r
}

func readOnly() reply {
	return reply{no, "READ-ONLY", "The mailbox is open for reading only: SELECT it to change it"}
}

// statusFor maps an error to a tagged reply. Only the texts that mailbox made for the
// person reach the client; the cause never does. internal reports that it is a fault
// of ours, which belongs in the log.
func statusFor(err error) (r reply, internal bool) {
	var syntax syntaxError
	var me *mailbox.Error
	switch {
	case errors.As(err, &syntax):
		return reply{kind: bad, text: string(syntax)}, false
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return reply{no, "UNAVAILABLE", "The server is shutting down"}, false
	case !errors.As(err, &me):
		return reply{no, "SERVERBUG", "Internal error"}, true
	}
	r = reply{kind: no}
	switch me.Kind {
	case mailbox.NotFound:
		r.code, r.text = "NONEXISTENT", "There is no such mailbox"
	case mailbox.Exists:
		r.code, r.text = "ALREADYEXISTS", "There is a mailbox of that name"
	case mailbox.Invalid:
		r.code, r.text = "CANNOT", "That cannot be done"
	case mailbox.TooLarge:
		r.code, r.text = "TOOBIG", "Too large"
	case mailbox.Transient:
		r.code, r.text = "UNAVAILABLE", "Try again later"
	case mailbox.Conflict:
		r.code, r.text = "INUSE", "It was changed meanwhile: try again"
	case mailbox.Refused:
		r.code, r.text = "CANNOT", "That is not allowed here"
	case mailbox.Denied:
		r.code, r.text = "NOPERM", "This login may not do that"
	case mailbox.Full:
		r.code, r.text = "OVERQUOTA", "The disk is almost full: delete mail or other files first"
	default:
		return reply{no, "SERVERBUG", "Internal error"}, true
	}
	if me.Code != "" {
		r.code = me.Code
	}
	if me.Text != "" {
		r.text = me.Text
	}
	return r, false
}

// isKind reports whether err is a *mailbox.Error of one of these kinds.
func isKind(err error, kinds ...mailbox.Kind) bool {
	var me *mailbox.Error
	return errors.As(err, &me) && slices.Contains(kinds, me.Kind)
}
