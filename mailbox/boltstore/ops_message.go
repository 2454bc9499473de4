package boltstore

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

func (t *txn) addMessage(op mailbox.AddMessage) error {
	switch {
	case op.ID == 0 || uint64(op.ID) > t.a.lastMessage.Load():
		return fail("add", mailbox.Invalid, fmt.Sprintf("message %d", op.ID), "not an id of NextMessageID")
	case t.get(bktMessage, key64(uint64(op.ID))) != nil:
		return fail("add", mailbox.Conflict, fmt.Sprintf("message %d", op.ID), "the message is there already")
	case len(op.Places) == 0 && len(op.Hold) == 0:
		return fail("add", mailbox.Invalid, fmt.Sprintf("message %d", op.ID), "a message needs a place or a hold")
	}
	set, deleted, err := t.a.flags.canonical(op.Flags)
	if err != nil {
		return err
	}
	m := &message{id: op.ID, tag: op.Tag, holds: uniq(op.Hold)}
	if m.flags, err = t.intern(set); err != nil {
		return err
	}
	if err := t.attach(m, op.Blob, op.Structure); err != nil {
		return err
	}
	date := op.Date
	if date.IsZero() {
		date = t.req.now
	}
	_, offset := date.Zone()
	m.date, m.zone = date.Unix(), int16(offset/60)
	t.cnt.message = max(t.cnt.message, uint64(op.ID))
	for _, id := range op.Places {
		if err := t.placed(m, id, deleted); err != nil {
			return err
		}
	}
	t.keep(m)
	return nil
}

// attach gives m its bytes and structure.
func (t *txn) attach(m *message, b mailbox.Blob, s *mime.Structure) error {
	id, row, err := t.ref(b)
	if err != nil {
		return err
	}
	if row.size > math.MaxUint32 {
		return fail("add", mailbox.TooLarge, "", "a message can have at most 4 GiB")
	}
	m.blob, m.body, m.size = id, row.number, row.size
	if s != nil {
		m.header = s.MessageID
		if s.Root != nil {
			m.head = max(0, min(s.Root.Header.End, m.size))
		}
		t.put(bktStructure, key64(row.number), t.req.structure(s))
	}
	return nil
}

// placed adds an entry of m to a mailbox and reports it in the result.
func (t *txn) placed(m *message, id mailbox.MailboxID, deleted bool) error {
	if _, there := m.in(id); there {
		return fail("add", mailbox.Conflict, fmt.Sprintf("message %d", m.id), "the message is in this mailbox already")
	}
	uid, err := t.enter(m, id, deleted)
	if err != nil {
		return err
	}
	if t.res.UIDs == nil {
		t.res.UIDs = map[mailbox.MessageID][]mailbox.NewUID{}
	}
	t.res.UIDs[m.id] = append(t.res.UIDs[m.id], mailbox.NewUID{Mailbox: id, UIDValidity: t.box(id).UIDValidity, UID: uid})
	return nil
}

// enter adds an entry of m to a mailbox. The caller keeps m.
func (t *txn) enter(m *message, id mailbox.MailboxID, deleted bool) (imap.UID, error) {
	ob := t.box(id)
	if ob == nil {
		return 0, &mailbox.Error{Op: "add", Kind: mailbox.NotFound, Name: fmt.Sprintf("mailbox %d", id),
			Text: "there is no such mailbox", Code: string(imap.ResponseCodeTryCreate)}
	}
	if ob.UIDNext == math.MaxUint32 || ob.Exists == math.MaxUint32 {
		return 0, &mailbox.Error{Op: "add", Kind: mailbox.TooLarge, Name: ob.Name, Text: "the mailbox has no UIDs left", Code: "LIMIT"}
	}
	if len(m.spots) == 1 { // it is not alone any more
		if err := t.mark(m.spots[0], func(e *row) { e.shared = true }); err != nil {
			return 0, err
		}
	}
	e := row{shared: len(m.spots) > 0, tagged: m.tag != "", Entry: mailbox.Entry{
		UID: ob.UIDNext, Message: m.id, ModSeq: t.step(), Date: m.date, Zone: m.zone, Saved: t.req.now.Unix(),
		Flags: m.flags, Size: uint32(m.size), Content: m.body, Deleted: deleted}}
	ob.UIDNext++
	t.count(ob, e.Entry, 1)
	m.spots = append(m.spots, spot{id, e.UID})
	t.write(id, &e)
	return e.UID, nil
}

