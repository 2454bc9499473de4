package mailbox

import "github.com/emersion/go-imap/v2"

// Snapshot is the entries of one mailbox at one moment, in UID order. It is
// immutable. Successive snapshots share the chunks that did not change, so that a
// difference costs what changed, not the size of the mailbox.
type Snapshot struct {
	Mailbox Mailbox // the row at that moment
	chunks  []*chunk
}

// chunk holds up to chunkSize entries; it is never changed once published.
type chunk struct {
	entries []Entry
}

const chunkSize = 256

// Len returns the number of entries.
func (s *Snapshot) Len() int { return int(s.Mailbox.Exists) }

// UIDNext returns the next UID the mailbox will assign.
func (s *Snapshot) UIDNext() imap.UID { return s.Mailbox.UIDNext }
