package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/mailbox/boltstore"
	"pizza/providers"
	"pizza/providers/runbook"
)

// office is a desk with workers: a real store, real file tools over a granted folder,
// a model per name.
type office struct {
	*desk
	root    string // of the store
	docs    string // the granted folder /local/docs
	grants  []tools.Grant
	models  models
	options func(*Options)
	disk    func() (free, size int64, err error)
	halt    func() // stops the workers and waits
	closing func() // closes the store
}

type models map[string]providers.Model

func (m models) Model(_ context.Context, name string) (providers.Model, error) {
	if got, ok := m[name]; ok {
		return got, nil
	}
	return nil, errors.New("no such model: " + name)
}
func (m models) Default() string {
	if _, ok := m["script:test"]; ok {
		return "script:test"
	}
	return "runbook:mail"
}

// newOffice opens an office; with a model, tasks go to it, else to the runbook.
func newOffice(t *testing.T, model providers.Model, change ...func(*Options)) *office {
	t.Helper()
	o := &office{root: t.TempDir(), docs: t.TempDir(), models: models{"runbook:mail": runbook.New()}}
	if model != nil {
		o.models["script:test"] = model
	}
	o.grants = []tools.Grant{{ID: "docs", Path: o.docs, Write: true}}
	o.options = func(opt *Options) {
		for _, f := range change {
			f(opt)
		}
	}
	o.open(t, func(s mailbox.Store) mailbox.Store { return s })
	t.Cleanup(func() { o.halt(); o.closing() })
	return o
}

// open opens the store and starts the workers. wrap may put something between.
func (o *office) open(t *testing.T, wrap func(mailbox.Store) mailbox.Store) {
	t.Helper()
	clock := &handClock{now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
	if o.desk != nil {
		clock = o.clock
	}
	guard := &lateGuard{}
	bolt, err := boltstore.Open(o.root, boltstore.Options{Guard: guard, Disk: o.disk})
	if err != nil {
		t.Fatal(err)
	}
	accounts := people{{ID: "a1", Login: "me", Name: "Maria"}, {ID: "b2", Login: "bob"}}
	if err := bolt.CreateAccount(t.Context(), accounts[0].ID, SystemMailboxes()); err != nil {
		t.Fatal(err)
	}
	store := wrap(bolt)
	opt := Options{
		Store: store, Accounts: accounts, Models: o.models,
		Tools: tools.NewFiles(func() []tools.Grant { return o.grants }),
		Log:   slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Now:   clock.Now, Location: time.UTC, ActionInInbox: true,
	}
	o.options(&opt)
	a, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	guard.a = a
	o.desk = &desk{t: t, a: a, store: store, clock: clock, me: identity("a1", "me"), bob: identity("b2", "bob")}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Run(ctx) }()
	o.halt = sync.OnceFunc(func() { cancel(); <-done })
	o.closing = sync.OnceFunc(func() { bolt.Close() })
}

// reopen is a clean restart.
func (o *office) reopen(t *testing.T) {
	t.Helper()
	o.halt()
	o.closing()
	o.open(t, func(s mailbox.Store) mailbox.Store { return s })
}

// send gives the agent a mail.
func (o *office) send(body string, header ...string) mailbox.Receipt {
	o.t.Helper()
	return o.mustGive(o.me, o.message(o.me, body, header...), "pizza@localhost")
}

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// until waits for cond, looking again after each commit of the account.
func (o *office) until(what string, cond func() bool) {
	o.t.Helper()
	wake, stop := o.store.Watch(o.me.Account, 0)
	defer stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-wake:
		case <-time.After(50 * time.Millisecond): // what is no commit
		case <-deadline:
			o.t.Fatalf("waited for %s in vain; runs: %+v", what, o.runs(o.me.Account))
		}
	}
	// Records can be read a moment before snapshots show the same commit: a further one
	// comes after both.
	_ = o.a.commit(o.t.Context(), o.me.Account)
}

// ofKind lists the mails of a kind in a mailbox.
func (o *office) ofKind(box mailbox.MailboxID, kind string) []shown {
	o.t.Helper()
	return slices.DeleteFunc(o.list(o.me.Account, box), func(s shown) bool {
		return !strings.Contains(s.raw, "X-Pizza-Kind: "+kind+"\r\n")
	})
}

// ended waits until a task's runs have ended, and returns the mails that ended them.
func (o *office) ended(n int) []shown {
	o.t.Helper()
	o.until("the end", func() bool {
		runs := o.runs(o.me.Account)
		return len(runs) == n && !slices.ContainsFunc(runs, func(r Run) bool { return !r.State.Ended() })
	})
	var all []shown
	for _, s := range o.list(o.me.Account, mailbox.Inbox) {
		for _, kind := range []string{KindResult, KindFailure, KindNotice} {
			if strings.Contains(s.raw, "X-Pizza-Kind: "+kind+"\r\n") {
				all = append(all, s)
			}
		}
	}
	return all
}

// waiting waits for n open decisions.
func (o *office) waiting(n int) []Decision {
	o.t.Helper()
	var list []Decision
	o.until("decisions", func() bool {
		recs, err := o.store.Lookup(o.t.Context(), o.me.Account, indexOpenDecisions)
		if err != nil || len(recs) != n {
			return false
		}
		list = nil
		for _, rec := range recs {
			d, err := decodeDecision(rec)
			if err != nil {
				o.t.Fatal(err)
			}
			list = append(list, d)
			r, err := o.store.Record(o.t.Context(), o.me.Account, runKey(d.Run))
			if err != nil {
				return false
			}
			if run, err := decodeRun(r); err != nil || run.State != Waiting {
				return false
			}
		}
		return true
	})
	return list
}

func (o *office) decide(id, verb, text string) {
	o.t.Helper()
	by := DecidedBy{Login: "me", Credential: "default", Via: "cli"}
	if _, err := o.a.Decide(o.t.Context(), o.me.Account, id, verb, text, by); err != nil {
		o.t.Fatalf("%s: %v", verb, err)
	}
}

func (o *office) file(name, content string) {
	o.t.Helper()
	if err := os.WriteFile(filepath.Join(o.docs, name), []byte(content), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) read(name string) string {
	o.t.Helper()
	b, err := os.ReadFile(filepath.Join(o.docs, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.t.Fatal(err)
	}
	return string(b)
}

// settledDown checks what must hold when nothing is live: no status message, no
// decision in Action, nothing due, journals that fold to an end, one last mail a run.
func (o *office) settledDown() {
	o.t.Helper()
	for _, box := range []mailbox.MailboxID{Running, Action, Approve, Reject} {
		o.count(o.me.Account, box, 0)
	}
	if next, err := o.store.NextDue(o.t.Context(), o.me.Account, DueRun); err != nil || !next.IsZero() {
		o.t.Errorf("a run is due at %v (%v)", next, err)
	}
	for _, r := range o.runs(o.me.Account) {
		recordJournal(o.t, r.ID, o.journal(r.ID))
		s, err := Fold(o.journal(r.ID))
		if err != nil {
			o.t.Errorf("%s: %v", r.ID, err)
		} else if s.Finished == nil || s.Finished.State != r.State || s.Finished.Mail != r.Result || s.Seq != r.Seq {
			o.t.Errorf("%s: the record says %s, %s, %d; the journal %+v, %d", r.ID, r.State, r.Result, r.Seq, s.Finished, s.Seq)
		}
	}
}

func has(flags []imap.Flag, f imap.Flag) bool { return slices.Contains(flags, f) }
