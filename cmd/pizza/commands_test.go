package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pizza/agent"
)

// Control characters of a mail never reach the terminal.
func TestPrintItems(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	items := []item{
		{Unread: true, Date: time.Unix(0, 0), Subject: "evil \x1b]0;title\x07 \u009b31m \u202e\u2066\u2028", Kind: "result", Task: "k3v9m2x7qa"},
		{Date: time.Unix(0, 0), Subject: "ask", Kind: "approval", Task: "k3v9m2x7qa", Decision: "0123456789abcde"},
		{Date: time.Unix(0, 0), Subject: "by hand"},
		{Date: time.Unix(0, 0), Subject: "asked", Kind: "approval", Decision: "d", Keywords: []string{"$label1", "$Rejected"}},
	}
	if err := printItems(&b, items); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\x07\u009b\u202e\u2066\u2028") {
		t.Errorf("control characters in %q", b.String())
	}
	for _, want := range []string{"* k3v9m2x7qa", "  0123456789abcde", "  -", "approval", "mail", "rejected  asked"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestRest(t *testing.T) {
	t.Parallel()
	open := []agent.Decision{{ID: "d1", Subject: "Approve?"}}
	for _, tt := range []struct {
		name  string
		shown agent.Shown
		rests bool
		state agent.RunState
	}{
		{"working", agent.Shown{State: agent.Working}, false, ""},
		{"done", agent.Shown{State: agent.Done, Text: "x"}, true, agent.Done},
		{"done, another mail waits", agent.Shown{State: agent.Done, Queue: 1}, false, ""},
		{"asks", agent.Shown{State: agent.Waiting, Open: open}, true, agent.Waiting},
		{"waits for a timer", agent.Shown{State: agent.Waiting, For: "timer"}, false, ""},
		{"failed", agent.Shown{State: agent.Failed}, true, agent.Failed},
	} {
		if got, rests := rest(tt.shown); rests != tt.rests || got.State != tt.state {
			t.Errorf("%s: %+v, %v", tt.name, got, rests)
		}
	}
}

func TestFirstLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "Task", "\n  do this \nand that": "do this", strings.Repeat("é", 80): strings.Repeat("é", 69) + "…",
	} {
		if got := firstLine(in); got != want {
			t.Errorf("firstLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"für 日本 ❤️\u00a0ok": "für 日本 ❤\u00a0ok", "a\x1b[2Jb\u009bc": "a�[2Jb�c",
		"pay\u202e001\u2066\u200b\u00ad\U000e0041\u2800\u2028x": "pay001x", "": "",
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%+q) = %+q, want %+q", in, got, want)
		}
	}
	if got, want := visibleText("a\tb\r\nc\u202e\n"), "a    b\nc\n"; got != want {
		t.Errorf("visibleText: %q, want %q", got, want)
	}
}

// Wrong command lines end with one line and a code that is not 0.
func TestRunSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"nosuch"}, {"show"}, {"approve"}, {"answer", "x"}, {"send", "--data-root", t.TempDir(), "--attach", "/no/such/file", "x"},
		{"password", "--data-root", t.TempDir()}, {"password", "../x", "--data-root", t.TempDir()},
		{"send", "--data-root", t.TempDir(), "--wait", "say x"}, {"inbox", "--data-root", t.TempDir(), "--account", "nobody"},
	} {
		if code := run(t.Context(), args); code == 0 {
			t.Errorf("pizza %q succeeded", args)
		}
	}
}

// What a script gets wrong most easily, an unset variable or a mistyped path, is said in
// words, and makes nothing.
func TestEmptyAndMistyped(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, err := openAlone(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "typo")
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"id is empty", []string{"show", ""}}, {"id is empty", []string{"approve", " "}}, {"id is empty", []string{"cancel", ""}},
		{"text is empty", []string{"send", ""}}, {"text is empty", []string{"send", " \n"}},
		{"--account", []string{"inbox", "--account", ""}},
		{"no data root", []string{"inbox", "--data-root", missing}}, {"no data root", []string{"send", "--data-root", missing, "say x"}},
	} {
		cmd := newRoot()
		cmd.SetArgs(append([]string{"--data-root", root}, tt.args...))
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("pizza %q: %v", tt.args, err)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a data root was made of a mistyped path")
	}
}

// A default model that nobody provides stops the start, with its place and the names
// there are; the commands that need no model work.
func TestServeWithAnUnknownModel(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop() // a server that starts all the same ends at once
	for _, tt := range []struct {
		want, file string
		args       []string
	}{
		{`--model: model: there is no model provider "nope"`, `{}`, []string{"--model", "nope:x"}},
		{`settings.json:1:11: model: there is no model provider "nope"`, `{"model": "nope:x"}`, nil},
		{"the runbook has one model", `{}`, []string{"--model", "runbook:x"}},
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "settings.json"), []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := newRoot()
		cmd.SetArgs(append([]string{"serve", "--data-root", root}, tt.args...))
		if err := cmd.ExecuteContext(stopped); err == nil || !strings.Contains(userText(err), tt.want) {
			t.Errorf("%s %q: %v", tt.file, tt.args, err)
		}
		if _, err := os.Stat(filepath.Join(root, "accounts.db")); err == nil {
			t.Error("the data root was made all the same")
		}
		a, err := openAlone(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A wrong command line is answered with the right one.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"`pizza show ID`", []string{"show"}},
		{"`pizza approve --help`", []string{"approve"}},
		{"happened|repeat|stop", []string{"answer", "x"}},
		{"quotes", []string{"send", "two", "words"}},
		{"no command `pizza bogus`", []string{"bogus"}},
		{"did you mean `pizza send`?", []string{"snd"}},
		{"no command `pizza account bogus`", []string{"account", "bogus"}},
		{"`pizza send --help`", []string{"send", "--bogus"}},
		{"`pizza send --help`", []string{"send", "--timeout", "3", "x"}},
		{"--wait", []string{"send", "--timeout", "3s", "x"}},
	} {
		cmd := newRoot()
		cmd.SetArgs(tt.args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("pizza %q: %v, want %q", tt.args, err, tt.want)
		}
	}
}
