package boltstore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"pizza/mailbox"
)

const (
	maxKey   = 1024     // bytes of a record key, index key, stream name, due kind or key
	maxValue = 16 << 20 // bytes of a record, event or due value; more belongs into a blob
)

// checkKeys refuses keys that would be confused in a composed key.
func checkKeys(op string, keys ...string) error {
	for _, k := range keys {
		if k == "" || len(k) > maxKey || strings.IndexByte(k, 0) >= 0 {
			return fail(op, mailbox.Invalid, k, "a key has 1 to 1024 bytes and no NUL")
		}
	}
	return nil
}

func checkValue(op, key string, v []byte) error {
	if len(v) > maxValue {
		return fail(op, mailbox.TooLarge, key, "a value has at most 16 MiB")
	}
	return nil
}

func (t *txn) appendEvents(op mailbox.Append) error {
	if err := checkKeys("append", op.Stream); err != nil {
		return err
	}
	seq := t.streamSeq(op.Stream)
	if t.err != nil {
		return t.err
	}
	if seq != op.Expect {
		return fail("append", mailbox.Conflict, op.Stream, fmt.Sprintf("the stream is at %d, not at %d", seq, op.Expect))
	}
	for _, ev := range op.Events {
		if err := checkValue("append", op.Stream, ev); err != nil {
			return err
		}
		seq++
		t.put(bktEvent, pairKey(op.Stream, key64(seq)...), append([]byte{format1}, ev...))
	}
	t.put(bktStream, []byte(op.Stream), key64(seq))
	for _, b := range op.Blobs {
		if err := t.keepBlob(op.Stream, b); err != nil {
			return err
		}
	}
	return nil
}

// keepBlob gives a stream one reference to a blob.
func (t *txn) keepBlob(stream string, b mailbox.Blob) error {
	id, ok := parseSum(b.ID)
	if !ok {
		return fail("append", mailbox.Invalid, b.ID, "not a blob")
	}
	key := pairKey(stream, id[:]...)
	if t.get(bktKept, key) != nil {
		t.pin(id)
		return nil
	}
	if _, _, err := t.ref(b); err != nil {
		return err
	}
	t.put(bktKept, key, []byte{format1})
	return nil
}

func (t *txn) streamSeq(stream string) uint64 {
	switch v := t.get(bktStream, []byte(stream)); {
	case len(v) == 8:
		return binary.BigEndian.Uint64(v)
	case v != nil: // 0 would let its events be written over
		t.err = fmt.Errorf("stream %s: %w", stream, errCodec)
	}
	return 0
}

func (t *txn) dropStream(op mailbox.DropStream) error {
	if err := checkKeys("drop", op.Stream); err != nil {
		return err
	}
	prefix := pairKey(op.Stream)
	for _, k := range t.keys(bktEvent, prefix) {
		t.del(bktEvent, k)
	}
	for _, k := range t.keys(bktKept, prefix) {
		var id sum
		copy(id[:], k[len(prefix):])
		t.del(bktKept, k)
		t.unref(id)
	}
	t.del(bktStream, []byte(op.Stream))
	return nil
}

// record returns a record; Version 0 when there is none.
func (t *txn) record(key string) (mailbox.Record, error) {
	v := t.get(bktRecord, []byte(key))
	if v == nil {
		return mailbox.Record{}, nil
	}
	rec, err := decodeRecord(key, v)
	if err != nil {
		return rec, fmt.Errorf("record %s: %w", key, err)
	}
	return rec, nil
}

func (t *txn) putRecord(op mailbox.PutRecord) error {
	if err := checkKeys("put", append([]string{op.Key}, op.Index...)...); err != nil {
		return err
	}
	if err := checkValue("put", op.Key, op.Value); err != nil {
		return err
	}
	old, err := t.record(op.Key)
	if err != nil {
		return err
	}
	if !op.Any && old.Version != op.Version {
		return stale("put", op.Key, old.Version)
	}
	index := uniq(op.Index)
	t.unindex(old.Key, old.Index, index)
	for _, i := range index {
		if !slices.Contains(old.Index, i) {
			t.put(bktIndex, pairKey(i, []byte(op.Key)...), []byte{format1})
		}
	}
	rec := mailbox.Record{Key: op.Key, Version: old.Version + 1, Value: op.Value, Index: index}
	t.put(bktRecord, []byte(op.Key), encodeRecord(rec))
	return nil
}

func stale(op, key string, version uint64) error {
	return fail(op, mailbox.Conflict, key, fmt.Sprintf("the record is at version %d", version))
}

// unindex takes the index keys of a record away, but those to keep.
func (t *txn) unindex(key string, index, keep []string) {
	for _, i := range index {
		if !slices.Contains(keep, i) {
			t.del(bktIndex, pairKey(i, []byte(key)...))
		}
	}
}

// add adds to the numbers of a record.
func (t *txn) add(op mailbox.Add) error {
	if err := checkKeys("add", op.Key); err != nil {
		return err
	}
	rec, err := t.record(op.Key)
	if err != nil {
		return err
	}
	value, err := op.To(rec.Value)
	if err != nil {
		return err
	}
	if err := checkValue("add", op.Key, value); err != nil {
		return err
	}
	rec.Key, rec.Version, rec.Value = op.Key, rec.Version+1, value
	t.put(bktRecord, []byte(op.Key), encodeRecord(rec))
	return nil
}

func (t *txn) deleteRecord(op mailbox.DeleteRecord) error {
	old, err := t.record(op.Key)
	if err != nil {
		return err
	}
	if op.Version != 0 && old.Version != op.Version {
		return stale("delete", op.Key, old.Version)
	}
	t.unindex(old.Key, old.Index, nil)
	t.del(bktRecord, []byte(op.Key))
	return nil
}

func (t *txn) checkRecord(op mailbox.CheckRecord) error {
	rec, err := t.record(op.Key)
	if err != nil {
		return err
	}
	if rec.Version != op.Version {
		return stale("check", op.Key, rec.Version)
	}
	return nil
}

func dueRow(kind string, at []byte, key string) []byte {
	return pairKey(kind, append(at[:len(at):len(at)], key...)...)
}

func (t *txn) putDue(op mailbox.PutDue) error {
	d := op.Due
	if err := checkKeys("due", d.Kind, d.Key); err != nil {
		return err
	}
	if err := checkValue("due", d.Key, d.Value); err != nil {
		return err
	}
	t.clearDue(d.Kind, d.Key)
	t.dues = true
	at := timeKey(d.At)
	t.put(bktDue, dueRow(d.Kind, at, d.Key), append([]byte{format1}, d.Value...))
	t.put(bktDueKey, pairKey(d.Kind, []byte(d.Key)...), at)
	return nil
}

func (t *txn) clearDue(kind, key string) {
	byKey := pairKey(kind, []byte(key)...)
	if at := t.get(bktDueKey, byKey); at != nil && len(at) != 8 {
		t.err = fmt.Errorf("due entry %s: %w", key, errCodec)
	} else if at != nil {
		t.del(bktDue, dueRow(kind, at, key))
		t.del(bktDueKey, byKey)
	}
}

func (t *txn) deleteDue(op mailbox.DeleteDue) error {
	if err := checkKeys("due", op.Kind, op.Key); err != nil {
		return err
	}
	t.clearDue(op.Kind, op.Key)
	t.dues = true
	t.done = append(t.done, dueKey{op.Kind, op.Key})
	return nil
}
