//go:build e2e || soak

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
)

// shownTask is what `pizza show` tells of a task.
type shownTask struct {
	State string
	Queue int
	Runs  []shownRun
	Open  []openDecision
}

type shownRun struct {
	ID, State, Result, Call string
	Lines                   []struct {
		At   time.Time
		Text string
	}
}

// check holds the promises once all has ended.
func (r *crashRig) check() {
	c := newControl(r.s)
	for _, box := range []string{"Action", "Running"} {
		if left, err := c.list(box); err != nil || len(left) > 0 {
			r.t.Errorf("%s holds %d messages, %v: %v", box, len(left), err, left)
		}
	}
	ids, ends, notices := r.endings()
	asked, calls, aside := 0, 0, 0
	for i := range r.tasks {
		k := &r.tasks[i]
		if len(ids[k.subject()]) != 1 {
			r.t.Errorf("%s became %d tasks: %v", k.subject(), len(ids[k.subject()]), ids[k.subject()])
			continue
		}
		task := slices.Collect(maps.Keys(ids[k.subject()]))[0]
		var shown shownTask
		if err := c.get("show/"+task, &shown); err != nil {
			r.t.Errorf("show %s: %v", task, err)
			continue
		}
		r.checkRuns(k, shown, ends)
		put := r.putAside(shown)
		aside += put
		r.checkEffects(k, put > 0)
		if n := notices[task]; n > 0 && k.cancel == "" {
			r.t.Errorf("%s has %d notices", k.subject(), n)
		}
		for _, run := range shown.Runs {
			a, m := r.checkJournal(k, run)
			asked, calls = asked+a, calls+m
		}
	}
	if told := r.toldAside(); aside != told || aside > 2+len(r.tasks)/50 {
		r.t.Errorf("%d runs failed, of %d the log says that they were put aside", aside, told)
	}
	r.checkUsage(c, calls)
	r.checkSent()
	ways := map[string]int{}
	for _, how := range r.told {
		if strings.HasPrefix(how, "move of ") {
			how = "approval by move"
		}
		ways[how]++
	}
	r.t.Logf("%d kills, %d tasks, %d mails, %d model calls answered, %d unknown outcomes asked, %d runs put aside, answers: %v",
		len(r.killed), len(r.tasks), len(r.letters), calls, asked, aside, ways)
}

// putAside counts the runs with which three processes in a row went down: chance does
// that to a few of so many. They end as failed and say so; what they did counts.
func (r *crashRig) putAside(shown shownTask) (n int) {
	for _, run := range shown.Runs {
		if run.State == "failed" {
			n++
		}
	}
	return n
}

// toldAside counts them in the log.
func (r *crashRig) toldAside() (n int) {
	logs, err := filepath.Glob(filepath.Join(r.s.root, "logs", "*"))
	if err != nil || len(logs) == 0 {
		r.t.Error("no logs", err)
	}
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil {
			r.t.Error(err)
		}
		n += bytes.Count(b, []byte(`"run parked"`))
	}
	return n
}

// checkEffects holds that what was to be done was done once. less: a run of the task was
// put aside, so it may lack something.
func (r *crashRig) checkEffects(k *killTask, less bool) {
	for i := range k.effects {
		e := &k.effects[i]
		n, err := e.times(r.ledgers)
		if err != nil {
			r.t.Error(err)
		}
		switch {
		case e.reject && n != 0:
			r.t.Errorf("%s: %s was refused and happened %d times", k.subject(), e.mark, n)
		case n > 1:
			r.t.Errorf("%s: %s happened %d times", k.subject(), e.mark, n)
		case n == 0 && !e.reject && k.cancel == "" && !less:
			r.t.Errorf("%s: %s never happened", k.subject(), e.mark)
		}
		if _, err := os.Stat(filepath.Join(r.ledgers, e.file)); e.again != "" && err == nil && !less {
			r.t.Errorf("%s: %s was not moved", k.subject(), e.file)
		}
	}
}

// checkRuns holds that every run has ended as it should, and told so with one mail.
func (r *crashRig) checkRuns(k *killTask, shown shownTask, ends map[string][]string) {
	tops := 0
	for _, run := range shown.Runs {
		if run.State != "done" && run.State != "failed" && (k.cancel == "" || run.State != "cancelled") {
			r.t.Errorf("%s: run %s ended as %s", k.subject(), run.ID, run.State)
		}
		want := 0
		if run.Call == "" {
			tops++
			want = 1
		}
		if got := ends[run.ID]; len(got) != want || want == 1 && strings.Trim(got[0], "<>") != strings.Trim(run.Result, "<>") {
			r.t.Errorf("%s: run %s ended with %v, want %d mails: %s", k.subject(), run.ID, got, want, run.Result)
		}
	}
	want := map[bool]int{true: 2, false: 1}[k.more != ""]
	if k.cancel == "mail" && tops == 2 && shown.Runs[0].State != "cancelled" {
		want = 2 // it had ended meanwhile: the word is the thread's next message
	}
	if tops != want || shown.Queue > 0 || len(shown.Open) > 0 {
		r.t.Errorf("%s: %d runs, want %d, %d mails wait, open: %v", k.subject(), tops, want, shown.Queue, shown.Open)
	}
}

