package web

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Metric is one number for Prometheus.
type Metric struct {
	Name    string // as in pizza_runs_waiting
	Help    string // one sentence
	Counter bool   // it only grows; else a gauge
	Value   float64
}

// health answers 200 when the server takes mail, else 503.
func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !s.ready() {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, `{"status":"starting"}`)
		return
	}
	fmt.Fprintln(w, `{"status":"ok"}`)
}

func (s *server) ready() bool { return s.opts.Ready == nil || s.opts.Ready() }

var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// metrics answers in the Prometheus text format, version 0.0.4.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	list := s.ownMetrics()
	if s.opts.Metrics != nil {
		list = append(list, s.opts.Metrics()...)
	}
	var b bytes.Buffer
	for _, m := range list {
		if !metricName.MatchString(m.Name) {
			s.opts.Log.Error("web metric", "err", fmt.Sprintf("%q is no metric name", m.Name))
			continue
		}
		kind := "gauge"
		if m.Counter {
			kind = "counter"
		}
		help := strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(m.Help)
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s %s\n", m.Name, help, m.Name, kind, m.Name, strconv.FormatFloat(m.Value, 'g', -1, 64))
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(b.Bytes())
}

func (s *server) ownMetrics() []Metric {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	ready := 0.0
	if s.ready() {
		ready = 1
	}
	return []Metric{
		{Name: "pizza_ready", Help: "1 when the server takes mail.", Value: ready},
		{Name: "pizza_goroutines", Help: "Goroutines now.", Value: float64(runtime.NumGoroutine())},
		{Name: "pizza_heap_bytes", Help: "Memory in use on the heap, in bytes.", Value: float64(mem.HeapAlloc)},
		{Name: "pizza_http_requests_total", Help: "HTTP requests since the start.", Counter: true, Value: float64(s.requests.Load())},
	}
}
