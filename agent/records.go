package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
	"pizza/providers"
)

// System mailboxes. The ids are part of the data format.
const (
	Action    mailbox.MailboxID = 2
	Approve   mailbox.MailboxID = 3 // Action/Approve
	Reject    mailbox.MailboxID = 4 // Action/Reject
	Running   mailbox.MailboxID = 5
	Memory    mailbox.MailboxID = 6
	Schedules mailbox.MailboxID = 7
	Tasks     mailbox.MailboxID = 8
	Unread    mailbox.MailboxID = 9 // hidden until the account switches it on
	Sent      mailbox.MailboxID = 10
	Drafts    mailbox.MailboxID = 11
	Archive   mailbox.MailboxID = 12
	Junk      mailbox.MailboxID = 13
	Trash     mailbox.MailboxID = 14
)

// Kinds of mail we send (X-Pizza-Kind).
const (
	KindResult   = "result"
	KindApproval = "approval"
	KindQuestion = "question"
	KindStatus   = "status"
	KindFailure  = "failure"
	KindNotice   = "notice"
)

// Kinds of due entries.
const (
	DueRun     = "run"     // key run id: a run that can go on
	DueExpire  = "expire"  // key decision id: it expires
	DueWindow  = "window"  // key decision id: the window of a move ends
	DueDeliver = "deliver" // key delivery id: mail for another account
	DuePrune   = "prune"   // key day: records go
	DueForget  = "forget"  // key task id: the rest of a forgotten task goes
	DueRetain  = "retain"  // key retain: tasks that ended long ago go
	DueDrop    = "drop"    // key message id: a message in Tasks becomes a task
	DueRemind  = "remind"  // key decision id: it is called to mind
	DueLeaving = "leaving" // key message id: the window of what was taken out of Memory or Schedules ends
)

// Record keys and index keys.
func threadKey(task string) string   { return "thread/" + task }
func runKey(run string) string       { return "run/" + run } // also the stream's name
func decisionKey(id string) string   { return "decision/" + id }
func midKey(messageID string) string { return midPrefix + hash16(messageID) }

const midPrefix = "mid/"

const (
	indexLiveRuns      = "live"     // of run records that have not ended
	indexWaitingRuns   = "waits"    // of those of them that wait
	indexWorkers       = "workers/" // + task id, of those of them that workers have
	indexOpenDecisions = "open"     // of decision records that are open or deciding
	indexToken         = "token/"   // + thread token, of thread records
	indexOfTask        = "task/"    // + task id, of run and decision records
	indexOfRun         = "ofrun/"   // + run id, of decision records
	indexOfMessage     = "ofmsg/"   // + message id in decimal, of decision and run records (status message)
	indexDeciding      = "moving/"  // + login, of decision records in a move's window
	indexPrune         = "prune/"   // + day, of records that go then
	indexForks         = "forks/"   // + task id, of thread records that branched off from it
	indexMails         = "mails/"   // + task id, of the refs of its mails
	indexEnded         = "ended/"   // + day, of thread records that came to rest then
)

func hash16(s string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(s)))
	return hex.EncodeToString(sum[:16])
}

// Thread is a task and all mail that belongs to it.
type Thread struct {
	Task    string `json:"task"`  // 10 characters
	Token   string `json:"token"` // of pizza+t.<token>@: a name, not a secret
	Subject string `json:"subject"`
	// Root and Last are the Message-IDs of the first mail and of the newest one in
	// the thread (ours or theirs); References is the chain to Last without it.
	Root       string    `json:"root"`
	Last       string    `json:"last"`
	References []string  `json:"references,omitempty"`
	Active     string    `json:"active,omitempty"` // run id
	Runs       int       `json:"runs"`             // runs begun so far
	Queue      []Inbound `json:"queue,omitempty"`  // mails that wait for the next run, in order
	Created    time.Time `json:"created"`
	Sends      []int64   `json:"sends,omitempty"` // Unix seconds of our mails in the last hour (invariant 7: capped)
	Scope      string    `json:"scope,omitempty"` // "send" when a send-only credential began it
	// Depth counts how many results this task goes back to by drops into Tasks: 0 for mail
	// that was sent or is not ours, 1 for a result of such a task.
	Depth int `json:"depth,omitempty"`
	// From is where it branched off another task.
	From *Fork `json:"from,omitempty"`
	// Ended is when it last came to rest. Kept counts in its place when that is later: retain
	// found that the task has to stay.
	Ended time.Time `json:"ended,omitzero"`
	Kept  time.Time `json:"kept,omitzero"`
	// Forgotten: the task is gone or about to; the record is here for what still answers it.
	Forgotten time.Time `json:"forgotten,omitzero"`
}

