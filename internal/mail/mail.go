// Package mail is what the agent reads of a mail and what it sends.
//
// Reading: Read gives what the person wrote, apart from what a mail program
// quoted, signed or forwarded; NewText is its pure core. Automatic says whether a
// machine wrote the mail (RFC 3834). ParseDecision reads a decision; when in doubt
// it decides nothing. For a task nothing of the person's own words is lost: in
// doubt a line counts as new.
//
// Sending: Compose writes a message that reads the same as plain text and as HTML,
// loads nothing from the net, and streams its attachments. RenderBlock shows the
// arguments of a call readably and reversibly; FindBlock finds them again in a
// reply, DiffBlock says what the person changed.
//
// Parsing is done by internal/mime alone: its leaves are what we need, and the
// limits hold there. Everything here is linear in its input but for comparisons
// whose size is bounded. No function panics on input; all are safe for concurrent
// use.
package mail

import "strings"

// Limits of what is read of one mail.
const (
	maxParts    = 1000    // parts looked at
	maxNested   = 8       // messages within messages
	maxDepth    = 50      // levels of parts
	maxText     = 2 << 20 // octets of text in all
	maxTextPart = 1 << 20 // octets of one part
)

// lines splits text at LF, CRLF or CR.
func splitLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	return strings.Split(text, "\n")
}
