package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/agent"
	"pizza/internal/mailfile"
	"pizza/internal/mime"
	"pizza/mailbox"
)

// What the commands export and import ask of a data root.

// beside is where mail goes whose own folder is one in which a message means something:
// an import must start, decide and teach nothing.
const beside = "Imported"

// nulText is why a message is not stored that mail programs could not be given.
const nulText = "it has NUL octets, which mail cannot have"

// imported says what became of a message of an import.
type imported struct {
	Folder string `json:"folder"`         // where it lies
	There  bool   `json:"there"`          // the same bytes lay there already: nothing was added
	View   bool   `json:"view,omitempty"` // the folder shows mail of others: nothing was added
	Text   string `json:"text,omitempty"` // why it was left out
}

// Export hands all mail of an account to sink, folder by folder; only those named, or
// all but the views and what is live (Running, Action). What is deleted meanwhile is left out.
func (a *app) Export(ctx context.Context, account string, folders []string, sink exportSink) error {
	id, err := a.identity(ctx, account)
	if err != nil {
		return err
	}
	boxes, err := a.store.Mailboxes(ctx, id.Account)
	if err != nil {
		return err
	}
	for _, name := range folders {
		if !slices.ContainsFunc(boxes, func(b mailbox.Mailbox) bool { return b.Name == name && !b.Hidden }) {
			return &mailbox.Error{Op: "export", Kind: mailbox.NotFound, Name: name, Text: fmt.Sprintf("there is no folder %q", name)}
		}
	}
	for _, box := range boxes {
		if box.View || box.Hidden || len(folders) == 0 && live(box) || len(folders) > 0 && !slices.Contains(folders, box.Name) {
			continue
		}
		if err := a.exportBox(ctx, id.Account, box, sink); err != nil {
			return err
		}
	}
	return nil
}

// live reports whether a mailbox shows how tasks stand now, which is no mail to keep.
func live(box mailbox.Mailbox) bool {
	return slices.Contains([]mailbox.MailboxID{agent.Running, agent.Action, agent.Approve, agent.Reject}, box.ID)
}

// exportSink is what an export needs of a mailfile.Sink.
type exportSink interface {
	Folder(name string) error
	Add(m mailfile.Message) error
}

