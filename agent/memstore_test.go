package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// memDisk is what a crash leaves of one account: a value, so that a walk can keep what
// lay there at each commit.
type memDisk struct {
	epoch   uint64
	last    mailbox.MessageID
	uidNext map[mailbox.MailboxID]imap.UID
	entries map[memPlace]imap.UID
	mails   map[mailbox.MessageID]memMail
	blobs   map[string]string
	streams map[string][][]byte
	records map[string]mailbox.Record
	dues    map[memDue]mailbox.Due
}

type (
	memPlace struct {
		box  mailbox.MailboxID
		mail mailbox.MessageID
	}
	memDue  struct{ kind, key string }
	memMail struct {
		blob      mailbox.Blob
		structure *mime.Structure
		date      time.Time
		flags     []imap.Flag
		tag       string
		holds     []string
	}
)

func newMemDisk() *memDisk {
	return &memDisk{
		uidNext: map[mailbox.MailboxID]imap.UID{}, entries: map[memPlace]imap.UID{}, mails: map[mailbox.MessageID]memMail{},
		blobs: map[string]string{}, streams: map[string][][]byte{}, records: map[string]mailbox.Record{}, dues: map[memDue]mailbox.Due{},
	}
}

func (d *memDisk) clone() *memDisk {
	c := *d
	c.uidNext, c.entries, c.mails = maps.Clone(d.uidNext), maps.Clone(d.entries), maps.Clone(d.mails)
	c.blobs, c.streams = maps.Clone(d.blobs), maps.Clone(d.streams)
	c.records, c.dues = maps.Clone(d.records), maps.Clone(d.dues)
	return &c
}

// box lists the messages of a mailbox in UID order.
func (d *memDisk) box(id mailbox.MailboxID) (list []mailbox.MessageID) {
	for p := range d.entries {
		if p.box == id {
			list = append(list, p.mail)
		}
	}
	slices.SortFunc(list, func(a, b mailbox.MessageID) int {
		return cmp.Compare(d.entries[memPlace{id, a}], d.entries[memPlace{id, b}])
	})
	return list
}

// memStore is the part of mailbox.Store that a run needs, in memory and without mail
// programs: fast enough to walk thousands of crashes. TestMemStoreIsAsBolt compares it
// with the real one. What it lacks is nil and panics.
type memStore struct {
	mailbox.Store
	account mailbox.AccountID
	epoch   uint64 // of this process; that of the disk goes on when another opens it

	mu      sync.Mutex
	disk    *memDisk
	next    mailbox.MessageID // given out last
	staged  map[string]string
	claims  map[memDue]time.Time
	watches map[chan struct{}]mailbox.MailboxID
}

// openMem starts a process on a disk, which stays as it is.
func openMem(account mailbox.AccountID, disk *memDisk) *memStore {
	m := &memStore{account: account, disk: disk.clone(), staged: map[string]string{}, claims: map[memDue]time.Time{}, watches: map[chan struct{}]mailbox.MailboxID{}}
	m.disk.epoch++
	m.epoch = m.disk.epoch
	return m
}

func memErr(kind mailbox.Kind, name string) error {
	return &mailbox.Error{Op: "memstore", Kind: kind, Name: name}
}

