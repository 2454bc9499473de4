package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func deleted(box mailbox.MailboxID, uids imap.UIDSet) mailbox.StoreFlags {
	return mailbox.StoreFlags{Mailbox: box, UIDs: uids, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}}
}

func undeleted(box mailbox.MailboxID, uids imap.UIDSet) mailbox.StoreFlags {
	return mailbox.StoreFlags{Mailbox: box, UIDs: uids, Op: imap.StoreFlagsDel, Flags: []imap.Flag{imap.FlagDeleted}}
}

// folder makes a mailbox of the person's own.
func (d *desk) folder(name string) mailbox.MailboxID {
	d.t.Helper()
	return d.mustAct(mailbox.CreateMailbox{Name: name}).Mailbox
}

func TestMoveDecidesAtTheEndOfTheWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		from, to mailbox.MailboxID
		want     DecisionState
		during   []mailbox.MailboxID
		after    []mailbox.MailboxID
	}{
		{"action to approve", Action, Approve, Approved, []mailbox.MailboxID{Approve, mailbox.Inbox}, []mailbox.MailboxID{mailbox.Inbox}},
		{"action to reject", Action, Reject, Rejected, []mailbox.MailboxID{Reject, mailbox.Inbox}, []mailbox.MailboxID{mailbox.Inbox}},
		{"inbox to approve", mailbox.Inbox, Approve, Approved, []mailbox.MailboxID{Approve}, []mailbox.MailboxID{Archive}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			dec := d.ask(decisionApproval)
			if res := d.mustAct(d.move(dec, tt.from, tt.to)); len(res.Copied) != 1 {
				t.Fatalf("COPYUID %v", res.Copied)
			}
			d.state(dec, Deciding)
			d.lies(dec, tt.during...)
			d.clock.add(14 * time.Second)
			d.tend()
			d.state(dec, Deciding)
			if n := len(d.decidedEvents(dec.Run)); n != 0 {
				t.Fatalf("decided within the window")
			}
			d.clock.add(2 * time.Second)
			d.tend()
			rec := d.state(dec, tt.want)
			if rec.By.Via != viaMove || rec.By.Login != "me" || rec.By.Credential != "default" {
				t.Errorf("recorded %+v", rec.By)
			}
			d.lies(dec, tt.after...)
			if n := len(d.decidedEvents(dec.Run)); n != 1 {
				t.Errorf("%d decisions in the journal", n)
			}
		})
	}
}

// Without a window (move_window_seconds 0) a move decides at once.
func TestMoveWithoutAWindow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.a.opt.Window = Options{Window: -1}.withDefaults().Window
	dec := d.ask(decisionApproval)
	d.mustAct(d.move(dec, Action, Approve))
	d.tend()
	d.state(dec, Approved)
}

func TestMoveBackReopens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		from, to, back mailbox.MailboxID
	}{
		{"action, approve, action", Action, Approve, Action},
		{"action, approve, inbox", Action, Approve, mailbox.Inbox},
		{"inbox, reject, inbox", mailbox.Inbox, Reject, mailbox.Inbox},
		{"action, trash, action", Action, Trash, Action},
		{"action, trash, inbox", Action, Trash, mailbox.Inbox},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			dec := d.ask(decisionApproval)
			d.mustAct(d.move(dec, tt.from, tt.to))
			d.state(dec, Deciding)
			d.clock.add(10 * time.Second)
			d.mustAct(d.move(dec, tt.to, tt.back))
			d.clock.add(time.Minute)
			d.tend()
			rec := d.state(dec, Open)
			if rec.By != nil || rec.Verb != "" || !rec.Until.IsZero() {
				t.Errorf("a trace of the move stays: %+v", rec)
			}
			d.lies(dec, Action, mailbox.Inbox)
			if _, err := d.a.Decide(t.Context(), d.me.Account, dec.ID, "approve", "", by("me")); err != nil {
				t.Error(err)
			}
			d.lies(dec, mailbox.Inbox)
		})
	}
}

func TestMindChangedWithinTheWindow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	d.mustAct(d.move(dec, Action, Approve))
	d.clock.add(10 * time.Second)
	d.mustAct(d.move(dec, Approve, Reject))
	d.clock.add(10 * time.Second)
	d.tend()
	d.state(dec, Deciding) // the window began anew
	d.clock.add(10 * time.Second)
	d.tend()
	d.state(dec, Rejected)
}

func TestReplyWithinTheWindowDecidesAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	d.mustAct(d.move(dec, Action, Approve))
	d.mustGive(d.me, d.message(d.me, "reject"), token(dec))
	rec := d.state(dec, Rejected)
	d.clock.add(time.Minute)
	d.tend()
	d.state(dec, Rejected)
	if rec.By.Via != viaReply || len(d.decidedEvents(dec.Run)) != 1 {
		t.Errorf("recorded %+v", rec.By)
	}
	d.lies(dec, mailbox.Inbox)
}

func TestDeleteRejects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		alone   bool // no entry in INBOX
		inTrash bool
		do      func(d *desk, dec Decision)
		after   []mailbox.MailboxID
	}{
		{"expunge", false, false, func(d *desk, dec Decision) {
			uids := d.uid(Action, dec.Mail)
			d.mustAct(deleted(Action, uids), mailbox.Expunge{Mailbox: Action})
		}, []mailbox.MailboxID{mailbox.Inbox}},
		{"expunge, nowhere else", true, false, func(d *desk, dec Decision) {
			uids := d.uid(Action, dec.Mail)
			d.mustAct(deleted(Action, uids), mailbox.Expunge{Mailbox: Action, UIDs: uids})
		}, []mailbox.MailboxID{Archive}},
		{"move to Trash", false, true, func(d *desk, dec Decision) {
			d.mustAct(d.move(dec, Action, Trash))
		}, []mailbox.MailboxID{mailbox.Inbox, Trash}},
		{"copy to Trash and expunge", true, false, func(d *desk, dec Decision) {
			uids := d.uid(Action, dec.Mail)
			d.mustAct(mailbox.CopyEntries{From: Action, To: Trash, UIDs: uids}, deleted(Action, uids), mailbox.Expunge{Mailbox: Action})
		}, []mailbox.MailboxID{Archive}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			dec := d.ask(decisionApproval)
			if tt.alone {
				uids := d.uid(mailbox.Inbox, dec.Mail)
				d.mustAct(deleted(mailbox.Inbox, uids), mailbox.Expunge{Mailbox: mailbox.Inbox, UIDs: uids})
				d.state(dec, Open)
				d.lies(dec, Action)
			}
			tt.do(d, dec)
			d.state(dec, Deciding)
			d.clock.add(16 * time.Second)
			d.tend()
			rec := d.state(dec, Rejected)
			if rec.Reason != reasonDeleted || rec.By.Via != viaDelete {
				t.Errorf("recorded %q, %+v", rec.Reason, rec.By)
			}
			if ev := d.decidedEvents(dec.Run); len(ev) != 1 || ev[0].Text != reasonDeleted {
				t.Errorf("journal %+v", ev)
			}
			d.lies(dec, tt.after...)
		})
	}
}

// A program without MOVE copies, sets \Deleted and expunges.
func TestCopyDecidesWithTheDeletion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	uids := d.uid(Action, dec.Mail)
	if res := d.mustAct(mailbox.CopyEntries{From: Action, To: Approve, UIDs: uids}); len(res.Copied) != 1 {
		t.Fatalf("COPYUID %v", res.Copied)
	}
	d.state(dec, Open)
	d.lies(dec, Action, Approve, mailbox.Inbox)
	d.clock.add(5 * time.Second)
	d.mustAct(deleted(Action, uids))
	d.state(dec, Deciding)
	d.mustAct(mailbox.Expunge{Mailbox: Action})
	d.lies(dec, Approve, mailbox.Inbox)
	d.clock.add(11 * time.Second)
	d.tend()
	d.state(dec, Deciding) // the window began with the deletion
	d.clock.add(5 * time.Second)
	d.tend()
	if rec := d.state(dec, Approved); rec.By.Via != viaMove {
		t.Errorf("recorded %+v", rec.By)
	}
	d.lies(dec, mailbox.Inbox)
}

func TestCopyAloneDecidesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	uids := d.uid(Action, dec.Mail)
	d.mustAct(mailbox.CopyEntries{From: Action, To: Approve, UIDs: uids})
	d.refused(mailbox.CopyEntries{From: Action, To: Reject, UIDs: uids})
	d.clock.add(16 * time.Second)
	d.tend()
	d.state(dec, Open)
	d.lies(dec, Action, mailbox.Inbox)

	d.mustAct(mailbox.CopyEntries{From: Action, To: Reject, UIDs: uids}, deleted(Action, uids))
	d.state(dec, Deciding)
	d.mustAct(undeleted(Action, uids)) // taken back
	d.clock.add(16 * time.Second)
	d.tend()
	d.state(dec, Open)
	d.lies(dec, Action, mailbox.Inbox)
	if n := len(d.decidedEvents(dec.Run)); n != 0 {
		t.Errorf("%d decisions in the journal", n)
	}
}

