package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pizza/agent"
	"pizza/internal/mailfile"
	"pizza/mailbox"
)

// service is what the commands ask of a data root: a running server over its
// control socket (*controlClient), or the store opened by the command itself
// (*app).
type service interface {
	Send(ctx context.Context, account string, m submission) (mailbox.Receipt, error)
	List(ctx context.Context, account, mailbox string) ([]item, error)
	Show(ctx context.Context, account, id string) (agent.Shown, error)
	Decide(ctx context.Context, account string, d decision) (agent.Decision, error)
	Cancel(ctx context.Context, account, id string) error
	// Usage tells what was spent: when is as of agent.UsageOf.
	Usage(ctx context.Context, account, when string) (agent.Usage, error)
	// Forget drops what was made of a task that has ended.
	Forget(ctx context.Context, account, id string) (agent.Forgot, error)
	Policies(ctx context.Context, account string) ([]agent.Policy, error)
	RevokePolicy(ctx context.Context, account, id string) error
	// Events tells what happens in what id names, from its beginning, until ctx ends or fn
	// fails; without an id in all tasks, from now on.
	Events(ctx context.Context, account, id string, fn func(agent.Activity) error) error
	// Wait returns when the task has no live run or waits for a person.
	Wait(ctx context.Context, account, task string) (outcome, error)

	Accounts(ctx context.Context) ([]mailbox.Account, error)
	PutCredential(ctx context.Context, r credentialRequest) (password string, err error)
	RemoveCredential(ctx context.Context, r credentialRequest) error

	// Backup writes an archive of the data root (internal/backup).
	Backup(ctx context.Context, w io.Writer) error

	// Export hands an account's mail to sink; of all folders when none is named.
	Export(ctx context.Context, account string, folders []string, sink exportSink) error
	// Import files messages and says what became of each.
	Import(ctx context.Context, account string, batch []mailfile.Message) ([]imported, error)

	Close() error
}

// submission is mail handed in by the command line.
type submission struct {
	To      []string `json:"to"`
	Message []byte   `json:"message"`
	// Model is what the message asks for, to refuse a mistyped name before it is sent.
	Model string `json:"model,omitempty"`
}

// decision is a decision of the command line.
type decision struct {
	ID   string `json:"id"`
	Verb string `json:"verb"`
	Text string `json:"text,omitempty"`
	// Args are the final arguments of the verb edit.
	Args json.RawMessage `json:"args,omitempty"`
}

// item is one line of a mailbox as the commands list it.
type item struct {
	UID      uint32    `json:"uid"`
	Unread   bool      `json:"unread"`
	Date     time.Time `json:"date"`
	From     string    `json:"from"`
	Subject  string    `json:"subject"`
	Kind     string    `json:"kind,omitempty"`
	Task     string    `json:"task,omitempty"`
	Decision string    `json:"decision,omitempty"`
	Keywords []string  `json:"keywords,omitempty"`
}

// outcome is how far a task has come.
type outcome struct {
	State agent.RunState `json:"state"`
	Text  string         `json:"text"`          // the result, the failure, or what it waits for
	For   string         `json:"for,omitempty"` // of a task that waits for something else than a decision
}

// errNoServer: the command needs a running server.
var errNoServer = errors.New("no server runs on this data root: start one with `pizza serve`")

// identity is who the command line acts as. A process of the same operating
// system user is trusted (SECURITY.md).
func (a *app) identity(ctx context.Context, account string) (mailbox.Identity, error) {
	login, _, _ := strings.Cut(strings.ToLower(account), "@")
	acc, known, err := a.account(ctx, login)
	if err != nil {
		return mailbox.Identity{}, err
	}
	if !known {
		return mailbox.Identity{}, &mailbox.Error{Op: "account", Kind: mailbox.NotFound, Name: account,
			Text: fmt.Sprintf("there is no account %q; `pizza account list` lists them, --account names one", account)}
	}
	return mailbox.Identity{
		Account: acc.ID, Login: acc.Login, Credential: "local", Scope: mailbox.ScopeFull,
		Addresses: []string{acc.Login + "@localhost", acc.Login + "@pizza.localhost"},
	}, nil
}

// Send hands a message to the agent as a login of this machine.
func (a *app) Send(ctx context.Context, account string, m submission) (mailbox.Receipt, error) {
	id, err := a.identity(ctx, account)
	if err != nil {
		return mailbox.Receipt{}, err
	}
	for _, to := range m.To {
		if err := a.agent.Recipient(ctx, id, to); err != nil {
			return mailbox.Receipt{}, err
		}
	}
	if err := a.settings.Models.Check(m.Model); m.Model != "" && err != nil {
		return mailbox.Receipt{}, modelError(err)
	}
	if bytes.IndexByte(m.Message, 0) >= 0 {
		return mailbox.Receipt{}, &mailbox.Error{Op: "send", Kind: mailbox.Invalid, Text: "the message is not sent: " + nulText}
	}
	blob, err := a.store.Stage(ctx, id.Account, bytes.NewReader(m.Message), a.settings.MaxMessage())
	if err != nil {
		return mailbox.Receipt{}, err
	}
	return a.agent.Submit(ctx, mailbox.Submission{
		Identity: id, Blob: blob, Received: time.Now(),
		Envelope: mailbox.Envelope{From: id.Addresses[0], To: m.To, UTF8: true, EightBit: true, Protocol: "local"},
	})
}

