package otel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Options of an Exporter.
type Options struct {
	URL      string            // where spans are posted
	Headers  map[string]string // of each request; values may be secret
	Service  string            // service.name
	Version  string            // service.version
	Log      *slog.Logger      // nil: nothing is logged
	Client   *http.Client      // nil: one with a timeout of 10 s
	Interval time.Duration     // at most so long a span waits; 0: 5 s
}

const (
	maxQueue  = 4096 // spans that wait; more are dropped
	maxBatch  = 512  // of one request
	tries     = 3    // of one request
	lastWords = 2 * time.Second
)

// Exporter posts spans in batches. Run must run.
type Exporter struct {
	opt     Options
	queue   chan Span
	dropped atomic.Int64
}

// New returns an exporter.
func New(opt Options) *Exporter {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Client == nil {
		opt.Client = &http.Client{Timeout: 10 * time.Second}
	}
	if opt.Interval <= 0 {
		opt.Interval = 5 * time.Second
	}
	return &Exporter{opt: opt, queue: make(chan Span, maxQueue)}
}

// Send hands over a span. It never waits: what has no room is dropped.
func (e *Exporter) Send(s Span) {
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

// Dropped counts the spans that no collector took.
func (e *Exporter) Dropped() int64 { return e.dropped.Load() }

// Run posts until ctx ends, and then for two seconds what is left.
func (e *Exporter) Run(ctx context.Context) {
	tick := time.NewTicker(e.opt.Interval)
	defer tick.Stop()
	var batch []Span
	var told time.Time
	for {
		select {
		case s := <-e.queue:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
			defer cancel()
			e.flush(last, batch, &told)
			return
		}
		e.post(ctx, batch, &told)
		batch = nil
	}
}

// flush posts a batch and what waits.
func (e *Exporter) flush(ctx context.Context, batch []Span, told *time.Time) {
	for {
		select {
		case s := <-e.queue:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
			e.post(ctx, batch, told)
			batch = nil
		default:
			e.post(ctx, batch, told)
			return
		}
	}
}

// post sends a batch, or drops it.
func (e *Exporter) post(ctx context.Context, batch []Span, told *time.Time) {
	if len(batch) == 0 {
		return
	}
	body, err := encode(batch, e.opt.Service, e.opt.Version)
	for try := 1; err == nil; try++ {
		var again bool
		again, err = e.try(ctx, body)
		if err == nil {
			return
		}
		if !again || try == tries {
			break
		}
		err = nil
		select {
		case <-time.After(time.Duration(try) * time.Second):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	e.dropped.Add(int64(len(batch)))
	if time.Since(*told) > time.Minute {
		*told = time.Now()
		e.opt.Log.LogAttrs(ctx, slog.LevelWarn, "traces are not taken", slog.Any("err", err), slog.Int64("dropped", e.dropped.Load()))
	}
}

// try makes one request; again is whether another may do (OTLP/HTTP, "Retryable Response
// Codes").
func (e *Exporter) try(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.opt.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range e.opt.Headers {
		req.Header.Set(k, v)
	}
	resp, err := e.opt.Client.Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // to use the connection again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("otel: the collector answers %s", resp.Status)
}
