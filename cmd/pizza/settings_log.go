package main

import (
	"log/slog"
	"slices"
	"strings"

	"pizza/internal/config"
)

// atOnce reports whether a change of the setting acts on a running server: these are
// the ones that are asked of the watcher on every use. The others are read at the start.
func atOnce(key string) bool {
	return key == "grants" || key == "policies" || key == "model" || strings.HasPrefix(key, "accounts.") || strings.HasPrefix(key, "providers.") ||
		strings.HasPrefix(key, "workers.")
}

// logRead acknowledges an edit of settings.json: which keys differ, never their values,
// and which of the settings now in the file wait for the next start, also since earlier.
func (s settings) logRead(log *slog.Logger, old, now *config.Resolved) {
	changed := config.Changed(old.Settings, now.Settings)
	if len(changed) == 0 {
		log.Info("settings.json was read: no setting that holds is another (flags and environment go before the file)")
		return
	}
	attrs := []any{"changed", strings.Join(changed, " ")}
	if waiting := slices.DeleteFunc(config.Changed(s.Settings, now.Settings), atOnce); len(waiting) > 0 {
		attrs = append(attrs, "next_start", strings.Join(waiting, " "))
	}
	log.Info("settings.json was read", attrs...)
}
