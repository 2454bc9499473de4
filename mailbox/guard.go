package mailbox

import "github.com/emersion/go-imap/v2"

// Guard gives system mailboxes and tagged messages their meaning. It is asked
// inside the commit, on the writer's goroutine, for each Op of a Tx with an Actor
// that touches a system mailbox or a tagged message. It must not block or call
// the Store; View is the state before the Op.
//
// It may refuse (*Error, normally Kind Refused with Text and Code: what the client
// gets), or let the Op happen, with further Ops of its own that commit with it or
// not at all. The further Ops run after the Op, as the system (without a guard).
type Guard interface {
	Review(view View, account AccountID, actor Actor, act Act) (Verdict, error)
}

// Act is what a person is about to do.
type Act struct {
	Op    Op        // the operation, as in the Tx
	From  *Mailbox  // mailbox of the entries, if any
	To    *Mailbox  // destination, if any (the mailbox itself for AddMessage, Create, Rename, Delete)
	Items []ActItem // entries concerned, in UID order (for AddMessage: the message, UID 0)
	// Through is the view in which the person does it; nil: in the mailbox itself.
	Through *Mailbox
}

// ActItem is one entry concerned by an act.
type ActItem struct {
	UID     imap.UID
	Message MessageID
	Tag     string
	Deleted bool
	Flags   []imap.Flag
}

// Verdict is the guard's permission.
type Verdict struct {
	// Instead replaces the Op by these (nil: the Op itself is applied; empty but not
	// nil: nothing is). Results the client needs (Copied, UIDs) come from them.
	Instead []Op
	// Also is applied after it in the same commit.
	Also []Op
	// ShareCopies makes a CopyEntries add further entries of the same messages
	// instead of copies.
	ShareCopies bool
	// Copies are the ids (View.NextMessageID) that the messages made by a CopyEntries get,
	// one an item in their order, so that Also can name them. Nil: any.
	Copies []MessageID
}

// View is the state inside a commit, for the guard.
type View interface {
	Record(key string) (Record, bool)
	Lookup(index string) []Record
	StreamSeq(stream string) uint64 // last sequence number, 0: none
	Mailbox(id MailboxID) (Mailbox, bool)
	Places(id MessageID) []Place // as Store.Places
	Tag(id MessageID) (string, bool)
	// MessageID is the Message-ID header field of a stored message, without brackets; ""
	// when it has none.
	MessageID(id MessageID) string
	NextMessageID() MessageID
}
