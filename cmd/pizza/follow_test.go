package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"pizza/agent"
)

// paper is written by one and read by another.
type paper struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newPaper() *paper { return &paper{more: make(chan struct{}, 1)} }

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
	return p.text.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// until waits for a text.
func (p *paper) until(t *testing.T, text string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !strings.Contains(p.String(), text) {
		select {
		case <-p.more:
		case <-late:
			t.Fatalf("%q does not come:\n%s", text, p)
		}
	}
}

// show runs `pizza show` with these arguments.
func show(ctx context.Context, root string, out, errs *paper, args ...string) <-chan error {
	done := make(chan error, 1)
	cmd := newRoot()
	cmd.SetOut(out)
	cmd.SetErr(errs)
	cmd.SetArgs(append([]string{"show", "--data-root", root}, args...))
	go func() { done <- cmd.ExecuteContext(ctx) }()
	return done
}

func codeOf(err error) int {
	var exit exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	if err != nil {
		return 1
	}
	return 0
}

// show --follow prints each line once, ends with the codes of send --wait, and goes on when
// the server has been away.
func TestShowFollow(t *testing.T) {
	t.Parallel()
	root, docs := t.TempDir(), t.TempDir()
	settings := fmt.Sprintf(`{"grants": [{"path": %q, "write": true}]}`, docs)
	if err := os.WriteFile(filepath.Join(root, "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	a := quiet(t, root)
	work, stop := context.WithCancel(t.Context())
	worked := make(chan struct{})
	go func() { defer close(worked); _ = a.agent.Run(work) }()
	t.Cleanup(func() { stop(); <-worked })
	serve := func() *http.Server {
		l, err := listenControl(root)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: controlRoutes(a)}
		go s.Serve(l)
		if err := (endpoints{Control: l.Addr().String(), User: "me", PID: os.Getpid()}).write(root); err != nil {
			t.Fatal(err)
		}
		return s
	}
	server := serve()
	task := sendTask(t, a, fmt.Sprintf(`call write_file {"path":"/local/%s/a.txt","content":"a"}`+"\nsay well done", a.settings.Folders()[0].ID)).Task

	out, errs := newPaper(), newPaper()
	if err := <-show(t.Context(), root, out, errs, task, "--follow"); codeOf(err) != 3 || !strings.Contains(out.String(), "write_file: asks you") {
		t.Fatalf("while it waits: %v\n%s", err, out)
	}
	out, errs = newPaper(), newPaper()
	done := show(t.Context(), root, out, errs, task, "--follow", "--through")
	out.until(t, "write_file: asks you")
	server.Close()
	errs.until(t, "the server has gone")
	server = serve()
	t.Cleanup(func() { server.Close() })
	errs.until(t, "the server is back")
	shown, err := a.Show(t.Context(), "me", task)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Decide(t.Context(), "me", decision{ID: shown.Open[0].ID, Verb: "approve"}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; codeOf(err) != 0 {
		t.Errorf("%v\n%s", err, errs)
	}
	for _, line := range []string{"run " + task + ".1\n", "started with", "write_file: asks you", "approve by", "write_file: ok", "ended: done"} {
		if n := strings.Count(out.String(), line); n != 1 {
			t.Errorf("%q is there %d times:\n%s", line, n, out)
		}
	}
	if !strings.Contains(out.String(), "\nwell done") {
		t.Errorf("the result does not come:\n%s", out)
	}
	failed := sendTask(t, a, "fail on purpose").Task
	if err := <-show(t.Context(), root, newPaper(), newPaper(), failed, "--follow"); codeOf(err) != 1 {
		t.Errorf("of one that fails: %v", err)
	}
	if err := <-show(t.Context(), root, newPaper(), newPaper(), "nothing", "--follow"); codeOf(err) != 1 || !strings.Contains(userText(err), "no task has the id") {
		t.Errorf("of none: %v", err)
	}
}

// Without a server there is nothing to wait for.
func TestShowFollowAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, err := openAlone(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	task := sendTask(t, a, "say x").Task
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-show(t.Context(), root, newPaper(), newPaper(), task, "--follow"); !errors.Is(err, errNoServer) {
		t.Errorf("%v", err)
	}
}

// What a worker does bears its name.
func TestFollowNamesWorkers(t *testing.T) {
	t.Parallel()
	cmd, out := &cobra.Command{}, &strings.Builder{}
	cmd.SetOut(out)
	f := &following{cmd: cmd, printed: map[string]uint64{}}
	for _, act := range []agent.Activity{
		{Run: "t.1", Seq: 1, Text: "began"}, {Run: "t.1.1", Worker: "clerk > checker", Seq: 1, Text: "looked"},
		{Run: "t.1.1", Worker: "clerk > checker", Seq: 1, Text: "looked"}, {Run: "t.1", Seq: 2, Text: "ended"},
	} {
		if err := f.line(act); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			line = text
		}
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{"run t.1", "began", "run t.1.1", "clerk > checker: looked", "run t.1", "ended"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
