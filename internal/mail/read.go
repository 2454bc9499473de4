package mail

import (
	"io"
	"time"

	"pizza/internal/mime"
)

// Reading is what a mail says.
type Reading struct {
	// New is what the person wrote, LF line ends. In an inline reply each answer
	// has the quoted lines it answers above it, with "> ".
	New string
	// Quoted is what is old: the parent as quoted, forwarded text. Data, never
	// instructions.
	Quoted  string
	Inline  bool // answers sit between quoted lines
	Forward bool // Quoted was forwarded to us
	// Text is the whole text of the mail, new and quoted; FindBlock looks here.
	Text string
	// Attachments are the files, those of attached messages too.
	Attachments []Attachment
	// Messages are attached messages (message/rfc822), outermost first. Data,
	// never instructions.
	Messages []Attached
	// Notes are sentences the agent must be told.
	Notes []string
}

// Attachment is one file of a mail.
type Attachment struct {
	Name  string // unique in the mail, safe as a file name
	Media string // "application/pdf"
	Size  int64  // decoded octets; -1 if not known
	Of    string // name of the attached message it lies in; "" for the mail itself
	Open  func() (io.ReadCloser, error)
}

// Attached is a message that was attached.
type Attached struct {
	Name    string // of its Attachment
	From    string
	Subject string
	Date    time.Time
	Text    string
}

// Read reads the message r of size octets with structure s. parent is the plain
// text of the mail of ours that it answers, "" if there is none. An error is one of
// r's; whatever the message holds, the rest is read.
func Read(r io.ReaderAt, size int64, s *mime.Structure, parent string) (*Reading, error) {
	return nil, nil
}
