package web

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Metric is one number for Prometheus.
type Metric struct {
	Name    string // as in pizza_runs_waiting
	Help    string // one sentence
	Counter bool   // it only grows; else a gauge
	Labels  [][2]string
	Value   float64
	// Buckets make it a histogram, of which Value is the sum; the last one, without a
	// bound, counts all.
	Buckets []MetricBucket
}

// MetricBucket counts what was at most UpTo; 0 is no bound.
type MetricBucket struct {
	UpTo  float64
	Count uint64
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
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	list := s.ownMetrics()
	if s.opts.Metrics != nil {
		list = append(list, s.opts.Metrics(r.Context())...)
	}
	var b bytes.Buffer
	told := ""
	for _, m := range list {
		if !metricName.MatchString(m.Name) {
			s.opts.Log.Error("web metric", "err", fmt.Sprintf("%q is no metric name", m.Name))
			continue
		}
		if m.Name != told { // those of one name stand together
			told = m.Name
			fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.Name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(m.Help), m.Name, m.kind())
		}
		m.write(&b)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(b.Bytes())
}

func (m Metric) kind() string {
	switch {
	case m.Buckets != nil:
		return "histogram"
	case m.Counter:
		return "counter"
	}
	return "gauge"
}

// write writes the samples of a metric.
func (m Metric) write(b *bytes.Buffer) {
	if m.Buckets == nil {
		fmt.Fprintf(b, "%s%s %s\n", m.Name, labels(m.Labels), number(m.Value))
		return
	}
	var count uint64
	for _, k := range m.Buckets {
		bound := "+Inf"
		if k.UpTo != 0 {
			bound = number(k.UpTo)
		}
		count = k.Count
		fmt.Fprintf(b, "%s_bucket%s %d\n", m.Name, labels(append(slices.Clip(m.Labels), [2]string{"le", bound})), k.Count)
	}
	fmt.Fprintf(b, "%s_sum%s %s\n%s_count%s %d\n", m.Name, labels(m.Labels), number(m.Value), m.Name, labels(m.Labels), count)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// labels are the names and values between braces; a value is quoted.
func labels(list [][2]string) string {
	if len(list) == 0 {
		return ""
	}
	quote := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	var parts []string
	for _, l := range list {
		parts = append(parts, l[0]+`="`+quote.Replace(strings.ToValidUTF8(l[1], "\uFFFD"))+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
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
