package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pizza/mailbox"
)

// deafStore fails one kind of read.
type deafStore struct {
	mailbox.Store
	record  string            // key of the record that cannot be read
	message mailbox.MessageID // message whose bytes cannot be read
	err     error
}

func (s deafStore) Record(ctx context.Context, account mailbox.AccountID, key string) (mailbox.Record, error) {
	if key == s.record {
		return mailbox.Record{}, s.err
	}
	return s.Store.Record(ctx, account, key)
}

func (s deafStore) OpenMessage(ctx context.Context, account mailbox.AccountID, id mailbox.MessageID) (mailbox.Body, error) {
	if id == s.message {
		return nil, s.err
	}
	return s.Store.OpenMessage(ctx, account, id)
}

// What we wrote ourselves, left in a reply without marks, is not the person's text. It
// is only when our mail is gone that nobody can tell; an error of the store says so.
func TestParentTextErrors(t *testing.T) {
	t.Parallel()
	const ours = "The oven is on the second floor, behind the blue door.\nThe key hangs beside it, on a red ribbon."
	d := newDesk(t)
	parent := d.noted(ours)
	reply, err := d.append(mailbox.Inbox, d.message(d.me, "Thanks!\n\n"+ours, "In-Reply-To: <"+parent.mid+">"))
	if err != nil {
		t.Fatal(err)
	}
	read := func() (string, error) {
		in, err := d.a.readInput(t.Context(), d.me.Account, Inbound{Message: reply})
		if err != nil {
			return "", err
		}
		var login strings.Builder
		for _, p := range in.parts {
			if p.Login {
				login.WriteString(p.Text)
			}
		}
		return login.String(), nil
	}
	if got, err := read(); got != "Thanks!" || err != nil {
		t.Fatalf("read %q, %v", got, err)
	}
	broken := errors.New("the disk is wet")
	for name, s := range map[string]deafStore{
		"index":   {record: midKey(parent.mid), err: broken},
		"message": {message: parent.id, err: broken},
		"reply":   {message: reply, err: broken},
	} {
		s.Store = d.store
		d.a.store = s
		if got, err := read(); !errors.Is(err, broken) {
			t.Errorf("%s: read %q, %v", name, got, err)
		}
	}
	d.a.store = d.store
	d.commit(mailbox.RemoveEntry{Message: parent.id, Mailbox: mailbox.Inbox})
	if got, err := read(); !strings.Contains(got, "blue door") || err != nil {
		t.Errorf("with our mail gone: read %q, %v", got, err)
	}
}

// The mail of a decision is kept in its record.
func TestParentTextOfADecision(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dec := d.ask(decisionApproval)
	m := mailbox.Message{Structure: parsed(t, d.message(d.me, "x", "In-Reply-To: <"+dec.MailID+">"))}
	if got, err := d.a.parentText(t.Context(), d.me.Account, &m); got != dec.Text || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	broken := errors.New("the disk is wet")
	d.a.store = deafStore{Store: d.store, record: decisionKey(dec.ID), err: broken}
	if got, err := d.a.parentText(t.Context(), d.me.Account, &m); !errors.Is(err, broken) {
		t.Errorf("%q, %v", got, err)
	}
}

// noted puts a note of ours into INBOX.
func (d *desk) noted(text string) shown {
	d.t.Helper()
	o, err := d.a.owner(d.t.Context(), d.me.Account)
	if err != nil {
		d.t.Fatal(err)
	}
	ops, err := d.a.noteOps(d.t.Context(), o, note{subject: "note", text: text})
	if err != nil {
		d.t.Fatal(err)
	}
	d.commit(ops...)
	list := d.list(d.me.Account, mailbox.Inbox)
	return list[len(list)-1]
}
