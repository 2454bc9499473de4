package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/emersion/go-imap/v2"
	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

// group is one bbolt transaction that carries the Txs which waited together.
type group struct {
	a     *account
	tx    *bolt.Tx
	b     buckets
	cnt   counters
	boxes map[mailbox.MailboxID]*box // changed or read by a Tx of the group; nil: deleted

	changed bool
	deltas  map[mailbox.MailboxID][]mailbox.Change // in order of happening
	listed  bool                                   // the mailbox list changed
	dues    bool                                   // due entries changed
	freed   []sum                                  // blob files that lost their last reference
	done    []dueKey                               // due entries deleted
	used    []sum                                  // pinned blobs
	failed  []sum                                  // pinned by a Tx that failed
}

type dueKey struct{ kind, key string }

func (a *account) begin() (*group, error) {
	tx, err := a.db.Begin(true)
	if err != nil {
		return nil, err
	}
	g := &group{a: a, tx: tx, b: bucketsOf(tx), boxes: map[mailbox.MailboxID]*box{}, deltas: map[mailbox.MailboxID][]mailbox.Change{}}
	if g.cnt, err = decodeCounters(g.b.at(bktMeta).Get(keyCounters)); err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return g, nil
}

// txn is one Tx at work. Every write to the file goes through put and del, which
// note what was there: a Tx that fails is taken back by replaying the notes
// backwards, so that it leaves the bbolt transaction of its group as it found it.
// Everything else it changes lies in the txn itself and reaches the group in
// finish only, except the flag table, which has its own mark.
type txn struct {
	*group
	req   *request
	err   error // first fault of put, del or a decoder
	notes []priorValue
	flags mark

	cnt     counters
	boxes   map[mailbox.MailboxID]*openBox
	deltas  []delta
	changes pieces // what deltas point at
	bytes   []byte // room for keys and values
	gone    map[mailbox.MailboxID]imap.UIDSet
	modseq  mailbox.ModSeq // of this Tx; 0: it changed no mail yet
	listed  bool
	dues    bool
	freed   []sum
	done    []dueKey
	pins    map[sum]struct{}
	res     mailbox.Result
	views   views
	copies  []mailbox.MessageID // ids that the guard chose for the copies that come next
}

type priorValue struct {
	b        bkt
	key, old []byte // old nil: there was none
}

type delta struct {
	mailbox mailbox.MailboxID
	change  mailbox.Change
}

// openBox is a mailbox row in the hands of a txn.
type openBox struct {
	box
	was  box
	gone bool
}

