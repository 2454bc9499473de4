package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pizza/internal/mail"
	"pizza/mailbox"
	"pizza/providers"
)

// childID names the run of a worker: a function of the run that gave it work and of the
// call by which it did, the n-th of that run.
func childID(run string, n int) string { return run + "." + strconv.Itoa(n) }

// parentOf is the run that gave a worker's run its work, "" for a run that mail began.
func parentOf(run string) string {
	if i := strings.LastIndexByte(run, '.'); i > len(taskOf(run)) {
		return run[:i]
	}
	return ""
}

// topOf is the run that mail began, of a run at any depth.
func topOf(run string) string {
	for up := parentOf(run); up != ""; up = parentOf(run) {
		run = up
	}
	return run
}

// isBelow reports whether run works for above, at any depth.
func isBelow(run, above string) bool { return strings.HasPrefix(run, above+".") }

// child reports whether the run is a worker's.
func (r *Run) child() bool { return parentOf(r.ID) != "" }

// worker is the name of the worker whose run it is, "" for a run that mail began.
func (r *Run) worker() string {
	if len(r.Path) == 0 {
		return ""
	}
	return r.Path[len(r.Path)-1]
}

// pathText names the worker that asks the owner for something, "" for a run that mail began.
func (r *Run) pathText() string {
	if !r.child() {
		return ""
	}
	return fmt.Sprintf("Worker %s of task %s asks this (%s).", r.worker(), r.Task, r.path())
}

// path is the way from the task to the worker.
func (r *Run) path() string { return strings.Join(append([]string{r.Task}, r.Path...), " > ") }

// inTree orders runs so that each is followed by those of its workers.
func inTree(x, y Run) int {
	a, b := strings.Split(x.ID, "."), strings.Split(y.ID, ".")
	return slices.CompareFunc(a, b, func(s, t string) int {
		n, errN := strconv.Atoi(s)
		m, errM := strconv.Atoi(t)
		if errN != nil || errM != nil {
			return strings.Compare(s, t)
		}
		return cmp.Compare(n, m)
	})
}

// tops are the runs that mail began.
func tops(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.child() })
}

// Names are the workers from the task down to whose run it is, "" for the task's own run.
func (r *Run) Names() string { return strings.Join(r.Path, " > ") }

// workerLines tells of live workers in a status message.
func (a *Agent) workerLines(account mailbox.AccountID, live []liveRun) []mail.StatusWorker {
	var list []mail.StatusWorker
	for _, l := range live {
		list = append(list, mail.StatusWorker{
			Path: l.Names(), State: string(a.stateNow(account, l.Run)), For: l.For, Steps: l.Steps, Last: l.Last,
		})
		if l.State != Queued {
			list[len(list)-1].Doing = a.doingLine(l.Doing)
		}
	}
	return list
}

// showFamily makes the ops that replace the status message of the task of run, which is
// changed in place when it is the one that has the message. live are its workers.
func (a *Agent) showFamily(ctx context.Context, o owner, run *Run, live []liveRun) ([]mailbox.Op, error) {
	top, version := run, uint64(0)
	if run.child() {
		rec, err := a.store.Record(ctx, o.Account, runKey(topOf(run.ID)))
		if err != nil {
			return nil, err
		}
		r, err := decodeRun(rec)
		if err != nil || r.State.Ended() {
			return nil, nil // whose message is gone, or about to be
		}
		top, version = &r, rec.Version
	}
	th, _, err := a.thread(ctx, o.Account, run.Task)
	if err != nil {
		return nil, err
	}
	ops, err := a.showStatus(ctx, o, th, top, live)
	if err == nil && top != run {
		ops = append(ops, runPut(*top, version))
	}
	return ops, err
}

// workerStatus tells in the task's status message how a worker stands, when that is
// another state than it shows, or was told statusEvery ago.
func (d *draft) workerStatus(ctx context.Context) error {
	a := d.s.a
	top, err := a.runRecord(ctx, d.s.account, topOf(d.run.ID))
	if err != nil {
		return err
	}
	age := a.now().Sub(top.ShownAt)
	told := d.told()
	same := d.run.Shown == d.run.State && (d.run.State != Waiting || d.run.Tells == told.Doing.What)
	if same && age < statusEvery || d.run.State == Working && age < a.opt.slow {
		return nil
	}
	live, err := a.liveWorkers(ctx, d.s.account, d.run.Task)
	if err != nil {
		return err
	}
	for i := range live {
		if live[i].ID == d.run.ID {
			live[i].Run = told
		}
	}
	ops, err := a.showFamily(ctx, d.s.o, &d.run, live)
	d.ops = append(d.ops, ops...)
	d.run.Shown, d.run.ShownAt, d.run.ShownSeq, d.run.Tells = d.run.State, a.now(), d.st.Seq, told.Doing.What
	return err
}

// told is the run's record with what it tells of the journal.
func (d *draft) told() Run {
	r := d.run
	r.Steps, r.Last, r.Seq = d.st.ModelCalls, lastDone(&d.st), d.st.Seq
	r.Doing = d.s.a.doing(&d.st)
	if !d.until.IsZero() {
		r.Doing.Until = d.until
	}
	return r
}

// doingLine is Doing for a mail, in the zone of the server.
func (a *Agent) doingLine(d Doing) mail.Doing {
	return mail.Doing{What: d.What, Since: a.local(d.Since), Until: a.local(d.Until)}
}

// runRecord reads the record of a run.
func (a *Agent) runRecord(ctx context.Context, account mailbox.AccountID, run string) (Run, error) {
	rec, err := a.store.Record(ctx, account, runKey(run))
	if err != nil {
		return Run{}, err
	}
	return decodeRun(rec)
}

// callName names a call in a journal's words: of task, whom it gives the work.
func callName(c providers.ToolCall) string {
	var args taskArgs
	if c.Name == taskName && json.Unmarshal(c.Args, &args) == nil {
		return "work for " + clip(oneLine(args.Worker), 64)
	}
	return c.Name
}
