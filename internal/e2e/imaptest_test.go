//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// imaptest is the public suite's program against one server.
type imaptest struct {
	tb      testing.TB
	program string
	dir     string
	login   []string
}

// startImaptest starts a server of its own for IMAPTEST, the path of the program; without
// it the test is skipped.
func startImaptest(tb testing.TB) (*imaptest, *server) {
	tb.Helper()
	program := os.Getenv("IMAPTEST")
	if program == "" {
		tb.Skip("IMAPTEST is not set: make e2e-imaptest IMAPTEST=<the program> TESTS=<its scripts>")
	}
	if _, err := exec.LookPath(program); err != nil {
		tb.Fatalf("IMAPTEST is no program that can be run: %v", err)
	}
	s := startServer(tb)
	login := []string{"host=127.0.0.1", "port=" + s.port(s.endpoints.IMAP), "user=me", "pass=" + s.password()}
	return &imaptest{tb: tb, program: program, dir: tb.TempDir(), login: login}, s
}

// run returns what it prints. It fails when it finds errors, which is no error here.
func (i *imaptest) run(limit time.Duration, args ...string) string {
	i.tb.Helper()
	ctx, cancel := context.WithTimeout(i.tb.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, i.program, append(slices.Clone(i.login), args...)...)
	cmd.Dir = i.dir
	dieWithParent(cmd)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil || cmd.ProcessState == nil {
		i.tb.Fatalf("imaptest %v: %v\n%s", args, err, tail(string(out)))
	}
	return string(out)
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// scriptedExceptions are the commands of the scripts, by group, that we answer
// otherwise than they want. docs/imap.md has the reasons.
var scriptedExceptions = map[string][]string{
	"append-binary": {"append $mailbox ~{165}", "fetch 1 (body.peek[1])", "fetch 1 (binary.size[1] binary.peek[1])"},
}

var (
	failedCommand = regexp.MustCompile(`(?m)^ - Command(?: \(tag [^)]*\))?: (.*)$`)
	groupResult   = regexp.MustCompile(`(?m)^1 test groups: \d+ failed`)
	commandCount  = regexp.MustCompile(`(?m)^(?:base protocol|extensions): \d+/(\d+) individual`)
)

// TestImaptestScripted runs the scripts of TESTS, each for itself, so that one that
// stops half-way does not hide the next.
func TestImaptestScripted(t *testing.T) {
	i, _ := startImaptest(t)
	dir := os.Getenv("TESTS")
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("TESTS=%q is not the folder of scripts: %v", dir, err)
	}
	passed, excepted, skipped, groups := 0, 0, []string{}, 0
	for _, f := range files {
		if f.IsDir() || strings.HasSuffix(f.Name(), ".mbox") {
			continue
		}
		groups++
		switch ran, failed := i.script(filepath.Join(dir, f.Name())); {
		case ran == 0 && len(failed) == 0:
			skipped = append(skipped, f.Name())
		case slices.Equal(failed, scriptedExceptions[f.Name()]):
			passed++
			if len(failed) > 0 {
				excepted++
			}
		}
	}
	t.Logf("%d groups: %d passed (%d but for listed exceptions), %d failed, %d skipped for a capability we have not: %s",
		groups, passed, excepted, groups-passed-len(skipped), len(skipped), strings.Join(skipped, " "))
	if passed == 0 {
		t.Error("no group passed")
	}
}

// script runs one group and returns how many commands it made and which of them failed.
func (i *imaptest) script(path string) (ran int, failed []string) {
	name := filepath.Base(path)
	out := i.run(time.Minute, "test="+path)
	if !groupResult.MatchString(out) {
		i.tb.Errorf("%s: did not end:\n%s", name, tail(out))
	}
	for _, m := range commandCount.FindAllStringSubmatch(out, -1) {
		if m[1] != "0" {
			ran++
		}
	}
	for _, m := range failedCommand.FindAllStringSubmatch(out, -1) {
		failed = append(failed, strings.TrimSpace(m[1]))
	}
	if len(failed) == 0 && strings.Contains(out, "failed: ") {
		failed = []string{"no command"}
	}
	if want := scriptedExceptions[name]; !slices.Equal(failed, want) && (ran > 0 || len(failed) > 0) {
		i.tb.Errorf("%s: failed at %q, exceptions are %q:\n%s", name, failed, want, tail(out))
	}
	return ran, failed
}

