package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pizza/internal/crockford"
	"pizza/internal/mail"
)

// Limit is why a run stops to ask its owner whether it shall go on.
type Limit string

const (
	LimitModelCalls Limit = "model_calls" // of the run
	LimitToolCalls  Limit = "tool_calls"
	LimitTokens     Limit = "tokens" // of the run and its workers
	LimitCost       Limit = "cost"
	LimitTime       Limit = "time"    // since it began, waiting for a person aside
	LimitMonth      Limit = "month"   // what the account spends in a month
	LimitContext    Limit = "context" // compacting the conversation frees too little
	LimitWait       Limit = "wait"    // the provider wants a longer wait than a day
)

// LimitAsk is a question about the run as a whole: continue or stop.
type LimitAsk struct {
	Limit    Limit
	Decision string
	Decided  *EvDecided // nil while it is open
	// Used and Need are what was used by then and what going on takes, in the limit's unit.
	Used, Need int64
}

// askedLimit opens the question. One is open at a time, and nothing runs beside it.
func (s *State) askedLimit(e EvAsked) string {
	switch {
	case e.Kind != decisionLimit || e.Limit == "":
		return "asked about nothing"
	case s.asking():
		return "asked while a question about the run is open"
	}
	if s.Pending { // an intent of before a crash: no reply comes to it
		s.lose()
		s.Pending, s.Stale = false, false
	}
	s.Asks = append(s.Asks, LimitAsk{Limit: e.Limit, Decision: e.Decision, Used: s.used(e.Limit), Need: s.needs(e.Limit)})
	return ""
}

// decidedLimit closes it.
func (s *State) decidedLimit(e *EvDecided) string {
	if !s.asking() || s.Asks[len(s.Asks)-1].Decision != e.Decision {
		return "decision " + e.Decision + " is not open"
	}
	s.Asks = slices.Clone(s.Asks)
	s.Asks[len(s.Asks)-1].Decided = e
	switch e.Verb {
	case "continue":
		if s.Asks[len(s.Asks)-1].Limit == LimitContext {
			s.goOn()
		}
	case "stop", "expire":
		s.Stop = e
	default:
		return "verb " + e.Verb + " for a limit"
	}
	return ""
}

// asking reports whether a question about the run as a whole is open.
func (s *State) asking() bool {
	return len(s.Asks) > 0 && s.Asks[len(s.Asks)-1].Decided == nil
}

// askLimit opens the question whether the run shall go on, and has it wait.
func (d *draft) askLimit(ctx context.Context, l Limit) error {
	a, o := d.s.a, d.s.o
	now := a.now()
	dec := Decision{
		ID: newToken(), Kind: decisionLimit, Task: d.run.Task, Run: d.run.ID, Nonce: crockford.Random(8),
		State: Open, Created: now, Expires: now.Add(a.opt.Expiry), Sentence: limitSentence(&d.st, l),
	}
	th, _, err := a.thread(ctx, o.Account, d.run.Task)
	if err != nil {
		return err
	}
	out := a.letter(o, th, KindQuestion, d.run.ID, d.run.newest())
	a.asks(&out, dec.ID)
	if l == LimitWait {
		dec.Sentence = "The provider of " + d.run.Model + " takes no call before " + a.when(d.st.Failed.Retry) + "."
	}
	out.Subject = mail.LimitSubject(dec.Sentence)
	again, more := limitGrants(&d.st, l)
	who := "the task"
	if d.run.child() {
		who = "the worker"
	}
	out.Plain, out.HTML = mail.LimitText(mail.Limit{
		Sentence: dec.Sentence, By: d.run.pathText(), Task: d.run.Subject, Done: a.doneLines(&d.st), Missing: a.missing(&d.st), Said: lastSaid(&d.st),
		Again: again, More: more, Stop: who + " ends with what it has", Without: "Without an answer " + who + " ends with what it has.",
		Expires: a.local(dec.Expires), ReplyAddress: out.ReplyTo.String(), Subject: out.Subject,
	})
	if err := d.open(ctx, &dec, out); err != nil {
		return err
	}
	if err := d.add(Event{Asked: &EvAsked{Decision: dec.ID, Kind: decisionLimit, Limit: l}}); err != nil {
		return err
	}
	return d.pause(ctx, decisionLimit, time.Time{})
}

// limitSentence says which limit is reached.
func limitSentence(s *State, l Limit) string {
	text := limitText(s, l)
	if who := s.Started.Worker; who != "" {
		text = strings.Replace(text, "The task", "Worker "+who, 1)
	}
	return text
}

