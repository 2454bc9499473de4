package mailbox

import "fmt"

// Kind tells callers what went wrong. The zero Kind is our own fault.
type Kind int

const (
	// Internal is a fault of ours or of the disk: the sender may try again.
	Internal Kind = iota
	// NotFound: no such account, mailbox, message, record.
	NotFound
	// Exists: the name is taken.
	Exists
	// Invalid: the request cannot be right (name, syntax, content).
	Invalid
	// TooLarge: over a limit of size or number.
	TooLarge
	// Transient: try again later (closing, overload).
	Transient
	// Conflict: a precondition of the Tx no longer holds; nothing was applied.
	// "Somebody else moved it" is an answer, never success.
	Conflict
	// Refused: the guard or a policy said no. Text is for the person.
	Refused
	// Denied: the login or its scope does not allow it.
	Denied
	// Full: the disk or a quota is full.
	Full
)

var kindNames = [...]string{"internal", "not found", "exists", "invalid", "too large", "transient", "conflict", "refused", "denied", "full"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", int(k))
}

// Error is what every method of this package returns when callers must tell
// kinds apart.
type Error struct {
	Op   string // "commit", "rename"
	Kind Kind
	Name string // mailbox, record or address it is about, if any
	Text string // for the person, in plain words; empty: a fixed text per Kind
	Code string // IMAP response code without brackets when the default of Kind is wrong ("CANNOT", "TRYCREATE")
	Err  error  // cause; for the log, never for the client
}

func (e *Error) Error() string {
	s := e.Op + ": " + e.Kind.String()
	if e.Name != "" {
		s += " (" + e.Name + ")"
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error of the same Kind without further detail,
// so that errors.Is(err, &Error{Kind: Conflict}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Op == "" && t.Name == "" && t.Err == nil
}
