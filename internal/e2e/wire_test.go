//go:build e2e || bench || soak

package e2e

import (
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plain is the initial response of SASL PLAIN (RFC 4616).
func plain(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
}

// readPasswordFile reads the generated password of the account me.
func readPasswordFile(tb testing.TB, s *server) string {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(s.root, "credentials", "me"))
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func httpGet(tb testing.TB, url string) (status int, body string) {
	tb.Helper()
	resp, err := http.Get(url)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
