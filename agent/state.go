package agent

import (
	"fmt"
	"slices"
	"time"

	"pizza/providers"
)

// State is a fold over a run's journal: everything Next needs to decide what
// happens next, and what the projection needs to speak to the model. It is a value
// of the journal alone, but for what stands under "of this process".
type State struct {
	Seq     uint64 // of the last event
	Started *EvStarted
	Turns   []Turn // mails and replies, in journal order

	Intents    int          // model calls begun, the lost and failed ones too
	Pending    bool         // the last intent has neither reply nor failure
	Epoch      uint64       // of the last intent
	Called     time.Time    // when it was begun
	Failed     *EvModelFail // the last call failed, and none was begun since
	FailedAt   time.Time    // when Failed was noted
	FailedAsks int          // len(Asks) then
	Failures   int          // failed calls in a row, refused keys aside
	Since      time.Time    // of the first of Failures
	Lost       int          // intents in a row whose reply a crash took
	Empty      int          // replies in a row that hold neither text nor call
	ModelCalls int          // answered ones: what counts against the limit
	ToolCalls  int          // calls the model asked for
	Usage      providers.Usage
	Reserved   Reserve       // for the open call
	Booked     Reserve       // for calls whose reply was lost
	Worked     time.Duration // see work
	At         time.Time     // of the last event
	pause      time.Duration // until the retry
	Below      Spent         // by the workers that have ended
	BelowUsed  Part          // of the budget, by them
	Context    Context       // how long the conversation is, and what of it was compacted

	Holds   bool // text that the login did not write: of mails, the thread before, and all results of tools
	Foreign bool // it did when the model was last told: calls that reach outside are asked about (invariant 9)

	Out      []OutChange // of /out, in order; the newest of a name counts
	Cancel   *EvCancel
	Asks     []LimitAsk // questions about the run as a whole, in order
	Stop     *EvDecided // the owner answered "stop" to an unknown outcome or a limit
	Finished *EvFinished

	// Of this process: the open model intent was made by an earlier one.
	Stale bool
}

// Turn is a mail that came in, or a reply of the model with its calls.
type Turn struct {
	Inbound *Inbound
	Reply   *EvReply
	Calls   []Call
	Size    int // bytes of a reply with its results, as the model is told them
}

// JournalError is an event that cannot follow what stands before it.
type JournalError struct {
	Seq    uint64
	Event  string
	Reason string
}

func (e *JournalError) Error() string {
	return fmt.Sprintf("agent: journal event %d (%s): %s", e.Seq, e.Event, e.Reason)
}

