package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"pizza/mailbox"
)

// review asks the guard about an op of a person that touches a system mailbox or a
// tagged message. It also returns the entries that op selects, so that they are
// read once. Subscriptions change nothing in a mailbox and are not asked about;
// holds, tags, streams, records and due entries are no acts of a person.
func (t *txn) review(op mailbox.Op) (v mailbox.Verdict, sel []item, err error) {
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

// act describes op to the guard; concerned: it has to be asked.
func (t *txn) act(op mailbox.Op, sel []item) (act mailbox.Act, concerned bool) {
	act = mailbox.Act{Op: op}
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
	if sel != nil {
		act.Items = t.items(sel)
	}
	concerned = act.From != nil && act.From.System || act.To != nil && act.To.System
	for _, it := range act.Items {
		concerned = concerned || it.Tag != ""
	}
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

func (t *txn) items(sel []item) []mailbox.ActItem {
	out := make([]mailbox.ActItem, len(sel))
	for i, it := range sel {
		out[i] = t.actItem(it.msg)
		out[i].UID, out[i].Deleted = it.entry.UID, it.entry.Deleted
	}
	return out
}

func (t *txn) actItem(m *message) mailbox.ActItem {
	return mailbox.ActItem{Message: m.id, Tag: m.tag, Flags: t.a.flags.sets[m.flags].flags, MessageID: m.header}
}

func (t *txn) itemOf(id mailbox.MessageID, in mailbox.MailboxID) []mailbox.ActItem {
	m := t.message(id)
	if m == nil {
		return nil
	}
	it := t.actItem(m)
	if s, there := m.in(in); there {
		e, err := t.entry(s)
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
	if op.Structure != nil {
		it.MessageID = op.Structure.MessageID
	}
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
		e, err := v.t.entry(s)
		v.t.note(err)
		out = append(out, mailbox.Place{Mailbox: s.mailbox, Entry: e})
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

func (v view) NextMessageID() mailbox.MessageID {
	return mailbox.MessageID(v.t.a.lastMessage.Add(1))
}

// note keeps the first fault, which fails the Tx.
func (t *txn) note(err error) {
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("guard's view: %w", err)
	}
}
