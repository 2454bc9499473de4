package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"pizza/mailbox"
	"pizza/providers"
)

// eventVersion is the version byte before each event's JSON. Only the meaning of
// a version must stay; Next may change while runs are paused.
const eventVersion = 1

// Event is one entry of a journal. Exactly one pointer is set.
type Event struct {
	At time.Time `json:"at"`

	Started   *EvStarted   `json:"started,omitempty"`
	Inbound   *Inbound     `json:"inbound,omitempty"`
	Intent    *EvIntent    `json:"model_intent,omitempty"`
	Reply     *EvReply     `json:"model_reply,omitempty"`
	ModelFail *EvModelFail `json:"model_failed,omitempty"`
	Policy    *EvPolicy    `json:"policy,omitempty"`
	Asked     *EvAsked     `json:"asked,omitempty"`
	Decided   *EvDecided   `json:"decided,omitempty"`
	ToolStart *EvToolStart `json:"tool_intent,omitempty"`
	ToolEnd   *EvToolEnd   `json:"tool_result,omitempty"`
	Cancel    *EvCancel    `json:"cancel_requested,omitempty"`
	Finished  *EvFinished  `json:"finished,omitempty"`
	Compacted *EvCompacted `json:"compacted,omitempty"`
}

// EvStarted freezes what the run works with.
type EvStarted struct {
	Model  string               `json:"model"`
	System string               `json:"system"`
	Tools  []providers.ToolSpec `json:"tools"`
	Limits Limits               `json:"limits"`
	// Free: the model costs nothing, so that nothing is reserved for its calls.
	Free bool `json:"free,omitempty"`
	// Of a worker's run: who it is, and what lay in /out when it got its work.
	Worker string      `json:"worker,omitempty"`
	Out    []OutChange `json:"out,omitempty"`
	// Foreign: who gave the work had been told text that the login did not write.
	Foreign bool `json:"foreign,omitempty"`
	// Window is how many tokens the model takes; 0: it has no limit, and in journals of before
	// it was kept nobody knows.
	Window int `json:"window,omitempty"`
}

// Limits of a run; zero is none. Tokens and Cost are of the run and of what it gave to
// workers.
type Limits struct {
	ModelCalls int           `json:"model_calls"`
	ToolCalls  int           `json:"tool_calls"`
	Tokens     int64         `json:"tokens,omitempty"` // input and output
	Cost       float64       `json:"cost,omitempty"`   // USD, where the provider or the price table says it
	Time       time.Duration `json:"time,omitempty"`   // of work: models, tools and their retries (State.Worked)
}

