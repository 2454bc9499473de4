package config

import (
	"net/url"
	"strings"
)

// Telemetry says where traces go. Without an address none are made.
type Telemetry struct {
	// OTLP is the address of an OpenTelemetry collector that takes OTLP over HTTP, as in
	// http://localhost:4318.
	OTLP string `json:"otlp,omitempty"`
}

// Traces are where spans are posted, and with what.
type Traces struct {
	URL     string            // "": nowhere
	Headers map[string]string // values may be secret
}

// tracesPath is where a collector takes spans (OTLP/HTTP specification, "Request").
const tracesPath = "/v1/traces"

// traces lays the standard variables over the setting (OpenTelemetry specification,
// "OTLP exporter configuration"): OTEL_SDK_DISABLED, OTEL_EXPORTER_OTLP_ENDPOINT,
// OTEL_EXPORTER_OTLP_HEADERS, and those of TRACES in their place.
func (r *Resolved) traces(getenv func(string) string, doc *document, p *problems) Traces {
	const key = "telemetry.otlp"
	r.From[key] = "default"
	if off, ok := doc.keys[key]; ok {
		r.From[key] = doc.at(off)
	}
	address, whole := r.Telemetry.OTLP, false
	for _, env := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if v := getenv(env); v != "" {
			address, r.From[key], whole = v, env, strings.Contains(env, "TRACES")
		}
	}
	if address == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return Traces{}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		p.add(key, "must be a URL that begins with http:// or https:// and has no user, as in http://localhost:4318")
		return Traces{}
	}
	if !whole && !strings.HasSuffix(u.Path, tracesPath) {
		u.Path = strings.TrimSuffix(u.Path, "/") + tracesPath
	}
	t := Traces{URL: u.String(), Headers: map[string]string{}}
	for _, env := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(env), ",") {
			name, value, ok := strings.Cut(pair, "=")
			if decoded, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
				t.Headers[strings.TrimSpace(name)] = decoded
			}
		}
	}
	return t
}
