//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestConsoleInChromium opens the console in a real browser: the page is whole, its
// style sheet passes its own security policy, and a name of a stranger (DNS
// rebinding) gets nothing.
func TestConsoleInChromium(t *testing.T) {
	t.Parallel()
	chromium := program(t, "chromium")
	s := startServer(t)
	open := func(url string, more ...string) string {
		args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(), "--enable-logging=stderr"}
		return command(t, nil, nil, chromium, append(append(args, more...), "--dump-dom", url)...)
	}
	page := open(s.endpoints.Web + "/")
	mustContain(t, "the page", page, "<h1>Connect a mail program</h1>", "pizza@localhost", s.port(s.endpoints.IMAPS), s.port(s.endpoints.SMTPS), "Thunderbird")
	if strings.Contains(page, s.password()) {
		t.Error("the page shows the password")
	}
	if page := open(s.endpoints.Web + "/nothing"); !strings.Contains(page, "404") {
		t.Errorf("a page that is not there: %s", page)
	}
	rebound := open("http://evil.example:"+s.port(strings.TrimPrefix(s.endpoints.Web, "http://"))+"/", "--host-resolver-rules=MAP evil.example 127.0.0.1")
	if strings.Contains(rebound, "pizza@localhost") {
		t.Errorf("the console answers to a stranger's name:\n%s", rebound)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.endpoints.Web+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode < 400 {
		t.Errorf("Host evil.example: HTTP %d", resp.StatusCode)
	}
}