// EvIntent is written before a model call: the N-th, counted from 1. Epoch is the
// store's at that time: an open intent of an earlier epoch is one a crash took.
type EvIntent struct {
	N     int    `json:"n"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Reserve counts as used until the reply tells what was.
	Reserve *Reserve `json:"reserve,omitempty"`
	// Cut: the call is not for the conversation but for a summary of a part of it.
	Cut *Cut `json:"cut,omitempty"`
}

// EvReply is the model's answer to intent N, raw content as received.
type EvReply struct {
	N     int             `json:"n"`
	Reply providers.Reply `json:"reply"`
	Sent  int             `json:"sent,omitempty"` // bytes of text that it answers
	// Foreign: the mails that it answers, or the thread before them, hold text that the login
	// did not write.
	Foreign bool `json:"foreign,omitempty"`
}

// EvCompacted answers intent N, which has a cut: from here on the model is told Summary in
// the place of the turns before Upto, counted from 0; their mails and the owner's decisions
// stay. Without a Summary nothing changes. Before and After are the estimated tokens of the
// next request.
type EvCompacted struct {
	N       int             `json:"n"`
	Upto    int             `json:"upto"`
	Summary string          `json:"summary"`
	Before  int             `json:"before"`
	After   int             `json:"after"`
	Usage   providers.Usage `json:"usage"`
	Took    time.Duration   `json:"took,omitempty"`
}

// EvModelFail is a failed call; Retry is when the next may be made (zero: never).
type EvModelFail struct {
	N     int             `json:"n"`
	Class providers.Class `json:"class"`
	Code  string          `json:"code,omitempty"` // providers.NoKey, or none
	Text  string          `json:"text"`
	Retry time.Time       `json:"retry,omitempty"`
	// Partial: a part of the reply had come, so it was billed.
	Partial bool          `json:"partial,omitempty"`
	Took    time.Duration `json:"took,omitempty"`
	// Park: the key is refused; the next call is made when it is another one.
	Park bool `json:"park,omitempty"`
	// Stopped: the server stopped in order and cut the call off. It is made again and counts
	// neither as failed nor as lost by a crash.
	Stopped bool `json:"stopped,omitempty"`
}

// EvPolicy is the decision of policy about a call: allow, ask, deny, or invalid
// (unknown tool, arguments that do not fit).
type EvPolicy struct {
	Call string `json:"call"`
	Rule string `json:"rule"`
	Text string `json:"text,omitempty"` // why, for the model
	// By is the row of policy that decided (Policy.ID); empty: the tool's own rule.
	By string `json:"by,omitempty"`
}

// EvAsked opens a decision about a call; or, of kind limit and without a call, about
// the run as a whole.
type EvAsked struct {
	Call     string `json:"call"`
	Decision string `json:"decision"`
	Kind     string `json:"kind"` // as Decision.Kind
	Limit    Limit  `json:"limit,omitempty"`
}

// EvDecided closes it. Verb: approve, edit, always, reject, answer, expire; for a question answer,
// expire; for an unknown outcome happened, repeat, stop, expire; for a limit continue, stop, expire.
type EvDecided struct {
	Decision string    `json:"decision"`
	Call     string    `json:"call"`
	Verb     string    `json:"verb"`
	Text     string    `json:"text,omitempty"`
	By       DecidedBy `json:"by"`
	// Args are the canonical arguments that an edit puts in the place of the model's.
	Args json.RawMessage `json:"args,omitempty"`
	// Again: the owner is asked once more, about Args.
	Again bool `json:"again,omitempty"`
	// N is the number of "continue N", 0 without one.
	N int `json:"n,omitempty"`
}

// EvToolStart is the intent: committed before the call.
type EvToolStart struct {
	Call    string `json:"call"`
	Attempt int    `json:"attempt"`
	Hash    string `json:"hash"`  // of the canonical arguments
	Class   string `json:"class"` // tools.Class, or classWorker
	// Probe: this attempt only looks whether the one before had its effect.
	Probe bool `json:"probe,omitempty"`
	// Part is what the worker got of the budget, of a call of task.
	Part *Part `json:"part,omitempty"`
}

// EvToolEnd settles a call. Status: ok, error, denied (rejected, expired or against
// policy), cancelled, unknown (opens a question; a later EvDecided settles it), absent (a
// probe found that it never happened: it is begun again).
type EvToolEnd struct {
	Call    string        `json:"call"`
	Status  string        `json:"status"`
	Content string        `json:"content"`
	Blob    string        `json:"blob,omitempty"` // the whole lies there when Content is an excerpt
	Out     []OutChange   `json:"out,omitempty"`  // what it did to /out
	Took    time.Duration `json:"took,omitempty"`
	// Child is what the worker's run came to, of a call of task.
	Child *ChildEnd `json:"child,omitempty"`
}

// OutChange is a change of the run's /out folder.
type OutChange struct {
	Name    string       `json:"name"`
	Blob    mailbox.Blob `json:"blob"`
	Deleted bool         `json:"deleted,omitempty"`
}

// EvCancel asks the run to end.
type EvCancel struct {
	By DecidedBy `json:"by"`
}

// EvFinished ends the run.
type EvFinished struct {
	State RunState `json:"state"`
	Mail  string   `json:"mail"` // Message-ID of the mail that tells it
	Text  string   `json:"text,omitempty"`
}

// kind names an event for people and errors.
func (e Event) kind() string {
	b, err := json.Marshal(e)
	if err != nil {
		return "?"
	}
	var m map[string]json.RawMessage
	_ = json.Unmarshal(b, &m) // what we just encoded
	delete(m, "at")
	for k := range m {
		return k
	}
	return "empty"
}

// callID is the call an event is about, "" for none.
func (e Event) callID() string {
	switch {
	case e.Policy != nil:
		return e.Policy.Call
	case e.Asked != nil:
		return e.Asked.Call
	case e.Decided != nil:
		return e.Decided.Call
	case e.ToolStart != nil:
		return e.ToolStart.Call
	case e.ToolEnd != nil:
		return e.ToolEnd.Call
	}
	return ""
}

func encodeEvent(e Event) []byte {
	var b bytes.Buffer
	b.WriteByte(eventVersion)
	if err := json.NewEncoder(&b).Encode(e); err != nil {
		panic(fmt.Sprintf("agent: event does not encode: %v", err)) // a type of ours, never input
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decodeEvent reads an event of any released version.
func decodeEvent(b []byte) (Event, error) {
	var e Event
	if len(b) == 0 || b[0] != eventVersion {
		return e, fmt.Errorf("agent: unknown event version % x", b[:min(len(b), 1)])
	}
	if err := json.Unmarshal(b[1:], &e); err != nil {
		return e, fmt.Errorf("agent: decode event: %w", err)
	}
	return e, nil
}
