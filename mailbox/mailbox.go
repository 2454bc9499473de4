// Package mailbox is the durable hub of an account: its mailboxes, messages,
// entries, flags, UIDs and mod-sequences, and beside the mail three neutral
// things for whoever works with it: streams, records and due entries.
//
// A message (bytes, parsed structure, flags) is stored once; a mailbox holds
// entries (UID -> message). \Deleted and the UID belong to the entry, all other
// flags to the message. Raw messages are immutable once stored. Each mailbox has
// a UIDVALIDITY that never changes and UIDs that only grow (RFC 9051 section
// 2.3.1.1).
//
// Durability: a Tx is on disk (fsync) before Commit returns and before any
// watcher or snapshot shows it, so nobody sees mail that a crash could take back.
//
// Concurrency: everything here is safe for concurrent use. There is one writer
// per account with group commit; readers use immutable snapshots.
//
// The package knows no command, session or wire of any protocol, and no agent.
// It imports internal/mime and the value types of go-imap only.
package mailbox

import (
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
)

// AccountID names an account's directory: lower-case Crockford base32.
type AccountID string

// MailboxID names a mailbox within an account, also after a rename. IDs below
// FirstUserMailbox are system mailboxes whose meaning the guard gives.
type MailboxID uint32

const (
	// Inbox is the mailbox that every account has (RFC 9051 section 5.1).
	Inbox MailboxID = 1
	// FirstUserMailbox is the smallest id that a mailbox made by a person has.
	FirstUserMailbox MailboxID = 1000
	// DueEntries is no mailbox: who watches it is woken when due entries change.
	DueEntries MailboxID = 1<<32 - 1
)

// MessageID names a stored message within an account. It is taken from
// Store.NextMessageID before the Tx that adds the message, grows, and is never
// used twice. It is not the Message-ID header field.
type MessageID uint64

// ModSeq is an account-wide modification sequence (RFC 7162); every Tx that
// changes mail gets the next one.
type ModSeq uint64

// Mailbox is one row of the mailbox list.
type Mailbox struct {
	ID            MailboxID
	Name          string // UTF-8, delimiter "/"; INBOX is always "INBOX"
	UIDValidity   uint32
	UIDNext       imap.UID
	HighestModSeq ModSeq
	SpecialUse    imap.MailboxAttr // "" or \Sent, \Drafts, \Important, ...
	Subscribed    bool
	System        bool // may not be deleted or renamed; changes in it go through the Guard
	Hidden        bool // exists but is not listed (a view the account has not switched on)
	// View: its entries are further entries of messages that lie elsewhere, kept by the
	// store (Store.SetView). Nothing is put into it, and what a person does to its entries
	// is done to those where the messages lie.
	View bool

	Exists, Unseen, Deleted uint32 // entries; without \Seen; with \Deleted
	Size                    int64  // octets of all entries
}

// Entry is one message's place in a mailbox. It is a plain value of a few words
// so that a snapshot of 100,000 fits in a few MB.
type Entry struct {
	Message MessageID
	ModSeq  ModSeq
	Date    int64 // INTERNALDATE, Unix seconds
	Saved   int64 // when it came into this mailbox (SAVEDATE), Unix seconds
	UID     imap.UID
	Flags   FlagSet // all flags but \Deleted, of the message
	Size    uint32  // octets (RFC822.SIZE)
	// Content numbers the message's bytes: equal for copies, for identical messages and
	// after a move; numbers grow in the order in which contents were committed.
	Content uint64
	Zone    int16 // INTERNALDATE's zone, minutes east of UTC
	Deleted bool  // \Deleted of this entry
}

// Internal returns INTERNALDATE with its own zone.
func (e Entry) Internal() time.Time {
	return time.Unix(e.Date, 0).In(time.FixedZone("", int(e.Zone)*60))
}

// FlagSet is an interned set of flags of one account, without \Deleted and
// \Recent. Equal sets have equal ids. Zero is the empty set.
// Store.Flags gives its members.
type FlagSet uint32

// Message is the part of a stored message that is read without its body.
type Message struct {
	ID        MessageID
	Size      int64
	Date      time.Time // INTERNALDATE
	Flags     []imap.Flag
	Tag       string // opaque label of whoever delivered it; see Guard
	Structure *mime.Structure
}

// Blob is a staged or stored run of bytes: a message body, or a large value of a
// stream. The zero Blob is none.
type Blob struct {
	ID   string // content address: lower-case hex sha256
	Size int64
}

// ErrClosed is returned by every method of a closed store.
var ErrClosed = &Error{Op: "store", Kind: Transient, Name: "closed"}
