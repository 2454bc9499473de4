package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// maxMailboxes bounds the list, which every client reads as a whole.
const maxMailboxes = 10_000

func (t *txn) named(name string) (mailbox.MailboxID, bool) {
	v := t.get(bktName, []byte(name))
	if len(v) != 4 {
		return 0, false
	}
	return mailbox.MailboxID(binary.BigEndian.Uint32(v)), true
}

func (t *txn) createMailbox(op mailbox.CreateMailbox) error {
	// A trailing delimiter says that levels below will follow; the name is without
	// it (RFC 9051 section 6.3.4).
	name, err := mailbox.CleanName(strings.TrimSuffix(op.Name, "/"))
	if err != nil {
		return err
	}
	if _, taken := t.named(name); taken {
		return exists("create", name)
	}
	id, err := t.createPath(name)
	if err != nil {
		return err
	}
	t.box(id).SpecialUse = op.SpecialUse
	t.res.Mailbox = id
	return nil
}

func exists(op, name string) error {
	return &mailbox.Error{Op: op, Kind: mailbox.Exists, Name: name, Code: string(imap.ResponseCodeAlreadyExists),
		Text: "there is a mailbox with this name"}
}

// createPath makes a mailbox and the levels above it that are missing.
func (t *txn) createPath(name string) (mailbox.MailboxID, error) {
	if err := t.createAbove(name); err != nil {
		return 0, err
	}
	if t.cnt.mailbox >= 1<<31 || t.a.boxCount()+len(t.boxes) >= maxMailboxes {
		return 0, &mailbox.Error{Op: "create", Kind: mailbox.TooLarge, Name: name, Code: "LIMIT", Text: "this account has too many mailboxes"}
	}
	t.cnt.mailbox++
	id := mailbox.MailboxID(t.cnt.mailbox)
	t.newBox(mailbox.Mailbox{ID: id, Name: name})
	return id, nil
}

func (t *txn) createAbove(name string) error {
	parent := mailbox.ParentName(name)
	if parent == "" {
		return nil
	}
	if _, there := t.named(parent); there {
		return nil
	}
	_, err := t.createPath(parent)
	return err
}

// newBox makes the row of a mailbox with the id and name of m.
func (t *txn) newBox(m mailbox.Mailbox) {
	t.cnt.uidvalidity++
	m.UIDValidity, m.UIDNext, m.HighestModSeq = uint32(t.cnt.uidvalidity), 1, t.step()
	t.boxes[m.ID] = &openBox{box: box{Mailbox: m, goneFloor: m.HighestModSeq}}
	t.put(bktName, []byte(m.Name), key32(uint32(m.ID)))
	t.listed = true
}

func (t *txn) below(name string) [][]byte { return t.keys(bktName, []byte(name+"/")) }

func (t *txn) deleteMailbox(op mailbox.DeleteMailbox, sel []row) error {
	ob, err := t.need("delete", op.Mailbox)
	if err != nil {
		return err
	}
	if ob.System || ob.ID == mailbox.Inbox {
		return refused("delete", ob.Name, "this mailbox is part of the system and stays")
	}
	if err := t.discard(op.Mailbox, sel); err != nil {
		return err
	}
	for _, k := range t.keys(bktGone, key32(uint32(ob.ID))) {
		t.del(bktGone, k)
	}
	t.del(bktName, []byte(ob.Name))
	t.del(bktBox, key32(uint32(ob.ID)))
	t.step()
	ob.gone, t.listed = true, true
	return nil
}

func refused(op, name, text string) error {
	return &mailbox.Error{Op: op, Kind: mailbox.Refused, Name: name, Text: text, Code: string(imap.ResponseCodeCannot)}
}

func (t *txn) renameMailbox(op mailbox.RenameMailbox, sel []row) error {
	ob, err := t.need("rename", op.Mailbox)
	if err != nil {
		return err
	}
	name, err := mailbox.CleanName(op.Name)
	if err != nil {
		return err
	}
	if _, taken := t.named(name); taken {
		return exists("rename", name)
	}
	switch {
	case ob.ID == mailbox.Inbox:
		return t.renameInbox(name, sel)
	case ob.System:
		return refused("rename", ob.Name, "this mailbox is part of the system and keeps its name")
	case strings.HasPrefix(name, ob.Name+"/"):
		return refused("rename", ob.Name, "a mailbox cannot lie below itself")
	}
	return t.rename(ob, name)
}

