package agent

import (
	"time"

	"pizza/providers"
)

// Spent is what a run cost.
type Spent struct {
	ModelCalls int             `json:"model_calls,omitempty"`
	ToolCalls  int             `json:"tool_calls,omitempty"`
	Usage      providers.Usage `json:"usage"`
}

// Add sums two of them.
func (s Spent) Add(o Spent) Spent {
	s.ModelCalls += o.ModelCalls
	s.ToolCalls += o.ToolCalls
	s.Usage = s.Usage.Add(o.Usage)
	return s
}

// Spent is what the run cost so far, with the workers of it that have ended.
func (s *State) Spent() Spent {
	return Spent{ModelCalls: s.ModelCalls, ToolCalls: s.ToolCalls, Usage: s.Usage}.Add(s.Below)
}

// Part is a part of a run's budget: what one of its workers got with its start, or what one
// that has ended used of it. What it does not use goes back with its end. Zero is none.
type Part struct {
	Tokens int64 `json:"tokens,omitempty"`
	Cost   int64 `json:"cost,omitempty"` // micro-USD
}

func (p Part) add(o Part) Part { return Part{Tokens: p.Tokens + o.Tokens, Cost: p.Cost + o.Cost} }

// handed is what workers have of the run's budget: the parts of those who are at work, and
// what those who have ended used.
func (s *State) handed() Part {
	sum := s.BelowUsed
	for _, c := range s.handing() {
		sum = sum.add(c.Part)
	}
	return sum
}

// usedUp is what the run used of its budget, with what its workers have of it.
func (s *State) usedUp() Part { return Part{Tokens: s.used(LimitTokens), Cost: s.used(LimitCost)} }

// leastPart is in tokens: a worker that gets less would ask for more before its first call.
const leastPart = 4 * leastOutput

// part is what the next worker gets of the budget when n are to begin now: an equal part
// of what is left, the run keeping one for itself. ok is false when too little is left.
func (s *State) part(n int) (p Part, ok bool) {
	l := s.Started.Limits
	if l.Tokens > 0 {
		if p.Tokens = (s.allowed(LimitTokens) - s.used(LimitTokens)) / int64(n+1); p.Tokens < leastPart {
			return p, false
		}
	}
	if l.Cost > 0 {
		if p.Cost = (s.allowed(LimitCost) - s.used(LimitCost)) / int64(n+1); p.Cost <= 0 {
			return p, false
		}
	}
	return p, true
}

// timeLeft is what a run has left of its limit of time; below 0: it has none. Workers at
// work at the same time each get all of it: their time counts once.
type timeLeft time.Duration

func (s *State) timeLeft() timeLeft {
	if s.Started.Limits.Time <= 0 {
		return -1
	}
	return timeLeft(max(0, s.allowed(LimitTime)-s.used(LimitTime)))
}

// of is a worker's limit of time: its own, or what is left when that is less or it has none.
func (t timeLeft) of(own time.Duration) time.Duration {
	if t < 0 || own > 0 && own < time.Duration(t) {
		return own
	}
	return time.Duration(t)
}

// within are the limits with no more tokens and cost than a part of a budget, and what of
// the part they leave to be held.
func (l Limits) within(p Part) (Limits, Part) {
	if p.Tokens > 0 {
		if l.Tokens <= 0 || l.Tokens > p.Tokens {
			l.Tokens = p.Tokens
		}
		p.Tokens = l.Tokens
	}
	if p.Cost > 0 {
		if l.Cost <= 0 || micro(l.Cost) > p.Cost {
			l.Cost = float64(p.Cost) / 1e6
		}
		p.Cost = micro(l.Cost)
	}
	return l, p
}
