//go:build unix

package mailfile

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// told walks a path and returns what was left out, as names with their reasons, and how
// many messages there were.
func told(t *testing.T, path string) (texts []string, n int) {
	t.Helper()
	err := Walk(path, "loose", func(m Message, err error) error {
		var e *Error
		if errors.As(err, &e) {
			texts = append(texts, filepath.Base(e.Where)+": "+e.Text)
			return nil
		}
		if m.Body != nil {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(texts)
	return texts, n
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const linkText = ": it is a link, which may lead out of the folder: name what it leads to"

// TestSpecialFiles: a pipe does not hold the walk, and links do not lead out of a folder,
// wherever they lie; each is told, and the rest goes on.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	letter := filepath.Join(out, "secret.eml")
	l, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	defer l.Close()
	if err := errors.Join(os.MkdirAll(in("Box", "cur"), 0o700), os.MkdirAll(in("Linked", "cur"), 0o700),
		os.WriteFile(letter, []byte("A: 1\r\n\r\n"), 0o600), os.WriteFile(in("good.eml"), []byte("A: 1\r\n\r\n"), 0o600),
		os.WriteFile(in("Box", "cur", "1.a.b:2,S"), []byte("A: 1\n\n"), 0o600),
		syscall.Mkfifo(in("pipe.eml"), 0o600), syscall.Mkfifo(in("Box", "cur", "2.a.b:2,"), 0o600), syscall.Mkfifo(in("Box", "dovecot-keywords"), 0o600),
		syscall.Mkfifo(in("Box", ".special"), 0o600),
		os.Symlink(letter, in("link.eml")), os.Symlink(out, in("folder")), os.Symlink(letter, in("Box", "cur", "3.a.b:2,")),
		os.Symlink(out, in("Linked", "new")), os.Symlink(in("Linked"), in("Box", ".Elsewhere"))); err != nil {
		t.Fatal(err)
	}
	texts, n := told(t, dir)
	same(t, "folder", texts, ".Elsewhere"+linkText, ".special: it is no file but a pipe", "2.a.b:2,: it is no file but a pipe", "3.a.b:2,"+linkText,
		"dovecot-keywords: it is no file but a pipe", "folder"+linkText, "link.eml"+linkText,
		"new"+linkText, "pipe.eml: it is no file but a pipe", "socket: it is no file but a socket")
	if n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// TestNamedPaths: a path that a person names may be a link, to a file or a folder; it may
// be no pipe and no device.
func TestNamedPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(in("mail"), 0o700), os.WriteFile(in("mail/a.eml"), []byte("A: 1\r\n\r\n"), 0o600),
		syscall.Mkfifo(in("pipe"), 0o600), os.Symlink(in("pipe"), in("piped")),
		os.Symlink(in("mail"), in("folder")), os.Symlink(in("mail/a.eml"), in("link.eml"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, text string
		n          int
	}{
		{in("folder"), "", 1}, {in("link.eml"), "", 1},
		{in("pipe"), "pipe: it is no file but a pipe", 0}, {in("piped"), "piped: it is no file but a pipe", 0},
		{os.DevNull, "null: it is no file but a device", 0},
	} {
		texts, n := told(t, tt.path)
		if n != tt.n || strings.Join(texts, "") != tt.text {
			t.Errorf("%s: %d messages, %q", tt.path, n, texts)
		}
	}
}
