package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pizza/mailbox"
	"pizza/providers/providertest"
)

// worked is an office with one task that has ended: a result too long for the journal, a
// file of /out and a decided approval.
func worked(t *testing.T, more ...providertest.Turn) (*office, *providertest.Model, string) {
	t.Helper()
	m := providertest.Script(append([]providertest.Turn{
		providertest.Calls(providertest.Call("r", "read_file", `{"path":"/local/docs/long.txt"}`),
			providertest.Call("o", "write_file", `{"path":"/out/made.txt","content":"made"}`),
			providertest.Call("w", "write_file", `{"path":"/local/docs/new.txt","content":"new"}`)),
		providertest.Say("all done"),
	}, more...)...)
	o := newOffice(t, m)
	o.file("long.txt", strings.Repeat("a long line of text\n", 5000))
	r := o.send("please work", "Message-ID: <q@test>", "Subject: work")
	o.decide(o.waiting(1)[0].ID, "approve", "")
	o.ended(1)
	return o, m, r.Task
}

// takeOut removes every mail from every mailbox, or moves it to Trash.
func (d *desk) takeOut(to ...mailbox.MailboxID) {
	d.t.Helper()
	boxes, err := d.store.Mailboxes(d.t.Context(), d.me.Account)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, b := range boxes {
		if b.View || b.ID == Trash {
			continue
		}
		for _, s := range d.list(d.me.Account, b.ID) {
			for _, box := range to {
				d.commit(mailbox.AddEntry{Message: s.id, Mailbox: box})
			}
			d.commit(mailbox.RemoveEntry{Message: s.id, Mailbox: b.ID})
		}
	}
}

// leftOf lists the keys of what is kept of a task, but for the record of its submission.
func (d *desk) leftOf(task string) (keys []string) {
	d.t.Helper()
	recs, err := d.store.Records(d.t.Context(), d.me.Account, "", "", 0)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, rec := range recs {
		if strings.Contains(rec.Key+string(rec.Value), task) && !strings.HasPrefix(rec.Key, "taken/") {
			keys = append(keys, strings.SplitAfter(rec.Key, "/")[0])
		}
	}
	return keys
}

func (o *office) forget(id string) Forgot {
	o.t.Helper()
	f, err := o.a.Forget(o.t.Context(), o.me.Account, id)
	if err != nil {
		o.t.Fatalf("forget: %v", err)
	}
	return f
}

func TestForget(t *testing.T) {
	t.Parallel()
	o, m, task := worked(t, providertest.Say("a new one"))
	blobs := o.blobsOf(task)
	if len(blobs) != 2 {
		t.Fatalf("blobs %v, want the long result and the file", blobs)
	}
	result := o.ofKind(mailbox.Inbox, KindResult)[0]
	approval := o.ofKind(mailbox.Inbox, KindApproval)[0]
	th, _, err := o.a.thread(t.Context(), o.me.Account, task)
	if err != nil {
		t.Fatal(err)
	}
	if f := o.forget(strings.ToUpper(task)); f.Task != task || f.Runs != 1 || f.Mails != 3 || f.Subject != "work" {
		t.Errorf("%+v", f)
	}
	if n := len(o.runs(o.me.Account)) + len(o.journal(task+".1")); n != 0 {
		t.Errorf("%d runs and events are left", n)
	}
	for _, id := range blobs {
		if b, err := o.store.OpenBlob(t.Context(), o.me.Account, id); !isKind(err, mailbox.NotFound) {
			t.Errorf("blob %s is left: %v, %v", id, b, err)
		}
	}
	o.count(o.me.Account, mailbox.Inbox, 2) // the mails are the person's
	o.count(o.me.Account, Sent, 1)
	for _, err := range []error{
		o.a.Cancel(t.Context(), o.me.Account, task, by("me")), second(o.a.Show(t.Context(), o.me.Account, task)),
		second(o.a.Forget(t.Context(), o.me.Account, task)),
	} {
		if !isKind(err, mailbox.NotFound) || !strings.Contains(textOfError(err), "was forgotten on") {
			t.Errorf("%v", err)
		}
	}
	late := o.mustGive(o.me, o.message(o.me, "approve"), "pizza+"+"a."+header(approval.raw, "X-Pizza-Approval")+"@localhost")
	if !strings.Contains(late.Note, "too late") {
		t.Errorf("an answer to its approval: %+v", late)
	}
	r := o.mustGive(o.me, o.message(o.me, "go on", "In-Reply-To: <"+result.mid+">"), "pizza+t."+th.Token+"@localhost")
	if r.Task == task || !strings.Contains(r.Note, task+", which it answers, was forgotten") {
		t.Errorf("a reply: %+v", r)
	}
	mails := o.ended(1)
	wantSaid(t, m.Requests()[2], "go on")
	if last := mails[len(mails)-1]; !strings.Contains(last.raw, "which was forgotten") {
		t.Errorf("%s", last.raw)
	}
	o.settledDown()
}

