package agent

import (
	"crypto/rand"
	"strconv"
	"strings"
)

// crockford is the alphabet of our ids, in lower case: no i, l, o, u.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// newID returns n random characters (5 bits each).
func newID(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	for i := range b {
		b[i] = crockford[b[i]&31]
	}
	return string(b)
}

// newTaskID names a thread: 50 random bits.
func newTaskID() string { return newID(10) }

// newToken names a thread or a decision in an address: 75 random bits. It is a
// name, not a secret: authority is the login.
func newToken() string { return newID(15) }

// runID names the n-th run of a task, counted from 1.
func runID(task string, n int) string { return task + "." + strconv.Itoa(n) }

// taskOf gives the task of a run id, or the id itself.
func taskOf(id string) string {
	task, _, _ := strings.Cut(id, ".")
	return task
}
