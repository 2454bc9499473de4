package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// demoTask is the mail of the demo: what an AI model would decide by itself is
// written out here, because the demo runs without a model and without a network.
const demoTask = `say I read your list of orders and wrote a summary beside it.
call list_folder {"path":"/local/orders"}
and call read_file {"path":"/local/orders/today.txt"}
call write_file {"path":"/local/orders/summary.txt","content":"3 pizzas, 1 salad. Total: 41.50\n"}
call read_file {"path":"/local/orders/summary.txt"}
`

const demoOrders = "2 Margherita   19.00\n1 Funghi       11.00\n1 salad        11.50\n"

func newDemo() *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "show a task going round: mail, approval, result (temporary data, no model, no network)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "pizza-demo")
			if err != nil {
				return err
			}
			return errors.Join(demo(cmd.Context(), cmd.OutOrStdout(), dir), os.RemoveAll(dir))
		},
	}
}

// demo starts a server as a process of its own and acts as a mail program does.
func demo(ctx context.Context, w io.Writer, dir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	orders := filepath.Join(dir, "orders")
	if err := os.Mkdir(orders, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(orders, "today.txt"), []byte(demoOrders), 0o600); err != nil {
		return err
	}
	server, err := startDemoServer(ctx, filepath.Join(dir, "data"), orders+":rw")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	return tellDemo(ctx, w, server, filepath.Join(orders, "summary.txt"))
}

// tellDemo is the story: each message is printed as it lies in the mailbox.
func tellDemo(ctx context.Context, w io.Writer, server *demoServer, written string) error {
	person, err := newPerson(server.endpoints, server.password)
	if err != nil {
		return err
	}
	defer person.close()
	say := func(format string, args ...any) { fmt.Fprintf(w, "\n"+format+"\n\n", args...) }

	say("1. You send a task to pizza@localhost, from any mail program or script:")
	queued, err := person.send(letter{to: []string{"pizza@localhost"}, subject: "Summary of today's orders", text: demoTask})
	if err != nil {
		return err
	}
	fmt.Fprint(w, frame(person.sent))
	say("   The server answers: %s", queued)

	say("2. Writing a file needs your decision. It waits in Action (and INBOX):")
	asked, err := person.await(ctx, "Action", "approval")
	if err != nil {
		return err
	}
	fmt.Fprint(w, frame(asked))

	say("3. You reply with one word:")
	if _, err := person.send(letter{to: []string{asked.replyTo}, subject: "Re: " + asked.subject, text: "approve\n", inReplyTo: asked.messageID}); err != nil {
		return err
	}
	fmt.Fprint(w, frame(person.sent))

	say("4. The result arrives in INBOX, unread, in the same thread:")
	result, err := person.await(ctx, "INBOX", "result")
	if err != nil {
		return err
	}
	fmt.Fprint(w, frame(result))
	content, err := os.ReadFile(written)
	if err != nil {
		return fmt.Errorf("the approved file is not there: %w", err)
	}
	say("The approved file holds: %s", strings.TrimSpace(string(content)))
	say("Now yours: `./pizza serve`, then set up a mail program as it says.")
	return nil
}

// frame prints a message as a person sees it.
func frame(m seen) string {
	var b strings.Builder
	b.WriteString("   ┌──────────────────────────────────────────────────────────────────────────\n")
	line := func(s string) { b.WriteString("   │ " + s + "\n") }
	line("From:    " + visible(m.from))
	line("To:      " + visible(m.to))
	line("Subject: " + visible(m.subject))
	line("Date:    " + m.date.Local().Format("Mon, 2 Jan 2006 15:04:05 MST"))
	line("")
	for _, l := range strings.Split(strings.TrimRight(visibleText(m.text), "\n"), "\n") {
		line(l)
	}
	b.WriteString("   └──────────────────────────────────────────────────────────────────────────\n")
	return b.String()
}

// demoServer is a `pizza serve` of its own.
type demoServer struct {
	process   *exec.Cmd
	endpoints endpoints
	password  string
	output    *strings.Builder
}

func startDemoServer(ctx context.Context, root, grant string) (*demoServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &demoServer{output: &strings.Builder{}}
	s.process = exec.Command(self, "serve", "--data-root", root, "--grant", grant,
		"--imap", "127.0.0.1:0", "--imaps", "off", "--smtp", "127.0.0.1:0", "--smtps", "off", "--web", "off")
	s.process.Env = append(os.Environ(), "PIZZA_MODEL=runbook:mail")
	s.process.Stderr = s.output
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	if err := s.ready(ctx, root); err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not start: %w\n%s", err, s.output), s.stop())
	}
	return s, nil
}

// ready waits for endpoints.json, which is written when the server serves.
func (s *demoServer) ready(ctx context.Context, root string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		e, err := readEndpoints(root)
		if err == nil {
			s.endpoints = e
			s.password, err = readPassword(root, e.User)
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *demoServer) stop() error {
	if err := terminate(s.process.Process); err != nil {
		return err
	}
	return s.process.Wait()
}
