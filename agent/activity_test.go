package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pizza/internal/otel"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// watched collects what a watch tells until a run of the state is told.
func watched(t *testing.T, w *Watch, state RunState) (list []Activity) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		some, err := w.Next(ctx)
		list = append(list, some...)
		if err != nil {
			t.Fatalf("waited for %s in vain: %v, %+v", state, err, list)
		}
		if slices.ContainsFunc(some, func(a Activity) bool { return a.State == state }) {
			return list
		}
	}
}

func kindsOf(list []Activity) (kinds []string) {
	for _, a := range list {
		if a.Kind != kindState {
			kinds = append(kinds, a.Kind)
		}
	}
	return kinds
}

// Every line of a journal is told once, in order, to who watches one task from its
// beginning and to who watches the account; decisions are named, and states told.
func TestWatch(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	everything, err := o.a.Watch(t.Context(), o.me.Account, "")
	if err != nil {
		t.Fatal(err)
	}
	defer everything.Close()
	r := o.send("call write_file {\"path\":\"/local/docs/a.txt\",\"content\":\"a\"}\nsay done", "Subject: work")
	first := watched(t, everything, Waiting)
	one, err := o.a.Watch(t.Context(), o.me.Account, r.Task)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	again := watched(t, one, Waiting)
	want := []string{"started", "inbound", "model_intent", "model_reply", "policy", "asked"}
	if !slices.Equal(kindsOf(first), want) || !slices.Equal(kindsOf(again), want) {
		t.Errorf("told %v and %v, want %v", kindsOf(first), kindsOf(again), want)
	}
	id := o.waiting(1)[0].ID
	if last := first[len(first)-1]; last.Kind != kindState || last.For != "approval" || last.Run != r.Task+".1" {
		t.Errorf("%+v", last)
	}
	if asked := again[5]; asked.Decision != id || !strings.Contains(asked.Text, "write_file") {
		t.Errorf("%+v", asked)
	}
	o.decide(id, "approve", "")
	for name, w := range map[string]*Watch{"account": everything, "task": one} {
		rest := watched(t, w, Done)
		want := []string{"decided", "tool_intent", "tool_result", "model_intent", "model_reply", "finished"}
		if got := kindsOf(rest); !slices.Equal(got, want) || rest[0].Decision != id {
			t.Errorf("%s: told %v, want %v", name, got, want)
		}
		for i, a := range slices.DeleteFunc(rest, func(a Activity) bool { return a.Seq == 0 }) {
			if a.Seq != uint64(7+i) {
				t.Errorf("%s: line %d is of %d", name, i, a.Seq)
			}
		}
	}
	o.ended(1)
	if _, err := o.a.Watch(t.Context(), o.me.Account, "nothing"); !isKind(err, mailbox.NotFound) {
		t.Errorf("nothing: %v", err)
	}
	everything.Close()
	one.Close()
	if n := o.a.watches.n.Load(); n != 0 {
		t.Errorf("%d watch", n)
	}
}

// A cancellation of a waiting task, and the next run of a thread, are told too.
func TestWatchOfATaskThatIsCancelled(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	r := o.send("call write_file {\"path\":\"/local/docs/a.txt\",\"content\":\"a\"}", "Message-ID: <q@test>")
	o.waiting(1)
	w, err := o.a.Watch(t.Context(), o.me.Account, r.Task)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	watched(t, w, Waiting)
	status := o.ofKind(Running, KindStatus)[0]
	o.mustAct(mailbox.MoveEntries{From: Running, To: Trash, UIDs: o.uid(Running, status.id)})
	if got := kindsOf(watched(t, w, Cancelled)); !slices.Contains(got, "cancel_requested") {
		t.Errorf("told %v", got)
	}
	o.clock.add(time.Second)
	o.send("say more", "In-Reply-To: <q@test>")
	if list := watched(t, w, Done); list[0].Run != r.Task+".2" {
		t.Errorf("told %+v", list)
	}
}

