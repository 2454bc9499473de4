package agent

import (
	"context"
	"errors"
	"slices"

	"pizza/internal/tools"
	"pizza/mailbox"
)

// The system prompt and the list of tools are frozen by the first run of a thread: each
// later one takes over what the run before it had, whatever the settings and the release
// are by then. So what providers cache of a thread stays valid, and so does reasoning
// that is bound to it. What a call may do is judged when it is made, by the settings of
// then: the list grants nothing.

// frozen is what the next run of a thread (th.Runs counts it already) works with. A branch
// takes over what the thread has that it branched off from.
func (a *Agent) frozen(ctx context.Context, o owner, th *Thread, model string) (*EvStarted, error) {
	e := a.started(ctx, o, model)
	var earlier []string
	for n := th.Runs - 1; n >= 1 && len(earlier) < maxEarlierRuns; n-- {
		earlier = append(earlier, runID(th.Task, n))
	}
	if th.From != nil && th.From.Run != "" {
		earlier = append(earlier, th.From.Run)
	}
	for _, run := range earlier {
		before, err := a.began(ctx, o, run)
		if err != nil {
			return nil, err
		}
		if before != nil && before.System != "" {
			e.System, e.Tools = before.System, before.Tools
			break
		}
	}
	return e, nil
}

// began is the first event of a run, nil when its journal is gone or cannot be read.
func (a *Agent) began(ctx context.Context, o owner, run string) (*EvStarted, error) {
	var first *EvStarted
	err := a.store.Events(ctx, o.Account, runKey(run), 1, func(_ uint64, b []byte) error {
		if e, err := decodeEvent(b); err == nil {
			first = e.Started
		}
		return errEnough
	})
	if errors.Is(err, errEnough) || isKind(err, mailbox.NotFound) {
		err = nil
	}
	return first, err
}

// window is the window of a model by name; that of one that cannot be had now is not
// known.
func (a *Agent) window(ctx context.Context, name string) int {
	info, _ := a.info(ctx, name)
	return windowOf(info)
}

// gone reports whether the run was told of a tool that is no longer there.
func (a *Agent) gone(s *State, name string) bool {
	return hasTool(s.Started.Tools, name) && ownTool(name) == nil &&
		!slices.ContainsFunc(a.opt.Tools.Specs(), func(t tools.Spec) bool { return t.Name == name })
}
