package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"pizza/mailbox"
)

// review asks the guard about an op of a person that touches a system mailbox or a
// tagged message. It also returns the entries that op selects, so that they are
// read once. Subscriptions change nothing in a mailbox and are not asked about;
// holds, tags, streams, records and due entries are no acts of a person.
func (t *txn) review(op mailbox.Op) (v mailbox.Verdict, sel []row, err error) {
	guard := t.a.store.guard()
	if t.req.tx.Actor == nil || guard == nil {
		return v, nil, nil
	}
	if sel, err = t.selectOf(op); err != nil {
		return v, nil, err
	}
	act, concerned := t.act(op, sel)
	if t.err != nil || !concerned {
		return v, sel, t.err
	}
	if sel != nil {
		if act.Items, err = t.items(sel); err != nil {
			return v, nil, err
		}
	}
	v, err = t.ask(guard, act)
	if err != nil {
		return v, nil, err
	}
	return v, sel, nil
}

// ask calls the guard. A guard that panics fails this Tx only.
func (t *txn) ask(guard mailbox.Guard, act mailbox.Act) (v mailbox.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.a.log.Error("guard panicked", slog.Any("err", p), slog.String("stack", string(debug.Stack())))
			err = fail("guard", mailbox.Internal, "", "")
		}
	}()
	v, err = guard.Review(view{t}, t.a.id, *t.req.tx.Actor, act)
	var me *mailbox.Error
	if err != nil && !errors.As(err, &me) {
		err = &mailbox.Error{Op: "guard", Kind: mailbox.Internal, Err: err}
	}
	return v, err
}

// act describes op to the guard, without the items of sel; concerned: it has to be
// asked.
func (t *txn) act(op mailbox.Op, sel []row) (act mailbox.Act, concerned bool) {
	act = mailbox.Act{Op: op, Through: t.views.through}
	switch op := op.(type) {
	case mailbox.AddMessage:
		act.To = t.systemOf(op.Places)
		act.Items = []mailbox.ActItem{t.incoming(op)}
	case mailbox.AddEntry:
		act.To = t.row(op.Mailbox)
		act.Items = t.itemOf(op.Message, op.Mailbox)
	case mailbox.RemoveEntry:
		act.From = t.row(op.Mailbox)
		act.Items = t.itemOf(op.Message, op.Mailbox)
	case mailbox.MarkMessage:
		act.Items = t.itemOf(op.Message, 0)
	case mailbox.StoreFlags:
		act.From = t.row(op.Mailbox)
	case mailbox.Expunge:
		act.From = t.row(op.Mailbox)
	case mailbox.CopyEntries:
		act.From, act.To = t.row(op.From), t.row(op.To)
	case mailbox.MoveEntries:
		act.From, act.To = t.row(op.From), t.row(op.To)
	case mailbox.DeleteMailbox:
		act.From, act.To = t.row(op.Mailbox), t.row(op.Mailbox)
	case mailbox.CreateMailbox:
		act.From, act.To = t.systemAbove(op.Name), &mailbox.Mailbox{Name: op.Name}
	case mailbox.RenameMailbox:
		act.From, act.To = t.systemAbove(op.Name), t.row(op.Mailbox)
	default:
		return act, false
	}
	concerned = act.From != nil && act.From.System || act.To != nil && act.To.System ||
		slices.ContainsFunc(sel, func(e row) bool { return e.tagged }) ||
		slices.ContainsFunc(act.Items, func(it mailbox.ActItem) bool { return it.Tag != "" })
	return act, concerned
}

// row returns a copy of a mailbox's row.
func (t *txn) row(id mailbox.MailboxID) *mailbox.Mailbox {
	ob := t.box(id)
	if ob == nil {
		return nil
	}
	m := ob.Mailbox
	return &m
}

// systemOf returns the first system mailbox of a list, else its first one.
func (t *txn) systemOf(ids []mailbox.MailboxID) *mailbox.Mailbox {
	var first *mailbox.Mailbox
	for _, id := range ids {
		m := t.row(id)
		if m != nil && m.System {
			return m
		}
		if first == nil {
			first = m
		}
	}
	return first
}

