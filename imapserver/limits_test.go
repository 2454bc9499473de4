package imapserver

import (
	"strings"
	"testing"
)

// TestMaxCommand: a command and its literals may be as long as is set, and what is longer
// is refused without being read as commands.
func TestMaxCommand(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) { o.MaxCommand = 1000 })
	w := h.dial("a")
	w.do("LOGIN me secret")
	w.do("SELECT INBOX")
	for _, tt := range []struct{ command, want string }{
		{"SEARCH SUBJECT " + strings.Repeat("x", 900), "OK "},
		{"SEARCH SUBJECT " + strings.Repeat("x", 1000), "BAD Command line too long"},
		{"SEARCH SUBJECT {900+}\r\n" + strings.Repeat("x", 900), "OK "},
		{"SEARCH SUBJECT {1001+}\r\n" + strings.Repeat("z CREATE pwned\r\n", 62) + "zzzzzzzzz", "BAD [TOOBIG] Literal too large"},
		{"SEARCH SUBJECT {600+}\r\n" + strings.Repeat("x", 600) + " BODY {600+}\r\n" + strings.Repeat("x", 600), "BAD [TOOBIG] Literal too large"},
		{"LIST \"\" pwned", "OK LIST completed"},
	} {
		got := w.do("%s", tt.command)
		last := got[len(got)-1]
		if _, rest, _ := strings.Cut(last, " "); !strings.HasPrefix(rest, tt.want) {
			t.Errorf("%.30s: %s", tt.command, last)
		}
	}
}
