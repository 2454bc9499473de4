package smtpgate

import (
	"errors"
	"strings"
)

var errPath = errors.New("smtpgate: malformed path")

// pathOf returns the address of a MAIL or RCPT command as the peer wrote it, without
// angle brackets and source route. go-smtp's own parser removes the quotes of a
// quoted local part: "a@b"@c.d would become a@b@c.d, another address. Quotes that
// are not needed are removed here too ("me"@localhost is me@localhost, RFC 5321
// section 4.1.2), the others kept.
func pathOf(command string) (string, error) {
	_, arg, ok := strings.Cut(command, ":")
	if !ok {
		return "", errPath
	}
	arg = strings.TrimLeft(arg, " \t")
	bracket := strings.HasPrefix(arg, "<")
	arg = strings.TrimPrefix(arg, "<")
	if strings.HasPrefix(arg, "@") { // source route: ignored (RFC 5321 appendix C)
		_, after, found := strings.Cut(arg, ":")
		if !found {
			return "", errPath
		}
		arg = after
	}
	local, rest, err := cutLocal(arg)
	if err != nil {
		return "", err
	}
	end := strings.IndexAny(rest, "> \t")
	switch {
	case end < 0:
		end = len(rest)
	case bracket && rest[end] != '>':
		return "", errPath
	}
	if bracket && end == len(rest) {
		return "", errPath
	}
	return local + rest[:end], nil
}

// cutLocal splits an address before its @, or the end of a path without one.
func cutLocal(s string) (local, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, "@> \t")
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return quoteLocal(b.String()), s[i+1:], nil
		case '\\':
			if i++; i == len(s) {
				return "", "", errPath
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", errPath
}

// quoteLocal writes a local part with quotes if it needs them.
func quoteLocal(local string) string {
	if isDotString(local) {
		return local
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(local) + `"`
}

// isDotString reports whether s needs no quotes (RFC 5321 Dot-string, RFC 6531).
func isDotString(s string) bool {
	for _, atom := range strings.Split(s, ".") {
		if atom == "" || strings.ContainsAny(atom, " \t()<>[]:;@\\,\"") {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
