package agent

import (
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// filing gives me a setting of who files in Sent.
func (d *desk) filing(who SentCopy) {
	d.a.opt.Account = func(string) AccountSettings { return AccountSettings{SentCopy: who} }
}

// What lies in Sent after a program has put its copy there before or after it sent, or
// not at all, by each setting.
func TestWhoFilesInSent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		who                  SentCopy
		none, before, behind int // copies
	}{
		{"", 1, 1, 1}, {SentAuto, 1, 1, 1}, {SentServer, 1, 2, 2}, {SentClient, 0, 1, 1},
	} {
		t.Run(string(tt.who), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.filing(tt.who)
			n := 0
			for i, want := range []int{tt.none, tt.before, tt.behind} {
				raw := d.message(d.me, "say a")
				put := func() {
					if _, err := d.append(Sent, raw, imap.FlagSeen); err != nil {
						t.Fatal(err)
					}
				}
				if i == 1 {
					put()
				}
				r := d.mustGive(d.me, raw, "pizza@localhost")
				if i == 2 {
					put()
				}
				if n += want; r.Task == "" {
					t.Error("no task")
				}
				d.count(d.me.Account, Sent, n)
			}
			if n := len(d.runs(d.me.Account)); n != 3 {
				t.Errorf("%d runs, want 3", n)
			}
			for _, s := range d.list(d.me.Account, Sent) {
				if !has(s.flags, imap.FlagSeen) {
					t.Errorf("%q is unread in Sent", s.subject)
				}
			}
		})
	}
}

// The same Message-ID with other bytes, as a program sends it that lost the answer and
// composed anew: one copy.
func TestOneCopyOfAMessageID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, body := range []string{"say a", "say a again"} {
		d.mustGive(d.me, d.message(d.me, body, "Message-ID: <same@test>"), "pizza@localhost")
	}
	if got := d.count(d.me.Account, Sent, 1)[0]; !strings.Contains(got.raw, "say a\r\n") {
		t.Errorf("the copy is %q", got.raw)
	}
	// Once the person has thrown the copy away, the next is filed.
	d.mustAct(mailbox.MoveEntries{From: Sent, To: Trash, UIDs: imap.UIDSet{{Start: 1, Stop: 0}}})
	d.mustGive(d.me, d.message(d.me, "say b", "Message-ID: <same@test>"), "pizza@localhost")
	d.count(d.me.Account, Sent, 1)
}

// A program may file its draft in Sent by MOVE: ours goes, as with APPEND. Our own that is
// moved out and back stays.
func TestADraftMovedToSent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	raw := d.message(d.me, "say a", "Message-ID: <draft@test>")
	draft, err := d.append(Drafts, raw, imap.FlagDraft)
	if err != nil {
		t.Fatal(err)
	}
	d.mustGive(d.me, raw, "pizza@localhost")
	d.mustAct(mailbox.MoveEntries{From: Drafts, To: Sent, UIDs: d.uid(Drafts, draft)})
	if got := d.count(d.me.Account, Sent, 1)[0]; got.id != draft {
		t.Errorf("left %d, want the program's %d", got.id, draft)
	}
	d.mustGive(d.me, d.message(d.me, "say b", "Message-ID: <other@test>"), "pizza@localhost")
	ours := d.count(d.me.Account, Sent, 2)[1]
	for _, m := range []mailbox.MoveEntries{{From: Sent, To: Trash}, {From: Trash, To: Sent}} {
		m.UIDs = d.uid(m.From, ours.id)
		d.mustAct(m)
	}
	d.count(d.me.Account, Sent, 2)
}

// A person files a thread: its next result arrives unread in INBOX all the same, and what
// was filed stays where it is.
func TestResultsOfAFiledThreadComeToInbox(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	first := o.send("say one")
	one := o.ended(1)[0]
	work := o.folder("Work")
	o.mustAct(mailbox.StoreFlags{Mailbox: mailbox.Inbox, UIDs: imap.UIDSetNum(one.uid), Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen}},
		mailbox.MoveEntries{From: mailbox.Inbox, To: work, UIDs: imap.UIDSetNum(one.uid)})
	if r := o.send("say two", "In-Reply-To: <"+one.mid+">"); r.Task != first.Task {
		t.Fatalf("joined %s, want %s", r.Task, first.Task)
	}
	o.until("the second result", func() bool { return len(o.list(o.me.Account, mailbox.Inbox)) == 1 })
	two := o.count(o.me.Account, mailbox.Inbox, 1)[0]
	if has(two.flags, imap.FlagSeen) || !strings.Contains(two.raw, "two") || !strings.Contains(two.raw, "<"+one.mid+">") {
		t.Errorf("%v %s", two.flags, two.raw)
	}
	o.count(o.me.Account, work, 1)
}
