package mail

import (
	"io"
	"time"
)

// Outgoing is a mail we send. Zero fields are left out.
type Outgoing struct {
	From, To      Address
	ReplyTo       *Address
	Subject       string
	MessageID     string // without angle brackets, as are the next two
	InReplyTo     string
	References    []string // oldest first
	Date          time.Time
	AutoSubmitted string      // auto-replied or auto-generated
	Headers       [][2]string // X-Pizza-…

	// The text is one of Markdown (of a model: not trusted) or Plain (ours: goes out
	// as it is). HTML is the body that goes with Plain; it is derived when empty.
	Markdown string
	Plain    string
	HTML     string
	Footer   string // one quiet line

	Attachments []OutAttachment
}

// OutAttachment is a file to attach; it is read while the mail is written.
type OutAttachment struct {
	Name  string
	Media string
	Open  func() (io.ReadCloser, error)
}

// Compose writes o as a message with CRLF line ends.
func Compose(w io.Writer, o Outgoing) error { return nil }

// PlainText is the text/plain part that Compose makes of o, with LF line ends:
// what to keep for subtraction from replies.
func PlainText(o Outgoing) string { return o.Plain }
