//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNeomuttFiles sends with neomutt that files its own copy, before or after it sends:
// Sent has one, and the task runs once.
func TestNeomuttFiles(t *testing.T) {
	t.Parallel()
	mutt := program(t, "neomutt")
	for _, before := range []string{"yes", "no"} {
		t.Run("before sending: "+before, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			rc := filepath.Join(t.TempDir(), "muttrc")
			imap := "imap://me@localhost:" + s.port(s.endpoints.IMAP) + "/"
			text := fmt.Sprintf(`set folder = "%s" spoolfile = "%sINBOX" imap_pass = "%s"
set smtp_url = "smtp://me@localhost:%s/" smtp_pass = "%s" from = "me@localhost" record = "=Sent" copy = yes
set fcc_before_send = %s ssl_starttls = no ssl_force_tls = no header_cache = "" message_cachedir = "" confirmcreate = no
`, imap, imap, s.password(), s.port(s.endpoints.SMTP), s.password(), before)
			if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			command(t, []string{"HOME=" + t.TempDir()}, strings.NewReader("say filed\n"), mutt, "-n", "-F", rc, "-s", "From mutt", "--", "pizza@localhost")
			s.await("inbox", "result", 1)
			wantSent(t, s, 1)
		})
	}
}

// wantSent looks into Sent by IMAP.
func wantSent(t *testing.T, s *server, n int) {
	t.Helper()
	found := command(t, nil, nil, program(t, "curl"), "-sS", "--user", "me:"+s.password(),
		"imap://localhost:"+s.port(s.endpoints.IMAP)+"/Sent?ALL")
	if got := len(strings.Fields(found)) - 2; got != n {
		t.Errorf("Sent has %d messages, want %d: %q", got, n, found)
	}
}

// TestMbsyncFiles: a copy that a program put into the local Sent is pushed, and takes the
// place of ours; Unread is mirrored as any mailbox, and a second run changes nothing.
func TestMbsyncFiles(t *testing.T) {
	t.Parallel()
	program(t, "mbsync")
	script := filepath.Join(shared(t, "thunderbird"), "clients", "mbsync.sh")
	s := newServer(t)
	s.settings(`{"accounts": {"me": {"unread": true}}}`)
	s.start()
	message := "From: me@localhost\r\nTo: pizza@localhost\r\nSubject: once\r\nMessage-ID: <once@test>\r\n\r\nsay hello\r\n"
	command(t, nil, strings.NewReader(message), program(t, "curl"), "-sS", "--user", "me:"+s.password(),
		"--url", "smtp://localhost:"+s.port(s.endpoints.SMTP), "--mail-from", "me@localhost", "--mail-rcpt", "pizza@localhost", "--upload-file", "-")
	s.await("inbox", "result", 1)
	env := clientEnv(t, s)
	work := strings.TrimPrefix(env[slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "WORK=") })], "WORK=")
	box := filepath.Join(work, "mail", "Sent")
	for _, dir := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(box, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(box, "cur", "1.once:2,S"), []byte(strings.ReplaceAll(message, "\r\n", "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, env, nil, "sh", script)
	wantSent(t, s, 1)
	first := mirrored(command(t, env, nil, "sh", script))
	unread := slices.DeleteFunc(slices.Clone(first), func(p string) bool { return !strings.Contains(p, "/Unread/") })
	if len(first) != 3 || len(unread) != 1 {
		t.Errorf("mbsync brought %q, want one in Sent, and the result in INBOX and Unread", first)
	}
	if second := mirrored(command(t, env, nil, "sh", script)); !slices.Equal(second, first) {
		t.Errorf("a further mbsync changed something: %q, before %q", second, first)
	}
}
