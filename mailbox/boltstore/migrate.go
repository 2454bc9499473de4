package boltstore

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

// migrate brings a file to the present schema, in the transaction that opens the
// account: a kill leaves it as it was.
func (a *account) migrate(tx *bolt.Tx, meta *bolt.Bucket) error {
	v := meta.Get(keySchema)
	if len(v) != 8 || binary.BigEndian.Uint64(v) > schemaVersion {
		return fail("open", mailbox.Internal, tx.DB().Path(), "the file was written by a newer release; use that one")
	}
	switch binary.BigEndian.Uint64(v) {
	case schemaVersion:
		return nil
	case 2:
		if err := entriesTo3(tx); err != nil {
			return damaged(tx.DB().Path(), err)
		}
	default: // none of these was released
		return fail("open", mailbox.Internal, tx.DB().Path(), "the file was written by a version before the first release; start with a new data root")
	}
	if err := meta.Put(keySchema, key64(schemaVersion)); err != nil {
		return err
	}
	a.log.Info("the account's file was brought to the present format")
	return a.store.hook("migrated")
}

// bucketEntries2 held the entries up to schema 2.
const bucketEntries2 = "idx"

// entriesTo3 writes the entries anew, with what their rows know since schema 3.
func entriesTo3(tx *bolt.Tx) error {
	bs := bucketsOf(tx)
	old := tx.Bucket([]byte(bucketEntries2))
	if old == nil {
		return fmt.Errorf("bucket %s is missing: %w", bucketEntries2, errCodec)
	}
	err := old.ForEach(func(k, v []byte) error {
		e, err := decodeEntry2(k, v)
		if err != nil {
			return fmt.Errorf("entry % x: %w", k, err)
		}
		m, err := messageRow(bs, e.Message)
		if err != nil || m == nil {
			return fmt.Errorf("entry % x: message %d is missing or damaged: %w", k, e.Message, errCodec)
		}
		e.Content, e.shared, e.tagged = m.body, len(m.spots) > 1, m.tag != ""
		return bs.at(bktEntry).Put(k, appendEntry(make([]byte, 0, entrySize), &e))
	})
	if err != nil {
		return err
	}
	return tx.DeleteBucket([]byte(bucketEntries2))
}
