package agent

import (
	"encoding/json"
	"slices"

	"pizza/mailbox"
)

// A message in Memory is a note that is kept, one in Schedules a schedule that runs; what
// they mean to a run is no matter of the guard. Taking more than three out at once is
// taken for an accident, as with decisions: they come back and one mail asks.

// leaving is the record of a message that was taken out of Memory or Schedules, for the
// time of a window.
type leaving struct {
	Message mailbox.MessageID `json:"message"`
	Box     mailbox.MailboxID `json:"box"`
	To      mailbox.MailboxID `json:"to"` // where it went
	By      DecidedBy         `json:"by"`
	Crowd   bool              `json:"crowd,omitempty"` // one of too many: they come back
}

func leavingKey(id mailbox.MessageID) string { return "leaving/" + idText(id) }

// indexLeaving is of leaving records, + mailbox and login.
func indexLeaving(box mailbox.MailboxID, login string) string {
	return "leaving/" + idText(mailbox.MessageID(box)) + "/" + login
}

// goAway notes that a message left, and holds it till the end of the window.
func (r *review) goAway(id mailbox.MessageID, box, to mailbox.MailboxID) {
	r.left = append(r.left, leaving{Message: id, Box: box, To: to, By: r.by(viaDelete)})
}

// comeBack takes that back: the person has put the message there again.
func (r *review) comeBack(id mailbox.MessageID) error {
	rec, found := r.view.Record(leavingKey(id))
	if !found {
		return nil
	}
	r.after = append(r.after, leftOps(rec, id)...)
	return nil
}

// leftOps ends the time in which a message that left can come back.
func leftOps(rec mailbox.Record, id mailbox.MessageID) []mailbox.Op {
	return []mailbox.Op{
		mailbox.DeleteRecord{Key: rec.Key, Version: rec.Version},
		mailbox.DeleteDue{Kind: DueLeaving, Key: idText(id)},
		mailbox.Hold{Message: id, Name: rec.Key, Release: true},
	}
}

// crowdLeft writes what left with this act. With all that left within one window they may
// be too many: then they are marked, and come back together when the last window ends.
func (r *review) crowdLeft() error {
	if len(r.left) == 0 {
		return nil
	}
	before, crowd, err := r.leftBefore()
	if err != nil {
		return err
	}
	crowd = crowd || len(before)+len(r.left) > crowdSize
	if crowd {
		r.left = append(before, r.left...)
	}
	for _, l := range r.left {
		l.Crowd = crowd
		key := leavingKey(l.Message)
		r.after = append(r.after,
			mailbox.Hold{Message: l.Message, Name: key},
			mailbox.PutRecord{Key: key, Any: true, Value: mustJSON(l), Index: []string{indexLeaving(l.Box, r.actor.Login)}},
			mailbox.PutDue{Due: mailbox.Due{Kind: DueLeaving, Key: idText(l.Message), At: r.now.Add(r.a.opt.Window)}})
	}
	return nil
}

// leftBefore lists what this login took out of the mailbox within the window before.
func (r *review) leftBefore() (list []leaving, crowd bool, err error) {
	for _, rec := range r.view.Lookup(indexLeaving(r.left[0].Box, r.actor.Login)) {
		var l leaving
		if err := json.Unmarshal(rec.Value, &l); err != nil {
			return nil, false, err
		}
		if !slices.ContainsFunc(r.left, func(o leaving) bool { return o.Message == l.Message }) {
			list, crowd = append(list, l), crowd || l.Crowd
		}
	}
	return list, crowd, nil
}
