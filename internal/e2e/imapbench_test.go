//go:build bench

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestIMAPBench measures ./pizza and Dovecot with one client on one machine, by turns,
// and prints the medians and their ratios: machines are noisy, the ratio of one run is
// what counts. BENCH_N messages (10,000), BENCH_ROUNDS rounds (3).
func TestIMAPBench(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("Dovecot, the reference, is started as root")
	}
	program(t, "dovecot")
	client := buildIMAPBench(t)
	n := benchSetting(t, "BENCH_N", 10_000)
	dovecot := &benched{name: "Dovecot", addr: startDovecot(t), user: "bench@sdbox", pass: "pass", match: "dovecot", messages: n}
	s := newServer(t)
	s.settings(`{"limits": {"connections_per_account": 100}}`)
	s.start()
	pizza := &benched{name: "Pizza", addr: s.endpoints.IMAP, user: "me", pass: readPasswordFile(t, s), match: s.root, messages: n}
	both := []*benched{dovecot, pizza}
	round := func(args ...string) {
		for _, b := range both {
			b.measure(t, client, args...)
		}
		both[0], both[1] = both[1], both[0] // who came first comes second in the next round
	}
	round("-phases", "fill")
	for range benchSetting(t, "BENCH_ROUNDS", 3) {
		round("-phases", "read,append", "-conc", "1", "-appends", "300")
		round("-phases", "append", "-conc", "8", "-appends", "200")
		round("-phases", "append", "-conc", "64", "-appends", "192")
		round("-phases", "idle", "-idleconns", "40")
	}
	compare(pizza, dovecot)
	figure("memory of Pizza, anonymous", "%.1f MB", s.anon())
}

func benchSetting(t *testing.T, name string, normal int) int {
	v := os.Getenv(name)
	if v == "" {
		return normal
	}
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%s is not a number", name, v)
	}
	return n
}

func buildIMAPBench(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "imapbench")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = shared(t, "bench/imap")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("imapbench: %v\n%s", err, out)
	}
	return path
}

// startDovecot starts the reference server and returns its address.
func startDovecot(t *testing.T) string {
	dir, err := os.MkdirTemp("", "dovecot") // not below t.TempDir, which others than root cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command("sh", shared(t, "bench/imap/dovecot.sh"), dir, port)
	cmd.Stdout, cmd.Stderr = &log, &log
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // ended by the signal
	})
	for range 100 {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return addr
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("Dovecot does not answer:\n%s", &log)
	return ""
}

// benched is a server under measurement.
type benched struct {
	name, addr, user, pass string
	match                  string // what its processes have in their command lines
	messages               int    // in the mailbox that is read
	order                  []string
	values                 map[string][]float64
}

// measure runs the client once and adds what it found.
func (b *benched) measure(t *testing.T, client string, args ...string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "rows.json")
	args = append(args, "-n", strconv.Itoa(b.messages), "-addr", b.addr, "-user", b.user, "-pass", b.pass, "-procmatch", b.match, "-json", out)
	if log, err := exec.Command(client, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", b.name, err, log)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var res struct{ Rows []benchRow }
	if err := json.Unmarshal(data, &res); err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Rows {
		if strings.HasPrefix(r.Note, "FAILED") {
			t.Errorf("%s: %s: %s", b.name, r.Name, r.Note)
		}
		if r.Name == "COPY 1:1000" { // the client copies what there is
			r.Name = fmt.Sprintf("COPY 1:%d", min(1000, b.messages))
		}
		r.each(b.add)
	}
}

// benchRow is a row as the client writes it.
type benchRow struct {
	Name   string
	WallMS float64 `json:"wall_ms"`
	CPUMS  float64 `json:"server_cpu_ms"`
	Rate   float64
	Unit   string
	Note   string
}

var p50 = regexp.MustCompile(`([A-Za-z]*(?:->[A-Z]+)?) ?p50 ([0-9.µa-z]+)`)

// each gives the figures of a row, all of them the better the smaller they are.
func (r benchRow) each(add func(name string, value float64)) {
	if r.Unit == "KB/conn" {
		if r.Rate > 0 { // else the sessions took less than the server gave back meanwhile: no figure
			add(r.Name+", KB each", r.Rate)
		}
		return
	}
	latencies := p50.FindAllStringSubmatch(r.Note, -1)
	for _, m := range latencies {
		if d, err := time.ParseDuration(m[2]); err == nil {
			add(strings.TrimSpace(r.Name+": "+m[1]+" p50")+", ms", d.Seconds()*1000)
		}
	}
	if len(latencies) == 0 && r.WallMS > 0 {
		add(r.Name+", ms", r.WallMS)
	}
	if r.CPUMS >= 50 { // measured in steps of 10 ms
		add(r.Name+", ms of CPU", r.CPUMS)
	}
}

func (b *benched) add(name string, value float64) {
	if b.values == nil {
		b.values = map[string][]float64{}
	}
	if b.values[name] == nil {
		b.order = append(b.order, name)
	}
	b.values[name] = append(b.values[name], value)
}

// compare prints the medians of both and how many times the reference's ours are.
func compare(ours, reference *benched) {
	fmt.Printf("\n%-58s %12s %12s %8s\n", "", ours.name, reference.name, "ratio")
	for _, name := range ours.order {
		if reference.values[name] == nil {
			continue
		}
		a, b := median(ours.values[name]), median(reference.values[name])
		fmt.Printf("%-58s %12.2f %12.2f %8.2f\n", name, a, b, a/b)
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// anon is the process's memory without what it maps of files, in MB.
func (s *server) anon() float64 { return s.status("RssAnon:") }
