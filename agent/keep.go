package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pizza/internal/mail"
	"pizza/mailbox"
)

// asking is the record behind a mail that asks whether many messages were meant to be
// taken out of a mailbox.
type asking struct {
	Box      mailbox.MailboxID   `json:"box"`
	Messages []mailbox.MessageID `json:"messages"`
	Mail     mailbox.MessageID   `json:"mail"` // asks
	Subject  string              `json:"subject"`
	At       time.Time           `json:"at"`
}

func askKey(id string) string { return "ask/" + id }

// kept is what the messages of Memory and Schedules are called.
func kept(box mailbox.MailboxID) (things, where string) {
	if box == Schedules {
		return "schedules", "Schedules"
	}
	return "notes", "Memory"
}

// endLeaving is the end of the window after a message was taken out of Memory or
// Schedules: it stays out, or, one of too many, comes back with them.
func (a *Agent) endLeaving(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	key := "leaving/" + due.Key
	rec, err := a.store.Record(ctx, account, key)
	if isKind(err, mailbox.NotFound) {
		return a.dropDue(ctx, account, due)
	}
	if err != nil {
		return err
	}
	l, err := decode[leaving](rec)
	if err != nil {
		return err
	}
	if !l.Crowd {
		return a.commit(ctx, account, leftOps(rec, l.Message)...)
	}
	return a.putBack(ctx, account, l.Box, l.By.Login)
}

// putBack brings back what a login took out of a mailbox at once, with one mail that asks.
func (a *Agent) putBack(ctx context.Context, account mailbox.AccountID, box mailbox.MailboxID, login string) error {
	recs, err := a.store.Lookup(ctx, account, indexLeaving(box, login))
	if err != nil {
		return err
	}
	var ops []mailbox.Op
	ask := asking{Box: box}
	for _, rec := range recs {
		l, err := decode[leaving](rec)
		if err != nil {
			return err
		}
		if !l.Crowd {
			continue
		}
		places, err := a.store.Places(ctx, account, l.Message)
		if err != nil {
			return err
		}
		if !liesIn(places, box) {
			ops = append(ops, mailbox.AddEntry{Message: l.Message, Mailbox: box})
		}
		if l.To != 0 && liesIn(places, l.To) {
			ops = append(ops, mailbox.RemoveEntry{Message: l.Message, Mailbox: l.To})
		}
		ops = append(ops, leftOps(rec, l.Message)...)
		ask.Messages = append(ask.Messages, l.Message)
	}
	question, err := a.askOps(ctx, account, ask)
	if err != nil {
		return err
	}
	return a.commit(ctx, account, append(ops, question...)...)
}

// askOps puts the question, and what a reply to it is about.
func (a *Agent) askOps(ctx context.Context, account mailbox.AccountID, ask asking) ([]mailbox.Op, error) {
	o, err := a.owner(ctx, account)
	if err != nil {
		return nil, err
	}
	var list strings.Builder
	err = a.store.Messages(ctx, account, ask.Messages, func(m *mailbox.Message) error {
		fmt.Fprintf(&list, "- %s\n", cmp.Or(oneLine(m.Structure.Subject), "(no subject)"))
		return nil
	})
	if err != nil {
		return nil, err
	}
	things, where := kept(ask.Box)
	id := newToken()
	ask.Subject, ask.At = fmt.Sprintf("Delete %d %s?", len(ask.Messages), things), a.now()
	ops, err := a.noteOps(ctx, o, note{
		kind:    KindQuestion,
		subject: ask.Subject,
		text: fmt.Sprintf("%d %s were taken out of %s at once. That is more than three, so they were put back: it may have been a mistake.\n\n%s\nReply with the word delete to delete them. Without an answer they stay.\n",
			len(ask.Messages), things, where, list.String()),
		ref: MessageRef{Ask: id},
	})
	for _, op := range ops {
		if add, ok := op.(mailbox.AddMessage); ok {
			ask.Mail = add.ID
		}
	}
	return append(ops, a.passing(mailbox.PutRecord{Key: askKey(id), Value: mustJSON(ask)})...), err
}

// askReply is a reply to that question. Anything but the word leaves all as it is.
func (a *Agent) askReply(ctx context.Context, in *intake, p *plan, ref MessageRef) error {
	parent, err := a.sentText(ctx, in.account(), ref)
	if err != nil {
		return err
	}
	r, err := mail.Read(in.body, in.body.Size(), in.structure, parent)
	if err != nil {
		return err
	}
	ask, version, err := a.asked(ctx, in.account(), ref.Ask)
	if isKind(err, mailbox.NotFound) {
		p.receipt.Note = "nothing to delete; see your inbox"
		return a.tellOps(ctx, in, p, MessageRef{}, note{subject: "Nothing was deleted", text: "This was answered already, or is too long ago. Nothing was done.\n"})
	}
	if err != nil {
		return err
	}
	if firstWord(r.New) != "delete" {
		p.receipt.Note = "unclear; see your inbox"
		return a.tellOps(ctx, in, p, MessageRef{Ask: ref.Ask}, note{kind: KindQuestion, subject: "Nothing was deleted",
			text: "Only a reply whose first line is the word delete deletes them. Nothing was done; without an answer they stay.\n"})
	}
	ops, err := a.answerAskOps(ctx, in.account(), ref.Ask, ask, version, "delete")
	p.add(ops...)
	p.receipt.Note = "deleted"
	return err
}

// firstWord is the first line that is not empty when it is one word, in lower case.
func firstWord(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.Trim(strings.TrimSpace(line), "*_.!"); line != "" {
			return strings.ToLower(line)
		}
	}
	return ""
}

// throwAway moves what still lies in the mailbox to Trash.
func (a *Agent) throwAway(ctx context.Context, account mailbox.AccountID, ask asking) ([]mailbox.Op, error) {
	var ops []mailbox.Op
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ask.Messages))) {
		places, err := a.store.Places(ctx, account, id)
		if err != nil {
			return nil, err
		}
		if !liesIn(places, ask.Box) {
			continue
		}
		if !liesIn(places, Trash) {
			ops = append(ops, mailbox.AddEntry{Message: id, Mailbox: Trash})
		}
		ops = append(ops, mailbox.RemoveEntry{Message: id, Mailbox: ask.Box})
	}
	return ops, nil
}
