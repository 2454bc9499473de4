// Package langgraph compares the durable run with the LangGraph stack, side by side, on
// the work that the baseline's WORKLOAD.md defines (W1 to W7): `make bench-langgraph`.
//
// Our side is the agent in a process of its own, on a real store with real syncs, and with
// all mail that a run makes: the submitted mail is staged and filed, the result lies in
// INBOX, an approval in Action. A decision is made as a person makes it: by a reply, or as
// the command line does. The baseline's scripts run as they are, out of a temporary folder;
// nothing of them is kept here.
//
// The process of our side is the test binary itself, started again with the variable
// PIZZA_LANGGRAPH (main_test.go). Everything is under the build tag bench.
package langgraph
