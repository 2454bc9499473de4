package agent

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pizza/mailbox"
)

// conflictStore answers every third commit with Conflict, as if somebody else had
// always just been there.
type conflictStore struct {
	mailbox.Store
	n atomic.Int64
}

func (c *conflictStore) Commit(ctx context.Context, id mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error) {
	if c.n.Add(1)%3 == 0 {
		return mailbox.Result{}, &mailbox.Error{Op: "commit", Kind: mailbox.Conflict, Name: "test"}
	}
	return c.Store.Commit(ctx, id, tx)
}

// TestNoOutcomeIsLostThroughAConflict: what a tool or the model did is committed in
// the end, however often somebody else changes the run between.
func TestNoOutcomeIsLostThroughAConflict(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	o.halt()
	o.closing()
	o.open(t, func(s mailbox.Store) mailbox.Store { return &conflictStore{Store: s} })
	const n = 8
	for i := range n {
		o.file(fmt.Sprintf("n%d.txt", i), "END")
		o.send(fmt.Sprintf("call edit_file {\"path\":\"/local/docs/n%d.txt\",\"old\":\"END\",\"new\":\"x END\"}\nand call list_folder {\"path\":\"/local/docs\"}\nand call write_file {\"path\":\"/out/a.txt\",\"content\":\"a\"}\nsay done", i))
	}
	o.finishAll(n, nil)
	for i := range n {
		if got := o.read(fmt.Sprintf("n%d.txt", i)); got != "x END" {
			t.Errorf("task %d: %q", i, got)
		}
	}
	if mails := o.ofKind(mailbox.Inbox, KindResult); len(mails) != n {
		t.Errorf("%d results", len(mails))
	}
	for _, r := range o.runs(o.me.Account) {
		for _, e := range o.journal(r.ID) {
			if e.ToolStart != nil && e.ToolStart.Attempt > 1 {
				t.Errorf("%s: a call was made again", r.ID)
			}
			if e.ToolEnd != nil && !strings.Contains(endOK, e.ToolEnd.Status) {
				t.Errorf("%s: %+v", r.ID, e.ToolEnd)
			}
		}
	}
	o.settledDown()
}
