// Package mutf7 is the modified UTF-7 of mailbox names (RFC 3501 section 5.1.3), as IMAP
// sends it and Maildir++ uses it for the names of folders. It is a leaf.
package mutf7

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf16"
)

// ErrInvalid is a name that is not modified UTF-7, or not in the one form it has.
var ErrInvalid = errors.New("not valid modified UTF-7")

var alphabet = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,").WithPadding(base64.NoPadding)

// Decode turns modified UTF-7 into UTF-8. The error is ErrInvalid. A name has one form:
// what could be sent plainly, or in fewer shifts, is refused (RFC 3501 section 5.1.3).
func Decode(s string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '&' {
			out.WriteByte(s[i])
			continue
		}
		end := strings.IndexByte(s[i:], '-')
		if end < 0 {
			return "", ErrInvalid
		}
		if end == 1 {
			out.WriteByte('&')
		} else if err := decodeShift(&out, s[i+1:i+end]); err != nil {
			return "", err
		}
		i += end
	}
	name := out.String()
	if Encode(name) != s {
		return "", ErrInvalid
	}
	return name, nil
}

// decodeShift decodes what stands between & and -.
func decodeShift(out *strings.Builder, s string) error {
	b, err := alphabet.DecodeString(s)
	if err != nil || len(b)%2 != 0 {
		return ErrInvalid
	}
	units := make([]uint16, 0, len(b)/2)
	for i := 0; i < len(b); i += 2 {
		units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
	}
	out.WriteString(string(utf16.Decode(units)))
	return nil
}

// Encode is the modified UTF-7 of a name, which is UTF-8.
func Encode(s string) string {
	var out strings.Builder
	var pending []rune
	shift := func() {
		if len(pending) == 0 {
			return
		}
		units := utf16.Encode(pending)
		b := make([]byte, 0, 2*len(units))
		for _, u := range units {
			b = append(b, byte(u>>8), byte(u))
		}
		out.WriteString("&" + alphabet.EncodeToString(b) + "-")
		pending = pending[:0]
	}
	for _, r := range s {
		if r < ' ' || r >= 0x7f {
			pending = append(pending, r)
			continue
		}
		shift()
		if r == '&' {
			out.WriteString("&-")
		} else {
			out.WriteRune(r)
		}
	}
	shift()
	return out.String()
}