// A task none of whose mails is left leaves nothing.
func TestForgetWithoutMails(t *testing.T) {
	t.Parallel()
	o, _, task := worked(t)
	o.takeOut()
	if f := o.forget(task); f.Mails != 0 {
		t.Errorf("%+v", f)
	}
	if keys := o.leftOf(task); keys != nil {
		t.Errorf("left: %v", keys)
	}
}

// What recognises the mails of a forgotten task goes some time after they went.
func TestForgottenMailsGo(t *testing.T) {
	t.Parallel()
	o, _, task := worked(t)
	o.forget(task)
	o.halt()
	if keys := o.leftOf(task); len(keys) != 5 { // three refs, a decision, the thread
		t.Errorf("left: %v", keys)
	}
	for range 3 {
		o.clock.add(31 * day)
		o.tend()
	}
	if keys := o.leftOf(task); len(keys) != 5 {
		t.Errorf("left after 93 days: %v", keys)
	}
	o.takeOut()
	o.clock.add(62 * day)
	o.tend()
	o.clock.add(31 * day)
	o.tend()
	if keys := o.leftOf(task); keys != nil {
		t.Errorf("left when the mails have gone: %v", keys)
	}
}

func TestForgetRefuses(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) })
	o, m, task := worked(t, providertest.Say("never").After(gate), providertest.Say("no"))
	if _, err := o.a.Forget(t.Context(), o.me.Account, task+".1"); !isKind(err, mailbox.Invalid) {
		t.Errorf("a run: %v", err)
	}
	if _, err := o.a.Forget(t.Context(), o.me.Account, "nothing"); !isKind(err, mailbox.NotFound) {
		t.Errorf("nothing: %v", err)
	}
	r := o.send("fork\nmore", "In-Reply-To: <q@test>")
	o.until("the call", func() bool { return len(m.Requests()) == 3 })
	for _, id := range []string{task, r.Task} {
		_, err := o.a.Forget(t.Context(), o.me.Account, id)
		if !isKind(err, mailbox.Conflict) || !strings.Contains(textOfError(err), "`pizza cancel "+r.Task+"`") {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := o.a.Cancel(t.Context(), o.me.Account, r.Task, by("me")); err != nil {
		t.Fatal(err)
	}
	o.ended(2)
	o.forget(task)
	o.send("on", "In-Reply-To: <"+o.ofKind(mailbox.Inbox, KindNotice)[0].mid+">")
	o.ended(2) // the branch goes on with what is its own
	wantSaid(t, m.Requests()[3], "more", "cancelled", "on")
}

// Killed at any commit of a forgetting, the next start ends it.
func TestForgetSurvivesAKill(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 1; at <= 5; at++ {
			t.Run(fmt.Sprintf("commit %d, after %v", at, after), func(t *testing.T) {
				t.Parallel()
				o, _, task := worked(t)
				o.takeOut()
				o.halt()
				o.closing()
				crash := &crashStore{crashPoint: crashPoint{at: at, after: after}, down: make(chan struct{})}
				o.open(t, func(s mailbox.Store) mailbox.Store { crash.Store = s; return crash })
				o.halt() // its commits are those of the forgetting alone
				_, err := o.a.Forget(context.Background(), o.me.Account, task)
				o.closing()
				o.open(t, func(s mailbox.Store) mailbox.Store { return s })
				marked := at > 1 || after
				if marked != (len(o.leftOf(task)) == 0 || second(o.a.Show(t.Context(), o.me.Account, task)) != nil) {
					t.Errorf("after %v: left %v", err, o.leftOf(task))
				}
				if !marked {
					return
				}
				o.halt() // what is due is worked here, not behind the test
				o.clock.add(2 * tendLease)
				o.tend()
				if left := o.leftOf(task); len(left) != 0 {
					t.Errorf("the next start leaves %v", left)
				}
				if next, err := o.store.NextDue(t.Context(), o.me.Account, DueForget); err != nil || !next.IsZero() {
					t.Errorf("still due at %v, %v", next, err)
				}
			})
		}
	}
}

func second[T any](_ T, err error) error { return err }

