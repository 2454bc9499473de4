package agent

import (
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
	"pizza/mailbox/boltstore"
)

// restart opens the store anew, as a server that starts does, over what is on disk.
func restart(t *testing.T, dir string, d *desk) {
	t.Helper()
	if err := d.store.Close(); err != nil {
		t.Fatal(err)
	}
	guard := &lateGuard{}
	store, err := boltstore.Open(dir, boltstore.Options{Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	opt := d.a.opt
	opt.Store = store
	if guard.a, err = New(opt); err != nil {
		t.Fatal(err)
	}
	d.a, d.store = guard.a, store
}

// Which entry was copied is known after a restart.
func TestCopyOutlivesARestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		copied, gone mailbox.MailboxID
		late         time.Duration // of the deletion
		during, then DecisionState
	}{
		{"its own in Action", Action, Action, 0, Deciding, Approved},
		{"its own in INBOX", mailbox.Inbox, mailbox.Inbox, 0, Deciding, Approved},
		{"INBOX's", Action, mailbox.Inbox, 0, Open, Open},
		{"Action's", mailbox.Inbox, Action, 0, Deciding, Rejected},
		{"its own in INBOX, too late", mailbox.Inbox, mailbox.Inbox, time.Minute, Open, Open},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, dir := newDeskIn(t)
			dec := d.ask(decisionApproval)
			d.mustAct(mailbox.CopyEntries{From: tt.copied, To: Approve, UIDs: d.uid(tt.copied, dec.Mail)})
			restart(t, dir, d)
			d.clock.add(tt.late) // and nothing was tended meanwhile
			d.mustAct(deleted(tt.gone, d.uid(tt.gone, dec.Mail)))
			d.mustAct(mailbox.Expunge{Mailbox: tt.gone})
			d.state(dec, tt.during)
			restart(t, dir, d)
			d.clock.add(2 * d.a.opt.Window)
			d.tend()
			d.state(dec, tt.then)
		})
	}
}

// A record of before the entry that was copied was kept decides nothing: neither one that
// waits for a deletion, nor one that any deletion may have begun.
func TestCopyOfBeforeDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, box := range []mailbox.MailboxID{Action, mailbox.Inbox} {
		d := newDesk(t)
		waits, begun := d.ask(decisionApproval), d.ask(decisionApproval)
		for _, dec := range []Decision{waits, begun} {
			d.mustAct(mailbox.CopyEntries{From: box, To: Approve, UIDs: d.uid(box, dec.Mail)})
		}
		d.forgetUID(waits)
		d.mustAct(deleted(box, d.uid(box, waits.Mail)))
		d.state(waits, Open)

		d.mustAct(deleted(box, d.uid(box, begun.Mail)))
		d.mustAct(mailbox.Expunge{Mailbox: box, UIDs: d.uid(box, begun.Mail)})
		d.state(begun, Deciding)
		d.forgetUID(begun)

		d.clock.add(2 * d.a.opt.Window)
		d.tend()
		for _, dec := range []Decision{waits, begun} {
			d.state(dec, Open)
			d.lies(dec, Action, mailbox.Inbox)
			if n := len(d.decidedEvents(dec.Run)); n != 0 {
				t.Errorf("%d decisions in the journal", n)
			}
		}
	}
}

// forgetUID makes the record of a decision one of before.
func (d *desk) forgetUID(dec Decision) {
	d.t.Helper()
	got, version, err := d.a.loadDecision(d.t.Context(), d.me.Account, dec.ID)
	if err != nil || got.SourceUID == imap.UID(0) {
		d.t.Fatalf("source %d, %v", got.SourceUID, err)
	}
	got.SourceUID = 0
	if got.State == Open {
		got.Source = 0
	}
	d.commit(decisionPut(got, version))
}
