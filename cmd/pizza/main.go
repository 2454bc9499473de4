// Command pizza is Pizza Mail: an inbox for long-running AI work in which
// everything a person does is mail. `pizza serve` runs the servers; the other
// commands talk to a running server over its control socket, or open the store
// themselves when none runs.
//
// This is the only package where the others are wired together.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"pizza/internal/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends what does not heed the first
	os.Exit(run(ctx, os.Args[1:]))
}

// run executes one command line and returns the exit code. Every failure is one
// line on standard error.
func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit exitError
	if errors.As(err, &exit) {
		if exit.text != "" {
			fmt.Fprintln(os.Stderr, exit.text)
		}
		return exit.code
	}
	fmt.Fprintln(os.Stderr, "pizza:", userText(err))
	return 1
}

// exitError ends the command with a code of its own: 1 a task failed, 3 it waits
// for a decision.
type exitError struct {
	code int
	text string
}

func (e exitError) Error() string { return e.text }

// globals are the flags every command has.
type globals struct {
	dataRoot string
	account  string
}

func newRoot() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:           "pizza",
		Short:         "Pizza Mail: AI tasks are mail. Send one to pizza@localhost; the result lands in your inbox.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,

		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate(versionLine())
	root.PersistentFlags().StringVar(&g.dataRoot, "data-root", "", "where everything is kept (else PIZZA_DATA_ROOT, else ~/.pizza-bot-oss)")
	root.PersistentFlags().StringVar(&g.account, "account", firstLogin, "whose mail (without it also the only account there is)")
	root.AddCommand(
		newServe(g), newPassword(g), newAccount(g), newVersion(),
		newSend(g), newList(g, "inbox", "INBOX", "all mail of INBOX: results, failures, notices, and mail of people"),
		newList(g, "action", "Action", "decisions that wait for you"),
		newList(g, "running", "Running", "live tasks"),
		newShow(g),
		newDecide(g, "approve ID [TEXT]", "let happen what `pizza action` lists"),
		newDecide(g, "reject ID [REASON]", "refuse it; the agent is told the reason"),
		newDecide(g, "answer ID TEXT|happened|repeat|stop|continue|delete|keep", "answer a question, with your words or one that `pizza show ID` lists"),
		newEdit(g), newPolicies(g),
		newCancel(g), newForget(g), newUsage(g),
		newBackup(g), newRestore(g), newExport(g), newImport(g),
		newDemo(),
	)
	helpful(root)
	return root
}

// root returns the data root as an absolute path.
func (g *globals) root() (string, error) { return config.DataRoot(g.dataRoot, nil) }