func limitText(s *State, l Limit) string {
	used, allowed := s.used(l), s.allowed(l)
	switch l {
	case LimitModelCalls:
		return "The task made " + counted(used, "model call") + ", which is its limit."
	case LimitToolCalls:
		return fmt.Sprintf("The task made %s and asks for %d more; its limit is %d.",
			counted(used, "tool call"), s.needs(l)-used, allowed)
	case LimitTokens:
		return fmt.Sprintf("The task used %s of %s tokens, which are its limit, and its next model call would pass it.", grouped(used), grouped(allowed))
	case LimitCost:
		return fmt.Sprintf("The task cost %s of %s, which is its limit, and its next model call would pass it.", dollars(used), dollars(allowed))
	case LimitTime:
		return fmt.Sprintf("The task worked for %s, and its limit is %s.",
			time.Duration(used).Round(time.Second), time.Duration(allowed).Round(time.Second))
	case LimitContext:
		return contextSentence(s)
	}
	return "The task reached its limit of " + string(l) + "."
}

// limitGrants says what continue gives, and what a number behind it counts.
func limitGrants(s *State, l Limit) (again, more string) {
	base := s.Started.Limits.of(l)
	switch l {
	case LimitWait:
		return "when that time has come; until then it waits", ""
	case LimitModelCalls:
		return "with " + counted(base, "further model call"), "to let it make that many more model calls"
	case LimitToolCalls:
		return "with " + counted(base, "further tool call"), "to let it make that many more tool calls, these at least"
	case LimitTokens:
		return "with " + grouped(base) + " further tokens", "to let it use that many more tokens"
	case LimitCost:
		return "with " + dollars(base) + " more", "to let it cost that many more US dollars"
	case LimitTime:
		return "for " + time.Duration(base).String() + " more", "to let it work for that many more minutes"
	}
	return "", ""
}

func counted(n int64, what string) string {
	if n == 1 {
		return "one " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped writes a number with a comma every three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// dollars writes micro-USD, to the cent where there are cents.
func dollars(n int64) string {
	if n > 0 && n < 10_000 {
		return fmt.Sprintf("$%.4f", float64(n)/1e6)
	}
	return fmt.Sprintf("$%.2f", float64(n)/1e6)
}

// missing says what the run has not come to.
func (a *Agent) missing(s *State) []string {
	var calls []string
	for _, c := range s.unjudged() {
		calls = append(calls, a.plainSentence(c))
	}
	if len(calls) > 0 {
		return calls
	}
	return []string{"The answer: the model had not come to an end."}
}

// doneLines name the calls that changed something, one a line.
func (a *Agent) doneLines(s *State) []string {
	var lines []string
	for _, t := range s.Turns {
		for _, c := range t.Calls {
			if c.changed() {
				lines = append(lines, a.plainSentence(c))
			}
			if c.End != nil && c.End.Child != nil {
				for _, name := range c.End.Child.Done {
					lines = append(lines, "By a worker: "+oneLine(name))
				}
			}
		}
	}
	for _, f := range s.Files() {
		lines = append(lines, "File made: "+oneLine(f.Name)+" (it comes with the last mail)")
	}
	return lines
}

// lastSaid is the newest text of the model, "" for none.
func lastSaid(s *State) string {
	for _, t := range slices.Backward(s.Turns) {
		if t.Reply == nil {
			continue
		}
		if text := textOf(t.Reply.Reply.Message); text != "" {
			return text
		}
	}
	return ""
}

// stoppedAt is the question whose answer ends the run, nil when something else does.
func (s *State) stoppedAt() *LimitAsk {
	if n := len(s.Asks); n > 0 && s.Cancel == nil && s.Stop != nil && s.Asks[n-1].Decided == s.Stop {
		return &s.Asks[n-1]
	}
	return nil
}

// stopAt ends a run at a limit, with what it has.
func (d *draft) stopAt(ctx context.Context, ask LimitAsk) error {
	a, by := d.s.a, d.st.Stop.By
	e := ending{move: moveCancel, kind: KindNotice}
	how := fmt.Sprintf("It was stopped there by %s on %s.", by.who(), a.when(by.At))
	if d.st.Stop.Verb == "expire" {
		how = "Nobody said whether it shall go on, so it ended there."
		e = ending{move: moveFail, kind: KindFailure, error: "limit reached"}
	}
	if ask.Limit == LimitMonth {
		how = d.st.Stop.Text + " " + how
	} else {
		how = limitSentence(&d.st, ask.Limit) + " " + how
	}
	var b strings.Builder
	b.WriteString("This task ended before it was done. " + how + "\n")
	b.WriteString(doneText(&d.st) + partText(&d.st))
	b.WriteString("\nReply to this mail to have it go on: what is said above is known then.\n")
	e.text = b.String()
	return d.finish(ctx, e)
}
