package mailbox

import (
	"strings"

	"github.com/emersion/go-imap/v2"
)

// systemFlags are the flags of RFC 9051 section 2.3.2 that a client may set, in
// the order in which a FlagSet gives them. mbsync loses a flag that is printed as
// \seen, so there is one spelling.
var systemFlags = [...]imap.Flag{imap.FlagSeen, imap.FlagAnswered, imap.FlagFlagged, imap.FlagDraft, imap.FlagDeleted}

const maxKeyword = 255

// CleanFlag returns a flag in canonical spelling: a system flag as RFC 9051 writes
// it, a keyword as it is. The error is *Error Invalid: not an atom, an unknown
// flag that begins with a backslash, or (TooLarge) over 255 bytes.
func CleanFlag(f imap.Flag) (imap.Flag, error) {
	for _, s := range systemFlags {
		if strings.EqualFold(string(s), string(f)) {
			return s, nil
		}
	}
	if len(f) > maxKeyword {
		return "", &Error{Op: "flags", Kind: TooLarge, Code: "LIMIT", Text: "a keyword can have at most 255 bytes"}
	}
	if f == "" || strings.ContainsFunc(string(f), notAtom) {
		return "", &Error{Op: "flags", Kind: Invalid, Name: string(f), Text: "not a flag that can be set"}
	}
	return f, nil
}

// notAtom reports whether r may not stand in an atom (RFC 9051 section 9).
func notAtom(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`(){%*"\]`, r)
}
