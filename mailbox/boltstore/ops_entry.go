package boltstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// selectOf returns the entries that op names by mailbox and UID, in UID order; nil
// for other ops.
func (t *txn) selectOf(op mailbox.Op) ([]row, error) {
	switch op := op.(type) {
	case mailbox.StoreFlags:
		return t.pick("flags", op.Mailbox, op.UIDs)
	case mailbox.CopyEntries:
		return t.pick("copy", op.From, op.UIDs)
	case mailbox.MoveEntries:
		return t.pick("move", op.From, op.UIDs)
	case mailbox.Expunge:
		uids := op.UIDs
		if uids == nil {
			uids = everything
		}
		ob, err := t.need("expunge", op.Mailbox)
		if err != nil {
			return nil, err
		}
		return t.scan("expunge", ob, uids, choice{isDeleted, ob.Deleted})
	case mailbox.DeleteMailbox:
		return t.pick("delete", op.Mailbox, everything)
	case mailbox.RenameMailbox:
		if op.Mailbox == mailbox.Inbox {
			return t.pick("rename", op.Mailbox, everything)
		}
	}
	return nil, nil
}

var everything = imap.UIDSet{{Start: 1, Stop: math.MaxUint32}}

// pick returns the entries of a mailbox that are in set. "*" is the last one.
func (t *txn) pick(op string, id mailbox.MailboxID, set imap.UIDSet) ([]row, error) {
	ob, err := t.need(op, id)
	if err != nil {
		return nil, err
	}
	return t.scan(op, ob, set, choice{func([]byte) bool { return true }, ob.Exists})
}

// choice says which entries of a set are wanted, by their values, and how many of these
// the mailbox has.
type choice struct {
	wanted func([]byte) bool
	exist  uint32
}

// scan returns the entries in set that are wanted.
func (t *txn) scan(op string, ob *openBox, set imap.UIDSet, ch choice) ([]row, error) {
	if imap.IsSearchRes(set) {
		return nil, fail(op, mailbox.Invalid, "$", "a saved search result is resolved by the session")
	}
	set = t.ranges(ob.ID, set)
	s := &scanning{choice: ch, rows: make([]row, 0, min(count(set), uint64(ch.exist)))}
	var after imap.UID // ranges may overlap
	for _, r := range set {
		if err := t.scanRange(s, ob.ID, max(r.Start, after+1), r.Stop); err != nil {
			return nil, err
		}
		after = max(after, r.Stop)
		if after == math.MaxUint32 {
			break
		}
	}
	return s.rows, nil
}

// count is how many UIDs a set with ordered ranges has, or more where they overlap.
func count(set imap.UIDSet) (n uint64) {
	for _, r := range set {
		n += uint64(r.Stop-r.Start) + 1
	}
	return n
}

