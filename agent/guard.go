package agent

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// crowdSize is how many decisions one login may move or delete within one window.
// More are taken for an accident (a multi-select, a program's clean-up): all of
// them go back undecided and one mail asks.
const crowdSize = 3

// Review is the meaning of the system mailboxes and of decision and status mail:
// see mailbox.Guard. It runs inside a commit: it reads the view and nothing else.
//
//	open --move/delete--> deciding --window ends--> approved | rejected
//	  ^----move back-------'
//
// Every change of where a decision's message lies also writes the decision's
// record, so that whoever read record, then places, and commits on the record's
// version has seen the places as they are.
func (a *Agent) Review(view mailbox.View, account mailbox.AccountID, actor mailbox.Actor, act mailbox.Act) (mailbox.Verdict, error) {
	if _, ok := act.Op.(mailbox.Subscribe); ok {
		return mailbox.Verdict{}, nil
	}
	if actor.Scope != mailbox.ScopeFull {
		return mailbox.Verdict{}, &mailbox.Error{Op: "guard", Kind: mailbox.Denied, Text: "this credential may not change mail"}
	}
	r := &review{a: a, view: view, actor: actor, act: act, now: actor.At, changed: map[string]*held{}}
	if r.now.IsZero() {
		r.now = a.now()
	}
	if err := r.judge(); err != nil {
		return mailbox.Verdict{}, err
	}
	return r.verdict()
}

// review is one act under examination.
type review struct {
	a     *Agent
	view  mailbox.View
	actor mailbox.Actor
	act   mailbox.Act
	now   time.Time

	before, after []mailbox.Op     // beside the act
	changed       map[string]*held // decisions whose record is written
	order         []string         // their ids, as met
	begun         []string         // ids whose window begins with this act
	cancelled     []string         // runs asked to end by this act
	left          []leaving        // taken out of Memory or Schedules
	copies        []mailbox.MessageID
	share         bool
}

// held is a decision and the version of its record.
type held struct {
	Decision
	version uint64
	started bool // in this act
}

func (r *review) judge() error {
	switch op := r.act.Op.(type) {
	case mailbox.AddMessage:
		return r.add(op)
	case mailbox.CopyEntries:
		return r.copy()
	case mailbox.MoveEntries:
		return r.move(op)
	case mailbox.StoreFlags:
		return r.flags(op)
	case mailbox.Expunge:
		return r.expunge()
	case mailbox.CreateMailbox:
		return r.nameAllowed(op.Name)
	case mailbox.RenameMailbox:
		if r.act.To != nil && r.act.To.System && r.act.To.ID != mailbox.Inbox {
			return cannot(r.act.To.Name + " is a system mailbox; its name stays")
		}
		if err := r.nameAllowed(op.Name); err != nil {
			return err
		}
		return r.filed()
	case mailbox.DeleteMailbox:
		if r.act.To != nil && r.act.To.System {
			return cannot(r.act.To.Name + " is a system mailbox; it stays")
		}
		return r.expunge()
	case mailbox.MarkMessage, mailbox.CheckRecord:
		return nil
	}
	return cannot("only the server itself does this")
}

// verdict turns what was found into the answer.
func (r *review) verdict() (mailbox.Verdict, error) {
	if err := errors.Join(r.crowd(), r.crowdLeft()); err != nil {
		return mailbox.Verdict{}, err
	}
	v := mailbox.Verdict{Also: r.after, ShareCopies: r.share, Copies: r.copies}
	for _, id := range r.order {
		h := r.changed[id]
		v.Also = append(v.Also, decisionPut(h.Decision, h.version))
		if !h.Until.IsZero() {
			v.Also = append(v.Also, mailbox.PutDue{Due: mailbox.Due{Kind: DueWindow, Key: id, At: h.Until}})
		} else {
			v.Also = append(v.Also, mailbox.DeleteDue{Kind: DueWindow, Key: id})
		}
	}
	if len(r.before) > 0 {
		v.Instead = append(r.before, r.act.Op)
	}
	return v, nil
}

// cannot is a refusal that tells why (RFC 9051 section 7.1, CANNOT).
func cannot(text string) error {
	return &mailbox.Error{Op: "guard", Kind: mailbox.Refused, Code: "CANNOT", Text: text}
}

// decidedNotFiled refuses to file or delete an open decision in Unread, where nobody sees
// whether its entry in INBOX or the one in Action is meant.
const decidedNotFiled = "this waits for your decision: answer it, or move it to Action/Approve or Action/Reject. It can be filed from INBOX, and deleted in Action, which refuses"

// closedTo says why nobody may put mail into a mailbox, "" when they may.
func closedTo(box mailbox.MailboxID) string {
	switch box {
	case Action:
		return "Action holds what waits for your decision and nothing else"
	case Approve, Reject:
		return "only an approval that waits in Action can be moved here"
	case Running:
		return "Running shows the live tasks and nothing else"
	case Unread:
		return "Unread is a view of other mailboxes; put the mail there"
	}
	return ""
}

