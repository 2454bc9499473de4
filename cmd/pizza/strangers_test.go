package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pizza/internal/config"
)

// TestStrangersAreWarnedOf: settings for a login that does not exist are told at the start
// and after a change, with the logins there are; the others are not.
func TestStrangersAreWarnedOf(t *testing.T) {
	t.Parallel()
	a, _ := household(t, false)
	write := func(text string, at int64) {
		path := filepath.Join(a.root, "settings.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"accounts": {"me": {"unread": true}, "Ann": {"unread": true}}}`, 1e9)
	var seconds atomic.Int64 // of the watcher's clock
	watcher, err := config.Watch(config.Sources{Root: a.root}, func() time.Time { return time.Unix(seconds.Load(), 0) })
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	defer r.Close()
	watcher.OnRead(func(_, _ *config.Resolved) { a.tellReread() })
	a.settings.watcher, a.log = watcher, slog.New(slog.NewJSONHandler(w, nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.watchStrangers(ctx) }()
	lines := bufio.NewScanner(r)
	next := func(login string) {
		t.Helper()
		var line struct{ Level, Msg, Login, Logins string }
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &line) != nil || line.Level != "WARN" || line.Login != login || line.Logins != "ann, me" ||
			!strings.HasPrefix(line.Msg, "settings.json: accounts."+login+" is for a login that does not exist") {
			t.Errorf("%q: %s", login, lines.Text())
		}
	}
	next("Ann")
	write(`{"accounts": {"bob": {}, "ann": {}}}`, 1e9+1)
	seconds.Add(2)
	if a.settings.account("me").Unread { // as the agent asks
		t.Error("the change is not read")
	}
	next("bob")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
