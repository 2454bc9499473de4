package boltstore

import (
	"context"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// Space tells what an account uses and what the disk still takes.
func (s *Store) Space(ctx context.Context, id mailbox.AccountID) (mailbox.Space, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return mailbox.Space{}, err
	}
	sp := mailbox.Space{Left: s.disk.left()}
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, b := range a.boxes {
		if b.View { // what it shows counts where it lies
			continue
		}
		sp.Used += b.Size
		sp.Messages += int64(b.Exists)
	}
	return sp, nil
}

// room refuses what a person adds while the disk is full. What the guard adds or does
// instead is an effect of the person's act and is recorded; a copy into the trash is
// how programs without MOVE delete.
func (t *txn) room(op mailbox.Op, v mailbox.Verdict) error {
	if t.req.tx.Actor == nil || v.Instead != nil || v.ShareCopies {
		return nil
	}
	switch op := op.(type) {
	case mailbox.AddMessage:
	case mailbox.CopyEntries:
		if to := t.row(op.To); to != nil && to.SpecialUse == imap.MailboxAttrTrash {
			return nil
		}
	default:
		return nil
	}
	if t.a.store.disk.left() > 0 {
		return nil
	}
	return fail("commit", mailbox.Full, "", "The disk is almost full: delete mail or other files first")
}
