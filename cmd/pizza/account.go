package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"pizza/agent"
	"pizza/internal/crockford"
	"pizza/mailbox"
)

// firstLogin is the account that the first start makes.
const firstLogin = "me"

// credentialPath is where a generated password is kept (0600), so that `pizza
// password` can print it.
func credentialPath(root, login string) string { return filepath.Join(root, "credentials", login) }

// loginPattern is what an account may be called; it is also a file name.
var loginPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// readPassword reads the generated password of an account.
func readPassword(root, name string) (string, error) {
	login, _, _ := strings.Cut(strings.ToLower(name), "@")
	if !loginPattern.MatchString(login) {
		return "", fmt.Errorf("%q is not the name of an account", name)
	}
	b, err := os.ReadFile(credentialPath(root, login))
	if errors.Is(err, fs.ErrNotExist) {
		do := "`pizza account password " + login + "` makes a new one and prints it"
		if !madeByServe(root) {
			do = "`pizza serve` makes the account " + firstLogin + " at its first start"
		}
		return "", fmt.Errorf("no generated password for %q in %s: %s", login, root, do)
	}
	return strings.TrimSpace(string(b)), err
}

// onlyCredential is name, or the account of the only generated password when name has none.
func onlyCredential(root, name string) string {
	if _, err := os.Stat(credentialPath(root, name)); err == nil {
		return name
	}
	if files, err := os.ReadDir(filepath.Dir(credentialPath(root, name))); err == nil && len(files) == 1 {
		return files[0].Name()
	}
	return name
}

// newPasswordText returns 25 characters of Crockford base32 in groups of five: 125
// bits, without letters that are mistaken for others.
func newPasswordText() string {
	groups := make([]string, 5)
	for i := range groups {
		groups[i] = crockford.Random(5)
	}
	return strings.Join(groups, "-")
}

// ensureFirstAccount makes the account me with a random password when there is no
// account yet, and the mailboxes of every account.
func (a *app) ensureFirstAccount(ctx context.Context) error {
	list, err := a.accounts.List(ctx)
	if err != nil {
		return err
	}
	for _, acc := range list {
		if err := a.store.CreateAccount(ctx, acc.ID, agent.SystemMailboxes()); err != nil {
			return err
		}
	}
	if a.firstUser = firstOf(list); a.firstUser != "" {
		return nil
	}
	a.firstUser = firstLogin
	first := mailbox.Account{ID: newAccountID(), Login: firstLogin, Name: firstLogin}
	_, err = a.putCredential(ctx, first, mailbox.Credential{Name: defaultCredential, Scope: mailbox.ScopeFull})
	return err
}

func newAccountID() mailbox.AccountID {
	return mailbox.AccountID(crockford.Random(10))
}
