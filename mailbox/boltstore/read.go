package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/emersion/go-imap/v2"
	bolt "go.etcd.io/bbolt"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// readBytes is how much is copied out of one read transaction at most, about.
const readBytes = 256 << 10

// maxCached is how many entries the snapshots in memory of an account have
// together before the least used ones go.
const maxCached = 500_000

// view runs fn in a read transaction. fn must not call anybody.
func (a *account) view(op string, fn func(bs buckets) error) error {
	return wrap(op, a.db.View(func(tx *bolt.Tx) error {
		return fn(bucketsOf(tx))
	}))
}

// Mailboxes lists all mailboxes by name.
func (s *Store) Mailboxes(ctx context.Context, id mailbox.AccountID) ([]mailbox.Mailbox, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.list(), nil
}

// Snapshot returns the present entries of a mailbox.
func (s *Store) Snapshot(ctx context.Context, id mailbox.AccountID, box mailbox.MailboxID) (*mailbox.Snapshot, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	if snap := a.cached(box); snap != nil {
		return snap, nil
	}
	a.commitMu.Lock()
	defer a.commitMu.Unlock()
	if snap := a.cached(box); snap != nil { // somebody else was faster
		return snap, nil
	}
	snap, err := a.read(box)
	if err != nil {
		return nil, err
	}
	a.remember(box, snap)
	return snap, nil
}

func (a *account) cached(box mailbox.MailboxID) *mailbox.Snapshot {
	a.mu.RLock()
	defer a.mu.RUnlock()
	c := a.snapshots[box]
	if c == nil {
		return nil
	}
	c.tick.Store(a.store.now().UnixNano())
	return c.snap
}

func (a *account) remember(box mailbox.MailboxID, snap *mailbox.Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &cached{snap: snap}
	c.tick.Store(a.store.now().UnixNano())
	a.snapshots[box] = c
	a.evict(box)
}

// evict drops snapshots that were not asked for longest, but not the one of keep.
func (a *account) evict(keep mailbox.MailboxID) {
	total := 0
	ids := make([]mailbox.MailboxID, 0, len(a.snapshots))
	for id, c := range a.snapshots {
		total += c.snap.Len()
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(x, y mailbox.MailboxID) int {
		return int(min(1, max(-1, a.snapshots[x].tick.Load()-a.snapshots[y].tick.Load())))
	})
	for _, id := range ids {
		if total > maxCached && id != keep {
			total -= a.snapshots[id].snap.Len()
			delete(a.snapshots, id)
		}
	}
}

// read makes a snapshot from the file.
func (a *account) read(id mailbox.MailboxID) (snap *mailbox.Snapshot, err error) {
	return snap, a.view("snapshot", func(bs buckets) error {
		key := key32(uint32(id))
		v := bs.at(bktBox).Get(key)
		if v == nil {
			return fail("snapshot", mailbox.NotFound, fmt.Sprintf("mailbox %d", id), "there is no such mailbox")
		}
		b, err := decodeBox(key, v)
		if err != nil {
			return err
		}
		entries := make([]mailbox.Entry, 0, b.Exists)
		c := bs.at(bktEntry).Cursor()
		for k, v := c.Seek(key); bytes.HasPrefix(k, key); k, v = c.Next() {
			e, err := decodeEntry(k, v)
			if err != nil {
				return err
			}
			entries = append(entries, e.Entry)
		}
		if len(entries) != int(b.Exists) {
			return fmt.Errorf("mailbox %d counts %d entries and has %d: %w", id, b.Exists, len(entries), errCodec)
		}
		snap = mailbox.NewSnapshot(b.Mailbox, entries)
		return nil
	})
}

// rawMessage is a message as copied out of a transaction.
type rawMessage struct {
	row       *message
	structure []byte
}

