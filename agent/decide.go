package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/crockford"
	"pizza/internal/mail"
	"pizza/mailbox"
)

// Ways of deciding (DecidedBy.Via).
const (
	viaReply  = "reply"
	viaMove   = "move"
	viaDelete = "delete"
	viaExpiry = "expiry"
)

// Reason of a rejection by deleting the approval.
const reasonDeleted = "deleted unanswered"

// outcomes says which verbs a kind of decision knows and where they lead.
var outcomes = map[string]map[string]DecisionState{
	decisionApproval: {"approve": Approved, "always": Approved, "edit": Edited, "reject": Rejected, "answer": Answered, "expire": Expired},
	decisionQuestion: {"answer": Answered, "expire": Expired},
	decisionRestored: {"continue": Answered, "stop": Answered},
	decisionKept:     {"delete": Answered, "keep": Answered},
	decisionLimit:    {"continue": Answered, "stop": Answered, "expire": Expired},
	decisionUnknown:  {"happened": Answered, "repeat": Answered, "stop": Answered, "expire": Expired},
}

// verbOrder is the order in which verbs are told; expire is no person's.
var verbOrder = []string{"approve", "reject", "edit", "always", "answer", "happened", "repeat", "continue", "stop", "delete", "keep"}

// keywords marks a decided message.
var keywords = map[DecisionState]imap.Flag{
	Approved: "$Approved", Edited: "$Edited", Rejected: "$Rejected", Answered: "$Answered", Expired: "$Expired",
}

// attempts bounds how often a compare-and-set that lost is tried again. Each lost
// attempt means that somebody else's commit went through.
const attempts = 100

// verdict is what somebody wants a decision to be.
type verdict struct {
	verb string
	text string
	args json.RawMessage // of edit
	by   DecidedBy
	n    int // of "continue N"
}

// Decide closes a decision. id is the decision's, or the id of a run or task that
// has exactly one open; verb is approve, always (approve, and allow the tool in the thread
// from now on), reject (text is the reason) or answer (text goes to the agent; see answerMeans), for an
// unknown outcome happened, repeat or stop, and for all cancel, which ends the
// task instead. Edit is a method of its own. The questions that are of no task take continue or stop (restored from a
// backup) and delete or keep (what was taken out of Memory or Schedules). Of many who decide at once one wins.
//
// Errors are *mailbox.Error and change nothing: NotFound (no such decision in this
// account), Invalid (a verb of another kind, or several open ones: Text lists
// them), Refused (always for a tool that may not), Conflict (decided already, or expired: Text says by whom and when).
func (a *Agent) Decide(ctx context.Context, account mailbox.AccountID, id, verb, text string, by DecidedBy) (Decision, error) {
	verb = strings.ToLower(strings.TrimSpace(verb))
	if by.At.IsZero() {
		by.At = a.now()
	}
	d, err := a.findDecision(ctx, account, id)
	if isKind(err, mailbox.NotFound) {
		if verb == "answer" {
			verb, text = answerMeans(decisionKept, text)
		}
		kept, askErr := a.answerAsk(ctx, account, crockford.Fold(id), verdict{verb: verb, text: text, by: by})
		if !isKind(askErr, mailbox.NotFound) {
			return kept, askErr
		}
	}
	if err != nil {
		return Decision{}, err
	}
	if verb == "answer" {
		verb, text = answerMeans(d.Kind, text)
	}
	if verb == "cancel" && d.Run != "" {
		return d, a.Cancel(ctx, account, topOf(d.Run), by)
	}
	v := verdict{text: text, by: by}
	v.verb, v.n = verbAndNumber(verb)
	return a.settle(ctx, account, d.ID, v)
}

