//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImaplib says to the server what Python's imaplib can.
func TestImaplib(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	out := command(t, nil, nil, program(t, "python3"), "testdata/session.py", s.port(s.endpoints.IMAP), s.password())
	mustContain(t, "session.py", out, "all of it")
}

// TestCurlMailboxes reads and changes mailboxes with nothing but curl.
func TestCurlMailboxes(t *testing.T) {
	t.Parallel()
	curl := program(t, "curl")
	s := startServer(t)
	base := "imap://localhost:" + s.port(s.endpoints.IMAP) + "/"
	file := filepath.Join(t.TempDir(), "letter")
	if err := os.WriteFile(file, []byte(letter("curl", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(path string, args ...string) string {
		t.Helper()
		return command(t, nil, nil, curl, append([]string{"-sS", "--ssl-reqd", "--cacert", filepath.Join(s.root, "tls", "ca.pem"),
			"--user", "me:" + s.password(), "--url", base + path}, args...)...)
	}
	mustContain(t, "the list", run(""), `"INBOX"`, `\Sent`, `"Action/Approve"`)
	run("", "-X", "CREATE Curl")
	run("Curl", "-T", file)
	run("Curl", "-T", file)
	if got := run("Curl;UID=2"); got != letter("curl", 1) {
		t.Errorf("curl fetched %q", got)
	}
	mustContain(t, "a section", run("Curl;UID=1;SECTION=HEADER.FIELDS%20(SUBJECT)"), "Subject: curl 1")
	mustContain(t, "a search", run("Curl?SUBJECT%20curl"), "* SEARCH 1 2")
	mustContain(t, "STORE", run("Curl", "-X", `STORE 1 +FLAGS (\Deleted)`), `\Deleted`)
	mustContain(t, "EXPUNGE", run("Curl", "-X", "EXPUNGE"), "* 1 EXPUNGE")
	run("Curl", "-X", "UID MOVE 2 Archive")
	mustContain(t, "EXAMINE", run("Archive", "-X", "STATUS Curl (MESSAGES)"), "MESSAGES 0")
	run("", "-X", "DELETE Curl")
	if got := run(""); strings.Contains(got, "Curl") {
		t.Errorf("Curl is still listed: %s", got)
	}
}

// TestNeomuttFcc: neomutt files its own copy of what it sends, before or after sending;
// Sent has one copy either way, read.
func TestNeomuttFcc(t *testing.T) {
	t.Parallel()
	neomutt, script := program(t, "neomutt"), program(t, "script")
	s := startServer(t)
	for _, before := range []string{"yes", "no"} {
		dir := t.TempDir()
		write := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			return path
		}
		editor := write("editor", "#!/bin/sh\nprintf 'say filed\\n' >>\"$1\"\n")
		rc := write("muttrc", strings.Join([]string{
			`set folder = "imap://me@localhost:` + s.port(s.endpoints.IMAP) + `/"`, `set spoolfile = "+INBOX"`, `set record = "+Sent"`,
			`set smtp_url = "smtp://me@localhost:` + s.port(s.endpoints.SMTP) + `/"`,
			`set imap_pass = "` + s.password() + `"`, `set smtp_pass = "` + s.password() + `"`,
			`set from = "me@localhost"`, `set ssl_starttls = no ssl_force_tls = no`, `set header_cache = "" message_cachedir = ""`,
			`set fcc_before_send = ` + before, `set copy = yes autoedit = yes edit_headers = yes confirmcreate = no confirmappend = no sleep_time = 0`, `set editor = "` + editor + `"`, `send2-hook . 'push <send-message>'`, ""}, "\n"))
		subject := "fcc before sending " + before
		command(t, []string{"TERM=xterm", "HOME=" + dir}, nil, script, "-qec",
			fmt.Sprintf(`%s -n -F %s -s '%s' -- pizza@localhost`, neomutt, rc, subject), "/dev/null")
		s.await("inbox", "result", map[string]int{"yes": 1, "no": 2}[before])
		w := login(t, s)
		w.ask("EXAMINE Sent")
		if got := w.ask(fmt.Sprintf("SEARCH RETURN (COUNT) SEEN SUBJECT %q", subject)); !strings.Contains(got, "COUNT 1\r\n") {
			t.Errorf("with fcc_before_send=%s Sent has %s", before, got)
		}
	}
}
