//go:build bench

package langgraph

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// usage is what this process has used so far.
type usage struct {
	at      time.Time
	cpu     time.Duration // user and system
	system  time.Duration
	written int64 // octets passed to write(2)
}

func used() usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // it has no way to fail for this process
	}
	return usage{at: time.Now(), cpu: time.Duration(r.Utime.Nano() + r.Stime.Nano()), system: time.Duration(r.Stime.Nano()), written: procLine("/proc/self/io", "wchar:")}
}

// since puts what was used since u into f: in all, and a step.
func (u usage) since(f figures, steps int) {
	now := used()
	f["wall_ms"], f["cpu_ms"] = millis(now.at.Sub(u.at)), millis(now.cpu-u.cpu)
	f["wall_per_step"], f["cpu_per_step"] = millis(now.at.Sub(u.at))/float64(steps), millis(now.cpu-u.cpu)/float64(steps)
	f["system_per_step"] = millis(now.system-u.system) / float64(steps)
	f["written_MB"] = float64(now.written-u.written) / 1e6
}

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// procLine is the number of a line of a file in /proc, 0 where there is none.
func procLine(file, name string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut("\n"+string(b), "\n"+name)
	if !ok {
		return 0
	}
	n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return n
}

// memory is a line of the status of a process, in MB as the baseline counts them (2^20).
func memory(pid, name string) float64 {
	return float64(procLine("/proc/"+pid+"/status", name+":")) / 1024
}

// peak watches RssAnon, which has no high-water mark of its own, until stop.
type peak struct {
	top  atomic.Int64
	quit chan struct{}
	done chan struct{}
}

func watchPeak() *peak {
	p := &peak{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for {
			p.top.Store(max(p.top.Load(), procLine("/proc/self/status", "RssAnon:")))
			select {
			case <-p.quit:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return p
}

// stop is the most seen, in MB.
func (p *peak) stop() float64 {
	close(p.quit)
	<-p.done
	return float64(p.top.Load()) / 1024
}

// diskUse is how much of the disk the files below root take, as du counts it.
func diskUse(root string) int64 {
	var n int64
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	if err != nil {
		panic(fmt.Sprint("look at the store: ", err)) // it is in a folder of ours
	}
	return n
}

// diskSync times 300 appends of 4 KiB with fdatasync.
func diskSync(dir string) (p50, p99 time.Duration, err error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var list []time.Duration
	for range 300 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, 0, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, 0, err
		}
		list = append(list, time.Since(began))
	}
	slices.Sort(list)
	return list[150], list[297], nil
}

// load is the load average of the last minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Fields(string(b))[0]
}