// systemAbove returns the nearest system mailbox at or above a name.
func (t *txn) systemAbove(name string) *mailbox.Mailbox {
	name, err := mailbox.CleanName(strings.TrimSuffix(name, "/"))
	if err != nil {
		return nil
	}
	for ; name != ""; name = mailbox.ParentName(name) {
		if id, ok := t.named(name); ok {
			if m := t.row(id); m != nil && m.System {
				return m
			}
		}
	}
	return nil
}

// items describes entries to the guard. Only messages with a tag are looked up.
func (t *txn) items(sel []row) ([]mailbox.ActItem, error) {
	out := make([]mailbox.ActItem, len(sel))
	for i, e := range sel {
		out[i] = mailbox.ActItem{UID: e.UID, Message: e.Message, Deleted: e.Deleted, Flags: t.a.flags.sets[e.Flags].flags}
		if !e.tagged {
			continue
		}
		m, err := t.messageOf(e)
		if err != nil {
			return nil, err
		}
		out[i].Tag = m.tag
	}
	return out, nil
}

func (t *txn) itemOf(id mailbox.MessageID, in mailbox.MailboxID) []mailbox.ActItem {
	m := t.message(id)
	if m == nil {
		return nil
	}
	it := mailbox.ActItem{Message: m.id, Tag: m.tag, Flags: t.a.flags.sets[m.flags].flags}
	if s, there := m.in(in); there {
		e, err := entryRow(t.b, s)
		if err != nil {
			t.err = err
			return nil
		}
		it.UID, it.Deleted = e.UID, e.Deleted
	}
	return []mailbox.ActItem{it}
}

// incoming describes a message that is about to be added.
func (t *txn) incoming(op mailbox.AddMessage) mailbox.ActItem {
	it := mailbox.ActItem{Message: op.ID, Tag: op.Tag}
	it.Flags, it.Deleted, _ = t.a.flags.canonical(op.Flags) // bad flags are refused when the op is applied
	return it
}

// view is the state inside a commit.
type view struct{ t *txn }

func (v view) Record(key string) (mailbox.Record, bool) {
	rec, err := v.t.record(key)
	v.t.note(err)
	return rec, rec.Version > 0
}

func (v view) Lookup(index string) []mailbox.Record {
	var out []mailbox.Record
	prefix := pairKey(index)
	for _, k := range v.t.keys(bktIndex, prefix) {
		if rec, ok := v.Record(string(bytes.TrimPrefix(k, prefix))); ok {
			out = append(out, rec)
		}
	}
	return out
}

func (v view) StreamSeq(stream string) uint64 { return v.t.streamSeq(stream) }

func (v view) Mailbox(id mailbox.MailboxID) (mailbox.Mailbox, bool) {
	m := v.t.row(id)
	if m == nil {
		return mailbox.Mailbox{}, false
	}
	return *m, true
}

func (v view) Places(id mailbox.MessageID) []mailbox.Place {
	m := v.t.message(id)
	if m == nil {
		return nil
	}
	out := make([]mailbox.Place, 0, len(m.spots))
	for _, s := range m.spots {
		if v.t.isView(s.mailbox) {
			continue
		}
		e, err := entryRow(v.t.b, s)
		v.t.note(err)
		out = append(out, mailbox.Place{Mailbox: s.mailbox, Entry: e.Entry})
	}
	return out
}

func (v view) Tag(id mailbox.MessageID) (string, bool) {
	m := v.t.message(id)
	if m == nil {
		return "", false
	}
	return m.tag, true
}

func (v view) MessageID(id mailbox.MessageID) string {
	m := v.t.message(id)
	if m == nil {
		return ""
	}
	return m.header
}

func (v view) NextMessageID() mailbox.MessageID {
	return mailbox.MessageID(v.t.a.lastMessage.Add(1))
}

// note keeps the first fault, which fails the Tx.
func (t *txn) note(err error) {
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("guard's view: %w", err)
	}
}
