package mailbox

import (
	"slices"
	"strings"
	"time"
)

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

// Owns reports whether addr, without angle brackets, is an address of the login. It
// compares without regard to the case of ASCII letters, and the domain with or without
// the dot of the root. Nothing else is folded: every letter more that counts as the
// same would be somebody else's name.
func (id Identity) Owns(addr string) bool {
	key := ownKey(addr)
	return key != "" && slices.ContainsFunc(id.Addresses, func(own string) bool { return ownKey(own) == key })
}

// ownKey is an address as Owns compares it; "" for what is no whole address.
func ownKey(addr string) string {
	at := strings.LastIndexByte(addr, '@')
	if at <= 0 {
		return ""
	}
	host := strings.TrimSuffix(addr[at+1:], ".")
	if host == "" {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, addr[:at]+"@"+host)
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
