//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTargetsThatAreNone: a backup or an export to what is no file, or no folder, is
// refused in words before anything is written.
func TestTargetsThatAreNone(t *testing.T) {
	t.Parallel()
	a, _ := household(t, true)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(syscall.Mkfifo(in("pipe"), 0o600), os.Symlink(os.DevNull, in("null")), os.Mkdir(in("folder"), 0o700),
		os.Symlink(in("folder"), in("shortcut")), os.WriteFile(in("file"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{os.DevNull, in("pipe"), in("null")} {
		command(t, a, 1, "no backup: "+path+" is a device, a pipe or the like: name a file", "backup", path)
	}
	for _, path := range []string{in("folder"), in("shortcut"), in("folder") + "/"} {
		command(t, a, 1, "no backup: "+path+" is a folder: name a file in it", "backup", path)
	}
	for _, format := range []string{"--mbox", "--maildir"} {
		for _, path := range []string{os.DevNull, in("pipe"), in("null"), in("file")} {
			command(t, a, 1, path+" is no folder: name one that is empty or missing", "export", format, path)
		}
	}
	left, err := os.ReadDir(dir)
	if b, rerr := os.ReadFile(in("file")); len(left) != 5 || err != nil || string(b) != "mine" {
		t.Errorf("%v, %v; the file is %q, %v", left, err, b, rerr)
	}
	command(t, a, 0, "exported 0 messages", "export", "--mbox", in("shortcut"), "--folder", "Sent")
}

// TestImportOfPipesAndLinks: neither holds or misleads an import.
func TestImportOfPipesAndLinks(t *testing.T) {
	t.Parallel()
	a, _ := household(t, true)
	dir, out := t.TempDir(), t.TempDir()
	letter, pipe := filepath.Join(out, "a.eml"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(letter, []byte("A: 1\r\n\r\n"), 0o600), syscall.Mkfifo(pipe, 0o600), os.Symlink(letter, filepath.Join(dir, "link.eml"))); err != nil {
		t.Fatal(err)
	}
	command(t, a, 1, "left out: "+pipe+": it is no file but a pipe", "import", pipe)
	command(t, a, 1, "imported 0 messages into 0 folders; 2 left out", "import", dir)
	command(t, a, 0, "imported 1 message into 1 folder", "import", filepath.Join(dir, "link.eml"))
}

// TestFullDisk: every command says in words that the disk is full, by the socket and alone.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const text = "The disk is almost full: delete mail or other files first"
	root := t.TempDir()
	if err := quiet(t, root).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "settings.json"), []byte(`{"limits": {"keep_free_mb": 1073741824}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	letter := filepath.Join(t.TempDir(), "a.eml")
	if err := os.WriteFile(letter, []byte("A: 1\r\n\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := func(a *app) {
		for _, args := range [][]string{{"send", "say x"}, {"send", "--to", "me@localhost", "hello"}, {"import", letter}} {
			cmd := newRoot()
			cmd.SetArgs(append([]string{"--data-root", a.root}, args...))
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(userText(err), text) {
				t.Errorf("pizza %q: %v", args, err)
			}
		}
	}
	a := quiet(t, root)
	dial(t, a, root)
	commands(a)
	if err := errors.Join(os.Remove(filepath.Join(root, "run", "endpoints.json")), a.Close()); err != nil {
		t.Fatal(err)
	}
	commands(a)
}