// Inbound names a mail that is input of a run.
type Inbound struct {
	Message   mailbox.MessageID `json:"message"`
	MessageID string            `json:"message_id"` // header field, without brackets
	Subject   string            `json:"subject"`
	Date      time.Time         `json:"date"`
	// Model is the model the mail asks for (X-Pizza-Model); empty: the default.
	Model string `json:"model,omitempty"`
	// Budget is what the mail lets its run use (X-Pizza-Budget); zero fields: as usual.
	Budget *Limits `json:"budget,omitempty"`
	Size   int     `json:"size,omitempty"` // octets of its text, about
	// Dropped: the person put it into Tasks; who wrote it is not known.
	Dropped bool `json:"dropped,omitempty"`
	// Fork: its first line, the word fork, is not for the model.
	Fork bool `json:"fork,omitempty"`
	// Prompt is what a worker was asked; there is no mail then. Login: its owner wrote it,
	// word for word.
	Prompt string `json:"prompt,omitempty"`
	Login  bool   `json:"login,omitempty"`
}

// RunState is a named state of a run.
type RunState string

const (
	Queued    RunState = "queued"    // due; a worker takes it
	Working   RunState = "running"   // a worker has it; after a crash the due entry is still there
	Waiting   RunState = "waiting"   // for a person, a timer or a limit; no due entry of kind run
	Done      RunState = "done"      // ended with a result
	Failed    RunState = "failed"    // ended with a failure mail
	Cancelled RunState = "cancelled" // ended by the owner
)

// forTimer is what a run waits for that goes on at a time. Other words are the kinds of
// decisions, forWorkers, forMonth, forRoom, and "the key of" with who refuses it.
const forTimer = "timer"

// Ended reports whether s is final.
func (s RunState) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Run is the head record of a run; the journal is the truth, this is its index.
type Run struct {
	ID      string            `json:"id"` // <task>.<n>; of a worker <run that gave the work>.<n of its calls>
	Task    string            `json:"task"`
	State   RunState          `json:"state"`
	For     string            `json:"for,omitempty"`     // what a waiting run waits for, in words: see for...
	Refused string            `json:"refused,omitempty"` // the provider or model that refuses our key, when it waits for that
	Epoch   uint64            `json:"epoch,omitempty"`   // of the store when it was last claimed or changed
	Claims  int               `json:"claims,omitempty"`  // claims in later epochs since it last made progress
	Seq     uint64            `json:"seq"`               // last sequence number of the journal
	Inputs  []Inbound         `json:"inputs"`
	Model   string            `json:"model"` // "provider:id"
	Subject string            `json:"subject"`
	Created time.Time         `json:"created"`
	Changed time.Time         `json:"changed"`
	Status  mailbox.MessageID `json:"status,omitempty"` // the status message in Running
	Shown   RunState          `json:"shown,omitempty"`  // the state it shows
	ShownAt time.Time         `json:"shown_at,omitempty"`
	// ShownSeq is the end of the journal as shown, and Tells what was shown of Doing.
	ShownSeq uint64 `json:"shown_seq,omitempty"`
	Tells    string `json:"tells,omitempty"`
	Doing    Doing  `json:"doing,omitzero"`
	// Replaced are the UIDs that its latest status messages had in Running, which
	// programs may still show.
	Replaced []imap.UID `json:"replaced,omitempty"`
	Result   string     `json:"result,omitempty"` // Message-ID of the mail that ended it
	From     *Fork      `json:"from,omitempty"`   // of Thread
	Error    string     `json:"error,omitempty"`  // of a failed run, for lists
	// What the journal says, for lists: model calls, and the tool called last.
	Steps int    `json:"steps,omitempty"`
	Last  string `json:"last,omitempty"`
	// Of a worker: the call that gave it its work, and the names of the workers from the
	// task down to it.
	Call string   `json:"call,omitempty"`
	Path []string `json:"path,omitempty"`
	// Ending: it was asked to end.
	Ending bool `json:"ending,omitempty"`
	// Spent is what the run itself used; its workers have records of their own.
	Spent Spent `json:"spent,omitzero"`
}

// DecisionState is a named state of an approval or question.
type DecisionState string

const (
	Open     DecisionState = "open"     // waits for the owner
	Deciding DecisionState = "deciding" // moved or deleted; decided at Until unless taken back
	Approved DecisionState = "approved"
	Rejected DecisionState = "rejected"
	Edited   DecisionState = "edited"   // approved with other arguments
	Answered DecisionState = "answered" // a question got its answer
	Expired  DecisionState = "expired"
	Dropped  DecisionState = "dropped" // the run ended before it was decided
)

