package agent

import (
	"fmt"
	"testing"
	"time"

	"pizza/mailbox"
)

// kept counts the records under a prefix.
func (d *desk) kept(prefix string) int {
	d.t.Helper()
	recs, err := d.store.Records(d.t.Context(), d.me.Account, prefix, "", 0)
	if err != nil {
		d.t.Fatal(err)
	}
	return len(recs)
}

func (d *desk) wantKept(when string, taken, sent int) {
	d.t.Helper()
	if gotTaken, gotSent := d.kept("taken/"), d.kept("sent/"); gotTaken != taken || gotSent != sent {
		d.t.Errorf("%s: %d and %d records are kept, want %d and %d", when, gotTaken, gotSent, taken, sent)
	}
}

const day = 24 * time.Hour

// What tells a repeat from something new is kept for 30 days, and no record for ever.
func TestPrune(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withBob()
	first := d.message(d.me, "to bob")
	one := d.mustGive(d.me, first, "pizza@localhost")
	d.clock.add(10 * day)
	second := d.message(d.me, "to bob again")
	if _, err := d.append(Sent, second); err != nil { // the program's own copy, before it sends
		t.Fatal(err)
	}
	d.mustGive(d.me, second, "bob@localhost")

	d.clock.add(20 * day)
	d.tend()
	d.wantKept("after 30 days", 2, 2)
	if again := d.mustGive(d.me, first, "pizza@localhost"); again.Task != one.Task {
		t.Errorf("a repeat after 30 days began %s beside %s", again.Task, one.Task)
	}
	d.clock.add(day)
	d.tend()
	d.wantKept("after 31 days", 1, 1)
	d.clock.add(10 * day)
	d.tend()
	d.wantKept("after 41 days", 0, 0)
	if next, err := d.store.NextDue(t.Context(), d.me.Account, DuePrune); err != nil || !next.IsZero() {
		t.Errorf("still due at %v, %v", next, err)
	}
	d.count(d.me.Account, Sent, 2) // mail itself stays
}

// A program that copies into Sent what it has sent elsewhere, years of it perhaps,
// leaves no record for ever.
func TestPruneOfACopyThatWasNeverSubmitted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	raw := d.message(d.me, "sent elsewhere")
	for range 2 { // the second one counts
		if _, err := d.append(Sent, raw); err != nil {
			t.Fatal(err)
		}
		d.clock.add(10 * day)
	}
	d.clock.add(20 * day)
	d.tend()
	d.wantKept("30 days after the last copy", 0, 1)
	d.clock.add(day)
	d.tend()
	d.wantKept("after 31 days", 0, 0)
	d.count(d.me.Account, Sent, 2)
}

// A record that is put again goes on the later day.
func TestPruneOfARenewedRecord(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	give := func(id string) {
		t.Helper()
		sub := mailbox.Submission{Identity: d.me, Envelope: mailbox.Envelope{From: "me@localhost", To: []string{"pizza@localhost"}}, NoID: true}
		if _, err := d.submit(sub, d.message(d.me, "daily", "Message-ID: <"+id+"@door>", "Subject: daily")); err != nil {
			t.Fatal(err)
		}
	}
	give("1")
	d.clock.add(20 * day)
	give("2")
	d.clock.add(11 * day)
	d.tend()
	d.wantKept("after 31 days", 1, 0)
	d.clock.add(20 * day)
	d.tend()
	d.wantKept("after 51 days", 0, 0)
	d.count(d.me.Account, Sent, 2)
}

func TestPruneOfManyRecords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var ops []mailbox.Op
	for i := range 2*pruneBatch + 1 {
		ops = append(ops, d.a.passing(mailbox.PutRecord{Key: fmt.Sprintf("taken/%04d", i), Value: []byte("{}")})...)
	}
	ops = append(ops, d.a.passing(mailbox.PutRecord{Key: "taken/damaged", Value: []byte("{")})...)
	d.commit(ops...)
	d.commit(mailbox.PutRecord{Key: "sent/other", Value: []byte("{}")})
	d.clock.add(31 * day)
	d.tend()
	d.wantKept("after 31 days", 0, 1)
}
