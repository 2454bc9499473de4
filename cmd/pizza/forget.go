package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"pizza/agent"
)

func newForget(g *globals) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "forget TASK", Short: "drop all that was made of a task that has ended, but for its mails", Args: cobra.ExactArgs(1),
		Long: "Drop what was made of a task that has ended: its steps, results, files and decisions. Its\n" +
			"mails in your mailboxes stay until you delete them; a reply to one starts a new task.\n" +
			"Backups that were made before still hold it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantID(args); err != nil {
				return err
			}
			return g.with(cmd, func(s service) error {
				if !yes {
					if err := confirmForget(cmd, g, s, args[0]); err != nil {
						return err
					}
				}
				f, err := s.Forget(cmd.Context(), g.account, args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "forgotten: %s (%s); %s in your mailboxes\n", f.Task, visible(f.Subject), staysText(f.Mails))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func staysText(mails int) string {
	if mails == 1 {
		return "1 mail stays"
	}
	return count(mails, "mail") + " stay"
}

// confirmForget asks the person at the terminal; nobody else can be asked.
func confirmForget(cmd *cobra.Command, g *globals, s service, id string) error {
	shown, err := s.Show(cmd.Context(), g.account, id)
	if err != nil {
		return err
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return errors.New("not forgotten: nobody can be asked here; --yes forgets without asking")
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Forget task %s (%s) with %s?%s It cannot be taken back. [y/N] ",
		shown.Task, visible(shown.Subject), count(len(shown.Runs), "run"), branchesLose(shown.Branches))
	line, err := bufio.NewReader(in).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(line)); err != nil || word != "y" && word != "yes" {
		return errors.New("not forgotten")
	}
	return nil
}

func branchesLose(branches []string) string {
	if len(branches) == 0 {
		return ""
	}
	return " What branched off from it (" + strings.Join(branches, ", ") + ") then knows nothing of it."
}

// Forget drops what was made of a task.
func (a *app) Forget(ctx context.Context, account, id string) (agent.Forgot, error) {
	who, err := a.identity(ctx, account)
	if err != nil {
		return agent.Forgot{}, err
	}
	return a.agent.Forget(ctx, who.Account, id)
}
