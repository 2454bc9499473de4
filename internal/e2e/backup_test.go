//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestBackupRestore takes a backup while tasks come in, makes another data root of it,
// and serves that: the same password logs in, the mail is there, and what was open waits
// for an answer.
func TestBackupRestore(t *testing.T) {
	t.Parallel()
	dir, grant := grantFolder(t)
	s := startServer(t, "--grant", grant)
	s.must("send", "--wait", "say before the backup")
	s.must("send", approvalTask)
	open := s.await("action", "approval", 1)[0]
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		for ctx.Err() == nil {
			s.cli("send", "say "+strings.Repeat("more ", 20_000))
		}
	})
	s.must("backup", file)
	stop()
	load.Wait()
	password := s.must("password")
	s.stop()

	r := newServer(t, "--grant", grant)
	out := r.must("restore", file)
	mustContain(t, "restore", out, "restored into", "a mail in Action asks")
	if _, code := r.cli("restore", file); code == 0 {
		t.Error("a second restore into the same data root")
	}
	r.start()
	if got := r.must("password"); got != password {
		t.Error("the restored password is another one")
	}
	c, err := dialIMAP(r.endpoints.IMAP, strings.TrimSpace(password))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if box, err := c.Select("INBOX", nil).Wait(); err != nil || box.NumMessages < 2 {
		t.Errorf("INBOX: %+v, %v", box, err)
	}
	mustContain(t, "inbox", r.must("inbox"), "say before the backup")
	if _, code := r.cli("approve", open.Decision); code == 0 {
		t.Error("an approval was decided before the person answered")
	}
	question := r.await("action", "question", 1)[0]
	r.must("answer", question.Decision, "continue")
	r.must("approve", open.Decision)
	r.await("action", "approval", 0)
	r.await("inbox", "result", 2)
	wrote(t, dir, "new.txt", "one Funghi")
}

// TestExportIsReadByOthers lets neomutt read what is exported in both formats.
func TestExportIsReadByOthers(t *testing.T) {
	t.Parallel()
	program(t, "neomutt")
	program(t, "script")
	s := startServer(t)
	s.must("send", "--wait", "say hello to the others")
	dir := t.TempDir()
	s.must("export", "--maildir", filepath.Join(dir, "maildir"))
	s.must("export", "--mbox", filepath.Join(dir, "mbox"))
	rc := filepath.Join(dir, "muttrc")
	if err := os.WriteFile(rc, []byte("set mbox_type = mbox confirmappend = no confirmcreate = no mark_old = no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"maildir", "maildir/.Sent", "mbox/INBOX.mbox", "mbox/Sent.mbox"} {
		copied := filepath.Join(dir, "copied")
		keys := "<tag-pattern>~A<enter><tag-prefix><copy-message><kill-line>" + copied + "<enter><exit>"
		run := fmt.Sprintf(`neomutt -n -F %s -f %s -e 'push "%s"'`, rc, filepath.Join(dir, folder), keys)
		command(t, []string{"TERM=xterm", "HOME=" + dir}, strings.NewReader(""), "script", "-qec", run, "/dev/null")
		b, err := os.ReadFile(copied)
		if err := errors.Join(err, os.Remove(copied)); err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		if strings.Count("\n"+string(b), "\nFrom ") != 1 || !strings.Contains(string(b), "hello to the others") || strings.Contains(string(b), "\r") {
			t.Errorf("neomutt copied from %s:\n%.1000q", folder, b)
		}
	}
}
