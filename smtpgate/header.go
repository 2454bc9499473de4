package smtpgate

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"pizza/mailbox"
)

// maxHeader is the largest header block, in octets.
const maxHeader = 256 << 10

var (
	errHeaderSize  = refuse(552, 3, 4, fmt.Sprintf("header too large: the limit is %d KB", maxHeader>>10))
	errHeaderFirst = refuse(550, 6, 0, "the header begins with a continuation line")
)

// readHeader reads the header block with its final empty line, or all of a message
// that has none, and returns what it read beyond.
func readHeader(r io.Reader) (head, beyond []byte, err error) {
	buf := make([]byte, 0, 8<<10)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		from := max(0, len(buf)-3)
		buf = buf[:len(buf)+n]
		end := headerEnd(buf, from)
		switch {
		case end < 0 && err == io.EOF:
			end = len(buf)
		case end < 0 && err != nil:
			return nil, nil, err
		}
		if end > maxHeader || end < 0 && len(buf) > maxHeader {
			return nil, nil, errHeaderSize
		}
		if end >= 0 {
			return buf[:end:end], buf[end:], nil
		}
	}
}

// headerEnd returns the offset behind the empty line that ends the header, looking
// from an offset on, or -1.
func headerEnd(b []byte, from int) int {
	if bytes.HasPrefix(b, []byte("\r\n")) {
		return 2
	}
	if i := bytes.Index(b[from:], []byte("\r\n\r\n")); i >= 0 {
		return from + i + 4
	}
	return -1
}

// header is a header block as the peer sent it.
type header struct {
	fields []field
	tail   []byte // the empty line; none when the message ends in its header
}

// field is one header field. A line without a colon is kept as a field without name.
type field struct {
	name string // lower case, without the blanks that old syntax allows before the colon
	raw  []byte // with continuation lines and line ends
}

// value is what follows the colon, unfolded.
func (f field) value() string {
	_, v, _ := bytes.Cut(f.raw, []byte(":"))
	return strings.TrimSpace(strings.ReplaceAll(string(v), "\r\n", ""))
}

// parseHeader splits a header block. Its lines end in CRLF, but for the last one of a
// message that ends without.
func parseHeader(head []byte) (*header, error) {
	h := &header{}
	for len(head) > 0 {
		n := bytes.Index(head, []byte("\r\n")) + 2
		if n < 2 {
			n = len(head)
		}
		line := head[:n]
		head = head[n:]
		switch {
		case string(line) == "\r\n":
			h.tail = line
		case line[0] != ' ' && line[0] != '\t':
			h.fields = append(h.fields, field{fieldName(line), line})
		case len(h.fields) == 0:
			return nil, errHeaderFirst // it would continue the field we put above it
		default:
			last := &h.fields[len(h.fields)-1]
			last.raw = last.raw[:len(last.raw)+len(line)] // line follows it in head
		}
	}
	return h, nil
}

func fieldName(line []byte) string {
	name, _, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		return ""
	}
	return strings.ToLower(strings.TrimRight(string(name), " \t"))
}

// all returns the values of the fields of a name.
func (h *header) all(name string) []string {
	var values []string
	for _, f := range h.fields {
		if f.name == name {
			values = append(values, f.value())
		}
	}
	return values
}

// isRemoved reports whether a field must not come in from outside: verdicts of other
// servers, and what marks our own mail, but for what a person may ask for.
func isRemoved(name string) bool {
	switch name {
	case "x-pizza-model", "x-pizza-budget", "x-pizza-at":
		return false
	case "authentication-results":
		return true
	}
	return strings.HasPrefix(name, "x-pizza-")
}

// render writes the header with what is added on top of it: Received (RFC 5321
// section 4.4), and Message-ID and Date where they are missing (RFC 6409 section 8).
func (h *header) render(domain string, sub mailbox.Submission, messageID string) []byte {
	var b bytes.Buffer
	e := sub.Envelope
	fmt.Fprintf(&b, "Received: from %s (%s)\r\n\tby %s with %s id %s", token(e.Helo), addressLiteral(e.RemoteAddr), domain, e.Protocol, newID())
	if len(e.To) == 1 { // with more, it would tell one recipient of another
		fmt.Fprintf(&b, "\r\n\tfor <%s>", e.To[0])
	}
	date := sub.Received.Format(time.RFC1123Z)
	fmt.Fprintf(&b, "; %s\r\n", date)
	if messageID != "" {
		fmt.Fprintf(&b, "Message-ID: %s\r\n", messageID)
	}
	if len(h.all("date")) == 0 {
		fmt.Fprintf(&b, "Date: %s\r\n", date)
	}
	for _, f := range h.fields {
		if !isRemoved(f.name) {
			b.Write(f.raw)
		}
	}
	b.Write(h.tail)
	return b.Bytes()
}

// token makes what the peer called itself fit for a header field.
func token(helo string) string {
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._:[]", r) {
			return r
		}
		return -1
	}, helo)
	if s == "" {
		return "unknown"
	}
	return s[:min(len(s), 255)]
}

// addressLiteral is a peer's IP address in brackets (RFC 5321 section 4.1.3).
func addressLiteral(host string) string {
	if strings.Contains(host, ":") {
		return "[IPv6:" + token(host) + "]"
	}
	return "[" + token(host) + "]"
}
