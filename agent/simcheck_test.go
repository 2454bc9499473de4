package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pizza/internal/tools"
	"pizza/mailbox"
)

// check looks at what is left when all is done.
func (w *world) check() {
	w.checkEffects()
	w.checkLeft()
	answered, cancelled := map[string]int{}, false
	for key, rec := range w.disk.records {
		if !strings.HasPrefix(key, "run/") {
			continue
		}
		run, err := decodeRun(rec)
		if err != nil {
			w.fault("%v", err)
			continue
		}
		w.checkRun(run)
		if run.child() {
			continue // its inputs are those of the run it works for
		}
		cancelled = cancelled || run.State == Cancelled && run.Task == w.mails[0].task
		for _, in := range run.Inputs {
			answered[in.MessageID]++
		}
	}
	if w.cancels == "accepted" && !cancelled {
		w.fault("the owner was told that the task is cancelled, and it is not")
	}
	for _, m := range w.mails {
		n := answered[m.mid]
		if n != 1 && !(n == 0 && w.plot.cancel) {
			w.fault("the mail %s is input of %d runs", m.mid, n)
		}
		if n == 0 && !w.toldUndone(w.program(subjectOf(m.raw)).name) {
			w.fault("nobody was told that %s was not worked on", m.mid)
		}
	}
}

func subjectOf(raw string) string {
	_, rest, _ := strings.Cut(raw, "Subject: ")
	name, _, _ := strings.Cut(rest, "\r\n")
	return name
}

// toldUndone reports whether the notice of a cancellation names a mail it took along.
func (w *world) toldUndone(subject string) bool {
	return slices.ContainsFunc(w.disk.box(mailbox.Inbox), func(id mailbox.MessageID) bool {
		raw := w.raw(id)
		return strings.Contains(raw, "X-Pizza-Kind: notice\r\n") && strings.Contains(raw, "not worked on") && strings.Contains(raw, subject)
	})
}

func (w *world) raw(id mailbox.MessageID) string { return w.disk.blobs[w.disk.mails[id].blob.ID] }

// checkEffects: nothing happened twice, and a call had one key.
func (w *world) checkEffects() {
	for key, n := range w.ledger {
		if class := simClasses[w.calls[callOf(key)].tool]; n > 1 && class != tools.ReadOnly {
			w.fault("%s, %s, happened %d times", key, class, n)
		}
	}
	for id, keys := range w.keys {
		if len(keys) != 1 {
			w.fault("%s ran under the keys %v", id, keys)
		}
	}
}

// checkLeft: nothing that only a live run has.
func (w *world) checkLeft() {
	for _, box := range []mailbox.MailboxID{Running, Action, Approve, Reject} {
		if list := w.disk.box(box); len(list) > 0 {
			w.fault("mailbox %d holds %v", box, list)
		}
	}
	for d := range w.disk.dues {
		if d.kind != DuePrune {
			w.fault("%s of %s is still due", d.kind, d.key)
		}
	}
	for key, rec := range w.disk.records {
		switch {
		case slices.Contains(rec.Index, indexOpenDecisions):
			w.fault("%s is still open", key)
		case slices.Contains(rec.Index, indexLiveRuns):
			w.fault("%s counts as live", key)
		case strings.HasPrefix(key, "thread/") && (strings.Contains(string(rec.Value), `"active"`) || strings.Contains(string(rec.Value), `"queue"`)):
			w.fault("%s is not free: %s", key, rec.Value)
		}
	}
	for id, m := range w.disk.mails {
		for _, h := range m.holds {
			if strings.HasPrefix(h, "decision/") {
				w.fault("message %d is held by %s", id, h)
			}
		}
	}
}

