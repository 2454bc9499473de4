// Package otel sends spans to an OpenTelemetry collector: OTLP/HTTP with the JSON encoding
// of protobuf (OTLP specification 1.x, "OTLP/HTTP", "JSON Protobuf Encoding"). It stands in
// for the SDK, which costs 7 MB of binary for what these files do.
//
// It promises to be in nobody's way: Send never blocks and never fails. What a collector
// does not take in time is dropped, and the log says how much, once a minute.
//
// Concurrency: Exporter is safe for concurrent use. The package is a leaf.
package otel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Span is one operation that has ended.
type Span struct {
	Trace      [16]byte
	ID, Parent [8]byte // Parent is zero for the root
	Name       string
	Kind       Kind
	Start, End time.Time
	Attrs      []Attr
	Error      string // "": it went well
}

// Kind of a span.
type Kind int

// Kinds (opentelemetry.proto.trace.v1.Span.SpanKind).
const (
	Internal Kind = 1
	Client   Kind = 3
)

// Attr is an attribute of a span.
type Attr struct {
	key   string
	value any
}

// String, Int and Strings make attributes.
func String(key, value string) Attr { return Attr{key, value} }

// Int is an attribute with a number.
func Int(key string, value int) Attr { return Attr{key, value} }

// Strings is an attribute with a list.
func Strings(key string, values ...string) Attr { return Attr{key, values} }

// TraceID is a function of its parts.
func TraceID(parts ...string) (id [16]byte) {
	sum := sha256.Sum256([]byte("trace\x00" + strings.Join(parts, "\x00")))
	copy(id[:], sum[:])
	return id
}

// SpanID is a function of its parts.
func SpanID(parts ...string) (id [8]byte) {
	sum := sha256.Sum256([]byte("span\x00" + strings.Join(parts, "\x00")))
	copy(id[:], sum[:])
	return id
}

// The wire form: ids in hexadecimal, 64 bit numbers as text.
type wireRequest struct {
	ResourceSpans []wireResource `json:"resourceSpans"`
}

type wireResource struct {
	Resource struct {
		Attributes []wireAttr `json:"attributes"`
	} `json:"resource"`
	ScopeSpans []wireScope `json:"scopeSpans"`
}

type wireScope struct {
	Scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	} `json:"scope"`
	Spans []wireSpan `json:"spans"`
}

type wireSpan struct {
	TraceID      string     `json:"traceId"`
	SpanID       string     `json:"spanId"`
	ParentSpanID string     `json:"parentSpanId,omitempty"`
	Name         string     `json:"name"`
	Kind         Kind       `json:"kind"`
	Start        string     `json:"startTimeUnixNano"`
	End          string     `json:"endTimeUnixNano"`
	Attributes   []wireAttr `json:"attributes,omitempty"`
	Status       *wireError `json:"status,omitempty"`
}

type wireError struct {
	Code    int    `json:"code"` // 2: error
	Message string `json:"message,omitempty"`
}

type wireAttr struct {
	Key   string    `json:"key"`
	Value wireValue `json:"value"`
}

type wireValue struct {
	String *string    `json:"stringValue,omitempty"`
	Int    string     `json:"intValue,omitempty"`
	Array  *wireArray `json:"arrayValue,omitempty"`
}

type wireArray struct {
	Values []wireValue `json:"values"`
}

func valueOf(v any) wireValue {
	switch v := v.(type) {
	case int:
		return wireValue{Int: strconv.Itoa(v)}
	case []string:
		list := &wireArray{}
		for _, s := range v {
			list.Values = append(list.Values, valueOf(s))
		}
		return wireValue{Array: list}
	case string:
		v = strings.ToValidUTF8(v, "\uFFFD")
		return wireValue{String: &v}
	}
	return wireValue{}
}

func attrsOf(list []Attr) []wireAttr {
	var out []wireAttr
	for _, a := range list {
		out = append(out, wireAttr{Key: a.key, Value: valueOf(a.value)})
	}
	return out
}

// encode writes a request that holds the spans.
func encode(spans []Span, service, version string) ([]byte, error) {
	var res wireResource
	res.Resource.Attributes = attrsOf([]Attr{String("service.name", service), String("service.version", version)})
	scope := wireScope{}
	scope.Scope.Name, scope.Scope.Version = service, version
	for _, s := range spans {
		w := wireSpan{
			TraceID: hex.EncodeToString(s.Trace[:]), SpanID: hex.EncodeToString(s.ID[:]), Name: s.Name, Kind: s.Kind,
			Start: strconv.FormatInt(s.Start.UnixNano(), 10), End: strconv.FormatInt(s.End.UnixNano(), 10), Attributes: attrsOf(s.Attrs),
		}
		if s.Parent != [8]byte{} {
			w.ParentSpanID = hex.EncodeToString(s.Parent[:])
		}
		if s.Error != "" {
			w.Status = &wireError{Code: 2, Message: s.Error}
		}
		scope.Spans = append(scope.Spans, w)
	}
	res.ScopeSpans = []wireScope{scope}
	return json.Marshal(wireRequest{ResourceSpans: []wireResource{res}})
}
