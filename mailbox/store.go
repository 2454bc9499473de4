package mailbox

import (
	"context"
	"io"
	"time"

	"github.com/emersion/go-imap/v2"
)

// Store is the durable state of all accounts. boltstore implements it; it is made
// so that PostgreSQL can stand behind it. The conformance suite is
// mailbox/storetest.
//
// Every method that returns an error returns *Error with Kind NotFound for an unknown
// account; the others nothing, or a channel that stays silent.
type Store interface {
	// Commit checks all preconditions of tx, applies all changes in order, assigns
	// UIDs and a mod-sequence, and returns when they are on disk. A Tx that fails
	// changes nothing and leaves the others of its commit group untouched. The
	// guard is asked, inside the commit, for every change of tx that a person makes
	// (tx.Actor) in a system mailbox or to a tagged message.
	Commit(ctx context.Context, account AccountID, tx Tx) (Result, error)

	// Stage writes bytes to the account so that a later Tx can name them. A staged
	// blob that no Tx names is given up after 10 minutes, or when the process ends. Up
	// to 128 KiB it may stay in memory until the commit; larger ones are on disk when
	// Stage returns. limit is the most octets taken; more is *Error TooLarge. 0 is no
	// limit.
	Stage(ctx context.Context, account AccountID, r io.Reader, limit int64) (Blob, error)
	// OpenBlob opens staged or stored bytes for reading at any offset.
	OpenBlob(ctx context.Context, account AccountID, id string) (Body, error)

	// NextMessageID returns an id that no message has had, and gives it to nobody else
	// until the process ends. One that is not used costs nothing.
	NextMessageID(account AccountID) (MessageID, error)

	// Space tells what an account uses and what there is. It is cheap. While the disk
	// is full (Space.Full), AddMessage and CopyEntries of a person are *Error Full,
	// but for copies into the trash and those that the guard shares. Whoever takes
	// mail in asks before it reads it: Stage takes what it is given.
	Space(ctx context.Context, account AccountID) (Space, error)

	// Mailboxes lists all mailboxes of the account, hidden ones too, by name.
	Mailboxes(ctx context.Context, account AccountID) ([]Mailbox, error)
	// Snapshot returns the present entries of a mailbox. It is immutable, shared,
	// and O(1) when nothing changed since the last call.
	Snapshot(ctx context.Context, account AccountID, id MailboxID) (*Snapshot, error)
	// Gone returns the UIDs that were expunged from a mailbox after since; ok is false
	// when the history does not go back that far (RFC 7162 section 3.2.7).
	Gone(ctx context.Context, account AccountID, id MailboxID, since ModSeq) (uids imap.UIDSet, ok bool, err error)
	// Flags returns the members of an interned set, in canonical case and order:
	// system flags first, then keywords. The slice is shared; do not change it.
	Flags(account AccountID, set FlagSet) []imap.Flag
	// Messages calls fn for each id that still exists, in the given order, outside
	// any transaction; a missing one is skipped. It stops at fn's first error.
	Messages(ctx context.Context, account AccountID, ids []MessageID, fn func(*Message) error) error
	// Read calls fn with what want says of each message that still exists, in the
	// given order, outside any transaction; a missing one is skipped. It stops at fn's
	// first error. It is for many messages: it reads in steps of about 256 KiB.
	Read(ctx context.Context, account AccountID, ids []MessageID, want Want, fn func(*Item) error) error
	// OpenMessage opens a message's bytes. The caller closes the Body.
	OpenMessage(ctx context.Context, account AccountID, id MessageID) (Body, error)
	// Lacking returns contents none of whose texts, folded (internal/fold), holds text,
	// which is folded too: what an index knows without reading them. Only those are in it
	// that surely do not; a content that is not may hold the text or not. nil: nothing is
	// known, as of a text that is too short, or by a store without an index.
	Lacking(ctx context.Context, account AccountID, in TextIn, text string) (*Contents, error)
	// Places returns where a message lies now: its entries but those in views.
	Places(ctx context.Context, account AccountID, id MessageID) ([]Place, error)

	// Events reads a stream from sequence number from (first is 1). fn's bytes are
	// valid during the call only.
	Events(ctx context.Context, account AccountID, stream string, from uint64, fn func(seq uint64, event []byte) error) error
	// Record reads one record; *Error NotFound when there is none.
	Record(ctx context.Context, account AccountID, key string) (Record, error)
	// Records lists the records whose key begins with prefix, by key, at most limit
	// (0: all), starting after key after.
	Records(ctx context.Context, account AccountID, prefix, after string, limit int) ([]Record, error)
	// Lookup lists the records that gave the index key index, by record key.
	Lookup(ctx context.Context, account AccountID, index string) ([]Record, error)
	// Count counts the records that gave the index key index, without reading them.
	Count(ctx context.Context, account AccountID, index string) (int, error)
	// Claim takes up to max due entries of kind with At <= now that nobody holds and
	// that are not done, and holds them for lease. A lease ends with the process.
	Claim(ctx context.Context, account AccountID, kind string, now time.Time, lease time.Duration, max int) ([]Due, error)
	// Release gives a claimed entry back before its lease ends.
	Release(account AccountID, kind, key string)
	// NextDue returns when the next unclaimed entry of kind is due; zero: none.
	NextDue(ctx context.Context, account AccountID, kind string) (time.Time, error)

	// Watch returns a channel of capacity one that gets a token after commits which
	// changed the mailbox (0: anything of the account; DueEntries: its due entries). Tokens may be merged; whoever
	// wakes re-reads. cancel ends it.
	Watch(account AccountID, id MailboxID) (wake <-chan struct{}, cancel func())

	// SetView switches a view on or off, or changes its rule, and returns when it shows what
	// the rule says. A view is filled and emptied in steps, between which others commit; it
	// is hidden until it is full, and from the moment it is switched off. After a crash the
	// same call goes on. While the rule holds, every commit keeps the view up at a cost
	// proportional to what it changes.
	SetView(ctx context.Context, account AccountID, rule ViewRule) error
	// Enter tells that somebody has a mailbox open, until leave is called. A message that is
	// read stays in a view until the last who has it open leaves, or the store is opened
	// again. For other mailboxes it does nothing.
	Enter(account AccountID, id MailboxID) (leave func())

	// Epoch is raised by one each time the account is opened. A Tx may state it.
	Epoch(account AccountID) uint64
	// Accounts lists the accounts that have a file.
	Accounts(ctx context.Context) ([]AccountID, error)
	// CreateAccount makes the account's file with the seed mailboxes, or adds the
	// seeds that are missing in an existing one.
	CreateAccount(ctx context.Context, account AccountID, seeds []Mailbox) error

	Close() error
}

// Body is the bytes of a stored message or blob.
type Body interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// ViewRule says what a view shows: the messages without \Seen that lie in any mailbox
// but those of Except and other views. The place where a message of a view lies is the
// one of the mailbox with the lowest id among these.
type ViewRule struct {
	Mailbox MailboxID // a row with View set
	On      bool
	Except  []MailboxID
}

// Place is one entry of a message, with its mailbox.
type Place struct {
	Mailbox MailboxID
	Entry   Entry
}

// Record is a small value under a key, with a version for compare-and-set.
type Record struct {
	Key     string
	Version uint64 // 1 for a new record, grows by one with each put
	Value   []byte
	Index   []string
}

// Due is an entry that somebody has to look at, at a time.
type Due struct {
	Kind  string
	Key   string // unique per kind
	At    time.Time
	Value []byte
}
