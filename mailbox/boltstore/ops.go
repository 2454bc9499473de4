package boltstore

import (
	"fmt"

	"pizza/mailbox"
)

// perform asks the guard about an op of a person, then applies it and what the
// guard adds.
func (t *txn) perform(op mailbox.Op) error {
	if l := t.lensOf(op); l != nil {
		return t.through(l, op)
	}
	verdict, sel, err := t.review(op)
	if err != nil {
		return err
	}
	if err := t.room(op, verdict); err != nil {
		return err
	}
	if verdict.Instead == nil {
		t.copies = verdict.Copies
		if err := t.do(op, sel, verdict.ShareCopies); err != nil {
			return err
		}
	}
	for _, ops := range [][]mailbox.Op{verdict.Instead, verdict.Also} {
		for _, op := range ops {
			if err := t.do(op, nil, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// do applies one op. sel is what op selects, when that is known already.
func (t *txn) do(op mailbox.Op, sel []row, share bool) error {
	if sel == nil {
		var err error
		if sel, err = t.selectOf(op); err != nil {
			return err
		}
	}
	if err := t.closedView(op); err != nil {
		return err
	}
	return t.sticky(t.dispatch(op, sel, share))
}

func (t *txn) dispatch(op mailbox.Op, sel []row, share bool) error {
	switch op := op.(type) {
	case mailbox.AddMessage:
		return t.addMessage(op)
	case mailbox.AddEntry:
		return t.addEntryOp(op)
	case mailbox.RemoveEntry:
		return t.removeEntryOp(op)
	case mailbox.Hold:
		return t.hold(op)
	case mailbox.SetTag:
		return t.setTag(op)
	case mailbox.StoreFlags:
		return t.storeFlags(op, sel)
	case mailbox.MarkMessage:
		return t.markMessage(op)
	case mailbox.CopyEntries:
		return t.copyEntries(op, sel, share)
	case mailbox.MoveEntries:
		return t.moveEntries(op, sel)
	case mailbox.Expunge:
		return t.expunge(op, sel)
	case mailbox.CreateMailbox:
		return t.createMailbox(op)
	case mailbox.DeleteMailbox:
		return t.deleteMailbox(op, sel)
	case mailbox.RenameMailbox:
		return t.renameMailbox(op, sel)
	case mailbox.Subscribe:
		return t.subscribe(op)
	default:
		return t.dispatchNeutral(op)
	}
}

func (t *txn) dispatchNeutral(op mailbox.Op) error {
	switch op := op.(type) {
	case mailbox.Append:
		return t.appendEvents(op)
	case mailbox.DropStream:
		return t.dropStream(op)
	case mailbox.PutRecord:
		return t.putRecord(op)
	case mailbox.Add:
		return t.add(op)
	case mailbox.DeleteRecord:
		return t.deleteRecord(op)
	case mailbox.CheckRecord:
		return t.checkRecord(op)
	case mailbox.PutDue:
		return t.putDue(op)
	case mailbox.DeleteDue:
		return t.deleteDue(op)
	default:
		return fail("commit", mailbox.Invalid, fmt.Sprintf("%T", op), "unknown operation")
	}
}