func (m *memStore) Commit(_ context.Context, id mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id != m.account {
		return mailbox.Result{}, memErr(mailbox.NotFound, string(id))
	}
	if tx.Epoch != 0 && tx.Epoch != m.disk.epoch {
		return mailbox.Result{}, memErr(mailbox.Conflict, "epoch")
	}
	t := &memTx{memDisk: m.disk.clone(), staged: m.staged, touched: map[mailbox.MailboxID]bool{}}
	for _, op := range tx.Ops {
		if err := t.perform(op); err != nil {
			return mailbox.Result{}, err
		}
	}
	m.disk = t.memDisk
	for _, d := range t.done {
		delete(m.claims, d)
	}
	for ch, box := range m.watches {
		if box == 0 || t.touched[box] {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
	return mailbox.Result{}, nil
}

// memTx is a commit in the making.
type memTx struct {
	*memDisk
	staged  map[string]string
	touched map[mailbox.MailboxID]bool
	done    []memDue
}

func (t *memTx) perform(op mailbox.Op) error {
	switch op := op.(type) {
	case mailbox.AddMessage:
		return t.addMessage(op)
	case mailbox.AddEntry:
		return t.addEntry(op.Message, op.Mailbox)
	case mailbox.RemoveEntry:
		return t.removeEntry(op)
	case mailbox.Hold:
		return t.hold(op)
	case mailbox.SetTag:
		mail, ok := t.mails[op.Message]
		if !ok || mail.tag != op.Old {
			return memErr(mailbox.Conflict, "tag")
		}
		mail.tag = op.New
		t.mails[op.Message] = mail
	case mailbox.MarkMessage:
		if mail, ok := t.mails[op.Message]; ok {
			mail.flags = slices.DeleteFunc(slices.Clone(mail.flags), func(f imap.Flag) bool { return slices.Contains(op.Remove, f) || slices.Contains(op.Add, f) })
			mail.flags = append(mail.flags, op.Add...)
			t.mails[op.Message] = mail
		}
	case mailbox.Append:
		return t.appendEvents(op)
	case mailbox.DropStream:
		delete(t.streams, op.Stream)
	case mailbox.PutRecord:
		old := t.records[op.Key]
		if !op.Any && old.Version != op.Version {
			return memErr(mailbox.Conflict, op.Key)
		}
		t.records[op.Key] = mailbox.Record{Key: op.Key, Version: old.Version + 1, Value: bytes.Clone(op.Value), Index: slices.Clone(op.Index)}
	case mailbox.DeleteRecord:
		if op.Version != 0 && t.records[op.Key].Version != op.Version {
			return memErr(mailbox.Conflict, op.Key)
		}
		delete(t.records, op.Key)
	case mailbox.Add:
		rec := t.records[op.Key]
		value, err := op.To(rec.Value)
		if err != nil {
			return err
		}
		rec.Key, rec.Version, rec.Value = op.Key, rec.Version+1, value
		t.records[op.Key] = rec
	case mailbox.CheckRecord:
		if t.records[op.Key].Version != op.Version {
			return memErr(mailbox.Conflict, op.Key)
		}
	case mailbox.PutDue:
		t.touched[mailbox.DueEntries] = true
		t.dues[memDue{op.Due.Kind, op.Due.Key}] = op.Due
	case mailbox.DeleteDue:
		t.touched[mailbox.DueEntries] = true
		delete(t.dues, memDue{op.Kind, op.Key})
		t.done = append(t.done, memDue{op.Kind, op.Key})
	default:
		return memErr(mailbox.Invalid, fmt.Sprintf("%T", op))
	}
	return nil
}

func (t *memTx) addMessage(op mailbox.AddMessage) error {
	if _, ok := t.mails[op.ID]; ok || op.ID == 0 {
		return memErr(mailbox.Conflict, "message")
	}
	if len(op.Places)+len(op.Hold) == 0 {
		return memErr(mailbox.Invalid, "message")
	}
	if err := t.keep(op.Blob); err != nil {
		return err
	}
	t.mails[op.ID] = memMail{blob: op.Blob, structure: op.Structure, date: op.Date, flags: slices.Clone(op.Flags), tag: op.Tag, holds: slices.Clone(op.Hold)}
	t.last = max(t.last, op.ID)
	for _, box := range op.Places {
		if err := t.addEntry(op.ID, box); err != nil {
			return err
		}
	}
	return nil
}

func (t *memTx) addEntry(id mailbox.MessageID, box mailbox.MailboxID) error {
	p := memPlace{box, id}
	if _, ok := t.mails[id]; !ok || t.entries[p] != 0 {
		return memErr(mailbox.Conflict, "entry")
	}
	t.uidNext[box]++
	t.entries[p], t.touched[box] = t.uidNext[box], true
	return nil
}

func (t *memTx) removeEntry(op mailbox.RemoveEntry) error {
	p := memPlace{op.Mailbox, op.Message}
	if t.entries[p] == 0 {
		if op.IfPresent {
			return nil
		}
		return memErr(mailbox.Conflict, "entry")
	}
	delete(t.entries, p)
	t.touched[op.Mailbox] = true
	t.sweep(op.Message)
	return nil
}

func (t *memTx) hold(op mailbox.Hold) error {
	mail, ok := t.mails[op.Message]
	if !ok {
		if op.Release {
			return nil
		}
		return memErr(mailbox.Conflict, "hold")
	}
	mail.holds = slices.DeleteFunc(slices.Clone(mail.holds), func(h string) bool { return h == op.Name })
	if !op.Release {
		mail.holds = append(mail.holds, op.Name)
	}
	t.mails[op.Message] = mail
	t.sweep(op.Message)
	return nil
}

// sweep deletes a message that nothing keeps.
func (t *memTx) sweep(id mailbox.MessageID) {
	if len(t.mails[id].holds) > 0 {
		return
	}
	for p := range t.entries {
		if p.mail == id {
			return
		}
	}
	delete(t.mails, id)
}

func (t *memTx) appendEvents(op mailbox.Append) error {
	old := t.streams[op.Stream]
	if uint64(len(old)) != op.Expect {
		return memErr(mailbox.Conflict, op.Stream)
	}
	for _, b := range op.Blobs {
		if err := t.keep(b); err != nil {
			return err
		}
	}
	t.streams[op.Stream] = append(slices.Clip(old), op.Events...)
	return nil
}

// keep brings staged bytes to the disk.
func (t *memTx) keep(b mailbox.Blob) error {
	body, ok := t.staged[b.ID]
	if _, there := t.blobs[b.ID]; !ok && !there {
		return memErr(mailbox.Transient, b.ID)
	}
	if ok {
		t.blobs[b.ID] = body
	}
	return nil
}

func (m *memStore) Stage(_ context.Context, _ mailbox.AccountID, r io.Reader, _ int64) (mailbox.Blob, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return mailbox.Blob{}, err
	}
	sum := sha256.Sum256(b)
	blob := mailbox.Blob{ID: hex.EncodeToString(sum[:]), Size: int64(len(b))}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.staged[blob.ID] = string(b)
	return blob, nil
}

type memBody struct{ *strings.Reader }

func (memBody) Close() error { return nil }

func (m *memStore) OpenBlob(_ context.Context, _ mailbox.AccountID, id string) (mailbox.Body, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.disk.blobs[id]
	if !ok {
		b, ok = m.staged[id]
	}
	if !ok {
		return nil, memErr(mailbox.NotFound, id)
	}
	return memBody{strings.NewReader(b)}, nil
}

func (m *memStore) OpenMessage(ctx context.Context, account mailbox.AccountID, id mailbox.MessageID) (mailbox.Body, error) {
	m.mu.Lock()
	mail, ok := m.disk.mails[id]
	m.mu.Unlock()
	if !ok {
		return nil, memErr(mailbox.NotFound, "message")
	}
	return m.OpenBlob(ctx, account, mail.blob.ID)
}

func (m *memStore) Messages(_ context.Context, _ mailbox.AccountID, ids []mailbox.MessageID, fn func(*mailbox.Message) error) error {
	m.mu.Lock()
	disk := m.disk
	m.mu.Unlock()
	for _, id := range ids {
		mail, ok := disk.mails[id]
		if !ok {
			continue
		}
		msg := &mailbox.Message{ID: id, Size: mail.blob.Size, Date: mail.date, Flags: mail.flags, Tag: mail.tag, Structure: mail.structure}
		if err := fn(msg); err != nil {
			return err
		}
	}
	return nil
}

func (m *memStore) Places(_ context.Context, _ mailbox.AccountID, id mailbox.MessageID) (list []mailbox.Place, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, uid := range m.disk.entries {
		if p.mail == id {
			list = append(list, mailbox.Place{Mailbox: p.box, Entry: mailbox.Entry{UID: uid, Message: id}})
		}
	}
	slices.SortFunc(list, func(a, b mailbox.Place) int { return cmp.Compare(a.Mailbox, b.Mailbox) })
	return list, nil
}

func (m *memStore) NextMessageID(mailbox.AccountID) (mailbox.MessageID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = max(m.next, m.disk.last) + 1
	return m.next, nil
}

func (m *memStore) Events(_ context.Context, _ mailbox.AccountID, stream string, from uint64, fn func(uint64, []byte) error) error {
	m.mu.Lock()
	events := m.disk.streams[stream]
	m.mu.Unlock()
	for seq := max(from, 1); seq <= uint64(len(events)); seq++ {
		if err := fn(seq, events[seq-1]); err != nil {
			return err
		}
	}
	return nil
}

func (m *memStore) Record(_ context.Context, _ mailbox.AccountID, key string) (mailbox.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, ok := m.disk.records[key]
	if !ok {
		return rec, memErr(mailbox.NotFound, key)
	}
	return rec, nil
}

// pickRecords lists records by key.
func (m *memStore) pickRecords(want func(mailbox.Record) bool) (list []mailbox.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, rec := range m.disk.records {
		if want(rec) {
			list = append(list, rec)
		}
	}
	slices.SortFunc(list, func(a, b mailbox.Record) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

func (m *memStore) Records(_ context.Context, _ mailbox.AccountID, prefix, after string, limit int) ([]mailbox.Record, error) {
	list := m.pickRecords(func(r mailbox.Record) bool { return strings.HasPrefix(r.Key, prefix) && r.Key > after })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, nil
}

func (m *memStore) Count(ctx context.Context, id mailbox.AccountID, index string) (int, error) {
	recs, err := m.Lookup(ctx, id, index)
	return len(recs), err
}

func (m *memStore) Lookup(_ context.Context, _ mailbox.AccountID, index string) ([]mailbox.Record, error) {
	return m.pickRecords(func(r mailbox.Record) bool { return slices.Contains(r.Index, index) }), nil
}

// dueOf lists the entries of a kind in order of time, with the end of their leases.
func (m *memStore) dueOf(kind string) (list []mailbox.Due) {
	for k, d := range m.disk.dues {
		if k.kind == kind {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b mailbox.Due) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key)) })
	return list
}

