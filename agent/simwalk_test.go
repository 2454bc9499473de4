package agent

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"pizza/internal/policy"
	"pizza/providers"
)

// simPlots are the fixed programs. Each is walked: killed before and after every commit.
var simPlots = map[string]plot{
	"answer": {programs: []program{{name: "a"}}},
	"each class": {programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "look"}, {tool: "put"}}}, {calls: []simCall{{tool: "book"}}}, {calls: []simCall{{tool: "pay"}}},
	}}}},
	"batch of five": {programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "look"}, {tool: "put"}, {tool: "book"}, {tool: "pay"}, {tool: "send", owner: "approve"}}},
	}}}},
	"five that are asked": {programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "send", owner: "approve"}, {tool: "send", owner: "reject"}, {tool: "burn"}, {tool: "none"}, {tool: "send", owner: "expire"}}},
	}}}},
	"failures": {programs: []program{{name: "a", turns: []simTurn{
		{fail: providers.Overloaded, empty: true, calls: []simCall{{tool: "put", how: "error"}, {tool: "pay", how: "error"}, {tool: "book", how: "error"}, {tool: "look", how: "panic"}}},
	}}}},
	"unknown outcomes": {programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "pay", how: "unknown", effect: true}, {tool: "pay", how: "panic"}, {tool: "send", how: "hang", effect: true, owner: "approve"}}},
		{calls: []simCall{{tool: "put", how: "unknown", effect: true}, {tool: "book", how: "hang"}, {tool: "book", how: "unknown", effect: true}, {tool: "book", how: "panic", effect: true, blind: true}}},
	}}}},
	"unknown, never answered": {programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "pay", how: "unknown", effect: true, answer: "expire"}, {tool: "look"}}},
	}}}},
	"unknown, stopped": {programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "pay", how: "unknown", effect: true, answer: "stop"}, {tool: "book"}}},
	}}}},
	"mails that join or wait": {programs: []program{
		{name: "a", turns: []simTurn{{calls: []simCall{{tool: "pay"}}}}}, {name: "b", turns: []simTurn{{calls: []simCall{{tool: "book"}}}}}, {name: "c"},
	}},
	"limits": {limits: Limits{ModelCalls: 2, ToolCalls: 3}, programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "pay"}, {tool: "put"}}}, {calls: []simCall{{tool: "book"}, {tool: "pay"}}}, {calls: []simCall{{tool: "look"}}},
	}}}},
	"one mail at a time": {alone: true, programs: []program{{name: "a", turns: []simTurn{{calls: []simCall{{tool: "pay"}}}}}, {name: "b"}}},
	"two workers, one asked": {want: []string{"tool_intent worker", "tool_result worker ok", "decided approve"}, programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{
			{tool: "task", work: []simTurn{{calls: []simCall{{tool: "pay"}, {tool: "look"}}}}},
			{tool: "task", work: []simTurn{{calls: []simCall{{tool: "send"}, {tool: "book"}}}}},
		}},
	}}}},
	"workers, one cancelled": {cancel: true, programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{
			{tool: "task", work: []simTurn{{calls: []simCall{{tool: "send"}, {tool: "pay"}}}}},
			{tool: "task", work: []simTurn{{calls: []simCall{{tool: "book"}}}}},
		}},
	}}}},
	"a worker whose outcome is unknown": {programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "task", work: []simTurn{{calls: []simCall{{tool: "pay", how: "unknown", effect: true}, {tool: "send", owner: "reject"}}}}}, {tool: "pay"}}},
	}}}},
	"edited": {want: []string{"decided edit", "decided approve"}, programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "send", owner: "edit"}, {tool: "send", owner: "edit again"}, {tool: "put"}}},
	}}}},
	"always, and rows": {want: []string{"decided always"}, rows: []policy.Row{{Name: "policies[0]", Tool: "book", Rule: policy.Ask}, {Name: "policies[1]", Tool: "put", Rule: policy.Deny}},
		programs: []program{{name: "a", turns: []simTurn{
			{calls: []simCall{{tool: "file", owner: "always"}, {tool: "book"}, {tool: "put"}}}, {calls: []simCall{{tool: "file", owner: "never asked"}}},
		}}}},
	"limit, stopped": {more: "stop", limits: Limits{ModelCalls: 2}, want: []string{"decided stop"}, programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "pay"}}}, {calls: []simCall{{tool: "put"}}},
	}}, {name: "b"}}},
	"limit, never answered": {more: "expire", limits: Limits{ToolCalls: 2}, want: []string{"decided expire"}, programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "pay"}}}, {calls: []simCall{{tool: "put"}, {tool: "pay"}}},
	}}}},
	"the owner is asked": {want: []string{"decided answer", "decided expire"}, programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "ask_owner"}, {tool: "pay"}}}, {calls: []simCall{{tool: "ask_owner", owner: "expire"}}},
	}}}},
	"by mail": {byMail: true, want: []string{"decided edit", "decided answer", "decided approve", "decided reject", "decided happened", "decided always"}, programs: []program{{name: "a", turns: []simTurn{
		{calls: []simCall{{tool: "send"}, {tool: "send", owner: "reject"}, {tool: "send", owner: "edit"}, {tool: "file", owner: "always"}}},
		{calls: []simCall{{tool: "ask_owner"}, {tool: "pay", how: "unknown", effect: true}}},
	}}}},
	"fork": {programs: []program{
		{name: "a", turns: []simTurn{{calls: []simCall{{tool: "pay"}}}}}, {name: "b", fork: true, turns: []simTurn{{calls: []simCall{{tool: "pay"}}}}},
	}},
	"cancel": {cancel: true, programs: []program{
		{name: "a", turns: []simTurn{{calls: []simCall{{tool: "pay"}, {tool: "send", owner: "approve"}, {tool: "book"}}}}}, {name: "b"},
	}},
}

