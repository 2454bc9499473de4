package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pizza/internal/policy"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// The simulator runs whole tasks over a store in memory, in a bubble of testing/synctest
// (its clock is the fake one), one event at a time: what a model or a tool does next, what
// the owner does next, or that time passes, picked by a seed. The process can be killed
// before and after any commit; what it did outside lies in a ledger that no kill touches.

// simCall is a call that the model of the simulation makes.
type simCall struct {
	tool   string    // look, put, book, pay, send and file (asked first), burn (denied), none (unknown), task, ask_owner
	how    string    // of the first attempt: "" (it works), error, unknown, panic, hang
	effect bool      // unknown, panic and hang: it had its effect before
	blind  bool      // book: looking does not tell
	owner  string    // approve (the default; of ask_owner answer), reject, edit, edit again, expire; of file always
	answer string    // of an unknown outcome: truth (the default), stop, expire
	work   []simTurn // of task: what the worker does
}

// simTurn is a reply: calls, or nothing. Fail comes once before it.
type simTurn struct {
	calls []simCall
	fail  providers.Class
	empty bool
}

// program is what the model does about a mail; then it says "did <name>".
type program struct {
	name  string
	turns []simTurn
	fork  bool // the mail begins a task that branches off from the first one
}

// plot is a whole simulation.
type plot struct {
	seed     uint64
	programs []program                    // one a mail
	threads  int                          // the mails are spread over so many threads; 0: one
	cancel   bool                         // the owner cancels the first task at some moment
	alone    bool                         // the model works one mail at a time
	limits   Limits                       // zero fields: far away
	before   func(p *process, commit int) // called before each commit of the first process
	look     func(*process)               // called whenever everything waits
	more     string                       // what the owner answers at a limit: continue (the default), stop, expire
	byMail   bool                         // the owner decides by mail, else by command
	rows     []policy.Row                 // of the settings
	window   int                          // of the model, tokens; 0: large
	want     []string                     // what the journals must hold when nothing crashes, as in "decided edit"
	crashes  []crashPoint
	restarts int // clean ones, at some moment
}

var simClasses = map[string]tools.Class{
	"look": tools.ReadOnly, "put": tools.Idempotent, "book": tools.Reconcilable,
	"pay": tools.OnceOnly, "send": tools.OnceOnly, "file": tools.OnceOnly, "burn": tools.OnceOnly,
}

const simAccount = mailbox.AccountID("me00000000")

// world is what outlives processes: the disk, the ledger, the owner.
type world struct {
	t       testing.TB
	plot    plot
	rng     *rand.Rand
	started time.Time
	calls   map[string]simCall
	progs   map[string]program // of mails and of workers
	disk    *memDisk
	commits int // of the process before this one

	mu      sync.Mutex
	ledger  map[string]int             // effects, by Call.Key
	tries   map[string]int             // attempts, by Call.Key
	keys    map[string]map[string]bool // by call id
	unsure  map[string]bool            // Call.Keys about which the owner may be asked
	wrong   []string
	mails   []simMail
	sent    int
	cancels string         // accepted, refused, done (an earlier try was), or "" (not yet)
	cut     bool           // a kill took the answer to a try
	seen    map[string]int // what the journals hold in the end
}

type simMail struct {
	mid, raw string
	task     string
}

func (w *world) fault(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, a...))
}

func newWorld(t testing.TB, p plot) *world {
	w := &world{
		t: t, plot: p, rng: rand.New(rand.NewPCG(p.seed, 99)), started: time.Now(), disk: newMemDisk(), calls: map[string]simCall{}, progs: map[string]program{}, seen: map[string]int{},
		ledger: map[string]int{}, tries: map[string]int{}, keys: map[string]map[string]bool{}, unsure: map[string]bool{},
	}
	for i, prog := range p.programs {
		w.learn(prog)
		thread := 0
		if p.threads > 1 {
			thread = i % p.threads
		}
		mid := fmt.Sprintf("m%d@sim", i)
		raw := fmt.Sprintf("From: me@localhost\r\nTo: pizza@localhost\r\nSubject: %s\r\nMessage-ID: <%s>\r\n", prog.name, mid)
		if i >= max(1, p.threads) {
			raw += fmt.Sprintf("In-Reply-To: <m%d@sim>\r\n", thread)
		}
		body := "do " + prog.name + "\r\n"
		if prog.fork {
			raw, body = strings.Replace(raw, "In-Reply-To: <m"+fmt.Sprint(thread), "In-Reply-To: <m0", 1), "fork\r\n\r\n"+body
		}
		w.mails = append(w.mails, simMail{mid: mid, raw: raw + "\r\n" + body})
	}
	return w
}