func (m *memStore) Claim(_ context.Context, _ mailbox.AccountID, kind string, now time.Time, lease time.Duration, limit int) (list []mailbox.Due, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.dueOf(kind) {
		k := memDue{d.Kind, d.Key}
		if len(list) < limit && !d.At.After(now) && !m.claims[k].After(now) {
			m.claims[k] = now.Add(lease)
			list = append(list, d)
		}
	}
	return list, nil
}

func (m *memStore) Release(_ mailbox.AccountID, kind, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.claims, memDue{kind, key})
}

func (m *memStore) NextDue(_ context.Context, _ mailbox.AccountID, kind string) (next time.Time, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.dueOf(kind) {
		at := d.At
		if until := m.claims[memDue{d.Kind, d.Key}]; until.After(at) {
			at = until
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, nil
}

func (m *memStore) Watch(_ mailbox.AccountID, box mailbox.MailboxID) (<-chan struct{}, func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch := make(chan struct{}, 1)
	m.watches[ch] = box
	return ch, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watches, ch)
	}
}

func (m *memStore) Epoch(mailbox.AccountID) uint64 { return m.epoch }

func (m *memStore) Space(context.Context, mailbox.AccountID) (mailbox.Space, error) {
	return mailbox.Space{Left: 1 << 40}, nil
}

func (m *memStore) Accounts(context.Context) ([]mailbox.AccountID, error) {
	return []mailbox.AccountID{m.account}, nil
}

func (m *memStore) SetView(context.Context, mailbox.AccountID, mailbox.ViewRule) error { return nil }

func (m *memStore) Close() error { return nil }
