package web

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func testInfo() ConnectInfo {
	return ConnectInfo{
		User: "me", Domain: "localhost", IMAP: "2143", IMAPS: "2993", SMTP: "2587", SMTPS: "2465",
		CAPath: "/data/tls/ca.pem", Fingerprint: "AB:CD",
	}
}

func testOptions() Options { return Options{Info: testInfo} }

// get asks a console for a path as a browser on this machine would.
func get(t *testing.T, o Options, path string) *http.Response {
	t.Helper()
	return do(t, o, httptest.NewRequest(http.MethodGet, "http://localhost:2080"+path, nil))
}

func do(t *testing.T, o Options, r *http.Request) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	New(o).ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestConnectPage(t *testing.T) {
	t.Parallel()
	r := get(t, testOptions(), "/")
	page := bodyOf(t, r)
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("status %d, type %q", r.StatusCode, r.Header.Get("Content-Type"))
	}
	for _, want := range []string{
		"2143", "2993", "2587", "2465", "me@localhost", "pizza@localhost", "pizza password me", "/data/tls/ca.pem", "AB:CD",
		"Thunderbird", "Apple Mail", "mutt", "imaps://me@localhost:2993/", "smtps://me@localhost:2465/",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	// Works without JavaScript, and under a policy that allows none and no inline style.
	if m := regexp.MustCompile(`(?i)<script|javascript:|\son[a-z]+=|style=|<style`).FindString(page); m != "" {
		t.Errorf("the page has %q", m)
	}
}

func TestConnectPageWithServersOff(t *testing.T) {
	t.Parallel()
	o := Options{Info: func() ConnectInfo {
		return ConnectInfo{User: "ann", Domain: "pizza.localhost", Host: "127.0.0.1", IMAP: "1", SMTP: "2", Password: "/opt/pizza password ann"}
	}}
	page := bodyOf(t, get(t, o, "/"))
	for _, want := range []string{"imap://ann@127.0.0.1:1/", "smtp://ann@127.0.0.1:2/", "port 1, STARTTLS", "port 2, STARTTLS", "`/opt/pizza password ann`"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if strings.Contains(page, "ca.pem") || strings.Contains(page, "certificate_file") {
		t.Error("the page speaks of a certificate that is not there")
	}
}

func TestWhatIsShownIsEscaped(t *testing.T) {
	t.Parallel()
	o := Options{Info: func() ConnectInfo { return ConnectInfo{User: "<script>x</script>", Domain: "localhost"} }}
	if strings.Contains(bodyOf(t, get(t, o, "/")), "<script>") {
		t.Error("markup in a name reaches the page")
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	o := testOptions()
	o.Hostnames = []string{"Mail.Example.org", "192.168.1.5", "fd00::5"}
	for host, want := range map[string]int{
		"localhost": 200, "localhost:2080": 200, "LOCALHOST:1": 200, "localhost.": 200, "pizza.localhost:2080": 200,
		"127.0.0.1:2080": 200, "[::1]:2080": 200, "[::1]": 200, "[0:0::1]:5": 200,
		"mail.example.org": 200, "192.168.1.5:80": 200, "[fd00::5]:80": 200,
		"evil.example": 421, "localhost.evil.example:2080": 421, "127.0.0.2": 421, "": 421, "evil.example:localhost": 421, "xlocalhost": 421,
	} {
		for _, path := range []string{"/", "/healthz", "/metrics", "/static/style.css"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			if got := do(t, o, r); got.StatusCode != want {
				t.Errorf("Host %q, %s: %d, want %d", host, path, got.StatusCode, want)
			}
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, key, value string
		want             int
	}{
		{"from elsewhere", "Origin", "http://evil.example", 403},
		{"from another port", "Origin", "http://localhost:3000", 403},
		{"from a sandbox", "Origin", "null", 403},
		{"cross site", "Sec-Fetch-Site", "cross-site", 403},
		{"our own", "Origin", "http://localhost:2080", 405}, // nothing takes a POST yet
		{"a script", "", "", 405},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:2080/", strings.NewReader("x"))
		if tt.key != "" {
			r.Header.Set(tt.key, tt.value)
		}
		if got := do(t, testOptions(), r); got.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got.StatusCode, tt.want)
		}
	}
}

func TestErrorPages(t *testing.T) {
	t.Parallel()
	r := get(t, testOptions(), "/nothing/<b>")
	page := bodyOf(t, r)
	if r.StatusCode != 404 || !strings.Contains(page, "404 Not Found") || !strings.Contains(page, `href="/"`) || strings.Contains(page, "<b>") {
		t.Errorf("404: %d\n%s", r.StatusCode, page)
	}
	r = do(t, testOptions(), httptest.NewRequest(http.MethodDelete, "http://localhost/healthz", nil))
	page = bodyOf(t, r)
	if r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" || !strings.Contains(page, "405 Method Not Allowed") {
		t.Errorf("405: %d, Allow %q\n%s", r.StatusCode, r.Header.Get("Allow"), page)
	}
}

