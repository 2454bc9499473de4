package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/crockford"
	"pizza/internal/mail"
	"pizza/internal/mime"
	"pizza/internal/msgid"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/mailbox/boltstore"
	"pizza/providers"
)

// desk is an agent without workers over a real store, with the account me, and on demand bob.
type desk struct {
	t     *testing.T
	a     *Agent
	store mailbox.Store
	clock *handClock
	me    mailbox.Identity
	bob   mailbox.Identity
	seq   int
}

type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// people are accounts that only exist.
type people []mailbox.Account

func (p people) Authenticate(context.Context, string, string) (mailbox.Identity, error) {
	return mailbox.Identity{}, errors.New("not in this test")
}
func (p people) Verifiers(context.Context, string) (mailbox.Verifiers, error) {
	return mailbox.Verifiers{}, errors.New("not in this test")
}
func (p people) Put(context.Context, mailbox.Account, mailbox.Credential, string) error {
	return errors.New("not in this test")
}
func (p people) Remove(context.Context, string, string) error    { return errors.New("not in this test") }
func (p people) List(context.Context) ([]mailbox.Account, error) { return p, nil }

// noModels names a default model that is never called: a desk has no workers.
type noModels struct{}

func (noModels) Model(context.Context, string) (providers.Model, error) {
	return nil, errors.New("not in this test")
}
func (noModels) Default() string { return "test:none" }

// lateGuard lets the store be opened before the agent is made.
type lateGuard struct{ a *Agent }

func (g *lateGuard) Review(v mailbox.View, id mailbox.AccountID, who mailbox.Actor, act mailbox.Act) (mailbox.Verdict, error) {
	return g.a.Review(v, id, who, act)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d, _ := newDeskIn(t)
	return d
}

