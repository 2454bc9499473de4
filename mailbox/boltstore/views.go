package boltstore

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/emersion/go-imap/v2"
	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

// A view is a mailbox whose entries the store keeps: further entries of the unseen
// messages of other mailboxes. Each Tx notes the messages whose entries it changed and,
// at its end, brings their entries in views up to date.

// lens is the rule of a view and how far it was carried out.
type lens struct {
	id     mailbox.MailboxID
	phase  phase
	cursor mailbox.MessageID // filling: messages up to this one were looked at
	except []mailbox.MailboxID
}

// phase of a view: filling -> full -> emptying -> no lens. A view that is emptied can be
// filled again before it is empty.
type phase byte

const (
	filling phase = iota + 1
	full
	emptying
)

var lensPrefix = []byte("view")

func lensKey(id mailbox.MailboxID) []byte {
	return append(slices.Clone(lensPrefix), key32(uint32(id))...)
}

func encodeLens(l *lens) []byte {
	w := writer{format1, byte(l.phase)}
	w.uint(uint64(l.cursor))
	for _, id := range l.except {
		w.uint(uint64(id))
	}
	return w
}

func decodeLens(key, b []byte) (*lens, error) {
	r := reader{b: b}
	r.format()
	p := r.take(1)
	if len(key) != len(lensPrefix)+4 || len(p) == 0 {
		return nil, fmt.Errorf("view % x: %w", key, errCodec)
	}
	l := &lens{id: mailbox.MailboxID(binary.BigEndian.Uint32(key[len(lensPrefix):])), phase: phase(p[0]),
		cursor: mailbox.MessageID(r.uint())}
	for len(r.b) > 0 {
		l.except = append(l.except, mailbox.MailboxID(r.uint()))
	}
	return l, r.err
}

// views is what a Tx knows of them.
type views struct {
	read    bool
	list    []*lens
	touched map[mailbox.MessageID]bool // true: an entry in a view goes, and comes back under a new UID if it belongs there
	through *mailbox.Mailbox           // the view in which the act under way is done
}

// lenses reads the rules at the first need.
func (t *txn) lenses() []*lens {
	if t.views.read {
		return t.views.list
	}
	t.views.read, t.views.list = true, nil
	for _, k := range t.keys(bktMeta, lensPrefix) {
		l, err := decodeLens(k, t.get(bktMeta, k))
		if err != nil {
			t.err = err
			return nil
		}
		t.views.list = append(t.views.list, l)
	}
	return t.views.list
}

func (t *txn) putLens(l *lens) {
	t.put(bktMeta, lensKey(l.id), encodeLens(l))
	t.views.read = false
}

// touch notes that an entry of a message comes, goes or changes.
func (t *txn) touch(ob *openBox, id mailbox.MessageID) {
	if ob.View || len(t.lenses()) == 0 {
		return
	}
	t.look(id, false)
}

func (t *txn) look(id mailbox.MessageID, anew bool) {
	if t.views.touched == nil {
		t.views.touched = map[mailbox.MessageID]bool{}
	}
	t.views.touched[id] = t.views.touched[id] || anew
}

// settle brings the views up to date with what the Tx changed, in the order of messages.
func (t *txn) settle() error {
	ids := make([]mailbox.MessageID, 0, len(t.views.touched))
	for id := range t.views.touched {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		m := t.message(id)
		if t.err != nil {
			return t.err
		}
		if m == nil {
			continue
		}
		for _, l := range t.lenses() {
			if err := t.show(l, m, t.views.touched[id]); err != nil {
				return err
			}
		}
	}
	return t.err
}

// show gives m the entry in a view that it has to have, or none. What is in the view and
// was read stays while somebody has the view open. anew: see views.touched.
func (t *txn) show(l *lens, m *message, anew bool) error {
	home, lies := t.home(l, m)
	at, shown := m.in(l.id)
	unseen := lies && l.phase != emptying && !t.seen(m.flags)
	stays := unseen || lies && l.phase == full && t.a.open.any(l.id)
	switch {
	case shown && (anew || !stays):
		if err := t.leave(m, at); err != nil {
			return err
		}
		if unseen {
			if err := t.display(l, m, home); err != nil {
				return err
			}
		}
		t.keep(m)
	case shown:
		return t.mirror(l, at, home)
	case unseen:
		if err := t.display(l, m, home); err != nil {
			return err
		}
		t.keep(m)
	}
	return nil
}

func (t *txn) display(l *lens, m *message, home spot) error {
	e, err := entryRow(t.b, home)
	if err == nil {
		_, err = t.enter(m, l.id, e.Deleted)
	}
	return err
}

// mirror shows \Deleted in a view as it is where the message lies: who sets it here and
// expunges means the message.
func (t *txn) mirror(l *lens, at, home spot) error {
	shown, err := entryRow(t.b, at)
	if err != nil {
		return err
	}
	e, err := entryRow(t.b, home)
	if err != nil {
		return err
	}
	return t.reflagOne(l.id, shown, shown.Flags, e.Deleted)
}

// home returns the entry that an entry in a view stands for.
func (t *txn) home(l *lens, m *message) (home spot, ok bool) {
	for _, s := range m.spots {
		if t.isView(s.mailbox) || slices.Contains(l.except, s.mailbox) {
			continue
		}
		if !ok || s.mailbox < home.mailbox {
			home, ok = s, true
		}
	}
	return home, ok
}

func (t *txn) isView(id mailbox.MailboxID) bool {
	ob := t.box(id)
	return ob != nil && ob.View
}

func (a *account) isView(id mailbox.MailboxID) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	b := a.boxes[id]
	return b != nil && b.View
}

