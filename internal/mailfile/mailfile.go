// Package mailfile reads and writes mail as files that other programs know: mbox
// (RFC 4155, in the variant mboxrd), Maildir with the folders of Maildir++, and single
// messages (.eml).
//
// What is written can be read back with the same bytes, flags, keywords, folders and
// dates (to the second; the zone of a date is not kept). Messages are stored on disk with
// LF line ends, as programs on Unix expect them, when all their line ends are CRLF, and
// as they are otherwise; each format says below how the difference is kept.
//
// One message at a time is in memory, and no more of a file. The package knows files and
// no mailboxes: folders are names with / between levels, flags are as in IMAP. It imports
// nothing of this module but internal/mutf7.
package mailfile

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// MaxMessage is how large a message may be that is read, in octets. A larger one is
// *Error, and reading goes on behind it.
const MaxMessage = 256 << 20

// Message is one message of a folder.
type Message struct {
	Folder string    // levels with / between them; "INBOX" for the one that every account has
	Date   time.Time // when it came (INTERNALDATE); zero: not known
	Flags  []string  // system flags as \Seen, then keywords
	Body   []byte    // as IMAP gives it; valid until the next one is asked for
	Where  string    // the file, and the place in it, for a person
}

// Error is a message or a file that cannot be used. The walk goes on behind it when the
// caller says so.
type Error struct {
	Where string
	Text  string
	Err   error
}

func (e *Error) Error() string {
	s := e.Where + ": " + e.Text
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Sink takes what is exported. Folder is called before the first message of a folder,
// also for one without any; Close ends it. Errors are of the disk, or *Error for a name
// or message that the format cannot hold.
type Sink interface {
	Folder(name string) error
	Add(m Message) error
	Close() error
}

// allCRLF reports whether every line end of b is CRLF, and there is no other CR.
func allCRLF(b []byte) bool {
	n := bytes.Count(b, []byte("\r\n"))
	return n == bytes.Count(b, []byte("\n")) && n == bytes.Count(b, []byte("\r"))
}

// toLF replaces the CRLF of a message for which allCRLF holds.
func toLF(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }

// toCRLF makes CRLF of each LF that stands alone.
func toCRLF(b []byte) []byte {
	bare := bytes.Count(b, []byte("\n")) - bytes.Count(b, []byte("\r\n"))
	if bare == 0 {
		return b
	}
	out := make([]byte, 0, len(b)+bare)
	for line := range bytes.Lines(b) {
		if text, ok := bytes.CutSuffix(line, []byte("\n")); ok && !bytes.HasSuffix(text, []byte("\r")) {
			out = append(append(out, text...), "\r\n"...)
		} else {
			out = append(out, line...)
		}
	}
	return out
}

// escape writes the bytes of a level that bad names as %XX, for file names.
func escape(level string, bad func(i int, c byte) bool) string {
	var b strings.Builder
	for i := range len(level) {
		if c := level[i]; bad(i, c) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape undoes escape; a % without two upper-case hexadecimal digits stays.
func unescape(name string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			hi, lo := strings.IndexByte(digits, name[i+1]), strings.IndexByte(digits, name[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}
