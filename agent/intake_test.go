package agent

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

func TestSubmitStartsTask(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.mustGive(d.me, d.message(d.me, "say hello", "X-Pizza-Model: test:other"), "Pizza@pizza.localhost", "pizza@localhost")
	if len(r.Task) != 10 {
		t.Fatalf("task %q, want 10 characters", r.Task)
	}
	sent := d.count(d.me.Account, Sent, 1)
	if !slices.Equal(sent[0].flags, []imap.Flag{imap.FlagSeen}) {
		t.Errorf("flags in Sent %v, want \\Seen", sent[0].flags)
	}
	d.count(d.me.Account, Running, 1)
	d.count(d.me.Account, mailbox.Inbox, 0)
	runs := d.runs(d.me.Account)
	if len(runs) != 1 || runs[0].Task != r.Task || runs[0].Inputs[0].Message != sent[0].id || runs[0].Model != "test:other" {
		t.Fatalf("runs %+v, want one of %s about message %d", runs, r.Task, sent[0].id)
	}
	// The run keeps its input, whatever the person deletes.
	uids := imap.UIDSetNum(sent[0].uid)
	d.mustAct(mailbox.StoreFlags{Mailbox: Sent, UIDs: uids, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}},
		mailbox.Expunge{Mailbox: Sent, UIDs: uids})
	body, err := d.store.OpenMessage(t.Context(), d.me.Account, sent[0].id)
	if err != nil {
		t.Fatalf("the input of a live run went with its entry in Sent: %v", err)
	}
	body.Close()
}

// A client that missed the answer sends the same bytes again; the door has put
// another Received (and Date) on them.
func TestSubmitRepeatStoresNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	raw := d.message(d.me, "say once", "Message-ID: <once@test>", "Date: Tue, 1 Dec 2026 12:00:00 +0000")
	first := d.mustGive(d.me, "Received: from a by b; 1\r\n"+raw, "pizza@localhost")
	again := d.mustGive(d.me, "Received: from c by d; 2\r\n"+strings.Replace(raw, "12:00:00", "12:00:09", 1), "PIZZA@localhost")
	if again != first {
		t.Errorf("repeat got %+v, want %+v", again, first)
	}
	d.count(d.me.Account, Sent, 1)
	if n := len(d.runs(d.me.Account)); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}

	for name, other := range map[string]string{
		"other body, same Message-ID": strings.Replace(raw, "say once", "say twice", 1),
		"other Message-ID, same body": strings.Replace(raw, "<once@", "<twice@", 1),
	} {
		if got := d.mustGive(d.me, other, "pizza@localhost"); got.Task == first.Task {
			t.Errorf("%s: joined task %s as a repeat", name, got.Task)
		}
	}
	if got := d.mustGive(d.me, raw, "pizza@localhost", "bob@localhost"); got.Task == first.Task {
		t.Error("other recipients: taken for a repeat")
	}
}

func TestSubmitRepeatAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	raw := d.message(d.me, "say once")
	receipts := make([]mailbox.Receipt, 20)
	var wg sync.WaitGroup
	for i := range receipts {
		wg.Go(func() {
			r, err := d.give(d.me, raw, "pizza@localhost")
			if err != nil {
				t.Error(err)
			}
			receipts[i] = r
		})
	}
	wg.Wait()
	for _, r := range receipts {
		if r != receipts[0] {
			t.Fatalf("receipts differ: %+v, %+v", r, receipts[0])
		}
	}
	d.count(d.me.Account, Sent, 1)
	d.count(d.me.Account, Running, 1)
}

