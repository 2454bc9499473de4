package imapserver

import (
	"errors"
	"strings"
	"unicode/utf8"

	"pizza/internal/mutf7"
)

// delimiter separates the levels of a mailbox name.
const delimiter = "/"

// maxName is how many octets a mailbox name may have.
const maxName = 1000

// decodeName turns a mailbox name from the wire into the UTF-8 that the store
// knows: from modified UTF-7 (RFC 3501 section 5.1.3), or as it is after ENABLE
// UTF8=ACCEPT. INBOX is INBOX in any case.
func decodeName(s string, isUTF8 bool) (string, error) {
	if len(s) > maxName {
		return "", errors.New("too long")
	}
	if !isUTF8 {
		var err error
		if s, err = mutf7.Decode(s); err != nil {
			return "", err
		}
	}
	if !utf8.ValidString(s) {
		return "", errors.New("not valid UTF-8")
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return "", errors.New("control character")
		}
	}
	return foldInbox(s), nil
}

// foldInbox makes the first level INBOX when it is inbox in any case.
func foldInbox(s string) string {
	if len(s) >= 5 && strings.EqualFold(s[:5], "INBOX") && (len(s) == 5 || s[5] == '/') {
		return "INBOX" + s[5:]
	}
	return s
}

// matchName reports whether a mailbox name matches a pattern in which * stands for
// anything and % for anything without a delimiter. It costs at most the product of
// both lengths whatever they hold.
func matchName(pattern, name string) bool {
	at := make([]bool, len(pattern)+1) // at[i]: pattern[:i] matches what was read
	at[0] = true
	skip := func() {
		for i := range pattern {
			if at[i] && (pattern[i] == '*' || pattern[i] == '%') {
				at[i+1] = true
			}
		}
	}
	skip()
	next := make([]bool, len(at))
	for j := 0; j < len(name); j++ {
		clear(next)
		for i := 0; i < len(pattern); i++ {
			if !at[i] {
				continue
			}
			switch c := pattern[i]; {
			case c == '*', c == '%' && name[j] != '/':
				next[i] = true
			case c != '%' && c == name[j]:
				next[i+1] = true
			}
		}
		at, next = next, at
		skip()
	}
	return at[len(pattern)]
}