// run applies one request, wholly or not at all.
func (g *group) run(r *request) (res mailbox.Result, err error) {
	t := &txn{group: g, req: r, flags: g.a.flags.mark(), cnt: g.cnt,
		boxes: map[mailbox.MailboxID]*openBox{}, gone: map[mailbox.MailboxID]imap.UIDSet{}, pins: map[sum]struct{}{}}
	defer func() {
		if p := recover(); p != nil {
			g.a.log.Error("commit panicked", slog.Any("err", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			t.undo()
			res, err = mailbox.Result{}, wrap("commit", err)
		}
	}()
	if r.tx.Epoch != 0 && r.tx.Epoch != g.a.epoch {
		return res, fail("commit", mailbox.Conflict, "epoch", "written by an earlier run of the server")
	}
	if err := t.apply(); err != nil {
		return res, err
	}
	if err := t.finish(); err != nil {
		return res, err
	}
	return t.res, nil
}

func (t *txn) apply() error {
	if t.req.renumber {
		return t.sticky(t.renumber())
	}
	if t.req.seeds != nil {
		return t.sticky(t.seed(t.req.seeds))
	}
	if t.req.view != nil {
		return t.sticky(t.workView(t.req.view))
	}
	for _, op := range t.req.tx.Ops {
		if err := t.perform(op); err != nil {
			return err
		}
	}
	return nil
}

// sticky returns err, or the first fault of the lower level.
func (t *txn) sticky(err error) error {
	if err == nil {
		err = t.err
	}
	return err
}

// undo takes every write back. It cannot fail: it puts back only what bbolt held
// before.
func (t *txn) undo() {
	t.failed = slices.AppendSeq(t.failed, maps.Keys(t.pins))
	t.a.flags.cut(t.flags)
	for _, n := range slices.Backward(t.notes) {
		var err error
		if n.old == nil {
			err = t.b.at(n.b).Delete(n.key)
		} else {
			err = t.b.at(n.b).Put(n.key, n.old)
		}
		if err != nil {
			panic(fmt.Sprintf("undo: %v", err)) // ends the whole group, which then rolls back
		}
	}
}

// finish writes the rows that are still open and hands the effects to the group.
func (t *txn) finish() error {
	if err := t.settle(); err != nil {
		return err
	}
	t.flushGone()
	for _, ob := range t.boxes {
		if !ob.gone && ob.box != ob.was {
			t.put(bktBox, key32(uint32(ob.ID)), encodeBox(&ob.box))
		}
	}
	if t.cnt != t.group.cnt {
		t.put(bktMeta, keyCounters, encodeCounters(t.cnt))
	}
	if t.err != nil {
		return t.err
	}
	t.res.ModSeq = t.modseq
	t.handOver()
	return nil
}

func (t *txn) handOver() {
	g := t.group
	for id, ob := range t.boxes {
		switch {
		case ob.gone:
			g.boxes[id] = nil
			delete(g.deltas, id)
		case ob.box != ob.was:
			kept := ob.box
			g.boxes[id] = &kept
		}
	}
	for _, d := range t.deltas {
		if ob := t.boxes[d.mailbox]; ob == nil || !ob.gone {
			g.deltas[d.mailbox] = append(g.deltas[d.mailbox], d.change)
		}
	}
	g.cnt = t.cnt
	g.changed = g.changed || len(t.notes) > 0
	g.noteChanges(t.notes)
	g.listed = g.listed || t.listed
	g.dues = g.dues || t.dues
	g.freed = append(g.freed, t.freed...)
	g.done = append(g.done, t.done...)
	g.used = slices.AppendSeq(g.used, maps.Keys(t.pins))
}

func (t *txn) get(b bkt, key []byte) []byte { return t.b.at(b).Get(key) }

func (t *txn) put(b bkt, key, value []byte) {
	if t.err != nil {
		return
	}
	t.replace(b, key, t.b.at(b).Get(key), value)
}

// replace is put for a value that was read in this Tx; nil: there is none.
func (t *txn) replace(b bkt, key, old, value []byte) {
	if t.err != nil || old != nil && bytes.Equal(old, value) {
		return
	}
	t.notes = append(t.notes, priorValue{b, key, old})
	if err := t.b.at(b).Put(key, value); err != nil {
		t.notes = t.notes[:len(t.notes)-1]
		t.err = err
	}
}

func (t *txn) del(b bkt, key []byte) {
	old := t.b.at(b).Get(key)
	if t.err != nil || old == nil {
		return
	}
	t.notes = append(t.notes, priorValue{b, key, old})
	if err := t.b.at(b).Delete(key); err != nil {
		t.notes = t.notes[:len(t.notes)-1]
		t.err = err
	}
}

// keys returns the keys that begin with prefix. They are collected before
// anything is changed: a bbolt cursor does not survive writes.
func (t *txn) keys(b bkt, prefix []byte) [][]byte {
	var keys [][]byte
	c := t.b.at(b).Cursor()
	for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// step returns the mod-sequence of this Tx, taking the next one at the first call.
func (t *txn) step() mailbox.ModSeq {
	if t.modseq == 0 {
		t.cnt.modseq++
		t.modseq = mailbox.ModSeq(t.cnt.modseq)
	}
	return t.modseq
}

// box returns a mailbox row to read and change; nil when there is none.
func (t *txn) box(id mailbox.MailboxID) *openBox {
	if ob := t.boxes[id]; ob != nil {
		if ob.gone {
			return nil
		}
		return ob
	}
	b := t.group.load(id)
	if b == nil {
		return nil
	}
	ob := &openBox{box: *b, was: *b}
	t.boxes[id] = ob
	return ob
}

func (g *group) load(id mailbox.MailboxID) *box {
	if b, ok := g.boxes[id]; ok {
		return b
	}
	key := key32(uint32(id))
	v := g.b.at(bktBox).Get(key)
	if v == nil {
		return nil
	}
	b, err := decodeBox(key, v)
	if err != nil {
		panic(fmt.Sprintf("mailbox row %d: %v", id, err)) // a damaged file; run answers Internal
	}
	return b
}

// need is box, with the error for the person.
func (t *txn) need(op string, id mailbox.MailboxID) (*openBox, error) {
	if ob := t.box(id); ob != nil {
		return ob, nil
	}
	return nil, fail(op, mailbox.NotFound, fmt.Sprintf("mailbox %d", id), "there is no such mailbox")
}

// message returns a message's row; nil when there is none.
func (t *txn) message(id mailbox.MessageID) *message {
	m, err := readMessage(t.b, id)
	if err != nil {
		t.err = err
		return nil
	}
	return m
}

// messageOf returns the row of an entry's message. It is an error that there is none.
func (t *txn) messageOf(e row) (*message, error) {
	m, err := messageRow(t.b, e.Message)
	if err != nil || m == nil {
		return nil, errors.Join(err, fmt.Errorf("entry %d has no message %d: %w", e.UID, e.Message, errCodec))
	}
	m.flags = e.Flags
	return m, nil
}

// keep writes a message's row, or deletes the message when nothing holds it.
func (t *txn) keep(m *message) {
	if len(m.spots) > 0 || len(m.holds) > 0 {
		t.put(bktMessage, key64(uint64(m.id)), encodeMessage(m))
		return
	}
	t.del(bktMessage, key64(uint64(m.id)))
	t.unref(m.blob)
}

// intern returns the id of a set of canonical flags.
func (t *txn) intern(set []imap.Flag) (mailbox.FlagSet, error) {
	table, text := t.a.flags, textOf(set)
	if id, ok := table.ids[text]; ok {
		return id, nil
	}
	if err := table.room(set); err != nil {
		return 0, err
	}
	id := table.add(text)
	t.put(bktFlags, key32(uint32(id)), []byte(text))
	return id, nil
}

func (t *txn) seen(set mailbox.FlagSet) bool { return t.a.flags.sets[set].seen }

// ref takes a reference to a blob, storing it when it was only staged.
func (t *txn) ref(b mailbox.Blob) (sum, blobRow, error) {
	id, ok := parseSum(b.ID)
	if !ok {
		return id, blobRow{}, fail("commit", mailbox.Invalid, b.ID, "not a blob")
	}
	data, size, waits := t.pin(id)
	row, err := t.again(id)
	if err != nil || row.refs > 0 {
		return id, row, err
	}
	if !waits {
		return id, row, fail("commit", mailbox.Transient, b.ID, "the staged bytes are gone; hand them in again")
	}
	t.cnt.body++
	row = blobRow{number: t.cnt.body, refs: 1, size: size, inline: size <= smallBlob}
	t.put(bktBlob, id[:], encodeBlob(row))
	return id, row, t.sticky(t.store(id, row, data))
}

// again takes a further reference to a stored blob; refs is 0 when there is none.
func (t *txn) again(id sum) (blobRow, error) {
	v := t.get(bktBlob, id[:])
	if v == nil {
		return blobRow{}, nil
	}
	row, err := decodeBlob(v)
	if err != nil {
		return row, fmt.Errorf("blob %s: %w", id, err)
	}
	row.refs++
	t.put(bktBlob, id[:], encodeBlob(row))
	return row, t.err
}

// pin keeps a staged blob for the time of the commit, once a Tx.
func (t *txn) pin(id sum) (data []byte, size int64, ok bool) {
	data, size, ok = t.a.stage.pin(id)
	if !ok {
		return nil, 0, false
	}
	if _, again := t.pins[id]; again {
		t.a.stage.unpin(id, false)
	}
	t.pins[id] = struct{}{}
	return data, size, true
}

// store puts the bytes of a new small blob into the file.
func (t *txn) store(id sum, row blobRow, data []byte) error {
	if !row.inline || row.size == 0 {
		return nil
	}
	if data == nil { // it went to disk because memory was short
		body, ok, err := t.a.stage.open(id)
		if err != nil || !ok {
			return fmt.Errorf("staged blob %s: %w", id, err)
		}
		defer body.Close()
		data = make([]byte, row.size)
		if n, err := body.ReadAt(data, 0); int64(n) != row.size {
			return fmt.Errorf("staged blob %s: %w", id, err)
		}
	}
	t.put(bktBody, key64(row.number), data)
	return nil
}

// unref gives a reference back and deletes the blob with the last one.
func (t *txn) unref(id sum) {
	v := t.get(bktBlob, id[:])
	row, err := decodeBlob(v)
	if err != nil {
		t.err = fmt.Errorf("blob %s: %w", id, err)
		return
	}
	if row.refs > 1 {
		row.refs--
		t.put(bktBlob, id[:], encodeBlob(row))
		return
	}
	t.del(bktBlob, id[:])
	t.del(bktStructure, key64(row.number))
	if row.inline {
		t.del(bktBody, key64(row.number))
	} else {
		t.freed = append(t.freed, id)
	}
}

func lastUID(c *bolt.Cursor, id mailbox.MailboxID) imap.UID {
	end := key32(uint32(id) + 1)
	k, _ := c.Seek(end)
	if k == nil {
		k, _ = c.Last()
	} else {
		k, _ = c.Prev()
	}
	if len(k) != 8 || binary.BigEndian.Uint32(k) != uint32(id) {
		return 0
	}
	return imap.UID(binary.BigEndian.Uint32(k[4:]))
}