// What runs do is counted, without names of people or mails, and traced: one trace a run,
// also when it waits and goes on in another process.
func TestFiguresAndSpans(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var spans []otel.Span
	m := providertest.Script(
		providertest.Calls(providertest.Call("w", "write_file", `{"path":"/local/docs/a.txt","content":"secret text"}`), providertest.Call("n", "made-up secret", `{}`)),
		providertest.Fail(providers.Overloaded, "secret words"), providertest.Say("secret answer"))
	o := newOffice(t, m, func(opt *Options) {
		opt.Span = func(s otel.Span) { mu.Lock(); defer mu.Unlock(); spans = append(spans, s) }
	})
	r := o.send("secret wish", "Subject: secret subject")
	id := o.waiting(1)[0].ID
	o.until("the count", func() bool {
		o.a.meter.counting.Lock()
		o.a.meter.stored = nil
		o.a.meter.counting.Unlock()
		return figure(o.a, "pizza_decisions_open") == 1 && figure(o.a, "pizza_runs", "waiting") == 1 && figure(o.a, "pizza_runs", "due") == 0
	})
	figures := o.a
	o.reopen(t)
	o.decide(id, "approve", "")
	o.until("the pause", func() bool { run := o.runs(o.me.Account)[0]; return run.State == Waiting && run.For == "timer" })
	o.clock.add(2 * time.Minute)
	o.commit(mailbox.PutDue{Due: mailbox.Due{Kind: DueRun, Key: r.Task + ".1", At: o.clock.Now()}})
	o.ended(1)
	o.until("the worker to be free, and its spans", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return figure(o.a, "pizza_runs_working") == 0 && len(spans) >= 5
	})
	if n := figure(figures, "pizza_model_calls_total", "script", "test", "ok"); n != 1 {
		t.Errorf("before: %v calls", n)
	}
	for _, want := range []struct {
		n      float64
		name   string
		labels []string
	}{
		{1, "pizza_model_calls_total", []string{"script", "test", "overloaded"}}, {1, "pizza_model_calls_total", []string{"script", "test", "ok"}},
		{1, "pizza_tool_calls_total", []string{"write_file", "ok"}}, {1, "pizza_runs_ended_total", []string{"done"}}, {0, "pizza_runs_working", nil},
	} {
		if got := figure(o.a, want.name, want.labels...); got != want.n {
			t.Errorf("%s %v is %v, want %v", want.name, want.labels, got, want.n)
		}
	}
	for _, f := range o.a.Figures(t.Context()) {
		for _, l := range f.Labels {
			if strings.Contains(l[1], "secret") || strings.Contains(l[1], "me") && l[1] != "reasoning" {
				t.Errorf("%s tells %q", f.Name, l)
			}
		}
		if n := len(f.Buckets); n > 0 && f.Name == "pizza_step_seconds" && f.Buckets[n-1].Count != 3 {
			t.Errorf("%d steps, want 3: two calls of the model and one of a tool in this process", f.Buckets[n-1].Count)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	var names []string
	ids := map[[8]byte]bool{}
	for _, s := range spans {
		names = append(names, s.Name+s.Error)
		ids[s.ID] = true
		if s.Trace != spans[0].Trace || s.End.Before(s.Start) || s.Name != "invoke_agent pizza" && s.Parent != otel.SpanID("a1", r.Task+".1", "") {
			t.Errorf("%+v", s)
		}
	}
	want := []string{"chat test", "chat test", "chat testoverloaded", "execute_tool write_file", "invoke_agent pizza"}
	slices.Sort(names)
	if !slices.Equal(names, want) || len(ids) != len(want) {
		t.Errorf("spans %q with %d ids, want %q", names, len(ids), want)
	}
	if text := strings.ToLower(strings.Join(names, " ")); strings.Contains(text, "secret") {
		t.Error(text)
	}
}

// figure is the value of a figure with these label values, in order.
func figure(a *Agent, name string, labels ...string) float64 {
	for _, f := range a.Figures(context.Background()) {
		var values []string
		for _, l := range f.Labels {
			values = append(values, l[1])
		}
		if f.Name == name && slices.Equal(values, labels) {
			return f.Value
		}
	}
	return 0
}