// notHeeded says why the text that comes with a verb may not be passed over, "" when it
// may or when it is a reason or an answer. A remark is held against the rules of a reply:
// "approve: but only if it is empty" does not approve.
func notHeeded(kind string, v verdict) string {
	switch {
	case strings.TrimSpace(v.text) == "" || v.verb == "reject" || v.verb == "answer":
		return ""
	case v.verb == "continue" || v.verb == "delete" || v.verb == "keep":
		return fmt.Sprintf("%q takes no further words", clip(v.verb, 32))
	}
	if _, outcome, why := mail.ParseDecision(kind, v.verb+"\n"+v.text); outcome != mail.Decided {
		return "this decides nothing: " + why
	}
	return ""
}

// verbAndNumber takes "continue 10" apart, by the words of a reply.
func verbAndNumber(verb string) (string, int) {
	verb = strings.ToLower(strings.TrimSpace(verb))
	if d, o, _ := mail.ParseDecision(mail.ForLimit, verb); o == mail.Decided && d.N > 0 {
		return string(d.Verb), d.N
	}
	return verb, 0
}

// settle decides by compare-and-set until it won or somebody else did.
func (a *Agent) settle(ctx context.Context, account mailbox.AccountID, id string, v verdict) (Decision, error) {
	for range attempts {
		d, ops, err := a.decideOps(ctx, account, id, v)
		if err != nil {
			return Decision{}, err
		}
		_, err = a.store.Commit(ctx, account, mailbox.Tx{Ops: ops})
		if err == nil {
			a.logDecision(ctx, d)
			a.stir(account, d.Run)
			return d, nil
		}
		if !isKind(err, mailbox.Conflict) {
			return Decision{}, err
		}
	}
	return Decision{}, &mailbox.Error{Op: "decide", Kind: mailbox.Transient, Name: id}
}

func (a *Agent) logDecision(ctx context.Context, d Decision) {
	a.log.InfoContext(ctx, "decided", "run", d.Run, "decision", d.ID, "state", string(d.State),
		"via", d.By.Via, "login", d.By.Login)
}

// decideOps makes the changes that decide: the decision's record, its event in the
// journal, the run due, and the mail out of Action. They fail with Conflict when
// the decision or the journal moved since it was read here.
func (a *Agent) decideOps(ctx context.Context, account mailbox.AccountID, id string, v verdict) (Decision, []mailbox.Op, error) {
	d, version, err := a.loadDecision(ctx, account, id)
	if err != nil {
		return d, nil, err
	}
	if d.Kind == decisionRestored {
		return a.releaseOps(ctx, account, d, version, v)
	}
	if err := a.notParked(ctx, account, d); err != nil {
		return d, nil, err
	}
	if d.Month != "" {
		return a.monthOps(ctx, account, d, version, v)
	}
	to, err := a.decidable(d, v)
	if err != nil {
		return d, nil, err
	}
	if v.verb == "edit" {
		if err := a.finalArgs(ctx, account, &d, &v); err != nil {
			return d, nil, err
		}
	}
	d.By, d.Verb, d.Reason = &v.by, v.verb, v.text
	wake, err := a.wakeOps(ctx, account, d.Run, Event{At: a.now(), Decided: &EvDecided{
		Decision: d.ID, Call: d.Call, Verb: v.verb, Text: v.text, By: v.by, N: v.n, Args: v.args, Again: len(d.Again) > 0,
	}})
	if err != nil {
		return d, nil, err
	}
	ops := append(wake, closeOps(d, version, to)...)
	if v.verb == "always" {
		ops = append(ops, alwaysOps(d, v.by))
	}
	d.State = to
	return d, ops, nil
}

