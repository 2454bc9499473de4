package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pizza/agent"
	"pizza/mailbox"
)

// open opens a data root of the test's own, with or without a control socket before
// it: the commands must not see a difference.
func open(t *testing.T, socket bool) service {
	t.Helper()
	root := t.TempDir()
	a := quiet(t, root)
	work(t, a)
	if !socket {
		return a
	}
	return dial(t, a, root)
}

// work has the workers of a run until the test ends.
func work(t *testing.T, a *app) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.agent.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func dial(t *testing.T, a *app, root string) service {
	t.Helper()
	l, err := listenControl(root)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: controlRoutes(a)}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	if err := (endpoints{Control: l.Addr().String(), User: "me", PID: os.Getpid()}).write(root); err != nil {
		t.Fatal(err)
	}
	client, err := dialControl(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func sendTask(t *testing.T, s service, text string) mailbox.Receipt {
	t.Helper()
	message, err := composeTask("me", sendFlags{to: []string{"pizza@localhost"}}, text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Send(t.Context(), "me", submission{To: []string{"pizza@localhost"}, Message: message})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestService holds that the commands say and do the same over the socket and
// without it.
func TestService(t *testing.T) {
	t.Parallel()
	for name, socket := range map[string]bool{"alone": false, "socket": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, socket)
			task := sendTask(t, s, "say well done").Task
			out, err := s.Wait(t.Context(), "me", task)
			if err != nil || out.State != agent.Done || !strings.Contains(out.Text, "well done") {
				t.Fatalf("Wait: %+v, %v", out, err)
			}
			items, err := s.List(t.Context(), "ME@localhost", "INBOX")
			if err != nil || len(items) != 1 || items[0].Task != task || items[0].Kind != "result" || !items[0].Unread {
				t.Errorf("List: %+v, %v", items, err)
			}
			shown, err := s.Show(t.Context(), "me", strings.ToUpper(task))
			if err != nil || shown.Task != task || len(shown.Runs) != 1 {
				t.Errorf("Show: %+v, %v", shown, err)
			}
			wantKind(t, mailbox.NotFound, func() error { _, err := s.Show(t.Context(), "me", "nosuchtask"); return err })
			wantKind(t, mailbox.NotFound, func() error { _, err := s.Forget(t.Context(), "me", "nosuchtask"); return err })
			if f, err := s.Forget(t.Context(), "me", task); err != nil || f.Task != task || f.Mails != 2 {
				t.Errorf("Forget: %+v, %v", f, err)
			}
			wantKind(t, mailbox.NotFound, func() error { _, err := s.Show(t.Context(), "me", task); return err })
			wantKind(t, mailbox.NotFound, func() error { _, err := s.List(t.Context(), "nobody", "INBOX"); return err })
			wantKind(t, mailbox.NotFound, func() error { return s.Cancel(t.Context(), "me", "nosuchtask") })
			wantKind(t, mailbox.NotFound, func() error {
				_, err := s.Decide(t.Context(), "me", decision{ID: "nosuchdecision1", Verb: "approve"})
				return err
			})
			wantKind(t, mailbox.NotFound, func() error {
				_, err := s.Send(t.Context(), "me", submission{To: []string{"piza@localhost"}, Message: []byte("From: me@localhost\r\n\r\nx")})
				return err
			})
		})
	}
}

// A model that nobody provides is said before anything is sent, with those there are; a
// model whose key is missing is a task as any other.
func TestSendToAnUnknownModel(t *testing.T) {
	t.Parallel()
	for _, socket := range []bool{false, true} {
		s := open(t, socket)
		m := submission{To: []string{"pizza@localhost"}, Message: []byte("From: me@localhost\r\n\r\nx"), Model: "nope:x"}
		_, err := s.Send(t.Context(), "me", m)
		var me *mailbox.Error
		if !errors.As(err, &me) || me.Kind != mailbox.Invalid || !strings.Contains(me.Text, `"nope"`) || !strings.Contains(me.Text, "openrouter, runbook") {
			t.Errorf("socket %v: %v", socket, err)
		}
		if list, err := s.List(t.Context(), "me", "Sent"); err != nil || len(list) != 0 {
			t.Errorf("socket %v: it was sent: %+v, %v", socket, list, err)
		}
		m.Model = "openrouter:x"
		if _, err := s.Send(t.Context(), "me", m); err != nil {
			t.Errorf("socket %v: %v", socket, err)
		}
	}
}

// wantKind checks an error's kind, and that it has a sentence for a person.
func wantKind(t *testing.T, kind mailbox.Kind, f func() error) {
	t.Helper()
	err := f()
	var me *mailbox.Error
	if !errors.As(err, &me) || me.Kind != kind || me.Text == "" {
		t.Errorf("error %#v, want kind %s with a text", err, kind)
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	s := open(t, true)
	add := credentialRequest{Login: "Ann", Name: defaultCredential, Scope: mailbox.ScopeFull, Make: true}
	password, err := s.PutCredential(t.Context(), add)
	if err != nil || len(password) != 29 {
		t.Fatalf("add: %q, %v", password, err)
	}
	wantKind(t, mailbox.Invalid, func() error { _, err := s.PutCredential(t.Context(), add); return err })
	for _, bad := range []credentialRequest{
		{Login: "pizza", Name: defaultCredential, Scope: mailbox.ScopeFull, Make: true},
		{Login: "../x", Name: defaultCredential, Scope: mailbox.ScopeFull, Make: true},
		{Login: "nobody", Name: "cron", Scope: mailbox.ScopeSend},
		{Login: "ann", Name: "cron", Scope: "all"},
		{Login: "ann", Name: defaultCredential, Scope: mailbox.ScopeSend},
	} {
		wantKind(t, mailbox.Invalid, func() error { _, err := s.PutCredential(t.Context(), bad); return err })
	}
	if _, err := s.PutCredential(t.Context(), credentialRequest{Login: "ann", Name: "cron", Scope: mailbox.ScopeSend}); err != nil {
		t.Fatal(err)
	}
	list, err := s.Accounts(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("accounts %+v, %v", list, err)
	}
	if err := s.RemoveCredential(t.Context(), credentialRequest{Login: "ann"}); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Accounts(t.Context()); err != nil || len(list) != 1 || list[0].Login != "me" {
		t.Errorf("after remove: %+v, %v", list, err)
	}
}

// A socket path that is too long for the system lies elsewhere, in a private place.
func TestLongControlPath(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(filepath.Join(root, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := listenControl(root)
	if err != nil {
		t.Fatal(err)
	}
	path := l.Addr().(*net.UnixAddr).Name
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), removeControlDir(root, path)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Dir(path)); err == nil {
			t.Errorf("%s was left behind", filepath.Dir(path))
		}
	})
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 || len(path) > maxSocketPath {
		t.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
}