// checkJournal holds that the owner was asked about an outcome only when a kill came
// after the call began and before it was known, and that nothing began again but at the
// owner's word. It counts the questions and the answered model calls.
func (r *crashRig) checkJournal(k *killTask, run shownRun) (asked, calls int) {
	begun, again := map[string]time.Time{}, map[string]bool{}
	for _, line := range run.Lines {
		tool, what, _ := strings.Cut(line.Text, " begins (attempt ")
		if what != "" && writes(tool) {
			if what != "1)" && !again[tool] {
				r.t.Errorf("%s: %s: %q without the owner's word", k.subject(), run.ID, line.Text)
			}
			begun[tool], again[tool] = line.At, false
			continue
		}
		tool, what, _ = strings.Cut(line.Text, ": ")
		switch {
		case tool == "model" || line.Text == "model:":
			calls++
		case strings.HasPrefix(what, "repeat by "):
			again[tool] = true
		case strings.HasPrefix(what, "ok: "), strings.HasPrefix(what, "error: "):
			delete(begun, tool)
		}
		about, isQuestion := strings.CutPrefix(line.Text, "asked about ")
		if tool, _, unknown := strings.Cut(about, " (unknown)"); isQuestion && unknown {
			asked++
			if at, ok := begun[tool]; !ok || !r.killedBetween(at, line.At) {
				r.t.Errorf("%s: %s: asked about %s without need: %+v", k.subject(), run.ID, tool, run.Lines)
			}
		}
	}
	return asked, calls
}

func writes(tool string) bool {
	return tool == "edit_file" || tool == "write_file" || tool == "move_file"
}

func (r *crashRig) killedBetween(from, to time.Time) bool {
	return slices.ContainsFunc(r.killed, func(t time.Time) bool { return !t.Before(from) && !t.After(to) })
}

// checkUsage compares what is booked with what the journals hold.
func (r *crashRig) checkUsage(c *control, calls int) {
	booked := 0
	for month := range map[string]bool{r.began.Format("2006-01"): true, time.Now().Format("2006-01"): true} {
		var u struct {
			Total          struct{ Calls int }
			ReservedTokens int `json:"reserved_tokens"`
		}
		if err := c.get("usage/"+month, &u); err != nil {
			r.t.Error(err)
		}
		booked += u.Total.Calls
		if u.ReservedTokens != 0 {
			r.t.Errorf("%s: %d tokens are booked for calls that ended", month, u.ReservedTokens)
		}
	}
	if booked != calls {
		r.t.Errorf("%d model calls are booked, the journals hold %d", booked, calls)
	}
}

// endings reads INBOX: the ids of the tasks by subject, the Message-IDs of the mails that
// say how a run ended, and how many other notices each task has.
func (r *crashRig) endings() (ids map[string]map[string]bool, ends map[string][]string, notices map[string]int) {
	ids, ends, notices = map[string]map[string]bool{}, map[string][]string{}, map[string]int{}
	for _, raw := range r.fetchAll("INBOX") {
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			r.t.Error(err)
			continue
		}
		subject := m.Header.Get("Subject")
		subject = strings.TrimPrefix(subject, "Re: ")
		task, run, kind := m.Header.Get("X-Pizza-Task"), m.Header.Get("X-Pizza-Run"), m.Header.Get("X-Pizza-Kind")
		cancelled := kind == "notice" && bytes.Contains(raw, []byte("This task was cancelled by"))
		switch {
		case kind == "result" || kind == "failure" || cancelled:
			ends[run] = append(ends[run], m.Header.Get("Message-Id"))
			if ids[subject] == nil {
				ids[subject] = map[string]bool{}
			}
			ids[subject][task] = true
		case kind == "notice":
			notices[task]++
		}
		if kind == "failure" && !bytes.Contains(raw, []byte("The server went down three times")) {
			r.t.Errorf("a failure mail:\n%s", raw)
		}
	}
	return ids, ends, notices
}

// checkSent holds that each mail of the owner was taken once.
func (r *crashRig) checkSent() {
	copies := map[string]int{}
	for _, raw := range r.fetchAll("Sent") {
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			r.t.Error(err)
			continue
		}
		copies[m.Header.Get("Message-Id")]++
	}
	for _, l := range r.letters {
		if copies[l.id] != 1 {
			r.t.Errorf("%s is in Sent %d times", l.id, copies[l.id])
		}
	}
	for id, n := range copies {
		if n != 1 {
			r.t.Errorf("%s is in Sent %d times", id, n)
		}
	}
}

// fetchAll reads all messages of a mailbox.
func (r *crashRig) fetchAll(box string) (all [][]byte) {
	c, err := dialIMAP(r.s.endpoints.IMAP, r.password)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	selected, err := c.Select(box, &imap.SelectOptions{ReadOnly: true}).Wait()
	if err != nil {
		r.t.Fatal(err)
	}
	if selected.NumMessages == 0 {
		return nil
	}
	section := &imap.FetchItemBodySection{Peek: true}
	got, err := c.Fetch(imap.SeqSet{imap.SeqRange{Start: 1, Stop: 0}}, &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
	if err != nil {
		r.t.Fatal(fmt.Errorf("fetch of %s: %w", box, err))
	}
	for _, m := range got {
		if body := m.FindBodySection(section); len(body) > 0 {
			all = append(all, body)
		}
	}
	return all
}
