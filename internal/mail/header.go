package mail

import (
	"encoding/base64"
	"mime"
	netmail "net/mail"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message"
)

const (
	foldAt  = 76  // characters of a header line
	maxRefs = 100 // Message-IDs in References: the first, and the newest
)

// header builds a header field by field, in the order of calls.
type header struct{ fields []string }

var fieldName = regexp.MustCompile(`^[A-Za-z0-9-]{1,60}$`)

// add appends a field whose value is safe on the wire; it folds at spaces.
func (h *header) add(name, value string) {
	var b strings.Builder
	b.WriteString(name + ":")
	n := b.Len()
	for _, word := range strings.Fields(value) {
		if n+1+len(word) > foldAt && n > len(name)+1 {
			b.WriteString("\r\n")
			n = 0
		}
		b.WriteString(" " + word)
		n += 1 + len(word)
	}
	b.WriteString("\r\n")
	h.fields = append(h.fields, b.String())
}

// text appends an unstructured field (RFC 2047 where it needs to be).
func (h *header) text(name, value string) {
	if fieldName.MatchString(name) {
		h.add(name, encodeText(oneLine(value)))
	}
}

func (h *header) address(name string, a Address) { h.add(name, formatAddress(a)) }

// ids appends a field of Message-IDs, if there are any.
func (h *header) ids(name string, ids ...string) {
	var out []string
	for _, id := range ids {
		if id = cleanID(id); id != "" {
			out = append(out, "<"+id+">")
		}
	}
	if n := len(out); n > maxRefs {
		out = append(out[:1:1], out[n-maxRefs+1:]...)
	}
	if len(out) > 0 {
		h.add(name, strings.Join(out, " "))
	}
}

func (h *header) date(t time.Time) {
	h.add("Date", t.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}

// message returns the header for go-message, which keeps raw fields as they are.
func (h *header) message() message.Header {
	var out message.Header
	for i := len(h.fields) - 1; i >= 0; i-- { // each is put before the others
		out.AddRaw([]byte(h.fields[i]))
	}
	return out
}

// cleanID returns a Message-ID that fits on a line, else "".
func cleanID(id string) string {
	id = strings.Trim(strings.TrimSpace(id), "<>")
	for _, r := range id {
		if r <= ' ' || r >= 0x7f || r == '<' || r == '>' {
			return ""
		}
	}
	if len(id) > 900 {
		return ""
	}
	return id
}

// formatAddress is `Name <local@host>`.
func formatAddress(a Address) string {
	m := netmail.Address{Name: oneLine(a.Name), Address: oneLine(a.String())}
	return strings.Join(strings.Fields(m.String()), " ")
}

// encodeText encodes a line for a header: as it is if it is short words of ASCII that
// nobody can take for an encoded word.
func encodeText(s string) string {
	if !isASCII(s) {
		return mime.QEncoding.Encode("utf-8", strings.ToValidUTF8(s, "\uFFFD"))
	}
	plain := !strings.Contains(s, "=?")
	for _, w := range strings.Fields(s) {
		plain = plain && len(w) <= 200
	}
	if plain {
		return s
	}
	var out []string
	for len(s) > 0 {
		n := min(len(s), 42)
		out = append(out, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(out, " ")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