// decidable says what state v leads to, or why it decides nothing.
func (a *Agent) decidable(d Decision, v verdict) (DecisionState, error) {
	if !d.State.undecided() {
		return "", decideError(mailbox.Conflict, d, a.decidedText(d))
	}
	to, ok := outcomes[d.Kind][v.verb]
	if !ok || v.n > 0 && d.Kind != decisionLimit || v.verb == "expire" && v.by.Via != viaExpiry {
		return "", decideError(mailbox.Invalid, d, wrongVerbText(d, v.verb))
	}
	if v.verb != "expire" && !d.Expires.IsZero() && v.by.At.After(d.Expires) {
		return "", decideError(mailbox.Conflict, d, "too late: this expired on "+a.when(d.Expires)+"; nothing was done")
	}
	switch {
	case v.verb != "expire" && notHeeded(d.Kind, v) != "":
		return "", decideError(mailbox.Invalid, d, notHeeded(d.Kind, v))
	case v.verb == "answer" && strings.TrimSpace(v.text) == "":
		return "", decideError(mailbox.Invalid, d, "the answer is empty")
	case len(v.text) > maxAnswer:
		return "", decideError(mailbox.Refused, d, fmt.Sprintf("the text is longer than %d KiB", maxAnswer>>10))
	case v.verb == "always":
		if why := mayAlways(d.Tool, a.judge(shownCall(d))); why != "" {
			return "", decideError(mailbox.Refused, d, why)
		}
	case v.verb == "edit" && len(v.args) == 0:
		return "", decideError(mailbox.Invalid, d, "an edit needs the new arguments: `pizza edit "+d.ID+"`")
	}
	return to, nil
}

func decideError(kind mailbox.Kind, d Decision, text string) error {
	return &mailbox.Error{Op: "decide", Kind: kind, Name: d.ID, Text: text}
}

func wrongVerbText(d Decision, verb string) string {
	how := "`pizza answer " + d.ID + " WORD`"
	switch d.Kind {
	case decisionApproval:
		how = "`pizza approve`, `reject`, `edit` or `answer` " + d.ID
	case decisionQuestion:
		how = "`pizza answer " + d.ID + " TEXT`"
	}
	return fmt.Sprintf("%q does not answer this; say %s, with %s", clip(verb, 32), strings.Join(d.Verbs(), ", "), how)
}

// Verbs lists what a person may say to the decision.
func (d Decision) Verbs() []string {
	var list []string
	for _, verb := range verbOrder {
		if _, ok := outcomes[d.Kind][verb]; ok && (verb != "always" || d.Always) {
			list = append(list, verb)
		}
	}
	if d.Run == "" {
		return list
	}
	return append(list, "cancel")
}

// decidedText tells who decided, when, what and how.
func (a *Agent) decidedText(d Decision) string {
	switch {
	case d.State == Expired:
		return "too late: this expired on " + a.when(d.Expires) + "; nothing was done"
	case d.State == Dropped:
		return "too late: the task ended before this was decided"
	case d.By == nil:
		return "already " + string(d.State)
	}
	return fmt.Sprintf("already %s on %s by %s", d.State, a.when(d.By.At), d.By.who())
}

// when shows a time to a person, with its zone.
func (a *Agent) when(t time.Time) string { return a.local(t).Format("Mon 2 Jan 2006 15:04 MST") }

// closeOps takes a decision out of the open ones: state to (with d's By and
// Reason), its message out of Action and the two below, marked with the keyword of
// the decision and \Seen. Its entry in INBOX, or wherever the person filed it,
// stays; a message that lies nowhere else goes to Archive. Whether it does is
// Decision.Alone, which the guard keeps right for every change a person makes, in
// the record whose version these ops require.
func closeOps(d Decision, version uint64, to DecisionState) []mailbox.Op {
	var ops []mailbox.Op
	if d.Alone {
		ops = append(ops, mailbox.AddEntry{Message: d.Mail, Mailbox: Archive})
	}
	marks := []imap.Flag{imap.FlagSeen}
	if k, ok := keywords[to]; ok {
		marks = append(marks, k)
	}
	ops = append(ops,
		mailbox.SetTag{Message: d.Mail, Old: decisionTag(d.ID)},
		mailbox.MarkMessage{Message: d.Mail, Add: marks})
	for _, box := range []mailbox.MailboxID{Action, Approve, Reject} {
		ops = append(ops, mailbox.RemoveEntry{Message: d.Mail, Mailbox: box, IfPresent: true})
	}
	ops = append(ops, mailbox.Hold{Message: d.Mail, Name: decisionKey(d.ID), Release: true})
	if to == Dropped {
		d.Verb = ""
	}
	d.State, d.Until, d.Crowd = to, time.Time{}, false
	d.forgetCopy()
	if !d.Remind.IsZero() {
		ops, d.Remind = append(ops, mailbox.DeleteDue{Kind: DueRemind, Key: d.ID}), time.Time{}
	}
	return append(ops, decisionPut(d, version),
		mailbox.DeleteDue{Kind: DueExpire, Key: d.ID},
		mailbox.DeleteDue{Kind: DueWindow, Key: d.ID})
}

