package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"pizza/agent"
	"pizza/internal/mail"
)

func newShow(g *globals) *cobra.Command {
	var asJSON, follow, through bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "tell everything about a task or decision: state, steps, result", Args: cobra.ExactArgs(1),
		Long: "Tell everything about a task, a run or a decision. With --follow what happens is printed as it\n" +
			"does, until the task rests: exit 0 when it is done, 1 when it failed or was cancelled, 3 when it\n" +
			"waits for a decision (unless --through is given). A server that restarts is waited for.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantID(args); err != nil {
				return err
			}
			if through && !follow || follow && asJSON {
				return errors.New("--through wants --follow, and --follow prints no JSON")
			}
			return g.with(cmd, func(s service) error {
				if follow {
					f := following{cmd: cmd, g: g, id: args[0], through: through}
					return f.follow(s)
				}
				shown, err := s.Show(cmd.Context(), g.account, args[0])
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd.OutOrStdout(), shown)
				}
				return printShown(cmd.OutOrStdout(), shown)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on printing what happens until the task rests")
	cmd.Flags().BoolVar(&through, "through", false, "with --follow: past decisions too, to the end of the task")
	return cmd
}

// rest reports whether a task does nothing by itself any more, and how it stands.
func rest(s agent.Shown) (outcome, bool) {
	switch {
	case s.State.Ended() && s.Queue == 0:
		return outcome{State: s.State, Text: s.Text}, true
	case s.State == agent.Waiting && s.Refused != "":
		return outcome{State: agent.Waiting, For: "the key of " + s.Refused, Text: s.Why}, true
	case len(s.Open) > 0:
		var asked []string
		for _, d := range s.Open {
			asked = append(asked, fmt.Sprintf("%s (%s)", d.Subject, d.ID))
		}
		return outcome{State: agent.Waiting, Text: strings.Join(asked, "; ")}, true
	}
	return outcome{}, false
}

func printShown(w io.Writer, s agent.Shown) error {
	if s.Decision != nil {
		if err := printDecision(w, *s.Decision); err != nil {
			return err
		}
	}
	if s.Task == "" {
		return printOpen(w, s)
	}
	state := mail.StateText(string(s.State), s.For)
	if s.Why != "" {
		state += ": " + visible(s.Why)
	}
	if s.Queue > 0 {
		state += fmt.Sprintf(", %s more to come", count(s.Queue, "mail"))
	}
	if _, err := fmt.Fprintf(w, "task %s: %s\n%s\n%s", s.Task, visible(s.Subject), state, branchLines(s)); err != nil {
		return err
	}
	for _, run := range s.Runs {
		if _, err := io.WriteString(w, "\n"+runHead(run)+"\n"); err != nil {
			return err
		}
		if err := printLines(w, run, 0); err != nil {
			return err
		}
		if run.Text != "" {
			if _, err := fmt.Fprintf(w, "\n%s\n", visibleText(strings.TrimSpace(run.Text))); err != nil {
				return err
			}
		}
	}
	return printOpen(w, s)
}

// branchLines say where a task came from, and which came from it.
func branchLines(s agent.Shown) string {
	text := ""
	if s.From != nil {
		text = visible(s.From.String()) + "\n"
	}
	if len(s.Branches) > 0 {
		text += "branches: " + strings.Join(s.Branches, ", ") + "\n"
	}
	return text
}

// runHead names a run; that of a worker with the way from the task to it.
func runHead(run agent.ShownRun) string {
	head := fmt.Sprintf("run %s: %s", run.ID, mail.StateText(string(run.State), run.For))
	if len(run.Path) > 0 {
		head = fmt.Sprintf("worker %s, %s", strings.Join(run.Path, " > "), head)
	}
	return head + ", model " + run.Model
}

// printOpen lists the decisions that wait and how to answer them.
func printOpen(w io.Writer, s agent.Shown) error {
	for _, d := range s.Open {
		answers := "pizza approve|reject|edit|answer " + d.ID
		switch d.Kind {
		case "approval":
		case "question":
			answers = "pizza answer " + d.ID + " TEXT"
		default:
			answers = "pizza answer " + d.ID + " " + strings.Join(d.Verbs(), "|")
		}
		if _, err := fmt.Fprintf(w, "\nopen: %s\n  %s\n", visible(d.Subject), answers); err != nil {
			return err
		}
	}
	return nil
}

// printDecision tells of the decision that was asked for, before its task.
func printDecision(w io.Writer, d agent.Decision) error {
	how := string(d.State)
	switch {
	case d.By != nil:
		how += fmt.Sprintf(" by %s, %s", mail.ByText(d.By.Login, d.By.Via), d.By.At.Local().Format(time.DateTime))
	case !d.Expires.IsZero():
		how += ", expires " + d.Expires.Local().Format(time.DateTime)
	}
	text := fmt.Sprintf("decision %s: %s\n%s\n", d.ID, visible(d.Subject), how)
	if d.Tool != "" {
		text += fmt.Sprintf("%s %s\n", d.Tool, readableLine(d.Args))
	}
	if d.Edited != nil {
		text += "with your changes: " + readableLine(d.Edited) + "\n"
	}
	if d.Reason != "" {
		text += "reason: " + visible(d.Reason) + "\n"
	}
	if d.Task != "" {
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// printLines prints the journal lines after a sequence number.
func printLines(w io.Writer, run agent.ShownRun, after uint64) error {
	for _, l := range run.Lines {
		if l.Seq <= after {
			continue
		}
		if err := printLine(w, l); err != nil {
			return err
		}
	}
	return nil
}

// isTerminal reports whether a person sits at the other end.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
