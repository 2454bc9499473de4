package agent

import (
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// What is ours is known by the records: a copy of the same octets, as an import or APPEND
// makes it, is mail like any other.
func TestOursIsKnownByRecords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	d.notes(Memory, 5)
	d.mustAct(mailbox.MoveEntries{From: Memory, To: Trash, UIDs: imap.UIDSet{{Start: 1, Stop: 0}}})
	d.passWindow()
	q := d.question()
	var ids []mailbox.MessageID
	for _, box := range []mailbox.MailboxID{Action, mailbox.Inbox} {
		for _, s := range d.list(d.me.Account, box) {
			d.commit(d.appendOp(Archive, s.raw))
		}
		snap, err := d.store.Snapshot(t.Context(), d.me.Account, box)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range snap.All() {
			ids = append(ids, e.Message)
		}
	}
	if kinds := d.oursOf(ids); !strings.Contains(kinds, "approval "+dec.ID) || !strings.Contains(kinds, "question "+d.askOf(q.mid)) {
		t.Errorf("ours: %s", kinds)
	}
	snap, err := d.store.Snapshot(t.Context(), d.me.Account, Archive)
	if err != nil || snap.Len() < 2 {
		t.Fatalf("%d copies, %v", snap.Len(), err)
	}
	ids = nil
	for _, e := range snap.All() {
		ids = append(ids, e.Message)
	}
	if kinds := d.oursOf(ids); kinds != "" {
		t.Errorf("copies are taken for ours: %s", kinds)
	}
}

// oursOf lists kind and decision of those that are ours.
func (d *desk) oursOf(ids []mailbox.MessageID) string {
	d.t.Helper()
	var b strings.Builder
	err := d.store.Messages(d.t.Context(), d.me.Account, ids, func(m *mailbox.Message) error {
		ref, ok, err := d.a.Ours(d.t.Context(), d.me.Account, m)
		if ok {
			b.WriteString(ref.Kind + " " + ref.Decision + ref.Ask + "; ")
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return b.String()
}

// askOf is the id of the question that a mail puts.
func (d *desk) askOf(messageID string) string {
	d.t.Helper()
	recs, err := d.store.Records(d.t.Context(), d.me.Account, askKey(""), "", 0)
	if err != nil || len(recs) != 1 {
		d.t.Fatalf("%d questions about %s, %v", len(recs), messageID, err)
	}
	return strings.TrimPrefix(recs[0].Key, askKey(""))
}

// The question what becomes of notes that were put back is answered by its id.
func TestQuestionAnsweredByID(t *testing.T) {
	t.Parallel()
	for verb, left := range map[string]int{"delete": 0, "keep": 5} {
		d := newDesk(t)
		d.mustAct(mailbox.MoveEntries{From: Memory, To: Trash, UIDs: d.notes(Memory, 5)})
		d.passWindow()
		id := d.askOf(d.question().mid)
		by := DecidedBy{Login: "me", Via: "cli"}
		s, err := d.a.Show(t.Context(), d.me.Account, strings.ToLower(id))
		if err != nil || len(s.Open) != 1 || strings.Join(s.Open[0].Verbs(), " ") != "delete keep" {
			t.Errorf("%+v, %v", s, err)
		}
		for _, wrong := range []string{"approve", "cancel"} {
			if _, err := d.a.Decide(t.Context(), d.me.Account, id, wrong, "", by); !isKind(err, mailbox.Invalid) || !strings.Contains(err.(*mailbox.Error).Text, "delete, keep, with `pizza answer "+id) {
				t.Errorf("%s: %v", wrong, err)
			}
		}
		d.count(d.me.Account, Memory, 5)
		if dec, err := d.a.Decide(t.Context(), d.me.Account, id, verb, "", by); err != nil || dec.State != Answered || dec.Subject != "Delete 5 notes?" {
			t.Errorf("%s: %+v, %v", verb, dec, err)
		}
		d.count(d.me.Account, Memory, left)
		if _, err := d.a.Decide(t.Context(), d.me.Account, id, verb, "", by); !isKind(err, mailbox.NotFound) {
			t.Errorf("%s again: %v", verb, err)
		}
	}
}
