package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

// Read calls fn with what want says of each message of ids that exists, in this
// order.
func (s *Store) Read(ctx context.Context, id mailbox.AccountID, ids []mailbox.MessageID, want mailbox.Want, fn func(*mailbox.Item) error) error {
	a, err := s.account(ctx, id)
	if err != nil {
		return err
	}
	r, _ := s.readings.Get().(*reading)
	if r == nil {
		r = &reading{}
	}
	r.want = want
	defer s.giveBack(r)
	for len(ids) > 0 {
		if err := ctx.Err(); err != nil {
			return ended("read", err)
		}
		n, err := r.copy(a, ids)
		if err != nil {
			return err
		}
		ids = ids[n:]
		for i := range r.items {
			if err := r.hand(ctx, a, i, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveBack keeps the memory of a Read for the next one, unless it grew large.
func (s *Store) giveBack(r *reading) {
	if cap(r.arena) > 2*readBytes {
		return
	}
	r.item = mailbox.Item{}
	r.mem.Reset(nil)
	s.readings.Put(r)
}

// reading is a Read at work. Each step copies some messages into the arena inside a
// transaction and hands them over outside of it.
type reading struct {
	want  mailbox.Want
	arena []byte
	items []copied
	item  mailbox.Item // what fn gets
	mem   memBody      // its Body
}

// copied is one message in the arena: its structure, then its header or its body.
type copied struct {
	stored
	id               mailbox.MessageID
	start, mid, end  int
	structured, file bool // it has a structure; its bytes lie in a file
}

// finder finds rows by number, in buckets that have such keys.
type finder struct {
	rows, structures, bodies table
	key                      [8]byte
}

type table struct {
	*bolt.Cursor
	placed bool // the cursor stands somewhere
}

func newFinder(tx *bolt.Tx) (*finder, error) {
	f := &finder{}
	for _, b := range []struct {
		of    bkt
		table *table
	}{{bktMessage, &f.rows}, {bktStructure, &f.structures}, {bktBody, &f.bodies}} {
		bucket := tx.Bucket([]byte(bucketNames[b.of]))
		if bucket == nil {
			return nil, fmt.Errorf("bucket %s is missing: %w", bucketNames[b.of], errCodec)
		}
		b.table.Cursor = bucket.Cursor()
	}
	return f, nil
}

// get returns the value of a number, which is valid during the transaction; nil when
// there is none. Messages of a mailbox mostly lie one behind the other.
func (f *finder) get(t *table, n uint64) []byte {
	key := f.key[:]
	binary.BigEndian.PutUint64(key, n)
	if t.placed {
		if k, v := t.Next(); bytes.Equal(k, key) {
			return v
		}
	}
	k, v := t.Seek(key)
	t.placed = k != nil
	if bytes.Equal(k, key) {
		return v
	}
	return nil
}

// copy copies the first messages of ids and returns how many ids that were.
func (r *reading) copy(a *account, ids []mailbox.MessageID) (n int, err error) {
	r.arena, r.items = r.arena[:0], r.items[:0]
	return n, wrap("read", a.db.View(func(tx *bolt.Tx) error {
		src, err := newFinder(tx)
		if err != nil {
			return err
		}
		for ; n < len(ids); n++ {
			taken, err := r.take(src, ids[n])
			if err != nil || !taken {
				return err
			}
		}
		return nil
	}))
}

// take copies one message, unless it would be too much for this step.
func (r *reading) take(src *finder, id mailbox.MessageID) (bool, error) {
	row := src.get(&src.rows, uint64(id))
	if row == nil {
		return true, nil // gone
	}
	m := copied{id: id, start: len(r.arena)}
	var err error
	if m.stored, err = decodeStored(row); err != nil {
		return false, fmt.Errorf("message %d: %w", id, err)
	}
	var structure, octets []byte
	if r.want&mailbox.WantStructure != 0 {
		structure = src.get(&src.structures, m.body)
		m.structured = structure != nil
	}
	if r.want&(mailbox.WantHeader|mailbox.WantBody) != 0 && m.size > 0 {
		octets = src.get(&src.bodies, m.body)
		m.file = octets == nil
		if r.want&mailbox.WantBody == 0 {
			octets = octets[:min(int64(len(octets)), m.head)]
		}
	}
	if len(r.items) > 0 && len(r.arena)+len(structure)+len(octets) > readBytes {
		return false, nil
	}
	r.arena = append(r.arena, structure...)
	m.mid = len(r.arena)
	r.arena = append(r.arena, octets...)
	m.end = len(r.arena)
	r.items = append(r.items, m)
	return true, nil
}

// hand calls fn with one message of the arena.
func (r *reading) hand(ctx context.Context, a *account, i int, fn func(*mailbox.Item) error) error {
	m := &r.items[i]
	r.item = mailbox.Item{Message: m.id}
	if m.structured {
		r.item.Encoded = r.arena[m.start:m.mid:m.mid]
	}
	if m.file {
		return r.handFile(ctx, a, m, fn)
	}
	octets := r.arena[m.mid:m.end:m.end]
	if r.want&mailbox.WantHeader != 0 {
		r.item.Header, r.item.HeaderSize = octets[:min(int64(len(octets)), m.head)], m.head
	}
	if r.want&mailbox.WantBody != 0 {
		r.mem.Reset(octets)
		r.item.Body = &r.mem
	}
	return fn(&r.item)
}

// handFile is hand for a message whose bytes lie in a file.
func (r *reading) handFile(ctx context.Context, a *account, m *copied, fn func(*mailbox.Item) error) error {
	body, err := a.store.OpenMessage(ctx, a.id, m.id)
	var me *mailbox.Error
	if errors.As(err, &me) && me.Kind == mailbox.NotFound {
		return nil // it went meanwhile
	}
	if err != nil {
		return err
	}
	defer body.Close()
	if r.want&mailbox.WantHeader != 0 {
		r.item.Header, r.item.HeaderSize = make([]byte, min(m.head, mailbox.MaxHeader)), m.head
		if n, err := body.ReadAt(r.item.Header, 0); n < len(r.item.Header) {
			return wrap("read", errors.Join(io.ErrUnexpectedEOF, err))
		}
	}
	if r.want&mailbox.WantBody != 0 {
		r.item.Body = body
	}
	return fn(&r.item)
}
