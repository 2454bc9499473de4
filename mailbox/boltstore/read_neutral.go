package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"pizza/mailbox"
)

// Events reads a stream from a sequence number on.
func (s *Store) Events(ctx context.Context, id mailbox.AccountID, stream string, from uint64, fn func(uint64, []byte) error) error {
	a, err := s.account(ctx, id)
	if err != nil {
		return err
	}
	for from = max(from, 1); ; {
		if err := ctx.Err(); err != nil {
			return ended("events", err)
		}
		events, err := a.events(stream, from)
		if err != nil || len(events) == 0 {
			return err
		}
		for _, ev := range events {
			if err := fn(from, ev); err != nil {
				return err
			}
			from++
		}
	}
}

func (a *account) events(stream string, from uint64) (out [][]byte, err error) {
	size := 0
	return out, a.view("events", func(bs buckets) error {
		prefix := pairKey(stream)
		c := bs.at(bktEvent).Cursor()
		for k, v := c.Seek(pairKey(stream, key64(from)...)); bytes.HasPrefix(k, prefix) && size < readBytes; k, v = c.Next() {
			seq := k[len(prefix):]
			if len(seq) != 8 || binary.BigEndian.Uint64(seq) != from+uint64(len(out)) || len(v) == 0 {
				return fmt.Errorf("stream %s at %d: %w", stream, from, errCodec)
			}
			out = append(out, bytes.Clone(v[1:]))
			size += len(v)
		}
		return nil
	})
}

// Record reads one record.
func (s *Store) Record(ctx context.Context, id mailbox.AccountID, key string) (rec mailbox.Record, err error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return rec, err
	}
	return rec, a.view("record", func(bs buckets) error {
		v := bs.at(bktRecord).Get([]byte(key))
		if v == nil {
			return fail("record", mailbox.NotFound, key, "")
		}
		rec, err = decodeRecord(key, v)
		return err
	})
}

// Records lists records by key.
func (s *Store) Records(ctx context.Context, id mailbox.AccountID, prefix, after string, limit int) (out []mailbox.Record, err error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	return out, a.view("records", func(bs buckets) error {
		c := bs.at(bktRecord).Cursor()
		start := max(prefix, after)
		for k, v := c.Seek([]byte(start)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
			if after != "" && string(k) <= after {
				continue
			}
			rec, err := decodeRecord(string(k), v)
			if err != nil {
				return err
			}
			if out = append(out, rec); limit > 0 && len(out) == limit {
				return nil
			}
		}
		return nil
	})
}

// Lookup lists the records with an index key.
func (s *Store) Lookup(ctx context.Context, id mailbox.AccountID, index string) (out []mailbox.Record, err error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	return out, a.view("lookup", func(bs buckets) error {
		prefix := pairKey(index)
		c := bs.at(bktIndex).Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			key := k[len(prefix):]
			rec, err := decodeRecord(string(key), bs.at(bktRecord).Get(key))
			if err != nil {
				return fmt.Errorf("record %s of index %s: %w", key, index, err)
			}
			out = append(out, rec)
		}
		return nil
	})
}

// Count counts the records with an index key.
func (s *Store) Count(ctx context.Context, id mailbox.AccountID, index string) (n int, err error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return 0, err
	}
	return n, a.view("count", func(bs buckets) error {
		prefix := pairKey(index)
		c := bs.at(bktIndex).Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			n++
		}
		return nil
	})
}

// dueEntries walks the due entries of a kind in order of time until fn says no.
func (a *account) dueEntries(kind string, fn func(d mailbox.Due) bool) error {
	return a.view("due", func(bs buckets) error {
		prefix := pairKey(kind)
		c := bs.at(bktDue).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			rest := k[len(prefix):]
			if len(rest) < 9 || len(v) == 0 {
				return fmt.Errorf("due entry % x: %w", k, errCodec)
			}
			if !fn(mailbox.Due{Kind: kind, Key: string(rest[8:]), At: keyTime(rest[:8]), Value: bytes.Clone(v[1:])}) {
				return nil
			}
		}
		return nil
	})
}

// Claim takes due entries. The lock spans reading and marking: publish, which ends
// the claims of deleted entries, comes wholly before or after.
func (s *Store) Claim(ctx context.Context, id mailbox.AccountID, kind string, now time.Time, lease time.Duration, limit int) ([]mailbox.Due, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []mailbox.Due
	err = a.dueEntries(kind, func(d mailbox.Due) bool {
		if d.At.After(now) || len(out) >= limit {
			return false
		}
		if until, held := a.claims[dueKey{kind, d.Key}]; !held || !until.After(now) {
			out = append(out, d)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, d := range out {
		a.claims[dueKey{kind, d.Key}] = now.Add(lease)
	}
	return out, nil
}

// Release gives a claim back.
func (s *Store) Release(id mailbox.AccountID, kind, key string) {
	a, err := s.account(context.Background(), id)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.claims, dueKey{kind, key})
}

// NextDue returns when there is something to claim next: an entry that is held
// counts from the end of its lease.
func (s *Store) NextDue(ctx context.Context, id mailbox.AccountID, kind string) (time.Time, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	var next time.Time
	found := false
	err = a.dueEntries(kind, func(d mailbox.Due) bool {
		at := d.At
		until, held := a.claims[dueKey{kind, d.Key}]
		if held && until.After(at) {
			at = until
		}
		if !found || at.Before(next) {
			next, found = at, true
		}
		return held
	})
	return next, err
}
