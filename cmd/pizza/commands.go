package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"pizza/internal/unseen"
	"pizza/mailbox"
)

// open gives the service of the data root: the running server's, else the store
// opened here.
func (g *globals) open(cmd *cobra.Command) (service, error) {
	if strings.TrimSpace(g.account) == "" {
		return nil, errors.New("--account needs the name of an account")
	}
	root, err := g.root()
	if err != nil {
		return nil, err
	}
	client, err := dialControl(root)
	if err == nil {
		return client, g.settle(cmd, client)
	}
	if !errors.Is(err, errNoServer) {
		return nil, err
	}
	if !madeByServe(root) {
		return nil, fmt.Errorf("there is no data root at %s yet: `pizza serve` makes it at its first start; --data-root names another one", root)
	}
	a, err := openAlone(cmd.Context(), root)
	if err != nil {
		return nil, err
	}
	return a, g.settle(cmd, a)
}

// settle says whose mail a command without --account is about: that of me, or, when me
// was removed, of the only account there is.
func (g *globals) settle(cmd *cobra.Command, s service) error {
	if cmd.Flags().Changed("account") {
		return nil
	}
	list, err := s.Accounts(cmd.Context())
	if err != nil {
		return errors.Join(err, s.Close())
	}
	if only := firstOf(list); len(list) == 1 && only != "" {
		g.account = only
	}
	return nil
}

// firstOf is the account that is meant when none is named: me, or the first by name.
func firstOf(list []mailbox.Account) string {
	first := ""
	for _, acc := range list {
		if acc.Login == firstLogin {
			return firstLogin
		}
		if first == "" || acc.Login < first {
			first = acc.Login
		}
	}
	return first
}

// madeByServe reports whether a server ever ran on root. A command that opens the
// store itself must not make a root of a mistyped path, where nobody would look.
func madeByServe(root string) bool {
	_, err := os.Stat(filepath.Join(root, "accounts.db"))
	return !errors.Is(err, fs.ErrNotExist)
}

// with runs f with the service and closes it.
func (g *globals) with(cmd *cobra.Command, f func(service) error) error {
	s, err := g.open(cmd)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

func newList(g *globals, use, box, what string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: "list " + what, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.with(cmd, func(s service) error {
				items, err := s.List(cmd.Context(), g.account, box)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), nonNil(items))
				}
				return printItems(cmd.OutOrStdout(), items)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// nonNil makes an empty list print as [] and not as null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printItems prints a list for a person: unread mark, the id to use in other
// commands, when, kind and subject.
func printItems(w io.Writer, items []item) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "nothing here")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, it := range items {
		mark, id := " ", it.Task
		if it.Unread {
			mark = "*"
		}
		if it.Decision != "" {
			id = it.Decision
		}
		if id == "" {
			id = "-"
		}
		kind := cmp.Or(decidedAs(it.Keywords), it.Kind, "mail")
		if _, err := fmt.Fprintf(tw, "%s %s\t%s\t%s\t%s\n", mark, id, it.Date.Local().Format("2006-01-02 15:04"), kind, visible(it.Subject)); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// decidedAs is what became of a decision, by the keyword on its mail; "" while it is
// open.
func decidedAs(keywords []string) string {
	for _, k := range keywords {
		switch k {
		case "$Approved", "$Rejected", "$Edited", "$Answered", "$Expired":
			return strings.ToLower(k[1:])
		}
	}
	return ""
}

// visible keeps control characters of a mail from reaching a terminal, and drops what
// cannot be seen or makes a terminal show text in another order than it has (Unicode
// TR 36, 2.5).
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return '�'
		case unseen.Invisible(r):
			return -1
		}
		return r
	}, s)
}

// visibleText is visible for text of several lines.
func visibleText(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = visible(strings.ReplaceAll(l, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// newDecide makes a command that decides; words after the id are one text.
func newDecide(g *globals, use, short string) *cobra.Command {
	verb, _, _ := strings.Cut(use, " ")
	least := 1
	if verb == "answer" {
		least = 2
	}
	long, always := "", false
	if verb == "answer" {
		long = "Answer a question that `pizza action` or `pizza inbox` lists with an id: what the agent wants to know\n" +
			"(your whole text), what became of an action that was cut off (happened, repeat or stop), whether a task\n" +
			"goes on at a limit (continue, continue 10 or stop), whether a restored store goes on (continue or stop),\n" +
			"whether notes or schedules that were put back are deleted (delete or keep). For an approval, the text\n" +
			"goes to the agent in the place of a decision."
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.MinimumNArgs(least),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantID(args); err != nil {
				return err
			}
			d := decision{ID: args[0], Verb: verb, Text: strings.Join(args[1:], " ")}
			if always {
				d.Verb = "always"
			}
			return g.with(cmd, func(s service) error {
				done, err := s.Decide(cmd.Context(), g.account, d)
				if err != nil {
					return err
				}
				return printDecided(cmd.OutOrStdout(), done)
			})
		},
	}
	if verb == "approve" {
		cmd.Flags().BoolVar(&always, "always", false, "and use this tool in this task from now on without asking; pizza policies lists that")
	}
	return cmd
}

// wantID refuses an id that is empty, as an unset variable in a script gives it.
func wantID(args []string) error {
	if strings.TrimSpace(args[0]) == "" {
		return errors.New("the id is empty: `pizza running` and `pizza action` list them")
	}
	return nil
}

func newCancel(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "end a live task, one that `pizza running` lists", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantID(args); err != nil {
				return err
			}
			return g.with(cmd, func(s service) error {
				if err := s.Cancel(cmd.Context(), g.account, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "cancelled")
				return err
			})
		},
	}
}

func newPassword(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "password [NAME]", Short: "print the generated password of an account", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := g.root()
			if err != nil {
				return err
			}
			name := g.account
			if len(args) == 1 {
				name = args[0]
			} else if !cmd.Flags().Changed("account") {
				name = onlyCredential(root, name)
			}
			password, err := readPassword(root, name)
			if err != nil {
				return g.whyNoPassword(cmd, root, name, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), password)
			return err
		},
	}
}

// whyNoPassword is err, or that there is no such account.
func (g *globals) whyNoPassword(cmd *cobra.Command, root, name string, err error) error {
	if !madeByServe(root) {
		return err
	}
	login, _, _ := strings.Cut(strings.ToLower(name), "@")
	return g.with(cmd, func(s service) error {
		list, listErr := s.Accounts(cmd.Context())
		if listErr != nil {
			return errors.Join(err, listErr)
		}
		var logins []string
		for _, acc := range list {
			if acc.Login == login {
				return err
			}
			logins = append(logins, acc.Login)
		}
		return fmt.Errorf("there is no account %q; there are: %s", login, strings.Join(logins, ", "))
	})
}

// readText gives the task text: the argument, or standard input for "-".
func readText(cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	if len(args) == 0 && isTerminal(os.Stdin) {
		return "", errors.New("no text: give it as an argument, or `-` to read standard input")
	}
	b, err := io.ReadAll(cmd.InOrStdin())
	return string(b), err
}
