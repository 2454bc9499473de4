//go:build e2e || soak

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// effect is one thing that a task does to the owner's folder once or not at all. A mark
// is added to a file; a mark that is there twice was added twice.
type effect struct {
	mark   string
	file   string // in the granted folder
	again  string // where a move takes the file, if a step of the task does
	reject bool   // the owner refuses it
}

// killTask is a task of the crash test: mails to the agent, and what they do.
type killTask struct {
	n       int
	kind    string
	steps   string
	more    string // a reply to the first mail, sent at once: it waits for the next run
	cancel  string // how the owner cancels it: "mail", "command" or not
	effects []effect
}

// killKinds are the kinds of tasks, by turns. Thinking is short against the server's lives:
// a run that takes three processes in a row with it is put aside, as it should.
var killKinds = []func(n int) killTask{
	func(n int) killTask { // one call after another
		a, b := mark(n, "a", 0), mark(n, "b", 0)
		return killTask{kind: "steps", effects: []effect{a, b}, steps: steps("think 20ms", edit(a), list, "think 20ms", edit(b))}
	},
	func(n int) killTask { // several at once, then the file that one of them wrote is moved
		a, b := mark(n, "a", 0), effect{mark: fmt.Sprintf("e%db.", n), file: fmt.Sprintf("%d-new.txt", n), again: fmt.Sprintf("%d-moved.txt", n)}
		write := fmt.Sprintf(`call write_file {"path":"/local/ledgers/%s","content":"%s\n"}`, b.file, b.mark)
		move := fmt.Sprintf(`call move_file {"path":"/local/ledgers/%s","to":"/local/ledgers/%s"}`, b.file, b.again)
		return killTask{kind: "batch", effects: []effect{a, b}, steps: steps(list, "and "+edit(a), "and "+write, move)}
	},
	func(n int) killTask { // two workers at once
		a, b := mark(n, "a", 0), mark(n, "b", 1)
		return killTask{kind: "workers", effects: []effect{a, b}, steps: steps(work(a), "and "+work(b))}
	},
	func(n int) killTask { // a mail that comes while the first is worked on
		a, b := mark(n, "a", 0), mark(n, "b", 1)
		return killTask{kind: "queue", effects: []effect{a, b}, steps: steps("think 20ms", edit(a)), more: steps(edit(b))}
	},
	func(n int) killTask { // cancelled at any time
		a, b := mark(n, "a", 0), mark(n, "b", 0)
		return killTask{kind: "cancel", effects: []effect{a, b}, cancel: []string{"mail", "command"}[n/2%2],
			steps: steps("think 20ms", edit(a), "think 50ms", edit(b), "think 200ms")}
	},
	func(n int) killTask { // refused, and on it goes
		a, b := mark(n, "a", 0), mark(n, "b", 0)
		a.reject = true
		return killTask{kind: "reject", effects: []effect{a, b}, steps: steps(edit(a), "think 20ms", edit(b))}
	},
}

const list = `call list_folder {"path":"/local/ledgers"}`

func steps(lines ...string) string { return strings.Join(append(lines, "say that is done"), "\n") }

func mark(n int, which string, ledger int) effect {
	return effect{mark: fmt.Sprintf("e%d%s.", n, which), file: ledgerName(n, ledger)}
}

func ledgerName(n, ledger int) string { return fmt.Sprintf("%d-%d.txt", n, ledger) }

func edit(e effect) string {
	return fmt.Sprintf(`call edit_file {"path":"/local/ledgers/%s","old":"END","new":"%s\nEND"}`, e.file, e.mark)
}

func work(e effect) string {
	return fmt.Sprintf(`call task {"worker":"clerk","prompt":%q}`, steps("think 20ms", edit(e)))
}

// newKillTasks makes the tasks and the ledgers that they write in.
func newKillTasks(dir string, count int) ([]killTask, error) {
	var tasks []killTask
	for n := range count {
		task := killKinds[n%len(killKinds)](n)
		task.n = n
		tasks = append(tasks, task)
		for ledger := range 2 {
			if err := os.WriteFile(filepath.Join(dir, ledgerName(n, ledger)), []byte("END\n"), 0o600); err != nil {
				return nil, err
			}
		}
	}
	return tasks, nil
}

func (k *killTask) subject() string { return fmt.Sprintf("%s task %d", k.kind, k.n) }

// effectOf is the effect that a call with these arguments has; nil for a move.
func (k *killTask) effectOf(args string) *effect {
	for i := range k.effects {
		if strings.Contains(args, k.effects[i].mark) {
			return &k.effects[i]
		}
	}
	return nil
}

// times is how often an effect happened.
func (e *effect) times(dir string) (n int, err error) {
	for _, name := range []string{e.file, e.again} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case name == "" || os.IsNotExist(err):
		case err != nil:
			return n, err
		default:
			n += strings.Count(string(content), e.mark)
		}
	}
	return n, nil
}

// life is how long the server lives: mostly too short to get far, at times long enough
// for what was there before to be caught up with.
func life(random *rand.Rand) time.Duration {
	if random.IntN(12) == 0 {
		return time.Duration(500+random.IntN(2500)) * time.Millisecond
	}
	return time.Duration(random.IntN(350)) * time.Millisecond
}