// closedView refuses to put a message into a view, or to take its entry out there only.
func (t *txn) closedView(op mailbox.Op) error {
	var ids []mailbox.MailboxID
	switch op := op.(type) {
	case mailbox.AddMessage:
		ids = op.Places
	case mailbox.AddEntry:
		ids = []mailbox.MailboxID{op.Mailbox}
	case mailbox.RemoveEntry:
		ids = []mailbox.MailboxID{op.Mailbox}
	case mailbox.CopyEntries:
		ids = []mailbox.MailboxID{op.To}
	case mailbox.MoveEntries:
		ids = []mailbox.MailboxID{op.To}
	}
	for _, id := range ids {
		if t.isView(id) {
			return refused("view", t.box(id).Name, "this mailbox is a view of others: nothing is put into it or taken out of it alone")
		}
	}
	return nil
}

// lensOf returns the view whose entries an op selects; nil for other ops.
func (t *txn) lensOf(op mailbox.Op) *lens {
	var id mailbox.MailboxID
	switch op := op.(type) {
	case mailbox.StoreFlags:
		id = op.Mailbox
	case mailbox.CopyEntries:
		id = op.From
	case mailbox.MoveEntries:
		id = op.From
	case mailbox.Expunge:
		id = op.Mailbox
	default:
		return nil
	}
	if !t.isView(id) {
		return nil
	}
	for _, l := range t.lenses() {
		if l.id == id {
			return l
		}
	}
	return nil
}

// group of entries of a view, by where their messages lie.
type lodging struct {
	box   mailbox.MailboxID
	uids  imap.UIDSet           // there
	shown map[imap.UID]imap.UID // UID there -> UID in the view
}

// through does what an op does to entries of a view to those that they stand for: the
// guard is asked as if it were done there. Entries that were moved or expunged in the view
// leave it, and come back under new UIDs while their messages belong there.
func (t *txn) through(l *lens, op mailbox.Op) error {
	sel, err := t.selectOf(op)
	if err != nil {
		return err
	}
	if f, ok := op.(mailbox.StoreFlags); ok {
		sel = t.unchanged(f, sel)
	}
	list, err := t.lodgings(l, sel)
	if err != nil {
		return err
	}
	t.views.through = t.row(l.id)
	defer func() { t.views.through = nil }()
	first := len(t.res.Copied)
	for _, g := range list {
		n := len(t.res.Copied)
		if err := t.perform(g.at(op)); err != nil {
			return err
		}
		for i := n; i < len(t.res.Copied); i++ {
			t.res.Copied[i].From = g.shown[t.res.Copied[i].From]
		}
	}
	slices.SortFunc(t.res.Copied[first:], func(a, b mailbox.CopiedUID) int { return cmp.Compare(a.From, b.From) })
	t.afterwards(op, sel)
	return nil
}

// unchanged leaves out what was changed since, and reports it (RFC 7162 section 3.1.3).
func (t *txn) unchanged(op mailbox.StoreFlags, sel []row) []row {
	return slices.DeleteFunc(sel, func(e row) bool {
		late := op.UnchangedSince != nil && e.ModSeq > *op.UnchangedSince
		if late {
			t.res.Modified.AddNum(e.UID)
		}
		return late
	})
}

func (t *txn) afterwards(op mailbox.Op, sel []row) {
	switch op.(type) {
	case mailbox.MoveEntries, mailbox.Expunge:
		for _, e := range sel {
			t.look(e.Message, true)
		}
	}
}

func (t *txn) lodgings(l *lens, sel []row) ([]lodging, error) {
	by := map[mailbox.MailboxID]*lodging{}
	for _, e := range sel {
		m, err := t.messageOf(e)
		if err != nil {
			return nil, err
		}
		home, ok := t.home(l, m)
		if !ok {
			continue
		}
		g := by[home.mailbox]
		if g == nil {
			g = &lodging{box: home.mailbox, shown: map[imap.UID]imap.UID{}}
			by[home.mailbox] = g
		}
		g.uids.AddNum(home.uid)
		g.shown[home.uid] = e.UID
	}
	list := make([]lodging, 0, len(by))
	for _, g := range by {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b lodging) int { return cmp.Compare(a.box, b.box) })
	return list, nil
}

// at is op in the mailbox where the messages lie.
func (g lodging) at(op mailbox.Op) mailbox.Op {
	switch op := op.(type) {
	case mailbox.StoreFlags:
		return mailbox.StoreFlags{Mailbox: g.box, UIDs: g.uids, Op: op.Op, Flags: op.Flags}
	case mailbox.CopyEntries:
		return mailbox.CopyEntries{From: g.box, To: op.To, UIDs: g.uids}
	case mailbox.MoveEntries:
		return mailbox.MoveEntries{From: g.box, To: op.To, UIDs: g.uids}
	}
	return mailbox.Expunge{Mailbox: g.box, UIDs: g.uids}
}

// viewers counts who has which mailbox open. A mailbox that nobody has is not in it.
type viewers struct {
	mu sync.Mutex
	by map[mailbox.MailboxID]int
}

func (v *viewers) any(id mailbox.MailboxID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.by[id] > 0
}

// add returns how many have the mailbox open now.
func (v *viewers) add(id mailbox.MailboxID, n int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = map[mailbox.MailboxID]int{}
	}
	v.by[id] += n
	left := v.by[id]
	if left == 0 {
		delete(v.by, id)
	}
	return left
}

// seekMessage puts a cursor at the first message after id.
func seekMessage(c *bolt.Cursor, id mailbox.MessageID) (k []byte) {
	k, _ = c.Seek(key64(uint64(id) + 1))
	return k
}