// count adds an entry to a mailbox's counters, or takes it away with sign -1.
func (t *txn) count(ob *openBox, e mailbox.Entry, sign int) {
	t.touch(ob, e.Message)
	ob.HighestModSeq = t.step()
	ob.Exists += uint32(sign)
	ob.Size += int64(sign) * int64(e.Size)
	if !t.seen(e.Flags) {
		ob.Unseen += uint32(sign)
	}
	if e.Deleted {
		ob.Deleted += uint32(sign)
	}
}

// write stores an entry's row and notes the change.
func (t *txn) write(id mailbox.MailboxID, e *row) {
	t.putEntry(id, e)
	t.changes.push(e.Entry)
	t.deltas = append(t.deltas, delta{id, mailbox.Change{UID: e.UID, New: t.changes.last()}})
}

// putEntry stores an entry's row. Key and value share memory with those of others: a
// STORE of a large mailbox writes many.
func (t *txn) putEntry(id mailbox.MailboxID, e *row) {
	const size = 8 + entrySize
	if cap(t.bytes)-len(t.bytes) < size {
		t.bytes = make([]byte, 0, min(max(size, 2*cap(t.bytes)), 1000*size))
	}
	at := len(t.bytes)
	t.bytes = appendEntry(appendEntryKey(t.bytes, id, e.UID), e)
	key, value := t.bytes[at:at+8:at+8], t.bytes[at+8:len(t.bytes):len(t.bytes)]
	if e.stored == nil {
		t.put(bktEntry, key, value)
		return
	}
	t.replace(bktEntry, key, e.stored, value)
}

// pieces is memory for many entries that lives as long as one of them.
type pieces []mailbox.Entry

func (p *pieces) push(e mailbox.Entry) {
	if len(*p) == cap(*p) {
		*p = make([]mailbox.Entry, 0, min(max(1, 2*cap(*p)), 1000))
	}
	*p = append(*p, e)
}

func (p pieces) last() *mailbox.Entry { return &p[len(p)-1] }

// mark changes what an entry's row knows of its message. Nobody else sees that.
func (t *txn) mark(s spot, set func(*row)) error {
	e, err := entryRow(t.b, s)
	if err != nil {
		return err
	}
	set(&e)
	t.putEntry(s.mailbox, &e)
	return nil
}

// leave removes an entry of m. The caller keeps m.
func (t *txn) leave(m *message, s spot) error {
	e, err := entryRow(t.b, s)
	if err != nil {
		return err
	}
	ob, err := t.need("remove", s.mailbox)
	if err != nil {
		return err
	}
	t.count(ob, e.Entry, -1)
	m.dropSpot(s)
	if len(m.spots) == 1 {
		if err := t.mark(m.spots[0], func(e *row) { e.shared = false }); err != nil {
			return err
		}
	}
	t.del(bktEntry, entryKey(s.mailbox, s.uid))
	t.deltas = append(t.deltas, delta{s.mailbox, mailbox.Change{UID: s.uid}})
	set := t.gone[s.mailbox]
	set.AddNum(s.uid)
	t.gone[s.mailbox] = set
	return nil
}

func (t *txn) addEntryOp(op mailbox.AddEntry) error {
	m := t.message(op.Message)
	if m == nil {
		return t.sticky(fail("add", mailbox.Conflict, fmt.Sprintf("message %d", op.Message), "the message is gone"))
	}
	if err := t.placed(m, op.Mailbox, false); err != nil {
		return err
	}
	t.keep(m)
	return nil
}

func (t *txn) removeEntryOp(op mailbox.RemoveEntry) error {
	m := t.message(op.Message)
	if m != nil {
		if s, there := m.in(op.Mailbox); there {
			if err := t.leave(m, s); err != nil {
				return err
			}
			t.keep(m)
			return nil
		}
	}
	if op.IfPresent || t.err != nil {
		return t.err
	}
	return fail("remove", mailbox.Conflict, fmt.Sprintf("message %d", op.Message), "the message is not in this mailbox any more")
}

