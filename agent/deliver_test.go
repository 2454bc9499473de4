package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/mailbox"
)

// brokenStore fails the commits of one account while it is told to.
type brokenStore struct {
	mailbox.Store
	mu      sync.Mutex
	account mailbox.AccountID
	err     error
	after   bool // the commit happens, and then the error is returned: a lost answer
}

func (s *brokenStore) set(account mailbox.AccountID, err error, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account, s.err, s.after = account, err, after
}

func (s *brokenStore) Commit(ctx context.Context, account mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error) {
	s.mu.Lock()
	err, after := s.err, s.after
	hit := account == s.account
	s.mu.Unlock()
	if !hit || err == nil {
		return s.Store.Commit(ctx, account, tx)
	}
	if after {
		if _, err := s.Store.Commit(ctx, account, tx); err != nil {
			return mailbox.Result{}, err
		}
	}
	return mailbox.Result{}, err
}

// breakable puts a brokenStore under the agent.
func (d *desk) breakable() *brokenStore {
	s := &brokenStore{Store: d.store}
	d.a.store = s
	return s
}

func (d *desk) deliveries() int {
	d.t.Helper()
	recs, err := d.store.Records(d.t.Context(), d.me.Account, deliveryKey(""), "", 0)
	if err != nil {
		d.t.Fatal(err)
	}
	return len(recs)
}

func TestDeliverToAnotherAccount(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	raw := d.message(d.me, "hello bob", "Subject: hi")
	r := d.mustGive(d.me, raw, "bob@localhost")
	if r.Task != "" || r.Note != "delivered" {
		t.Errorf("receipt %+v", r)
	}
	d.tend()
	d.tend()
	got := d.count(d.bob.Account, mailbox.Inbox, 1)[0]
	if got.raw != raw || len(got.flags) != 0 {
		t.Errorf("delivered with %v:\n%q\nwant\n%q", got.flags, got.raw, raw)
	}
	if n := d.deliveries(); n != 0 {
		t.Errorf("%d deliveries left", n)
	}
	d.count(d.me.Account, mailbox.Inbox, 0)
}

// The commit in the other file went through, but the answer (or the process) was
// lost: the next try finds it there.
func TestDeliverOnceOverALostAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	broken := d.breakable()
	d.mustGive(d.me, d.message(d.me, "hello"), "bob@localhost")
	broken.set(d.bob.Account, errors.New("lost"), true)
	d.tend()
	d.count(d.bob.Account, mailbox.Inbox, 1)
	if n := d.deliveries(); n != 1 {
		t.Fatalf("%d deliveries left, want 1", n)
	}
	d.tend() // its lease keeps it
	broken.set("", nil, false)
	d.clock.add(tendLease + time.Second)
	d.tend()
	d.count(d.bob.Account, mailbox.Inbox, 1)
	if n := d.deliveries(); n != 0 {
		t.Errorf("%d deliveries left", n)
	}
	// So when the sender's side could not be cleared.
	d.mustGive(d.me, d.message(d.me, "again"), "bob@localhost")
	broken.set(d.me.Account, errors.New("disk"), false)
	d.tend()
	d.count(d.bob.Account, mailbox.Inbox, 2)
	broken.set("", nil, false)
	d.clock.add(tendLease + time.Second)
	d.tend()
	d.count(d.bob.Account, mailbox.Inbox, 2)
}

// That a delivery came in is known as long as its sender may try it again, however long
// that is, and no longer than 30 days after.
func TestPruneOfWhatWasReceived(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	broken := d.breakable()
	received := func(want int) {
		t.Helper()
		recs, err := d.store.Records(t.Context(), d.bob.Account, receivedPrefix, "", 0)
		if err != nil || len(recs) != want {
			t.Errorf("%d records of what was received, want %d; %v", len(recs), want, err)
		}
	}
	d.mustGive(d.me, d.message(d.me, "hello"), "bob@localhost")
	broken.set(d.me.Account, errors.New("disk"), false) // the sender's side is not cleared
	d.tend()
	d.clock.add(31 * day)
	if next := d.a.tendOnce(t.Context(), d.bob.Account); !next.After(d.clock.Now()) {
		t.Errorf("not worked: due at %v", next)
	}
	received(1)
	broken.set("", nil, false)
	d.tend()
	d.count(d.bob.Account, mailbox.Inbox, 1)
	if n := d.deliveries(); n != 0 {
		t.Errorf("%d deliveries left", n)
	}
	d.clock.add(30 * day)
	d.tend()
	received(1)
	d.clock.add(day)
	d.tend()
	received(0)
	d.count(d.bob.Account, mailbox.Inbox, 1)
}

func TestUndeliverable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		err   error
		after time.Duration
		told  string
	}{
		{"for good", &mailbox.Error{Op: "commit", Kind: mailbox.NotFound}, 0, "no such account"},
		{"for a day", &mailbox.Error{Op: "commit", Kind: mailbox.Full}, 25 * time.Hour, "disk is full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.withBob()
			broken := d.breakable()
			d.mustGive(d.me, d.message(d.me, "hello", "Subject: hi bob", "Message-ID: <hi@test>"), "bob@localhost")
			broken.set(d.bob.Account, tt.err, false)
			d.tend()
			if tt.after > 0 {
				d.count(d.me.Account, mailbox.Inbox, 0)
				d.clock.add(tt.after)
				d.tend()
			}
			told := d.count(d.me.Account, mailbox.Inbox, 1)[0]
			for _, want := range []string{"bob@localhost", tt.told, "X-Pizza-Kind: failure", "In-Reply-To: <hi@test>", "Auto-Submitted: auto-replied"} {
				if !strings.Contains(strings.Join(strings.Fields(told.raw), " "), want) {
					t.Errorf("the failure mail lacks %q:\n%s", want, told.raw)
				}
			}
			broken.set("", nil, false)
			d.clock.add(time.Hour)
			d.tend()
			d.count(d.me.Account, mailbox.Inbox, 1)
			d.count(d.bob.Account, mailbox.Inbox, 0)
		})
	}
}

// A delivery that cannot even be read ends, and the next one goes on.
func TestPoisonedDelivery(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	d.commit(
		mailbox.PutRecord{Key: deliveryKey("bad"), Value: []byte("{")},
		mailbox.PutDue{Due: mailbox.Due{Kind: DueDeliver, Key: "bad", At: d.clock.Now()}},
		mailbox.PutDue{Due: mailbox.Due{Kind: DueDeliver, Key: "none", At: d.clock.Now()}},
	)
	d.mustGive(d.me, d.message(d.me, "hello"), "bob@localhost")
	d.tend()
	d.count(d.bob.Account, mailbox.Inbox, 1)
	d.count(d.me.Account, mailbox.Inbox, 1) // the failure mail
	if next, err := d.store.NextDue(t.Context(), d.me.Account, DueDeliver); err != nil || !next.IsZero() {
		t.Errorf("still due at %v, %v", next, err)
	}
}