func TestSubmitAuthor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, tt := range []struct {
		name   string
		header []string
		ok     bool
	}{
		{"own", []string{"From: Me <me@localhost>"}, true},
		{"own, alias, case", []string{"From: ME@Pizza.Localhost"}, true},
		{"with the dot of the root", []string{"From: me@localhost."}, true},
		{"a letter that looks like ours", []string{"From: m\u0435@localhost"}, false},
		{"without a domain", []string{"From: me"}, false},
		{"forged", []string{"From: bob@localhost"}, false},
		{"the agent", []string{"From: pizza@localhost"}, false},
		{"one of two", []string{"From: me@localhost, bob@localhost"}, false},
		{"second field", []string{"From: me@localhost", "From: bob@localhost"}, false},
		{"sender", []string{"From: me@localhost", "Sender: bob@localhost"}, false},
		{"no address", []string{"From: nobody"}, false},
		{"display name only looks right", []string{`From: "me@localhost" <bob@localhost>`}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := d.give(d.me, d.message(d.me, "say x", tt.header...), "pizza@localhost")
			if tt.ok && err != nil {
				t.Fatalf("refused: %v", err)
			}
			if !tt.ok && (!isKind(err, mailbox.Denied) || !strings.Contains(textOfError(err), "me@localhost")) {
				t.Fatalf("got %v, want Denied naming me@localhost", err)
			}
		})
	}
	read := d.me
	read.Scope = mailbox.ScopeRead
	if _, err := d.give(read, d.message(d.me, "say x"), "pizza@localhost"); !isKind(err, mailbox.Denied) {
		t.Errorf("read-only credential: %v, want Denied", err)
	}
}

func TestSubmitRecipients(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	r := d.mustGive(d.me, d.message(d.me, "say hello"), "pizza@localhost", "me@localhost", "ME@pizza.localhost", "bob@localhost")
	if r.Task == "" {
		t.Error("no task")
	}
	d.tend()
	own := d.count(d.me.Account, mailbox.Inbox, 1)
	if len(own[0].flags) != 0 {
		t.Errorf("own delivery has flags %v, want none", own[0].flags)
	}
	d.count(d.bob.Account, mailbox.Inbox, 1)
	d.count(d.bob.Account, Sent, 0)
	if n := len(d.runs(d.bob.Account)); n != 0 {
		t.Errorf("%d runs in the recipient's account, want 0", n)
	}

	if _, err := d.give(d.me, d.message(d.me, "x"), "pizza@localhost", "nobody@localhost"); !isKind(err, mailbox.NotFound) {
		t.Errorf("unknown recipient: %v, want NotFound", err)
	}
	if _, err := d.give(d.me, d.message(d.me, "x")); !isKind(err, mailbox.Invalid) {
		t.Errorf("no recipient: %v, want Invalid", err)
	}
	d.count(d.me.Account, Sent, 1)
}

func TestSubmitAutomaticStartsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	dec := d.ask(decisionApproval)
	before := len(d.runs(d.me.Account))
	sent := len(d.list(d.me.Account, Sent))
	inbox := len(d.list(d.me.Account, mailbox.Inbox))
	tries := []struct{ name, from, header string }{
		{"auto-submitted", "me@localhost", "Auto-Submitted: auto-replied"},
		{"null reverse-path", "", "X-Any: 1"},
		{"bulk", "me@localhost", "Precedence: bulk"},
		{"our own mail back", "me@localhost", "Message-ID: <" + dec.MailID + ">"},
	}
	for _, tt := range tries {
		for _, to := range []string{"pizza@localhost", "pizza+a." + dec.ID + "@localhost"} {
			raw := d.message(d.me, "approve", tt.header, "In-Reply-To: <"+dec.MailID+">")
			r, err := d.giveFrom(d.me, tt.from, raw, to)
			if err != nil || r.Task != "" || !strings.Contains(r.Note, "automatic mail starts nothing") {
				t.Errorf("%s to %s: %+v, %v; want a note and no task", tt.name, to, r, err)
			}
		}
	}
	if n := len(d.runs(d.me.Account)); n != before {
		t.Errorf("%d runs, want %d", n, before)
	}
	d.state(dec, Open)
	d.count(d.me.Account, mailbox.Inbox, inbox)               // and nothing is answered
	filed := d.count(d.me.Account, Sent, sent+2*len(tries)-1) // the last has the Message-ID of the one before
	if last := filed[len(filed)-1]; !slices.Contains(last.flags, keywordAutomatic) {
		t.Errorf("filed with flags %v, want %s", last.flags, keywordAutomatic)
	}
	// To people it is delivered.
	if _, err := d.giveFrom(d.me, "", d.message(d.me, "report", "Auto-Submitted: auto-generated"), "bob@localhost"); err != nil {
		t.Fatal(err)
	}
	d.tend()
	d.count(d.bob.Account, mailbox.Inbox, 1)
}

