package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"pizza/mailbox"
)

// Figure is one number about all runs of this process, for a monitoring system. Neither
// names nor labels hold anything of an account or of a mail.
type Figure struct {
	Name    string
	Help    string      // one sentence
	Counter bool        // it only grows; else it is what is so now
	Labels  [][2]string // name and value
	Value   float64
	// Buckets make it a histogram of seconds, of which Value is the sum: how many took at
	// most so long. The last one, without a bound (0), counts all.
	Buckets []Bucket
}

// Bucket counts what took at most UpTo seconds.
type Bucket struct {
	UpTo  float64
	Count uint64
}

// bounds of the histograms, in seconds.
var bounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// meter counts what runs do. The zero value counts.
type meter struct {
	mu     sync.Mutex // guards what follows
	counts map[meterKey]float64
	times  map[string]*timing

	counting sync.Mutex // one counts the store at a time, the others wait for it; guards what follows
	stored   []Figure
	at       time.Time
}

// meterKey is a row of meterRows and the values of its labels.
type meterKey struct {
	name   string
	labels [3]string
}

type timing struct {
	counts []uint64 // by bounds, and one for all
	sum    float64
}

// meterRows are the counters there are.
var meterRows = []struct {
	name, help string
	labels     []string
}{
	{"pizza_runs_ended_total", "Runs that ended since the start, by how.", []string{"state"}},
	{"pizza_model_calls_total", "Model calls that ended, by ok or the class of the failure.", []string{"provider", "model", "class"}},
	{"pizza_tokens_total", "Tokens of model calls; input holds those read from and written to a cache too.", []string{"provider", "model", "kind"}},
	{"pizza_tool_calls_total", "Tool calls that ended, by ok, error, cancelled or unknown.", []string{"tool", "status"}},
}

// timeRows are the histograms there are.
var timeRows = [][2]string{
	{"pizza_step_seconds", "Time of a step of a run beside model and tools: from an outcome to what follows it, on disk."},
	{"pizza_model_call_seconds", "Time of a model call."},
	{"pizza_tool_call_seconds", "Time of a tool call."},
}

func (m *meter) add(n float64, name string, labels ...string) {
	if n == 0 {
		return
	}
	key := meterKey{name: name}
	copy(key.labels[:], labels)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[meterKey]float64{}
	}
	m.counts[key] += n
}

func (m *meter) took(name string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.times[name]
	if t == nil {
		t = &timing{counts: make([]uint64, len(bounds)+1)}
		if m.times == nil {
			m.times = map[string]*timing{}
		}
		m.times[name] = t
	}
	t.sum += d.Seconds()
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	t.counts[i]++
}

// observe counts an outcome; what it returns is called when the outcome is on disk.
func (s *session) observe(out outcome) func(error) {
	began := time.Now()
	after := func() {}
	if out.key == modelCall {
		after = s.observeModel(out)
	} else if c := s.st.call(out.key); c != nil && c.State == callStarted && c.Attempt == out.attempt {
		after = s.observeTool(*c, out)
	}
	return func(err error) {
		if err != nil {
			return
		}
		s.a.meter.took("pizza_step_seconds", time.Since(began))
		after()
	}
}

func (s *session) observeModel(out outcome) func() {
	if out.broken != nil || out.err != nil && out.stopped {
		return func() {}
	}
	provider, model, class := "none", "none", "ok" // a name that no provider has is whatever a mail says
	if s.model != nil {
		provider, model = s.model.Info().Provider, s.model.Info().Model
	}
	if pe := out.failed(); pe != nil {
		class = string(pe.Class)
	}
	m, u := &s.a.meter, out.reply.Usage
	m.add(1, "pizza_model_calls_total", provider, model, class)
	m.took("pizza_model_call_seconds", out.took)
	for kind, n := range map[string]int{
		"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite, "reasoning": u.Reasoning,
	} {
		m.add(float64(n), "pizza_tokens_total", provider, model, kind)
	}
	return func() { s.modelSpan(out, provider, model, class) }
}

