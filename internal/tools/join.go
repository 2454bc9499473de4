package tools

import (
	"context"
	"fmt"
)

// joined is several sets as one.
type joined []Set

// Join makes one set of several. A name that two of them have is that of the first.
func Join(sets ...Set) Set {
	if len(sets) == 1 {
		return sets[0]
	}
	return joined(sets)
}

// Specs lists the tools of the sets in their order.
func (j joined) Specs() []Spec {
	var specs []Spec
	seen := map[string]bool{}
	for _, s := range j {
		for _, spec := range s.Specs() {
			if !seen[spec.Name] {
				seen[spec.Name] = true
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// of is the set that has a tool, nil for none.
func (j joined) of(name string) Set {
	for _, s := range j {
		for _, spec := range s.Specs() {
			if spec.Name == name {
				return s
			}
		}
	}
	return nil
}

// Plan asks the set that has the tool.
func (j joined) Plan(c Call) Plan {
	if s := j.of(c.Name); s != nil {
		return s.Plan(c)
	}
	return noTool(c.Name)
}

// Run hands the call to the set that has the tool.
func (j joined) Run(ctx context.Context, w Workspace, c Call) Outcome {
	if s := j.of(c.Name); s != nil {
		return s.Run(ctx, w, c)
	}
	return failed("%s", noTool(c.Name).Reason)
}

// Probe asks the set that has the tool.
func (j joined) Probe(ctx context.Context, w Workspace, c Call) (Outcome, bool, error) {
	if p, ok := j.of(c.Name).(Prober); ok {
		return p.Probe(ctx, w, c)
	}
	return Outcome{}, false, fmt.Errorf("tools: %s cannot be probed", Show(c.Name))
}

func noTool(name string) Plan {
	return Plan{Class: OnceOnly, Rule: Invalid, Reason: "there is no tool " + Show(name)}
}