func (r *review) nameAllowed(name string) error {
	if name == "Unread" {
		return cannot("Unread is a view that the server makes, for an account whose settings have it switched on")
	}
	for _, top := range []string{"Action", "Running", "Memory", "Schedules", "Tasks", "Unread"} {
		if strings.HasPrefix(name, top+"/") && !slices.Contains([]string{"Action/Approve", "Action/Reject"}, name) {
			return cannot("no mailboxes can be made below " + top)
		}
	}
	return nil
}

func (r *review) add(op mailbox.AddMessage) error {
	for _, box := range op.Places {
		if text := closedTo(box); text != "" {
			return cannot(text)
		}
	}
	in := incoming{id: op.ID}
	if op.Structure != nil {
		in.header = op.Structure.MessageID
	}
	for _, box := range op.Places {
		if err := r.takesIn(box, []incoming{in}); err != nil {
			return err
		}
		if box == Sent {
			r.sentCopy(in)
		}
	}
	return nil
}

// decision gives the decision that a message belongs to, nil if none.
func (r *review) decision(tag string) (*held, error) {
	id, ok := strings.CutPrefix(tag, decisionTag(""))
	if !ok {
		return nil, nil
	}
	if h := r.changed[id]; h != nil {
		return h, nil
	}
	rec, ok := r.view.Record(decisionKey(id))
	if !ok {
		return nil, nil
	}
	d, err := decodeDecision(rec)
	if err != nil || !d.State.undecided() {
		return nil, err
	}
	return &held{Decision: d, version: rec.Version}, nil
}

// keep has h's record written with the act.
func (r *review) keep(h *held) {
	if r.changed[h.ID] == nil {
		r.changed[h.ID] = h
		r.order = append(r.order, h.ID)
	}
}

// begin starts the window at whose end h is decided by verb.
func (r *review) begin(h *held, verb, via string, source mailbox.MailboxID) error {
	if h.Kind != decisionApproval {
		return byReply(h.Decision)
	}
	if err := r.notParked(); err != nil {
		return err
	}
	if !h.Expires.IsZero() && r.now.After(h.Expires) {
		return cannot("this expired on " + r.a.when(h.Expires))
	}
	if h.State == Open {
		h.Source = source
	}
	h.State, h.Verb, h.Until = Deciding, verb, r.now.Add(r.a.opt.Window)
	h.By = &DecidedBy{Login: r.actor.Login, Credential: r.actor.Credential, Via: via, At: r.now}
	if !h.started {
		h.started = true
		r.begun = append(r.begun, h.ID)
	}
	r.keep(h)
	return nil
}

// reopen takes a window back.
func (r *review) reopen(h *held) {
	h.reopen()
	r.keep(h)
}

func (d *Decision) reopen() {
	d.State, d.Verb, d.Until, d.By = Open, "", time.Time{}, nil
	d.Source, d.Crowd = 0, false
	d.forgetCopy()
}

// crowd marks all decisions in this login's windows when they are too many: they
// go back together when the last of the windows ends.
func (r *review) crowd() error {
	if len(r.begun) == 0 {
		return nil
	}
	var all []*held
	for _, rec := range r.view.Lookup(indexDeciding + r.actor.Login) {
		id := strings.TrimPrefix(rec.Key, decisionKey(""))
		if r.changed[id] != nil {
			continue
		}
		d, err := decodeDecision(rec)
		if err != nil {
			return err
		}
		all = append(all, &held{Decision: d, version: rec.Version})
	}
	for _, id := range r.begun {
		all = append(all, r.changed[id])
	}
	if len(all) <= crowdSize && !slices.ContainsFunc(all, func(h *held) bool { return h.Crowd }) {
		return nil
	}
	for _, h := range all {
		h.Crowd, h.Until = true, r.now.Add(r.a.opt.Window)
		r.keep(h)
	}
	return nil
}

// cancelTask asks the run of a status message to end. Its worker sees the commit as
// a change of Running and as a due entry, and reads the journal again.
func (r *review) cancelTask(tag string) error {
	run, ok := strings.CutPrefix(tag, statusTag(""))
	if !ok {
		return cannot("only the status of a task can be deleted here")
	}
	if slices.Contains(r.cancelled, run) {
		return nil
	}
	r.cancelled = append(r.cancelled, run)
	rec, ok := r.view.Record(runKey(run))
	if !ok {
		return nil
	}
	by := DecidedBy{Login: r.actor.Login, Credential: r.actor.Credential, Via: viaDelete, At: r.now}
	live := liveOf(r.view.Lookup(indexWorkers + taskOf(run)))
	ops, _, err := r.a.cancelTree(rec, live, by)
	if isKind(err, mailbox.Conflict) {
		return nil // it has ended: only the message goes
	}
	if err != nil {
		return err
	}
	r.after = append(r.after, ops...)
	return nil
}

