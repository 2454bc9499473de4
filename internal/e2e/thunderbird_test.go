//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// thunderbird is a real Thunderbird under the shared driver.
type thunderbird struct {
	tb     testing.TB
	driver string
	dir    string
}

func startThunderbird(tb testing.TB, s *server, security string) *thunderbird {
	tb.Helper()
	program(tb, "thunderbird")
	program(tb, "Xvfb")
	t := &thunderbird{tb: tb, driver: filepath.Join(shared(tb, "thunderbird"), "tb"), dir: tb.TempDir()}
	imap, smtp := s.endpoints.IMAP, s.endpoints.SMTP
	if security == "tls" {
		imap, smtp = s.endpoints.IMAPS, s.endpoints.SMTPS
	}
	t.do("start", "--imap-port", s.port(imap), "--smtp-port", s.port(smtp), "--imap-security", security,
		"--smtp-security", security, "--password", s.password())
	tb.Cleanup(func() {
		if tb.Failed() {
			if keep := os.Getenv("PIZZA_E2E_SHOTS"); keep != "" {
				t.do("screenshot", filepath.Join(keep, strings.ReplaceAll(tb.Name(), "/", "-")+".png"))
			}
		}
		t.do("stop")
	})
	return t
}

// notIdle is what the driver says when Thunderbird was busy for a minute after a verb
// had done its work: its own wait, and no promise of ours.
const notIdle = "the server connections to fall idle"

// do runs one verb of the driver and returns its JSON. When the driver only missed
// that Thunderbird fell idle, what was to be seen is asked for again, and what was to
// be done counts as done: the next step sees whether it was.
func (t *thunderbird) do(verb string, args ...string) string {
	t.tb.Helper()
	out, err := t.try(verb, args...)
	if err != nil && strings.Contains(err.Error(), notIdle) {
		t.tb.Logf("tb %s: %v", verb, err)
		if verb == "send" || verb == "reply" || verb == "move" {
			return ""
		}
		out, err = t.try(verb, args...)
	}
	if err != nil {
		t.tb.Fatalf("tb %s %q: %v", verb, args, err)
	}
	return out
}

func (t *thunderbird) try(verb string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", append([]string{"-B", t.driver, "--dir", t.dir, verb}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	return string(out), err
}

// row is a message as Thunderbird lists it.
type row struct {
	N       int
	UID     int
	Subject string
	Read    bool
}

func (t *thunderbird) list(folder string) []row {
	t.tb.Helper()
	var rows []row
	if err := json.Unmarshal([]byte(t.do("list", folder)), &rows); err != nil {
		t.tb.Fatal(err)
	}
	return rows
}

// text opens a message and returns what the message pane shows.
func (t *thunderbird) text(folder, n string) string {
	t.tb.Helper()
	var shown struct{ Text string }
	if err := json.Unmarshal([]byte(t.do("read", folder, n)), &shown); err != nil {
		t.tb.Fatal(err)
	}
	return shown.Text
}

func mustContain(tb testing.TB, what, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// TestThunderbirdRoundTrip is the whole way in the program most people use: a task
// with an attached file, the approval pushed by IDLE, a reply that approves, the
// result unread in INBOX, and a next question in the same thread.
func TestThunderbirdRoundTrip(t *testing.T) {
	for _, security := range []string{"none", "tls"} {
		t.Run(security, func(t *testing.T) {
			dir, grant := grantFolder(t)
			s := newServer(t, "--grant", grant)
			s.settings(`{"limits":{"move_window_seconds":2}}`)
			s.start()
			tb := startThunderbird(t, s, security)
			thunderbirdDay(t, tb, dir)
			decideByMove(t, s, tb, dir)
		})
	}
}

func thunderbirdDay(t *testing.T, tb *thunderbird, dir string) {
	menu := filepath.Join(t.TempDir(), "menu.txt")
	if err := os.WriteFile(menu, []byte("Quattro Stagioni 12.50\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tb.do("open", "Sent") // Thunderbird puts its copy there while ours goes
	tb.do("open", "Action")
	tb.do("send", "--to", "pizza@localhost", "--subject", "Tomorrow's order", "--attach", menu,
		"--body", `call read_file {"path":"/in/menu.txt"}`+"\n"+
			`call write_file {"path":"/local/orders/tomorrow.txt","content":"Quattro Stagioni"}`+"\n"+"say done as you asked")
	tb.do("wait-unread", "INBOX", "1", "--timeout", "60")
	tb.do("wait-unread", "Action", "1", "--timeout", "60")
	asked := tb.text("INBOX", "-1")
	mustContain(t, "the approval", asked, "tomorrow.txt", "approve", "reject")
	if _, err := os.Stat(filepath.Join(dir, "tomorrow.txt")); err == nil {
		t.Fatal("the file was written before the decision")
	}

	tb.do("reply", "INBOX", "-1", "--body", "approve")
	tb.do("wait-message", "INBOX", "Re: Tomorrow's order", "--timeout", "60")
	newest := tb.list("INBOX")
	last := newest[len(newest)-1]
	if last.Read {
		t.Errorf("the result is not unread: %+v", last)
	}
	mustContain(t, "the result", tb.text("INBOX", "-1"), "done as you asked", "Quattro Stagioni 12.50")
	content, err := os.ReadFile(filepath.Join(dir, "tomorrow.txt"))
	if err != nil || string(content) != "Quattro Stagioni" {
		t.Fatalf("the approved file: %q, %v", content, err)
	}
	tb.do("sync", "Action")
	if rows := tb.list("Action"); len(rows) != 0 {
		t.Errorf("Action still has %+v", rows)
	}

	before := len(tb.list("INBOX"))
	tb.do("reply", "INBOX", "-1", "--body", "say and this is the next answer")
	tb.do("wait-unread", "INBOX", "1", "--timeout", "60")
	rows := tb.list("INBOX")
	if len(rows) != before+1 {
		t.Fatalf("INBOX has %d messages, want %d: %+v", len(rows), before+1, rows)
	}
	mustContain(t, "the next answer", tb.text("INBOX", "-1"), "and this is the next answer")
	mustContain(t, "its subject", rows[len(rows)-1].Subject, "Tomorrow's order")
}

// decideByMove moves one approval to Action/Approve and another to Action/Reject, as
// dragging them does.
func decideByMove(t *testing.T, s *server, tb *thunderbird, dir string) {
	for _, c := range []struct{ folder, name, want string }{
		{"Action/Approve", "moved.txt", "$Approved"},
		{"Action/Reject", "refused.txt", "$Rejected"},
	} {
		before := len(s.list("inbox"))
		s.must("send", `call write_file {"path":"/local/orders/`+c.name+`","content":"by move"}`)
		tb.do("wait-message", "INBOX", c.name, "--timeout", "60")
		tb.do("move", "Action", "-1", c.folder)
		deadline := time.Now().Add(30 * time.Second)
		for len(s.list("inbox")) != before+2 && time.Now().Before(deadline) {
			pause(100 * time.Millisecond)
		}
		var keywords []string
		for _, it := range s.list("inbox") {
			if it.Kind == "approval" && strings.Contains(it.Subject, c.name) {
				keywords = it.Keywords
			}
		}
		if !slices.Contains(keywords, c.want) {
			t.Errorf("the approval of %s has %q, want %s", c.name, keywords, c.want)
		}
	}
	wrote(t, dir, "moved.txt", "by move")
	if _, err := os.Stat(filepath.Join(dir, "refused.txt")); err == nil {
		t.Error("the refused file was written")
	}
}
