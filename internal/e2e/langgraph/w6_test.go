//go:build bench

package langgraph

import "errors"

// errNoTask: this release has no subagents.
var errNoTask = errors.New("there is no tool task in this release")

func sideW6([]string) (figures, error) { return nil, errNoTask }