// cancelReplaced cancels the tasks whose replaced status messages a program still
// showed when the person deleted them.
func (r *review) cancelReplaced(gone imap.UIDSet) error {
	if len(gone) == 0 {
		return nil
	}
	for _, rec := range r.view.Lookup(indexLiveRuns) {
		run, err := decodeRun(rec)
		if err != nil || !slices.ContainsFunc(run.Replaced, gone.Contains) {
			continue // a damaged record stands in no other task's way
		}
		if run.Status != 0 {
			r.after = append(r.after, mailbox.RemoveEntry{Message: run.Status, Mailbox: Running, IfPresent: true})
		}
		if err := r.cancelTask(statusTag(run.ID)); err != nil {
			return err
		}
	}
	return nil
}

// flags: \Deleted on a status message cancels its task; on the source of a copied
// approval it starts the window; its removal takes that back.
func (r *review) flags(op mailbox.StoreFlags) error {
	deletes, undeletes := deletedChange(op)
	if deletes && r.box() == Running {
		if err := r.cancelReplaced(op.Gone); err != nil {
			return err
		}
	}
	unsees := op.Op != imap.StoreFlagsAdd && namesSeen(op.Flags) == (op.Op == imap.StoreFlagsDel)
	for _, it := range r.act.Items {
		if unsees && r.box() == Running { // it tells nothing new
			r.after = append(r.after, mailbox.MarkMessage{Message: it.Message, Add: []imap.Flag{imap.FlagSeen}})
		}
		if r.box() == Sent {
			r.touchSent(op, it)
		}
		if it.Tag == "" && r.box() != Running {
			continue
		}
		if op.UnchangedSince != nil && r.changedSince(it, *op.UnchangedSince) {
			continue
		}
		if err := r.flag(it, deletes && !it.Deleted, undeletes && it.Deleted); err != nil {
			return err
		}
	}
	return nil
}

func (r *review) flag(it mailbox.ActItem, deletes, undeletes bool) error {
	box := r.box()
	if box == Running && deletes {
		r.after = append(r.after, mailbox.RemoveEntry{Message: it.Message, Mailbox: Running, IfPresent: true})
		return r.cancelTask(it.Tag)
	}
	h, err := r.decision(it.Tag)
	if h == nil || err != nil {
		return err
	}
	switch {
	case deletes && r.act.Through != nil && !r.isSource(h, it):
		return cannot(decidedNotFiled)
	case deletes && boxVerb(box) != "" && h.State == Open && h.Copied: // nothing was decided by it yet
		r.after = append(r.after, mailbox.RemoveEntry{Message: it.Message, Mailbox: box, IfPresent: true})
		r.reopen(h)
		return nil
	case deletes && boxVerb(box) != "":
		return cannot("this is about to be decided; move it back to Action to take it back")
	case deletes && box == Action && h.Kind != decisionApproval:
		return byReply(h.Decision)
	case deletes && h.State == Open && r.isSource(h, it) && !r.now.After(h.Until):
		return r.begin(h, h.Verb, viaMove, box)
	case undeletes && h.State == Deciding && r.isSource(h, it):
		r.after = append(r.after, mailbox.RemoveEntry{Message: it.Message, Mailbox: verbBox(h.Verb), IfPresent: true})
		r.reopen(h)
	}
	return nil
}

// box is where the entries of the act lie.
func (r *review) box() mailbox.MailboxID {
	if r.act.From != nil {
		return r.act.From.ID
	}
	if r.act.To != nil {
		return r.act.To.ID
	}
	return 0
}

func (r *review) changedSince(it mailbox.ActItem, since mailbox.ModSeq) bool {
	for _, p := range r.view.Places(it.Message) {
		if p.Mailbox == r.box() && p.Entry.UID == it.UID {
			return p.Entry.ModSeq > since
		}
	}
	return false
}

// deletedChange says whether op sets or clears \Deleted.
func deletedChange(op mailbox.StoreFlags) (sets, clears bool) {
	has := slices.ContainsFunc(op.Flags, func(f imap.Flag) bool { return strings.EqualFold(string(f), string(imap.FlagDeleted)) })
	switch op.Op {
	case imap.StoreFlagsAdd:
		return has, false
	case imap.StoreFlagsDel:
		return false, has
	}
	return has, !has
}

func namesSeen(flags []imap.Flag) bool {
	return slices.ContainsFunc(flags, func(f imap.Flag) bool { return strings.EqualFold(string(f), string(imap.FlagSeen)) })
}

// verbBox is the mailbox that a verb is given by moving to.
func verbBox(verb string) mailbox.MailboxID {
	if verb == "approve" {
		return Approve
	}
	return Reject
}

// boxVerb is the verb that moving to a mailbox gives, "" for none.
func boxVerb(box mailbox.MailboxID) string {
	switch box {
	case Approve:
		return "approve"
	case Reject:
		return "reject"
	}
	return ""
}

// isActionBox reports whether box is Action or one of the two below.
func isActionBox(box mailbox.MailboxID) bool { return box == Action || box == Approve || box == Reject }
