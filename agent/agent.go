package agent

import (
	"context"
	"log/slog"
	"time"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// Options configure an Agent.
type Options struct {
	Store    mailbox.Store
	Accounts mailbox.Accounts
	Models   Models
	Tools    *tools.Files
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
	Workers  int              // runs worked on at once; 0: 16
	Domain   string           // domain used towards the person: "localhost"
	Expiry   time.Duration    // of decisions; 0: 7 days
	Window   time.Duration    // of a move that decides; 0: 15 s
	// ActionInInbox: an open decision also has an entry in INBOX.
	ActionInInbox bool
	Location      *time.Location // zone of times shown; nil: time.Local
}

// Models resolves a model name ("provider:id", "" for the default).
type Models interface {
	Model(ctx context.Context, name string) (providers.Model, error)
	Default() string
}
