package mailbox

import (
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
)

// Tx is a value: preconditions plus changes, applied in order, all or nothing.
// It holds no callback, so any Store can run it.
type Tx struct {
	Actor *Actor // nil: the system itself; else a person, and the Guard is asked
	Epoch uint64 // 0, or the epoch the writer was given: a straggler gets Conflict
	Ops   []Op
}

// Actor is the person behind a change.
type Actor struct {
	Login      string // as authenticated
	Credential string // name of the credential used
	Scope      Scope
	Session    string // which connection, for the log and for "three at once" rules
	Via        string // "imap", "smtp", "cli", "web"
	At         time.Time
}

// Op is one precondition or change. The types of this file are all of them.
type Op interface{ op() }

// AddMessage stores a message. It needs at least one Place or Hold.
type AddMessage struct {
	ID        MessageID // from Store.NextMessageID; Conflict when it is taken
	Blob      Blob      // from Store.Stage
	Structure *mime.Structure
	Date      time.Time // INTERNALDATE; zero: now
	Flags     []imap.Flag
	Tag       string      // see Guard
	Places    []MailboxID // an entry in each; UIDs in Result.UIDs
	Hold      []string    // names that keep the message without an entry
}

// AddEntry gives a stored message a further entry (not a copy).
type AddEntry struct {
	Message MessageID
	Mailbox MailboxID
}

// RemoveEntry takes a message's entry out of a mailbox. A message without entry
// and hold is deleted. Conflict when it is not there, unless IfPresent.
type RemoveEntry struct {
	Message   MessageID
	Mailbox   MailboxID
	IfPresent bool
}

// Hold keeps a message alive under a name, or lets it go (Release).
type Hold struct {
	Message MessageID
	Name    string
	Release bool
}

// SetTag changes a message's tag. Conflict when it is not Old.
type SetTag struct {
	Message  MessageID
	Old, New string
}

// StoreFlags changes flags of the entries UIDs of a mailbox (IMAP STORE). UIDs
// that are not there are passed over. \Deleted goes to the entry, the rest to the
// message (and shows in all its entries).
type StoreFlags struct {
	Mailbox MailboxID
	UIDs    imap.UIDSet
	Op      imap.StoreFlagsOp
	Flags   []imap.Flag
	Gone    imap.UIDSet // see MoveEntries
	// UnchangedSince, unless nil, leaves alone the entries that changed after it; they go
	// to Result.Modified. Zero leaves every entry alone (RFC 7162 section 3.1.3).
	UnchangedSince *ModSeq
}

// MarkMessage adds and removes flags of a message, wherever it lies. No-op when
// the message is gone.
type MarkMessage struct {
	Message     MessageID
	Add, Remove []imap.Flag
}

// CopyEntries is IMAP COPY: new messages that share the bytes, with the flags of
// the source. Pairs go to Result.Copied.
type CopyEntries struct {
	From, To MailboxID
	UIDs     imap.UIDSet
}

// MoveEntries is IMAP MOVE (RFC 6851): the same messages, new entries. Gone are
// entries that were chosen, by UID, while their program had not been told that they
// are gone, or that may go before this is carried out: nothing happens to those that are
// gone, but the guard may read a meaning in it.
type MoveEntries struct {
	From, To MailboxID
	UIDs     imap.UIDSet
	Gone     imap.UIDSet
}

// Expunge removes entries with \Deleted; all of the mailbox when UIDs is nil.
type Expunge struct {
	Mailbox MailboxID
	UIDs    imap.UIDSet
}

// CreateMailbox makes a mailbox and the levels above it that are missing.
// Exists when the name is taken. The id goes to Result.Mailbox.
type CreateMailbox struct {
	Name       string
	SpecialUse imap.MailboxAttr
}

// DeleteMailbox removes a mailbox and its entries; those below it stay. Refused for INBOX
// and system mailboxes. Its UIDVALIDITY is never used again.
type DeleteMailbox struct{ Mailbox MailboxID }

// RenameMailbox renames a mailbox and those below it; renaming INBOX moves its
// entries into a new mailbox (RFC 9051 section 6.3.6).
type RenameMailbox struct {
	Mailbox MailboxID
	Name    string
}

// Subscribe sets or clears a mailbox's subscription.
type Subscribe struct {
	Mailbox MailboxID
	On      bool
}

// Append adds events to a stream. Conflict unless the stream's last sequence
// number is Expect.
type Append struct {
	Stream string
	Expect uint64
	Events [][]byte
	Blobs  []Blob // kept as long as the stream is
}

// DropStream removes a stream and its hold on blobs.
type DropStream struct{ Stream string }

// PutRecord writes a record. Conflict unless its version is Version (0: must not
// exist), or Any is set.
type PutRecord struct {
	Key     string
	Version uint64
	Any     bool
	Value   []byte
	Index   []string // index keys, replaced as a whole
}

// Add adds to the numbers of a record: its value is a JSON object of whole numbers by
// name, read by Record.Sums. A record that is not there is made; a number that is not
// there is 0. It needs no version, so that any number of writers add without a conflict.
// The record's index keys stay. Invalid when the record holds something else.
type Add struct {
	Key  string
	Sums map[string]int64
	// Most are preconditions of what comes out. Together with the adding they are one step.
	Most []Most
}

// Most is a bound: Conflict when the numbers of these names come to more than Max.
type Most struct {
	Names []string
	Max   int64
}

// DeleteRecord removes a record. Conflict unless its version is Version; 0: any,
// also none.
type DeleteRecord struct {
	Key     string
	Version uint64
}

// CheckRecord is a bare precondition: Conflict unless the record has this version
// (0: does not exist).
type CheckRecord struct {
	Key     string
	Version uint64
}

// PutDue sets a due entry; one with the same Kind and Key is replaced.
type PutDue struct{ Due Due }

// DeleteDue removes a due entry and its claim. No-op when there is none.
type DeleteDue struct{ Kind, Key string }

func (AddMessage) op()    {}
func (AddEntry) op()      {}
func (RemoveEntry) op()   {}
func (Hold) op()          {}
func (SetTag) op()        {}
func (StoreFlags) op()    {}
func (MarkMessage) op()   {}
func (CopyEntries) op()   {}
func (MoveEntries) op()   {}
func (Expunge) op()       {}
func (CreateMailbox) op() {}
func (DeleteMailbox) op() {}
func (RenameMailbox) op() {}
func (Subscribe) op()     {}
func (Append) op()        {}
func (DropStream) op()    {}
func (PutRecord) op()     {}
func (Add) op()           {}
func (DeleteRecord) op()  {}
func (CheckRecord) op()   {}
func (PutDue) op()        {}
func (DeleteDue) op()     {}

// Result is what a commit assigned.
type Result struct {
	ModSeq   ModSeq
	Mailbox  MailboxID              // of CreateMailbox
	UIDs     map[MessageID][]NewUID // of AddMessage and AddEntry, in the order of the places
	Copied   []CopiedUID            // of CopyEntries and MoveEntries, in UID order
	Modified imap.UIDSet            // of StoreFlags with UnchangedSince: not changed
	Expunged int                    // entries removed
}

// NewUID is where a new entry lies.
type NewUID struct {
	Mailbox     MailboxID
	UIDValidity uint32
	UID         imap.UID
}

// CopiedUID pairs a source entry with its copy (RFC 4315 COPYUID).
type CopiedUID struct {
	UIDValidity uint32 // of the destination
	From, To    imap.UID
}