func (s *session) observeTool(c Call, out outcome) func() {
	status := fate(c, out, s.st.ending())
	if status == fateLeft || status == fateAgain {
		return func() {}
	}
	name := "other" // a name that no tool has is whatever a model says
	if hasTool(s.st.Started.Tools, c.Name) {
		name = c.Name
	}
	s.a.meter.add(1, "pizza_tool_calls_total", name, status)
	s.a.meter.took("pizza_tool_call_seconds", out.took)
	return func() { s.toolSpan(c, out, name, status) }
}

// committed is called when a commit of the run is on disk.
func (s *session) committed() {
	s.a.stir(s.account, s.id)
	if s.run.State.Ended() {
		s.a.ended(s.account, s.run, &s.st)
	}
}

// ended counts a run that has ended.
func (a *Agent) ended(account mailbox.AccountID, run Run, st *State) {
	a.meter.add(1, "pizza_runs_ended_total", string(run.State))
	a.runSpan(account, run, st)
	a.stir(account, run.ID)
	if run.child() {
		a.stir(account, parentOf(run.ID))
		return
	}
	a.stir(account, run.Task) // its next run, if a mail waited
}

// countEvery is how often the store is counted at the most.
const countEvery = 15 * time.Second

// Figures are the numbers as they are now. What lies in the store is counted at most every
// 15 seconds, by index keys alone.
func (a *Agent) Figures(ctx context.Context) []Figure {
	list := a.storedFigures(ctx)
	a.mu.Lock()
	working := 0
	for _, s := range a.sessions {
		if !s.held {
			working++
		}
	}
	a.mu.Unlock()
	list = append(list, Figure{Name: "pizza_runs_working", Help: "Runs that workers have now.", Value: float64(working)})
	return append(list, a.meter.figures()...)
}

// figures are the counters and histograms.
func (m *meter) figures() []Figure {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Figure
	for _, row := range meterRows {
		for key, n := range m.counts {
			if key.name != row.name {
				continue
			}
			f := Figure{Name: row.name, Help: row.help, Counter: true, Value: n}
			for i, name := range row.labels {
				f.Labels = append(f.Labels, [2]string{name, key.labels[i]})
			}
			list = append(list, f)
		}
	}
	for _, row := range timeRows {
		f := Figure{Name: row[0], Help: row[1]}
		t := m.times[row[0]]
		if t == nil {
			t = &timing{counts: make([]uint64, len(bounds)+1)}
		}
		f.Value = t.sum
		n := uint64(0)
		for i, c := range t.counts {
			n += c
			b := Bucket{Count: n}
			if i < len(bounds) {
				b.UpTo = bounds[i]
			}
			f.Buckets = append(f.Buckets, b)
		}
		list = append(list, f)
	}
	slices.SortStableFunc(list, compareFigures)
	return list
}

func compareFigures(x, y Figure) int {
	if x.Name != y.Name {
		return 0 // in the order of the rows
	}
	return slices.CompareFunc(x.Labels, y.Labels, func(a, b [2]string) int { return cmp.Compare(a[1], b[1]) })
}

// storedFigures are of what lies in the store, of all accounts.
func (a *Agent) storedFigures(ctx context.Context) []Figure {
	m := &a.meter
	m.counting.Lock()
	defer m.counting.Unlock()
	if m.stored != nil && time.Since(m.at) < countEvery {
		return slices.Clone(m.stored)
	}
	ids, err := a.store.Accounts(ctx)
	if err != nil {
		a.logStore(ctx, "count", err)
		return nil
	}
	var live, waiting, open int
	for _, id := range ids {
		for index, n := range map[string]*int{indexLiveRuns: &live, indexWaitingRuns: &waiting, indexOpenDecisions: &open} {
			got, err := a.store.Count(ctx, id, index)
			if err != nil {
				a.logStore(ctx, "count", err)
				return nil // half a count is none
			}
			*n += got
		}
	}
	const help = "Live runs by state: waiting for a person or a time, or due (queued, or with a worker)."
	m.stored, m.at = []Figure{
		{Name: "pizza_runs", Help: help, Labels: [][2]string{{"state", "due"}}, Value: float64(live - waiting)},
		{Name: "pizza_runs", Help: help, Labels: [][2]string{{"state", "waiting"}}, Value: float64(waiting)},
		{Name: "pizza_decisions_open", Help: "Decisions that wait for a person.", Value: float64(open)},
	}, time.Now()
	return slices.Clone(m.stored)
}
