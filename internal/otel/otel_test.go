package otel

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// collector takes spans on loopback; answers are given out one a request, then 200.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int
	bodies  []string
	headers []http.Header
	got     chan struct{}
}

func newCollector(t *testing.T, answers ...int) *collector {
	c := &collector{answers: answers, got: make(chan struct{}, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		code := http.StatusOK
		if len(c.answers) > 0 {
			code, c.answers = c.answers[0], c.answers[1:]
		}
		c.bodies, c.headers = append(c.bodies, string(b)), append(c.headers, r.Header)
		w.WriteHeader(code)
		c.got <- struct{}{}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) wait(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-c.got:
		case <-time.After(20 * time.Second):
			t.Fatal("nothing was posted")
		}
	}
}

func run(t *testing.T, e *Exporter) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); e.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func TestExport(t *testing.T) {
	t.Parallel()
	c := newCollector(t, http.StatusServiceUnavailable)
	e := New(Options{URL: c.URL + "/v1/traces", Headers: map[string]string{"Api-Key": "k"}, Service: "pizza", Version: "1", Interval: time.Millisecond})
	start := time.Unix(1_800_000_000, 7)
	e.Send(Span{
		Trace: TraceID("a"), ID: SpanID("a", "b"), Parent: SpanID("a"), Name: "chat m", Kind: Client, Start: start, End: start.Add(time.Second),
		Attrs: []Attr{String("gen_ai.request.model", "m\xff"), Int("gen_ai.usage.input_tokens", 12), Strings("gen_ai.response.finish_reasons", "end")},
		Error: "overloaded",
	})
	run(t, e)
	c.wait(t, 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.headers[1].Get("Api-Key") != "k" || c.headers[1].Get("Content-Type") != "application/json" || c.bodies[0] != c.bodies[1] {
		t.Errorf("%v", c.headers)
	}
	var got struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []map[string]any }
			ScopeSpans []struct{ Spans []map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(c.bodies[1]), &got); err != nil {
		t.Fatal(err)
	}
	s := got.ResourceSpans[0].ScopeSpans[0].Spans[0]
	for key, want := range map[string]any{
		"name": "chat m", "kind": 3.0, "startTimeUnixNano": "1800000000000000007", "endTimeUnixNano": "1800000001000000007",
	} {
		if s[key] != want {
			t.Errorf("%s is %v, want %v", key, s[key], want)
		}
	}
	if len(s["traceId"].(string)) != 32 || len(s["spanId"].(string)) != 16 || len(s["parentSpanId"].(string)) != 16 {
		t.Errorf("ids: %v", s)
	}
	for _, want := range []string{`{"key":"service.name","value":{"stringValue":"pizza"}}`, `{"key":"gen_ai.usage.input_tokens","value":{"intValue":"12"}}`,
		`{"arrayValue":{"values":[{"stringValue":"end"}]}}`, `"status":{"code":2,"message":"overloaded"}`, "m\uFFFD"} {
		if !strings.Contains(c.bodies[1], want) {
			t.Errorf("no %s in %s", want, c.bodies[1])
		}
	}
	if e.Dropped() != 0 {
		t.Errorf("%d dropped", e.Dropped())
	}
}

// Nobody who sends waits, whatever the collector does; and what waits goes at the end.
func TestSendNeverWaits(t *testing.T) {
	t.Parallel()
	e := New(Options{URL: "http://127.0.0.1:1/"})
	for range maxQueue + 10 {
		e.Send(Span{})
	}
	if e.Dropped() != 10 {
		t.Errorf("%d dropped, want 10", e.Dropped())
	}
	c := newCollector(t, http.StatusBadRequest)
	last := New(Options{URL: c.URL, Interval: time.Hour})
	for range maxBatch + 1 {
		last.Send(Span{})
	}
	stop := run(t, last)
	c.wait(t, 1) // a full batch, refused for good: it is not tried again
	stop()
	c.wait(t, 1)
	if last.Dropped() != maxBatch {
		t.Errorf("%d dropped, want %d", last.Dropped(), maxBatch)
	}
}
