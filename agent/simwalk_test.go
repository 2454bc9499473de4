package agent

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

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
	"cancel": {cancel: true, programs: []program{
		{name: "a", turns: []simTurn{{calls: []simCall{{tool: "pay"}, {tool: "send", owner: "approve"}, {tool: "book"}}}}}, {name: "b"},
	}},
}

// walk kills a plot before and after each of its commits. It returns how many walks.
func walk(t *testing.T, p plot) int {
	t.Helper()
	n := simulate(t, p)
	for at := 1; at <= n && !t.Failed(); at++ {
		for _, after := range []bool{false, true} {
			p.crashes = []crashPoint{{at: at, after: after}}
			simulate(t, p)
		}
	}
	return 1 + 2*n
}

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
	for m := range 1 + r.IntN(4) {
		prog := program{name: string(rune('a' + m))}
		for range r.IntN(4) {
			prog.turns = append(prog.turns, randomTurn(r))
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

func randomTurn(r *rand.Rand) simTurn {
	turn := simTurn{empty: r.IntN(8) == 0}
	if r.IntN(6) == 0 {
		turn.fail = pick2(r, providers.Overloaded, providers.Network, providers.RateLimit)
	}
	for range 1 + r.IntN(5) {
		c := simCall{
			tool: pick2(r, "look", "put", "book", "pay", "pay", "send", "send", "burn", "none"), effect: r.IntN(2) == 0, blind: r.IntN(3) == 0,
			owner: pick2(r, "approve", "approve", "reject", "expire"), how: pick2(r, "", "", "", "", "error", "unknown", "panic", "hang"),
		}
		if r.IntN(6) == 0 {
			c.answer = pick2(r, "stop", "expire")
		}
		turn.calls = append(turn.calls, c)
	}
	return turn
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
