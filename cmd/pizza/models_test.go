package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pizza/internal/config"
	"pizza/providers"
)

// A provider and a default model that are set while the server runs act at once; a default
// that nobody has leaves the one before.
func TestModelsFollowTheSettings(t *testing.T) {
	t.Parallel()
	root, now := t.TempDir(), time.Now()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "settings.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	write(`{}`)
	w, err := config.Watch(config.Sources{Root: root, Getenv: func(string) string { return "" }}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	m := newModels(w)
	key := filepath.Join(root, "key")
	write(`{"model": "house:x", "providers": {"house": {"base_url": "http://127.0.0.1:9/v1", "key": "file:` + filepath.ToSlash(key) + `"}}}`)
	if m.Default() != "house:x" {
		t.Errorf("default: %s", m.Default())
	}
	var pe *providers.Error
	if _, err := m.Model(t.Context(), ""); !errors.As(err, &pe) || pe.Code != providers.NoKey {
		t.Errorf("without the file: %v", err)
	}
	gate := func(text string) string {
		t.Helper()
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := m.Model(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return got.Info().Gate
	}
	if one, two := gate("one\n"), gate("two\n"); one == two || one != gate("one") || one == "" {
		t.Errorf("identities %q and %q", one, two)
	}
	write(`{"model": "nobody:x"}`)
	if m.Default() != "house:x" {
		t.Errorf("default after a wrong one: %s", m.Default())
	}
}
