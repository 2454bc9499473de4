package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// deliveryTime is how long mail for another account is tried.
const deliveryTime = 24 * time.Hour

// delivery is a mail of this account that has to come into another one's INBOX. It
// is a record of the sender's file, committed with the submission; the message is
// held until it is there.
type delivery struct {
	ID        string            `json:"id"`
	To        mailbox.AccountID `json:"to"`
	Login     string            `json:"login"` // of the recipient, for people
	Message   mailbox.MessageID `json:"message"`
	MessageID string            `json:"message_id"`
	Subject   string            `json:"subject"`
	Created   time.Time         `json:"created"`
}

func deliveryKey(id string) string { return "delivery/" + id }

const receivedPrefix = "received/"

// receivedKey is a record of the recipient's file: this delivery has come in.
func receivedKey(from mailbox.AccountID, id string) string {
	return receivedPrefix + string(from) + "/" + id
}

// deliveryAwaited reports whether rest, what follows receivedPrefix in a key, is of a
// delivery that its sender may still try. Once the sender's side is cleared nobody does:
// its id never comes again.
func (a *Agent) deliveryAwaited(ctx context.Context, rest string) (bool, error) {
	from, id, _ := strings.Cut(rest, "/")
	_, err := a.store.Record(ctx, mailbox.AccountID(from), deliveryKey(id))
	if isKind(err, mailbox.NotFound) { // so when the account is gone
		return false, nil
	}
	return err == nil, err
}

// sendOps has a message of the sender's account delivered to another account.
func sendOps(d delivery) []mailbox.Op {
	return []mailbox.Op{
		mailbox.Hold{Message: d.Message, Name: deliveryKey(d.ID)},
		mailbox.PutRecord{Key: deliveryKey(d.ID), Value: mustJSON(d)},
		mailbox.PutDue{Due: mailbox.Due{Kind: DueDeliver, Key: d.ID, At: d.Created}},
	}
}

// deliverDue brings a mail into the other account's file, once: the message and the
// record that it came are one Tx there. Then the sender's side is cleared.
func (a *Agent) deliverDue(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	rec, err := a.store.Record(ctx, account, deliveryKey(due.Key))
	if isKind(err, mailbox.NotFound) {
		return a.dropDue(ctx, account, due)
	}
	if err != nil {
		return err
	}
	var d delivery
	if err := json.Unmarshal(rec.Value, &d); err != nil {
		return a.undeliverable(ctx, account, rec, delivery{ID: due.Key}, fmt.Errorf("decode delivery: %w", err))
	}
	err = a.handOver(ctx, account, d)
	switch {
	case err == nil:
		return a.commit(ctx, account, a.deliveredOps(rec, d)...)
	case ctx.Err() != nil:
		return ctx.Err()
	case permanent(err) || a.now().Sub(d.Created) > deliveryTime:
		return a.undeliverable(ctx, account, rec, d, err)
	}
	return err
}

func permanent(err error) bool {
	var me *mailbox.Error
	return errors.As(err, &me) && (me.Kind == mailbox.NotFound || me.Kind == mailbox.Refused || me.Kind == mailbox.TooLarge)
}

func (a *Agent) deliveredOps(rec mailbox.Record, d delivery) []mailbox.Op {
	ops := []mailbox.Op{
		mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version},
		mailbox.DeleteDue{Kind: DueDeliver, Key: d.ID},
	}
	if d.Message != 0 {
		ops = append(ops, mailbox.Hold{Message: d.Message, Name: rec.Key, Release: true})
	}
	return ops
}

// handOver commits in the recipient's file. nil also when it is there already.
func (a *Agent) handOver(ctx context.Context, from mailbox.AccountID, d delivery) error {
	key := receivedKey(from, d.ID)
	if _, err := a.store.Record(ctx, d.To, key); err == nil {
		return nil
	} else if !isKind(err, mailbox.NotFound) {
		return err
	}
	add, err := a.carry(ctx, from, d)
	if err != nil {
		return err
	}
	came := a.passing(mailbox.PutRecord{Key: key, Value: []byte(`{}`)})
	err = a.commit(ctx, d.To, append(came, add)...)
	if isKind(err, mailbox.Conflict) {
		if _, again := a.store.Record(ctx, d.To, key); again == nil {
			return nil
		}
	}
	if err == nil {
		a.log.InfoContext(ctx, "delivered", "login", d.Login, "delivery", d.ID)
	}
	return err
}

// carry stages the message's bytes in the recipient's account.
func (a *Agent) carry(ctx context.Context, from mailbox.AccountID, d delivery) (mailbox.AddMessage, error) {
	add := mailbox.AddMessage{Places: []mailbox.MailboxID{mailbox.Inbox}, Date: d.Created}
	if err := a.room(ctx, d.To); err != nil {
		return add, err
	}
	body, err := a.store.OpenMessage(ctx, from, d.Message)
	if err != nil {
		return add, err
	}
	defer body.Close()
	if add.Structure, err = mime.Parse(body, body.Size()); err != nil {
		return add, err
	}
	if add.Blob, err = a.store.Stage(ctx, d.To, io.NewSectionReader(body, 0, body.Size()), 0); err != nil {
		return add, err
	}
	add.ID, err = a.store.NextMessageID(d.To)
	return add, err
}

// undeliverable tells the sender, in the Tx that gives the delivery up.
func (a *Agent) undeliverable(ctx context.Context, account mailbox.AccountID, rec mailbox.Record, d delivery, cause error) error {
	a.log.WarnContext(ctx, "delivery failed", "delivery", d.ID, "login", d.Login, "err", cause)
	o, err := a.owner(ctx, account)
	if err != nil {
		return err
	}
	ops, err := a.noteOps(ctx, o, note{
		kind: KindFailure, subject: "Not delivered: " + d.Subject,
		answers: Inbound{MessageID: d.MessageID, Subject: d.Subject},
		text: fmt.Sprintf("Your mail %q could not be delivered to %s@%s: %s.\n\nNothing else was done with it. Your copy is in Sent.\n",
			oneLine(d.Subject), d.Login, a.opt.Domain, reasonOf(cause)),
	})
	if err != nil {
		return err
	}
	return a.commit(ctx, account, append(a.deliveredOps(rec, d), ops...)...)
}

// reasonOf says in plain words why something failed; causes are for the log.
func reasonOf(err error) string {
	var me *mailbox.Error
	switch {
	case !errors.As(err, &me):
		return "a fault of this server"
	case me.Text != "":
		return me.Text
	case me.Kind == mailbox.NotFound:
		return "there is no such account any more"
	case me.Kind == mailbox.Full:
		return "its disk is full"
	}
	return "the mailbox does not take it (" + me.Kind.String() + ")"
}