// header is the value of a header field.
func header(raw, name string) string {
	_, rest, _ := strings.Cut(raw, name+": ")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// blobsOf are the ids of what the journals of a task keep outside of them.
func (o *office) blobsOf(task string) (ids []string) {
	for _, e := range o.journal(task + ".1") {
		if e.ToolEnd == nil {
			continue
		}
		if e.ToolEnd.Blob != "" {
			ids = append(ids, e.ToolEnd.Blob)
		}
		for _, out := range e.ToolEnd.Out {
			ids = append(ids, out.Blob.ID)
		}
	}
	return ids
}

// Retention: only tasks that ended longer ago, whose mails lie in Trash at most, and from
// which nothing branched off that is left.
func TestRetention(t *testing.T) {
	t.Parallel()
	m := providertest.Script()
	for range 6 {
		m.Append(providertest.Say("answer"))
	}
	o := newOffice(t, m, func(opt *Options) { opt.Keep = 10 * day })
	send := func(n int, header ...string) string {
		t.Helper()
		r := o.send("work", append(header, fmt.Sprintf("Message-ID: <q%d@test>", n))...)
		o.ended(n)
		return r.Task
	}
	trashed := send(1)
	o.takeOut(Trash)
	stem := send(2)
	o.takeOut()
	kept := send(3)
	o.halt()
	o.send("fork\nmore", "In-Reply-To: <q2@test>", "Message-ID: <f@test>") // live: nobody works
	branch := o.runs(o.me.Account)
	if err := o.a.startRetention(t.Context(), o.me.Account); err != nil {
		t.Fatal(err)
	}
	want := func(when string, tasks ...string) {
		t.Helper()
		o.tend()
		got := map[string]bool{}
		for _, r := range o.runs(o.me.Account) {
			got[r.Task] = true
		}
		if len(got) != len(tasks) {
			t.Errorf("%s: %v are there, want %v", when, got, tasks)
		}
		for _, task := range tasks {
			if !got[task] {
				t.Errorf("%s: %s has gone", when, task)
			}
		}
	}
	live := ""
	for _, r := range branch {
		if !r.State.Ended() {
			live = r.Task
		}
	}
	o.clock.add(10 * day)
	want("after 10 days", trashed, stem, kept, live)
	o.clock.add(day)
	want("after 11 days", stem, kept, live)
	o.takeOut()
	o.clock.add(9 * day)
	want("before the next look", stem, kept, live)
	o.clock.add(2 * day)
	want("after the next look", stem, live)
	if len(o.leftOf(kept)) != 0 {
		t.Errorf("left of it: %v", o.leftOf(kept))
	}
	if keys := o.leftOf(trashed); len(keys) == 0 { // its mails lie in Trash
		t.Error("nothing recognises the mails in Trash")
	}
}

// A day costs what came to rest on it: tasks that stay cost nothing.
func TestRetentionCostsWhatIsDue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.a.opt.Keep = 10 * day
	counted := &lookups{Store: d.store}
	d.a.store = counted
	var ops []mailbox.Op
	for i := range 40 {
		th := &Thread{Task: fmt.Sprintf("task%06d", i), Token: newToken(), Created: d.clock.Now(), Runs: 1}
		ops = append(ops, threadPut(th, 0))
	}
	d.commit(ops...)
	if err := d.a.startRetention(t.Context(), d.me.Account); err != nil {
		t.Fatal(err)
	}
	d.tend()
	for range 5 {
		counted.n = 0
		d.clock.add(day)
		d.tend()
		if counted.n > 2 {
			t.Errorf("a day on which nothing is due took %d lookups", counted.n)
		}
	}
	d.clock.add(6 * day)
	d.tend()
	if left := d.kept("thread/"); left != 0 {
		t.Errorf("%d threads are left", left)
	}
}

// lookups counts.
type lookups struct {
	mailbox.Store
	n int
}

func (l *lookups) Lookup(ctx context.Context, id mailbox.AccountID, index string) ([]mailbox.Record, error) {
	l.n++
	return l.Store.Lookup(ctx, id, index)
}

// Without the setting nothing goes, and what was set up before is taken down.
func TestRetentionOff(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit(threadPut(&Thread{Task: "old", Token: "token", Created: d.clock.Now(), Runs: 1}, 0))
	d.a.opt.Keep = day
	if err := d.a.startRetention(t.Context(), d.me.Account); err != nil {
		t.Fatal(err)
	}
	d.a.opt.Keep = 0
	d.clock.add(1000 * time.Hour)
	d.tend()
	if next, err := d.store.NextDue(t.Context(), d.me.Account, DueRetain); err != nil || !next.IsZero() || d.kept("thread/") != 1 {
		t.Errorf("due %v, %v; %d threads", next, err, d.kept("thread/"))
	}
}