// List reads one mailbox, newest first.
func (a *app) List(ctx context.Context, account, name string) ([]item, error) {
	id, err := a.identity(ctx, account)
	if err != nil {
		return nil, err
	}
	box, err := a.mailboxNamed(ctx, id.Account, name)
	if err != nil {
		return nil, err
	}
	snapshot, err := a.store.Snapshot(ctx, id.Account, box.ID)
	if err != nil {
		return nil, err
	}
	entries := map[mailbox.MessageID]mailbox.Entry{}
	var ids []mailbox.MessageID
	for _, e := range snapshot.All() {
		entries[e.Message] = e
		ids = append(ids, e.Message)
	}
	slices.Reverse(ids)
	var list []item
	err = a.store.Messages(ctx, id.Account, ids, func(m *mailbox.Message) error {
		it, err := a.item(ctx, id.Account, m, entries[m.ID])
		list = append(list, it)
		return err
	})
	return list, err
}

func (a *app) mailboxNamed(ctx context.Context, account mailbox.AccountID, name string) (mailbox.Mailbox, error) {
	boxes, err := a.store.Mailboxes(ctx, account)
	if err != nil {
		return mailbox.Mailbox{}, err
	}
	for _, b := range boxes {
		if b.Name == name {
			return b, nil
		}
	}
	return mailbox.Mailbox{}, &mailbox.Error{Op: "list", Kind: mailbox.NotFound, Name: name}
}

// item reads what a list shows of a message.
func (a *app) item(ctx context.Context, account mailbox.AccountID, m *mailbox.Message, e mailbox.Entry) (item, error) {
	it := item{UID: uint32(e.UID), Unread: true, Date: m.Date, Subject: m.Structure.Subject}
	if len(m.Structure.From) > 0 {
		it.From = m.Structure.From[0].String()
	}
	for _, f := range m.Flags {
		switch {
		case strings.EqualFold(string(f), `\Seen`):
			it.Unread = false
		case !strings.HasPrefix(string(f), `\`):
			it.Keywords = append(it.Keywords, string(f))
		}
	}
	ref, ok, err := a.agent.Ours(ctx, account, m)
	if ok {
		it.Kind, it.Task, it.Decision = ref.Kind, ref.Task, cmp.Or(ref.Decision, ref.Ask)
	}
	return it, err
}

// Show tells everything about a task, run or decision.
func (a *app) Show(ctx context.Context, account, id string) (agent.Shown, error) {
	who, err := a.identity(ctx, account)
	if err != nil {
		return agent.Shown{}, err
	}
	return a.agent.Show(ctx, who.Account, id)
}

// by records the command line as the one who decided.
func by(who mailbox.Identity) agent.DecidedBy {
	return agent.DecidedBy{Login: who.Login, Credential: who.Credential, Via: "cli", At: time.Now()}
}

// Decide decides an open approval or question.
func (a *app) Decide(ctx context.Context, account string, d decision) (agent.Decision, error) {
	who, err := a.identity(ctx, account)
	if err != nil {
		return agent.Decision{}, err
	}
	if d.Verb == "edit" {
		return a.agent.Edit(ctx, who.Account, d.ID, d.Args, by(who))
	}
	return a.agent.Decide(ctx, who.Account, d.ID, d.Verb, d.Text, by(who))
}

// Cancel ends a live task.
func (a *app) Cancel(ctx context.Context, account, id string) error {
	who, err := a.identity(ctx, account)
	if err != nil {
		return err
	}
	return a.agent.Cancel(ctx, who.Account, id, by(who))
}

// Usage tells what an account spent.
func (a *app) Usage(ctx context.Context, account, when string) (agent.Usage, error) {
	who, err := a.identity(ctx, account)
	if err != nil {
		return agent.Usage{}, err
	}
	return a.agent.UsageOf(ctx, who.Account, when)
}

// Wait watches the account until the task rests.
func (a *app) Wait(ctx context.Context, account, task string) (outcome, error) {
	who, err := a.identity(ctx, account)
	if err != nil {
		return outcome{}, err
	}
	wake, cancel := a.store.Watch(who.Account, 0)
	defer cancel()
	for {
		shown, err := a.agent.Show(ctx, who.Account, task)
		if err != nil {
			return outcome{}, err
		}
		if o, rests := rest(shown); rests {
			return o, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
	}
}
