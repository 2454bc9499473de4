package agent

import (
	"slices"

	"pizza/mailbox"
)

// copy makes messages of their own, but for COPY of an open approval into
// Action/Approve or Action/Reject by a program that has no MOVE: that gives the
// same message a further entry, which decides nothing until the source entry gets
// \Deleted.
func (r *review) copy() error {
	to := r.act.To.ID
	verb := boxVerb(to)
	if verb == "" {
		return r.plainCopy(to)
	}
	r.share = true
	for _, it := range r.act.Items {
		h, err := r.ownEntry(it)
		if err != nil {
			return err
		}
		if h.State != Open || h.Copied {
			return cannot("this is about to be decided already; move it back to Action to take that back")
		}
		h.Verb, h.Copied, h.Until = verb, true, r.now.Add(r.a.opt.Window)
		h.Source, h.SourceUID = r.act.From.ID, it.UID
		r.keep(h)
	}
	return nil
}

// isSource reports whether an entry is the one that was copied to decide h. The other
// entry's deletion means what it always does: in INBOX filing, in Action a rejection.
func (r *review) isSource(h *held, it mailbox.ActItem) bool {
	return h.Copied && h.SourceUID != 0 && h.Source == r.box() && h.SourceUID == it.UID
}

func (d *Decision) forgetCopy() { d.Copied, d.SourceUID = false, 0 }

// plainCopy makes messages of their own. A program without MOVE copies, and deletes when
// that went well: where a move is refused, the copy is.
func (r *review) plainCopy(to mailbox.MailboxID) error {
	if text := closedTo(to); text != "" {
		return cannot(text)
	}
	from := r.act.From.ID
	if from == Running && to != Trash {
		return cannot(statusNotFiled)
	}
	r.share = (from == Memory || from == Schedules) && to == Trash
	var list []incoming
	for _, it := range r.act.Items {
		h, err := r.decision(it.Tag)
		if err != nil {
			return err
		}
		if h != nil && (isActionBox(from) && to != Trash || r.act.Through != nil) {
			return cannot(decidedNotCopied)
		}
		list = append(list, incoming{header: r.view.MessageID(it.Message), tag: it.Tag})
		if to == Tasks {
			r.copies = append(r.copies, r.view.NextMessageID())
			list[len(list)-1].id = r.copies[len(r.copies)-1]
		}
	}
	return r.takesIn(to, list)
}

const (
	statusNotFiled   = "Running shows the live tasks; a status can be deleted, which cancels its task, but not filed"
	decidedNotCopied = "this waits for your decision: answer it, or move it to Action/Approve or Action/Reject. To keep a copy, copy the one in INBOX"
)

// ownEntry gives the open approval whose entry it is, in Action or INBOX.
func (r *review) ownEntry(it mailbox.ActItem) (*held, error) {
	h, err := r.decision(it.Tag)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, cannot(closedTo(r.act.To.ID))
	case r.act.From.ID != Action && r.act.From.ID != mailbox.Inbox:
		return nil, cannot("move the one in Action or INBOX; this one is filed")
	case h.Kind != decisionApproval:
		return nil, byReply(h.Decision)
	case !h.Expires.IsZero() && r.now.After(h.Expires):
		return nil, cannot("this expired on " + r.a.when(h.Expires))
	}
	return h, r.notParked()
}

func (r *review) move(op mailbox.MoveEntries) error {
	from, to := r.act.From.ID, r.act.To.ID
	if from == to {
		return nil
	}
	if from == Running && to == Trash {
		if err := r.cancelReplaced(op.Gone); err != nil {
			return err
		}
	}
	seen := map[mailbox.MessageID]bool{}
	var list []incoming
	for _, it := range r.act.Items {
		if seen[it.Message] {
			continue
		}
		seen[it.Message] = true
		if err := r.moveItem(it, from, to); err != nil {
			return err
		}
		list = append(list, incoming{it.Message, r.view.MessageID(it.Message), it.Tag})
		if to == Sent {
			r.sentCopy(list[len(list)-1])
		}
	}
	return r.takesIn(to, list)
}

func (r *review) moveItem(it mailbox.ActItem, from, to mailbox.MailboxID) error {
	if from == Running {
		if to != Trash {
			return cannot(statusNotFiled)
		}
		return r.cancelTask(it.Tag)
	}
	h, err := r.decision(it.Tag)
	if err != nil {
		return err
	}
	if h == nil {
		if text := closedTo(to); text != "" {
			return cannot(text)
		}
		return r.takeOut(it, from, to)
	}
	if err := r.moveDecision(h, it.Message, from, to); err != nil {
		return err
	}
	places := r.view.Places(it.Message)
	if liesIn(places, to) { // it keeps that entry: a message has one a mailbox
		to = 0
	}
	h.Alone = aloneAfter(places, from, to)
	r.keep(h)
	return nil
}

