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
// Words. A worker is an agent with instructions, tools and limits of its own that a run gives
// work to with the tool task (settings: workers); its run is a child of the run that gave the
// work. (The goroutines that work runs are slots of the dispatcher.) A limit bounds a run, a
// budget is the limits that a mail brings, a cap bounds an account's month. A decision is what
// only the owner can say: an approval, an unknown outcome, a question of the agent, a limit.
//
// The files, by what they are about:
//
//	mail in       intake.go, address.go, thread.go, reply.go, answer.go, drop.go, deliver.go,
//	              repeat.go, mailbudget.go (what a mail may bring)
//	mailboxes     mailboxes.go, guard*.go (what a person does in them), keep.go and keepask.go
//	              (Memory, Schedules), unread.go
//	a run         events.go (the journal), state.go, call.go and limit.go (the fold), next.go
//	              (what comes next), runstate.go (the diagram above as a function)
//	working it    dispatch.go (who works what), run.go (a run while a worker has it), draft.go
//	              (the next commit in the making), begin.go, finish.go, cancel.go, park.go and
//	              recover.go (poison, and what earlier processes left), room.go (a full disk),
//	              clock.go (clocks that jump)
//	the model     project.go, history.go and input.go (what it is told), context.go and
//	              compact.go (how long that is, and summaries of it), result.go (long results),
//	              frozen.go and prompt.go; retry.go (failed calls), gate.go (what a provider
//	              bears), refusal.go (keys that are refused)
//	tools         own.go (those of the agent itself), carry.go (calls and their outcomes),
//	              policy.go and policies.go (what may run), canonical.go
//	decisions     ask.go, question.go, decide.go, edit.go, window.go (moves, and all that is
//	              due), remind.go
//	workers       subagent.go (who they are), delegate.go (work goes out), handback.go (and comes
//	              back), family.go (runs below runs)
//	spending      budget.go (limits of a run), spent.go (and of its workers), spend.go (days and
//	              months), cap.go (the cap of a month)
//	what remains  fork.go, forget.go, retain.go, prune.go, restored.go
//	looking on    query.go, doing.go (what is under way), activity.go, meter.go, spans.go
//	records       records.go, put.go, ids.go, owner.go, letter.go (what every mail of ours has),
//	              ours.go
//
// Concurrency: a fixed pool of workers; one worker owns one run while it is
// claimed. Decisions, cancellations and new mail come from other goroutines and
// meet the worker in compare-and-set commits only.
package agent
