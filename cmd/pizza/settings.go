package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"pizza/agent"
	"pizza/imapserver"
	"pizza/internal/config"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/registry"
)

// serveFlags are the flags of `pizza serve`. Each listener and the model can also be
// set by PIZZA_IMAP, ... and PIZZA_MODEL, or in settings.json.
type serveFlags struct {
	flags  *pflag.FlagSet
	grants []string
}

func (f *serveFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	for _, service := range config.Services {
		flags.String(service, "", "where "+service+" listens: [host:]port or off; port 0 picks one (default "+config.Default().Listen.Get(service)+")")
	}
	flags.String("model", "", "default model as provider:id (default "+config.Default().Model+")")
	flags.StringArrayVar(&f.grants, "grant", nil, "folder the agent may read, PATH, or read and write, PATH:rw; may be given again")
}

// given are the flags that were set on the command line.
func (f serveFlags) given() map[string]string {
	values := map[string]string{}
	if f.flags == nil {
		return values
	}
	for _, name := range append([]string{"model"}, config.Services...) {
		if flag := f.flags.Lookup(name); flag != nil && flag.Changed {
			values[name] = flag.Value.String()
		}
	}
	return values
}

// settings are the resolved settings of a data root, in the form the parts need.
// Grants are read anew on every use, so that a removed one acts at once.
type settings struct {
	config.Resolved
	Models  *models
	watcher *config.Watcher
}

func loadSettings(root string, f serveFlags) (settings, error) {
	w, err := config.Watch(config.Sources{
		Root: root, Flags: f.given(), Grants: f.grants, Capabilities: imapserver.Hideable(),
	}, nil)
	if err != nil {
		return settings{}, err
	}
	now := *w.Current()
	return settings{Resolved: now, Models: newModels(w), watcher: w}, nil
}

// checkModel refuses a default model that no provider has. Keys are not looked at: one
// that is set later acts at once.
func (s settings) checkModel() error {
	if err := s.Models.Check(""); err != nil {
		return &config.Error{Problems: []config.Problem{{Where: s.From["model"], Key: "model", Text: userText(modelError(err))}}}
	}
	return nil
}

// keyless is why the default model cannot be used now, for want of a key; else "".
func (s settings) keyless() string {
	var pe *providers.Error
	if _, err := s.Models.Model(context.Background(), ""); errors.As(err, &pe) && pe.Class == providers.Auth {
		return pe.Message
	}
	return ""
}

// modelError is what is wrong with the name of a model, in words.
func modelError(err error) error {
	var pe *providers.Error
	if errors.As(err, &pe) {
		return &mailbox.Error{Op: "model", Kind: mailbox.Invalid, Text: pe.Message, Err: err}
	}
	return err
}

// keyVariables are the environment variables that hold the key of a provider that
// the settings file does not mention.
var keyVariables = map[string]string{"openai": "OPENAI_API_KEY", "openrouter": "OPENROUTER_API_KEY"}

// modelsOf configures the registry from the settings and, for well-known providers,
// the environment.
func modelsOf(r config.Resolved) registry.Config {
	cfg := registry.Config{Default: r.Model, Providers: map[string]registry.Provider{}}
	for name, variable := range keyVariables {
		cfg.Providers[name] = registry.Provider{Key: envKey(variable)}
	}
	if base := firstEnv("PIZZA_OPENAI_BASE_URL", "OPENAI_BASE_URL"); base != "" {
		cfg.Providers["openai"] = registry.Provider{Key: envKey("OPENAI_API_KEY"), BaseURL: base}
	}
	for name, p := range r.Providers {
		set := cfg.Providers[name]
		if p.BaseURL != "" {
			set.BaseURL = p.BaseURL
		}
		if p.Key != "" {
			set.KeyHint = "its key is read from " + p.Key.String() + " (providers." + name + ".key in settings.json)"
			set.Key = func() (string, error) {
				secret, err := p.Key.Resolve()
				return secret.Reveal(), err
			}
		}
		set.Windows = p.Windows
		cfg.Providers[name] = set
	}
	return cfg
}

func envKey(variable string) func() (string, error) {
	return func() (string, error) { return os.Getenv(variable), nil }
}

func firstEnv(names ...string) string {
	for _, name := range names {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// Folders are the grants as they are now.
func (s settings) Folders() []tools.Grant {
	var list []tools.Grant
	for _, f := range s.watcher.Current().Folders {
		list = append(list, tools.Grant{ID: f.ID, Path: f.Path, Write: f.Write})
	}
	return list
}

// account is what a login has of its own, as it is now.
func (s settings) account(login string) agent.AccountSettings {
	now := s.watcher.Current()
	acc := now.Accounts[login]
	usd, tokens := now.Monthly(login)
	return agent.AccountSettings{Unread: acc.Unread, SentCopy: agent.SentCopy(acc.SentCopy), Cap: agent.Cap{USD: usd, Tokens: tokens}}
}

func (s settings) limits() agent.Limits {
	l := s.Limits
	return agent.Limits{ModelCalls: callLimit(l.ModelCalls), ToolCalls: callLimit(l.ToolCalls),
		Tokens: int64(l.Tokens), Cost: l.USD, Time: time.Duration(l.Minutes) * time.Minute}
}

func (s settings) workerLimits() agent.Limits {
	return agent.Limits{ModelCalls: callLimit(s.Limits.WorkerModelCalls), ToolCalls: callLimit(s.Limits.WorkerToolCalls)}
}

// callLimit is a number of the settings, where 0 is none, as the agent takes it.
func callLimit(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// workers are those that tasks may give work to, as they are now.
func (s settings) workers() []agent.Worker {
	var list []agent.Worker
	now := s.watcher.Current().Workers
	for _, name := range slices.Sorted(maps.Keys(now)) {
		w := now[name]
		list = append(list, agent.Worker{
			Name: name, Description: w.Description, Instructions: w.Instructions, Tools: w.Tools, Model: w.Model,
			Limits: agent.Limits{ModelCalls: w.Limits.ModelCalls, ToolCalls: w.Limits.ToolCalls, Tokens: int64(w.Limits.Tokens), Cost: w.Limits.USD},
		})
	}
	return list
}

// workerDepth is the setting as agent.Options has it, where 0 is the default.
func (s settings) workerDepth() int {
	if s.Limits.WorkerDepth == 0 {
		return -1
	}
	return s.Limits.WorkerDepth
}

func (s settings) retry() agent.Retry {
	return agent.Retry{Tries: s.Limits.RetryTries, Within: time.Duration(s.Limits.RetryHours) * time.Hour}
}

// MaxMessage is the largest message in octets.
func (s settings) MaxMessage() int64 { return s.Limits.MaxMessage() }

// hidden are the capabilities that an account hides from its mail programs, as the file
// says now: a change is for the next login.
func (s settings) hidden(login string) []string {
	return s.watcher.Current().Accounts[login].HideCapabilities
}
