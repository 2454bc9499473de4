package agent

import (
	"context"
	"strconv"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// drop is the record of a message in Tasks: it became a task, or is about to. It goes
// when the message is taken out, or when the task ends.
type drop struct {
	Message mailbox.MessageID `json:"message"`
	By      DecidedBy         `json:"by"`
	Depth   int               `json:"depth,omitempty"` // of Thread
	Run     string            `json:"run,omitempty"`   // once it has begun
}

func dropKey(id mailbox.MessageID) string { return "drop/" + idText(id) }

func idText(id mailbox.MessageID) string { return strconv.FormatUint(uint64(id), 10) }

// takeDrop begins the task of a message that was dropped into Tasks. Taking it out again
// changes the record whose version this needs: either the run begins, or it does not.
func (a *Agent) takeDrop(ctx context.Context, account mailbox.AccountID, due mailbox.Due) error {
	id, err := strconv.ParseUint(due.Key, 10, 64)
	if err != nil {
		return a.dropDue(ctx, account, due)
	}
	rec, err := a.store.Record(ctx, account, dropKey(mailbox.MessageID(id)))
	if isKind(err, mailbox.NotFound) {
		return a.dropDue(ctx, account, due)
	}
	if err != nil {
		return err
	}
	d, err := decode[drop](rec)
	if err != nil {
		return err
	}
	if d.Run != "" {
		return a.dropDue(ctx, account, due)
	}
	ops, err := a.dropOps(ctx, account, d, rec.Version)
	if err != nil {
		return err
	}
	return a.commit(ctx, account, append(ops, mailbox.DeleteDue{Kind: due.Kind, Key: due.Key})...)
}

// dropOps begins a thread of its own, whose first mail is the message.
func (a *Agent) dropOps(ctx context.Context, account mailbox.AccountID, d drop, version uint64) ([]mailbox.Op, error) {
	o, err := a.owner(ctx, account)
	if err != nil {
		return nil, err
	}
	var msg *mailbox.Message
	err = a.store.Messages(ctx, account, []mailbox.MessageID{d.Message}, func(m *mailbox.Message) error {
		msg = m
		return nil
	})
	if err != nil {
		return nil, err
	}
	if msg == nil { // its hold keeps it; a store that lost it has nothing to begin with
		return []mailbox.Op{mailbox.DeleteRecord{Key: dropKey(d.Message), Version: version}}, nil
	}
	s := msg.Structure
	th := &Thread{Task: newTaskID(), Token: newToken(), Subject: s.Subject, Created: a.now(), Depth: d.Depth}
	for _, id := range append(s.References, s.MessageID) {
		th.follow(id)
	}
	in := Inbound{Message: d.Message, MessageID: s.MessageID, Subject: s.Subject, Date: d.By.At, Dropped: true}
	ops, run, err := a.beginRun(ctx, o, th, []Inbound{in})
	if err != nil {
		return nil, err
	}
	d.Run = run.ID
	ops = append(ops,
		mailbox.Hold{Message: d.Message, Name: runHold(run.ID)},
		mailbox.Hold{Message: d.Message, Name: dropKey(d.Message), Release: true},
		mailbox.PutRecord{Key: dropKey(d.Message), Version: version, Value: mustJSON(d)},
		threadPut(th, 0))
	return a.knowing(ctx, account, ops, s.MessageID, MessageRef{Task: th.Task, Message: d.Message})
}

// knowing has mail that answers messageID join the task, unless the Message-ID belongs to
// another one already.
func (a *Agent) knowing(ctx context.Context, account mailbox.AccountID, ops []mailbox.Op, messageID string, ref MessageRef) ([]mailbox.Op, error) {
	_, known, err := a.refOf(ctx, account, messageID)
	if err == nil && !known && messageID != "" {
		put := refPut(messageID, ref)
		put.Any = false
		ops = append(ops, put)
	}
	return ops, err
}

// fileDropped takes the messages that a run was about out of Tasks when it ends: they go
// to Archive, read, unless the person has filed them elsewhere.
func (a *Agent) fileDropped(ctx context.Context, account mailbox.AccountID, run *Run) ([]mailbox.Op, error) {
	var ops []mailbox.Op
	for _, in := range run.Inputs {
		if !in.Dropped {
			continue
		}
		places, err := a.store.Places(ctx, account, in.Message)
		if err != nil {
			return nil, err
		}
		if !liesIn(places, Tasks) {
			continue
		}
		if !liesIn(places, Archive) {
			ops = append(ops, mailbox.AddEntry{Message: in.Message, Mailbox: Archive})
		}
		ops = append(ops,
			mailbox.RemoveEntry{Message: in.Message, Mailbox: Tasks},
			mailbox.MarkMessage{Message: in.Message, Add: []imap.Flag{imap.FlagSeen}},
			mailbox.DeleteRecord{Key: dropKey(in.Message)})
	}
	return ops, nil
}