// moveDecision is the table of moves of an open decision's message.
func (r *review) moveDecision(h *held, msg mailbox.MessageID, from, to mailbox.MailboxID) error {
	byDelete := h.State == Deciding && h.By != nil && h.By.Via == viaDelete
	back := boxVerb(from) != "" && (to == Action || to == mailbox.Inbox)
	switch {
	case r.act.Through != nil && boxVerb(to) == "" && !back:
		return cannot(decidedNotFiled)
	case boxVerb(to) != "":
		return r.moveDecides(h, msg, from, to)
	case back:
		return r.moveBack(h, msg, to)
	case boxVerb(from) != "":
		return cannot("this is about to be decided; move it back to Action to take it back")
	case from == Action && to == Trash && unanswered(h):
		return r.deleteUnanswered(h, msg)
	case from == Action:
		return cannot("this waits for your decision: answer it, or move it to Action/Approve or Action/Reject")
	case byDelete && (to == Action || to == mailbox.Inbox):
		return r.moveBack(h, msg, to)
	case closedTo(to) != "":
		return cannot(closedTo(to))
	}
	return nil // filing
}

// moveDecides starts the window of a move, or changes its verb.
func (r *review) moveDecides(h *held, msg mailbox.MessageID, from, to mailbox.MailboxID) error {
	if boxVerb(from) == "" && from != Action && from != mailbox.Inbox {
		return cannot("move the one in Action or INBOX; this one is filed")
	}
	if err := r.begin(h, boxVerb(to), viaMove, from); err != nil {
		return err
	}
	h.forgetCopy()
	for _, box := range []mailbox.MailboxID{Action, Approve, Reject} {
		if box != from && box != to {
			r.after = append(r.after, mailbox.RemoveEntry{Message: msg, Mailbox: box, IfPresent: true})
		}
	}
	return nil
}

// moveBack takes a window back: the message lies in Action again, once.
func (r *review) moveBack(h *held, msg mailbox.MessageID, to mailbox.MailboxID) error {
	if to != Action && !liesIn(r.view.Places(msg), Action) {
		r.after = append(r.after, mailbox.AddEntry{Message: msg, Mailbox: Action})
	}
	for _, box := range []mailbox.MailboxID{Approve, Reject} {
		r.after = append(r.after, mailbox.RemoveEntry{Message: msg, Mailbox: box, IfPresent: true})
	}
	r.reopen(h)
	return nil
}

// expunge removes entries: an open approval's in Action is a rejection, its others
// only filing. A decision's message stays alive until it is decided.
func (r *review) expunge() error {
	box := r.box()
	for _, it := range r.act.Items {
		_, whole := r.act.Op.(mailbox.DeleteMailbox)
		if !it.Deleted && !whole {
			continue
		}
		h, err := r.decision(it.Tag)
		if err != nil {
			return err
		}
		if h == nil {
			if err := r.expungePlain(it, box); err != nil {
				return err
			}
			continue
		}
		if err := r.expungeDecision(h, it.Message, box); err != nil {
			return err
		}
	}
	return nil
}

// expungePlain: what is deleted in Memory or Schedules lies in Trash.
func (r *review) expungePlain(it mailbox.ActItem, box mailbox.MailboxID) error {
	to := mailbox.MailboxID(0)
	if box == Memory || box == Schedules {
		to = Trash
		if !liesIn(r.view.Places(it.Message), Trash) {
			r.before = append(r.before, mailbox.AddEntry{Message: it.Message, Mailbox: Trash})
		}
	}
	return r.takeOut(it, box, to)
}

// filed: INBOX is renamed, which moves what lies in it to a mailbox of the person's: an
// open decision is filed by that.
func (r *review) filed() error {
	for _, it := range r.act.Items {
		h, err := r.decision(it.Tag)
		if err != nil {
			return err
		}
		if h != nil {
			r.keep(h)
		}
	}
	return nil
}

func (r *review) expungeDecision(h *held, msg mailbox.MessageID, box mailbox.MailboxID) error {
	switch {
	case boxVerb(box) != "":
		return cannot("this is about to be decided; move it back to Action to take it back")
	case box == Action && unanswered(h):
		if err := r.deleteUnanswered(h, msg); err != nil {
			return err
		}
	}
	r.before = append(r.before, mailbox.Hold{Message: msg, Name: decisionKey(h.ID)})
	h.Alone = aloneAfter(r.view.Places(msg), box, 0)
	r.keep(h)
	return nil
}

// unanswered reports whether taking h's entry out of Action refuses: it is open, or about to
// be decided by a copy of its entry in INBOX. Otherwise that entry is the one that was
// copied, and goes because it was.
func unanswered(h *held) bool {
	return h.State == Open || h.State == Deciding && h.Copied && h.Source != Action
}

// deleteUnanswered starts the window of a rejection. A copy that was about to decide, or
// waited to, goes: nothing is approved by a deletion.
func (r *review) deleteUnanswered(h *held, msg mailbox.MessageID) error {
	if h.Copied {
		r.after = append(r.after, mailbox.RemoveEntry{Message: msg, Mailbox: verbBox(h.Verb), IfPresent: true})
		h.forgetCopy()
	}
	return r.begin(h, "reject", viaDelete, Action)
}

// aloneAfter reports whether a message lies nowhere but in Action and the two
// below it, once an entry went from one mailbox to another (0: nowhere).
func aloneAfter(places []mailbox.Place, from, to mailbox.MailboxID) bool {
	n := 0
	for _, p := range places {
		if !isActionBox(p.Mailbox) {
			n++
		}
	}
	if !isActionBox(from) {
		n--
	}
	if to != 0 && !isActionBox(to) {
		n++
	}
	return n <= 0
}

func liesIn(places []mailbox.Place, box mailbox.MailboxID) bool {
	return slices.ContainsFunc(places, func(p mailbox.Place) bool { return p.Mailbox == box })
}
