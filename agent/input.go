package agent

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"pizza/internal/mail"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// input is a mail of the task as it was read: its text for the model and its files
// for /in. The bytes are opened anew each time a file is read.
type input struct {
	parts []providers.Part
	files []tools.File
	// foreign: parts hold text that the login did not write, beyond the names of files.
	foreign bool
}

// readInput reads a mail. A mail that is gone (forgotten, or of an earlier run and
// deleted) is a sentence.
func (a *Agent) readInput(ctx context.Context, account mailbox.AccountID, in Inbound) (*input, error) {
	if in.Message == 0 {
		return &input{parts: []providers.Part{{Kind: providers.Text, Text: in.Prompt, Login: in.Login}}}, nil
	}
	msg, body, err := a.openStored(ctx, account, in.Message)
	if isKind(err, mailbox.NotFound) {
		return &input{parts: []providers.Part{{Kind: providers.Text, Text: "(This mail was deleted: " + oneLine(in.Subject) + ")"}}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	parent, err := a.parentText(ctx, account, msg)
	if err != nil {
		return nil, err
	}
	r, err := mail.Read(body, body.Size(), msg.Structure, parent)
	if err != nil {
		return nil, err
	}
	if in.Fork {
		r.New = mail.AfterFork(r.New)
	}
	parts := a.partsOf(in, r)
	if in.Dropped {
		parts = a.droppedParts(in, msg, r)
	}
	foreign := in.Dropped || strings.TrimSpace(r.Quoted) != "" || len(r.Messages) > 0
	return &input{parts: parts, files: a.filesOf(ctx, account, in, msg, r), foreign: foreign}, nil
}

// openStored opens a stored message; NotFound when it is gone.
func (a *Agent) openStored(ctx context.Context, account mailbox.AccountID, id mailbox.MessageID) (*mailbox.Message, mailbox.Body, error) {
	var msg *mailbox.Message
	err := a.store.Messages(ctx, account, []mailbox.MessageID{id}, func(m *mailbox.Message) error {
		msg = m
		return nil
	})
	if err == nil && msg == nil {
		err = &mailbox.Error{Op: "read", Kind: mailbox.NotFound}
	}
	if err != nil {
		return nil, nil, err
	}
	body, err := a.store.OpenMessage(ctx, account, id)
	return msg, body, err
}

// parentText is the plain text of the mail of ours that m answers, for subtraction.
// Without it (not ours, gone) the quote rules of internal/mail alone decide. An error
// is not "gone": our own words would pass for the person's.
func (a *Agent) parentText(ctx context.Context, account mailbox.AccountID, m *mailbox.Message) (string, error) {
	if m.Structure == nil || len(m.Structure.InReplyTo) == 0 {
		return "", nil
	}
	ref, known, err := a.refOf(ctx, account, m.Structure.InReplyTo[0])
	if err != nil || !known || !ref.Ours {
		return "", err
	}
	if ref.Decision != "" {
		d, _, err := a.loadDecision(ctx, account, ref.Decision)
		if !isKind(err, mailbox.NotFound) {
			return d.Text, err
		}
	}
	return a.sentText(ctx, account, ref)
}

// sentText is the text of a mail of ours, "" when it is gone.
func (a *Agent) sentText(ctx context.Context, account mailbox.AccountID, ref MessageRef) (string, error) {
	msg, body, err := a.openStored(ctx, account, ref.Message)
	if isKind(err, mailbox.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer body.Close()
	r, err := mail.Read(body, body.Size(), msg.Structure, "")
	if err != nil {
		return "", err
	}
	return r.Text, nil
}

// partsOf is a mail as the model sees it: what the login wrote as its own text, all
// else marked as data.
func (a *Agent) partsOf(in Inbound, r *mail.Reading) []providers.Part {
	var parts []providers.Part
	text := func(s string, login bool) {
		parts = append(parts, providers.Part{Kind: providers.Text, Text: s, Login: login})
	}
	text(a.heading(in), false)
	if strings.TrimSpace(r.New) != "" {
		text(r.New, true)
	}
	if strings.TrimSpace(r.Quoted) != "" {
		title := "quoted text"
		if r.Forward {
			title = "forwarded text"
		}
		text(asData(title, headTail(r.Quoted)), false)
	}
	for _, m := range r.Messages {
		text(asData("attached message "+m.Name, headTail(fmt.Sprintf("From: %s\nSubject: %s\nDate: %s\n\n%s",
			m.From, m.Subject, m.Date, m.Text))), false)
	}
	if len(r.Attachments) > 0 {
		text(listFiles(r.Attachments), false)
	}
	for _, n := range r.Notes {
		text("Note: "+n, false)
	}
	return parts
}

// droppedText tells what a mail in Tasks is. The mail itself grants nothing: the person
// put it there, and somebody else may have written it.
const droppedText = "The owner put this mail into the mailbox Tasks: it is a task about this mail. Do what helps the owner with it: answer what it asks, prepare what it wants, or say what is in it and what there is to do."

// droppedParts is a mail of Tasks as the model sees it: all of it data, also what bears
// the login's name.
func (a *Agent) droppedParts(in Inbound, msg *mailbox.Message, r *mail.Reading) []providers.Part {
	var from []string
	for _, addr := range msg.Structure.From {
		from = append(from, addr.String())
	}
	text := fmt.Sprintf("From: %s\nSubject: %s\nDate: %s\n\n%s", strings.Join(from, ", "), oneLine(in.Subject),
		a.local(msg.Date).Format("Mon 2 Jan 2006 15:04 MST"), r.Text)
	parts := []providers.Part{{Kind: providers.Text, Text: droppedText}, {Kind: providers.Text, Text: asData("the mail", headTail(text))}}
	r.New, r.Quoted = "", ""
	return append(parts, a.partsOf(in, r)[1:]...)
}

// heading says which mail it is. The subject is kept apart from the login's text: it
// is no line of a program, and programs copy it from mail of others.
func (a *Agent) heading(in Inbound) string {
	date := in.Date
	if date.IsZero() {
		date = a.now()
	}
	return "Mail of " + a.local(date).Format("Mon 2 Jan 2006 15:04 MST") + "\nSubject: " + oneLine(in.Subject)
}

func listFiles(list []mail.Attachment) string {
	var b strings.Builder
	b.WriteString("Attached files (read them with the tools):\n")
	for _, f := range list {
		fmt.Fprintf(&b, "/in/%s (%s", f.Name, f.Media)
		if f.Size >= 0 {
			fmt.Fprintf(&b, ", %d bytes", f.Size)
		}
		b.WriteString(")\n")
	}
	return b.String()
}

// filesOf are the attachments. Each is opened from the message anew: a run may wait
// for days between two reads.
func (a *Agent) filesOf(ctx context.Context, account mailbox.AccountID, in Inbound, m *mailbox.Message, r *mail.Reading) []tools.File {
	ctx = context.WithoutCancel(ctx)
	var files []tools.File
	for i, f := range r.Attachments {
		files = append(files, tools.File{Name: f.Name, Size: f.Size, Open: func() (io.ReadCloser, error) {
			return a.openAttachment(ctx, account, in.Message, m, i)
		}})
	}
	return files
}

// openAttachment opens the i-th file of a message.
func (a *Agent) openAttachment(ctx context.Context, account mailbox.AccountID, id mailbox.MessageID, m *mailbox.Message, i int) (io.ReadCloser, error) {
	body, err := a.store.OpenMessage(ctx, account, id)
	if err != nil {
		return nil, err
	}
	r, err := mail.Read(body, body.Size(), m.Structure, "")
	if err == nil && i >= len(r.Attachments) {
		err = fmt.Errorf("agent: message %d has no file %d", id, i)
	}
	if err != nil {
		body.Close()
		return nil, err
	}
	f, err := r.Attachments[i].Open()
	if err != nil {
		body.Close()
		return nil, err
	}
	return closeBoth{f, body}, nil
}

// closeBoth is a reader over something that is closed with it.
type closeBoth struct {
	io.ReadCloser
	under io.Closer
}

func (c closeBoth) Close() error {
	err := c.ReadCloser.Close()
	if e := c.under.Close(); err == nil {
		err = e
	}
	return err
}

// openBlob reads a stored blob from its beginning.
func (a *Agent) openBlob(ctx context.Context, account mailbox.AccountID, b mailbox.Blob) (io.ReadCloser, error) {
	if b.Size == 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	body, err := a.store.OpenBlob(ctx, account, b.ID)
	if err != nil {
		return nil, err
	}
	return closeBoth{io.NopCloser(io.NewSectionReader(body, 0, body.Size())), body}, nil
}

// uniqueName gives a file of a later mail a name of its own: name, name-2, ...
func uniqueName(name string, used map[string]bool) string {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 2; used[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
	used[strings.ToLower(name)] = true
	return name
}

// workspace is a run's own files: /in of the mails it answers, /out as the journal
// says.
type workspace struct {
	in, out []tools.File
}

func (w workspace) In() []tools.File  { return w.in }
func (w workspace) Out() []tools.File { return w.out }
