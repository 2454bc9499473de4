//go:build bench

package langgraph

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/textproto"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"pizza/agent"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/mailbox/boltstore"
	"pizza/providers"
)

const account mailbox.AccountID = "a1"

// noLimit is a limit that no run reaches.
const noLimit = 1 << 30

// office is the agent on a store in this process.
type office struct {
	store *boltstore.Store
	agent *agent.Agent
	me    mailbox.Identity
	stop  context.CancelFunc
	ended chan struct{}
	sent  atomic.Int64
}

// openOffice opens the data root and starts the agent, as the server does.
func openOffice(root string, model providers.Model, set tools.Set, change ...func(*agent.Options)) (*office, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := boltstore.Open(root, boltstore.Options{Log: log})
	if err != nil {
		return nil, err
	}
	accounts := store.AccountDB()
	if list, err := accounts.List(ctx); err != nil || len(list) == 0 {
		err = errors.Join(err, accounts.Put(ctx, mailbox.Account{ID: account, Login: "me", Name: "me"},
			mailbox.Credential{Name: "default", Scope: mailbox.ScopeFull}, "correct horse"))
		if err != nil {
			return nil, err
		}
	}
	if err := store.CreateAccount(ctx, account, agent.SystemMailboxes()); err != nil {
		return nil, err
	}
	opt := agent.Options{Store: store, Accounts: accounts, Models: one{model}, Tools: set, Log: log, ActionInInbox: true,
		Limits: agent.Limits{ModelCalls: noLimit, ToolCalls: noLimit}}
	for _, f := range change {
		f(&opt)
	}
	a, err := agent.New(opt)
	if err != nil {
		return nil, err
	}
	store.SetGuard(a)
	work, stop := context.WithCancel(ctx)
	o := &office{store: store, agent: a, stop: stop, ended: make(chan struct{}), me: mailbox.Identity{
		Account: account, Login: "me", Credential: "default", Scope: mailbox.ScopeFull,
		Addresses: []string{"me@localhost", "me@pizza.localhost"}}}
	go func() { defer close(o.ended); _ = a.Run(work) }()
	return o, nil
}

// close is a clean end.
func (o *office) close() error {
	o.stop()
	<-o.ended
	return o.store.Close()
}

// task is the mail that starts a run of n steps: 1,024 octets of text.
func task(n int) string { return fold(fmt.Sprintf("steps=%d ", n) + text(1, textSize-9)) }

// fold breaks text into lines as a mail has them.
func fold(s string) string {
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76] + "\r\n")
		s = s[76:]
	}
	return b.String() + s
}

// send submits a mail, and returns its task.
func (o *office) send(to, subject, body string, header ...string) (mailbox.Receipt, error) {
	n := o.sent.Add(1)
	head := fmt.Sprintf("From: me@localhost\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%d.%d@bench.example>\r\n", to, subject, os.Getpid(), n)
	for _, h := range header {
		head += h + "\r\n"
	}
	blob, err := o.store.Stage(ctx, account, strings.NewReader(head+"\r\n"+body+"\r\n"), 0)
	if err != nil {
		return mailbox.Receipt{}, err
	}
	return o.agent.Submit(ctx, mailbox.Submission{Identity: o.me, Blob: blob, Received: time.Now(),
		Envelope: mailbox.Envelope{From: "me@localhost", To: []string{to}}})
}

// holds is how many messages lie in a mailbox.
func (o *office) holds(id mailbox.MailboxID) (int, error) {
	list, err := o.store.Mailboxes(ctx, account)
	for _, m := range list {
		if m.ID == id {
			return int(m.Exists), err
		}
	}
	return 0, errors.Join(err, fmt.Errorf("there is no mailbox %d", id))
}

// await waits until a mailbox holds n messages. seen is told what it holds at each look.
func (o *office) await(id mailbox.MailboxID, n int, seen func(n int)) error {
	wake, stop := o.store.Watch(account, id)
	defer stop()
	patience := time.After(20 * time.Minute)
	for {
		have, err := o.holds(id)
		if err != nil {
			return err
		}
		if seen != nil {
			seen(have)
		}
		if have >= n {
			return nil
		}
		select {
		case <-wake:
		case <-patience:
			return fmt.Errorf("mailbox %d holds %d messages after 20 minutes, not %d", id, have, n)
		}
	}
}

// letter is a mail of ours as a program reads it.
type letter struct {
	id     mailbox.MessageID
	header textproto.MIMEHeader
	body   string
}

// letters lists the mails of a mailbox of a kind (X-Pizza-Kind), oldest first.
func (o *office) letters(box mailbox.MailboxID, kind string) ([]letter, error) {
	snap, err := o.store.Snapshot(ctx, account, box)
	if err != nil {
		return nil, err
	}
	var out []letter
	for _, e := range snap.All() {
		body, err := o.store.OpenMessage(ctx, account, e.Message)
		if err != nil {
			return nil, err
		}
		l := letter{id: e.Message}
		r := textproto.NewReader(bufio.NewReader(io.NewSectionReader(body, 0, body.Size())))
		l.header, err = r.ReadMIMEHeader()
		rest, readErr := io.ReadAll(r.R)
		l.body = string(rest)
		if err := errors.Join(err, readErr, body.Close()); err != nil {
			return nil, err
		}
		if l.header.Get("X-Pizza-Kind") == kind {
			out = append(out, l)
		}
	}
	return out, nil
}

// done checks that n results lie in INBOX, and that each is a final answer.
func (o *office) done(n int) error {
	list, err := o.letters(mailbox.Inbox, agent.KindResult)
	if err != nil {
		return err
	}
	for _, l := range list {
		if !strings.Contains(l.body, "DONE") {
			return fmt.Errorf("a result is not a final answer: %q", l.body[:min(len(l.body), 200)])
		}
	}
	if len(list) != n {
		return fmt.Errorf("%d results in INBOX, not %d", len(list), n)
	}
	return nil
}

// open are the decisions that wait, as Action shows them.
func (o *office) open() ([]letter, error) {
	approvals, err := o.letters(agent.Action, agent.KindApproval)
	if err != nil {
		return nil, err
	}
	questions, err := o.letters(agent.Action, agent.KindQuestion)
	return append(approvals, questions...), err
}

// decide decides as the command line does.
func (o *office) decide(id, verb string) error {
	_, err := o.agent.Decide(ctx, account, id, verb, "", agent.DecidedBy{Login: "me", Credential: "default", Via: "cli"})
	return err
}

// answer replies to a decision's mail.
func (o *office) answer(l letter, word string) error {
	to := l.header.Get("Reply-To")
	if i := strings.IndexByte(to, '<'); i >= 0 {
		to = strings.Trim(to[i:], "<>")
	}
	_, err := o.send(to, "Re: "+l.header.Get("Subject"), word, "In-Reply-To: "+l.header.Get("Message-Id"))
	return err
}
