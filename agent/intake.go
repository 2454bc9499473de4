package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mail"
	"pizza/internal/mime"
	"pizza/mailbox"
)

// keywordAutomatic marks a mail in Sent that a machine wrote: it started nothing.
const keywordAutomatic imap.Flag = "$Automatic"

// Submit takes a mail from a login. When it returns, one Tx in the login's file
// has stored the message, its entry in Sent, and what it did: a new run, a place in
// the queue of its thread, a decision, a delivery. The receipt names the task.
//
// A repeat of the same mail (same Message-ID, recipients and bytes, as a client
// sends it that missed the answer) stores nothing and gets the same receipt, for 30
// days at least. Without a Message-ID of its own, the same bytes are a repeat for ten
// minutes: a script may send the same every day, and means it.
// Automatic mail is filed and does nothing else, but that it is delivered to
// people. Errors are *mailbox.Error: Denied (From or Sender is not the login's, or
// the scope is too small), NotFound and Refused (recipients), Invalid, Full.
func (a *Agent) Submit(ctx context.Context, sub mailbox.Submission) (mailbox.Receipt, error) {
	if err := a.room(ctx, sub.Identity.Account); err != nil {
		return mailbox.Receipt{}, err
	}
	in, err := a.readSubmission(ctx, sub)
	if err != nil {
		return mailbox.Receipt{}, err
	}
	defer in.body.Close()
	for range attempts {
		if r, ok, err := a.repeated(ctx, in); ok || err != nil {
			return r, err
		}
		p, err := a.planFor(ctx, in)
		if err != nil {
			return mailbox.Receipt{}, err
		}
		_, err = a.store.Commit(ctx, in.account(), mailbox.Tx{Ops: p.all()})
		if err == nil {
			a.accepted(ctx, in, p)
			return p.receipt, nil
		}
		if !isKind(err, mailbox.Conflict) {
			return mailbox.Receipt{}, err
		}
	}
	return mailbox.Receipt{}, &mailbox.Error{Op: "submit", Kind: mailbox.Transient}
}

func (a *Agent) accepted(ctx context.Context, in *intake, p *plan) {
	a.log.InfoContext(ctx, "submitted", "login", in.sub.Identity.Login, "task", p.receipt.Task,
		"to", len(in.targets), "automatic", in.auto, "note", p.receipt.Note)
	for _, f := range p.done {
		f()
	}
	a.stir(in.account(), p.receipt.Task)
}

// intake is a submission, read.
type intake struct {
	sub       mailbox.Submission
	owner     owner
	body      mailbox.Body
	structure *mime.Structure
	fields    []mime.Field
	targets   []target // each once
	auto      string   // why it is automatic; "" when a person wrote it
	budget    *Limits  // X-Pizza-Budget
	repeat    string   // key of the record that it was taken
	before    uint64   // version of that record, 0: none yet
}

func (in *intake) account() mailbox.AccountID { return in.sub.Identity.Account }

// full reports whether the login may join threads, decide and cancel.
func (in *intake) full() bool { return in.sub.Identity.Scope == mailbox.ScopeFull }

func (in *intake) has(p place) (target, bool) {
	i := slices.IndexFunc(in.targets, func(t target) bool { return t.place == p })
	if i < 0 {
		return target{}, false
	}
	return in.targets[i], true
}

func (in *intake) inbound(id mailbox.MessageID) Inbound {
	m := Inbound{Message: id, MessageID: in.structure.MessageID, Subject: in.structure.Subject, Date: in.sub.Received,
		Budget: in.budget, Size: textSize(in.structure)}
	for _, f := range in.fields {
		if strings.EqualFold(f.Name, "X-Pizza-Model") {
			m.Model = strings.TrimSpace(f.Text())
		}
	}
	return m
}

func (a *Agent) readSubmission(ctx context.Context, sub mailbox.Submission) (*intake, error) {
	if s := sub.Identity.Scope; s != mailbox.ScopeFull && s != mailbox.ScopeSend {
		return nil, &mailbox.Error{Op: "submit", Kind: mailbox.Denied, Text: "this credential may not send"}
	}
	o, err := a.owner(ctx, sub.Identity.Account)
	if err != nil {
		return nil, err
	}
	if sub.Received.IsZero() {
		sub.Received = a.now()
	}
	in := &intake{sub: sub, owner: o}
	if in.targets, err = a.targetsOf(ctx, sub); err != nil {
		return nil, err
	}
	if in.body, err = a.store.OpenBlob(ctx, sub.Identity.Account, sub.Blob.ID); err != nil {
		return nil, err
	}
	if err := a.readMail(ctx, in); err != nil {
		in.body.Close()
		return nil, err
	}
	return in, nil
}

