package agent

import (
	"math"
	"time"

	"pizza/providers"
)

// A run's limits are checked before what they bound: model calls, tokens, money and time
// before each model call, tool calls before a batch. What a model call will use nobody
// knows before it, so its intent reserves an estimate, which counts as used until the
// reply tells what it was. A reply that was lost stays booked at its estimate: it was
// billed. All of it is a fold over the journal.

// Reserve is what a model call is expected to use at the most.
type Reserve struct {
	Input  int64 `json:"input,omitempty"`  // tokens
	Output int64 `json:"output,omitempty"` // tokens
	Cost   int64 `json:"cost,omitempty"`   // micro-USD
	// Month is the month whose cap it was booked against, as in 2026-12; or none.
	Month string `json:"month,omitempty"`
}

// Tokens are input and output.
func (r Reserve) Tokens() int64 { return r.Input + r.Output }

const (
	bytesPerToken = 3       // fewer than any tokenizer makes of text, so an estimate is high
	outputReserve = 8 << 10 // tokens of an answer
	leastOutput   = 256     // tokens: with room for less a call is not worth making
	maxCapped     = 1 << 15 // tokens: an answer with more room than this is left to the provider
)

// micro is USD in millionths.
func micro(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

// unit is what the number of "continue N" counts, in the limit's own unit.
func (l Limit) unit() int64 {
	switch l {
	case LimitCost:
		return 1e6 // a dollar
	case LimitTime:
		return int64(time.Minute)
	}
	return 1
}

// of is the limit l, in its own unit: calls, tokens, micro-USD or nanoseconds. 0: none.
func (m Limits) of(l Limit) int64 {
	switch l {
	case LimitModelCalls:
		return int64(m.ModelCalls)
	case LimitToolCalls:
		return int64(m.ToolCalls)
	case LimitTokens:
		return m.Tokens
	case LimitCost:
		return micro(m.Cost)
	case LimitTime:
		return int64(m.Time)
	}
	return 0
}

// used is what the run has used of a limit, with what is booked and reserved.
func (s *State) used(l Limit) int64 {
	switch l {
	case LimitModelCalls:
		return int64(s.ModelCalls)
	case LimitToolCalls:
		return int64(s.ToolCalls - len(s.unjudged()))
	case LimitTokens:
		return int64(s.Usage.Input+s.Usage.Output) + s.Booked.Tokens() + s.Reserved.Tokens() + s.handed().Tokens
	case LimitCost:
		return micro(s.Usage.Cost) + s.Booked.Cost + s.Reserved.Cost + s.handed().Cost
	case LimitTime:
		return int64(s.Worked)
	}
	return 0
}

// needs is what the run will have used of a limit at the least once it went on.
func (s *State) needs(l Limit) int64 {
	switch l {
	case LimitModelCalls, LimitTime:
		return s.used(l) + 1
	case LimitToolCalls:
		return int64(s.ToolCalls)
	case LimitTokens:
		if r := s.estimate(); r.Tokens() > 0 {
			return s.used(l) + r.Input + leastOutput
		}
		return s.used(l) + 1
	case LimitCost:
		return s.used(l) + max(s.estimate().Cost, 1)
	}
	return 0
}

// allowed is how far the run may go: the limit and what the owner gave on top. Each
// continue adds its number, or as much again, to what was used by then, and in any case
// lets what was waiting happen.
func (s *State) allowed(l Limit) int64 {
	base := s.Started.Limits.of(l)
	if base <= 0 {
		return math.MaxInt64
	}
	allow := base
	for _, ask := range s.Asks {
		if ask.Limit != l || ask.Decided == nil || ask.Decided.Verb != "continue" {
			continue
		}
		grant := base
		if n := int64(ask.Decided.N); n > 0 {
			grant = n * l.unit()
		}
		allow = max(max(allow, ask.Used)+grant, ask.Need)
	}
	return allow
}

// overCall is the first limit that the next model call would pass, "" for none.
func (s *State) overCall() Limit {
	for _, l := range []Limit{LimitModelCalls, LimitTokens, LimitCost, LimitTime} {
		if s.Started.Limits.of(l) > 0 && s.needs(l) > s.allowed(l) {
			return l
		}
	}
	return ""
}

// unjudged are the calls of the last reply when none of them was judged yet.
func (s *State) unjudged() []Call {
	calls := s.open()
	for _, c := range calls {
		if c.State != callPlanned {
			return nil
		}
	}
	return calls
}

// overCalls reports whether the last reply asks for more calls than the run may
// make and none of them was judged.
func overCalls(s State) bool {
	return len(s.unjudged()) > 0 && int64(s.ToolCalls) > s.allowed(LimitToolCalls)
}

// reserve is what the next call books: nothing for a run without limit of tokens or money.
func (s *State) reserve() Reserve {
	if s.Started.Limits.Tokens <= 0 && s.Started.Limits.Cost <= 0 {
		return Reserve{}
	}
	r := s.estimate()
	if s.Started.Limits.Tokens > 0 {
		r.Output = max(0, min(r.Output, s.allowed(LimitTokens)-s.used(LimitTokens)-r.Input))
	}
	return r
}

// estimate is what the next call will use at the most, by what the last one used and what
// came since, or by the length of what is known. It is zero for a model that is free or
// does not say what it uses.
func (s *State) estimate() Reserve {
	if s.Started.Free {
		return Reserve{}
	}
	size, used := 0, providers.Usage{}
	i := len(s.Turns) - 1
	for ; i >= 0 && s.Turns[i].Reply == nil; i-- {
		size += s.Turns[i].Inbound.Size
	}
	if i >= 0 {
		used = s.Turns[i].Reply.Reply.Usage
		if used.Input+used.Output == 0 {
			return Reserve{}
		}
		for _, c := range s.Turns[i].Calls {
			if c.End != nil {
				size += len(c.End.Content)
			}
		}
	} else {
		size += len(s.Started.System)
		for _, t := range s.Started.Tools {
			size += len(t.Name) + len(t.Description) + len(t.Schema)
		}
	}
	if c := &s.Context; c.Judge > 0 { // made shorter since that reply
		used, size = providers.Usage{Input: min(c.estimate(), used.Input+used.Output+size/bytesPerToken)}, 0
	}
	r := Reserve{Input: int64(used.Input + used.Output + size/bytesPerToken), Output: outputReserve}
	if all := s.Usage.Input + s.Usage.Output; all > 0 {
		r.Cost = micro(s.Usage.Cost / float64(all) * float64(r.Tokens()))
	}
	return r
}

// room is the most tokens that the answer to the open call may have; 0: as the provider has it.
func (s *State) room() int {
	if s.Started == nil || s.Started.Limits.Tokens <= 0 || s.Reserved.Tokens() == 0 {
		return 0
	}
	left := s.allowed(LimitTokens) - s.used(LimitTokens) + s.Reserved.Output
	if left >= maxCapped {
		return 0
	}
	return int(max(left, leastOutput))
}

// book keeps the reservation of a call whose reply will not come.
func (s *State) book() {
	s.Booked.Input += s.Reserved.Input
	s.Booked.Output += s.Reserved.Output
	s.Booked.Cost += s.Reserved.Cost
	s.Reserved = Reserve{}
}

// billed reports whether a failed call may have cost something: it was answered in part,
// or nobody knows.
func (e *EvModelFail) billed() bool { return e.Class == providers.Timeout || e.Partial || e.Stopped }

// work counts the time that an event ends: a model's, a tool's, or that before a retry. It
// is the time between two events, but not more than it took by a clock that nobody sets:
// what lies between otherwise is a wait for a person, for a worker, or a server that is
// off.
func (s *State) work(e Event, before *State) {
	gap := e.At.Sub(s.At)
	took := time.Duration(0)
	switch {
	case e.Reply != nil:
		took = e.Reply.Reply.Took
	case e.Compacted != nil:
		took = e.Compacted.Took
	case e.ToolEnd != nil:
		took = e.ToolEnd.Took
	case e.ModelFail != nil:
		took = e.ModelFail.Took
		s.pause = max(0, e.ModelFail.Retry.Sub(e.At))
	case before.Failed != nil && !before.asking():
		took = s.pause
		s.pause -= max(0, min(gap, took))
	}
	s.Worked += max(0, min(gap, took))
	s.At = e.At
}

// with lays what a mail asks for over the limits.
func (m Limits) with(b *Limits) Limits {
	if b == nil {
		return m
	}
	if b.ModelCalls > 0 {
		m.ModelCalls = b.ModelCalls
	}
	if b.ToolCalls > 0 {
		m.ToolCalls = b.ToolCalls
	}
	if b.Tokens > 0 {
		m.Tokens = b.Tokens
	}
	if b.Cost > 0 {
		m.Cost = b.Cost
	}
	if b.Time > 0 {
		m.Time = b.Time
	}
	return m
}

// intent is the event that begins the call of a DoCall or a DoCompact.
func (act Todo) intent(epoch uint64) *EvIntent {
	e := &EvIntent{N: act.N, Epoch: epoch, Cut: act.Cut}
	if act.Reserve != (Reserve{}) {
		e.Reserve = &act.Reserve
	}
	return e
}
