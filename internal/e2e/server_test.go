//go:build e2e || bench || soak

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary is the pizza that make built.
func binary(tb testing.TB) string {
	tb.Helper()
	path, err := filepath.Abs("../../pizza")
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("no ./pizza: run `make build` first: %v", err)
	}
	return path
}

// shared is the folder with the Thunderbird driver; a missing one skips the test,
// in CI it is an error.
func shared(tb testing.TB, part string) string {
	tb.Helper()
	path := filepath.Join(os.Getenv("SHARED"), part)
	if _, err := os.Stat(path); err != nil || os.Getenv("SHARED") == "" {
		if os.Getenv("CI") != "" {
			tb.Fatalf("%s is missing: set SHARED", path)
		}
		tb.Skipf("%s is missing: set SHARED to the folder that has it", path)
	}
	return path
}

// program finds a program of the system; missing ones skip, in CI they fail.
func program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatalf("%s is not installed", name)
		}
		tb.Skipf("%s is not installed", name)
	}
	return path
}

// endpoints is run/endpoints.json, as scripts read it.
type endpoints struct {
	IMAP, IMAPS, SMTP, SMTPS, Web, Control, Domain, User string
	PID                                                  int
}

// server is one `pizza serve` on a data root of its own.
type server struct {
	tb        testing.TB
	root      string
	args      []string
	env       []string
	process   *exec.Cmd
	log       *bytes.Buffer
	endpoints endpoints
}

// newServer prepares a server on free ports; start starts it.
func newServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	s := &server{tb: tb, root: filepath.Join(tb.TempDir(), "data"), env: []string{"PIZZA_MODEL=runbook:mail"}}
	s.args = append([]string{"serve", "--data-root", s.root, "--imap", "127.0.0.1:0", "--imaps", "127.0.0.1:0",
		"--smtp", "127.0.0.1:0", "--smtps", "127.0.0.1:0", "--web", "127.0.0.1:0"}, args...)
	tb.Cleanup(func() {
		if s.process == nil {
			return
		}
		if tb.Failed() {
			s.report()
		}
		s.stop()
	})
	return s
}

// report tells what a person would look at when something failed.
func (s *server) report() {
	for _, box := range []string{"inbox", "action", "running"} {
		out, _, _ := s.run("", box)
		s.tb.Logf("pizza %s:\n%s", box, out)
	}
	if b, err := os.ReadFile(filepath.Join(s.root, "logs", "pizza.log")); err == nil {
		s.tb.Logf("logs/pizza.log:\n%s", b[max(0, len(b)-6000):])
		if keep := os.Getenv("PIZZA_E2E_SHOTS"); keep != "" {
			_ = os.WriteFile(filepath.Join(keep, "pizza.log"), b, 0o600) // for whoever looks into it
		}
	}
}

// settings writes settings.json before the start.
func (s *server) settings(text string) {
	s.tb.Helper()
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		s.tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.root, "settings.json"), []byte(text), 0o600); err != nil {
		s.tb.Fatal(err)
	}
}

func startServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	s := newServer(tb, args...)
	s.start()
	return s
}

// start starts the process and waits till it is ready.
func (s *server) start() time.Duration {
	s.tb.Helper()
	// A killed server leaves its file behind.
	if err := os.Remove(filepath.Join(s.root, "run", "endpoints.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.tb.Fatal(err)
	}
	s.log = &bytes.Buffer{}
	s.process = exec.Command(binary(s.tb), s.args...)
	s.process.Env = append(os.Environ(), s.env...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	dieWithParent(s.process)
	began := time.Now()
	if err := s.process.Start(); err != nil {
		s.tb.Fatal(err)
	}
	s.waitReady()
	return time.Since(began)
}

func (s *server) waitReady() {
	s.tb.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		b, err := os.ReadFile(filepath.Join(s.root, "run", "endpoints.json"))
		if err == nil && json.Unmarshal(b, &s.endpoints) == nil {
			return
		}
		if time.Now().After(deadline) {
			s.kill()
			s.tb.Fatalf("pizza serve is not ready after 30 s:\n%s", s.log)
		}
		pause(2 * time.Millisecond)
	}
}

// pause waits outside any test's control: the other side is a process.
func pause(d time.Duration) { <-time.After(d) }

// kill ends the process at once, as a power cut would.
func (s *server) kill() {
	_ = s.process.Process.Signal(syscall.SIGKILL)
	_ = s.process.Wait()
	s.process = nil
}

// stop ends it as `systemctl stop` does and checks the promise: exit 0 in 10 s.
func (s *server) stop() {
	s.tb.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		s.tb.Errorf("stop: %v\n%s", err, s.log)
		return
	}
	done := make(chan error, 1)
	go func() { done <- s.process.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			s.tb.Errorf("pizza serve ended with %v:\n%s", err, s.log)
		}
	case <-time.After(10 * time.Second):
		_ = s.process.Process.Kill()
		s.tb.Errorf("pizza serve did not end within 10 s of SIGTERM:\n%s", s.log)
	}
	s.process = nil
	if s.tb.Failed() {
		s.tb.Logf("server log:\n%s", s.log)
	}
}

// cli runs one command against the data root.
func (s *server) cli(args ...string) (stdout string, code int) {
	s.tb.Helper()
	stdout, stderr, code := s.run("", args...)
	if code != 0 {
		s.tb.Logf("pizza %s: exit %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout, code
}

func (s *server) run(stdin string, args ...string) (stdout, stderr string, code int) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if !slices.Contains(args, "--data-root") {
		args = append(args, "--data-root", s.root)
	}
	cmd := exec.CommandContext(ctx, binary(s.tb), args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.tb.Fatalf("pizza %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must is cli that has to succeed.
func (s *server) must(args ...string) string {
	s.tb.Helper()
	out, code := s.cli(args...)
	if code != 0 {
		s.tb.Fatalf("pizza %s: exit %d", strings.Join(args, " "), code)
	}
	return out
}

func (s *server) password() string {
	s.tb.Helper()
	return strings.TrimSpace(s.must("password"))
}

// port is the port of one of the endpoints.
func (s *server) port(addr string) string {
	s.tb.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		s.tb.Fatal(err)
	}
	return port
}

// item is one line of `pizza inbox --json`.
type item struct {
	UID                                 int
	Unread                              bool
	From, Subject, Kind, Task, Decision string
	Keywords                            []string
}

func (s *server) list(box string) []item {
	s.tb.Helper()
	var items []item
	if err := json.Unmarshal([]byte(s.must(box, "--json")), &items); err != nil {
		s.tb.Fatal(err)
	}
	return items
}

// await lists a mailbox until it has n items of this kind.
func (s *server) await(box, kind string, n int) []item {
	s.tb.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		var found []item
		for _, it := range s.list(box) {
			if it.Kind == kind {
				found = append(found, it)
			}
		}
		if len(found) >= n {
			return found
		}
		if time.Now().After(deadline) {
			s.tb.Fatalf("%s has %d messages of kind %s, want %d", box, len(found), kind, n)
		}
		pause(50 * time.Millisecond)
	}
}

// grantFolder makes a folder with a file and returns it with its --grant value.
func grantFolder(tb testing.TB) (dir string, flag string) {
	tb.Helper()
	dir = filepath.Join(tb.TempDir(), "orders")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "today.txt"), []byte("2 Margherita\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return dir, dir + ":rw"
}

// command runs a program of the system and returns its output.
func command(tb testing.TB, env []string, stdin io.Reader, name string, args ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = stdin
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s %v: %v\n%s%s", filepath.Base(name), args, err, out, errs.String())
	}
	return string(out)
}