// checkRun: the journal folds to what the record says, one mail tells the end, and the
// owner was asked what happened only where nobody could know.
func (w *world) checkRun(run Run) {
	st, err := foldBytes(w.disk.streams[runKey(run.ID)])
	if err != nil || st.Finished == nil || st.Finished.State != run.State || st.Finished.Mail != run.Result || st.Seq != run.Seq {
		w.fault("%s: the record says %s, %s, %d; the journal %+v, %d (%v)", run.ID, run.State, run.Result, run.Seq, st.Finished, st.Seq, err)
		return
	}
	want := 1
	if run.child() {
		want = 0
	}
	if n := w.endings(run.ID); n != want {
		w.fault("%d mails tell how %s ended", n, run.ID)
	}
	var asked []string
	var events []Event
	approvals, begun := map[string]int{}, map[string]int{}
	for _, b := range w.disk.streams[runKey(run.ID)] {
		e, err := decodeEvent(b)
		w.saw(e)
		if e.ToolStart != nil {
			begun[e.ToolStart.Call]++ // kills count too
		}
		if e.Asked != nil && e.Asked.Kind == decisionApproval {
			approvals[e.Asked.Call]++
		}
		if events = append(events, e); err == nil && e.Asked != nil && e.Asked.Kind == decisionUnknown {
			asked = append(asked, e.Asked.Call)
			if begun[e.Asked.Call] < maxRepeats && w.needless(run.ID+"/"+e.Asked.Call) {
				w.fault("asked what became of %s, which is known", e.Asked.Call)
			}
		}
	}
	for id, n := range approvals {
		if n > 1 && !(n == 2 && w.calls[id].owner == "edit again") {
			w.fault("asked %d times for %s", n, id)
		}
	}
	recordJournal(w.t, run.ID, events)
	w.checkState(run, st, asked)
}

// needless reports whether a question about a call was not needed.
func (w *world) needless(key string) bool {
	call := w.calls[callOf(key)]
	switch simClasses[call.tool] {
	case tools.OnceOnly:
		return !w.unsure[key]
	case tools.Reconcilable:
		return !w.unsure[key] || !call.blind
	}
	return true
}

// checkState: a run ends cancelled when, and only when, its owner said so.
func (w *world) checkState(run Run, st State, asked []string) {
	stopped := slices.ContainsFunc(asked, func(id string) bool { return w.calls[id].answer == "stop" })
	limit := st.stoppedAt()
	want := Done
	switch {
	case limit != nil && st.Stop.Verb == "expire":
		want = Failed
	case st.Cancel != nil || st.Stop != nil:
		want = Cancelled
	}
	switch {
	case run.State != want:
		w.fault("%s is %s, want %s", run.ID, run.State, want)
	case limit != nil && st.Stop.Verb != w.plot.more, st.Stop != nil && limit == nil && !stopped:
		w.fault("%s was stopped by nobody", run.ID)
	case st.Cancel != nil && !w.stoppedAbove(run) && w.cancels != "accepted" && w.cancels != "done" && !w.cut:
		w.fault("%s was cancelled by nobody", run.ID)
	}
}

// endings counts the mails that tell how a run ended.
func (w *world) endings(run string) (n int) {
	for _, id := range w.disk.box(mailbox.Inbox) {
		raw := w.raw(id)
		if !strings.Contains(raw, "X-Pizza-Run: "+run+"\r\n") || strings.Contains(raw, "Subject: Approved with your changes") {
			continue
		}
		for _, kind := range []string{KindResult, KindFailure, KindNotice} {
			if strings.Contains(raw, "X-Pizza-Kind: "+kind+"\r\n") {
				n++
			}
		}
	}
	return n
}

func (p plot) String() string {
	var names []string
	for _, prog := range p.programs {
		names = append(names, prog.name)
	}
	return cmp.Or(strings.Join(names, "+"), fmt.Sprint(p.seed))
}

// saw notes what a journal holds.
func (w *world) saw(e Event) {
	what := e.kind()
	switch {
	case e.Asked != nil:
		what += " " + e.Asked.Kind + string(e.Asked.Limit)
	case e.Decided != nil:
		what += " " + e.Decided.Verb
	case e.ToolStart != nil && e.ToolStart.Class == string(classWorker):
		what += " worker"
	case e.ToolEnd != nil && e.ToolEnd.Child != nil:
		what += " worker " + string(e.ToolEnd.Status)
	}
	w.seen[what]++
}

// stoppedAbove reports whether an answer ended the run that a worker's run works for.
func (w *world) stoppedAbove(run Run) bool {
	if !run.child() {
		return false
	}
	above, err := foldBytes(w.disk.streams[runKey(parentOf(run.ID))])
	return err == nil && above.Stop != nil
}
