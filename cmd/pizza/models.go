package main

import (
	"context"
	"log/slog"
	"reflect"
	"sync"

	"pizza/internal/config"
	"pizza/providers"
	"pizza/providers/registry"
)

// models are the models of the settings as they are now: a provider or a key that changes
// in settings.json acts with the next call. It is safe for concurrent use.
type models struct {
	watcher *config.Watcher
	log     *slog.Logger // nil: none

	mu  sync.Mutex
	of  config.Resolved // what reg was made from
	reg *registry.Registry
}

func newModels(w *config.Watcher) *models {
	now := *w.Current()
	return &models{watcher: w, of: now, reg: registry.New(modelsOf(now))}
}

// now is the registry of the settings that hold. A default model that nobody has leaves
// the one before in force.
func (m *models) now() *registry.Registry {
	now := m.watcher.Current()
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Model == m.of.Model && reflect.DeepEqual(now.Providers, m.of.Providers) {
		return m.reg
	}
	m.of = *now
	reg := registry.New(modelsOf(*now))
	if err := reg.Check(""); err != nil {
		if m.log != nil {
			m.log.Error("settings.json names a model that nobody has: the one before stays", "model", now.Model, "err", err)
		}
		return m.reg
	}
	m.reg = reg
	return reg
}

// Model returns the model of a name, as registry.Registry does.
func (m *models) Model(ctx context.Context, name string) (providers.Model, error) {
	return m.now().Model(ctx, name)
}

// Default is the name of the model that "" stands for.
func (m *models) Default() string { return m.now().Default() }

// Check says what is wrong with the name of a model, as registry.Registry does.
func (m *models) Check(name string) error { return m.now().Check(name) }
