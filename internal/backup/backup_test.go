package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sample is a small archive.
func sample(t *testing.T) []byte {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"settings.json": "{}", "skills/a/SKILL.md": "do", "skills/a/more/x": strings.Repeat("x", 3000)} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "skills", "link")); err != nil {
		t.Log(err)
	}
	var b bytes.Buffer
	w, err := NewWriter(&b, Info{Created: time.Unix(1e9, 0).UTC(), Version: "v1", Logins: []string{"me"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add("accounts.db", 5, func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"settings.json", "skills", "plugins"} {
		skipped, err := w.AddTree(root, name)
		if err != nil || len(skipped) > 0 && skipped[0] != filepath.Join("skills", "link") {
			t.Fatalf("%v, %v", skipped, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	raw := sample(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(raw)
	z.Close()
	for name, b := range map[string][]byte{"tar": raw, "gzip": zipped.Bytes()} {
		into := t.TempDir()
		info, err := Extract(bytes.NewReader(b), into)
		if err != nil || info.Version != "v1" || info.Created.Unix() != 1e9 || info.Logins[0] != "me" {
			t.Fatalf("%s: %+v, %v", name, info, err)
		}
		for name, want := range map[string]string{"accounts.db": "hello", "settings.json": "{}", "skills/a/SKILL.md": "do", "skills/a/more/x": strings.Repeat("x", 3000)} {
			path := filepath.Join(into, filepath.FromSlash(name))
			got, err := os.ReadFile(path)
			if err != nil || string(got) != want {
				t.Errorf("%s: %.20q, %v", name, got, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
		if _, err := os.Lstat(filepath.Join(into, "skills", "link")); err == nil {
			t.Error("the link came along")
		}
		if _, err := Extract(bytes.NewReader(b), ""); err != nil {
			t.Errorf("check: %v", err)
		}
	}
}

// TestDamage: an archive that was cut off anywhere, or with any octet of a file changed,
// is told from a whole one.
func TestDamage(t *testing.T) {
	t.Parallel()
	raw := sample(t)
	end := bytes.LastIndex(raw, []byte(manifestName))
	wantError := func(what string, b []byte) {
		t.Helper()
		var e *Error
		if _, err := Extract(bytes.NewReader(b), ""); !errors.As(err, &e) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := 0; n < end; n += 97 {
		wantError("cut off", raw[:n])
	}
	for _, text := range []string{"hello", "do", "xxxx", `"v1"`} {
		b := bytes.Clone(raw)
		b[bytes.Index(b, []byte(text))+1] ^= 1
		wantError("changed "+text, b)
	}
	wantError("no archive", []byte("From me@localhost"))
	wantError("empty", nil)
}

// TestForeignEntries: nothing is written outside of the folder.
func TestForeignEntries(t *testing.T) {
	t.Parallel()
	for _, h := range []tar.Header{
		{Name: "../evil", Typeflag: tar.TypeReg}, {Name: "/evil", Typeflag: tar.TypeReg}, {Name: "a/../../evil", Typeflag: tar.TypeReg},
		{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "a/./b", Typeflag: tar.TypeReg}, {Name: infoName, Typeflag: tar.TypeReg},
	} {
		var b bytes.Buffer
		w, err := NewWriter(&b, Info{})
		if err == nil {
			err = errors.Join(w.tar.WriteHeader(&h), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		into := filepath.Join(dir, "in")
		var e *Error
		if _, err := Extract(&b, into); !errors.As(err, &e) {
			t.Errorf("%s: %v", h.Name, err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 1 {
			t.Errorf("%s left %v (%v)", h.Name, list, err)
		}
	}
}

func TestNewerFormat(t *testing.T) {
	t.Parallel()
	raw := bytes.Replace(sample(t), []byte(`"format": 1`), []byte(`"format": 9`), 1)
	if _, err := Extract(bytes.NewReader(raw), ""); err == nil || !strings.Contains(err.Error(), "format 9") {
		t.Errorf("%v", err)
	}
}

// TestWrongSize: a file that gives another number of octets than it said makes no
// archive.
func TestWrongSize(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1234", "123456"} {
		w, err := NewWriter(io.Discard, Info{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add("f", 5, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err == nil {
			t.Errorf("%q as 5 octets", text)
		}
	}
}
