package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"pizza/mailbox"
)

// watchStrangers warns at the start, and whenever the settings were read anew, of settings
// for logins that do not exist and of workers that are off. It ends with ctx.
func (a *app) watchStrangers(ctx context.Context) error {
	for {
		a.warnStrangers(ctx)
		a.agent.CheckSubagents(ctx)
		select {
		case <-a.reread:
		case <-ctx.Done():
			return nil
		}
	}
}

// tellReread wakes watchStrangers. It does not wait.
func (a *app) tellReread() {
	select {
	case a.reread <- struct{}{}:
	default:
	}
}

// warnStrangers warns of settings for logins that do not exist: most are mistyped. It is
// no error, for the account may be added later.
func (a *app) warnStrangers(ctx context.Context) {
	list, err := a.accounts.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("accounts of settings.json not checked", "err", err)
		}
		return
	}
	for _, login := range strangers(slices.Sorted(maps.Keys(a.settings.watcher.Current().Accounts)), list) {
		a.log.LogAttrs(ctx, slog.LevelWarn, "settings.json: accounts."+login+" is for a login that does not exist, and does nothing until there is one",
			slog.String("login", login), slog.String("logins", strings.Join(loginsOf(list), ", ")))
	}
}

// strangers are those of names that are no login.
func strangers(names []string, list []mailbox.Account) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(loginsOf(list), name) })
}

func loginsOf(list []mailbox.Account) []string {
	var logins []string
	for _, acc := range list {
		logins = append(logins, acc.Login)
	}
	return logins
}
