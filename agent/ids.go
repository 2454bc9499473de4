package agent

import (
	"strconv"
	"strings"

	"pizza/internal/crockford"
)

// newTaskID names a thread: 50 random bits.
func newTaskID() string { return crockford.Random(10) }

// newToken names a thread or a decision in an address: 75 random bits. It is a
// name, not a secret: authority is the login.
func newToken() string { return crockford.Random(15) }

// runID names the n-th run of a task, counted from 1.
func runID(task string, n int) string { return task + "." + strconv.Itoa(n) }

// taskOf gives the task of a run id, or the id itself.
func taskOf(id string) string {
	task, _, _ := strings.Cut(id, ".")
	return task
}