func (a *Agent) readMail(ctx context.Context, in *intake) error {
	var err error
	if in.structure, err = mime.Parse(in.body, in.body.Size()); err != nil {
		return err
	}
	raw, err := mime.RawHeader(in.body, in.structure.Root)
	if err != nil {
		return err
	}
	in.fields = mime.Fields(raw)
	if err := checkAuthor(in.sub.Identity, in.fields); err != nil {
		return err
	}
	if in.auto, err = a.automatic(ctx, in); err != nil {
		return err
	}
	if err := a.readBudget(in); err != nil {
		return err
	}
	in.repeat, err = in.repeatKey()
	return err
}

// targetsOf resolves the recipients; the same one given twice counts once.
func (a *Agent) targetsOf(ctx context.Context, sub mailbox.Submission) ([]target, error) {
	var list []target
	count := map[place]int{}
	for _, addr := range sub.Envelope.To {
		t, err := a.resolve(ctx, sub.Identity, addr)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(o target) bool { return o.key() == t.key() }) {
			list = append(list, t)
			count[t.place]++
		}
	}
	if len(list) == 0 {
		return nil, &mailbox.Error{Op: "submit", Kind: mailbox.Invalid, Text: "no recipients"}
	}
	if count[toDecision] > 1 || count[toThread] > 1 {
		return nil, &mailbox.Error{Op: "submit", Kind: mailbox.Invalid, Text: "one mail answers one decision or task: send one mail to each"}
	}
	return list, nil
}

// checkAuthor refuses a From or Sender that the login does not own (RFC 6409
// section 6.1). A mail that names no author is the login's.
func checkAuthor(id mailbox.Identity, fields []mime.Field) error {
	for _, f := range fields {
		if !strings.EqualFold(f.Name, "From") && !strings.EqualFold(f.Name, "Sender") {
			continue
		}
		if strings.TrimSpace(f.Value) == "" {
			continue
		}
		list := mime.ParseAddresses(f.Value)
		if len(list) == 0 || slices.ContainsFunc(list, func(addr mime.Address) bool { return !id.Owns(addr.String()) }) {
			return &mailbox.Error{Op: "submit", Kind: mailbox.Denied, Name: f.Name,
				Text: f.Name + " must be an address of yours: " + strings.Join(id.Addresses, ", ")}
		}
	}
	return nil
}

// automatic says why no person wrote the mail. Mail of ours that comes back is
// known by its Message-ID, which is recorded before it is delivered.
func (a *Agent) automatic(ctx context.Context, in *intake) (string, error) {
	ref, known, err := a.refOf(ctx, in.account(), in.structure.MessageID)
	if err != nil {
		return "", err
	}
	if known && ref.Ours {
		return "it is a mail of this server that came back", nil
	}
	return mail.AutomaticMessage(in.body, in.structure, in.sub.Envelope.From)
}

// sentKey is the key of the record of the copy in Sent. It is "" when no program can
// have a copy: the mail has no Message-ID that its sender knows.
func (in *intake) sentKey() string {
	if in.structure.MessageID == "" || in.sub.NoID {
		return ""
	}
	return sentKey(in.structure.MessageID)
}

// plan is the Tx of a submission in the making.
type plan struct {
	msg     mailbox.AddMessage
	ops     []mailbox.Op // after it
	receipt mailbox.Receipt
	done    []func() // once it is on disk
}

func (p *plan) add(ops ...mailbox.Op) { p.ops = append(p.ops, ops...) }

func (p *plan) all() []mailbox.Op {
	if len(p.msg.Places) == 0 && len(p.msg.Hold) == 0 {
		return p.ops
	}
	return append([]mailbox.Op{p.msg}, p.ops...)
}

