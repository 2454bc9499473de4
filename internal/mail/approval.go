package mail

import (
	"encoding/json"
	"time"
)

// Approval is a decision to ask for.
type Approval struct {
	Sentence     string // what will happen, from the tool's own template
	Tool         string
	Args         json.RawMessage // a JSON object
	Nonce        string          // of the marks
	Expires      time.Time       // shown with its zone
	ReplyAddress string          // pizza+a.<token>@…
	Subject      string          // of the approval mail
	Reason       string          // the agent's, plain, at most 500 characters are shown
}

// ApprovalText is the text of an approval mail, as Outgoing.Plain and .HTML.
// attachArgs is not nil when the arguments are too long to be shown whole: attach
// them as arguments.json.
func ApprovalText(a Approval) (plain, html string, attachArgs []byte) { return "", "", nil }

// Unknown is a question about a call whose outcome is not known; the fields are
// as in Approval.
type Unknown struct {
	Sentence     string
	Tool         string
	Args         json.RawMessage
	Nonce        string
	Started      time.Time // when the call was begun
	Expires      time.Time
	ReplyAddress string
	Subject      string
}

// UnknownText asks happened, repeat or stop; results as ApprovalText.
func UnknownText(u Unknown) (plain, html string, attachArgs []byte) { return "", "", nil }

// ApprovalSubject, UnknownSubject: the subjects.
func ApprovalSubject(sentence string) string { return "" }
func UnknownSubject(sentence string) string  { return "" }

// ReplySubject is "Re: " and subject, without doubling a prefix.
func ReplySubject(subject string) string { return "" }