// undecided reports whether a decision in state s can still be made.
func (s DecisionState) undecided() bool { return s == Open || s == Deciding }

// Decision is one thing only the owner can decide. ID is also its address token.
type Decision struct {
	ID    string          `json:"id"`   // 15 characters
	Kind  string          `json:"kind"` // "approval", "unknown" (outcome), "question", "limit"
	Task  string          `json:"task"`
	Run   string          `json:"run"`
	Call  string          `json:"call"` // call id in the journal
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`  // canonical (RFC 8785)
	Hash  string          `json:"hash"`  // sha256 of Args, hex
	Nonce string          `json:"nonce"` // on the marks of the block
	// Month is what a question about a month's cap is about, as in 2026-12. It has no run.
	Month string `json:"month,omitempty"`
	// Sentence says what the call does, as the mail does.
	Sentence string `json:"sentence,omitempty"`
	// Schema is the hash of the tool's schema when it was asked; a call is not made under
	// another one.
	Schema string `json:"schema,omitempty"`
	// Always: "always" may be said.
	Always bool `json:"always,omitempty"`
	// Edited are the final arguments of an edit, canonical; Again the changed ones of which
	// the owner is asked once more, in a decision of its own.
	Edited json.RawMessage `json:"edited,omitempty"`
	Again  []string        `json:"again,omitempty"`
	// Used is the attempt that was begun on it: it is good for no other call.
	Used int `json:"used,omitempty"`
	// Remind is when the owner is reminded of it next; zero: never.
	Remind time.Time         `json:"remind,omitzero"`
	State  DecisionState     `json:"state"`
	Mail   mailbox.MessageID `json:"mail"` // its message
	MailID string            `json:"mail_id"`
	// Text is the plain text of the mail as sent, for subtraction from replies.
	Text    string    `json:"text"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`

	// A move's window. Verb stays when it is decided.
	Verb  string    `json:"verb,omitempty"`
	Until time.Time `json:"until,omitempty"`
	// Source is where the entry came from that was moved or deleted.
	Source mailbox.MailboxID `json:"source,omitempty"`
	// Copied: still open, but a program without MOVE made a further entry in the
	// mailbox of Verb; \Deleted on the entry that was copied, SourceUID of Source,
	// starts the window.
	Copied bool `json:"copied,omitempty"`
	// SourceUID is 0 unless Copied, and in records of before it was kept: those
	// decide nothing.
	SourceUID imap.UID `json:"source_uid,omitempty"`
	// Crowd: more than three were moved in one window; all go back undecided.
	Crowd bool `json:"crowd,omitempty"`
	// Alone: the message has no entry outside Action and the two below it, so that
	// closing it files it in Archive. The guard keeps it.
	Alone bool `json:"alone,omitempty"`

	// The record of the decision.
	By      *DecidedBy `json:"by,omitempty"`
	Reason  string     `json:"reason,omitempty"` // of a rejection; answer of a question
	Helped  int        `json:"helped,omitempty"` // help mails sent about it
	Helps   []int64    `json:"helps,omitempty"`  // when, Unix seconds, within the last hour
	Subject string     `json:"subject"`
}

// DecidedBy says who decided, when, with what and how.
type DecidedBy struct {
	Login      string    `json:"login"`
	Credential string    `json:"credential"`
	Via        string    `json:"via"`               // "reply", "move", "delete", "cli", "expiry"
	Message    string    `json:"message,omitempty"` // Message-ID of the reply
	At         time.Time `json:"at"`
}

// MessageRef says what a Message-ID belongs to. Every mail of ours and every mail
// of a thread has one (record "mid/..."): recognised by index, never by domain.
type MessageRef struct {
	Task     string `json:"task"`
	Run      string `json:"run,omitempty"`
	Decision string `json:"decision,omitempty"`
	Kind     string `json:"kind,omitempty"` // KindResult...; empty for a person's mail
	// Message is the stored message, but of a status and of what asks for a decision.
	Message mailbox.MessageID `json:"message,omitempty"`
	Ours    bool              `json:"ours,omitempty"`
	// Ask is the id of the question it puts (record "ask/..."), which is no decision of a run.
	Ask string `json:"ask,omitempty"`
}

// originOf is the Origin that a model's raw content is bound to.
func originOf(i providers.Info) providers.Origin {
	return providers.Origin{Provider: i.Provider, Endpoint: i.Endpoint, Model: i.Model}
}
