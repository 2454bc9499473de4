package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"pizza/mailbox"
)

// commandTime is how long a server that starts waits for a command: one that ran while no
// server did has the data root open by itself, for a moment.
const commandTime = 5 * time.Second

// openSoon is openApp for a server. Whoever has the data root open is waited for, unless it
// is a server.
func openSoon(ctx context.Context, root string, set settings, log *slog.Logger) (*app, error) {
	deadline := time.Now().Add(commandTime)
	for told := false; ; told = true {
		a, err := openApp(ctx, root, set, log) // waits a little for the lock
		var busy *mailbox.Error
		inUse := errors.As(err, &busy) && busy.Kind == mailbox.Transient
		if !inUse || ctx.Err() != nil || time.Now().After(deadline) || answers(ctx, root) {
			return a, err
		}
		if !told {
			log.Info("the data root is in use: waiting for it", "err", err)
		}
	}
}

// answers reports whether a server of the data root answers.
func answers(ctx context.Context, root string) bool {
	e, err := readEndpoints(root)
	if err != nil {
		return false
	}
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "unix", e.Control)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
