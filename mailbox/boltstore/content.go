package boltstore

import (
	"context"

	"pizza/mailbox"
)

// Content returns the number that entries of these bytes have (mailbox.Entry.Content);
// ok is false when no message has them.
func (s *Store) Content(ctx context.Context, id mailbox.AccountID, blob string) (number uint64, ok bool, err error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return 0, false, err
	}
	key, valid := parseSum(blob)
	if !valid {
		return 0, false, fail("content", mailbox.Invalid, blob, "not a blob")
	}
	return number, ok, a.view("content", func(bs buckets) error {
		v := bs.at(bktBlob).Get(key[:])
		if v == nil {
			return nil
		}
		row, err := decodeBlob(v)
		number, ok = row.number, err == nil
		return err
	})
}
