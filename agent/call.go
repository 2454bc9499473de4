package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"pizza/internal/tools"
	"pizza/providers"
)

// CallState says where a call stands.
type CallState string

const (
	callPlanned CallState = "planned" // the model asked for it; policy judges it next
	callToAsk   CallState = "to ask"  // policy wants the owner's decision; it is opened next
	callAsking  CallState = "asking"  // a decision is open; the owner (or expiry) ends it
	callAllowed CallState = "allowed" // may run: by policy, approval or "repeat"; its intent comes next
	callStarted CallState = "started" // the intent is on disk; its outcome comes next
	callUnsure  CallState = "unsure"  // nobody knows whether it happened; the question is opened next
	callClosing CallState = "closing" // ends without running (denied, invalid, rejected, expired, confirmed); its result comes next
	callSettled CallState = "settled" // has its result; final
)

// Call is a tool call of a reply.
type Call struct {
	providers.ToolCall
	State    CallState
	Rule     tools.Rule
	Why      string // of policy, for the model
	Decision string // the last one opened about it
	Kind     string // of that decision
	Decided  *EvDecided
	Attempt  int
	Begun    time.Time // of the last attempt
	Hash     string
	Class    tools.Class
	Probing  bool // the last attempt only looks whether the one before had its effect
	Part     Part // of a call of task that has begun
	End      *EvToolEnd
	// Asked are the arguments that the model gave, where an edit of the owner took their
	// place; nil: Args are the model's.
	Asked json.RawMessage

	// Of this process: the intent was made by an earlier one.
	Stale bool
}

// Kinds of decisions.
const (
	decisionApproval = "approval"
	decisionUnknown  = "unknown"
	decisionQuestion = "question"
	decisionLimit    = "limit" // of the run, about no call
)

// Statuses of a tool result.
const (
	endOK        = "ok"
	endError     = "error"
	endDenied    = "denied"
	endCancelled = "cancelled"
	endUnknown   = "unknown"
	endAbsent    = "absent" // of a probe: it never happened
)

func (c *Call) policy(e EvPolicy) string {
	if c.State != callPlanned {
		return c.cannot("be judged")
	}
	c.Rule, c.Why = tools.Rule(e.Rule), e.Text
	switch c.Rule {
	case tools.Allow:
		c.State = callAllowed
	case tools.Ask:
		c.State = callToAsk
	case tools.Deny, tools.Invalid:
		c.State = callClosing
	default:
		return "unknown rule " + e.Rule
	}
	return ""
}

func (c *Call) asked(e EvAsked) string {
	switch {
	case c.State == callToAsk && (e.Kind == decisionApproval || e.Kind == decisionQuestion):
	case c.State == callUnsure && e.Kind == decisionUnknown:
	default:
		return c.cannot("be asked about as " + e.Kind)
	}
	c.State, c.Decision, c.Kind, c.Decided = callAsking, e.Decision, e.Kind, nil
	return ""
}

func (c *Call) decided(e *EvDecided) string {
	if c.State != callAsking || c.Decision != e.Decision {
		return c.cannot("be decided by " + e.Decision)
	}
	switch c.Kind + " " + e.Verb {
	case "approval approve", "approval always", "unknown repeat":
		c.State = callAllowed
	case "approval edit":
		if len(e.Args) == 0 {
			return "an edit without arguments"
		}
		c.edit(e)
	case "approval reject", "approval answer", "approval expire", "question answer", "question expire",
		"unknown happened", "unknown expire", "unknown stop":
		c.State = callClosing
	default:
		return "verb " + e.Verb + " for " + c.Kind
	}
	c.Decided = e
	return ""
}

// edit puts the owner's arguments in the place of the model's. Where they are asked once
// more, the next decision is about them.
func (c *Call) edit(e *EvDecided) {
	if c.Asked == nil {
		c.Asked = c.Args
	}
	c.Args, c.State = e.Args, callAllowed
	if e.Again {
		c.State = callToAsk
	}
}

func (c *Call) start(e EvToolStart) string {
	again := c.State == callStarted && c.Class != tools.OnceOnly && c.Class != classWorker
	switch {
	case c.State != callAllowed && !again:
		return c.cannot("start")
	case e.Probe && (c.State != callStarted || c.Class != tools.Reconcilable):
		return c.cannot("be probed")
	case e.Attempt != c.Attempt+1:
		return fmt.Sprintf("attempt %d after %d", e.Attempt, c.Attempt)
	}
	c.State, c.Attempt, c.Hash, c.Class, c.Stale = callStarted, e.Attempt, e.Hash, tools.Class(e.Class), false
	c.Probing = e.Probe
	if e.Part != nil {
		c.Part = *e.Part
	}
	return ""
}

func (c *Call) end(e *EvToolEnd) string {
	legal := false
	switch e.Status {
	case endOK:
		legal = c.State == callStarted || c.State == callClosing && c.confirmed()
	case endError:
		legal = c.State == callStarted || c.State == callClosing
	case endDenied:
		legal = c.State == callClosing || c.State == callAllowed
	case endCancelled:
		legal = c.State != callSettled
	case endUnknown:
		legal = c.State == callStarted
	case endAbsent:
		legal = c.State == callStarted && c.Probing
	}
	if !legal {
		return c.cannot("end as " + e.Status)
	}
	c.State, c.End, c.Stale = callSettled, e, false
	switch e.Status {
	case endUnknown:
		c.State = callUnsure
	case endAbsent:
		c.State, c.Probing = callAllowed, false
	}
	return ""
}

// changed reports whether the call did something to the world.
func (c *Call) changed() bool {
	return c.State == callSettled && c.End.Status == endOK && c.Class != "" && c.Class != tools.ReadOnly
}

// confirmed reports whether the owner gave the result: the call had its effect, or here is
// the answer to what it asks.
func (c *Call) confirmed() bool {
	return c.Decided != nil && (c.Decided.Verb == "happened" || c.Decided.Verb == "answer" && c.Kind == decisionQuestion)
}

func (c *Call) cannot(what string) string {
	return "call " + c.ID + ", " + string(c.State) + ", cannot " + what
}
