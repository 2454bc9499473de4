package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"pizza/agent"
	"pizza/internal/config"
	"pizza/internal/localca"
	"pizza/internal/otel"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/mailbox/boltstore"
)

// app is a data root opened by this process: the store, the accounts and the agent.
type app struct {
	root     string
	settings settings
	log      *slog.Logger
	store    *boltstore.Store
	accounts mailbox.Accounts
	ca       *localca.CA // of a server
	agent    *agent.Agent
	reread   chan struct{}  // settings.json was read anew
	spans    *otel.Exporter // nil: nobody takes them

	firstUser string // whom the set-up names
}

var _ service = (*app)(nil)

// openApp opens the data root and makes what is missing in it. The process that has
// it open is the only one.
func openApp(ctx context.Context, root string, set settings, log *slog.Logger) (*app, error) {
	for _, dir := range []string{root, filepath.Join(root, "run"), filepath.Join(root, "credentials")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, err
		}
	}
	store, err := boltstore.Open(root, boltstore.Options{Log: log, Keep: set.Limits.KeepFree()})
	if err != nil {
		return nil, err
	}
	set.watcher.OnError(func(err error) {
		log.Error("settings.json is wrong: the last good settings hold until it is corrected", "err", err)
	})
	set.Models.log = log
	a := &app{root: root, settings: set, log: log, store: store, accounts: store.AccountDB(), reread: make(chan struct{}, 1)}
	set.watcher.OnRead(func(old, now *config.Resolved) {
		set.logRead(log, old, now)
		a.tellReread()
	})
	if err := a.build(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return a, nil
}

func (a *app) build(ctx context.Context) error {
	opt := agent.Options{
		Store: a.store, Accounts: a.accounts, Models: a.settings.Models, Tools: tools.NewFiles(a.settings.Folders),
		Log: a.log.With("part", "agent"), Workers: a.settings.Limits.Workers, Domain: a.settings.Domain,
		Expiry: a.settings.Limits.Expiry(), Window: cmp.Or(a.settings.Limits.MoveWindow(), -1), ActionInInbox: a.settings.ActionInInbox,
		Location: a.settings.Location(), Limits: a.settings.limits(), Retry: a.settings.retry(), Account: a.settings.account, Keep: a.settings.Keep(),
		Subagents: a.settings.workers, WorkerLimits: a.settings.workerLimits(),
		WorkerDepth: a.settings.workerDepth(), WorkerFanout: a.settings.Limits.WorkerFanout,
		Policies: a.settings.watcher.Policies, Remind: a.settings.Limits.Reminder(),
		CallTime: time.Duration(a.settings.Limits.CallMinutes) * time.Minute,
	}
	if url := a.settings.Traces.URL; url != "" {
		a.spans = otel.New(otel.Options{
			URL: url, Headers: a.settings.Traces.Headers, Service: "pizza", Version: version, Log: a.log.With("part", "traces"),
		})
		opt.Span = a.spans.Send
	}
	var err error
	a.agent, err = agent.New(opt)
	if err != nil {
		return err
	}
	a.store.SetGuard(a.agent)
	return a.ensureFirstAccount(ctx)
}

// openCA opens the certificate authority, for serving. Nobody else does: whoever makes
// a new one has to tell the person.
func (a *app) openCA() error {
	var err error
	a.ca, err = localca.Open(filepath.Join(a.root, "tls"), a.settings.Hostnames, nil)
	if err == nil && a.ca.Renewed() {
		a.log.Warn("a new certificate authority was made: import it again into your programs", "file", a.ca.CertPath())
	}
	return err
}

// openAlone opens the data root for one command, without servers: what it submits
// or decides goes on when a server starts.
func openAlone(ctx context.Context, root string) (*app, error) {
	set, err := loadSettings(root, serveFlags{})
	if err != nil {
		return nil, err
	}
	return openApp(ctx, root, set, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
}

// Close closes the store; nothing accepted is lost by it.
func (a *app) Close() error { return a.store.Close() }
