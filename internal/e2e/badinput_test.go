//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func (w *wire) login(s *server) {
	w.t.Helper()
	w.want("220 ")
	w.send("EHLO bad\r\n")
	w.want("250 ")
	w.send("AUTH PLAIN " + plain("me", readPasswordFile(w.t, s)) + "\r\n")
	w.want("235 ")
}

func (w *wire) data(s *server, message string) {
	w.t.Helper()
	w.login(s)
	w.send("MAIL FROM:<me@localhost>\r\nRCPT TO:<pizza@localhost>\r\nDATA\r\n")
	w.want("250 ")
	w.want("250 ")
	w.want("354 ")
	w.send(message + "\r\n.\r\n")
}

const goodHeader = "From: me@localhost\r\nTo: pizza@localhost\r\nSubject: x\r\n"

// TestBadInput: each bad input gets the protocol's right answer, and the server
// goes on.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	t.Run("smtp", func(t *testing.T) { badSMTP(t, s) })
	t.Run("imap", func(t *testing.T) { badIMAP(t, s) })
	if out := s.must("send", "--wait", "say still here"); !strings.Contains(out, "still here") {
		t.Errorf("after the bad input: %q", out)
	}
}

func badSMTP(t *testing.T, s *server) {
	for name, c := range map[string]struct {
		input func(w *wire)
		want  string
	}{
		"wrong password": {func(w *wire) {
			w.want("220 ")
			w.send("EHLO bad\r\n")
			w.want("250 ")
			w.send("AUTH PLAIN " + plain("me", "wrong") + "\r\n")
		}, "535 5.7.8"},
		"no login": {func(w *wire) {
			w.want("220 ")
			w.send("EHLO bad\r\n")
			w.want("250 ")
			w.send("MAIL FROM:<me@localhost>\r\n")
		}, "530 5.7.0"},
		"oversize, announced": {func(w *wire) {
			w.login(s)
			w.send("MAIL FROM:<me@localhost> SIZE=99999999\r\n")
		}, "552 5.3.4"},
		"oversize, sent": {func(w *wire) {
			w.data(s, goodHeader+"\r\n"+strings.Repeat(strings.Repeat("x", 998)+"\r\n", 53_000))
		}, "552 5.3.4"},
		"NUL": {func(w *wire) { w.data(s, goodHeader+"\r\na\x00b") }, "554 5.6.0"},
		"bare LF smuggling": {func(w *wire) {
			w.data(s, goodHeader+"\r\nhello\n.\nMAIL FROM:<me@localhost>\nRCPT TO:<pizza@localhost>\nDATA\n"+goodHeader+"\nsay smuggled")
		}, "554 5.6.0"},
		"foreign From": {func(w *wire) { w.data(s, "From: boss@localhost\r\nTo: pizza@localhost\r\n\r\nhi") }, "553 5.7.1"},
		"unknown recipient": {func(w *wire) {
			w.login(s)
			w.send("MAIL FROM:<me@localhost>\r\n")
			w.want("250 ")
			w.send("RCPT TO:<piza@localhost>\r\n")
		}, "550 5.1.1"},
		"relay": {func(w *wire) {
			w.login(s)
			w.send("MAIL FROM:<me@localhost>\r\n")
			w.want("250 ")
			w.send("RCPT TO:<someone@example.com>\r\n")
		}, "550 5."},
		"10,000 parts": {func(w *wire) { w.data(s, manyParts(10_000)) }, "250 2.0.0 queued as "},
		"100 levels":   {func(w *wire) { w.data(s, nestedParts(100)) }, "250 2.0.0 queued as "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dialWire(t, s.endpoints.SMTP)
			c.input(w)
			w.want(c.want)
		})
	}
}

func manyParts(n int) string {
	return goodHeader + "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
		strings.Repeat("--b\r\nContent-Type: text/plain\r\n\r\nx\r\n", n) + "--b--"
}

func nestedParts(n int) string {
	var b strings.Builder
	b.WriteString(goodHeader + "MIME-Version: 1.0\r\n")
	for i := range n {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	b.WriteString("Content-Type: text/plain\r\n\r\nsay deep\r\n")
	for i := n - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "--b%d--\r\n", i)
	}
	return b.String()
}

func badIMAP(t *testing.T, s *server) {
	login := "a LOGIN me " + readPasswordFile(t, s) + "\r\n"
	for name, c := range map[string]struct{ input, want string }{
		"wrong password":           {"a LOGIN me wrong\r\n", "a NO [AUTHENTICATIONFAILED]"},
		"unknown command":          {login + "b FROBNICATE\r\n", "b BAD"},
		"command before login":     {"b SELECT INBOX\r\n", "b BAD"},
		"garbage after a literal":  {login + "b APPEND INBOX {3+}\r\nabc garbage\r\n", "b BAD"},
		"refused literal is mail":  {login + "b APPEND Nowhere {27+}\r\nx CREATE pwned\r\ny CREATE p\r\nc NOOP\r\n", "b NO [TRYCREATE]"},
		"bad date, then a literal": {login + "b APPEND INBOX \"99-Foo-2026\" {9+}\r\nx NOOP\r\n\r\n", "b BAD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dialWire(t, s.endpoints.IMAP)
			w.want("* OK")
			w.send(c.input)
			w.want(c.want)
		})
	}
	t.Run("half-sent literal", func(t *testing.T) {
		t.Parallel()
		w := dialWire(t, s.endpoints.IMAP)
		w.want("* OK")
		w.send(login + "b APPEND INBOX {1000+}\r\nhalf")
		_ = w.conn.Close()
		after := dialWire(t, s.endpoints.IMAP)
		after.want("* OK")
		after.send(login + "b STATUS Drafts (MESSAGES)\r\n")
		after.want("b OK")
	})
}

// TestSecondProcess: one data root, one process; the second is told who has it.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	_, stderr, code := s.run("", "serve", "--imap", "off", "--imaps", "off", "--smtp", "off", "--smtps", "off", "--web", "off")
	if code == 0 || !strings.Contains(stderr, fmt.Sprint(s.endpoints.PID)) {
		t.Errorf("a second serve: exit %d, %q; want an error naming process %d", code, stderr, s.endpoints.PID)
	}
	_, stderr, code = s.run("", "serve", "--data-root", filepath.Join(t.TempDir(), "other"), "--imap", s.endpoints.IMAP,
		"--imaps", "off", "--smtp", "off", "--smtps", "off", "--web", "off")
	if code == 0 || !strings.Contains(stderr, s.endpoints.IMAP) || strings.Count(strings.TrimSpace(stderr), "\n") > 0 {
		t.Errorf("a taken port: exit %d, %q; want one line naming %s", code, stderr, s.endpoints.IMAP)
	}
}

// TestPrivateAndReady: files are the user's alone, and the endpoints are true.
func TestPrivateAndReady(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must("send", "--wait", "say x")
	err := filepath.WalkDir(s.root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && d.Name() != "ca.pem" {
			t.Errorf("%s is %s: not private", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := httpGet(t, s.endpoints.Web+"/healthz"); status != 200 || strings.TrimSpace(body) != `{"status":"ok"}` {
		t.Errorf("healthz: %d %s", status, body)
	}
	if status, page := httpGet(t, s.endpoints.Web+"/"); status != 200 || !strings.Contains(page, s.port(s.endpoints.IMAP)) {
		t.Errorf("the page does not say how to connect: %d\n%s", status, page)
	}
}
