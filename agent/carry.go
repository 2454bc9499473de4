package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"pizza/internal/tools"
)

// What is done with a call whose outcome nobody knows goes by its class: a crash took it,
// it did not end in its time, the connection was lost, the tool panicked.
//
//	read-only     begun again after a crash or a stop, else an error: it changed nothing
//	idempotent    begun again with the same key, maxRepeats times in all, then asked
//	reconcilable  looked up (tools.Prober): found, or begun again, or asked
//	once-only     asked
//
// A crash is met in Next, by Call.Stale; all else in fate.

const (
	grace      = 5 * time.Second // for a call to end when the server stops or the owner cancels
	maxRepeats = 3               // attempts of an idempotent call whose outcomes are lost without a crash
)

// errCallTime ends the context of a call that takes longer than it may.
var errCallTime = errors.New("the time of the call is over")

// callTime is how long a call of a tool may take.
func (a *Agent) callTime(name string) time.Duration {
	for _, spec := range a.opt.Tools.Specs() {
		if spec.Name == name && spec.Time > 0 {
			return spec.Time
		}
	}
	return a.opt.CallTime
}

// launchTool makes the call whose intent is on disk, or looks for its effect.
func (s *session) launchTool(ctx context.Context, id string) {
	c := *s.st.call(id)
	args, err := canonical(c.Args)
	if err != nil { // judged before: cannot be
		args = c.Args
	}
	ws, broken := s.workspace(ctx)
	run, call := s.run, tools.Call{Name: c.Name, Args: args, Key: s.id + "/" + c.ID}
	ctx, cancel := s.callContext(ctx, c)
	s.launch(ctx, cancel, outcome{key: id, attempt: c.Attempt, probe: c.Probing}, func(ctx context.Context, out *outcome) {
		switch own := ownTool(c.Name); {
		case broken != nil && c.Probing:
			out.err = broken
		case broken != nil:
			out.tool = tools.Outcome{Error: true, Content: "Not done: the mails of the task could not be read."}
			out.tool.Unknown = c.Attempt > 1 && c.Class != tools.ReadOnly // of the attempt before
		case c.Probing:
			out.tool, out.found, out.err = s.a.probe(ctx, ws, call)
		case own != nil:
			out.tool = own.run(ctx, s.a, s.account, run, call)
		default:
			out.tool = s.a.opt.Tools.Run(ctx, ws, call)
		}
	})
}

// probe asks the tools whether a call had its effect.
func (a *Agent) probe(ctx context.Context, ws tools.Workspace, call tools.Call) (tools.Outcome, bool, error) {
	p, ok := a.opt.Tools.(tools.Prober)
	if !ok {
		return tools.Outcome{}, false, fmt.Errorf("agent: %s cannot be probed", call.Name)
	}
	return p.Probe(ctx, ws, call)
}

// callContext is the context of a call: it ends when the time of the call is over, and
// when the server stops or the owner cancels. A call that cannot just be made again is
// given time to end then: cut off, its outcome would be a question.
func (s *session) callContext(parent context.Context, c Call) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if c.Class != tools.ReadOnly && c.Class != tools.Idempotent && !c.Probing {
		ctx, cancel = graceful(parent, grace)
	}
	ctx, end := context.WithTimeoutCause(ctx, s.a.callTime(c.Name), errCallTime)
	return ctx, func(cause error) {
		cancel(cause)
		if cause == nil {
			end()
		}
	}
}

// graceful returns a context that ends a while after its parent, or after cancel.
func graceful(parent context.Context, after time.Duration) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(parent))
	stop := func(cause error) { time.AfterFunc(after, func() { end(cause) }) }
	unhook := context.AfterFunc(parent, func() { stop(context.Cause(parent)) })
	return ctx, func(cause error) {
		if cause == nil { // it has ended by itself
			unhook()
			end(nil)
			return
		}
		stop(cause)
	}
}

// Fates of a call that is no end of it.
const (
	fateLeft  = "left"  // cut off by us: the next process goes on from the intent
	fateAgain = "again" // nobody knows; its class has a way to go on
)

// fate says what becomes of a call by its outcome: a status of EvToolEnd, or one of the
// two above. ending: the run is asked to end.
func fate(c Call, out outcome, ending bool) string {
	unknown := out.broken != nil || out.lost || out.tool.Unknown || out.probe && out.err != nil
	stopped := out.stopped && !ending && c.Class != tools.OnceOnly
	switch {
	case stopped && (unknown || out.tool.Error):
		return fateLeft
	case !unknown && out.probe && !out.found && ending:
		return endCancelled
	case !unknown && out.probe && !out.found:
		return endAbsent
	case !unknown && out.tool.Error:
		return endError
	case !unknown:
		return endOK
	case c.Class == tools.ReadOnly:
		return endError
	case ending, out.probe:
		return endUnknown
	case c.Class == tools.Idempotent && c.Attempt < maxRepeats:
		return fateAgain
	case c.Class == tools.Reconcilable && c.Attempt < maxAttempts:
		return fateAgain
	}
	return endUnknown
}

// said is what is known of an outcome, in words for the model and the owner.
func (a *Agent) said(c Call, out outcome) string {
	switch {
	case out.broken != nil:
		return "The tool failed inside."
	case out.lost && out.late:
		return fmt.Sprintf("It did not end within %s.", a.callTime(c.Name))
	case out.lost:
		return "It was cut off."
	case out.probe && out.err != nil:
		return "Looking whether it happened did not tell: " + out.err.Error()
	case out.probe && !out.found:
		return "It was begun and had no effect."
	}
	return out.tool.Content
}

// recordTool commits a tool's outcome.
func (s *session) recordTool(ctx context.Context, out outcome) error {
	c := s.st.call(out.key)
	if c == nil || c.State != callStarted || c.Attempt != out.attempt {
		return s.advance(ctx, nil)
	}
	if out.broken != nil || out.lost {
		s.a.log.LogAttrs(ctx, slog.LevelError, "tool broke", slog.String("run", s.id), slog.String("tool", c.Name),
			slog.Bool("lost", out.lost), slog.Any("err", out.broken))
	}
	end := &EvToolEnd{Call: out.key, Took: out.took, Content: s.a.said(*c, out)}
	blobs, err := s.stageResult(ctx, end, out.tool)
	if err != nil {
		return err
	}
	return s.advance(ctx, func(d *draft) error {
		c := d.st.call(out.key)
		if c == nil || c.State != callStarted || c.Attempt != out.attempt {
			return nil
		}
		end := *end
		switch end.Status = fate(*c, out, d.st.ending()); end.Status {
		case fateLeft:
			return nil
		case fateAgain:
			d.st.loseCall(c.ID)
			return nil
		case endUnknown:
			end.Content = strings.TrimSpace(end.Content)
			if end.Content == "" {
				end.Content = noResult
			}
		}
		d.blobs = append(d.blobs, blobs...)
		return d.add(Event{ToolEnd: &end})
	})
}
