//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNeomuttResync lets neomutt come back to a mailbox with QRESYNC: what others
// expunged is gone from its cache, what they flagged is flagged, what is new is there.
func TestNeomuttResync(t *testing.T) {
	t.Parallel()
	program(t, "neomutt")
	program(t, "script")
	s := startServer(t)
	w := dialWire(t, s.endpoints.IMAP)
	do := func(command string) {
		tag, _, _ := strings.Cut(command, " ")
		w.send(command + "\r\n")
		w.until(tag + " OK")
	}
	do("l LOGIN me " + s.password())
	add := func(subject string) {
		mail := "From: ann@localhost\r\nSubject: " + subject + "\r\nMessage-ID: <" + subject + "@localhost>\r\n\r\nText of " + subject + "\r\n"
		do(fmt.Sprintf("a APPEND INBOX {%d+}\r\n%s", len(mail), mail))
	}
	for i := range 6 {
		add(fmt.Sprint("mail", i+1))
	}
	n := neomutt{t: t, s: s, dir: t.TempDir()}
	first, _ := n.copyInbox()
	if got := subjects(first); got != "mail1 mail2 mail3 mail4 mail5 mail6" {
		t.Fatalf("the first time neomutt has %s", got)
	}
	do("b SELECT INBOX")
	do(`c STORE 2,4 +FLAGS.SILENT (\Deleted)`)
	do("d EXPUNGE")
	do(`e STORE 1 +FLAGS (\Flagged)`)
	add("mail7")
	second, log := n.copyInbox()
	if got := subjects(second); got != "mail1 mail3 mail5 mail6 mail7" {
		t.Errorf("after changes by others neomutt has %s", got)
	}
	if flagged := strings.Count(second, "\nX-Status: F"); flagged != 1 {
		t.Errorf("neomutt shows %d flagged messages:\n%s", flagged, second)
	}
	for _, part := range []string{"(CHANGEDSINCE ", "VANISHED)", "Expunging message UID 2", "Expunging message UID 4"} {
		if !strings.Contains(log, part) { // the log holds the password
			t.Errorf("neomutt's dialogue lacks %q", part)
		}
	}
}

// subjects lists the subjects of an mbox, in order.
func subjects(mbox string) string {
	var out []string
	for line := range strings.SplitSeq(mbox, "\n") {
		if s, found := strings.CutPrefix(line, "Subject: "); found {
			out = append(out, strings.TrimSpace(s))
		}
	}
	return strings.Join(out, " ")
}

// neomutt keeps its caches in dir.
type neomutt struct {
	t   *testing.T
	s   *server
	dir string
}

// copyInbox opens INBOX in neomutt's own user interface and copies all messages to an
// mbox. log is neomutt's trace of the dialogue, which it calls log0.
func (n neomutt) copyInbox() (mbox, log string) {
	n.t.Helper()
	path := func(name string) string { return filepath.Join(n.dir, name) }
	os.MkdirAll(path("headers"), 0o700)
	rc := fmt.Sprintf(`set folder = "imap://me@localhost:%s/"
set imap_pass = %q
set ssl_starttls = no ssl_force_tls = no
set header_cache = %q message_cachedir = ""
set imap_condstore imap_qresync
set mbox_type = mbox confirmappend = no confirmcreate = no mark_old = no
`, n.s.port(n.s.endpoints.IMAP), n.s.password(), path("headers"))
	if err := os.WriteFile(path("muttrc"), []byte(rc), 0o600); err != nil {
		n.t.Fatal(err)
	}
	os.Remove(path("copy.mbox"))
	os.Remove(path("log0"))
	keys := "<tag-pattern>~A<enter><tag-prefix><copy-message><kill-line>" + path("copy.mbox") + "<enter><exit>"
	run := fmt.Sprintf(`neomutt -n -d 3 -l %s -F %s -f =INBOX -e 'push "%s"'`, path("log"), path("muttrc"), keys)
	command(n.t, []string{"TERM=xterm", "HOME=" + n.dir}, strings.NewReader(""), "script", "-qec", run, "/dev/null")
	return n.read("copy.mbox"), n.read("log0")
}

func (n neomutt) read(name string) string {
	data, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(data)
}
