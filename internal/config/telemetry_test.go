package config

import (
	"maps"
	"strings"
	"testing"
)

func TestTraces(t *testing.T) {
	t.Parallel()
	const file = `{"telemetry": {"otlp": "http://localhost:4318"}}`
	for _, tt := range []struct {
		name, file string
		env        map[string]string
		url, from  string
		headers    map[string]string
	}{
		{"off", "{}", nil, "", "default", nil},
		{"setting", file, nil, "http://localhost:4318/v1/traces", "settings.json:1:24", nil},
		{"path", `{"telemetry": {"otlp": "https://c.example/otlp/"}}`, nil, "https://c.example/otlp/v1/traces", "settings.json:1:24", nil},
		{"environment first", file, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=y"},
			"http://c:4318/v1/traces", "OTEL_EXPORTER_OTLP_ENDPOINT", map[string]string{"api-key": "a b", "x": "y"}},
		{"of traces, as it is", file, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/in"},
			"http://t/in", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", nil},
		{"disabled", file, map[string]string{"OTEL_SDK_DISABLED": "true"}, "", "settings.json:1:24", nil},
	} {
		r, err := Resolve(Sources{Root: root(t, tt.file), Getenv: func(k string) string { return tt.env[k] }})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if r.Traces.URL != tt.url || r.From["telemetry.otlp"] != tt.from || !maps.Equal(r.Traces.Headers, tt.headers) {
			t.Errorf("%s: %+v from %s", tt.name, r.Traces, r.From["telemetry.otlp"])
		}
	}
	for _, wrong := range []string{"localhost:4318", "grpc://localhost", "http://me:pw@localhost"} {
		_, err := Resolve(Sources{Root: root(t, `{"telemetry": {"otlp": "`+wrong+`"}}`), Getenv: noEnv})
		if err == nil || !strings.Contains(err.Error(), "telemetry.otlp") || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
