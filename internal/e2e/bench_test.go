//go:build bench

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBench prints the figures that `make bench` promises. Machines are noisy:
// compare ratios within one run, and the disk's own sync time beside them.
func TestBench(t *testing.T) {
	fmt.Printf("\n%d cores, %s/%s\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	sync := benchDisk(t)
	benchStart(t)
	benchLatency(t, sync)
	benchSubmissions(t)
	benchSteps(t)
	benchWaiting(t)
}

func figure(name, format string, args ...any) {
	fmt.Printf("%-52s %s\n", name, fmt.Sprintf(format, args...))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

func percentile(list []time.Duration, p int) time.Duration {
	slices.Sort(list)
	return list[(len(list)-1)*p/100]
}

// benchDisk measures an append of 4 KiB with a sync, as the store does.
func benchDisk(t *testing.T) time.Duration {
	f, err := os.Create(filepath.Join(t.TempDir(), "sync"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []time.Duration
	for range 300 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		list = append(list, time.Since(began))
	}
	figure("disk: append 4 KiB and sync, p50 / p99", "%s / %s", ms(percentile(list, 50)), ms(percentile(list, 99)))
	return percentile(list, 50)
}

// rss is the process's resident memory, in MB.
func (s *server) rss() float64 { return s.status("VmRSS:") }

// status is a line of the process's status, in MB.
func (s *server) status(line string) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		s.tb.Skip("no /proc: memory is not measured here")
	}
	_, rest, _ := strings.Cut(string(b), line)
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		s.tb.Fatal(err)
	}
	return float64(kb) / 1024
}

// cpu is user and system time used so far.
func (s *server) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		s.tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	var ticks int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			s.tb.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// commits reads the store's own count.
func (s *server) commits() int {
	_, body := httpGet(s.tb, s.endpoints.Web+"/metrics")
	for _, line := range strings.Split(body, "\n") {
		if value, ok := strings.CutPrefix(line, "pizza_store_commits_total "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				s.tb.Fatal(err)
			}
			return n
		}
	}
	s.tb.Fatalf("no pizza_store_commits_total in /metrics:\n%s", body)
	return 0
}

func smtpLine(t *testing.T, s *server) *wire {
	l := dialWire(t, s.endpoints.SMTP)
	l.until("220 ")
	l.send("EHLO bench\r\n")
	l.until("250 ")
	l.send("AUTH PLAIN " + plain("me", readPasswordFile(t, s)) + "\r\n")
	l.until("235 ")
	return l
}

var benchMail atomic.Int64

// submit sends one message and returns when the last byte was written.
func (l *wire) submit(body string) time.Time {
	l.send("MAIL FROM:<me@localhost>\r\nRCPT TO:<pizza@localhost>\r\nDATA\r\n")
	l.until("354 ")
	id := benchMail.Add(1) // the same mail twice would be one task
	l.send(fmt.Sprintf("From: me@localhost\r\nTo: pizza@localhost\r\nSubject: bench\r\nMessage-ID: <%d@bench.example>\r\n\r\n%s\r\n.\r\n", id, body))
	return time.Now()
}

// benchLatency is the time from the end of DATA to EXISTS at an idle client.
func benchLatency(t *testing.T, sync time.Duration) {
	s := startServer(t)
	in := dialWire(t, s.endpoints.IMAP)
	in.until("* OK")
	in.send("a LOGIN me " + readPasswordFile(t, s) + "\r\nb SELECT INBOX\r\nc IDLE\r\n")
	in.until("+ ")
	out := smtpLine(t, s)
	var list []time.Duration
	for range 300 {
		began := out.submit("hello, nothing to do")
		for {
			if strings.Contains(in.until("* "), " EXISTS") {
				break
			}
		}
		list = append(list, time.Since(began))
		out.until("250 ")
	}
	p50 := percentile(list, 50)
	figure("end of DATA to EXISTS at an idle client, p50 / p99", "%s / %s", ms(p50), ms(percentile(list, 99)))
	figure("  of that, over one sync of the disk, p50", "%s", ms(p50-sync))
	figure("memory after 300 tasks", "%.1f MB", s.rss())
}

// benchSubmissions counts durable submissions a second.
func benchSubmissions(t *testing.T) {
	for _, conns := range []int{1, 32} {
		s := startServer(t)
		lines := make([]*wire, conns)
		for i := range lines {
			lines[i] = smtpLine(t, s)
		}
		const total = 960
		began := time.Now()
		var wait sync.WaitGroup
		for _, l := range lines {
			wait.Go(func() {
				for range total / conns {
					l.submit("say thank you")
					l.until("250 ")
				}
			})
		}
		wait.Wait()
		figure(fmt.Sprintf("durable submissions a second, %d connections", conns), "%.0f", total/time.Since(began).Seconds())
	}
}

// benchSteps is the cost of one agent step: a model call with one tool call.
func benchSteps(t *testing.T) {
	dir, grant := grantFolder(t)
	_ = dir
	s := startServer(t, "--grant", grant)
	const runs, steps = 50, 8
	body := strings.Repeat(`call read_file {"path":"/local/orders/today.txt"}`+"\r\n", steps)
	out := smtpLine(t, s)
	cpu, commits, began := s.cpu(), s.commits(), time.Now()
	for range runs {
		out.submit(body)
		out.until("250 ")
	}
	s.await("inbox", "result", runs)
	took := time.Since(began)
	figure("agent steps a second (8 steps a run, 50 runs)", "%.0f", runs*steps/took.Seconds())
	figure("CPU per step, submission and result included", "%s", ms((s.cpu()-cpu)/(runs*steps)))
	figure("commits per step, submission and result included", "%.2f", float64(s.commits()-commits)/(runs*steps))
}

// benchWaiting is the memory of 1,000 runs that wait for a decision.
func benchWaiting(t *testing.T) {
	_, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	figure("memory idle, after the start", "%.1f MB", s.rss())
	out := smtpLine(t, s)
	for i := range 1000 {
		out.submit(fmt.Sprintf(`call write_file {"path":"/local/orders/%d.txt","content":"x"}`, i))
		out.until("250 ")
	}
	s.await("action", "approval", 1000)
	pause(2 * time.Second)
	figure("memory with 1,000 waiting runs", "%.1f MB", s.rss())
	s.stop()
	figure("start with 1,000 waiting runs", "%s", ms(s.start()))
	figure("memory after that start", "%.1f MB", s.rss())
}

// benchStart is the start time with 10,000 messages.
func benchStart(t *testing.T) {
	s := startServer(t)
	in := dialWire(t, s.endpoints.IMAP)
	in.until("* OK")
	in.send("a LOGIN me " + readPasswordFile(t, s) + "\r\n")
	in.until("a OK")
	message := "From: me@localhost\r\nTo: me@localhost\r\nSubject: filler\r\n\r\n" + strings.Repeat("0123456789abcdef\r\n", 200)
	began := time.Now()
	const total, window = 10000, 50
	for i := 0; i < total; i += window {
		for j := range window {
			in.send(fmt.Sprintf("t%d APPEND INBOX {%d+}\r\n%s\r\n", i+j, len(message), message))
		}
		in.until(fmt.Sprintf("t%d OK", i+window-1))
	}
	figure("APPEND a second (one connection, 50 in flight)", "%.0f", total/time.Since(began).Seconds())
	s.stop()
	var list []time.Duration
	for range 5 {
		list = append(list, s.start())
		s.stop()
	}
	figure("start to ready with 10,000 messages, median of 5", "%s", ms(percentile(list, 50)))
}
