package mailbox

import "time"

// Scope says what a credential may do.
type Scope string

const (
	ScopeFull Scope = "full" // everything
	ScopeSend Scope = "send" // SMTP only: starts tasks, delivers to people, never decides, cancels or joins
	ScopeRead Scope = "read" // IMAP without change
)

// Identity is who logged in. Authority comes from here and never from a header.
type Identity struct {
	Account    AccountID
	Login      string // canonical login: "me"
	Credential string // which of the account's credentials
	Scope      Scope
	Addresses  []string // addresses the login owns, lower case: "me@localhost", "me@pizza.localhost"
}

// Envelope is the SMTP envelope.
type Envelope struct {
	From       string   // reverse-path; empty for the null sender
	To         []string // forward-paths, as given, without angle brackets
	UTF8       bool     // SMTPUTF8
	EightBit   bool     // BODY=8BITMIME
	RemoteAddr string
	Helo       string
	TLS        bool
	Protocol   string // for Received: ESMTPA, ESMTPSA, UTF8SMTPSA; "local" for the command line
}

// Submission is mail handed in by a login.
type Submission struct {
	Identity Identity
	Envelope Envelope
	Blob     Blob // staged in the identity's account; bytes as received
	Received time.Time
	// NoID: the mail came without a Message-ID and the door made one. A client that
	// missed the answer and sends the same again comes with another.
	NoID bool
}

// Receipt is what the sender is told.
type Receipt struct {
	Task string // task id; empty when the mail started and joined no task
	Note string // what the sender should know, in one short ASCII line; may be empty
}
