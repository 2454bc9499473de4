//go:build bench

package langgraph

import (
	"bufio"
	"fmt"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// medium is where stores are put.
type medium struct{ name, dir string }

// comparison is one run of everything.
type comparison struct {
	*testing.T
	base   *baseline
	rounds int
	disk   medium
	all    []medium // disk, and tmpfs where there is one
	rows   map[string][]figures
}

// TestLangGraph measures both sides by turns and prints one table. BENCH_ROUNDS is how often
// (3), BENCH_WAITING how many runs wait (100000), BENCH_PARTS what of it is done ("w5 w6"; all).
func TestLangGraph(t *testing.T) {
	c := &comparison{T: t, base: newBaseline(t), rounds: setting("BENCH_ROUNDS", 3), rows: map[string][]figures{}}
	c.disk = medium{"disk", t.TempDir()}
	c.all = []medium{c.disk}
	if dir, err := os.MkdirTemp("/dev/shm", "langgraph"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		c.all = append(c.all, medium{"tmpfs", dir})
	}
	c.conditions()
	only := strings.Fields(os.Getenv("BENCH_PARTS"))
	for _, part := range []struct {
		name string
		do   func()
	}{{"w1", c.w1}, {"syncs", c.syncs}, {"w2", c.w2}, {"w3", c.w3}, {"w4", c.w4}, {"w5", c.w5}, {"w6", c.w6}, {"w7", c.w7}, {"waiting", c.waiting}} {
		if len(only) == 0 || slices.Contains(only, part.name) {
			part.do()
		}
	}
	c.conditions()
	c.print()
}

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// root is a new data root below dir.
func (c *comparison) root(dir string) string {
	c.Helper()
	root, err := os.MkdirTemp(dir, "ours")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { os.RemoveAll(root) })
	return root
}

// note keeps a figure, and prints it at once: the run takes a while.
func (c *comparison) note(f figures, work string, of any, on string) {
	key := fmt.Sprint(work, " ", of, " ", on, " ", f["kind"])
	f["load"] = load()
	c.rows[key] = append(c.rows[key], f)
	fmt.Println(key, short(f))
}