// stressExceptions are answers that state tracking takes for errors and that are meant.
// docs/imap.md has the reasons.
var stressExceptions = regexp.MustCompile(`: (STORE|DELETE) failed: .* NO \[EXPUNGEISSUED\] `)

// TestImaptestStress has eight clients change one mailbox at random while each checks
// every reply against what it knows, once a mode on a server of its own. STRESS is how
// long each runs.
func TestImaptestStress(t *testing.T) {
	length := time.Minute
	if v := os.Getenv("STRESS"); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []struct{ name, needs, args string }{
		{"plain", "", "copybox=Archive"},
		{"search", "SORT", "search=50 sort=50 thread=50"},
		{"own", "", "own_msgs own_flags copybox=Archive"},
		{"qresync", "QRESYNC", "qresync"},
		{"imap4rev2", "IMAP4rev2", "imap4rev2"},
	} {
		t.Run(m.name, func(t *testing.T) {
			i, s := startImaptest(t)
			caps := command(t, nil, nil, program(t, "curl"), "-sS", "--user", "me:"+s.password(), "-X", "CAPABILITY", "imap://localhost:"+s.port(s.endpoints.IMAP)+"/")
			if !strings.Contains(caps, m.needs) {
				t.Fatalf("%s is not offered: %s", m.needs, caps)
			}
			mbox := filepath.Join(i.dir, "stress.mbox")
			if err := os.WriteFile(mbox, stressMbox(300), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append(strings.Fields(m.args), "mbox="+mbox, "clients=8", "msgs=50", fmt.Sprintf("secs=%d", int(length.Seconds())))
			out := i.run(length+time.Minute, args...)
			if strings.Contains(out, "Unknown arg: "+m.name) {
				t.Skip("this imaptest is too old for it")
			}
			i.stress(t, out)
		})
	}
}

// stress judges what imaptest printed.
func (i *imaptest) stress(t *testing.T, out string) {
	var errs []string
	meant := 0
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "Error: ") && !strings.HasPrefix(line, "Panic: ") && !strings.HasPrefix(line, "Fatal: ") && !strings.HasPrefix(line, "Warning: ") {
			continue
		}
		if stressExceptions.MatchString(line) {
			meant++
			continue
		}
		errs = append(errs, strings.TrimSpace(line))
	}
	_, totals, ended := strings.Cut(out, "Totals:\n")
	t.Logf("%d errors, %d listed exceptions\n%s", len(errs), meant, totals)
	if len(errs) > 0 {
		t.Errorf("%d errors, the first:\n%s", len(errs), strings.Join(errs[:min(20, len(errs))], "\n"))
	}
	if !ended || !strings.Contains(totals, "Logi") {
		t.Errorf("it did not come to its totals:\n%s", tail(out))
	}
}

// stressMbox is n messages with Message-IDs of their own, which state tracking needs.
func stressMbox(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "From u@d Fri Feb 22 17:06:23 2008\r\nMessage-ID: <m%d@stress.example>\r\nFrom: User %d <u%d@example.org>\r\nTo: me@localhost\r\n"+
			"Subject: topic %d\r\nDate: Fri, 22 Feb 2008 17:%02d:23 +0200\r\n", i, i%7, i%7, i%11, i%60)
		if first := i - i%3; first != i {
			fmt.Fprintf(&b, "In-Reply-To: <m%d@stress.example>\r\nReferences: <m%d@stress.example>\r\n", first, first)
		}
		b.WriteString("\r\n" + strings.Repeat(fmt.Sprintf("a line of text %d\r\n", i), 1+i*7%97) + "\r\n")
	}
	return []byte(b.String())
}
