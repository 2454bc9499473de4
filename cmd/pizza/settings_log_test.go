package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pizza/internal/config"
)

// TestSettingsEditIsLogged: keys and no values, and what waits for the next start is named.
func TestSettingsEditIsLogged(t *testing.T) {
	t.Parallel()
	root, held := t.TempDir(), t.TempDir()
	file := filepath.Join(root, config.FileName)
	read := func(text string) *config.Resolved {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := config.Resolve(config.Sources{Root: root, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	start := read(`{"model": "ollama:a", "grants": []}`)
	log := func(old, now *config.Resolved) string {
		var b bytes.Buffer
		settings{Resolved: *start}.logRead(slog.New(slog.NewTextHandler(&b, nil)), old, now)
		return b.String()
	}
	live := read(`{"model": "ollama:a", "grants": [{"path": "` + filepath.ToSlash(held) + `"}], "accounts": {"me": {"unread": true, "sent_copy": "server", "hide_capabilities": ["QRESYNC"]}}}`)
	later := read(`{"model": "ollama:b", "limits": {"max_message_mb": 20}, "providers": {"own": {"base_url": "https://hush.example/v1", "key": "env:HUSH"}}}`)
	for _, c := range []struct {
		name      string
		old, now  *config.Resolved
		want, not []string
	}{
		{"at once", start, live, []string{`changed="accounts.me.hide_capabilities accounts.me.sent_copy accounts.me.unread grants"`}, []string{"next_start", held, "QRESYNC"}},
		{"waiting", start, later, []string{`changed="limits.max_message_mb model providers.own.base_url providers.own.key"`,
			"next_start=limits.max_message_mb\n"}, []string{"hush", "HUSH", "ollama"}},
		{"back as at the start", later, start, []string{"changed="}, []string{"next_start"}},
		{"waiting since earlier", later, read(`{"model": "ollama:b", "accounts": {"me": {"unread": true}}, "limits": {"max_message_mb": 20}}`),
			[]string{"accounts.me.unread", "next_start=limits.max_message_mb\n"}, nil},
		{"nothing", start, start, []string{"no setting that holds"}, []string{"changed="}},
	} {
		got := log(c.old, c.now)
		if !strings.HasPrefix(got, "time=") || strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=INFO") {
			t.Errorf("%s: not one line at info: %q", c.name, got)
		}
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", c.name, got, w)
			}
		}
		for _, w := range c.not {
			if strings.Contains(got, w) {
				t.Errorf("%s: %q has %q", c.name, got, w)
			}
		}
	}
}