func short(f figures) string {
	var list []string
	for name, v := range f {
		switch v := v.(type) {
		case float64:
			list = append(list, fmt.Sprintf("%s=%.4g", name, v))
		case string, bool:
			list = append(list, fmt.Sprintf("%s=%v", name, v))
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// w1: one run alone.
func (c *comparison) w1() {
	for round := range c.rounds {
		for _, m := range c.all {
			for _, n := range []int{10, 50, 200, 400} {
				root := c.root(m.dir)
				c.note(ours(c.T, nil, "w1", n, root), "W1", n, m.name)
				os.RemoveAll(root)
				for _, kind := range []string{"deep", "graph-delta"} {
					if n > 200 || kind == "graph-delta" && round > 0 {
						continue // the trend is ours alone; of the second a look is enough
					}
					db := c.base.db(m.dir)
					c.note(c.base.one("w1.mjs", kind, strconv.Itoa(n), "sync", db), "W1", n, m.name)
					drop(db)
				}
			}
		}
	}
}

// syncs counts forced writes with strace, in a run of 50 steps of each side.
func (c *comparison) syncs() {
	strace, err := exec.LookPath("strace")
	if err != nil {
		fmt.Println("forced writes are not counted: there is no strace")
		return
	}
	out := filepath.Join(c.TempDir(), "strace")
	under := []string{strace, "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", out}
	ours(c.T, under, "w1", 50, c.root(c.disk.dir))
	c.note(figures{"kind": "pizza", "syncs": float64(syncsOf(out))}, "syncs", 50, "disk")
	db := c.base.db(c.disk.dir)
	cmd := c.base.command(strace, append(under[1:], "node", "w1.mjs", "deep", "50", "sync", db)...)
	if b, err := cmd.CombinedOutput(); err != nil {
		c.Fatalf("strace: %v\n%s", err, b)
	}
	drop(db)
	c.note(figures{"kind": "deep", "syncs": float64(syncsOf(out))}, "syncs", 50, "disk")
}

// w2: a run that was paused goes on in a new process.
func (c *comparison) w2() {
	for range c.rounds {
		for _, n := range []int{10, 50, 200} {
			root := c.root(c.disk.dir)
			ours(c.T, nil, "w2prep", n, root)
			c.note(ours(c.T, nil, "w2", n, root, time.Now().UnixNano()), "W2", n, "disk")
			db := c.base.db(c.disk.dir)
			c.base.one("w2.mjs", "prep", "deep", strconv.Itoa(n), "sync", db)
			c.note(c.base.one("w2.mjs", "resume", "deep", strconv.Itoa(n), "sync", db), "W2", n, "disk")
			drop(db)
		}
	}
}

// w3: many runs at once. The baseline takes its largest case once only.
func (c *comparison) w3() {
	for round := range c.rounds {
		for _, runs := range []int{100, 1000} {
			for _, m := range c.all {
				root := c.root(m.dir)
				c.note(ours(c.T, nil, "w3", runs, 5, root), "W3", runs, m.name)
				os.RemoveAll(root)
				if runs > 100 && round > 0 || m.name == "disk" {
					continue
				}
				db := c.base.db(m.dir)
				c.note(c.base.one("w3.mjs", "deep", strconv.Itoa(runs), "5", "async", db), "W3", runs, m.name)
				drop(db)
			}
		}
	}
}

// w4: from the start of the server to the first 200, and what it holds when it idles. Both
// by the baseline's own driver; ours is the whole server with all it listens on.
func (c *comparison) w4() {
	pizza, err := filepath.Abs("../../../pizza")
	if err != nil {
		c.Fatal(err)
	}
	if _, err := os.Stat(pizza); err != nil {
		fmt.Println("W4 is skipped: make build first")
		return
	}
	root := c.root(c.disk.dir)
	port := c.freePort()
	f := c.base.one("w4.mjs", "pizza", "5", port, "--", pizza, "serve", "--data-root", root,
		"--imap", "0", "--imaps", "0", "--smtp", "0", "--smtps", "0", "--web", port)
	f["kind"] = "pizza"
	c.note(f, "W4", 5, "disk")
	port = c.freePort()
	f = c.base.one("w4.mjs", "deep", "5", port, "--", "node", "w4server.mjs", "deep", c.base.db(c.disk.dir), port)
	f["kind"] = "deep"
	c.note(f, "W4", 5, "disk")
}

func (c *comparison) freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// w5: SIGKILL at random moments until the run is done.
func (c *comparison) w5() {
	const trials, steps = 30, 5
	draw := rand.New(rand.NewSource(7))
	f := figures{"kind": "pizza", "expected": float64(trials * steps)}
	for range trials {
		c.killed(f, draw, steps)
	}
	c.note(f, "W5", steps, "disk")
	if count(f, "repeated") > 0 || count(f, "missing") > 0 || count(f, "unfinished") > 0 {
		c.Errorf("W5: effects were repeated or lost: %s", short(f))
	}
	b := c.base.one("w5.mjs", "deep", strconv.Itoa(steps), "sync", c.base.db(c.disk.dir), "8", "7")
	b["kills"], b["expected"] = b["kills"], b["effects_expected"]
	b["repeated"], b["missing"], b["unfinished"] = b["duplicate_effects"], b["missing_effects"], b["not_finished"]
	c.note(b, "W5", steps, "disk")
}

func count(f figures, name string) float64 {
	n, _ := f[name].(float64)
	return n
}

func (f figures) add(name string, n int) { f[name] = count(f, name) + float64(n) }

// killed is one trial.
func (c *comparison) killed(f figures, draw *rand.Rand, steps int) {
	c.Helper()
	root := c.root(c.disk.dir)
	effects := filepath.Join(root, "effects")
	done := false
	for range 40 {
		if done = c.oneStart(f, draw, steps, root, effects); done {
			break
		}
	}
	if !done {
		f.add("unfinished", 1)
	}
	list, err := effectsIn(effects)
	if err != nil {
		c.Fatal(err)
	}
	for k := range steps {
		n := 0
		for _, e := range list {
			if e == k {
				n++
			}
		}
		f.add("repeated", max(0, n-1))
		f.add("missing", max(0, 1-n))
	}
}

// oneStart starts the process once, and kills it unless it ends before.
func (c *comparison) oneStart(f figures, draw *rand.Rand, steps int, root, effects string) (done bool) {
	c.Helper()
	cmd := oursCommand(nil, "w5child", steps, root, effects)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	f.add("starts", 1)
	var kill *time.Timer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "Rfresh" || line == "Rresume":
			kill = time.AfterFunc(15*time.Millisecond+time.Duration(draw.Int63n(int64(300*time.Millisecond))),
				func() { _ = cmd.Process.Kill() })
		case line == "ASKED":
			f.add("asked", 1)
		case line == "DONE":
			done = true
		}
	}
	err = cmd.Wait()
	if kill != nil {
		kill.Stop()
	}
	if !done && err != nil && err.Error() != "signal: killed" {
		c.Fatalf("W5: our side ended with %v", err)
	}
	if err != nil {
		f.add("kills", 1)
	}
	return done
}

// w6: three subagents at once, their approvals out of order, each from a new process.
func (c *comparison) w6() {
	root := c.root(c.disk.dir)
	effects := filepath.Join(root, "effects")
	f := ours(c.T, nil, "w6", "start", root, effects)
	for _, sub := range []int{3, 1, 2} {
		if f["skipped"] == nil {
			f = ours(c.T, nil, "w6", "resume", root, effects, sub)
		}
	}
	f["kind"] = "pizza"
	c.note(f, "W6", 3, "disk")
	if f["skipped"] == nil && f["right"] != true {
		c.Errorf("W6: %v", f)
	}
	db := c.base.db(c.disk.dir)
	list := c.base.lines("w6.mjs", "start", db, db+".effects")
	calls := count(list[len(list)-1], "parentCalls")
	for _, sub := range []string{"3", "1", "2"} {
		list = c.base.lines("w6.mjs", "resume", db, db+".effects", sub)
		calls += count(list[len(list)-1], "parentCalls")
	}
	b := list[len(list)-1]
	c.note(figures{"kind": "deep", "effects": b["effects"], "parent_calls": calls,
		"right": calls == 2 && sameEffects(b["effects"], []string{"lookup 1", "lookup 2", "lookup 3", "send 1", "send 2", "send 3"})}, "W6", 3, "disk")
}

func sameEffects(got any, want []string) bool {
	list, ok := got.([]any)
	if !ok || len(list) != len(want) {
		return false
	}
	var have []string
	for _, e := range list {
		have = append(have, fmt.Sprint(e))
	}
	slices.Sort(have)
	return slices.Equal(have, want)
}

// w7: what comes of decisions that are mixed, too few, late or double.
func (c *comparison) w7() {
	for _, name := range w7Order {
		f := ours(c.T, nil, "w7", name, c.root(c.disk.dir))
		c.note(f, "W7", name, "disk")
		if f["right"] != true {
			c.Errorf("W7 %s: effects %v, the model was told %v", name, f["effects"], f["model_saw"])
		}
		list := c.base.lines("w7.mjs", name, c.base.db(c.disk.dir))
		b := list[len(list)-1]
		b["kind"], b["right"] = "deep", sameEffects(b["effects"], cases[name].effects) && b["ERROR"] == nil
		c.note(b, "W7", name, "disk")
	}
}

// waiting: an account where many runs wait for a person.
func (c *comparison) waiting() {
	n := setting("BENCH_WAITING", 100_000)
	root := c.root(c.disk.dir)
	c.note(ours(c.T, nil, "fill", n, root), "fill", n, "disk")
	c.note(ours(c.T, nil, "waiting", root, time.Now().UnixNano()), "waiting", n, "disk")
}
