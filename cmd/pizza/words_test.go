package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pizza/internal/config"
)

// What goes wrong is told with what is wrong.
func TestWordsOfRefusals(t *testing.T) {
	t.Parallel()
	a, _ := household(t, true)
	text := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(text, bytes.Repeat([]byte("# no tar\n"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, a, 1, "this is no backup of pizza", "restore", "--check", text)
	command(t, a, 1, "there is no folder "+filepath.Join(a.root, "none"), "backup", filepath.Join(a.root, "none", "b.tar"))
	command(t, a, 1, `no account "nobody"; there are: `, "password", "nobody")
	for _, mode := range []string{":rwx", ":w", ":x"} {
		if _, err := config.ParseGrant(text + mode); err == nil || !strings.Contains(err.Error(), "only :rw") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// The set-up names the command for the password with its data root, a host that can be
// reached, and a key that is missing.
func TestSetupNames(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{"[::]:993": "mail.example", "0.0.0.0:993": "mail.example", "127.0.0.1:993": "localhost", "10.1.2.3:993": "10.1.2.3"} {
		if host, _ := hostPort(addr, []string{"mail.example", "b"}); host != want {
			t.Errorf("%s: %s, want %s", addr, host, want)
		}
	}
	if host, _ := hostPort("[::]:993", nil); host == "" || strings.Contains(host, "::") {
		t.Errorf("host %q", host)
	}
	root := t.TempDir()
	file := `{"model": "openrouter:x", "providers": {"openrouter": {"key": "env:PIZZA_TEST_NO_SUCH_KEY"}}}`
	if err := os.WriteFile(filepath.Join(root, "settings.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	a := quiet(t, root)
	if err := a.openCA(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := a.printSetup(&out, endpoints{IMAPS: "127.0.0.1:993", User: "me", Domain: "localhost"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"password me --data-root " + root, "Tasks will wait", "PIZZA_TEST_NO_SUCH_KEY"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the set-up lacks %q:\n%s", want, &out)
		}
	}
}
