//go:build bench

package langgraph

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"pizza/agent"
	"pizza/mailbox"
)

// sideFill makes runs that each wait for an approval, in one account. Arguments: R, data root.
func sideFill(args []string) (figures, error) {
	runs, root := number(args, 0), args[1]
	o, err := openOffice(root, &scripted{steps: 1, send: true}, lookups(nil))
	if err != nil {
		return nil, err
	}
	f := figures{"w": "fill", "kind": "pizza", "R": runs}
	const first = 1000
	began := used()
	if err := errors.Join(o.fill(first), o.await(agent.Action, first, nil)); err != nil {
		return nil, err
	}
	f["first_ms"] = millis(time.Since(began.at)) / first
	if err := errors.Join(o.fill(runs-first), o.await(agent.Action, runs, nil)); err != nil {
		return nil, err
	}
	began.since(f, runs)
	again := time.Now()
	if err := errors.Join(o.fill(first), o.await(agent.Action, runs+first, nil)); err != nil {
		return nil, err
	}
	f["last_ms"] = millis(time.Since(again)) / first
	f["anon_MB"], f["file_MB"] = memory("self", "RssAnon"), float64(diskUse(root))/1e6
	return f, o.close()
}

// fill submits n tasks, by 64 at once.
func (o *office) fill(n int) error {
	var wait sync.WaitGroup
	left := make(chan int, n)
	for i := range n {
		left <- i
	}
	close(left)
	failed := make(chan error, 64)
	for range 64 {
		wait.Go(func() {
			for range left {
				if _, err := o.send("pizza@localhost", "bench", task(1)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wait.Wait()
	close(failed)
	return <-failed
}

// sideWaiting is a process that is started where many runs wait, and one whole run in it: of
// one step, with its approval. Arguments: data root, when it was started (Unix ns).
func sideWaiting(args []string) (figures, error) {
	started := time.Unix(0, int64(number(args, 1)))
	model := &scripted{steps: 1, send: true}
	o, err := openOffice(args[0], model, lookups(nil))
	if err != nil {
		return nil, err
	}
	waiting, err := o.holds(agent.Action)
	if err != nil {
		return nil, err
	}
	f := figures{"w": "waiting", "kind": "pizza", "R": waiting, "proc_to_ready_ms": millis(time.Since(started))}
	o.untilQuiet(f)
	f["anon_MB"], f["rss_MB"] = memory("self", "RssAnon"), memory("self", "VmRSS")
	var took []float64
	for range 20 {
		ms, err := o.oneRun()
		if err != nil {
			return nil, err
		}
		took = append(took, ms)
	}
	slices.Sort(took)
	f["run_ms"], f["anon_after_MB"] = took[len(took)/2], memory("self", "RssAnon")
	return f, o.close()
}

// untilQuiet measures the CPU of ten seconds, again until what a start leaves to be done
// behind it is done (the text index catches up, pages are looked through), ten minutes at
// most.
func (o *office) untilQuiet(f figures) {
	began := time.Now()
	for {
		idle, spent := used(), figures{}
		time.Sleep(10 * time.Second)
		idle.since(spent, 1)
		f["idle_cpu_ms"], f["quiet_after_s"] = spent["cpu_ms"], time.Since(began).Seconds()
		if spent["cpu_ms"].(float64) < 20 || time.Since(began) > 10*time.Minute {
			return
		}
	}
}

// oneRun is the time of a run of one step, from its mail to its result; its approval is found
// by the task and decided as the command line does.
func (o *office) oneRun() (float64, error) {
	inbox, err := o.holds(mailbox.Inbox)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	r, err := o.send("pizza@localhost", "one", task(1))
	if err != nil {
		return 0, err
	}
	if err := o.await(mailbox.Inbox, inbox+1, nil); err != nil { // the approval
		return 0, err
	}
	if err := o.decide(r.Task, "approve"); err != nil {
		return 0, err
	}
	if err := o.await(mailbox.Inbox, inbox+2, nil); err != nil {
		return 0, err
	}
	took := millis(time.Since(began))
	shown, err := o.agent.Show(ctx, account, r.Task)
	if err == nil && shown.State != agent.Done {
		err = fmt.Errorf("the run is %s", shown.State)
	}
	return took, err
}
