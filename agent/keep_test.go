package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// notes puts n messages into a mailbox, for Schedules with the mark of a schedule.
func (d *desk) notes(box mailbox.MailboxID, n int) (uids imap.UIDSet) {
	d.t.Helper()
	for i := range n {
		op := d.appendOp(box, d.message(d.me, "note", fmt.Sprintf("Subject: note %d", i)))
		if box == Schedules {
			op.Tag = scheduleTag + fmt.Sprint(i)
		}
		d.commit(op)
		uids.AddNum(d.list(d.me.Account, box)[i].uid)
	}
	return uids
}

func (d *desk) passWindow() {
	d.t.Helper()
	d.clock.add(2 * d.a.opt.Window)
	d.tend()
}

// question is the one mail that asks; the test fails when there are more or none.
func (d *desk) question() shown {
	d.t.Helper()
	var found []shown
	for _, s := range d.list(d.me.Account, mailbox.Inbox) {
		if strings.Contains(s.raw, "X-Pizza-Kind: question") {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		d.t.Fatalf("%d asking mails, want 1: %v", len(found), subjects(found))
	}
	return found[0]
}

func TestManyTakenOutComeBack(t *testing.T) {
	t.Parallel()
	one := func(box mailbox.MailboxID, uids imap.UIDSet, each func(one imap.UIDSet)) {
		nums, _ := uids.Nums()
		for _, u := range nums {
			each(imap.UIDSetNum(u))
		}
	}
	for _, box := range []mailbox.MailboxID{Memory, Schedules} {
		for name, do := range map[string]func(d *desk, uids imap.UIDSet){
			"moved": func(d *desk, uids imap.UIDSet) {
				d.mustAct(mailbox.MoveEntries{From: box, To: Trash, UIDs: uids})
			},
			"expunged": func(d *desk, uids imap.UIDSet) {
				d.mustAct(deleted(box, uids), mailbox.Expunge{Mailbox: box})
			},
			"one after the other": func(d *desk, uids imap.UIDSet) {
				one(box, uids, func(u imap.UIDSet) {
					d.mustAct(mailbox.MoveEntries{From: box, To: Trash, UIDs: u})
					d.clock.add(d.a.opt.Window / 5)
				})
			},
			"and Trash emptied": func(d *desk, uids imap.UIDSet) {
				d.mustAct(mailbox.MoveEntries{From: box, To: Trash, UIDs: uids})
				d.mustAct(deleted(Trash, imap.UIDSet{{Start: 1, Stop: 0}}), mailbox.Expunge{Mailbox: Trash})
			},
		} {
			t.Run(fmt.Sprint(box, " ", name), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				do(d, d.notes(box, crowdSize+1))
				d.count(d.me.Account, box, 0)
				d.passWindow()
				d.count(d.me.Account, box, crowdSize+1)
				d.count(d.me.Account, Trash, 0)
				if q := d.question(); !strings.Contains(q.raw, "- note 0") {
					t.Errorf("%s", q.raw)
				}
				d.nothingLeaves()
			})
		}
	}
}

// nothingLeaves: no record and no due entry of a window is left.
func (d *desk) nothingLeaves() {
	d.t.Helper()
	recs, err := d.store.Records(d.t.Context(), d.me.Account, "leaving/", "", 0)
	due, err2 := d.store.NextDue(d.t.Context(), d.me.Account, DueLeaving)
	if err != nil || err2 != nil || len(recs) != 0 || !due.IsZero() {
		d.t.Errorf("left over: %v, due %v (%v, %v)", recs, due, err, err2)
	}
}

func TestAnswerToTheQuestion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	uids := d.notes(Memory, 5)
	d.mustAct(mailbox.MoveEntries{From: Memory, To: Trash, UIDs: uids})
	d.passWindow()
	q := d.question()
	before := len(d.list(d.me.Account, mailbox.Inbox))
	re := "In-Reply-To: <" + q.mid + ">"
	if r := d.mustGive(d.me, d.message(d.me, "delete?", re), "pizza@localhost"); r.Task != "" || !strings.Contains(r.Note, "unclear") {
		t.Errorf("unclear: %+v", r)
	}
	d.count(d.me.Account, Memory, 5)
	d.count(d.me.Account, mailbox.Inbox, before+1)
	d.mustAct(mailbox.MoveEntries{From: Memory, To: Archive, UIDs: imap.UIDSetNum(d.list(d.me.Account, Memory)[0].uid)})
	if r := d.mustGive(d.me, d.message(d.me, "Delete.\n\n> quoted", re), "pizza@localhost"); r.Task != "" || r.Note != "deleted" {
		t.Errorf("delete: %+v", r)
	}
	d.count(d.me.Account, Memory, 0)
	d.count(d.me.Account, Trash, 4)
	d.passWindow() // what the person has confirmed is no crowd
	d.count(d.me.Account, Memory, 0)
	if r := d.mustGive(d.me, d.message(d.me, "delete", re), "pizza@localhost"); !strings.Contains(r.Note, "nothing to delete") {
		t.Errorf("again: %+v", r)
	}
	if n := len(d.runs(d.me.Account)); n != 0 {
		t.Errorf("%d runs", n)
	}
	if r := d.mustGive(sendOnly(d.me), d.message(d.me, "say a", re), "pizza@localhost"); r.Task == "" {
		t.Errorf("a credential that may only send answers: %+v", r)
	}
}

func TestThreeTakenOutStayOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mustAct(mailbox.MoveEntries{From: Memory, To: Trash, UIDs: d.notes(Memory, crowdSize)})
	d.passWindow()
	d.count(d.me.Account, Memory, 0)
	d.count(d.me.Account, Trash, crowdSize)
	d.nothingLeaves()
	d.mustAct(mailbox.MoveEntries{From: Trash, To: Memory, UIDs: imap.UIDSet{{Start: 1, Stop: 0}}})
	d.count(d.me.Account, Memory, crowdSize)
}

// What was put back by the person does not count.
func TestPutBackWithinTheWindow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mustAct(mailbox.MoveEntries{From: Memory, To: Trash, UIDs: d.notes(Memory, 4)})
	d.mustAct(mailbox.MoveEntries{From: Trash, To: Memory, UIDs: imap.UIDSet{{Start: 1, Stop: 0}}})
	d.nothingLeaves()
	d.passWindow()
	d.count(d.me.Account, Memory, 4)
	d.count(d.me.Account, mailbox.Inbox, 0)
}

// By a program without MOVE it lies in Trash once.
func TestDeletedWithoutMoveLiesInTrashOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	uids := d.notes(Memory, 1)
	d.mustAct(mailbox.CopyEntries{From: Memory, To: Trash, UIDs: uids}, deleted(Memory, uids), mailbox.Expunge{Mailbox: Memory})
	d.count(d.me.Account, Trash, 1)
}
