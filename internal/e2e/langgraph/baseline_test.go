//go:build bench

package langgraph

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// packages of the baseline, in the versions that its README measured. They are installed
// into a temporary folder, which goes afterwards, or into the one that BENCH_BASELINE names,
// where they stay for the next time.
var packages = []string{
	"deepagents@1.14.1", "langchain@1.5.14", "@langchain/core@1.4.0",
	"@langchain/langgraph@1.7.3", "@langchain/langgraph-checkpoint-sqlite@1.0.4", "better-sqlite3@12.11.1",
	"hono@4.13.19", "@hono/node-server@2.1.9", "zod@4.6.7",
}

// baseline is the other side: its scripts, seen through links in a folder of ours, so that
// they find their packages there and not where they lie.
type baseline struct {
	t   *testing.T
	dir string
	env []string
}

// newBaseline installs it, or skips the test with the reason.
func newBaseline(t *testing.T) *baseline {
	scripts := filepath.Join(os.Getenv("SHARED"), "bench", "langgraph")
	if _, err := os.Stat(filepath.Join(scripts, "w1.mjs")); err != nil {
		t.Skip("the comparison is skipped: SHARED names no folder with bench/langgraph")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the comparison is skipped: there is no " + program)
		}
	}
	b := &baseline{t: t, dir: os.Getenv("BENCH_BASELINE"),
		env: append(os.Environ(), "NODE_OPTIONS=--preserve-symlinks --preserve-symlinks-main")}
	if b.dir == "" {
		b.dir = t.TempDir()
	}
	b.link(scripts)
	b.install()
	if out, err := b.command("node", "-e", `require("better-sqlite3")(":memory:")`).CombinedOutput(); err != nil {
		t.Skipf("the comparison is skipped: better-sqlite3 has no program for this machine: %v\n%s", err, out)
	}
	return b
}

// link puts links to the scripts into the folder.
func (b *baseline) link(scripts string) {
	list, err := filepath.Glob(filepath.Join(scripts, "*.mjs"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, file := range list {
		link := filepath.Join(b.dir, filepath.Base(file))
		_ = os.Remove(link) // of the last time
		if err := os.Symlink(file, link); err != nil {
			b.t.Fatal(err)
		}
	}
}

// install gets the packages, unless the folder has just these.
func (b *baseline) install() {
	list, done := strings.Join(packages, " "), filepath.Join(b.dir, "installed")
	if have, err := os.ReadFile(done); err == nil && string(have) == list {
		return
	}
	if err := os.WriteFile(filepath.Join(b.dir, "package.json"), []byte(`{"name":"baseline","private":true,"type":"module"}`), 0o600); err != nil {
		b.t.Fatal(err)
	}
	npm := b.command("npm", append([]string{"install", "--no-audit", "--no-fund", "--save-exact"}, packages...)...)
	if out, err := npm.CombinedOutput(); err != nil {
		b.t.Skipf("the comparison is skipped: npm install: %v\n%s", err, out)
	}
	if err := os.WriteFile(done, []byte(list), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *baseline) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	return cmd
}

// lines runs a script and returns what it prints as JSON.
func (b *baseline) lines(args ...string) []figures {
	b.t.Helper()
	cmd := b.command("node", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("node %v: %v\n%s%s", args, err, out, stderr.Bytes())
	}
	return jsonLines(out)
}

// one is the figures of a script that measures one thing.
func (b *baseline) one(args ...string) figures {
	b.t.Helper()
	list := b.lines(args...)
	if len(list) == 0 {
		b.t.Fatalf("node %v printed no figures", args)
	}
	return list[len(list)-1]
}

// db is a path for the store of a script below dir, with nothing there.
func (b *baseline) db(dir string) string {
	b.t.Helper()
	sub, err := os.MkdirTemp(dir, "baseline")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { os.RemoveAll(sub) })
	return filepath.Join(sub, "db")
}

// drop frees the room of a store that was measured.
func drop(db string) { os.RemoveAll(filepath.Dir(db)) }

func jsonLines(out []byte) []figures {
	var list []figures
	for line := range bytes.Lines(out) {
		var f figures
		if json.Unmarshal(line, &f) == nil {
			list = append(list, f)
		}
	}
	return list
}

// ours runs our side, under a program before it if there is one.
func ours(t *testing.T, under []string, args ...any) figures {
	t.Helper()
	cmd := oursCommand(under, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	list := jsonLines(out)
	if err != nil || len(list) == 0 {
		t.Fatalf("our side of %v: %v\n%s%s", args, err, out, stderr.Bytes())
	}
	return list[len(list)-1]
}

func oursCommand(under []string, args ...any) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err) // it runs
	}
	line := append(under[:len(under):len(under)], self)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), sideVar+"="+strings.TrimSpace(fmt.Sprintln(args...)))
	return cmd
}

var syncLine = regexp.MustCompile(`(?m)^\s*\S+\s+\S+\s+\S+\s+(\d+).*\b(?:fsync|fdatasync)$`)

// syncsOf counts the forced writes in a summary of strace.
func syncsOf(file string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return -1
	}
	n := 0
	for _, m := range syncLine.FindAllStringSubmatch(string(b), -1) {
		k, _ := strconv.Atoi(m[1]) // the pattern has digits there
		n += k
	}
	return n
}
