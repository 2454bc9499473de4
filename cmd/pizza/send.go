package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pizza/agent"
	"pizza/internal/mail"
)

// sendFlags are the flags of `pizza send`.
type sendFlags struct {
	to      []string
	subject string
	attach  []string
	model   string
	budget  string
	wait    bool
	timeout time.Duration
}

func newSend(g *globals) *cobra.Command {
	var f sendFlags
	cmd := &cobra.Command{
		Use: "send [TEXT|-]", Short: "send a task (or mail to a person) and print the task id",
		Long: "Send a task: TEXT, or standard input for - or nothing. Prints the task id. With --wait it\nprints the result and exits 0, 1 when the task failed, 3 when it waits for a decision,\nor for the key of its provider.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.timeout != 0 && !f.wait {
				return errors.New("--timeout says how long to wait: give --wait too")
			}
			if f.budget != "" {
				if _, err := agent.ParseBudget(f.budget); err != nil {
					return fmt.Errorf("--budget: %w", err)
				}
			}
			text, err := readText(cmd, args)
			if err != nil {
				return err
			}
			if strings.TrimSpace(text) == "" && len(f.attach) == 0 {
				return errors.New("the text is empty, and nothing is attached: there is nothing to do")
			}
			return g.with(cmd, func(s service) error { return send(cmd, g, s, f, text) })
		},
	}
	cmd.Flags().StringArrayVar(&f.to, "to", nil, "address (default pizza@localhost); may be given again")
	cmd.Flags().StringVar(&f.subject, "subject", "", "subject (default: the first line of the text)")
	cmd.Flags().StringArrayVar(&f.attach, "attach", nil, "file to attach; may be given again")
	cmd.Flags().StringVar(&f.model, "model", "", "model for this task, as provider:id")
	cmd.Flags().StringVar(&f.budget, "budget", "", "what this task may use before it asks, as in calls=50,tools=100,tokens=200k,usd=2.50,time=1h")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait for the result and print it")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "with --wait: give up after this long, as in 30s or 5m (the task goes on)")
	return cmd
}

func send(cmd *cobra.Command, g *globals, s service, f sendFlags, text string) error {
	if len(f.to) == 0 {
		f.to = []string{"pizza@localhost"}
	}
	message, err := composeTask(g.account, f, text)
	if err != nil {
		return err
	}
	_, alone := s.(*app)
	if alone && f.wait {
		return fmt.Errorf("--wait: %w", errNoServer)
	}
	receipt, err := s.Send(cmd.Context(), g.account, submission{To: f.to, Message: message, Model: f.model})
	if err != nil {
		return err
	}
	if receipt.Note != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "pizza:", receipt.Note)
	}
	if receipt.Task == "" {
		return nil
	}
	if alone {
		fmt.Fprintln(cmd.ErrOrStderr(), "pizza: no server runs: the task is kept and starts with `pizza serve`")
	}
	if !f.wait {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), receipt.Task)
		return err
	}
	return waitFor(cmd, g, s, receipt.Task, f.timeout)
}

// notEnded says how a task stands that was waited for in vain.
func notEnded(ctx context.Context, g *globals, s service, task string, timeout time.Duration) error {
	how := ""
	if shown, err := s.Show(ctx, g.account, task); err == nil && shown.State != "" {
		how = " (" + mail.StateText(string(shown.State), shown.For) + ")"
	}
	return fmt.Errorf("task %s has not ended after %s%s; it goes on: `pizza show %s`", task, timeout, how, task)
}

// waitFor prints the result of a task and maps how it ended to the exit code.
func waitFor(cmd *cobra.Command, g *globals, s service, task string, timeout time.Duration) error {
	ctx := cmd.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	out, err := s.Wait(ctx, g.account, task)
	if errors.Is(err, context.DeadlineExceeded) {
		return notEnded(cmd.Context(), g, s, task, timeout)
	}
	if err != nil {
		return err
	}
	return told(cmd, task, out)
}

// told prints the result of a task that rests, and maps how it stands to the exit code.
func told(cmd *cobra.Command, task string, out outcome) error {
	switch {
	case out.State == agent.Done:
		_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(visibleText(out.Text), "\n"))
		return err
	case out.State == agent.Waiting && out.For != "":
		return exitError{code: 3, text: fmt.Sprintf("pizza: task %s waits for %s: %s\nIt goes on by itself then; `pizza cancel %s` ends it", task, out.For, visibleText(out.Text), task)}
	case out.State == agent.Waiting:
		return exitError{code: 3, text: fmt.Sprintf("pizza: task %s waits for a decision: %s\n`pizza show %s` tells how to decide it", task, visibleText(out.Text), task)}
	default:
		return exitError{code: 1, text: fmt.Sprintf("pizza: task %s %s: %s", task, out.State, visibleText(out.Text))}
	}
}

// composeTask makes the mail that a task is.
func composeTask(account string, f sendFlags, text string) ([]byte, error) {
	login, _, _ := strings.Cut(strings.ToLower(account), "@")
	l := letter{from: login + "@localhost", to: f.to, subject: f.subject, text: text}
	if l.subject == "" {
		l.subject = firstLine(text)
	}
	if f.model != "" {
		l.headers = append(l.headers, [2]string{"X-Pizza-Model", f.model})
	}
	if f.budget != "" {
		l.headers = append(l.headers, [2]string{"X-Pizza-Budget", f.budget})
	}
	for _, path := range f.attach {
		a, err := attachFile(path)
		if err != nil {
			return nil, err
		}
		l.files = append(l.files, a)
	}
	var b bytes.Buffer
	if err := l.write(&b, time.Now()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// attachFile names a file as an attachment; it is read when the mail is composed.
func attachFile(path string) (attachment, error) {
	info, err := os.Stat(path)
	if err != nil {
		return attachment{}, err
	}
	if info.IsDir() {
		return attachment{}, fmt.Errorf("%s is a folder: grant it with `pizza serve --grant`, or attach files", path)
	}
	media := mime.TypeByExtension(filepath.Ext(path))
	if media == "" {
		media = "application/octet-stream"
	}
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	return attachment{name: filepath.Base(path), media: media, open: open}, nil
}

// firstLine is a subject for a text that came without one.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if line == "" {
		return "Task"
	}
	if r := []rune(line); len(r) > 70 {
		return string(r[:69]) + "…"
	}
	return line
}
