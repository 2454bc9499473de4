package imapserver

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// delimiter separates the levels of a mailbox name.
const delimiter = "/"

// maxName is how many octets a mailbox name may have.
const maxName = 1000

var (
	errName = errors.New("not valid modified UTF-7")
	base64m = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,").WithPadding(base64.NoPadding)
)

// decodeName turns a mailbox name from the wire into the UTF-8 that the store
// knows: from modified UTF-7 (RFC 3501 section 5.1.3), or as it is after ENABLE
// UTF8=ACCEPT. INBOX is INBOX in any case.
func decodeName(s string, isUTF8 bool) (string, error) {
	if len(s) > maxName {
		return "", errors.New("too long")
	}
	if !isUTF8 {
		var err error
		if s, err = decodeUTF7(s); err != nil {
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

func decodeUTF7(s string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x80 {
			return "", errName
		}
		if c != '&' {
			out.WriteByte(c)
			continue
		}
		end := strings.IndexByte(s[i:], '-')
		if end < 0 {
			return "", errName
		}
		if end == 1 {
			out.WriteByte('&')
		} else if err := decodeShift(&out, s[i+1:i+end]); err != nil {
			return "", err
		}
		i += end
	}
	return out.String(), nil
}

// decodeShift decodes one &...- sequence. What could have been sent plainly is
// refused, so that a mailbox has one name on the wire.
func decodeShift(out *strings.Builder, s string) error {
	b, err := base64m.DecodeString(s)
	if err != nil || len(b)%2 != 0 || len(b) == 0 || base64m.EncodeToString(b) != s {
		return errName
	}
	units := make([]uint16, 0, len(b)/2)
	for i := 0; i < len(b); i += 2 {
		units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
	}
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if utf16.IsSurrogate(r) {
			if i+1 == len(units) {
				return errName
			}
			i++
			r = utf16.DecodeRune(r, rune(units[i]))
		}
		if r == utf8.RuneError && units[i] != 0xfffd || r >= ' ' && r < 0x7f {
			return errName
		}
		out.WriteRune(r)
	}
	return nil
}

// encodeUTF7 is the wire form of a mailbox name.
func encodeUTF7(s string) string {
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
		out.WriteString("&" + base64m.EncodeToString(b) + "-")
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
