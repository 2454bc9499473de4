// Package agent turns mail into durable runs and runs into mail.
//
// A submission joins a thread or begins one (a task); a thread has one live run
// at a time; a run is an append-only journal. State is a fold over the journal
// (Fold), the next action a pure function of that state (Next). No code is
// replayed: after kill -9 a run goes on from its last recorded step.
//
//	queued -> running -> waiting (approval | question | timer | limit) -> queued
//	                  -> done | failed | cancelled
//
// Commit points of a step, two: (1) the model's reply, the decisions of policy, the
// intents, and the approval with its mail; (2) each tool result as it ends. The end
// of a run, its result in INBOX, the status message's removal and the thread's next
// run are one transaction. A tool that is not declared read-only or idempotent runs
// at most once: its intent is committed before the call, and an intent without an
// outcome after a crash becomes a question to the owner.
//
// Everything lies in the account's own Store: streams "run/<run>", records (see
// records.go), due entries. Nothing waits in memory.
//
// The files of the runtime: state.go and call.go (fold), next.go (what comes next), runstate.go
// (the diagram above as a function), run.go (one run in a worker), draft.go (the next
// commit in the making), policy.go (what may run), ask.go, decide.go and edit.go
// (decisions), finish.go (last mails), worker.go
// (dispatcher and pool), subagent.go, delegate.go and family.go (workers), park.go and recover.go (poison, and what earlier
// processes left), retry.go, gate.go and refusal.go (failed calls, what a provider bears, keys
// that are refused), clock.go (clocks that jump), project.go, input.go and history.go (what
// the model is told), context.go and compact.go (how long that is, and summaries of it),
// result.go (long results), frozen.go (prompt and tools of a thread), query.go (what the command line asks),
// activity.go (what happens, as it does), forget.go and retain.go (what goes).
//
// Concurrency: a fixed pool of workers; one worker owns one run while it is
// claimed. Decisions, cancellations and new mail come from other goroutines and
// meet the worker in compare-and-set commits only.
package agent
