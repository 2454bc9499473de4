//go:build bench

package langgraph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pizza/agent"
	"pizza/mailbox"
)

var ctx = context.Background()

// number reads the i-th argument.
func number(args []string, i int) int {
	n, err := strconv.Atoi(args[i])
	if err != nil {
		panic(err) // the driver of this test wrote it
	}
	return n
}

// warm runs three steps, so that the process is warm.
func (o *office) warm() error {
	if _, err := o.send("pizza@localhost", "warm", task(3)); err != nil {
		return err
	}
	return o.await(mailbox.Inbox, 1, nil)
}

// stamps are the times of the tool calls of a run.
type stamps struct {
	mu   sync.Mutex
	list []time.Time
}

func (s *stamps) hook(string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, time.Now())
}

// means are the mean times between the first five and the last five calls, in ms.
func (s *stamps) means() (first, last float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list) - 1
	k := min(5, n)
	if k < 1 {
		return 0, 0
	}
	return millis(s.list[k].Sub(s.list[0])) / float64(k), millis(s.list[n].Sub(s.list[n-k])) / float64(k)
}

// sideW1: one run alone. Arguments: N, data root.
func sideW1(args []string) (figures, error) {
	n, root := number(args, 0), args[1]
	model := &scripted{steps: 3}
	times := &stamps{}
	o, err := openOffice(root, model, lookups(times.hook))
	if err != nil {
		return nil, err
	}
	if err := o.warm(); err != nil {
		return nil, err
	}
	model.steps, times.list = n, nil
	model.calls.Store(0)
	f := figures{"w": "W1", "kind": "pizza", "N": n}
	size, commits, began := diskUse(root), o.store.Commits(), used()
	if _, err := o.send("pizza@localhost", "bench", task(n)); err != nil {
		return nil, err
	}
	if err := o.await(mailbox.Inbox, 2, nil); err != nil {
		return nil, err
	}
	began.since(f, n)
	f["commits"], f["file_MB"] = o.store.Commits()-commits, float64(diskUse(root)-size)/1e6
	f["payload_MB"] = float64(2*textSize+n*(textSize+resultSize)) / 1e6
	f["first5_ms"], f["last5_ms"] = times.means()
	f["model_calls"], f["rss_peak_MB"] = model.calls.Load(), memory("self", "VmHWM")
	f["anon_MB"] = memory("self", "RssAnon")
	return f, errors.Join(o.done(2), o.close())
}

// sideLoop is W1 again and again, for a profile. Arguments: N, data root, times.
func sideLoop(args []string) (figures, error) {
	n, times := number(args, 0), number(args, 2)
	o, err := openOffice(args[1], &scripted{steps: n}, lookups(nil))
	if err != nil {
		return nil, err
	}
	f, began := figures{"w": "loop", "N": n}, used()
	for i := range times {
		if _, err := o.send("pizza@localhost", "bench", task(n)); err != nil {
			return nil, err
		}
		if err := o.await(mailbox.Inbox, i+1, nil); err != nil {
			return nil, err
		}
	}
	began.since(f, n*times)
	return f, errors.Join(o.done(times), o.close())
}

// sideW2Prep runs until the approval waits, and ends. Arguments: N, data root.
func sideW2Prep(args []string) (figures, error) {
	o, err := openOffice(args[1], &scripted{steps: number(args, 0), send: true}, lookups(nil))
	if err != nil {
		return nil, err
	}
	if _, err := o.send("pizza@localhost", "bench", task(number(args, 0))); err != nil {
		return nil, err
	}
	return figures{"w": "W2prep"}, errors.Join(o.await(agent.Action, 1, nil), o.close())
}

// sideW2 is the process that resumes: it finds the approval, looks at the task, approves
// it. Arguments: N, data root, when it was started (Unix ns).
func sideW2(args []string) (figures, error) {
	n := number(args, 0)
	started := time.Unix(0, int64(number(args, 2)))
	var tool atomic.Int64
	model := &scripted{steps: n, send: true}
	o, err := openOffice(args[1], model, lookups(func(string, int) { tool.CompareAndSwap(0, time.Now().UnixNano()) }))
	if err != nil {
		return nil, err
	}
	f := figures{"w": "W2", "kind": "pizza", "N": n}
	ready := used()
	f["proc_to_ready_ms"] = millis(ready.at.Sub(started))
	open, err := o.open()
	if err != nil || len(open) != 1 {
		return nil, fmt.Errorf("%d decisions wait: %v", len(open), err)
	}
	id := open[0].header.Get("X-Pizza-Approval")
	shown, err := o.agent.Show(ctx, account, id)
	if err != nil || shown.State != agent.Waiting {
		return nil, fmt.Errorf("the task is %s: %v", shown.State, err)
	}
	f["load_state_ms"] = millis(time.Since(ready.at))
	inbox, err := o.holds(mailbox.Inbox)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := o.decide(id, "approve"); err != nil {
		return nil, err
	}
	if err := o.await(mailbox.Inbox, inbox+1, nil); err != nil {
		return nil, err
	}
	f["resume_to_done_ms"] = millis(time.Since(began))
	f["resume_to_tool_ms"] = millis(time.Unix(0, tool.Load()).Sub(began))
	all := figures{}
	ready.since(all, 1)
	f["cpu_ms"], f["model_calls"], f["rss_peak_MB"] = all["cpu_ms"], model.calls.Load(), memory("self", "VmHWM")
	return f, errors.Join(o.done(1), o.close())
}