func (a *app) exportBox(ctx context.Context, account mailbox.AccountID, box mailbox.Mailbox, sink exportSink) error {
	if err := sink.Folder(box.Name); err != nil {
		return err
	}
	snap, err := a.store.Snapshot(ctx, account, box.ID)
	if err != nil {
		return err
	}
	for _, e := range snap.All() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.exportOne(ctx, account, box.Name, e, sink); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) exportOne(ctx context.Context, account mailbox.AccountID, folder string, e mailbox.Entry, sink exportSink) error {
	body, err := a.store.OpenMessage(ctx, account, e.Message)
	var me *mailbox.Error
	if errors.As(err, &me) && me.Kind == mailbox.NotFound && me.Err == nil {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	defer body.Close()
	b := make([]byte, body.Size())
	if _, err := io.ReadFull(io.NewSectionReader(body, 0, body.Size()), b); err != nil {
		return err
	}
	m := mailfile.Message{Folder: folder, Date: e.Internal(), Body: b, Where: fmt.Sprintf("%s, UID %d", folder, e.UID)}
	for _, f := range a.store.Flags(account, e.Flags) {
		m.Flags = append(m.Flags, string(f))
	}
	if e.Deleted {
		m.Flags = append(m.Flags, string(imap.FlagDeleted))
	}
	return sink.Add(m)
}

// Import files messages, as the account's owner would by APPEND: in folders that it
// makes, with their flags and dates, in their order, and none twice in a folder. A folder
// in which a message means something (Action, Tasks and the like) is one beside it. It
// commits once for all that it can file, and says of each message what became of it; an
// error means that nothing was filed. What lies in the folder that means something
// already is not filed beside it, and nothing of a view is.
func (a *app) Import(ctx context.Context, account string, batch []mailfile.Message) ([]imported, error) {
	id, err := a.identity(ctx, account)
	if err != nil {
		return nil, err
	}
	im := &importing{app: a, who: id, boxes: map[string]mailbox.Mailbox{}, out: make([]imported, len(batch)), fresh: map[string]bool{}}
	for i, m := range batch {
		if err := im.message(ctx, i, m); err != nil {
			return nil, err
		}
	}
	if len(im.ops) == 0 {
		return im.out, nil
	}
	_, err = a.store.Commit(ctx, id.Account, mailbox.Tx{Actor: im.actor(), Ops: im.ops})
	text := refusal(err)
	switch {
	case text == "":
		return im.out, err
	case len(batch) == 1:
		im.out[0].Text = text
		return im.out, nil
	}
	var out []imported // one of them is at fault: which?
	for i := range batch {
		one, err := a.Import(ctx, account, batch[i:i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// refusal is what an error says of one message; "" for an error that another message
// would meet too.
func refusal(err error) string {
	var me *mailbox.Error
	if !errors.As(err, &me) || slices.Contains([]mailbox.Kind{mailbox.Full, mailbox.Transient, mailbox.Internal}, me.Kind) {
		return ""
	}
	return me.Text
}

type importing struct {
	app   *app
	who   mailbox.Identity
	boxes map[string]mailbox.Mailbox // by the name asked for
	out   []imported
	ops   []mailbox.Op
	fresh map[string]bool // mailbox and blob of what this batch adds
}

func (im *importing) actor() *mailbox.Actor {
	d := by(im.who)
	return &mailbox.Actor{Login: d.Login, Credential: d.Credential, Scope: im.who.Scope, Session: "import", Via: d.Via, At: d.At}
}

// message judges one message and adds what files it.
func (im *importing) message(ctx context.Context, i int, m mailfile.Message) error {
	if done, err := im.system(ctx, i, m); done || err != nil {
		return err
	}
	box, err := im.folder(ctx, m.Folder)
	if text := refusal(err); text != "" {
		im.out[i].Text = text
		return nil
	}
	if err != nil {
		return err
	}
	im.out[i].Folder = box.Name
	switch limit := im.app.settings.MaxMessage(); {
	case m.Body == nil: // the folder itself
		return nil
	case len(m.Body) == 0:
		im.out[i].Text = "it is empty"
		return nil
	case int64(len(m.Body)) > limit:
		im.out[i].Text = fmt.Sprintf("it is larger than %d MiB (max_message_mb)", limit>>20)
		return nil
	case bytes.IndexByte(m.Body, 0) >= 0: // RFC 9051: a literal has none, and a message keeps its octets
		im.out[i].Text = nulText
		return nil
	}
	return im.add(ctx, i, box, m)
}

// system judges what comes out of a folder in which a message means something here. It
// reports whether there is nothing to file: the message lies there already, the folder is
// empty, or it is a view.
func (im *importing) system(ctx context.Context, i int, m mailfile.Message) (done bool, err error) {
	name, err := mailbox.CleanName(m.Folder)
	if err != nil {
		return false, nil // told when the folder is looked for
	}
	all, err := im.app.store.Mailboxes(ctx, im.who.Account)
	if err != nil || !meaningful(all, name) {
		return false, err
	}
	at := slices.IndexFunc(all, func(b mailbox.Mailbox) bool { return b.Name == name })
	out := &im.out[i]
	switch {
	case at >= 0 && all[at].View:
		out.Folder, out.View = name, true
		return true, nil
	case len(m.Body) == 0:
		return m.Body == nil, nil
	case at < 0:
		return false, nil
	}
	out.There, err = im.lies(ctx, all[at], mailbox.Blob{ID: fmt.Sprintf("%x", sha256.Sum256(m.Body))})
	if out.There {
		out.Folder = name
	}
	return out.There, err
}

func (im *importing) add(ctx context.Context, i int, box mailbox.Mailbox, m mailfile.Message) error {
	store, account := im.app.store, im.who.Account
	blob, err := store.Stage(ctx, account, bytes.NewReader(m.Body), 0)
	if err != nil {
		return err
	}
	key := fmt.Sprint(box.ID, blob.ID)
	if im.out[i].There = im.fresh[key]; !im.out[i].There {
		im.out[i].There, err = im.lies(ctx, box, blob)
	}
	if err != nil || im.out[i].There {
		return err
	}
	im.fresh[key] = true
	structure, err := mime.Parse(bytes.NewReader(m.Body), int64(len(m.Body)))
	if err != nil {
		return err
	}
	op := mailbox.AddMessage{Blob: blob, Structure: structure, Date: m.Date, Places: []mailbox.MailboxID{box.ID}}
	for _, f := range m.Flags {
		if f, err := mailbox.CleanFlag(imap.Flag(f)); err == nil {
			op.Flags = append(op.Flags, f)
		}
	}
	if op.ID, err = store.NextMessageID(account); err != nil {
		return err
	}
	im.ops = append(im.ops, op)
	return nil
}

// lies reports whether the bytes are in a mailbox already.
func (im *importing) lies(ctx context.Context, box mailbox.Mailbox, blob mailbox.Blob) (bool, error) {
	number, known, err := im.app.store.Content(ctx, im.who.Account, blob.ID)
	if err != nil || !known {
		return false, err
	}
	snap, err := im.app.store.Snapshot(ctx, im.who.Account, box.ID)
	if err != nil {
		return false, err
	}
	for _, e := range snap.All() {
		if e.Content == number {
			return true, nil
		}
	}
	return false, nil
}

// folder finds the mailbox that a folder's mail goes into, and makes it.
func (im *importing) folder(ctx context.Context, name string) (mailbox.Mailbox, error) {
	if box, ok := im.boxes[name]; ok {
		return box, nil
	}
	clean, err := mailbox.CleanName(name)
	if err != nil {
		return mailbox.Mailbox{}, err
	}
	all, err := im.app.store.Mailboxes(ctx, im.who.Account)
	if err != nil {
		return mailbox.Mailbox{}, err
	}
	if meaningful(all, clean) {
		clean = beside + "/" + clean
	}
	find := func(all []mailbox.Mailbox) int {
		return slices.IndexFunc(all, func(b mailbox.Mailbox) bool { return b.Name == clean })
	}
	if i := find(all); i >= 0 {
		im.boxes[name] = all[i]
		return all[i], nil
	}
	_, err = im.app.store.Commit(ctx, im.who.Account, mailbox.Tx{Actor: im.actor(), Ops: []mailbox.Op{mailbox.CreateMailbox{Name: clean}}})
	if err != nil && !errors.Is(err, &mailbox.Error{Kind: mailbox.Exists}) {
		return mailbox.Mailbox{}, err
	}
	if all, err = im.app.store.Mailboxes(ctx, im.who.Account); err != nil {
		return mailbox.Mailbox{}, err
	}
	i := find(all)
	if i < 0 {
		return mailbox.Mailbox{}, &mailbox.Error{Op: "import", Kind: mailbox.Conflict, Name: clean, Text: "the folder was removed meanwhile"}
	}
	im.subscribe(ctx, all[i])
	im.boxes[name] = all[i]
	return all[i], nil
}

// subscribe shows a new folder to programs that list subscribed ones only. That it did
// not work is no reason to stop.
func (im *importing) subscribe(ctx context.Context, box mailbox.Mailbox) {
	_, err := im.app.store.Commit(ctx, im.who.Account, mailbox.Tx{Ops: []mailbox.Op{mailbox.Subscribe{Mailbox: box.ID, On: true}}})
	if err != nil {
		im.app.log.Warn("imported folder not subscribed", "mailbox", box.Name, "err", err)
	}
}

// meaningful reports whether a name is, or lies below, a system mailbox in which a
// message is more than mail.
func meaningful(all []mailbox.Mailbox, name string) bool {
	for ; name != ""; name = mailbox.ParentName(name) {
		i := slices.IndexFunc(all, func(b mailbox.Mailbox) bool { return b.Name == name })
		if i >= 0 && all[i].System && !plainMailbox(all[i]) {
			return true
		}
	}
	return false
}

// plainMailbox reports whether a system mailbox is as in every other mail system.
func plainMailbox(box mailbox.Mailbox) bool {
	switch box.SpecialUse {
	case imap.MailboxAttrSent, imap.MailboxAttrDrafts, imap.MailboxAttrArchive, imap.MailboxAttrJunk, imap.MailboxAttrTrash:
		return true
	}
	return strings.EqualFold(box.Name, "INBOX")
}
