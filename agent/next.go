package agent

import (
	"cmp"
	"time"

	"pizza/internal/tools"
	"pizza/providers"
)

// Do says what kind of thing comes next.
type Do string

const (
	DoNothing Do = "nothing" // the run has ended
	DoStep    Do = "step"    // commit what the lists of the Todo say
	DoCall    Do = "call"    // call the model
	DoCompact Do = "compact" // call the model for a summary of a part of the conversation
	DoBusy    Do = "busy"    // calls run in this process; their outcome comes next
	DoWait    Do = "wait"    // for the owner
	DoAsk     Do = "ask"     // the owner whether to go on
	DoFinish  Do = "finish"  // the last reply is the answer
	DoFail    Do = "fail"    // end with a failure mail
	DoEnd     Do = "end"     // end as the owner asked
)

// Todo is what happens next.
type Todo struct {
	Do Do

	// Of DoStep: calls by id, in the order of the reply.
	Plan   []string // policy judges them
	Settle []string // they end without running
	Ask    []string // a decision is opened
	Start  []string // their intent is committed, then they run
	Probe  []string // nobody knows whether they happened; the tool can be asked
	Unsure []string // nobody knows whether they happened: recorded, then asked

	// Of DoCall and DoCompact.
	N       int       // number of the intent
	Open    bool      // it is on disk already
	After   time.Time // not before; zero: now
	Since   time.Time // when After was said: a clock that shows less than that was wrong
	Reserve Reserve   // what it books
	Cut     *Cut      // of DoCompact

	For   string // of DoWait: approval, question, limit or workers
	Limit Limit  // of DoAsk
	Fail  Fail   // of DoFail
}

// Fail says why a run fails.
type Fail string

const (
	FailModel   Fail = "model"   // State.Failed says how
	FailFilter  Fail = "filter"  // the provider refused by its content policy
	FailWindow  Fail = "window"  // the context window is used up
	FailLost    Fail = "lost"    // crashes took too many replies in a row
	FailJournal Fail = "journal" // the journal cannot be used
	FailStep    Fail = "step"    // steps failed again and again in this process
)

const (
	maxFailures = 1000 // failed model calls in a row, whatever Options.Retry says
	maxLost     = 10   // model calls in a row that a crash took
	maxAttempts = 10   // of a call that crashes take, looks for its effect included
	maxEmpty    = 2    // empty replies in a row that are asked again
)

// Next says what happens next. It is pure and total: no clock, no chance, no I/O;
// the same journal gives the same answer in every process.
func Next(s State) Todo {
	switch {
	case s.Finished != nil:
		return Todo{Do: DoNothing}
	case s.Started == nil:
		return Todo{Do: DoFail, Fail: FailJournal}
	}
	step, busy, waits := sift(s)
	switch {
	case s.ending():
		if busy {
			return Todo{Do: DoBusy}
		}
		if len(s.handing()) > 0 {
			return Todo{Do: DoWait, For: forWorkers}
		}
		return Todo{Do: DoEnd}
	case s.asking():
		return Todo{Do: DoWait, For: decisionLimit}
	case !s.settled() && overCalls(s):
		return Todo{Do: DoAsk, Limit: LimitToolCalls}
	case step.Do != "":
		return step
	case busy:
		return Todo{Do: DoBusy}
	case waits != "":
		return Todo{Do: DoWait, For: waits}
	}
	return nextCall(s)
}

// sift puts the unsettled calls into the lists of a step; busy is whether any runs
// in this process, waits what the rest waits for.
func sift(s State) (step Todo, busy bool, waits string) {
	add := func(list *[]string, c Call) {
		step.Do = DoStep
		*list = append(*list, c.ID)
	}
	for _, c := range s.open() {
		switch c.State {
		case callPlanned:
			add(&step.Plan, c)
		case callClosing:
			add(&step.Settle, c)
		case callToAsk, callUnsure:
			add(&step.Ask, c)
		case callAllowed:
			add(&step.Start, c)
		case callAsking:
			waits = waitsFor(waits, c.Kind)
		case callStarted:
			switch {
			case c.Class == classWorker:
				waits = cmp.Or(waits, forWorkers)
			case !c.Stale:
				busy = true
			case c.Class == tools.OnceOnly || c.Attempt >= maxAttempts:
				add(&step.Unsure, c)
			case c.Class == tools.Reconcilable:
				add(&step.Probe, c)
			default:
				add(&step.Start, c)
			}
		}
	}
	return step, busy, waits
}

// waitsFor names what a run waits for; an approval outweighs a question.
func waitsFor(so, kind string) string {
	if kind == decisionApproval || so == decisionApproval {
		return decisionApproval
	}
	return decisionQuestion
}

// nextCall decides when no call is open.
func nextCall(s State) Todo {
	call, long := Todo{Do: DoCall, N: s.Intents + 1}, false
	if s.Failed != nil {
		call, long = s.tooLong(call)
	}
	switch {
	case long && call.Do == DoAsk:
		return call
	case long:
	case s.Pending && !s.Stale && s.Context.Cut != nil:
		return Todo{Do: DoCompact, N: s.Intents, Open: true, Cut: s.Context.Cut}
	case s.Pending && !s.Stale:
		return Todo{Do: DoCall, N: s.Intents, Open: true}
	case s.Pending && s.Lost >= maxLost:
		return Todo{Do: DoFail, Fail: FailLost}
	case s.Failed != nil && s.Failed.Park: // who draws the commit knows whether the key is another one
	case s.Failed != nil && (s.Failed.Retry.IsZero() || s.Failures >= maxFailures):
		return Todo{Do: DoFail, Fail: FailModel}
	case s.Failed != nil && s.longWait():
		return Todo{Do: DoAsk, Limit: LimitWait}
	case s.Failed != nil:
		call.After, call.Since = s.Failed.Retry, s.FailedAt
	case len(s.Turns) == 0:
		return Todo{Do: DoFail, Fail: FailJournal}
	case !s.Pending:
		act := afterTurn(s, s.Turns[len(s.Turns)-1])
		if act.Do != DoCall && act.Do != DoCompact {
			return act
		}
		call.Do, call.Cut = act.Do, act.Cut
	}
	if l := s.overCall(); l != "" {
		return Todo{Do: DoAsk, Limit: l}
	}
	call.Reserve = s.reserve()
	if long || call.Do == DoCompact {
		return call
	}
	return s.makeRoom(call)
}

// maxWait is the longest that a run waits for its provider without asking its owner.
const maxWait = 24 * time.Hour

// longWait reports whether the owner must be asked before the next call is waited for.
func (s *State) longWait() bool {
	if s.Failed.Retry.Sub(s.FailedAt) <= maxWait {
		return false
	}
	for _, ask := range s.Asks[min(s.FailedAsks, len(s.Asks)):] {
		if ask.Limit == LimitWait && ask.Decided != nil && ask.Decided.Verb == "continue" {
			return false
		}
	}
	return true
}

// afterTurn says what follows the newest turn, all calls being settled.
func afterTurn(s State, t Turn) Todo {
	if t.Reply == nil || len(t.Calls) > 0 {
		return Todo{Do: DoCall}
	}
	switch t.Reply.Reply.Stop {
	case providers.StopFilter:
		return Todo{Do: DoFail, Fail: FailFilter}
	case providers.StopContext:
		return s.cutOff()
	case providers.StopPause:
		return Todo{Do: DoCall}
	}
	if s.Empty > 0 && s.Empty <= maxEmpty {
		return Todo{Do: DoCall}
	}
	return Todo{Do: DoFinish}
}
