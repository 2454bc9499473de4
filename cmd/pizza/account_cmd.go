package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pizza/agent"
	"pizza/mailbox"
)

// credentialRequest asks for a credential with a new random password.
type credentialRequest struct {
	Login string        `json:"login"`
	Name  string        `json:"name"` // of the credential
	Scope mailbox.Scope `json:"scope"`
	Make  bool          `json:"make"` // the account must not exist yet, and is made
}

// defaultCredential is the one whose password `pizza password` prints.
const defaultCredential = "default"

func newAccount(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "account", Short: "manage who can log in, and with which passwords"}
	cmd.AddCommand(newAccountAdd(g), newAccountPassword(g), newAccountList(g), newAccountRemove(g))
	return cmd
}

func newAccountAdd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "add NAME", Short: "make an account and print its password", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.credential(cmd, credentialRequest{Login: args[0], Name: defaultCredential, Scope: mailbox.ScopeFull, Make: true})
		},
	}
}

func newAccountPassword(g *globals) *cobra.Command {
	r := credentialRequest{}
	scope := ""
	cmd := &cobra.Command{
		Use: "password NAME", Short: "make a new password for an account and print it",
		Long: "Make a new random password and print it. The one of the credential \"default\" is replaced;\n" +
			"with --credential another one is made beside it, for a program that may do less:\n" +
			"--scope send (starts tasks and delivers mail, nothing else) or --scope read (reads by IMAP).",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Login, r.Scope = args[0], mailbox.Scope(scope)
			return g.credential(cmd, r)
		},
	}
	cmd.Flags().StringVar(&r.Name, "credential", defaultCredential, "name of the credential")
	cmd.Flags().StringVar(&scope, "scope", string(mailbox.ScopeFull), "full, send or read")
	return cmd
}

func (g *globals) credential(cmd *cobra.Command, r credentialRequest) error {
	return g.with(cmd, func(s service) error {
		password, err := s.PutCredential(cmd.Context(), r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), password)
		return err
	})
}

func newAccountList(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "list accounts and their credentials", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.with(cmd, func(s service) error {
				list, err := s.Accounts(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), credentialLines(list))
				}
				tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				for _, c := range credentialLines(list) {
					fmt.Fprintf(tw, "%s\t%s\t%s\n", c.Account, c.Credential, c.Scope)
				}
				return tw.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// credentialLine is one line of `pizza account list`.
type credentialLine struct {
	Account    string        `json:"account"`
	Credential string        `json:"credential"`
	Scope      mailbox.Scope `json:"scope"`
}

func credentialLines(list []mailbox.Account) []credentialLine {
	lines := []credentialLine{}
	for _, acc := range list {
		for _, c := range acc.Credentials {
			lines = append(lines, credentialLine{acc.Login, c.Name, c.Scope})
		}
	}
	return lines
}

func newAccountRemove(g *globals) *cobra.Command {
	r := credentialRequest{}
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "take away a login, or one credential of it",
		Long: "Take away a login, or with --credential one password of it. The mail stays on disk, but an\n" +
			"account made later under the same name begins empty.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Login = args[0]
			return g.with(cmd, func(s service) error {
				if err := s.RemoveCredential(cmd.Context(), r); err != nil {
					return err
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "removed")
				return err
			})
		},
	}
	cmd.Flags().StringVar(&r.Name, "credential", "", "only this credential")
	return cmd
}

// Accounts lists who can log in.
func (a *app) Accounts(ctx context.Context) ([]mailbox.Account, error) { return a.accounts.List(ctx) }

// PutCredential makes a credential, and the account when r.Make, and returns its
// password.
func (a *app) PutCredential(ctx context.Context, r credentialRequest) (string, error) {
	r.Login = strings.ToLower(r.Login)
	acc, known, err := a.account(ctx, r.Login)
	switch {
	case err != nil:
		return "", err
	case !loginPattern.MatchString(r.Login) || r.Login == "pizza":
		return "", invalid("%q cannot be the name of an account: use letters, digits, dot, dash and underscore; pizza is the agent's own", r.Login)
	case r.Scope != mailbox.ScopeFull && r.Scope != mailbox.ScopeSend && r.Scope != mailbox.ScopeRead:
		return "", invalid("there is no scope %q: use full, send or read", r.Scope)
	case r.Make && known:
		return "", invalid("there is an account %q already: `pizza account password %s` makes it a new password", r.Login, r.Login)
	case !r.Make && !known:
		return "", invalid("there is no account %q: `pizza account add %s` makes it", r.Login, r.Login)
	case r.Name == defaultCredential && r.Scope != mailbox.ScopeFull:
		return "", invalid("the credential default has scope full: name another one with --credential")
	}
	if !known {
		acc = mailbox.Account{ID: newAccountID(), Login: r.Login, Name: r.Login}
	}
	return a.putCredential(ctx, acc, mailbox.Credential{Name: r.Name, Scope: r.Scope})
}

// putCredential writes the file of the default password before the account knows it:
// what is cut off in between is made again by the next call.
func (a *app) putCredential(ctx context.Context, acc mailbox.Account, cred mailbox.Credential) (string, error) {
	password := newPasswordText()
	if cred.Name == defaultCredential {
		if err := os.WriteFile(credentialPath(a.root, acc.Login), []byte(password+"\n"), 0o600); err != nil {
			return "", err
		}
	}
	if err := a.store.CreateAccount(ctx, acc.ID, agent.SystemMailboxes()); err != nil {
		return "", err
	}
	return password, a.accounts.Put(ctx, acc, cred, password)
}

// RemoveCredential takes away one credential, or the whole login.
func (a *app) RemoveCredential(ctx context.Context, r credentialRequest) error {
	login := strings.ToLower(r.Login)
	if _, known, err := a.account(ctx, login); err != nil || !known {
		return errors.Join(err, invalid("there is no account %q", r.Login))
	}
	if err := a.accounts.Remove(ctx, login, r.Name); err != nil {
		return err
	}
	if r.Name == "" || r.Name == defaultCredential {
		if err := os.Remove(credentialPath(a.root, login)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (a *app) account(ctx context.Context, login string) (mailbox.Account, bool, error) {
	list, err := a.accounts.List(ctx)
	if err != nil {
		return mailbox.Account{}, false, err
	}
	for _, acc := range list {
		if acc.Login == login {
			return acc, true, nil
		}
	}
	return mailbox.Account{}, false, nil
}

func invalid(format string, args ...any) error {
	return &mailbox.Error{Op: "account", Kind: mailbox.Invalid, Text: fmt.Sprintf(format, args...)}
}
