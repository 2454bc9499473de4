package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pizza/providers"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		want   providers.Class
		text   string // in the message
	}{
		{401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, providers.Auth, "Incorrect"},
		{402, `{"error":{"message":"Insufficient credits","code":402}}`, providers.Auth, "credits"},
		{403, `{"error":{"message":"no access to model","type":"permission_error"}}`, providers.Auth, ""},
		{403, `{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["x"]}}}`, providers.Filtered, "flagged"},
		{400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, providers.Auth, "not valid"},
		{429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, providers.RateLimit, ""},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, providers.Auth, "quota"},
		{429, `{"error":{"message":"Request too large on tokens per min: please reduce the length"}}`, providers.RateLimit, ""},
		{500, `{"error":{"message":"The server had an error","type":"server_error"}}`, providers.Overloaded, ""},
		{502, `<html><head><title>502 Bad Gateway</title></head></html>`, providers.Overloaded, "web page: 502 Bad Gateway"},
		{503, ``, providers.Overloaded, "Service Unavailable"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, providers.Overloaded, "Overloaded"},
		{524, `error code: 524`, providers.Overloaded, "error code: 524"},
		{408, ``, providers.Timeout, ""},
		{504, ``, providers.Timeout, ""},
		{413, `too big`, providers.ContextLength, ""},
		{400, `{"error":{"message":"x","code":"context_length_exceeded"}}`, providers.ContextLength, ""},
		{400, `{"error":"the input length exceeds the context length"}`, providers.ContextLength, ""},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000"}}`, providers.ContextLength, ""},
		{400, `{"object":"error","message":"Please reduce the length of the messages","type":"BadRequestError","code":400}`, providers.ContextLength, ""},
		{500, `{"error":{"code":500,"message":"the request exceeds the available context size"}}`, providers.ContextLength, ""},
		{400, `{"error":{"message":"The response was filtered due to the prompt triggering content management policy","code":"content_filter"}}`, providers.Filtered, ""},
		{400, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, providers.Invalid, "field required"},
		{404, `{"error":"model 'x' not found, try pulling it first"}`, providers.Invalid, "try pulling"},
		{404, `404 page not found`, providers.Invalid, "page not found"},
		{301, `<html><title>Moved</title></html>`, providers.Invalid, "redirects"},
		// Within a stream or a 200 body.
		{0, `{"error":{"code":502,"message":"Upstream error","metadata":{"raw":"died","provider_name":"X"}}}`, providers.Overloaded, "Upstream error: died"},
		{0, `{"error":{"code":429,"message":"slow down"}}`, providers.RateLimit, ""},
		{0, `{"error":{"type":"overloaded_error","message":"busy"}}`, providers.Overloaded, ""},
		{0, `{"error":{"type":"rate_limit_error","message":"busy"}}`, providers.RateLimit, ""},
		{0, `{"error":"request timed out"}`, providers.Timeout, ""},
		{0, `{"error":"too many requests"}`, providers.RateLimit, ""},
		{0, `{"error":{"message":"bad schema","type":"invalid_request_error"}}`, providers.Invalid, ""},
		{0, `{"error":{"message":"something"}}`, providers.Overloaded, "something"},
	} {
		e := ParseFailure([]byte(tt.body)).Error(tt.status, nil, Redact{})
		if e.Class != tt.want || !strings.Contains(e.Message, tt.text) {
			t.Errorf("%d %s\n got %s %q, want %s %q", tt.status, tt.body, e.Class, e.Message, tt.want, tt.text)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second}, {"Retry-After", "0.5", 500 * time.Millisecond}, {"Retry-After", "-3", 0}, {"Retry-After", "soon", 0},
		{"Retry-After", "", 0}, {"Retry-After", "NaN", 0}, {"Retry-After", "1e300", maxRetryAfter}, {"Retry-After", "+Inf", maxRetryAfter},
		{"Retry-After", "Tue, 01 Dec 2026 12:01:30 GMT", 90 * time.Second}, {"Retry-After", "Tue, 01 Dec 2026 11:00:00 GMT", 0},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond}, {"Retry-After-Ms", "0", 0}, {"Retry-After-Ms", "x", 0},
		{"Retry-After", "0", 0}, {"Retry-After", "1382400", 16 * 24 * time.Hour}, {"Retry-After", " 7 ", 7 * time.Second},
		{"Retry-After", "Thu, 17 Dec 2026 12:00:00 GMT", 16 * 24 * time.Hour},
		{"Retry-After", "Tuesday, 01-Dec-26 12:01:30 GMT", 90 * time.Second}, {"Retry-After", "Tue Dec  1 12:01:30 2026", 90 * time.Second},
	} {
		h := http.Header{}
		h.Set(tt.name, tt.value)
		if got := RetryAfter(h, now); got != tt.want {
			t.Errorf("%s %q = %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
	h := http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"1"}}
	if got := RetryAfter(h, now); got != 250*time.Millisecond {
		t.Errorf("milliseconds do not win: %v", got)
	}
	h = http.Header{"Retry-After": {"Tue, 01 Dec 2026 13:00:30 GMT"}, "Date": {"Tue, 01 Dec 2026 13:00:00 GMT"}}
	if got := RetryAfter(h, now); got != 30*time.Second {
		t.Errorf("the clock of the server does not count: %v", got)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	r := Redact{Key: "s3cr3t/key"}
	for in, want := range map[string]string{
		"wrong key s3cr3t/key, sorry":                  "wrong key [key], sorry",
		"Incorrect API key: sk-proj-abcdefghijklmnop.": "Incorrect API key: [key].",
		"Authorization: Bearer abcdef.ghijkl":          "Authorization: [key]",
		"two\r\nlines\x00 and \x1b[31mred":             "two lines and [31mred",
	} {
		if got := r.Clean(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got := r.Clean(strings.Repeat("ü", 5000)); len([]rune(got)) > 1100 {
		t.Errorf("%d characters", len([]rune(got)))
	}
}

func FuzzParseFailure(f *testing.F) {
	f.Add([]byte(`[{"error":{"code":1,"message":null,"metadata":{"raw":{}}}}]`), 400)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		if e := ParseFailure(body).Error(status, nil, Redact{Key: "abcd"}); e.Class == "" || strings.Contains(e.Message, "abcd") {
			t.Errorf("%+v", e)
		}
	})
}