// planFor reads what the submission does, from the state as it is now.
func (a *Agent) planFor(ctx context.Context, in *intake) (*plan, error) {
	p := &plan{msg: mailbox.AddMessage{
		Blob: in.sub.Blob, Structure: in.structure, Date: in.sub.Received, Flags: []imap.Flag{imap.FlagSeen},
	}}
	var err error
	if p.msg.ID, err = a.store.NextMessageID(in.account()); err != nil {
		return nil, err
	}
	if err := a.fileSent(ctx, in, p); err != nil {
		return nil, err
	}
	if err := a.agentOps(ctx, in, p); err != nil {
		return nil, err
	}
	if err := a.peopleOps(in, p); err != nil {
		return nil, err
	}
	t := taken{Receipt: p.receipt, At: a.now(), Sent: in.sentKey()}
	p.add(a.passing(mailbox.PutRecord{Key: in.repeat, Version: in.before, Value: mustJSON(t)})...)
	return p, nil
}

// fileSent gives the message its entry in Sent, unless the program has put its own
// copy there before it sent.
func (a *Agent) fileSent(ctx context.Context, in *intake, p *plan) error {
	key, who := in.sentKey(), a.opt.Account(in.owner.Login).SentCopy
	if who == SentClient {
		return nil
	}
	if key == "" {
		p.msg.Places = []mailbox.MailboxID{Sent}
		return nil
	}
	rec, err := a.store.Record(ctx, in.account(), key)
	if err != nil && !isKind(err, mailbox.NotFound) {
		return err
	}
	var c sentCopy
	if err == nil && json.Unmarshal(rec.Value, &c) == nil && (c.Ours || who != SentServer) {
		places, err := a.store.Places(ctx, in.account(), c.Message)
		if err != nil && !isKind(err, mailbox.NotFound) {
			return err
		}
		if liesIn(places, Sent) {
			p.add(mailbox.CheckRecord{Key: key, Version: rec.Version})
			return nil
		}
	}
	p.msg.Places = []mailbox.MailboxID{Sent}
	p.add(sentCopy{Message: p.msg.ID, Ours: true}.put(key, rec.Version))
	return nil
}

// agentOps is what the mail says to the agent.
func (a *Agent) agentOps(ctx context.Context, in *intake, p *plan) error {
	decision, decides := in.has(toDecision)
	thread, joins := in.has(toThread)
	_, starts := in.has(toPizza)
	_, help := in.has(toHelp)
	_, status := in.has(toStatus)
	if in.auto != "" {
		if decides || joins || starts || help || status {
			p.msg.Flags = append(p.msg.Flags, keywordAutomatic)
			p.receipt.Note = "filed; automatic mail starts nothing (" + printableLine(in.auto) + ")"
		}
		return nil
	}
	if help || status {
		if err := a.answerOps(ctx, in, p); err != nil {
			return err
		}
	}
	switch {
	case decides:
		return a.decisionReply(ctx, in, p, decision.token)
	case !joins && !starts:
		return nil
	case !in.full():
		return a.taskOps(ctx, in, p, "")
	}
	ref, err := a.answered(ctx, in)
	if err != nil {
		return err
	}
	if joins && ref.Task != thread.task {
		ref = MessageRef{Task: thread.task, Kind: KindStatus}
	}
	return a.replyOps(ctx, in, p, ref)
}

// peopleOps delivers the mail to the people it is addressed to.
func (a *Agent) peopleOps(in *intake, p *plan) error {
	for _, t := range in.targets {
		switch {
		case t.place != toPerson:
			continue
		case t.account == in.account():
			id, err := a.store.NextMessageID(in.account())
			if err != nil {
				return err
			}
			p.add(mailbox.AddMessage{ID: id, Blob: in.sub.Blob, Structure: in.structure, Date: in.sub.Received,
				Places: []mailbox.MailboxID{mailbox.Inbox}})
		default:
			d := delivery{ID: newToken(), To: t.account, Login: t.login, Message: p.msg.ID,
				MessageID: in.structure.MessageID, Subject: in.structure.Subject, Created: in.sub.Received}
			p.msg.Hold = append(p.msg.Hold, deliveryKey(d.ID))
			p.add(sendOps(d)...)
		}
		p.receipt.Note = cmp.Or(p.receipt.Note, "delivered")
	}
	return nil
}

// printableLine makes text safe for a reply line: printable ASCII, one line.
func printableLine(s string) string {
	return clip(strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, oneLine(s)), 200)
}
