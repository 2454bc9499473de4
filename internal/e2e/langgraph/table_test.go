//go:build bench

package langgraph

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// conditions says what the figures were taken under.
func (c *comparison) conditions() {
	for _, m := range c.all {
		p50, p99, err := diskSync(m.dir)
		if err != nil {
			c.Fatal(err)
		}
		fmt.Printf("%s: fdatasync of 4 KiB p50 %.2f ms, p99 %.2f ms; load %s\n", m.name, millis(p50), millis(p99), load())
	}
	fmt.Printf("%s %s/%s, %d cores, %s, node %s; %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		said("uname", "-r"), said("node", "--version"), strings.Join(packages, " "))
}

func said(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(out))
}

// median of a figure over the rounds, with the least and the most; ok is false without one.
func (c *comparison) median(key, name string) (mid, low, high float64, ok bool) {
	var list []float64
	for _, f := range c.rows[key] {
		if v, is := f[name].(float64); is {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return 0, 0, 0, false
	}
	slices.Sort(list)
	return list[len(list)/2], list[0], list[len(list)-1], true
}

func (c *comparison) cell(key, name string) string {
	mid, low, high, ok := c.median(key, name)
	switch {
	case !ok:
		return "-"
	case low == high:
		return number3(mid)
	}
	return fmt.Sprintf("%s (%s-%s)", number3(mid), number3(low), number3(high))
}

// number3 is a number with three digits that count.
func number3(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// line is a row of the table: one figure of both sides. less: the smaller is the better one.
func (c *comparison) line(title, work string, of any, on, name string, less bool) {
	key := func(kind string) string { return fmt.Sprint(work, " ", of, " ", on, " ", kind) }
	mine, _, _, ok := c.median(key("pizza"), name)
	other, _, _, also := c.median(key("deep"), name)
	ratio := "-"
	if ok && also && mine > 0 && other > 0 {
		if !less {
			mine, other = other, mine
		}
		ratio = fmt.Sprintf("%.3gx", other/mine)
	}
	fmt.Printf("| %s | %s | %s | %s | %s |\n", title, c.cell(key("pizza"), name), c.cell(key("deep"), name), ratio, c.cell(key("graph-delta"), name))
}

// print is the table, in Markdown.
func (c *comparison) print() {
	fmt.Printf("\nMedians of %d rounds (least-most). Load at the rows: %s.\n\n", c.rounds, c.loads())
	fmt.Println("| | pizza | deepagents | times better | StateGraph delta |")
	fmt.Println("|---|---|---|---|---|")
	for _, m := range c.all {
		for _, n := range []int{10, 50, 200, 400} {
			c.line(fmt.Sprintf("W1 N=%d, %s: CPU ms a step", n, m.name), "W1", n, m.name, "cpu_per_step", true)
		}
	}
	for _, m := range c.all {
		c.line("W1 N=200, "+m.name+": ms a step", "W1", 200, m.name, "wall_per_step", true)
	}
	for _, of := range []struct{ title, name string }{
		{"mean ms of the first five steps", "first5_ms"}, {"mean ms of the last five", "last5_ms"},
		{"peak memory, MB", "rss_peak_MB"}, {"octets written, MB", "written_MB"}} {
		c.line("W1 N=200, disk: "+of.title, "W1", 200, "disk", of.name, true)
	}
	for _, n := range []int{10, 50, 200, 400} {
		c.line(fmt.Sprintf("W1 N=%d: store, MB", n), "W1", n, "disk", "file_MB", true)
	}
	c.line("W1 N=200: payload, MB", "W1", 200, "disk", "payload_MB", true)
	c.line("W1 N=50: forced writes in all", "syncs", 50, "disk", "syncs", true)
	for _, n := range []int{10, 50, 200} {
		for _, of := range []struct{ title, name string }{
			{"start to ready, ms", "proc_to_ready_ms"}, {"load what waits, ms", "load_state_ms"},
			{"approved to the tool, ms", "resume_to_tool_ms"}, {"approved to the result, ms", "resume_to_done_ms"},
			{"CPU ms", "cpu_ms"}, {"peak memory, MB", "rss_peak_MB"}} {
			c.line(fmt.Sprintf("W2 N=%d, disk: %s", n, of.title), "W2", n, "disk", of.name, true)
		}
	}
	c.printMany()
}

func (c *comparison) printMany() {
	for _, runs := range []int{100, 1000} {
		for _, m := range c.all {
			title := fmt.Sprintf("W3 R=%d, %s: ", runs, m.name)
			c.line(title+"steps a second", "W3", runs, m.name, "steps_per_s", false)
			c.line(title+"CPU ms a step", "W3", runs, m.name, "cpu_per_step", true)
			c.line(title+"p50 of a run, ms", "W3", runs, m.name, "p50_ms", true)
			c.line(title+"p99 of a run, ms", "W3", runs, m.name, "p99_ms", true)
			c.line(title+"peak memory (RSS), MB", "W3", runs, m.name, "rss_peak_MB", true)
			c.line(title+"peak memory (RssAnon), MB", "W3", runs, m.name, "anon_peak_MB", true)
			c.line(title+"store, MB", "W3", runs, m.name, "file_MB", true)
		}
	}
	for _, of := range []struct{ title, name string }{
		{"start to the first 200, ms", "ready_ms_median"}, {"memory when idle (RSS), MB", "idle_rss_MB"}, {"memory when idle (PSS), MB", "idle_pss_MB"}} {
		c.line("W4: "+of.title, "W4", 5, "disk", of.name, true)
	}
	for _, of := range []struct{ title, name string }{
		{"kills", "kills"}, {"effects expected", "expected"}, {"effects repeated", "repeated"}, {"effects missing", "missing"},
		{"runs that did not end", "unfinished"}, {"asked a person", "asked"}} {
		c.line("W5: "+of.title, "W5", 5, "disk", of.name, true)
	}
	c.verdict("W6: three subagents, approved out of order", "W6 3 disk ")
	for _, name := range w7Order {
		c.verdict("W7 "+name, "W7 "+name+" disk ")
	}
	n := setting("BENCH_WAITING", 100_000)
	for _, of := range []struct{ title, work, name string }{
		{"ms a run to begin and to ask, the first 1,000", "fill", "first_ms"},
		{"ms a run to begin and to ask, 1,000 more", "fill", "last_ms"},
		{"memory after that (RssAnon), MB", "fill", "anon_MB"},
		{"store, MB", "fill", "file_MB"},
		{"start to ready, ms", "waiting", "proc_to_ready_ms"},
		{"memory (RssAnon), MB", "waiting", "anon_MB"},
		{"CPU in 10 s, ms", "waiting", "idle_cpu_ms"},
		{"a run of one step with its approval, ms", "waiting", "run_ms"}} {
		c.line(fmt.Sprintf("%d waiting runs: %s", n, of.title), of.work, n, "disk", of.name, true)
	}
}

// verdict is a row of what came of a case.
func (c *comparison) verdict(title, key string) {
	say := func(kind string) string {
		list := c.rows[key+kind]
		if len(list) == 0 {
			return "-"
		}
		f := list[len(list)-1]
		if why, ok := f["skipped"].(string); ok {
			return why
		}
		word := map[bool]string{true: "right", false: "wrong"}[f["right"] == true]
		if f["right"] != true {
			word += fmt.Sprintf(": %v", f["effects"])
		}
		if e, ok := f["ERROR"].(string); ok {
			word += "; error: " + e[:min(len(e), 60)]
		}
		return word
	}
	fmt.Printf("| %s | %s | %s | | |\n", title, say("pizza"), say("deep"))
}

// loads are the least and the most load of all rows.
func (c *comparison) loads() string {
	var list []float64
	for _, rows := range c.rows {
		for _, f := range rows {
			var v float64
			if _, err := fmt.Sscan(fmt.Sprint(f["load"]), &v); err == nil {
				list = append(list, v)
			}
		}
	}
	slices.Sort(list)
	return fmt.Sprintf("%.1f to %.1f, median %.1f", list[0], list[len(list)-1], list[len(list)/2])
}
