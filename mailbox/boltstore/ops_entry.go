package boltstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// item is one entry that an op concerns, with its message.
type item struct {
	entry mailbox.Entry
	msg   *message
}

// selectOf returns the entries that op names by mailbox and UID, in UID order; nil
// for other ops.
func (t *txn) selectOf(op mailbox.Op) ([]item, error) {
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
		items, err := t.pick("expunge", op.Mailbox, uids)
		return slices.DeleteFunc(items, func(i item) bool { return !i.entry.Deleted }), err
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
func (t *txn) pick(op string, id mailbox.MailboxID, set imap.UIDSet) ([]item, error) {
	if _, err := t.need(op, id); err != nil {
		return nil, err
	}
	if imap.IsSearchRes(set) {
		return nil, fail(op, mailbox.Invalid, "$", "a saved search result is resolved by the session")
	}
	items := []item{}
	var after imap.UID // ranges may overlap
	for _, r := range t.ranges(id, set) {
		var err error
		if items, err = t.scan(items, id, max(r.Start, after+1), r.Stop); err != nil {
			return nil, err
		}
		after = max(after, r.Stop)
		if after == math.MaxUint32 {
			break
		}
	}
	for i := range items {
		if items[i].msg = t.message(items[i].entry.Message); items[i].msg == nil {
			return nil, t.sticky(fmt.Errorf("entry %d of mailbox %d has no message", items[i].entry.UID, id))
		}
	}
	return items, nil
}

// ranges resolves "*" and sorts.
func (t *txn) ranges(id mailbox.MailboxID, set imap.UIDSet) imap.UIDSet {
	out := slices.Clone(set)
	for i, r := range out {
		last := imap.UID(0)
		if r.Start == 0 || r.Stop == 0 {
			last = lastUID(t.b[bktEntry].Cursor(), id)
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

func (t *txn) scan(items []item, id mailbox.MailboxID, from, to imap.UID) ([]item, error) {
	prefix := key32(uint32(id))
	c := t.b[bktEntry].Cursor()
	for k, v := c.Seek(entryKey(id, from)); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if imap.UID(binary.BigEndian.Uint32(k[4:])) > to {
			break
		}
		e, err := decodeEntry(k, v)
		if err != nil {
			return nil, err
		}
		items = append(items, item{entry: e})
	}
	return items, nil
}

func (t *txn) storeFlags(op mailbox.StoreFlags, sel []item) error {
	arg, deleted, err := t.a.flags.canonical(op.Flags)
	if err != nil {
		return err
	}
	sets := map[mailbox.FlagSet]mailbox.FlagSet{} // most entries have few different sets
	t.notes, t.deltas = slices.Grow(t.notes, 2*len(sel)), slices.Grow(t.deltas, len(sel))
	for _, it := range sel {
		if op.UnchangedSince != 0 && it.entry.ModSeq > op.UnchangedSince {
			t.res.Modified.AddNum(it.entry.UID)
			continue
		}
		set, known := sets[it.msg.flags]
		if !known {
			if set, err = t.set(change(t.a.flags.sets[it.msg.flags].flags, op.Op, arg)); err != nil {
				return err
			}
			sets[it.msg.flags] = set
		}
		del := it.entry.Deleted
		if deleted || op.Op == imap.StoreFlagsSet {
			del = deleted && op.Op != imap.StoreFlagsDel
		}
		if err := t.reflag(it.msg, set, spot{op.Mailbox, it.entry.UID}, del); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) copyEntries(op mailbox.CopyEntries, sel []item, share bool) error {
	for _, it := range sel {
		uid, err := t.copyOne(op.To, it.msg, share)
		if err != nil {
			return err
		}
		t.copied(op.To, it.entry.UID, uid)
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
	copied.id, copied.tag, copied.spots, copied.holds = mailbox.MessageID(t.a.lastMessage.Add(1)), "", nil, nil
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
func (t *txn) moveEntries(op mailbox.MoveEntries, sel []item) error {
	if _, err := t.destination(op.To); err != nil {
		return err
	}
	for _, it := range sel {
		if err := t.leave(it.msg, spot{op.From, it.entry.UID}); err != nil {
			return err
		}
		uid, err := t.further(op.To, it.msg)
		if err != nil {
			return err
		}
		t.keep(it.msg)
		t.copied(op.To, it.entry.UID, uid)
	}
	return nil
}

func (t *txn) expunge(op mailbox.Expunge, sel []item) error {
	t.res.Expunged += len(sel)
	return t.discard(op.Mailbox, sel)
}

// discard removes entries of a mailbox.
func (t *txn) discard(id mailbox.MailboxID, sel []item) error {
	for _, it := range sel {
		if err := t.leave(it.msg, spot{id, it.entry.UID}); err != nil {
			return err
		}
		t.keep(it.msg)
	}
	return nil
}