func TestHeadersOnEveryAnswer(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	}
	for _, path := range []string{"/", "/healthz", "/metrics", "/static/style.css", "/none", "/ca.pem"} {
		r := get(t, testOptions(), path)
		for key, value := range want {
			if got := r.Header.Get(key); got != value {
				t.Errorf("%s: %s is %q", path, key, got)
			}
		}
	}
}

func TestStyle(t *testing.T) {
	t.Parallel()
	r := get(t, testOptions(), "/static/style.css")
	if r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/css") || !strings.Contains(bodyOf(t, r), "body {") {
		t.Errorf("style: %d %q", r.StatusCode, r.Header.Get("Content-Type"))
	}
	if r := get(t, testOptions(), "/static/"); r.StatusCode != 404 {
		t.Errorf("a listing of files: %d", r.StatusCode)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ready func() bool
		code  int
		want  string
	}{
		{nil, 200, "ok"},
		{func() bool { return true }, 200, "ok"},
		{func() bool { return false }, 503, "starting"},
	} {
		r := get(t, Options{Info: testInfo, Ready: tt.ready}, "/healthz")
		var got map[string]string
		if err := json.Unmarshal([]byte(bodyOf(t, r)), &got); err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != tt.code || len(got) != 1 || got["status"] != tt.want || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %v", r.StatusCode, got)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	o := testOptions()
	o.Metrics = func(context.Context) []Metric {
		return []Metric{
			{Name: "pizza_runs_waiting", Help: "two\nlines \\", Value: 1000},
			{Name: "pizza_mails_total", Help: "x", Counter: true, Value: 1.5},
			{Name: "not a name", Value: 1},
			{Name: "pizza_calls_total", Help: "calls.", Counter: true, Labels: [][2]string{{"model", "a\"\\\n"}, {"class", "ok"}}, Value: 2},
			{Name: "pizza_calls_total", Help: "calls.", Counter: true, Labels: [][2]string{{"model", "b"}, {"class", "ok"}}, Value: 3},
			{Name: "pizza_step_seconds", Help: "steps.", Labels: [][2]string{{"of", "x"}}, Value: 0.5, Buckets: []MetricBucket{{UpTo: 0.25, Count: 1}, {Count: 2}}},
		}
	}
	r := get(t, o, "/metrics")
	text := bodyOf(t, r)
	for _, want := range []string{
		"# HELP pizza_runs_waiting two\\nlines \\\\\n# TYPE pizza_runs_waiting gauge\npizza_runs_waiting 1000\n",
		"# TYPE pizza_mails_total counter\npizza_mails_total 1.5\n",
		"# TYPE pizza_calls_total counter\npizza_calls_total{model=\"a\\\"\\\\\\n\",class=\"ok\"} 2\npizza_calls_total{model=\"b\",class=\"ok\"} 3\n",
		"# TYPE pizza_step_seconds histogram\npizza_step_seconds_bucket{of=\"x\",le=\"0.25\"} 1\npizza_step_seconds_bucket{of=\"x\",le=\"+Inf\"} 2\n" +
			"pizza_step_seconds_sum{of=\"x\"} 0.5\npizza_step_seconds_count{of=\"x\"} 2\n",
		"\npizza_ready 1\n", "\npizza_http_requests_total 1\n",
	} {
		if !strings.Contains("\n"+text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+({([a-z_]+="([^"\\\n]|\\.)*",?)+})? [0-9.e+]+)$`)
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if !line.MatchString(l) {
			t.Errorf("line %q", l)
		}
	}
	if r.Header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("type %q", r.Header.Get("Content-Type"))
	}
}

func TestAuthority(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ca.pem")
	o := Options{Info: func() ConnectInfo { return ConnectInfo{CAPath: path} }}
	if r := get(t, o, "/ca.pem"); r.StatusCode != 404 {
		t.Errorf("without a file: %d", r.StatusCode)
	}
	const cert = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"
	const key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
	if err := os.WriteFile(path, []byte(key+cert), 0o600); err != nil {
		t.Fatal(err)
	}
	r := get(t, o, "/ca.pem")
	if got := bodyOf(t, r); r.StatusCode != 200 || got != cert {
		t.Errorf("%d %q", r.StatusCode, got)
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	o := Options{Info: func() ConnectInfo { panic("secret cause") }, Log: slog.New(slog.NewTextHandler(&log, nil))}
	r := get(t, o, "/")
	if page := bodyOf(t, r); r.StatusCode != 500 || strings.Contains(page, "secret") {
		t.Errorf("%d\n%s", r.StatusCode, page)
	}
	if !strings.Contains(log.String(), "secret cause") {
		t.Error("the panic is not in the log")
	}
}
