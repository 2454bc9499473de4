// Package mime reads any bytes as a MIME message in one linear pass, never fails,
// and yields what IMAP and the agent need: byte offsets per part, decoded headers
// and text, and ENVELOPE, BODY and BODYSTRUCTURE rendered in wire form.
//
// Limits: MaxDepth levels and MaxParts parts; what is deeper or more is one opaque
// leaf. MaxHeader octets of each header are decoded; offsets stay right beyond that.
// Cost is linear in the input whatever it holds, and the message is never held in
// memory: Parse reads it in blocks.
//
// Reading is lenient (RFC 5322, 2045 to 2047, 2231 and what is sent in their name).
// Line ends may be CRLF or LF; lines before the first field (an mbox "From " line, a
// stray continuation) and single lines without a colon belong to the header and are
// skipped; two such lines in a row are a body whose empty line is missing. A delimiter
// is a whole line, spaces at its end aside, so one boundary may begin another. A
// multipart without boundary or without parts is described as text/plain, one that is
// too deep as application/octet-stream. A message/rfc822 under base64 or
// quoted-printable is a leaf: decode it and call Parse again to look inside.
//
// Text that comes out (Field.Text, Address, Filename, Text) is valid UTF-8 whatever
// went in: unknown charsets are read as windows-1252, bad bytes become U+FFFD.
//
// All functions may be called concurrently. A *Structure is not changed after Parse.
//
// The package is a leaf: it imports nothing of this module.
package mime

import (
	"strings"
	"time"
)

const (
	// MaxDepth is how many levels of nesting are described.
	MaxDepth = 100
	// MaxParts is how many parts are described.
	MaxParts = 10_000
	// MaxHeader is how many octets of one header are decoded.
	MaxHeader = 256 << 10
	// FormatVersion is the version of the encoding of Structure (see Encode) and of
	// the rendered items in it.
	FormatVersion = 1
)

// Structure is the parsed form of a message. It is stored with the message.
type Structure struct {
	Root *Part
	// Envelope, Body and BodyStructure are the values of the FETCH items ENVELOPE,
	// BODY and BODYSTRUCTURE in wire form (parenthesised, without the item name; 7-bit;
	// quoted strings or literals as needed), to be written to a client as they are.
	Envelope      []byte
	Body          []byte
	BodyStructure []byte

	// Decoded header fields of the top level, for search, threads and lists.
	MessageID  string   // without angle brackets; empty if missing
	InReplyTo  []string // without angle brackets
	References []string // without angle brackets, oldest first
	Subject    string   // decoded, unfolded, valid UTF-8
	From       []Address
	To         []Address // and the names of groups, as addresses without Host
	Cc         []Address // the same
	ReplyTo    []Address
	Date       time.Time // zero if missing or unparsable
	Lines      int64     // lines of the whole message
}

// Part is one body part. Offsets are octets from the start of the message.
type Part struct {
	Header      Range             // header with its final empty line
	Body        Range             // body, without the boundary line's own CRLF
	Type        string            // lower case, "text"
	Subtype     string            // lower case, "plain"
	Params      map[string]string // decoded (RFC 2231), keys in lower case
	Encoding    string            // lower case; "7bit" when missing or unknown
	Disposition string            // lower case: "attachment", "inline" or ""
	Filename    string            // decoded; from Content-Disposition, else from the name parameter. Never a path to use as it is
	ContentID   string            // without angle brackets
	Lines       int64             // lines of the body
	Children    []*Part           // parts of a multipart; for message/rfc822, one: the message inside
}

// Range is [Start, End) in octets.
type Range struct{ Start, End int64 }

// Len returns the number of octets.
func (r Range) Len() int64 { return r.End - r.Start }

// Address is one mailbox of an address list, decoded.
type Address struct {
	Name  string
	Local string // may be empty
	Host  string // may be empty
}

// String returns local@host, lower-cased host.
func (a Address) String() string {
	if a.Host == "" {
		return a.Local
	}
	return a.Local + "@" + strings.ToLower(a.Host)
}
