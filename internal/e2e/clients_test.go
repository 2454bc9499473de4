//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const approvalTask = `say well done
call write_file {"path":"/local/orders/new.txt","content":"one Funghi"}
`

// wrote checks the effect of approvalTask.
func wrote(t *testing.T, dir, name, want string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

func TestCommandLineRoundTrip(t *testing.T) {
	t.Parallel()
	dir, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	if out := s.must("send", "--wait", "say hello"); !strings.Contains(out, "hello") {
		t.Errorf("send --wait printed %q", out)
	}
	if _, code := s.cli("send", "--wait", "fail no more flour"); code != 1 {
		t.Errorf("a failed task: exit %d, want 1", code)
	}
	if _, code := s.cli("send", "--wait", approvalTask); code != 3 {
		t.Errorf("a task that waits for a decision: exit %d, want 3", code)
	}
	open := s.await("action", "approval", 1)[0]
	s.must("approve", open.Decision)
	s.await("inbox", "result", 2)
	wrote(t, dir, "new.txt", "one Funghi")
	if _, code := s.cli("approve", open.Decision); code == 0 {
		t.Error("a second approve of the same decision succeeded")
	}
	if rest := s.list("action"); len(rest) != 0 {
		t.Errorf("Action still has %+v", rest)
	}
	shown := s.must("show", open.Task)
	mustContain(t, "show", shown, open.Task, "write_file", "approve")
}

func TestRejectAndCancel(t *testing.T) {
	t.Parallel()
	dir, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	s.must("send", approvalTask)
	s.must("reject", s.await("action", "approval", 1)[0].Decision, "too greasy")
	result := s.await("inbox", "result", 1)[0]
	mustContain(t, "show", s.must("show", result.Task), "too greasy")
	task := strings.TrimSpace(s.must("send", approvalTask))
	s.await("action", "approval", 1)
	s.must("cancel", task)
	s.await("inbox", "notice", 1)
	if rest := s.list("action"); len(rest) != 0 {
		t.Errorf("Action still has %+v after cancel", rest)
	}
	if rest := s.list("running"); len(rest) != 0 {
		t.Errorf("Running still has %+v after cancel", rest)
	}
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
		t.Error("a rejected or cancelled call wrote its file")
	}
}

func TestPythonRoundTrip(t *testing.T) {
	t.Parallel()
	dir, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	out := command(t, nil, nil, program(t, "python3"), "testdata/roundtrip.py", s.port(s.endpoints.IMAP), s.port(s.endpoints.SMTP), s.password())
	mustContain(t, "the result", out, "fertig")
	wrote(t, dir, "python.txt", "from python")
}

// TestCurlRoundTrip sends, approves and reads with nothing but curl.
func TestCurlRoundTrip(t *testing.T) {
	t.Parallel()
	curl := program(t, "curl")
	dir, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	login := "me:" + s.password()
	ca := filepath.Join(s.root, "tls", "ca.pem")
	submit := func(to, message string) {
		command(t, nil, strings.NewReader(message), curl, "-sS", "--ssl-reqd", "--cacert", ca, "--user", login,
			"--url", "smtp://localhost:"+s.port(s.endpoints.SMTP), "--mail-from", "me@localhost", "--mail-rcpt", to, "--upload-file", "-")
	}
	submit("pizza@localhost", "From: me@localhost\r\nTo: pizza@localhost\r\nSubject: curl\r\n\r\n"+strings.ReplaceAll(approvalTask, "\n", "\r\n"))
	open := s.await("action", "approval", 1)[0]
	submit("pizza+a."+open.Decision+"@localhost", "From: me@localhost\r\nTo: pizza@localhost\r\nSubject: Re: curl\r\n\r\napprove\r\n")
	s.await("inbox", "result", 1)
	wrote(t, dir, "new.txt", "one Funghi")
	base := "imaps://localhost:" + s.port(s.endpoints.IMAPS) + "/INBOX"
	found := command(t, nil, nil, curl, "-sS", "--cacert", ca, "--user", login, base+"?HEADER%20X-Pizza-Kind%20result")
	uid := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(found), "* SEARCH"))
	got := command(t, nil, nil, curl, "-sS", "--cacert", ca, "--user", login, base+";UID="+uid)
	mustContain(t, "the result by curl", got, "Subject: Re: curl", "well done")
}

// TestNeomuttRoundTrip sends with neomutt, approves, and reads the result through
// neomutt's own user interface.
func TestNeomuttRoundTrip(t *testing.T) {
	t.Parallel()
	program(t, "neomutt")
	script := filepath.Join(shared(t, "thunderbird"), "clients", "neomutt.sh")
	dir, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	env := clientEnv(t, s)
	command(t, env, strings.NewReader(approvalTask), "sh", script, "send", "From mutt")
	open := s.await("action", "approval", 1)[0]
	reply := append(env, "TO=pizza+a."+open.Decision+"@localhost")
	command(t, reply, strings.NewReader("approve\n"), "sh", script, "send", "Re: From mutt")
	s.await("inbox", "result", 1)
	wrote(t, dir, "new.txt", "one Funghi")
	mbox := command(t, env, nil, "sh", script, "copy", "INBOX")
	mustContain(t, "INBOX copied by neomutt", mbox, "Subject: Re: From mutt", "well done", "X-Pizza-Kind: result")
}

// TestMbsync mirrors the account twice; the second run must change nothing.
func TestMbsync(t *testing.T) {
	t.Parallel()
	program(t, "mbsync")
	script := filepath.Join(shared(t, "thunderbird"), "clients", "mbsync.sh")
	s := startServer(t)
	s.must("send", "--wait", "say mirrored")
	env := clientEnv(t, s)
	first := mirrored(command(t, env, nil, "sh", script))
	if len(first) != 2 {
		t.Errorf("mbsync brought %q, want the task in Sent and the result in INBOX", first)
	}
	if second := mirrored(command(t, env, nil, "sh", script)); !slices.Equal(second, first) {
		t.Errorf("a second mbsync changed something: %q, before %q", second, first)
	}
}

// mirrored are the message files among the output of mbsync.sh.
func mirrored(output string) []string {
	return slices.DeleteFunc(strings.Split(output, "\n"), func(l string) bool { return !strings.HasPrefix(l, "/") })
}

// clientEnv is what the shared client scripts need.
func clientEnv(t *testing.T, s *server) []string {
	t.Helper()
	return []string{"HOST=localhost", "IMAP_PORT=" + s.port(s.endpoints.IMAP), "SMTP_PORT=" + s.port(s.endpoints.SMTP),
		"MAIL_PASSWORD=" + s.password(), "WORK=" + t.TempDir(), "CERT=" + filepath.Join(s.root, "tls", "ca.pem")}
}

// TestDemo is the README's first command.
func TestDemo(t *testing.T) {
	t.Parallel()
	out := command(t, nil, nil, binary(t), "demo")
	mustContain(t, "the demo", out, "queued as ", "Subject: ", "approve", "3 pizzas, 1 salad. Total: 41.50")
}

// TestSendScope: a credential for scripts starts tasks, and decides nothing.
func TestSendScope(t *testing.T) {
	t.Parallel()
	_, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	s.must("send", approvalTask)
	open := s.await("action", "approval", 1)[0]
	password := strings.TrimSpace(s.must("account", "password", "me", "--credential", "cron", "--scope", "send"))
	curl := program(t, "curl")
	submit := func(to, text string) {
		command(t, nil, strings.NewReader("From: me@localhost\r\nTo: pizza@localhost\r\nSubject: cron\r\n\r\n"+text+"\r\n"), curl, "-sS", "--user", "me:"+password,
			"--url", "smtp://localhost:"+s.port(s.endpoints.SMTP), "--mail-from", "me@localhost", "--mail-rcpt", to, "--upload-file", "-")
	}
	submit("pizza@localhost", "say from cron")
	s.await("inbox", "result", 1)
	cmd := exec.Command(curl, "-sS", "--user", "me:"+password, "--url", "smtp://localhost:"+s.port(s.endpoints.SMTP),
		"--mail-from", "me@localhost", "--mail-rcpt", "pizza+a."+open.Decision+"@localhost", "--upload-file", "-")
	cmd.Stdin = strings.NewReader("From: me@localhost\r\nTo: pizza@localhost\r\nSubject: Re\r\n\r\napprove\r\n")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("a send-only credential was let at a decision: %s", out)
	}
	if rest := s.list("action"); len(rest) != 1 {
		t.Errorf("Action has %+v, want the open approval", rest)
	}
	if out, err := exec.Command(curl, "-sS", "--user", "me:"+password, "imap://localhost:"+s.port(s.endpoints.IMAP)+"/INBOX").CombinedOutput(); err == nil {
		t.Errorf("a send-only credential reads mail: %s", out)
	}
}