// learn notes a program, and those of the workers it gives work to.
func (w *world) learn(prog program) {
	w.progs[prog.name] = prog
	for n, turn := range prog.turns {
		for c, call := range turn.calls {
			id := simID(prog.name, n, c)
			w.calls[id] = call
			if call.tool == taskName {
				w.learn(program{name: workFor(id), turns: call.work})
			}
		}
	}
}

// workFor names the program of the worker that a call gives work to.
func workFor(id string) string { return "w-" + strings.ReplaceAll(id, "_", "-") }

func simID(prog string, turn, call int) string { return fmt.Sprintf("%s_%d_%d", prog, turn, call) }

// process is one life of the server: an Agent, and its tools and model.
type process struct {
	*world
	a      *Agent
	store  *crashStore
	mem    *memStore
	halt   func()
	killed chan struct{}

	gateMu sync.Mutex
	gates  map[string]chan struct{} // what waits for its turn to act outside
}

func (w *world) start(point crashPoint) *process {
	p := &process{world: w, killed: make(chan struct{}), gates: map[string]chan struct{}{}}
	p.mem = openMem(simAccount, w.disk)
	p.store = &crashStore{Store: p.mem, crashPoint: point, down: make(chan struct{})}
	var store mailbox.Store = p.store
	if before := w.plot.before; before != nil && w.commits == 0 {
		store = &hookStore{Store: store, before: func(n int) { before(p, n) }}
	}
	limits := w.plot.limits
	limits.ModelCalls, limits.ToolCalls = cmp.Or(limits.ModelCalls, 1000), cmp.Or(limits.ToolCalls, 1000)
	a, err := New(Options{
		Store: store, Accounts: people{{ID: simAccount, Login: "me"}}, Models: models{"script:test": simModel{p}}, Tools: simTools{p},
		Log: slog.New(slog.DiscardHandler), Now: time.Now, Workers: 4, Location: time.UTC, ActionInInbox: true, Expiry: 20 * time.Minute,
		Sends: 1000, Limits: limits, WorkerLimits: Limits{ModelCalls: 1000, ToolCalls: 1000},
		Policies: func() []policy.Row { return w.plot.rows },
		Subagents: func() []Worker {
			return []Worker{{Name: "hand", Description: "does things", Instructions: simWorker, Tools: []string{"*"}}}
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	p.a = a
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Run(ctx) }()
	p.halt = func() { cancel(); <-done }
	return p
}

// end ends a process: by SIGTERM, which lets what runs act once more, or by SIGKILL.
func (p *process) end(kill bool) {
	if kill {
		close(p.killed)
		p.halt()
	} else {
		p.halt()
		close(p.killed)
	}
	synctest.Wait()
	p.disk, p.commits = p.mem.disk, p.store.n
	for _, key := range p.open() {
		p.unsure[key] = true
	}
}

// open are the keys of calls with an intent and no outcome on disk.
func (p *process) open() (keys []string) {
	for name, stream := range p.disk.streams {
		st, err := foldBytes(stream)
		if err != nil {
			p.fault("%s: %v", name, err)
		}
		for _, c := range st.open() {
			if c.State == callStarted {
				keys = append(keys, strings.TrimPrefix(name, "run/")+"/"+c.ID)
			}
		}
	}
	return keys
}

func foldBytes(stream [][]byte) (State, error) {
	var st State
	for _, b := range stream {
		e, err := decodeEvent(b)
		if err == nil {
			err = st.Apply(e)
		}
		if err != nil {
			return st, err
		}
	}
	return st, nil
}

// park holds what acts outside until it is its turn; false when it never is.
func (p *process) park(ctx context.Context, name string) bool {
	gate := make(chan struct{})
	p.gateMu.Lock()
	for p.gates[name] != nil {
		name += "'"
	}
	p.gates[name] = gate
	p.gateMu.Unlock()
	defer func() {
		p.gateMu.Lock()
		defer p.gateMu.Unlock()
		delete(p.gates, name)
	}()
	select {
	case <-gate:
		return true
	case <-p.killed:
	case <-ctx.Done():
	}
	return false
}

// events lists what can happen next.
func (p *process) events() (list []func()) {
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.gates)) {
		gate := p.gates[name]
		list = append(list, func() { close(gate) })
	}
	if p.sent < len(p.mails) {
		list = append(list, p.send)
	}
	if p.plot.cancel && p.cancels == "" && p.sent > 0 {
		list = append(list, p.cancel)
	}
	return append(list, p.decisions()...)
}