// walk kills a plot before and after each of its commits, of a long one in a short run
// before and after every second, third and so on. It returns how many walks.
func walk(t *testing.T, p plot) int {
	t.Helper()
	n, walks := simulate(t, p), 1
	every := 1
	if os.Getenv("PIZZA_SIM_TIME") == "" {
		every = 1 + n/simCommits
	}
	for at := 1 + int(p.seed)%every; at <= n && !t.Failed(); at += every {
		for _, after := range []bool{false, true} {
			p.crashes = []crashPoint{{at: at, after: after}}
			simulate(t, p)
			walks++
		}
	}
	return walks
}

// simCommits is how many commits a plot may have of which all are walked in a short run.
const simCommits = 20

// Classes 1, 2, 3, 10, 12, 16 and 28 (facts/runtime.md 2.2): the server is killed before
// and after every commit of each plot, in several orders of events.
func TestSimWalk(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	if os.Getenv("PIZZA_SIM_TIME") != "" {
		seeds = 50
	}
	for name, p := range simPlots {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				all := 0
				for p.seed = 1; p.seed <= seeds; p.seed++ {
					n := walk(t, p)
					if all += n; n < 5 {
						t.Errorf("%d walks only", n)
					}
				}
				t.Logf("%d walks", all)
			})
		})
	}
}

// randomPlot makes a plot from a seed.
func randomPlot(seed uint64) plot {
	r := rand.New(rand.NewPCG(seed, 7))
	p := plot{seed: seed, cancel: r.IntN(4) == 0, threads: 1 + r.IntN(2), alone: r.IntN(3) == 0}
	if r.IntN(4) == 0 {
		p.limits = Limits{ModelCalls: 1 + r.IntN(3), ToolCalls: 1 + r.IntN(6)}
	}
	p.more, p.byMail = pick2(r, "", "", "stop", "expire"), r.IntN(3) == 0
	if r.IntN(5) == 0 {
		p.window = 3000
	}
	for _, row := range []policy.Row{
		{Name: "policies[0]", Tool: "book", Rule: policy.Ask}, {Name: "policies[1]", Tool: "put", Rule: policy.Deny}, {Name: "policies[2]", Tool: "file", Rule: policy.Allow},
	} {
		if r.IntN(6) == 0 {
			p.rows = append(p.rows, row)
		}
	}
	for m := range 1 + r.IntN(4) {
		prog := program{name: string(rune('a' + m)), fork: m > 0 && r.IntN(6) == 0}
		for range r.IntN(4) {
			prog.turns = append(prog.turns, randomTurn(r, 1))
		}
		p.programs = append(p.programs, prog)
	}
	for range r.IntN(4) {
		p.crashes = append(p.crashes, crashPoint{at: 1 + r.IntN(25), after: r.IntN(2) == 0})
	}
	if r.IntN(3) == 0 {
		p.restarts = 1 + r.IntN(3)
	}
	return p
}

// randomTurn is a reply, of a run that has workers so many levels down.
func randomTurn(r *rand.Rand, levels int) simTurn {
	turn := simTurn{empty: r.IntN(8) == 0}
	if r.IntN(6) == 0 {
		turn.fail = pick2(r, providers.Overloaded, providers.Network, providers.RateLimit)
	}
	for range 1 + r.IntN(5) {
		turn.calls = append(turn.calls, randomCall(r, levels))
	}
	return turn
}

func randomCall(r *rand.Rand, levels int) simCall {
	c := simCall{
		tool:   pick2(r, "look", "put", "book", "pay", "pay", "send", "send", "file", "burn", "none", taskName, askOwner.spec.Name),
		effect: r.IntN(2) == 0, blind: r.IntN(3) == 0, how: pick2(r, "", "", "", "", "error", "unknown", "panic", "hang"),
		owner: pick2(r, "approve", "approve", "reject", "expire", "edit", "edit again"),
	}
	if r.IntN(6) == 0 {
		c.answer = pick2(r, "stop", "expire")
	}
	switch {
	case c.tool == "file" && r.IntN(2) == 0:
		c.owner = "always"
	case c.tool == askOwner.spec.Name:
		c.owner = pick2(r, "", "", "expire")
	case c.tool == taskName && levels == 0:
		c.tool = "look"
	case c.tool == taskName:
		for range r.IntN(3) {
			c.work = append(c.work, randomTurn(r, levels-1))
		}
	}
	return c
}

// TestSimRandom simulates random plots with several kills and stops each. PIZZA_SIM_TIME
// is how long; PIZZA_SIM_SEED is where to begin.
func TestSimRandom(t *testing.T) {
	t.Parallel()
	first := envSeed(t)
	long, n := os.Getenv("PIZZA_SIM_TIME"), uint64(40)
	var until time.Time
	if long != "" {
		d, err := time.ParseDuration(long)
		if err != nil {
			t.Fatal(err)
		}
		until, n = time.Now().Add(d), 1<<62
	}
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		if long != "" && time.Now().After(until) {
			t.Logf("%d plots", seed-first)
			break
		}
		synctest.Test(t, func(t *testing.T) { simulate(t, randomPlot(seed)) })
	}
}

func envSeed(t *testing.T) (seed uint64) {
	t.Helper()
	if s := os.Getenv("PIZZA_SIM_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	return seed
}
