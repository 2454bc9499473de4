// Package mime reads any bytes as a MIME message in one linear pass, never fails,
// and yields what IMAP and the agent need: byte offsets per part, decoded headers
// and text, and ENVELOPE, BODY and BODYSTRUCTURE rendered in wire form.
//
// Limits: MaxDepth levels and MaxParts parts; what is deeper or more is one opaque
// leaf. Cost is linear in the input whatever it holds.
//
// The package is a leaf: it imports nothing of this module.
package mime

import (
	"time"
)

const (
	// MaxDepth is how many levels of nesting are described.
	MaxDepth = 100
	// MaxParts is how many parts are described.
	MaxParts = 10_000
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
	To         []Address
	Cc         []Address
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
	return a.Local + "@" + a.Host
}

// Parse reads size octets of r. It never fails on content; an error is one of r's.
// Parse(r io.ReaderAt, size int64) (*Structure, error)
//
// Encode(s *Structure) []byte and Decode(b []byte) (*Structure, error) are its
// stored form.
//
// Header access (used by search and by internal/mail):
//
//	RawHeader(r io.ReaderAt, p *Part) ([]byte, error)
//	Fields(rawHeader []byte) []Field        // in order, raw name and raw value (folded as in the message)
//	(Field).Text() string                   // unfolded, RFC 2047 decoded, valid UTF-8
//	ParseAddresses(value string) []Address  // lenient, RFC 5322 groups flattened
//	DecodeHeader(value string) string
//
// Body access:
//
//	DecodedBody(r io.ReaderAt, p *Part) io.Reader     // transfer encoding removed, lenient
//	Text(r io.ReaderAt, p *Part, limit int64) (string, error) // text leaf: transfer encoding, charset, and format=flowed (RFC 3676) undone; text/html is given as it is (decoded)
//	HTMLText(html string) string                       // HTML to readable text; hidden content is left out
//	(p *Part).Walk(fn func(path []int, p *Part) bool)  // depth first; path is the IMAP part number
//	(s *Structure).Find(path []int) *Part              // IMAP section part number, nil if none