// sideW3: many runs at the same moment. Arguments: R, N, data root.
func sideW3(args []string) (figures, error) {
	runs, n, root := number(args, 0), number(args, 1), args[2]
	var ran atomic.Int64
	o, err := openOffice(root, &scripted{steps: n}, lookups(func(string, int) { ran.Add(1) }))
	if err != nil {
		return nil, err
	}
	if err := o.warm(); err != nil {
		return nil, err
	}
	ran.Store(0)
	f := figures{"w": "W3", "kind": "pizza", "R": runs, "N": n, "rss_before_MB": memory("self", "VmRSS")}
	size, commits, top, began := diskUse(root), o.store.Commits(), watchPeak(), used()
	failed := make(chan error, runs)
	for range runs {
		go func() {
			_, err := o.send("pizza@localhost", "bench", task(n))
			failed <- err
		}()
	}
	var took []float64
	err = o.await(mailbox.Inbox, 1+runs, func(have int) {
		for now := time.Now(); len(took) < have-1; {
			took = append(took, millis(now.Sub(began.at)))
		}
	})
	for range runs {
		err = errors.Join(err, <-failed)
	}
	if err != nil {
		return nil, err
	}
	began.since(f, runs*n)
	f["steps_per_s"] = float64(runs*n) / (f["wall_ms"].(float64) / 1000)
	f["anon_peak_MB"] = top.stop()
	f["p50_ms"], f["p99_ms"] = took[len(took)/2], took[len(took)*99/100]
	f["rss_after_MB"], f["rss_peak_MB"] = memory("self", "VmRSS"), memory("self", "VmHWM")
	f["commits"], f["file_MB"] = o.store.Commits()-commits, float64(diskUse(root)-size)/1e6
	if ran.Load() != int64(runs*n) {
		err = fmt.Errorf("%d tool calls ran, not %d", ran.Load(), runs*n)
	}
	return f, errors.Join(err, o.done(1+runs), o.close())
}

// sideW5 starts or resumes one run whose calls leave a line in a file, and answers what it
// is asked about outcomes nobody knows by what is in the file. It says on standard output
// that it is up, as the baseline's child does. Arguments: N, data root, file.
func sideW5(args []string) (figures, error) {
	n, root, file := number(args, 0), args[1], args[2]
	effects, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	o, err := openOffice(root, &scripted{steps: n}, lookups(func(_ string, k int) {
		_, err := fmt.Fprintf(effects, "%d\n", k)
		if err = errors.Join(err, effects.Sync()); err != nil {
			panic(err)
		}
		time.Sleep(20 * time.Millisecond)
	}))
	if err != nil {
		return nil, err
	}
	begun, err := o.holds(agent.Sent)
	if err != nil {
		return nil, err
	}
	fmt.Println(map[bool]string{true: "Rresume", false: "Rfresh"}[begun > 0])
	if begun == 0 {
		if _, err := o.send("pizza@localhost", "bench", task(n)); err != nil {
			return nil, err
		}
	}
	asked, err := o.answerUnknown(file)
	if err != nil {
		return nil, err
	}
	fmt.Println("DONE")
	return figures{"asked": asked}, errors.Join(o.done(1), o.close())
}

// answerUnknown answers the questions about unknown outcomes until the result is there.
func (o *office) answerUnknown(file string) (asked int, err error) {
	wake, stop := o.store.Watch(account, 0)
	defer stop()
	for {
		results, err := o.letters(mailbox.Inbox, agent.KindResult)
		if err != nil || len(results) > 0 {
			return asked, err
		}
		open, err := o.letters(agent.Action, agent.KindQuestion)
		if err != nil {
			return asked, err
		}
		for _, l := range open {
			id := l.header.Get("X-Pizza-Approval")
			fmt.Println("ASKED")
			asked++
			verb, err := whatHappened(o, id, file)
			if err == nil {
				err = o.decide(id, verb)
			}
			if err != nil {
				return asked, err
			}
		}
		<-wake
	}
}

// whatHappened looks into the file for the step that a question is about.
func whatHappened(o *office, id, file string) (string, error) {
	shown, err := o.agent.Show(ctx, account, id)
	if err != nil || shown.Decision == nil {
		return "", fmt.Errorf("question %s: %v", id, err)
	}
	k, ok := stepOfArgs(shown.Decision.Args)
	if !ok {
		return "", fmt.Errorf("question %s is about no step: %s", id, shown.Decision.Args)
	}
	done, err := effectsIn(file)
	if slices.Contains(done, k) {
		return "happened", err
	}
	return "repeat", err
}

// stepOfArgs is the step of a call's arguments.
func stepOfArgs(b []byte) (int, bool) {
	var args struct {
		Step *int `json:"step"`
	}
	if err := json.Unmarshal(b, &args); err != nil || args.Step == nil {
		return 0, false
	}
	return *args.Step, true
}

// effectsIn lists the steps in a file of effects, in order.
func effectsIn(file string) ([]int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []int
	for line := range strings.FieldsSeq(string(b)) {
		k, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}