// ranges resolves "*" and sorts.
func (t *txn) ranges(id mailbox.MailboxID, set imap.UIDSet) imap.UIDSet {
	out := slices.Clone(set)
	for i, r := range out {
		last := imap.UID(0)
		if r.Start == 0 || r.Stop == 0 {
			last = lastUID(t.b.at(bktEntry).Cursor(), id)
		}
		if r.Start == 0 {
			r.Start = last
		}
		if r.Stop == 0 {
			r.Stop = last
		}
		out[i] = imap.UIDRange{Start: min(r.Start, r.Stop), Stop: max(r.Start, r.Stop)}
	}
	slices.SortFunc(out, func(a, b imap.UIDRange) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// scanning is a scan at work; it ends when all that is wanted has been found.
type scanning struct {
	choice
	rows []row
}

func (t *txn) scanRange(s *scanning, id mailbox.MailboxID, from, to imap.UID) error {
	prefix := key32(uint32(id))
	c := t.b.at(bktEntry).Cursor()
	k, v := c.Seek(entryKey(id, from))
	for ; len(s.rows) < int(s.exist) && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if imap.UID(binary.BigEndian.Uint32(k[4:])) > to {
			break
		}
		if !s.wanted(v) {
			continue
		}
		e, err := decodeEntry(k, v)
		if err != nil {
			return err
		}
		s.rows = append(s.rows, e)
	}
	return nil
}

func (t *txn) storeFlags(op mailbox.StoreFlags, sel []row) error {
	arg, deleted, err := t.a.flags.canonical(op.Flags)
	if err != nil {
		return err
	}
	sets := map[mailbox.FlagSet]mailbox.FlagSet{} // most entries have few different sets
	t.notes, t.deltas = slices.Grow(t.notes, len(sel)), slices.Grow(t.deltas, len(sel))
	for _, e := range sel {
		if op.UnchangedSince != nil && e.ModSeq > *op.UnchangedSince {
			t.res.Modified.AddNum(e.UID)
			continue
		}
		set, known := sets[e.Flags]
		if !known {
			if set, err = t.set(change(t.a.flags.sets[e.Flags].flags, op.Op, arg)); err != nil {
				return err
			}
			sets[e.Flags] = set
		}
		del := e.Deleted
		if deleted || op.Op == imap.StoreFlagsSet {
			del = deleted && op.Op != imap.StoreFlagsDel
		}
		if err := t.reflagAt(op.Mailbox, e, set, del); err != nil {
			return err
		}
	}
	return nil
}

// reflagAt gives the message of an entry the flags set, in all its entries, and this
// entry \Deleted as said.
func (t *txn) reflagAt(id mailbox.MailboxID, e row, set mailbox.FlagSet, deleted bool) error {
	if !e.shared || set == e.Flags { // nobody else is concerned
		return t.reflagOne(id, e, set, deleted)
	}
	m, err := t.messageOf(e)
	if err != nil {
		return err
	}
	return t.reflag(m, set, spot{id, e.UID}, deleted)
}

func (t *txn) copyEntries(op mailbox.CopyEntries, sel []row, share bool) error {
	for _, e := range sel {
		m, err := t.messageOf(e)
		if err != nil {
			return err
		}
		uid, err := t.copyOne(op.To, m, share)
		if err != nil {
			return err
		}
		t.copied(op.To, e.UID, uid)
	}
	if len(sel) == 0 { // the destination must exist all the same
		_, err := t.destination(op.To)
		return err
	}
	return nil
}

func (t *txn) copied(to mailbox.MailboxID, from, uid imap.UID) {
	t.res.Copied = append(t.res.Copied, mailbox.CopiedUID{UIDValidity: t.box(to).UIDValidity, From: from, To: uid})
}

func (t *txn) destination(id mailbox.MailboxID) (*openBox, error) {
	ob, err := t.need("copy", id)
	if err != nil {
		err.(*mailbox.Error).Code = string(imap.ResponseCodeTryCreate)
	}
	return ob, err
}

// copyOne puts a copy of m, without its tag, into a mailbox; or, shared, a further
// entry of m itself, unless there is one.
func (t *txn) copyOne(to mailbox.MailboxID, m *message, share bool) (imap.UID, error) {
	if _, err := t.destination(to); err != nil {
		return 0, err
	}
	if share {
		return t.further(to, m)
	}
	copied := *m
	copied.id, copied.tag, copied.spots, copied.holds = t.copyID(), "", nil, nil
	t.cnt.message = max(t.cnt.message, uint64(copied.id))
	if _, err := t.again(m.blob); err != nil {
		return 0, err
	}
	uid, err := t.enter(&copied, to, false)
	if err != nil {
		return 0, err
	}
	t.keep(&copied)
	return uid, nil
}

// copyID is the id of the next copy.
func (t *txn) copyID() mailbox.MessageID {
	if len(t.copies) == 0 {
		return mailbox.MessageID(t.a.lastMessage.Add(1))
	}
	id := t.copies[0]
	t.copies = t.copies[1:]
	return id
}

// further gives m an entry in a mailbox. A message has at most one there.
func (t *txn) further(to mailbox.MailboxID, m *message) (imap.UID, error) {
	if s, there := m.in(to); there {
		return s.uid, nil
	}
	uid, err := t.enter(m, to, false)
	if err != nil {
		return 0, err
	}
	t.keep(m)
	return uid, nil
}

// moveEntries moves messages. Within one mailbox they get new UIDs (RFC 6851
// section 3.3). A message that has an entry at the destination keeps that one.
func (t *txn) moveEntries(op mailbox.MoveEntries, sel []row) error {
	if _, err := t.destination(op.To); err != nil {
		return err
	}
	for _, e := range sel {
		m, err := t.messageOf(e)
		if err != nil {
			return err
		}
		if err := t.leave(m, spot{op.From, e.UID}); err != nil {
			return err
		}
		uid, err := t.further(op.To, m)
		if err != nil {
			return err
		}
		t.keep(m)
		t.copied(op.To, e.UID, uid)
	}
	return nil
}

func (t *txn) expunge(op mailbox.Expunge, sel []row) error {
	t.res.Expunged += len(sel)
	return t.discard(op.Mailbox, sel)
}

// discard removes entries of a mailbox.
func (t *txn) discard(id mailbox.MailboxID, sel []row) error {
	for _, e := range sel {
		m, err := t.messageOf(e)
		if err != nil {
			return err
		}
		if err := t.leave(m, spot{id, e.UID}); err != nil {
			return err
		}
		t.keep(m)
	}
	return nil
}
