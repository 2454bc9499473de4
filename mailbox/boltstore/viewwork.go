package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// viewStep is how many messages one commit of the work on a view looks at: others wait
// for it some milliseconds.
const viewStep = 1000

// viewWork is a request to work on a view: to take a rule, to go a step on with it, or to
// look at some of its entries again.
type viewWork struct {
	id   mailbox.MailboxID
	rule *mailbox.ViewRule
	uids []imap.UID
	done bool // answer: the view shows what its rule says
}

// SetView switches a view on or off.
func (s *Store) SetView(ctx context.Context, id mailbox.AccountID, rule mailbox.ViewRule) error {
	a, err := s.account(ctx, id)
	if err != nil {
		return err
	}
	w := &viewWork{id: rule.Mailbox, rule: &rule}
	for !w.done {
		if _, err := a.submit(ctx, &request{view: w}); err != nil {
			return err
		}
		w.rule = nil
	}
	return nil
}

// Enter counts who has a view open; the last who leaves tidies it.
func (s *Store) Enter(id mailbox.AccountID, box mailbox.MailboxID) (leave func()) {
	a, err := s.account(context.Background(), id)
	if err != nil || !a.isView(box) {
		return func() {}
	}
	a.open.add(box, 1)
	return sync.OnceFunc(func() {
		if a.open.add(box, -1) > 0 {
			return
		}
		if err := a.tidy(box); err != nil && !errors.Is(err, mailbox.ErrClosed) {
			a.log.Error("a view was left and not tidied; the next start does", slog.Any("err", err))
		}
	})
}

// tidyAll takes out of all views what had been read in them when the account was closed.
func (a *account) tidyAll() error {
	var errs []error
	for _, row := range a.list() {
		if row.View {
			errs = append(errs, a.tidy(row.ID))
		}
	}
	return errors.Join(errs...)
}

// tidy looks again at the entries of a view that were read.
func (a *account) tidy(box mailbox.MailboxID) error {
	uids, err := a.readIn(box)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(uids, viewStep) {
		if _, err := a.submit(context.Background(), &request{view: &viewWork{id: box, uids: part}}); err != nil {
			return err
		}
	}
	return nil
}

// readIn lists the entries of a view whose messages are \Seen.
func (a *account) readIn(box mailbox.MailboxID) ([]imap.UID, error) {
	// A commit that still saw the view open, and so left entries in it, is to be seen here.
	a.commitMu.Lock()
	a.mu.RLock()
	row := a.boxes[box]
	a.mu.RUnlock()
	a.commitMu.Unlock()
	if row == nil || row.Exists == row.Unseen {
		return nil, nil
	}
	snap := a.cached(box)
	if snap == nil {
		var err error
		if snap, err = a.read(box); err != nil {
			return nil, err
		}
	}
	sets := *a.flags.shown.Load()
	var uids []imap.UID
	for _, e := range snap.All() {
		if int(e.Flags) < len(sets) && sets[e.Flags].seen {
			uids = append(uids, e.UID)
		}
	}
	return uids, nil
}

func (t *txn) workView(w *viewWork) error {
	ob, err := t.need("view", w.id)
	if err != nil {
		return err
	}
	if !ob.View {
		return fail("view", mailbox.Invalid, ob.Name, "this mailbox is no view")
	}
	if w.uids != nil {
		return t.lookAgain(w)
	}
	l := t.lensFor(w.id)
	if w.rule != nil {
		l = t.adjust(ob, l, w.rule)
	}
	switch {
	case l == nil || l.phase == full:
		w.done = true
	case l.phase == filling:
		return t.fill(ob, l)
	default:
		return t.empty(l)
	}
	return nil
}

func (t *txn) lensFor(id mailbox.MailboxID) *lens {
	i := slices.IndexFunc(t.lenses(), func(l *lens) bool { return l.id == id })
	if i < 0 {
		return nil
	}
	return t.lenses()[i]
}

// adjust begins what a rule asks for, unless it is so already.
func (t *txn) adjust(ob *openBox, l *lens, rule *mailbox.ViewRule) *lens {
	switch {
	case !rule.On && (l == nil || l.phase == emptying):
		return l
	case !rule.On:
		l.phase = emptying
	case l != nil && l.phase != emptying && slices.Equal(l.except, rule.Except):
		return l
	default:
		l = &lens{id: rule.Mailbox, phase: filling, except: slices.Clone(rule.Except)}
	}
	t.listed = t.listed || !ob.Hidden
	ob.Hidden = true
	t.putLens(l)
	return l
}

// fill looks at the next messages. Those that change meanwhile look after themselves.
func (t *txn) fill(ob *openBox, l *lens) error {
	c := t.b.at(bktMessage).Cursor()
	k, n := seekMessage(c, l.cursor), 0
	for ; k != nil && n < viewStep; k, _ = c.Next() {
		if len(k) != 8 {
			return fmt.Errorf("message key % x: %w", k, errCodec)
		}
		l.cursor = mailbox.MessageID(binary.BigEndian.Uint64(k))
		t.look(l.cursor, false)
		n++
	}
	if k == nil {
		l.phase = full
		ob.Hidden, t.listed = false, true
	}
	t.putLens(l)
	return nil
}

// empty takes the next entries out; without any left, the rule goes.
func (t *txn) empty(l *lens) error {
	rows, err := t.firstOf(l.id, viewStep)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		t.del(bktMeta, lensKey(l.id))
		t.views.read = false
	}
	for _, e := range rows {
		t.look(e.Message, false)
	}
	return nil
}

// firstOf returns the first entries of a mailbox.
func (t *txn) firstOf(id mailbox.MailboxID, n int) (rows []row, err error) {
	prefix := key32(uint32(id))
	c := t.b.at(bktEntry).Cursor()
	for k, v := c.Seek(prefix); k != nil && len(rows) < n && string(k[:4]) == string(prefix); k, v = c.Next() {
		e, err := decodeEntry(k, v)
		if err != nil {
			return nil, err
		}
		rows = append(rows, e)
	}
	return rows, nil
}

// lookAgain looks at entries that were read, unless somebody has the view open again.
func (t *txn) lookAgain(w *viewWork) error {
	if t.a.open.any(w.id) {
		return nil
	}
	for _, uid := range w.uids {
		v := t.get(bktEntry, entryKey(w.id, uid))
		if v == nil {
			continue
		}
		e, err := decodeEntry(entryKey(w.id, uid), v)
		if err != nil {
			return err
		}
		t.look(e.Message, false)
	}
	return nil
}
