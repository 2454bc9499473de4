package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"pizza/internal/otel"
	"pizza/internal/policy"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// Options configure an Agent.
type Options struct {
	Store    mailbox.Store
	Accounts mailbox.Accounts
	Models   Models
	Tools    tools.Set
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
	Workers  int              // runs worked on at once; 0: 16
	Domain   string           // domain used towards the person: "localhost"
	Expiry   time.Duration    // of decisions; 0: 7 days
	Window   time.Duration    // of a move that decides; 0: 15 s, less: none
	// ActionInInbox: an open decision also has an entry in INBOX.
	ActionInInbox bool
	Location      *time.Location // zone of times shown; nil: time.Local
	// Account gives the settings of a login as they are now; nil: none has any.
	Account func(login string) AccountSettings
	// Policies are the rows of policy of the settings as they are now, those that do not
	// parse among them; nil: none.
	Policies func() []policy.Row
	// Remind is how often the owner is reminded of an open decision; 0: never.
	Remind time.Duration
	// Sends is how many mails of ours a thread gets within an hour; 0: 60.
	Sends int
	// Span takes the spans of runs; nil: nobody. It must not block.
	Span func(otel.Span)
	// Keep is how long an ended task is kept whose mails lie in no mailbox but Trash; 0:
	// for ever.
	Keep time.Duration
	// CallTime is how long a tool call may take, unless its tools.Spec says; 0: 10 minutes.
	CallTime time.Duration
	// Limits of a run; zero fields: 20 model calls, 40 tool calls, no other. Calls below
	// zero: no limit of them.
	Limits Limits
	// Subagents gives the workers that a run may give work to, as they are now; nil: none.
	Subagents func() []Worker
	// WorkerLimits of the run of a worker; zero fields: 20 model calls, 80 tool calls.
	WorkerLimits Limits
	// WorkerDepth is how deep work may be given on: with 1 only a run that mail began gives
	// any. 0: 1; at most 4; below 0: nobody does.
	WorkerDepth int
	// WorkerFanout is how many workers a run has at work at once; 0: 8.
	WorkerFanout int

	// Retry bounds how often a failed model call is made again.
	Retry Retry

	folding func(run string) // tests: called before each event of a journal is folded

	keys    time.Duration // how often refused keys are looked at; 0: 2 s
	backoff time.Duration // after a failed step or call, doubling; 0: 1 s
	slow    time.Duration // a run that takes longer is shown as running; 0: 2 s
}

// AccountSettings are what one account has of its own. The zero value is the default.
type AccountSettings struct {
	// Unread shows the mailbox Unread.
	Unread bool
	// SentCopy says who files in Sent what the account sends.
	SentCopy SentCopy
	// Cap is the most that its tasks may use in a month.
	Cap Cap
}

// SentCopy says who files in Sent what an account sends.
type SentCopy string

const (
	// SentAuto, also "": Submit does, unless a message with that Message-ID is there; a
	// program's own copy takes the place of ours.
	SentAuto SentCopy = "auto"
	// SentServer: Submit does, and its copy stays whatever a program puts beside it.
	SentServer SentCopy = "server"
	// SentClient: the person's program does; Submit files nothing.
	SentClient SentCopy = "client"
)

// Models resolves a model name ("provider:id", "" for the default).
type Models interface {
	Model(ctx context.Context, name string) (providers.Model, error)
	Default() string
}

// Agent works the runs of all accounts. Make it with New; Run works until its
// context ends. All methods are safe for concurrent use.
type Agent struct {
	opt   Options
	store mailbox.Store
	log   *slog.Logger
	slots chan struct{} // one token a worker

	owners   ownerCache
	gates    *gates
	refusals *refusals
	watches  watches
	meter    meter

	mu       sync.Mutex                 // guards what follows
	sessions map[string]*session        // runs worked on now, by run id
	falls    map[string]int             // steps in a row without progress, by run id
	accounts map[mailbox.AccountID]bool // with a dispatcher
	fresh    chan mailbox.AccountID     // accounts that want one
}

// New checks and completes the options.
func New(opt Options) (*Agent, error) {
	if opt.Store == nil || opt.Models == nil || opt.Tools == nil || opt.Accounts == nil {
		return nil, errors.New("agent: Store, Accounts, Models and Tools are required")
	}
	opt = opt.withDefaults()
	a := &Agent{
		opt: opt, store: opt.Store, log: opt.Log,
		slots:    make(chan struct{}, opt.Workers),
		sessions: map[string]*session{},
		falls:    map[string]int{},
		accounts: map[mailbox.AccountID]bool{},
		fresh:    make(chan mailbox.AccountID, 64),
		refusals: newRefusals(),
	}
	a.gates = newGates(opt.Now, opt.backoff, a.release)
	return a, nil
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.Domain == "" {
		o.Domain = "localhost"
	}
	if o.Expiry <= 0 {
		o.Expiry = 7 * 24 * time.Hour
	}
	if o.Window == 0 {
		o.Window = 15 * time.Second
	}
	o.Window = max(o.Window, 0)
	if o.Account == nil {
		o.Account = func(string) AccountSettings { return AccountSettings{} }
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	if o.CallTime <= 0 {
		o.CallTime = 10 * time.Minute
	}
	if o.Sends <= 0 {
		o.Sends = 60
	}
	o.Limits.ModelCalls = limitOr(o.Limits.ModelCalls, 20)
	o.Limits.ToolCalls = limitOr(o.Limits.ToolCalls, 40)
	o.WorkerLimits.ModelCalls = limitOr(o.WorkerLimits.ModelCalls, 20)
	o.WorkerLimits.ToolCalls = limitOr(o.WorkerLimits.ToolCalls, 80)
	if o.WorkerDepth == 0 {
		o.WorkerDepth = 1
	}
	o.WorkerDepth = min(o.WorkerDepth, maxDepth)
	if o.WorkerFanout <= 0 {
		o.WorkerFanout = 8
	}
	if o.Retry.Tries <= 0 {
		o.Retry.Tries = 100
	}
	if o.Retry.Within <= 0 {
		o.Retry.Within = 24 * time.Hour
	}
	if o.keys <= 0 {
		o.keys = keysEvery
	}
	if o.slow <= 0 {
		o.slow = 2 * time.Second
	}
	if o.backoff <= 0 {
		o.backoff = time.Second
	}
	return o
}

// limitOr is the limit that a number of Options.Limits stands for.
func limitOr(n, standard int) int {
	if n == 0 {
		return standard
	}
	return max(n, 0)
}

func (a *Agent) now() time.Time { return a.opt.Now() }

// local gives a time in the zone that times are shown in.
func (a *Agent) local(t time.Time) time.Time { return t.In(a.opt.Location) }