func (t *txn) hold(op mailbox.Hold) error {
	m := t.message(op.Message)
	if m == nil {
		if op.Release {
			return nil
		}
		return fail("hold", mailbox.Conflict, fmt.Sprintf("message %d", op.Message), "the message is gone")
	}
	m.holds = slices.DeleteFunc(m.holds, func(h string) bool { return h == op.Name })
	if !op.Release {
		m.holds = append(m.holds, op.Name)
	}
	t.keep(m)
	return nil
}

func (t *txn) setTag(op mailbox.SetTag) error {
	m := t.message(op.Message)
	if m == nil || m.tag != op.Old {
		return fail("tag", mailbox.Conflict, fmt.Sprintf("message %d", op.Message), "the message has another tag")
	}
	m.tag = op.New
	for _, s := range m.spots {
		if err := t.mark(s, func(e *row) { e.tagged = op.New != "" }); err != nil {
			return err
		}
	}
	t.keep(m)
	return nil
}

func (t *txn) markMessage(op mailbox.MarkMessage) error {
	add, del1, err := t.a.flags.canonical(op.Add)
	if err != nil {
		return err
	}
	remove, del2, err := t.a.flags.canonical(op.Remove)
	if err != nil {
		return err
	}
	if del1 || del2 {
		return fail("mark", mailbox.Invalid, string(imap.FlagDeleted), "belongs to an entry, not to a message")
	}
	m := t.message(op.Message)
	if m == nil {
		return nil
	}
	flags := change(t.a.flags.sets[m.flags].flags, imap.StoreFlagsAdd, add)
	set, err := t.set(change(flags, imap.StoreFlagsDel, remove))
	if err != nil {
		return err
	}
	return t.reflag(m, set, spot{}, false)
}

// set interns flags in any order.
func (t *txn) set(flags []imap.Flag) (mailbox.FlagSet, error) {
	canon, _, err := t.a.flags.canonical(flags)
	if err != nil {
		return 0, err
	}
	return t.intern(canon)
}

// reflag gives m the flags set, in all its entries, and the entry at one (if any)
// the \Deleted flag as said. What stays the same is not written.
func (t *txn) reflag(m *message, set mailbox.FlagSet, one spot, deleted bool) error {
	for _, s := range m.spots {
		e, err := entryRow(t.b, s)
		if err != nil {
			return err
		}
		del := e.Deleted
		if s == one {
			del = deleted
		}
		if err := t.reflagOne(s.mailbox, e, set, del); err != nil {
			return err
		}
	}
	if m.flags != set && len(m.spots) == 0 {
		m.flags = set
		t.keep(m)
	}
	return nil
}

// reflagOne gives one entry flags, unless it has them.
func (t *txn) reflagOne(id mailbox.MailboxID, e row, set mailbox.FlagSet, deleted bool) error {
	if e.Flags == set && e.Deleted == deleted {
		return nil
	}
	ob, err := t.need("flags", id)
	if err != nil {
		return err
	}
	t.count(ob, e.Entry, -1)
	e.Flags, e.Deleted, e.ModSeq = set, deleted, t.step()
	t.count(ob, e.Entry, 1)
	t.write(id, &e)
	return nil
}

func uniq(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// structure renders a structure outside of what can fail.
func (r *request) structure(s *mime.Structure) []byte {
	if b, ok := r.encoded[s]; ok {
		return b
	}
	return encodeStructure(s)
}

// prepare does what can be done before the request waits for the writer.
func (r *request) prepare(now time.Time) {
	r.now = now
	for _, op := range r.tx.Ops {
		if add, ok := op.(mailbox.AddMessage); ok && add.Structure != nil {
			if r.encoded == nil {
				r.encoded = map[*mime.Structure][]byte{}
			}
			r.encoded[add.Structure] = encodeStructure(add.Structure)
		}
	}
}

// encodeStructure tolerates a structure without parts.
func encodeStructure(s *mime.Structure) []byte {
	if s.Root == nil {
		whole := *s
		whole.Root = &mime.Part{}
		s = &whole
	}
	return mime.Encode(s)
}
