package agent

import (
	"sync"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// shows lists what Unread shows; nil while it is off.
func (d *desk) shows() []shown {
	d.t.Helper()
	all, err := d.store.Mailboxes(d.t.Context(), d.me.Account)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range all {
		if m.ID == Unread && m.Hidden {
			return nil
		}
	}
	return d.list(d.me.Account, Unread)
}

func (d *desk) unread() {
	d.t.Helper()
	if err := d.store.SetView(d.t.Context(), d.me.Account, unreadRule(true)); err != nil {
		d.t.Fatal(err)
	}
}

// The setting is followed without a restart.
func TestUnreadFollowsTheSetting(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	on := map[string]bool{"me": true}
	o := newOffice(t, nil, func(opt *Options) {
		opt.Account = func(login string) AccountSettings {
			mu.Lock()
			defer mu.Unlock()
			return AccountSettings{Unread: on[login]}
		}
	})
	o.send("say hello")
	o.ended(1)
	o.until("Unread", func() bool { return len(o.shows()) == 1 })
	mu.Lock()
	on["me"] = false
	mu.Unlock()
	o.a.keepUnread(t.Context(), o.me.Account)
	if got := o.shows(); got != nil {
		t.Errorf("Unread is off and shows %v", subjects(got))
	}
}

func TestUnreadShowsNeitherJunkNorTrash(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.unread()
	for _, box := range []mailbox.MailboxID{Junk, Trash, Archive} {
		if _, err := d.append(box, d.message(d.me, "x")); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.shows(); len(got) != 1 {
		t.Fatalf("Unread shows %v", subjects(got))
	}
	// Thrown away in it: gone from it.
	d.mustAct(mailbox.MoveEntries{From: Unread, To: Trash, UIDs: imap.UIDSetNum(d.shows()[0].uid)})
	if got := d.shows(); len(got) != 0 {
		t.Errorf("Unread shows %v", subjects(got))
	}
	d.count(d.me.Account, Trash, 2)
}

// An open decision in Unread: it can be read, flagged and decided by move, as in INBOX,
// and nothing else.
func TestDecisionInUnread(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.unread()
	dec := d.ask(decisionApproval)
	d.mustAct(mailbox.StoreFlags{Mailbox: Unread, UIDs: d.uid(Unread, dec.Mail), Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagFlagged}})
	for _, to := range []mailbox.MailboxID{Archive, Trash, Junk, Drafts, Action, Tasks, Memory} {
		d.refused(d.move(dec, Unread, to))
	}
	d.refused(deleted(Unread, d.uid(Unread, dec.Mail)))
	d.lies(dec, Action, mailbox.Inbox)

	d.mustAct(d.move(dec, Unread, Approve))
	d.state(dec, Deciding)
	d.lies(dec, Approve)
	d.mustAct(d.move(dec, Unread, Action)) // it shows where it lies now
	d.state(dec, Open)

	// Without MOVE.
	uids := d.uid(Unread, dec.Mail)
	if res := d.mustAct(mailbox.CopyEntries{From: Unread, To: Reject, UIDs: uids}); len(res.Copied) != 1 {
		t.Fatalf("COPYUID %v", res.Copied)
	}
	d.state(dec, Open)
	d.mustAct(deleted(Unread, uids))
	d.state(dec, Deciding)
	d.mustAct(mailbox.Expunge{Mailbox: Unread, UIDs: uids})
	d.clock.add(d.a.opt.Window * 2)
	d.tend()
	d.state(dec, Rejected)
}
