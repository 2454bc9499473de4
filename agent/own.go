package agent

import (
	"context"

	"pizza/internal/tools"
	"pizza/mailbox"
)

// own is a tool that acts on the run itself, not on the world: the agent carries it out.
type own struct {
	spec tools.Spec
	// plan is as of tools.Set.
	plan func(*Agent, tools.Call) tools.Plan
	// begin commits the intent of a call in a way of its own, with changes beside it. nil:
	// as of any tool, and then run makes the call.
	begin func(context.Context, *draft, Call) error
	// run makes the call, outside the worker's goroutine: what it needs of the run it reads
	// from the store.
	run func(context.Context, *Agent, mailbox.AccountID, Run, tools.Call) tools.Outcome
}

// ownTools are offered to every run, after the tools of Options.
var ownTools = []own{}

// ownTool is the own tool of a name, nil for none.
func ownTool(name string) *own {
	for i := range ownTools {
		if ownTools[i].spec.Name == name {
			return &ownTools[i]
		}
	}
	return nil
}