func TestSubmitHelpAndStatus(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	r := d.mustGive(d.me, d.message(d.me, "?"), "pizza+help@localhost", "pizza+status@localhost")
	if r.Task != "" {
		t.Errorf("task %s, want none", r.Task)
	}
	inbox := d.count(d.me.Account, mailbox.Inbox, 3)
	if !strings.Contains(inbox[1].raw, "pizza@localhost") || !strings.Contains(inbox[1].raw, "X-Pizza-Kind: notice") {
		t.Errorf("help mail:\n%s", inbox[1].raw)
	}
	if !strings.Contains(inbox[2].raw, dec.Subject) {
		t.Errorf("status mail does not name the open decision:\n%s", inbox[2].raw)
	}
	if !strings.Contains(inbox[2].raw, "Auto-Submitted: auto-replied") {
		t.Error("an answer is not marked as automatic")
	}
}

// A program that files its copy before it sends (mutt's Fcc) has the only one.
func TestSubmitAfterOwnSentCopy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	raw := d.message(d.me, "say x", "Message-ID: <fcc@test>")
	d.append(Sent, raw, imap.FlagSeen)
	d.mustGive(d.me, raw, "pizza@localhost")
	d.count(d.me.Account, Sent, 1)
	if n := len(d.runs(d.me.Account)); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

// append stores a message as IMAP APPEND does.
func (d *desk) append(box mailbox.MailboxID, raw string, flags ...imap.Flag) (mailbox.MessageID, error) {
	d.t.Helper()
	op := d.appendOp(box, raw, flags...)
	_, err := d.act(op)
	return op.ID, err
}

func (d *desk) appendOp(box mailbox.MailboxID, raw string, flags ...imap.Flag) mailbox.AddMessage {
	d.t.Helper()
	blob, err := d.store.Stage(d.t.Context(), d.me.Account, strings.NewReader(raw), 0)
	if err != nil {
		d.t.Fatal(err)
	}
	id, err := d.store.NextMessageID(d.me.Account)
	if err != nil {
		d.t.Fatal(err)
	}
	return mailbox.AddMessage{ID: id, Blob: blob, Structure: parsed(d.t, raw), Flags: flags, Places: []mailbox.MailboxID{box}}
}

// Without a Message-ID of its own the same mail is a retry for ten minutes, and then
// a task of its own: a script that sends the same every day means it.
func TestRepeatWithoutMessageID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	give := func(id string) string {
		t.Helper()
		raw := d.message(d.me, "say the same every day", "Message-ID: <"+id+"@pizza.localhost>", "Subject: daily")
		sub := mailbox.Submission{Identity: d.me, Envelope: mailbox.Envelope{From: "me@localhost", To: []string{"pizza@localhost"}}, NoID: true}
		r, err := d.submit(sub, raw)
		if err != nil {
			t.Fatal(err)
		}
		return r.Task
	}
	first := give("made1")
	if again := give("made2"); again != first {
		t.Errorf("a retry began %s beside %s", again, first)
	}
	d.clock.add(noIDRepeat)
	second := give("made3")
	if second == first {
		t.Error("the same mail ten minutes later began no task")
	}
	if again := give("made4"); again != second {
		t.Errorf("its retry got %s, want %s", again, second)
	}
}
