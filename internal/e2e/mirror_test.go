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

// letter is message i of a set, with a body of a few lines.
func letter(set string, i int) string {
	return fmt.Sprintf("From: Ann <ann@example.org>\r\nTo: me@localhost\r\nSubject: %s %d\r\nDate: Thu, 1 Jan 2026 10:00:00 +0000\r\n"+
		"Message-ID: <%s-%d@letters.example>\r\n\r\n", set, i, set, i) + strings.Repeat(fmt.Sprintf("Line of %s %d.\r\n", set, i), 1+i%40)
}

// login opens a raw IMAP session.
func login(t *testing.T, s *server) *wire {
	t.Helper()
	w := dialWire(t, s.endpoints.IMAP)
	w.ask("LOGIN me " + s.password())
	return w
}

// ask sends a command and returns the untagged lines of its answer, which must be OK.
func (w *wire) ask(command string) string {
	w.t.Helper()
	w.send("x " + command + "\r\n")
	var lines strings.Builder
	for {
		line := w.line(command)
		if !strings.HasPrefix(line, "x ") {
			lines.WriteString(line)
			continue
		}
		if !strings.HasPrefix(line, "x OK") {
			w.t.Fatalf("%.80s: %s", command, line)
		}
		return lines.String()
	}
}

// fill puts n letters of a set into a mailbox, hundreds a command.
func (w *wire) fill(box, set string, n int) {
	w.t.Helper()
	for from := 0; from < n; from += 250 {
		var b strings.Builder
		fmt.Fprintf(&b, "APPEND %q", box)
		for i := from; i < min(n, from+250); i++ {
			m := letter(set, i)
			fmt.Fprintf(&b, " {%d+}\r\n%s", len(m), m)
		}
		w.ask(b.String())
	}
}

// state is everything that a client could have changed: every mailbox with its next
// UID, its sizes and its last change.
func (w *wire) state() string {
	w.t.Helper()
	return w.ask(`LIST "" "*" RETURN (SUBSCRIBED STATUS (MESSAGES UNSEEN UIDNEXT UIDVALIDITY HIGHESTMODSEQ))`)
}

func (w *wire) messages(box string) (n int) {
	w.t.Helper()
	answer := w.ask(fmt.Sprintf("STATUS %q (MESSAGES)", box))
	_, count, _ := strings.Cut(answer, "(MESSAGES ")
	if _, err := fmt.Sscan(strings.TrimRight(count, ")\r\n"), &n); err != nil {
		w.t.Fatalf("STATUS answered %q", answer)
	}
	return n
}

// mirror is a program that keeps an account and Maildirs the same, both ways.
type mirror struct {
	t      *testing.T
	script string
	env    []string
	mail   string // where the Maildirs lie
}

func newMirror(t *testing.T, s *server, name, script string) *mirror {
	t.Helper()
	program(t, name)
	m := &mirror{t: t, script: filepath.Join(shared(t, "thunderbird"), "clients", script), env: clientEnv(t, s)}
	for _, v := range m.env {
		if work, ok := strings.CutPrefix(v, "WORK="); ok {
			m.mail = filepath.Join(work, "mail")
		}
	}
	return m
}

// run mirrors once and returns the files that are there then.
func (m *mirror) run() []string {
	m.t.Helper()
	files := mirrored(command(m.t, m.env, nil, "sh", m.script))
	slices.Sort(files)
	return files
}

// put writes n letters of a set into a Maildir, read.
func (m *mirror) put(box, set string, n int) {
	m.t.Helper()
	for _, d := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(m.mail, box, d), 0o700); err != nil {
			m.t.Fatal(err)
		}
	}
	for i := range n {
		name := filepath.Join(m.mail, box, "cur", fmt.Sprintf("1767261600.%s_%d.host:2,S", set, i))
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(letter(set, i), "\r\n", "\n")), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}

// below returns the files of one Maildir.
func (m *mirror) below(files []string, box string) (in []string) {
	for _, f := range files {
		if filepath.Dir(filepath.Dir(f)) == filepath.Join(m.mail, box) {
			in = append(in, f)
		}
	}
	return in
}

// bothWays mirrors remote letters one way and local ones the other, then nothing, then
// changes of both sides, then nothing again.
func (m *mirror) bothWays(s *server, remote, local int) {
	t := m.t
	w := login(t, s)
	w.ask("CREATE Letters/2026")
	w.ask("SUBSCRIBE Letters/2026")
	w.fill("INBOX", "remote", remote/2)
	w.fill("Letters/2026", "old", remote/2)
	m.put("INBOX", "local", local)
	files := m.run()
	if got := len(m.below(files, "INBOX")); len(files) != remote+local || got != remote/2+local {
		t.Fatalf("%d files, %d in INBOX; want %d and %d", len(files), got, remote+local, remote/2+local)
	}
	if got := w.messages("INBOX"); got != remote/2+local {
		t.Fatalf("INBOX has %d messages, want %d", got, remote/2+local)
	}
	m.nothing(w, files)

	w.ask("SELECT INBOX")
	w.ask(`STORE 1:10 +FLAGS.SILENT (\Flagged \Answered)`)
	w.ask(`STORE 11:15 +FLAGS.SILENT (\Deleted)`)
	w.ask("EXPUNGE")
	w.ask("UNSELECT")
	w.fill("INBOX", "later", 5)
	mine := slices.DeleteFunc(m.below(files, "INBOX"), func(f string) bool { return !m.has(f, "local") })
	for _, f := range mine[:5] {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range mine[5:12] {
		if err := os.Rename(f, strings.TrimSuffix(f, "S")+"FS"); err != nil {
			t.Fatal(err)
		}
	}
	files = m.run()
	if got, want := len(m.below(files, "INBOX")), remote/2+local-5; got != want || w.messages("INBOX") != want {
		t.Errorf("INBOX has %d files and %d messages, want %d", got, w.messages("INBOX"), want)
	}
	w.ask("SELECT INBOX")
	if got := w.ask("SEARCH RETURN (COUNT) FLAGGED"); !strings.Contains(got, "COUNT 17") {
		t.Errorf("flagged on the server: %s", got)
	}
	w.ask("UNSELECT")
	flagged := 0
	for _, f := range m.below(files, "INBOX") {
		if _, flags, _ := strings.Cut(f, ":2,"); strings.Contains(flags, "F") {
			flagged++
		}
	}
	if flagged != 17 {
		t.Errorf("%d files are flagged, want 17", flagged)
	}
	m.nothing(w, files)
}

// has reports whether a file holds a letter of a set.
func (m *mirror) has(file, set string) bool {
	m.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.Contains(string(b), "Subject: "+set+" ")
}

// nothing mirrors once more, which must change nothing on either side.
func (m *mirror) nothing(w *wire, files []string) {
	m.t.Helper()
	before := w.state()
	if again := m.run(); !slices.Equal(again, files) {
		m.t.Errorf("mirroring again changed the files: %d before, %d after", len(files), len(again))
	}
	if after := w.state(); after != before {
		m.t.Errorf("mirroring again changed the server:\n%s\nbefore:\n%s", after, before)
	}
}

// TestMbsyncBothWays mirrors 5,000 messages.
func TestMbsyncBothWays(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	newMirror(t, s, "mbsync", "mbsync.sh").bothWays(s, 3000, 2000)
}

func TestOfflineimapBothWays(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	newMirror(t, s, "offlineimap", "offlineimap.sh").bothWays(s, 300, 200)
}