func (p *process) send() {
	if p.submit(&p.mails[p.sent]) == nil { // else it is sent again
		p.sent++
	}
}

func (p *process) submit(mail *simMail) error {
	blob, err := p.store.Stage(context.Background(), simAccount, strings.NewReader(mail.raw), 0)
	if err != nil {
		return err
	}
	r, err := p.a.Submit(context.Background(), mailbox.Submission{
		Identity: identity(simAccount, "me"), Envelope: mailbox.Envelope{From: "me@localhost", To: []string{"pizza@localhost"}},
		Blob: blob, Received: time.Now(),
	})
	if err == nil {
		mail.task = r.Task
	}
	return err
}

// noteCancel keeps what became of the cancellation, which may come from within a commit.
func (w *world) noteCancel(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancels = what
}

// cancelling reports whether the owner has cancelled.
func (w *world) cancelling() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cancels != ""
}

func (p *process) cancel() {
	err := p.a.Cancel(context.Background(), simAccount, p.mails[0].task, DecidedBy{Login: "me", Via: "cli"})
	switch {
	case err == nil:
		p.noteCancel("accepted")
	case isKind(err, mailbox.Conflict) && !p.cut:
		p.noteCancel("refused")
	case isKind(err, mailbox.Conflict):
		p.noteCancel("done")
	case errors.Is(err, mailbox.ErrClosed):
		p.cut = true
	default:
		p.fault("cancel: %v", err)
	}
}

func (w *world) effects(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger[key]
}

// settled reports whether nothing is left to do.
func (p *process) settled() bool {
	if p.sent < len(p.mails) || len(p.mem.disk.records) == 0 {
		return false
	}
	for _, rec := range p.mem.pickRecords(func(r mailbox.Record) bool { return strings.HasPrefix(r.Key, "run/") }) {
		if r, err := decodeRun(rec); err != nil || !r.State.Ended() {
			return false
		}
	}
	return true
}

// live runs the process until all is done, a crash, or a clean stop after n events (0:
// none). It returns whether all is done.
func (p *process) live(n int) (done bool) {
	for idle, step := 0, 0; ; step++ {
		synctest.Wait()
		if p.store.dead() {
			p.end(true)
			return false
		}
		if p.plot.look != nil {
			p.plot.look(p)
		}
		list := p.events()
		switch {
		case n > 0 && step == n:
			p.end(false)
			return false
		case p.settled() && len(p.gates) == 0:
			p.end(false)
			return true
		case len(list) == 0:
			if idle++; idle > 500 {
				p.fault("nothing goes on")
				p.end(true)
				return true
			}
			time.Sleep(30 * time.Second)
		default:
			idle = 0
			list[p.rng.IntN(len(list))]()
		}
	}
}

// simulate runs a plot to its end and checks it. It returns how many commits its first
// process made.
func simulate(t testing.TB, p plot) (commits int) {
	t.Helper()
	w := newWorld(t, p)
	points, stops := slices.Clone(p.crashes), p.restarts
	for first := true; ; first = false {
		var point crashPoint
		if len(points) > 0 {
			point, points = points[0], points[1:]
		}
		stop := 0
		if stops > 0 {
			stops--
			stop = 1 + w.rng.IntN(12)
		}
		done := w.start(point).live(stop)
		if first {
			commits = w.commits
		}
		if done {
			break
		}
	}
	w.check()
	for _, what := range p.want {
		if w.seen[what] == 0 && len(p.crashes) == 0 {
			w.fault("no %s in %v", what, w.seen)
		}
	}
	if len(w.wrong) > 0 {
		t.Errorf("seed %d, crashes %v, restarts %d:\n%s\n%s", p.seed, p.crashes, p.restarts, strings.Join(w.wrong, "\n"), w.story())
	}
	return commits
}

