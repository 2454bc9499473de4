package agent

import (
	"encoding/json"
	"strings"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// maxDrops is how many messages one act may drop into Tasks: a selection that slipped
// would start as many runs.
const maxDrops = 20

// maxChained is how often a result may be dropped whose task began with a result that was
// dropped, and so on (invariant 7).
const maxChained = 3

// scheduleTag marks the message of a schedule, for the guard.
const scheduleTag = "schedule:"

// incoming is a message that a person puts into a mailbox.
type incoming struct {
	id     mailbox.MessageID
	header string // Message-ID
	tag    string
}

// takesIn checks what is put into Tasks, Memory or Schedules, and has it mean what it
// means there. Into other mailboxes everything goes.
func (r *review) takesIn(box mailbox.MailboxID, list []incoming) error {
	if box != Tasks && box != Memory && box != Schedules {
		return nil
	}
	if box == Tasks && len(list) > maxDrops {
		return &mailbox.Error{Op: "guard", Kind: mailbox.Refused, Code: string(imap.ResponseCodeLimit),
			Text: "each message dropped here becomes a task: drop at most 20 at once"}
	}
	for _, in := range list {
		if err := r.takeIn(box, in); err != nil {
			return err
		}
	}
	return nil
}

func (r *review) takeIn(box mailbox.MailboxID, in incoming) error {
	ref := r.refOf(in.header)
	switch {
	case ref.Ours && ref.Decision != "" || strings.HasPrefix(in.tag, decisionTag("")):
		return cannot("mail about a decision is between you and the server: the agent does not get to see it")
	case ref.Ours && ref.Kind == KindStatus || strings.HasPrefix(in.tag, statusTag("")):
		return cannot("this only shows how far a task is: reply to it to tell the task something")
	case box == Schedules && !strings.HasPrefix(in.tag, scheduleTag):
		return cannot("Schedules takes back what was deleted from it; making a schedule is not available yet")
	case box != Schedules && strings.HasPrefix(in.tag, scheduleTag):
		return cannot("this is a schedule: it lies in Schedules, or deleted in Trash")
	case box == Tasks:
		return r.drop(in, ref)
	}
	return r.comeBack(in.id)
}

// refOf is what a Message-ID belongs to; nothing for one that is not known.
func (r *review) refOf(messageID string) (ref MessageRef) {
	if messageID == "" {
		return ref
	}
	rec, found := r.view.Record(midKey(messageID))
	if !found || json.Unmarshal(rec.Value, &ref) != nil {
		return MessageRef{}
	}
	return ref
}

// drop has the message become a task: the note that it was dropped, and the due entry
// that begins the run, commit with the message. See takeDrop.
func (r *review) drop(in incoming, ref MessageRef) error {
	d := drop{Message: in.id, By: r.by(viaMove)}
	if ref.Ours && ref.Task != "" {
		var th Thread
		if rec, found := r.view.Record(threadKey(ref.Task)); found && json.Unmarshal(rec.Value, &th) == nil {
			d.Depth = th.Depth + 1
		}
	}
	if d.Depth > maxChained {
		return cannot("this is a result about a result about a result; to go on from here, reply to it")
	}
	r.after = append(r.after,
		mailbox.Hold{Message: in.id, Name: dropKey(in.id)},
		mailbox.PutRecord{Key: dropKey(in.id), Any: true, Value: mustJSON(d)},
		mailbox.PutDue{Due: mailbox.Due{Kind: DueDrop, Key: idText(in.id), At: r.a.now()}})
	return nil
}

// takeOut is what it means that a message leaves Tasks, Memory or Schedules.
func (r *review) takeOut(it mailbox.ActItem, from, to mailbox.MailboxID) error {
	switch from {
	case Tasks:
		return r.takeBack(it.Message)
	case Memory, Schedules:
		r.goAway(it.Message, from, to)
	}
	return nil
}

// takeBack: the task of a message that is taken out of Tasks before anything was done
// about it does not begin. Later it is only filed: Running is where a task is cancelled.
func (r *review) takeBack(id mailbox.MessageID) error {
	rec, found := r.view.Record(dropKey(id))
	if !found {
		return nil
	}
	var d drop
	if err := json.Unmarshal(rec.Value, &d); err != nil {
		return err
	}
	r.after = append(r.after,
		mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version},
		mailbox.DeleteDue{Kind: DueDrop, Key: idText(id)},
		mailbox.Hold{Message: id, Name: dropKey(id), Release: true})
	if d.Run == "" {
		return nil
	}
	head, found := r.view.Record(runKey(d.Run))
	if !found {
		return nil
	}
	run, err := decodeRun(head)
	if err != nil || run.State != Queued {
		return err
	}
	return r.cancelTask(statusTag(d.Run))
}

func (r *review) by(via string) DecidedBy {
	return DecidedBy{Login: r.actor.Login, Credential: r.actor.Credential, Via: via, At: r.now}
}