// Fold reads a journal from its first event. An event that cannot follow is a
// *JournalError.
func Fold(events []Event) (State, error) {
	var s State
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Apply adds the next event. After an error s is as before.
func (s *State) Apply(e Event) error {
	next := s.clone()
	if reason := next.apply(e); reason != "" {
		return &JournalError{Seq: s.Seq + 1, Event: e.kind(), Reason: reason}
	}
	next.Seq++
	next.work(e, s)
	*s = next
	return nil
}

// clone copies what apply changes in place: the calls of the last reply. Earlier
// turns are settled and shared.
func (s *State) clone() State {
	next := *s
	next.Turns = slices.Clip(s.Turns)
	if i := s.lastReply(); i >= 0 && len(s.Turns[i].Calls) > 0 {
		next.Turns = slices.Clone(s.Turns)
		next.Turns[i].Calls = slices.Clone(s.Turns[i].Calls)
	}
	next.Out, next.Asks = slices.Clip(s.Out), slices.Clip(s.Asks)
	return next
}

// lastReply is the index of the newest reply in Turns, -1 if there is none.
func (s *State) lastReply() int {
	for i := len(s.Turns) - 1; i >= 0; i-- {
		if s.Turns[i].Reply != nil {
			return i
		}
	}
	return -1
}

// open are the calls of the last reply; only they can be unsettled.
func (s *State) open() []Call {
	if i := s.lastReply(); i >= 0 {
		return s.Turns[i].Calls
	}
	return nil
}

func (s *State) call(id string) *Call {
	calls := s.open()
	for i := range calls {
		if calls[i].ID == id {
			return &calls[i]
		}
	}
	return nil
}

// settled reports whether every call has its result.
func (s *State) settled() bool {
	return !slices.ContainsFunc(s.open(), func(c Call) bool { return c.State != callSettled })
}

// ending reports whether the owner asked the run to end.
func (s *State) ending() bool { return s.Cancel != nil || s.Stop != nil }

// Age marks what is open as lost: the model intent when it was made before epoch,
// and every started call. It is called after loading a journal, before the first
// Next, when no call of the run is under way in this process.
func (s *State) Age(epoch uint64) {
	*s = s.clone()
	s.Stale = s.Pending && s.Epoch != epoch
	calls := s.open()
	for i := range calls {
		calls[i].Stale = calls[i].State == callStarted
	}
}

// loseCall marks a started call as one whose outcome nobody knows, as a crash would.
func (s *State) loseCall(id string) {
	*s = s.clone()
	s.call(id).Stale = true
}

// Files returns /out as it is now: names in order of their first appearance.
func (s *State) Files() []OutChange {
	var files []OutChange
	for _, c := range s.Out {
		i := slices.IndexFunc(files, func(f OutChange) bool { return f.Name == c.Name })
		switch {
		case c.Deleted && i >= 0:
			files = slices.Delete(files, i, i+1)
		case c.Deleted:
		case i >= 0:
			files[i] = c
		default:
			files = append(files, c)
		}
	}
	return files
}

// apply returns why e cannot follow, "" when it was applied.
func (s *State) apply(e Event) string {
	switch {
	case s.Finished != nil:
		return "after the end"
	case e.Started != nil:
		if s.Started != nil {
			return "started twice"
		}
		s.Started, s.Out, s.Holds = e.Started, e.Started.Out, e.Started.Foreign
		s.Context.open(e.Started)
		return ""
	case s.Started == nil:
		return "before the start"
	case e.Inbound != nil:
		s.Turns = append(s.Turns, Turn{Inbound: e.Inbound})
		s.Context.Size += e.Inbound.Size
		if e.Inbound.Budget != nil { // a mail that joins brings its budget
			started := *s.Started
			started.Limits = started.Limits.with(e.Inbound.Budget)
			s.Started = &started
		}
		return ""
	case e.Intent != nil:
		s.Called = e.At
		return s.intent(*e.Intent)
	case e.Reply != nil:
		return s.reply(e.Reply)
	case e.Compacted != nil:
		return s.compacted(e.Compacted)
	case e.ModelFail != nil:
		return s.modelFail(e.ModelFail, e.At)
	case e.Asked != nil && e.Asked.Call == "":
		return s.askedLimit(*e.Asked)
	case e.Decided != nil && e.Decided.Call == "":
		return s.decidedLimit(e.Decided)
	case e.Cancel != nil:
		if s.Cancel == nil { // the first counts
			s.Cancel = e.Cancel
		}
		return ""
	case e.Finished != nil:
		return s.finish(e.Finished)
	}
	return s.applyCall(e)
}

func (s *State) applyCall(e Event) string {
	c := s.call(e.callID())
	if c == nil {
		return "no such call in the last reply"
	}
	switch {
	case e.Policy != nil:
		return c.policy(*e.Policy)
	case e.Asked != nil:
		return c.asked(*e.Asked)
	case e.Decided != nil:
		if e.Decided.Verb == "stop" && c.Kind == decisionUnknown {
			s.Stop = e.Decided
		}
		return c.decided(e.Decided)
	case e.ToolStart != nil:
		if s.ending() {
			return "an intent in a run that ends"
		}
		if !e.ToolStart.Probe {
			c.Begun = e.At
		}
		return c.start(*e.ToolStart)
	case e.ToolEnd != nil:
		if e.ToolEnd.Status == endCancelled && !s.ending() {
			return "cancelled without a request"
		}
		reason := c.end(e.ToolEnd)
		if reason == "" {
			s.Holds = s.Holds || c.Attempt > 0
			s.Out = append(s.Out, e.ToolEnd.Out...)
			if e.ToolEnd.Child != nil {
				s.Below = s.Below.Add(e.ToolEnd.Child.Spent)
				s.BelowUsed = s.BelowUsed.add(e.ToolEnd.Child.Used)
			}
			s.resize(s.lastReply())
		}
		return reason
	}
	return "an event without content"
}

func (s *State) intent(e EvIntent) string {
	switch {
	case e.N != s.Intents+1:
		return fmt.Sprintf("intent %d after %d", e.N, s.Intents)
	case !s.settled():
		return "a call without its result"
	case s.ending():
		return "an intent in a run that ends"
	}
	if reason := s.cutIntent(e.Cut); reason != "" {
		return reason
	}
	if s.Pending {
		s.lose()
	}
	if e.Reserve != nil {
		s.Reserved = *e.Reserve
	}
	s.Intents, s.Epoch, s.Pending, s.Stale, s.Failed = e.N, e.Epoch, true, false, nil
	return ""
}

// lose is for the open call: a crash took its reply.
func (s *State) lose() {
	s.Lost++
	s.book()
}

func (s *State) reply(e *EvReply) string {
	if reason := s.answers(e.N); reason != "" {
		return reason
	}
	if s.Context.Cut != nil {
		return "a reply to a call for a summary"
	}
	t := Turn{Reply: e}
	for _, c := range callsOf(e.Reply.Message) {
		if c.ID == "" || s.known(c.ID) || slices.ContainsFunc(t.Calls, func(o Call) bool { return o.ID == c.ID }) {
			return "call id " + c.ID + " is not unique"
		}
		t.Calls = append(t.Calls, Call{ToolCall: c, State: callPlanned})
	}
	s.Empty++
	if len(t.Calls) > 0 || textOf(e.Reply.Message) != "" {
		s.Empty = 0
	}
	s.Holds = s.Holds || e.Foreign
	s.Foreign = s.Holds
	s.Context.replied(e.Sent, &e.Reply)
	s.Turns = append(s.Turns, t)
	s.resize(len(s.Turns) - 1)
	s.Pending, s.Stale, s.Failures, s.Lost = false, false, 0, 0
	s.Reserved = Reserve{}
	s.ModelCalls++
	s.ToolCalls += len(t.Calls)
	s.Usage = s.Usage.Add(e.Reply.Usage)
	return ""
}

func (s *State) modelFail(e *EvModelFail, at time.Time) string {
	if reason := s.answers(e.N); reason != "" {
		return reason
	}
	s.Pending, s.Stale, s.Failed, s.FailedAt, s.FailedAsks = false, false, e, at, len(s.Asks)
	if e.billed() {
		s.book()
	}
	s.Reserved = Reserve{}
	if e.Park || e.Stopped {
		return ""
	}
	if s.Failures == 0 {
		s.Since = at
	}
	s.Failures++
	if e.Class == providers.ContextLength {
		s.refused()
	}
	return ""
}

// answers says why n cannot be answered now.
func (s *State) answers(n int) string {
	switch {
	case !s.Pending || n != s.Intents:
		return fmt.Sprintf("answers call %d, which is not open", n)
	case s.ending():
		return "an answer in a run that ends"
	}
	return ""
}

// known reports whether a call of this run has the id.
func (s *State) known(id string) bool {
	for _, t := range s.Turns {
		for _, c := range t.Calls {
			if c.ID == id {
				return true
			}
		}
	}
	return false
}

func (s *State) finish(e *EvFinished) string {
	switch {
	case !e.State.Ended():
		return "finished as " + string(e.State)
	case e.State == Done && (s.Pending || !s.settled()):
		return "done with something open"
	case e.State == Done && s.ending():
		return "done after a request to end"
	case e.State == Cancelled && !s.ending():
		return "cancelled without a request"
	}
	s.Finished = e
	return ""
}
