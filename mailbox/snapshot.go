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

// The methods below are this file's contract with imapserver and search:
//
//	func (s *Snapshot) At(i int) Entry               // i from 0
//	func (s *Snapshot) Search(uid imap.UID) int      // first index whose UID is >= uid; Len() if none
//	func (s *Snapshot) All() iter.Seq2[int, Entry]
//	func (s *Snapshot) Range(from, to int) iter.Seq2[int, Entry]
//	func Diff(old, new *Snapshot) []Change           // in UID order; costs what changed
//	type Change struct { UID imap.UID; Old, New *Entry } // Old nil: added; New nil: gone

// Len returns the number of entries.
func (s *Snapshot) Len() int { return int(s.Mailbox.Exists) }

// UIDNext returns the next UID the mailbox will assign.
func (s *Snapshot) UIDNext() imap.UID { return s.Mailbox.UIDNext }