// Messages calls fn for each message of ids that exists, in this order.
func (s *Store) Messages(ctx context.Context, id mailbox.AccountID, ids []mailbox.MessageID, fn func(*mailbox.Message) error) error {
	a, err := s.account(ctx, id)
	if err != nil {
		return err
	}
	for len(ids) > 0 {
		if err := ctx.Err(); err != nil {
			return ended("messages", err)
		}
		raws, n, err := a.messages(ids)
		if err != nil {
			return err
		}
		ids = ids[n:]
		for _, raw := range raws {
			m, err := a.finished(raw)
			if err != nil {
				return err
			}
			if err := fn(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// messages copies the first messages of ids and returns how many ids that were.
func (a *account) messages(ids []mailbox.MessageID) (raws []rawMessage, n int, err error) {
	size := 0
	err = a.view("messages", func(bs buckets) error {
		for ; n < len(ids) && size < readBytes; n++ {
			m, err := readMessage(bs, ids[n])
			if err != nil {
				return err
			}
			if m == nil {
				continue
			}
			raws = append(raws, rawMessage{m, bytes.Clone(bs.at(bktStructure).Get(key64(m.body)))})
			size += len(raws[len(raws)-1].structure) + 256
		}
		return nil
	})
	return raws, n, err
}

// readMessage returns a message's row with the present flags; nil when there is none.
func readMessage(bs buckets, id mailbox.MessageID) (*message, error) {
	m, err := messageRow(bs, id)
	if err != nil || m == nil || len(m.spots) == 0 {
		return m, err
	}
	e, err := entryRow(bs, m.spots[0])
	m.flags = e.Flags
	return m, err
}

// entryRow returns an entry that must be there.
func entryRow(bs buckets, s spot) (row, error) {
	key := entryKey(s.mailbox, s.uid)
	e, err := decodeEntry(key, bs.at(bktEntry).Get(key))
	if err != nil {
		return e, fmt.Errorf("entry %d of mailbox %d: %w", s.uid, s.mailbox, err)
	}
	return e, nil
}

// messageRow is readMessage with the flags as stored.
func messageRow(bs buckets, id mailbox.MessageID) (*message, error) {
	v := bs.at(bktMessage).Get(key64(uint64(id)))
	if v == nil {
		return nil, nil
	}
	m, err := decodeMessage(id, v)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", id, err)
	}
	return m, nil
}

func (a *account) finished(raw rawMessage) (*mailbox.Message, error) {
	m := raw.row
	out := &mailbox.Message{ID: m.id, Size: m.size, Tag: m.tag, Flags: a.flags.members(m.flags), Structure: &mime.Structure{},
		Date: mailbox.Entry{Date: m.date, Zone: m.zone}.Internal()}
	if raw.structure == nil {
		return out, nil
	}
	var err error
	if out.Structure, err = mime.Decode(raw.structure); err != nil {
		return nil, wrap("messages", fmt.Errorf("structure of message %d: %w", m.id, err))
	}
	return out, nil
}

// OpenMessage opens a message's bytes. They stay readable when the message is
// deleted.
func (s *Store) OpenMessage(ctx context.Context, id mailbox.AccountID, msg mailbox.MessageID) (mailbox.Body, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	var body mailbox.Body
	err = a.view("open message", func(bs buckets) error {
		m, err := readMessage(bs, msg)
		if err != nil {
			return err
		}
		if m == nil {
			return fail("open message", mailbox.NotFound, fmt.Sprintf("message %d", msg), "the message is gone")
		}
		body, err = a.body(bs, m.blob)
		return err
	})
	return body, err
}

// OpenBlob opens staged or stored bytes.
func (s *Store) OpenBlob(ctx context.Context, id mailbox.AccountID, blob string) (mailbox.Body, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	key, ok := parseSum(blob)
	if !ok {
		return nil, fail("open blob", mailbox.Invalid, blob, "not a blob")
	}
	if body, ok, err := a.stage.open(key); ok {
		return body, wrap("open blob", err)
	}
	var body mailbox.Body
	err = a.view("open blob", func(bs buckets) error {
		body, err = a.body(bs, key)
		return err
	})
	return body, err
}

// body opens stored bytes: a copy of small ones, the file of large ones. The file
// may be gone already when a commit deletes it at this moment.
func (a *account) body(bs buckets, id sum) (mailbox.Body, error) {
	v := bs.at(bktBlob).Get(id[:])
	if v == nil {
		return nil, fail("open blob", mailbox.NotFound, id.String(), "the bytes are gone")
	}
	row, err := decodeBlob(v)
	if err != nil {
		return nil, err
	}
	if row.inline {
		return newMemBody(bytes.Clone(bs.at(bktBody).Get(key64(row.number)))), nil
	}
	body, err := openFile(a.stage.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &mailbox.Error{Op: "open blob", Kind: mailbox.NotFound, Name: id.String(), Text: "the bytes are gone", Err: err}
	}
	return body, err
}

// Places returns the entries of a message.
func (s *Store) Places(ctx context.Context, id mailbox.AccountID, msg mailbox.MessageID) ([]mailbox.Place, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []mailbox.Place
	return out, a.view("places", func(bs buckets) error {
		m, err := readMessage(bs, msg)
		if err != nil || m == nil {
			return err
		}
		for _, s := range m.spots {
			if a.isView(s.mailbox) {
				continue
			}
			e, err := entryRow(bs, s)
			if err != nil {
				return err
			}
			out = append(out, mailbox.Place{Mailbox: s.mailbox, Entry: e.Entry})
		}
		return nil
	})
}

// Gone returns the UIDs that were expunged from a mailbox after since; ok is false
// when the history does not go back that far (RFC 7162 section 3.2.7).
func (s *Store) Gone(ctx context.Context, id mailbox.AccountID, box mailbox.MailboxID, since mailbox.ModSeq) (uids imap.UIDSet, ok bool, err error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return nil, false, err
	}
	err = a.view("gone", func(bs buckets) error {
		key := key32(uint32(box))
		v := bs.at(bktBox).Get(key)
		if v == nil {
			return fail("gone", mailbox.NotFound, fmt.Sprintf("mailbox %d", box), "there is no such mailbox")
		}
		b, err := decodeBox(key, v)
		if err != nil || since < b.goneFloor {
			return err
		}
		ok = true
		c := bs.at(bktGone).Cursor()
		for k, v := c.Seek(goneKey(box, since+1)); bytes.HasPrefix(k, key); k, v = c.Next() {
			set, err := decodeUIDs(v)
			if err != nil {
				return err
			}
			uids.AddSet(set)
		}
		return nil
	})
	return uids, ok, err
}