// decisionTag is the tag of a decision's message, for the guard.
func decisionTag(id string) string { return "decision:" + id }

// decisionPut writes a decision's record with the index keys of its state.
func decisionPut(d Decision, version uint64) mailbox.PutRecord {
	index := []string{indexOfTask + d.Task, indexOfRun + d.Run, fmt.Sprint(indexOfMessage, uint64(d.Mail))}
	if d.State.undecided() {
		index = append(index, indexOpenDecisions)
	}
	if d.State == Deciding && d.By != nil {
		index = append(index, indexDeciding+d.By.Login)
	}
	return mailbox.PutRecord{Key: decisionKey(d.ID), Version: version, Value: mustJSON(d), Index: index}
}

// loadDecision reads a decision of an account, and its record's version.
func (a *Agent) loadDecision(ctx context.Context, account mailbox.AccountID, id string) (Decision, uint64, error) {
	rec, err := a.store.Record(ctx, account, decisionKey(id))
	if err != nil {
		return Decision{}, 0, err
	}
	d, err := decodeDecision(rec)
	return d, rec.Version, err
}

func decodeDecision(rec mailbox.Record) (Decision, error) { return decode[Decision](rec) }

// findDecision finds the decision that id names: its own id, or that of a run or
// task with exactly one open.
func (a *Agent) findDecision(ctx context.Context, account mailbox.AccountID, id string) (Decision, error) {
	typed, id := printable(id), crockford.Fold(id)
	d, _, err := a.loadDecision(ctx, account, id)
	if err == nil || !isKind(err, mailbox.NotFound) {
		return d, err
	}
	open, err := a.openDecisions(ctx, account, id)
	if err != nil {
		return Decision{}, err
	}
	switch len(open) {
	case 1:
		return open[0], nil
	case 0:
		return Decision{}, &mailbox.Error{Op: "decide", Kind: mailbox.NotFound, Name: typed,
			Text: "no decision waits under the id " + typed}
	}
	return Decision{}, &mailbox.Error{Op: "decide", Kind: mailbox.Invalid, Name: id,
		Text: "several decisions wait; name one: " + listDecisions(open)}
}

func listDecisions(open []Decision) string {
	var names []string
	for _, d := range open {
		names = append(names, d.ID+" ("+cmp.Or(d.Tool, d.Kind)+")")
	}
	return strings.Join(names, ", ")
}

// openDecisions lists the open decisions of a task, or of a run and its workers, oldest first.
func (a *Agent) openDecisions(ctx context.Context, account mailbox.AccountID, id string) ([]Decision, error) {
	recs, err := a.store.Lookup(ctx, account, indexOfTask+taskOf(id))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(decisionsOf(recs), func(d Decision) bool {
		of := id == d.Task || id == d.Run || isBelow(d.Run, id)
		return !of || !d.State.undecided()
	}), nil
}

// decisionsOf decodes the decisions among recs, oldest first; one that does not decode is
// left out.
func decisionsOf(recs []mailbox.Record) []Decision {
	var list []Decision
	for _, rec := range recs {
		if !strings.HasPrefix(rec.Key, decisionKey("")) {
			continue
		}
		if d, err := decodeDecision(rec); err == nil {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, oldestFirst)
	return list
}

func oldestFirst(x, y Decision) int {
	return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
}