// newDeskIn also says where the store is.
func newDeskIn(t *testing.T) (*desk, string) {
	t.Helper()
	guard, dir := &lateGuard{}, t.TempDir()
	store := openTestStore(t, guard, dir)
	accounts := people{{ID: "a1", Login: "me"}, {ID: "b2", Login: "bob"}}
	clock := &handClock{now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
	a, err := New(Options{
		Store: store, Accounts: accounts, Models: noModels{}, Tools: tools.NewFiles(func() []tools.Grant { return nil }),
		Log: slog.New(slog.DiscardHandler), Now: clock.Now, Location: time.UTC, ActionInInbox: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	guard.a = a
	if err := store.CreateAccount(t.Context(), accounts[0].ID, SystemMailboxes()); err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, a: a, store: store, clock: clock, me: identity("a1", "me"), bob: identity("b2", "bob")}, dir
}

// withBob gives bob his mailboxes. Most desks do without: an account is a file to sync.
func (d *desk) withBob() {
	d.t.Helper()
	if err := d.store.CreateAccount(d.t.Context(), d.bob.Account, SystemMailboxes()); err != nil {
		d.t.Fatal(err)
	}
}

func openTestStore(t *testing.T, guard mailbox.Guard, dir string) mailbox.Store {
	t.Helper()
	store, err := boltstore.Open(dir, boltstore.Options{Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func identity(id mailbox.AccountID, login string) mailbox.Identity {
	return mailbox.Identity{Account: id, Login: login, Credential: "default", Scope: mailbox.ScopeFull,
		Addresses: []string{login + "@localhost", login + "@pizza.localhost"}}
}

func sendOnly(id mailbox.Identity) mailbox.Identity {
	id.Scope, id.Credential = mailbox.ScopeSend, "cron"
	return id
}

// message writes a mail: header lines, and a body.
func (d *desk) message(id mailbox.Identity, body string, header ...string) string {
	d.seq++
	all := append([]string{}, header...)
	have := func(name string) bool {
		return slices.ContainsFunc(header, func(h string) bool { return strings.HasPrefix(strings.ToLower(h), name) })
	}
	if !have("from:") {
		all = append(all, "From: "+id.Login+"@localhost")
	}
	if !have("message-id:") {
		all = append(all, fmt.Sprintf("Message-ID: <m%d@test>", d.seq))
	}
	if !have("subject:") {
		all = append(all, fmt.Sprintf("Subject: mail %d", d.seq))
	}
	return strings.Join(all, "\r\n") + "\r\n\r\n" + strings.ReplaceAll(body, "\n", "\r\n") + "\r\n"
}

// give submits bytes to recipients.
func (d *desk) give(id mailbox.Identity, raw string, to ...string) (mailbox.Receipt, error) {
	d.t.Helper()
	return d.giveFrom(id, id.Login+"@localhost", raw, to...)
}

func (d *desk) giveFrom(id mailbox.Identity, from, raw string, to ...string) (mailbox.Receipt, error) {
	d.t.Helper()
	return d.submit(mailbox.Submission{Identity: id, Envelope: mailbox.Envelope{From: from, To: to}}, raw)
}

// submit completes a submission with its bytes and hands it in.
func (d *desk) submit(sub mailbox.Submission, raw string) (mailbox.Receipt, error) {
	d.t.Helper()
	blob, err := d.store.Stage(d.t.Context(), sub.Identity.Account, strings.NewReader(raw), 0)
	if err != nil {
		d.t.Fatal(err)
	}
	sub.Blob, sub.Received = blob, d.clock.Now()
	return d.a.Submit(d.t.Context(), sub)
}

// mustGive submits and expects success.
func (d *desk) mustGive(id mailbox.Identity, raw string, to ...string) mailbox.Receipt {
	d.t.Helper()
	r, err := d.give(id, raw, to...)
	if err != nil {
		d.t.Fatalf("Submit: %v", err)
	}
	return r
}

// shown is a message in a mailbox, as a test looks at it.
type shown struct {
	uid     imap.UID
	id      mailbox.MessageID
	subject string
	mid     string
	flags   []imap.Flag
	deleted bool
	tag     string
	raw     string
}

func (d *desk) list(account mailbox.AccountID, box mailbox.MailboxID) []shown {
	d.t.Helper()
	snap, err := d.store.Snapshot(d.t.Context(), account, box)
	if err != nil {
		d.t.Fatal(err)
	}
	var out []shown
	for _, e := range snap.All() {
		s := shown{uid: e.UID, id: e.Message, deleted: e.Deleted, flags: d.store.Flags(account, e.Flags)}
		err := d.store.Messages(d.t.Context(), account, []mailbox.MessageID{e.Message}, func(m *mailbox.Message) error {
			s.subject, s.mid, s.tag = m.Structure.Subject, m.Structure.MessageID, m.Tag
			return nil
		})
		if err != nil {
			d.t.Fatal(err)
		}
		body, err := d.store.OpenMessage(d.t.Context(), account, e.Message)
		if isKind(err, mailbox.NotFound) {
			continue // went since the snapshot: a status that was replaced
		}
		if err != nil {
			d.t.Fatal(err)
		}
		raw, err := io.ReadAll(io.NewSectionReader(body, 0, body.Size()))
		body.Close()
		if err != nil {
			d.t.Fatal(err)
		}
		s.raw = string(raw)
		out = append(out, s)
	}
	return out
}

func (d *desk) count(account mailbox.AccountID, box mailbox.MailboxID, want int) []shown {
	d.t.Helper()
	got := d.list(account, box)
	if len(got) != want {
		d.t.Fatalf("mailbox %d of %s holds %d messages, want %d: %v", box, account, len(got), want, subjects(got))
	}
	return got
}

func subjects(list []shown) (out []string) {
	for _, s := range list {
		out = append(out, s.subject)
	}
	return out
}

func (d *desk) runs(account mailbox.AccountID) []Run {
	d.t.Helper()
	recs, err := d.store.Records(d.t.Context(), account, "run/", "", 0)
	if err != nil {
		d.t.Fatal(err)
	}
	var out []Run
	for _, rec := range recs {
		r, err := decodeRun(rec)
		if err != nil {
			d.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func (d *desk) journal(run string) []Event {
	d.t.Helper()
	var out []Event
	err := d.store.Events(d.t.Context(), d.me.Account, runKey(run), 1, func(_ uint64, b []byte) error {
		e, err := decodeEvent(b)
		out = append(out, e)
		return err
	})
	if err != nil && !isKind(err, mailbox.NotFound) {
		d.t.Fatal(err)
	}
	return out
}

// decidedEvents are the decisions in a run's journal; the journal must fold.
func (d *desk) decidedEvents(run string) []*EvDecided {
	d.t.Helper()
	var out []*EvDecided
	events := d.journal(run)
	if _, err := Fold(events); err != nil {
		d.t.Fatalf("journal of %s: %v", run, err)
	}
	for _, e := range events {
		if e.Decided != nil {
			out = append(out, e.Decided)
		}
	}
	return out
}

// ask puts an open decision there as a worker does: run, journal, record, mail.
func (d *desk) ask(kind string) Decision {
	d.t.Helper()
	r := d.mustGive(d.me, d.message(d.me, "please write"), "pizza@localhost")
	run := runID(r.Task, 1)
	call := providers.ToolCall{ID: "c1", Name: "write_file", Args: []byte(`{"content":"forty","path":"/local/x/a.txt"}`)}
	events := []Event{
		{Reply: &EvReply{N: 1, Reply: providers.Reply{Message: providers.Message{Role: providers.Assistant,
			Parts: []providers.Part{{Kind: providers.Call, Call: &call}}}}}},
		{Policy: &EvPolicy{Call: "c1", Rule: string(tools.Ask)}},
	}
	dec := Decision{
		ID: newToken(), Kind: kind, Task: r.Task, Run: run, Call: "c1", Tool: call.Name, Args: call.Args, Nonce: crockford.Random(8),
		State: Open, Created: d.clock.Now(), Expires: d.clock.Now().Add(24 * time.Hour), Sentence: "Write a.txt.",
	}
	if kind == decisionUnknown {
		events[1].Policy.Rule = string(tools.Allow)
		events = append(events,
			Event{ToolStart: &EvToolStart{Call: "c1", Attempt: 1, Class: string(tools.OnceOnly)}},
			Event{ToolEnd: &EvToolEnd{Call: "c1", Status: endUnknown}})
	}
	events = append(events, Event{Asked: &EvAsked{Call: "c1", Decision: dec.ID, Kind: kind}})
	ops, err := d.a.wakeOps(d.t.Context(), d.me.Account, run, events...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.commit(append(ops, d.askingOps(&dec)...)...)
	return dec
}

func (d *desk) askingOps(dec *Decision) []mailbox.Op {
	d.t.Helper()
	plain, html, _ := mail.ApprovalText(mail.Approval{Sentence: dec.Sentence, Tool: dec.Tool, Args: dec.Args,
		Nonce: dec.Nonce, Expires: dec.Expires, ReplyAddress: "pizza+a." + dec.ID + "@localhost", Subject: "Approve"})
	if dec.Kind == decisionUnknown {
		plain, html, _ = mail.UnknownText(mail.Unknown{Sentence: dec.Sentence, Tool: dec.Tool, Args: dec.Args,
			Nonce: dec.Nonce, Expires: dec.Expires, ReplyAddress: "pizza+a." + dec.ID + "@localhost", Subject: "Unknown"})
	}
	out := mail.Outgoing{
		From: mail.Address{Local: "pizza", Host: "localhost"}, To: mail.Address{Local: "me", Host: "localhost"},
		Subject: "Approve: " + dec.ID, MessageID: msgid.New(), Date: d.clock.Now(), AutoSubmitted: "auto-replied",
		Plain: plain, HTML: html,
	}
	add, err := d.a.post(d.t.Context(), d.me.Account, out, mailbox.AddMessage{
		Places: []mailbox.MailboxID{Action, mailbox.Inbox}, Hold: []string{decisionKey(dec.ID)}, Tag: decisionTag(dec.ID)})
	if err != nil {
		d.t.Fatal(err)
	}
	dec.Mail, dec.MailID, dec.Subject, dec.Text = add.ID, out.MessageID, out.Subject, mail.PlainText(out)
	ref := MessageRef{Task: dec.Task, Run: dec.Run, Decision: dec.ID, Kind: KindApproval, Ours: true}
	return []mailbox.Op{add, decisionPut(*dec, 0), refPut(out.MessageID, ref),
		mailbox.PutDue{Due: mailbox.Due{Kind: DueExpire, Key: dec.ID, At: dec.Expires}}}
}

func (d *desk) commit(ops ...mailbox.Op) {
	d.t.Helper()
	if err := d.a.commit(d.t.Context(), d.me.Account, ops...); err != nil {
		d.t.Fatal(err)
	}
}

// act commits ops as the person does in a mail program.
func (d *desk) act(ops ...mailbox.Op) (mailbox.Result, error) {
	return d.actAs(mailbox.ScopeFull, ops...)
}

func (d *desk) actAs(scope mailbox.Scope, ops ...mailbox.Op) (mailbox.Result, error) {
	d.t.Helper()
	return d.store.Commit(d.t.Context(), d.me.Account, mailbox.Tx{Ops: ops, Actor: &mailbox.Actor{
		Login: "me", Credential: "default", Scope: scope, Session: "s1", Via: "imap", At: d.clock.Now(),
	}})
}

func (d *desk) mustAct(ops ...mailbox.Op) mailbox.Result {
	d.t.Helper()
	res, err := d.act(ops...)
	if err != nil {
		d.t.Fatalf("%+v: %v", ops, err)
	}
	return res
}

// refused expects a NO [CANNOT] with a sentence.
func (d *desk) refused(ops ...mailbox.Op) {
	d.t.Helper()
	_, err := d.act(ops...)
	var me *mailbox.Error
	if !errors.As(err, &me) || me.Kind != mailbox.Refused || me.Code != "CANNOT" || me.Text == "" {
		d.t.Fatalf("%+v: got %v, want Refused [CANNOT] with a text", ops, err)
	}
}

// uid finds a message in a mailbox.
func (d *desk) uid(box mailbox.MailboxID, id mailbox.MessageID) imap.UIDSet {
	d.t.Helper()
	for _, s := range d.list(d.me.Account, box) {
		if s.id == id {
			return imap.UIDSetNum(s.uid)
		}
	}
	d.t.Fatalf("message %d is not in mailbox %d", id, box)
	return nil
}

func (d *desk) move(dec Decision, from, to mailbox.MailboxID) mailbox.MoveEntries {
	d.t.Helper()
	return mailbox.MoveEntries{From: from, To: to, UIDs: d.uid(from, dec.Mail)}
}

// lies expects the message of dec in exactly these mailboxes.
func (d *desk) lies(dec Decision, want ...mailbox.MailboxID) {
	d.t.Helper()
	places, err := d.store.Places(d.t.Context(), d.me.Account, dec.Mail)
	if err != nil && !isKind(err, mailbox.NotFound) {
		d.t.Fatal(err)
	}
	var got []mailbox.MailboxID
	for _, p := range places {
		got = append(got, p.Mailbox)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.t.Fatalf("decision lies in %v, want %v", got, want)
	}
}

// state expects the decision's record in a state, and returns it.
func (d *desk) state(dec Decision, want DecisionState) Decision {
	d.t.Helper()
	got, _, err := d.a.loadDecision(d.t.Context(), d.me.Account, dec.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	if got.State != want {
		d.t.Fatalf("decision is %s, want %s", got.State, want)
	}
	return got
}

// tend works what is due for both accounts.
func (d *desk) tend() {
	d.t.Helper()
	d.a.tendOnce(d.t.Context(), d.me.Account)
	d.a.tendOnce(d.t.Context(), d.bob.Account)
}

// textOfError is what the person is told.
func textOfError(err error) string {
	var me *mailbox.Error
	if errors.As(err, &me) {
		return me.Text
	}
	return ""
}

func by(login string) DecidedBy { return DecidedBy{Login: login, Credential: "default", Via: "cli"} }

// parsed gives the structure of a message for AddMessage.
func parsed(t *testing.T, raw string) *mime.Structure {
	t.Helper()
	s, err := mime.Parse(strings.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
