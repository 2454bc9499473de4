package imapserver

import (
	"sync"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// recentBook remembers, for this process, up to which UID somebody has been told
// of a mailbox's messages. What lies above is \Recent for the next session that
// selects the mailbox for writing (RFC 3501 section 2.3.2). Of a mailbox that nobody
// has asked about, what came in since the start is recent.
type recentBook struct {
	since int64 // Unix seconds

	mu   sync.Mutex // guards next
	next map[recentKey]imap.UID
}

type recentKey struct {
	account mailbox.AccountID
	mailbox mailbox.MailboxID
}

func newRecentBook(start time.Time) *recentBook {
	return &recentBook{since: start.Unix(), next: map[recentKey]imap.UID{}}
}

// above returns the recent UIDs of a snapshot; claim makes them the caller's.
func (b *recentBook) above(account mailbox.AccountID, snap *mailbox.Snapshot, claim bool) uidRange {
	key := recentKey{account, snap.Mailbox.ID}
	b.mu.Lock()
	defer b.mu.Unlock()
	from, known := b.next[key]
	if !known {
		from = b.firstSince(snap)
		b.next[key] = from
	}
	if claim && snap.UIDNext() > from {
		b.next[key] = snap.UIDNext()
	}
	return uidRange{from, snap.UIDNext() - 1}
}

// firstSince returns the first of the UIDs at the end that came since the start.
func (b *recentBook) firstSince(snap *mailbox.Snapshot) imap.UID {
	from := snap.UIDNext()
	for i := snap.Len() - 1; i >= 0; i-- {
		e := snap.At(i)
		if e.Saved < b.since {
			break
		}
		from = e.UID
	}
	return from
}