// story is what the journals say, for a failure.
func (w *world) story() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.disk.streams)) {
		fmt.Fprintf(&b, "%s:\n", name)
		for i, ev := range w.disk.streams[name] {
			if e, err := decodeEvent(ev); err == nil {
				fmt.Fprintf(&b, "  %2d %s\n", i+1, oneLine(e.words(nil)))
			}
		}
	}
	return b.String()
}

// simTools act by the plot and note it in the ledger.
type simTools struct{ p *process }

func (s simTools) Specs() (list []tools.Spec) {
	for _, name := range slices.Sorted(maps.Keys(simClasses)) {
		list = append(list, tools.Spec{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object","properties":{}}`)})
	}
	return list
}

func (s simTools) Plan(c tools.Call) tools.Plan {
	plan := tools.Plan{Class: simClasses[c.Name], Rule: tools.Allow, Effect: tools.Changes, Sentence: "Do " + c.Name + "."}
	switch c.Name {
	case "send":
		plan.Rule = tools.Ask
	case "file":
		plan.Rule, plan.Effect = tools.Ask, tools.Changes
	case "burn":
		plan.Rule, plan.Reason = tools.Deny, "burning is forbidden"
	}
	if plan.Class == "" {
		plan.Rule, plan.Reason = tools.Invalid, "no such tool"
	}
	return plan
}

// callOf is the call id that a key ends in.
func callOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

func (s simTools) Run(ctx context.Context, _ tools.Workspace, c tools.Call) tools.Outcome {
	call := s.p.calls[callOf(c.Key)]
	if !s.p.park(ctx, "tool "+c.Key) {
		return tools.Outcome{Error: true, Content: "stopped before it did anything"}
	}
	first := s.p.act(c, call)
	if c.Name == "send" && strings.HasPrefix(call.owner, "edit") && !strings.Contains(string(c.Args), simEdited) {
		s.p.fault("%s ran with arguments that were edited: %s", c.Key, c.Args)
	}
	if !first || call.how == "" {
		return tools.Outcome{Content: "done " + c.Name + s.p.filler(c)}
	}
	switch call.how {
	case "error":
		return tools.Outcome{Error: true, Content: "it refused"}
	case "panic":
		panic("a tool of the simulation")
	case "hang":
		<-s.p.killed // whatever ctx says
	}
	return tools.Outcome{Unknown: true, Content: "the line went dead"}
}

// act notes an attempt, and its effect when it has one.
func (p *process) act(c tools.Call, call simCall) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := callOf(c.Key)
	if p.keys[id] == nil {
		p.keys[id] = map[string]bool{}
	}
	p.keys[id][c.Key] = true
	p.tries[c.Key]++
	first = p.tries[c.Key] == 1
	has := !first || call.how == "" || call.effect && call.how != "error"
	if first && call.how != "" && call.how != "error" {
		p.unsure[c.Key] = true
	}
	if has && !(simClasses[c.Name] == tools.Idempotent && p.ledger[c.Key] > 0) { // an idempotent tool knows its keys
		p.ledger[c.Key]++
	}
	return first
}

// filler makes results long where the window is small.
func (w *world) filler(c tools.Call) string {
	if w.plot.window == 0 || c.Name != "look" {
		return ""
	}
	return strings.Repeat(" and so on", w.plot.window/5)
}

func (s simTools) Probe(ctx context.Context, _ tools.Workspace, c tools.Call) (tools.Outcome, bool, error) {
	if !s.p.park(ctx, "probe "+c.Key) {
		return tools.Outcome{}, false, errors.New("stopped")
	}
	if s.p.calls[callOf(c.Key)].blind {
		return tools.Outcome{}, false, errors.New("the other side does not answer")
	}
	return tools.Outcome{Content: "done " + c.Name}, s.p.effects(c.Key) > 0, nil
}
