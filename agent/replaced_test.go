package agent

import (
	"testing"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// A program that was not told yet still shows the status message before the present
// one; deleting that cancels the task too (DESIGN.md section 1, Running).
func TestDeletingAReplacedStatusCancels(t *testing.T) {
	t.Parallel()
	deletes := func(gone imap.UIDSet) mailbox.Op {
		return mailbox.StoreFlags{Mailbox: Running, Gone: gone, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}}
	}
	for name, tt := range map[string]struct {
		act  func(gone imap.UIDSet) mailbox.Op
		want bool
	}{
		"deleted flag":  {deletes, true},
		"move to Trash": {func(gone imap.UIDSet) mailbox.Op { return mailbox.MoveEntries{From: Running, To: Trash, Gone: gone} }, true},
		"another flag": {func(gone imap.UIDSet) mailbox.Op {
			return mailbox.StoreFlags{Mailbox: Running, Gone: gone, Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagFlagged}}
		}, false},
		"named in a range only": {func(gone imap.UIDSet) mailbox.Op { return deleted(Running, gone) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			dec := d.ask(decisionApproval)
			before := d.count(d.me.Account, Running, 1)[0].uid
			d.replaceStatus(dec.Run)
			after := d.count(d.me.Account, Running, 1)[0].uid
			if before == after {
				t.Fatal("the status message was not replaced")
			}
			d.mustAct(tt.act(imap.UIDSetNum(before)))
			st, err := Fold(d.journal(dec.Run))
			if err != nil || (st.Cancel != nil) != tt.want {
				t.Errorf("cancel %+v, %v", st.Cancel, err)
			}
			left := 1
			if tt.want {
				left = 0
			}
			d.count(d.me.Account, Running, left)
		})
	}
}

// replaceStatus commits a new status message of a run.
func (d *desk) replaceStatus(id string) {
	d.t.Helper()
	ctx := d.t.Context()
	rec, err := d.store.Record(ctx, d.me.Account, runKey(id))
	if err != nil {
		d.t.Fatal(err)
	}
	run, err := decodeRun(rec)
	if err != nil {
		d.t.Fatal(err)
	}
	th, _, err := d.a.thread(ctx, d.me.Account, run.Task)
	if err != nil {
		d.t.Fatal(err)
	}
	o, err := d.a.owner(ctx, d.me.Account)
	if err != nil {
		d.t.Fatal(err)
	}
	ops, err := d.a.showStatus(ctx, o, th, &run, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.commit(append(ops, runPut(run, rec.Version))...)
}
