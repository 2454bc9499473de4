package imapserver

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestHidden: what is hidden from an account is not advertised after its login, its
// commands are unknown and ENABLE does not switch it on; others keep it.
func TestHidden(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) {
		o.Hidden = func(login string) []string {
			if login == "me" {
				return []string{"move", "UTF8=ACCEPT", "APPENDLIMIT", "IDLE"}
			}
			return nil
		}
	})
	ask := func(w *wire, cmd string) string { return strings.Join(w.do("%s", cmd), "\r\n") }
	w := h.dial("a")
	if s := ask(w, "CAPABILITY"); !strings.Contains(s, " MOVE ") {
		t.Errorf("before the login nobody is known: %s", s)
	}
	offered := ask(w, "LOGIN me secret")
	for _, name := range []string{" MOVE", " UTF8=ACCEPT", " APPENDLIMIT", " IDLE"} {
		if strings.Contains(offered, name) {
			t.Errorf("%s is offered: %s", name, offered)
		}
	}
	for _, tt := range []struct{ cmd, want string }{
		{"ENABLE UTF8=ACCEPT", "* ENABLED\r\n"},
		{"SELECT INBOX", "OK "},
		{"MOVE 1 Trash", "BAD Unknown command"},
		{"UID MOVE 1 Trash", "BAD Unknown command"},
		{"IDLE", "BAD Unknown command"},
	} {
		if got := ask(w, tt.cmd); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.cmd, got)
		}
	}
	if s := ask(h.dial("b"), "LOGIN reader secret"); !strings.Contains(s, " MOVE ") {
		t.Errorf("another login: %s", s)
	}
}

func TestHideable(t *testing.T) {
	t.Parallel()
	list := Hideable()
	for _, name := range []string{"MOVE", "IDLE", "APPENDLIMIT", "UTF8=ACCEPT"} {
		if !slices.Contains(list, name) {
			t.Errorf("%s cannot be hidden", name)
		}
	}
	if slices.Contains(list, "IMAP4rev1") {
		t.Error("IMAP4rev1 can be hidden")
	}
	for command, name := range needs {
		if commands[command] == nil || !slices.Contains(list, name) {
			t.Errorf("%s of %s: no such command or capability", command, name)
		}
	}
}

// TestDocumented: docs/imap.md has a row for every capability.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/imap.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([A-Z][^|]*) \|`).FindAllStringSubmatch(string(page), -1)
	var named []string
	for _, row := range rows {
		named = append(named, strings.Split(row[1], ", ")...)
	}
	for _, name := range Hideable() {
		if !slices.Contains(named, name) {
			t.Errorf("%s has no row in docs/imap.md", name)
		}
	}
}

// TestCapabilities: the list is that of capability.go, and a login is not told again how
// to log in.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	w := newHouse(t, nil).dial("a")
	before := strings.Join(w.do("CAPABILITY"), " ")
	after := strings.Join(w.do("LOGIN me secret"), " ")
	for _, name := range strings.Fields(always + " " + afterLogin + " APPENDLIMIT=52428800") {
		for _, list := range []string{before, after} {
			if n := strings.Count(" "+strings.ReplaceAll(list, "]", " ")+" ", " "+name+" "); n != 1 {
				t.Errorf("%s comes %d times in %s", name, n, list)
			}
		}
	}
	for _, name := range []string{"STARTTLS", "AUTH="} {
		if !strings.Contains(before, name) || strings.Contains(after, name) {
			t.Errorf("%s: before the login %s, after it %s", name, before, after)
		}
	}
}