// Who copies an approval to Action/Approve and then deletes that copy has changed
// their mind: deleting the mail in Action afterwards refuses, as it always does.
func TestDeletingTheCopyTakesItBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	d.mustAct(mailbox.CopyEntries{From: Action, To: Approve, UIDs: d.uid(Action, dec.Mail)})
	d.mustAct(deleted(Approve, d.uid(Approve, dec.Mail)))
	d.state(dec, Open)
	d.lies(dec, Action, mailbox.Inbox)
	d.mustAct(deleted(Action, d.uid(Action, dec.Mail)))
	d.mustAct(mailbox.Expunge{Mailbox: Action})
	d.clock.add(16 * time.Second)
	d.tend()
	if rec := d.state(dec, Rejected); rec.By.Via != viaDelete {
		t.Errorf("recorded %+v", rec.By)
	}
}

func TestCrowdGoesBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(d *desk, decs []Decision)
	}{
		{"one move of four", func(d *desk, decs []Decision) {
			var uids imap.UIDSet
			for _, dec := range decs {
				uids.AddSet(d.uid(Action, dec.Mail))
			}
			d.mustAct(mailbox.MoveEntries{From: Action, To: Approve, UIDs: uids})
		}},
		{"four moves", func(d *desk, decs []Decision) {
			for _, dec := range decs {
				d.mustAct(d.move(dec, Action, Approve))
				d.clock.add(3 * time.Second)
			}
		}},
		{"from inbox", func(d *desk, decs []Decision) {
			for _, dec := range decs {
				d.mustAct(d.move(dec, mailbox.Inbox, Reject))
			}
		}},
		{"deletions", func(d *desk, decs []Decision) {
			for _, dec := range decs[:2] {
				d.mustAct(d.move(dec, Action, Trash))
			}
			for _, dec := range decs[2:] {
				d.mustAct(deleted(Action, d.uid(Action, dec.Mail)))
			}
			d.mustAct(mailbox.Expunge{Mailbox: Action})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			var decs []Decision
			for range crowdSize + 1 {
				decs = append(decs, d.ask(decisionApproval))
			}
			tt.do(d, decs)
			for range 3 {
				d.clock.add(16 * time.Second)
				d.tend()
			}
			for _, dec := range decs {
				d.state(dec, Open)
				d.lies(dec, Action, mailbox.Inbox)
				if n := len(d.decidedEvents(dec.Run)); n != 0 {
					t.Errorf("%d decisions in the journal", n)
				}
			}
			asking := 0
			for _, s := range d.list(d.me.Account, mailbox.Inbox) {
				if strings.Contains(s.raw, "X-Pizza-Kind: notice") {
					asking++
				}
			}
			if asking != 1 {
				t.Errorf("%d asking mails, want 1", asking)
			}
			// Three at a time decide.
			for _, dec := range decs[:crowdSize] {
				d.mustAct(d.move(dec, Action, Approve))
			}
			d.clock.add(16 * time.Second)
			d.tend()
			for _, dec := range decs[:crowdSize] {
				d.state(dec, Approved)
			}
		})
	}
}

func TestActionRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	unknown := d.ask(decisionUnknown)
	mine := d.folder("Mine")
	d.mustGive(d.me, d.message(d.me, "x"), "me@localhost")
	inbox := d.list(d.me.Account, mailbox.Inbox)
	plain := imap.UIDSetNum(inbox[len(inbox)-1].uid)
	for _, box := range []mailbox.MailboxID{Action, Approve, Reject, Running, Schedules, Unread} {
		d.refused(d.appendOp(box, d.message(d.me, "x")))
		d.refused(mailbox.CopyEntries{From: mailbox.Inbox, To: box, UIDs: plain})
		d.refused(mailbox.MoveEntries{From: mailbox.Inbox, To: box, UIDs: plain})
	}
	for _, to := range []mailbox.MailboxID{mailbox.Inbox, Archive, Junk, Drafts, Sent, mine, Running} {
		d.refused(d.move(dec, Action, to))
	}
	d.refused(d.move(unknown, Action, Approve))
	d.refused(d.move(unknown, Action, Trash))
	d.refused(mailbox.CopyEntries{From: Action, To: Reject, UIDs: d.uid(Action, unknown.Mail)})
	d.refused(deleted(Action, d.uid(Action, unknown.Mail)))
	// A selection with one that may not go moves none.
	both := d.uid(Action, dec.Mail)
	both.AddSet(d.uid(Action, unknown.Mail))
	d.refused(mailbox.MoveEntries{From: Action, To: Approve, UIDs: both})
	d.refused(mailbox.CreateMailbox{Name: "Action/Later"})
	d.refused(mailbox.RenameMailbox{Mailbox: mine, Name: "Running/Mine"})
	for _, box := range []mailbox.MailboxID{Action, Running, Sent, Trash} {
		d.refused(mailbox.RenameMailbox{Mailbox: box, Name: "Elsewhere"})
		d.refused(mailbox.DeleteMailbox{Mailbox: box})
	}
	d.state(dec, Open)
	d.state(unknown, Open)
	d.lies(dec, Action, mailbox.Inbox)
	d.lies(unknown, Action, mailbox.Inbox)

	d.mustAct(d.move(dec, Action, Approve))
	for _, to := range []mailbox.MailboxID{Archive, Trash, mine} {
		d.refused(d.move(dec, Approve, to))
	}
	d.refused(deleted(Approve, d.uid(Approve, dec.Mail)))
	d.clock.add(25 * time.Hour)
	d.tend()
	d.state(dec, Approved)
}

func TestExpiredIsNotMoved(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	d.clock.add(25 * time.Hour)
	d.refused(d.move(dec, Action, Approve))
	d.refused(mailbox.CopyEntries{From: Action, To: Approve, UIDs: d.uid(Action, dec.Mail)})
	d.state(dec, Open)
}

// Moved in time, decided although the expiry falls into the window.
func TestMovedBeforeExpiry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	d.clock.add(24*time.Hour - 5*time.Second)
	d.mustAct(d.move(dec, Action, Approve))
	d.clock.add(10 * time.Second) // expired, but within the window
	d.tend()
	d.state(dec, Deciding)
	d.clock.add(10 * time.Second)
	d.tend()
	d.state(dec, Approved)
}

func TestFilingTheInboxEntry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	mine := d.folder("Mine")
	d.mustAct(d.move(dec, mailbox.Inbox, mine))
	d.lies(dec, Action, mine)
	d.refused(d.move(dec, mine, Approve))
	if _, err := d.a.Decide(t.Context(), d.me.Account, dec.ID, "approve", "", by("me")); err != nil {
		t.Fatal(err)
	}
	d.lies(dec, mine)

	dec = d.ask(decisionApproval)
	d.mustAct(d.move(dec, mailbox.Inbox, mine), mailbox.DeleteMailbox{Mailbox: mine})
	d.lies(dec, Action)
	if _, err := d.a.Decide(t.Context(), d.me.Account, dec.ID, "approve", "", by("me")); err != nil {
		t.Fatal(err)
	}
	d.lies(dec, Archive)
}

func TestFlagsAreFree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	for _, box := range []mailbox.MailboxID{Action, mailbox.Inbox} {
		d.mustAct(mailbox.StoreFlags{Mailbox: box, UIDs: d.uid(box, dec.Mail), Op: imap.StoreFlagsAdd,
			Flags: []imap.Flag{imap.FlagSeen, imap.FlagAnswered, "$Approved"}})
	}
	running := d.list(d.me.Account, Running)[0]
	d.mustAct(mailbox.StoreFlags{Mailbox: Running, UIDs: imap.UIDSetNum(running.uid), Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagFlagged}})
	d.state(dec, Open)
}

func TestDeletingAStatusCancels(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(d *desk, uids imap.UIDSet){
		"deleted flag": func(d *desk, uids imap.UIDSet) { d.mustAct(deleted(Running, uids)) },
		"move to Trash": func(d *desk, uids imap.UIDSet) {
			d.mustAct(mailbox.MoveEntries{From: Running, To: Trash, UIDs: uids})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			r := d.mustGive(d.me, d.message(d.me, "say a"), "pizza@localhost")
			other := d.mustGive(d.me, d.message(d.me, "say b"), "pizza@localhost")
			var uids imap.UIDSet
			for _, s := range d.count(d.me.Account, Running, 2) {
				if s.tag == statusTag(runID(r.Task, 1)) {
					uids = imap.UIDSetNum(s.uid)
				}
			}
			d.refused(mailbox.MoveEntries{From: Running, To: Archive, UIDs: uids})
			do(d, uids)
			d.count(d.me.Account, Running, 1)
			st, err := Fold(d.journal(runID(r.Task, 1)))
			if err != nil || st.Cancel == nil || st.Cancel.By.Via != viaDelete {
				t.Errorf("cancel %+v, %v", st.Cancel, err)
			}
			if st, _ := Fold(d.journal(runID(other.Task, 1))); st.Cancel != nil {
				t.Error("the other task was cancelled too")
			}
		})
	}
}

