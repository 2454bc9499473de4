package agent

import (
	"context"
	"slices"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// own is a tool that acts on the run itself, not on the world: the agent carries it out.
type own struct {
	spec tools.Spec
	// offer gives the spec as it is now, and whether there is anything to offer; nil: spec.
	offer func(*Agent) (tools.Spec, bool)
	// asks is the kind of decision that a call of it is: it never runs, the owner's answer
	// is its result. Empty: it runs.
	asks string
	// plan is as of tools.Set.
	plan func(*Agent, tools.Call) tools.Plan
	// begin commits the intent of a call in a way of its own, with changes beside it. nil:
	// as of any tool, and then run makes the call.
	begin func(context.Context, *draft, Call) error
	// run makes the call, outside the worker's goroutine: what it needs of the run it reads
	// from the store.
	run func(context.Context, *Agent, mailbox.AccountID, Run, tools.Call) tools.Outcome
}

// ownTools are offered to every run, after the tools of Options. It is a function because
// the rows lead back to it.
func ownTools() []own { return []own{taskTool(), askOwner, readResult} }

// ownSpecs are the own tools as they are now.
func (a *Agent) ownSpecs() []tools.Spec {
	var specs []tools.Spec
	for _, t := range ownTools() {
		spec, ok := t.spec, true
		if t.offer != nil {
			spec, ok = t.offer(a)
		}
		if ok {
			specs = append(specs, spec)
		}
	}
	return specs
}

// specs are all tools as they are now: those of Options, then the own ones.
func (a *Agent) specs() []tools.Spec { return slices.Concat(a.opt.Tools.Specs(), a.ownSpecs()) }

// toModel is a tool as a model is told it.
func toModel(t tools.Spec) providers.ToolSpec {
	return providers.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema}
}

// hasTool reports whether a list of tools has a name.
func hasTool(specs []providers.ToolSpec, name string) bool {
	return slices.ContainsFunc(specs, func(t providers.ToolSpec) bool { return t.Name == name })
}

// ownTool is the own tool of a name, nil for none.
func ownTool(name string) *own {
	for _, t := range ownTools() {
		if t.spec.Name == name {
			return &t
		}
	}
	return nil
}