// renameInbox moves the entries of INBOX into a new mailbox. INBOX stays, and so
// do the mailboxes below it (RFC 9051 section 6.3.6).
func (t *txn) renameInbox(name string, sel []row) error {
	id, err := t.createPath(name)
	if err != nil {
		return err
	}
	for _, e := range sel {
		m, err := t.messageOf(e)
		if err != nil {
			return err
		}
		if err := t.leave(m, spot{mailbox.Inbox, e.UID}); err != nil {
			return err
		}
		if _, err := t.enter(m, id, e.Deleted); err != nil {
			return err
		}
		t.keep(m)
	}
	return nil
}

// rename gives a mailbox and all below it a new name.
func (t *txn) rename(ob *openBox, name string) error {
	if err := t.createAbove(name); err != nil {
		return err
	}
	old := ob.Name
	for _, k := range t.below(old) {
		id, ok := t.named(string(k))
		child := t.box(id)
		if !ok || child == nil {
			return fmt.Errorf("mailbox name %q: %w", k, errCodec)
		}
		if child.System {
			return refused("rename", child.Name, "this mailbox is part of the system and keeps its name")
		}
		moved, err := mailbox.CleanName(name + string(bytes.TrimPrefix(k, []byte(old))))
		if err != nil {
			return err
		}
		// Without its parent, which was deleted, a mailbox may lie there already.
		if _, taken := t.named(moved); taken {
			return exists("rename", moved)
		}
		t.rekey(child, moved)
	}
	t.rekey(ob, name)
	return nil
}

func (t *txn) rekey(ob *openBox, name string) {
	t.del(bktName, []byte(ob.Name))
	t.put(bktName, []byte(name), key32(uint32(ob.ID)))
	ob.Name, t.listed = name, true
}

func (t *txn) subscribe(op mailbox.Subscribe) error {
	ob, err := t.need("subscribe", op.Mailbox)
	if err != nil {
		return err
	}
	t.listed = t.listed || ob.Subscribed != op.On
	ob.Subscribed = op.On
	return nil
}

// seed adds the mailboxes of the list that are missing, and INBOX in any case.
func (t *txn) seed(seeds []mailbox.Mailbox) error {
	inbox := mailbox.Mailbox{ID: mailbox.Inbox, Name: "INBOX", Subscribed: true, System: true}
	for _, m := range append(seeds[:len(seeds):len(seeds)], inbox) {
		if ob := t.box(m.ID); ob != nil {
			ob.View = m.View
			continue
		}
		name, err := mailbox.CleanName(m.Name)
		if err != nil {
			return err
		}
		if m.ID == 0 || m.ID >= mailbox.FirstUserMailbox || (m.ID == mailbox.Inbox) != (name == "INBOX") {
			return fail("seed", mailbox.Invalid, m.Name, "not a system mailbox")
		}
		if err := t.makeWay(name); err != nil {
			return err
		}
		if err := t.createAbove(name); err != nil {
			return err
		}
		t.newBox(mailbox.Mailbox{ID: m.ID, Name: name, SpecialUse: m.SpecialUse, Subscribed: m.Subscribed, System: m.System, Hidden: m.Hidden, View: m.View})
	}
	return nil
}

// makeWay renames a person's mailbox whose name a system mailbox needs: nothing
// of theirs is lost, and the server starts.
func (t *txn) makeWay(name string) error {
	id, taken := t.named(name)
	if !taken {
		return nil
	}
	for n := 2; ; n++ {
		other := fmt.Sprintf("%s (%d)", name, n)
		if _, taken := t.named(other); !taken {
			return t.rename(t.box(id), other)
		}
	}
}

// goneMax is how many rows of expunge history a mailbox keeps.
const goneMax = 4096

// flushGone writes what this Tx expunged (for RFC 7162 QRESYNC) and forgets the
// oldest quarter when there is too much.
func (t *txn) flushGone() {
	for id, uids := range t.gone {
		ob := t.box(id)
		if ob == nil {
			continue
		}
		t.put(bktGone, goneKey(id, t.modseq), encodeUIDs(uids))
		if ob.goneRows++; ob.goneRows > goneMax {
			for _, k := range t.keys(bktGone, key32(uint32(id)))[:goneMax/4] {
				ob.goneFloor = mailbox.ModSeq(binary.BigEndian.Uint64(k[4:]))
				t.del(bktGone, k)
				ob.goneRows--
			}
		}
	}
}