func TestScopesMayNotDecide(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	for _, scope := range []mailbox.Scope{mailbox.ScopeRead, mailbox.ScopeSend} {
		if _, err := d.actAs(scope, d.move(dec, Action, Approve)); !isKind(err, mailbox.Denied) {
			t.Errorf("%s: %v, want Denied", scope, err)
		}
	}
	d.state(dec, Open)
}

func TestSentCopies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	raw := d.message(d.me, "say a", "Message-ID: <sent@test>")
	d.mustGive(d.me, raw, "pizza@localhost")
	ours := d.count(d.me.Account, Sent, 1)[0]
	theirs, err := d.append(Sent, raw, imap.FlagSeen)
	if err != nil {
		t.Fatal(err)
	}
	if left := d.count(d.me.Account, Sent, 1)[0]; left.id != theirs || left.uid <= ours.uid {
		t.Errorf("left %d at %d, want the program's %d", left.id, left.uid, theirs)
	}
	body, err := d.store.OpenMessage(t.Context(), d.me.Account, ours.id)
	if err != nil {
		t.Fatalf("the run's input went with our copy: %v", err)
	}
	body.Close()
	if n := len(d.runs(d.me.Account)); n != 1 {
		t.Errorf("APPEND to Sent made %d runs, want 1", n)
	}
	d.append(Sent, raw, imap.FlagSeen) // a second copy of theirs is theirs
	d.count(d.me.Account, Sent, 2)
}

func TestTouchedSentCopyStays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, tt := range []struct {
		name  string
		op    imap.StoreFlagsOp
		flags []imap.Flag
		stays bool
	}{
		{"flagged", imap.StoreFlagsAdd, []imap.Flag{imap.FlagFlagged}, true},
		{"unread", imap.StoreFlagsDel, []imap.Flag{imap.FlagSeen}, true},
		{"read once more", imap.StoreFlagsAdd, []imap.Flag{imap.FlagSeen}, false},
		{"set to what it has", imap.StoreFlagsSet, []imap.Flag{imap.FlagSeen}, false},
	} {
		mid := strings.ReplaceAll(tt.name, " ", "-") + "@test"
		raw := d.message(d.me, "say a", "Message-ID: <"+mid+">")
		d.mustGive(d.me, raw, "pizza@localhost")
		list := d.list(d.me.Account, Sent)
		ours := list[len(list)-1]
		d.mustAct(mailbox.StoreFlags{Mailbox: Sent, UIDs: imap.UIDSetNum(ours.uid), Op: tt.op, Flags: tt.flags})
		if _, err := d.append(Sent, raw, imap.FlagSeen); err != nil {
			t.Fatal(err)
		}
		stays := slices.ContainsFunc(d.list(d.me.Account, Sent), func(s shown) bool { return s.id == ours.id })
		if stays != tt.stays {
			t.Errorf("%s: our copy stays: %v, want %v", tt.name, stays, tt.stays)
		}
	}
}

func TestOwnFoldersStartNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	mine := d.folder("Mine")
	for _, box := range []mailbox.MailboxID{mailbox.Inbox, Drafts, Archive, Junk, Trash, Sent, mine} {
		if _, err := d.append(box, d.message(d.me, "call write_file {}")); err != nil {
			t.Errorf("APPEND to %d: %v", box, err)
		}
	}
	if n := len(d.runs(d.me.Account)); n != 0 {
		t.Errorf("%d runs", n)
	}
}

// A record that does not decode refuses the act; it never panics the commit.
func TestGuardMeetsDamage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	d.commit(mailbox.PutRecord{Key: decisionKey(dec.ID), Any: true, Value: []byte("{")})
	_, err := d.act(d.move(dec, Action, Approve))
	var me *mailbox.Error
	if !errors.As(err, &me) || me.Kind != mailbox.Internal {
		t.Errorf("got %v, want Internal", err)
	}
	d.lies(dec, Action, mailbox.Inbox)
}
