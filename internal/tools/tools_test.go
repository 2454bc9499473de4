package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pizza/internal/unseen"
)

// space is a Workspace in memory.
type space struct{ in, out map[string]string }

func (s space) In() []File  { return list(s.in) }
func (s space) Out() []File { return list(s.out) }

func list(m map[string]string) []File {
	var fs []File
	for name, text := range m {
		fs = append(fs, File{Name: name, Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}})
	}
	slices.SortFunc(fs, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return fs
}

func (s space) apply(o Outcome) {
	for _, c := range o.Out {
		if s.out[c.Name] = string(c.Content); c.Deleted {
			delete(s.out, c.Name)
		}
	}
}

// box is a set of tools over two folders: rw "notes" and read-only "books".
type box struct {
	t            *testing.T
	f            *Files
	w            space
	notes, books string
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{t: t, w: space{map[string]string{}, map[string]string{}}, notes: t.TempDir(), books: t.TempDir()}
	b.f = NewFiles(func() []Grant {
		return []Grant{{ID: "notes", Path: b.notes, Write: true}, {ID: "books", Path: b.books}}
	})
	return b
}

func call(name string, args map[string]any) Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return Call{Name: name, Args: b}
}

func (b *box) run(name string, args map[string]any) Outcome {
	b.t.Helper()
	o := b.f.Run(context.Background(), b.w, call(name, args))
	if o.Unknown {
		b.t.Errorf("%s %v: unknown outcome", name, args)
	}
	b.w.apply(o)
	return o
}

// want runs a call that must succeed, and returns its content.
func (b *box) want(name string, args map[string]any) string {
	b.t.Helper()
	o := b.run(name, args)
	if o.Error {
		b.t.Fatalf("%s %v: %s", name, args, o.Content)
	}
	return o.Content
}

// refuse runs a call that must fail with text, and without a change of the folders.
func (b *box) refuse(text, name string, args map[string]any) {
	b.t.Helper()
	before := b.tree()
	o := b.run(name, args)
	if !o.Error || !strings.Contains(o.Content, text) || len(o.Out) > 0 {
		b.t.Errorf("%s %v: %+v; want an error with %q", name, args, o, text)
	}
	if strings.Contains(o.Content, b.notes) || strings.Contains(o.Content, b.books) {
		b.t.Errorf("%s %v tells a path of the machine: %s", name, args, o.Content)
	}
	if after := b.tree(); after != before {
		b.t.Errorf("%s %v failed and changed\n%s\nto\n%s", name, args, before, after)
	}
}

// tree is everything in the two folders.
func (b *box) tree() string {
	var all strings.Builder
	for _, dir := range []string{b.notes, b.books} {
		err := filepath.Walk(dir, func(p string, fi os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			text := ""
			if fi.Mode().IsRegular() {
				c, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				text = string(c)
			}
			fmt.Fprintf(&all, "%s %s %q\n", strings.TrimPrefix(p, dir), fi.Mode(), text)
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return all.String()
}

func (b *box) put(dir, name, text string) {
	b.t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) file(dir, name string) string {
	b.t.Helper()
	c, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(c)
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

type m = map[string]any

func TestSpecsAreTheContract(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"list_folder": "path", "read_file": "path from? to?", "search_files": "path query", "write_file": "path content",
		"edit_file": "path old new", "move_file": "path to", "delete_file": "path",
	}
	specs := newBox(t).f.Specs()
	for _, s := range specs {
		var schema struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(s.Schema, &schema); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		names := strings.Fields(want[s.Name])
		if len(names) != len(schema.Properties) || schema.Type != "object" || schema.Additional == nil || *schema.Additional {
			t.Errorf("%s: %s", s.Name, s.Schema)
		}
		for _, n := range names {
			plain := strings.TrimSuffix(n, "?")
			if schema.Properties[plain].Description == "" || slices.Contains(schema.Required, plain) == strings.HasSuffix(n, "?") {
				t.Errorf("%s: argument %s in %s", s.Name, n, s.Schema)
			}
		}
	}
	if len(specs) != len(want) {
		t.Errorf("%d tools", len(specs))
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, tt := range []struct {
		name, args string
		class      Class
		rule       Rule
		text       string // of the sentence, or of the reason where there is none
	}{
		{"list_folder", `{"path":"/"}`, ReadOnly, Allow, "List the folder /."},
		{"list_folder", `{"path":"/local/notes/./a//"}`, ReadOnly, Allow, "List the folder /local/notes/a."},
		{"read_file", `{"path":"/in/a.txt","from":3,"to":9}`, ReadOnly, Allow, "Read the file /in/a.txt, lines 3 to 9."},
		{"search_files", `{"path":"/","query":"x"}`, ReadOnly, Allow, `Search the files in / for "x".`},
		{"write_file", `{"path":"/local/notes/sub/todo.txt","content":"` + strings.Repeat("x", 1234) + `"}`, OnceOnly, Ask,
			"Write the file todo.txt in the folder /local/notes/sub, 1,234 bytes; a file of that name there is replaced."},
		{"write_file", `{"path":"/out/a.txt","content":""}`, Idempotent, Allow, "Write the file a.txt in the folder /out, 0 bytes; a file of that name there is replaced."},
		{"write_file", `{"path":"/local/books/a.txt","content":""}`, OnceOnly, Deny, "/local/books is read-only"},
		{"write_file", `{"path":"/in/a.txt","content":""}`, OnceOnly, Deny, "/in is read-only"},
		{"edit_file", `{"path":"/local/notes/a","old":"one\u202e","new":"two"}`, OnceOnly, Ask, `Change the file a in the folder /local/notes: replace "one\u202E" by "two".`},
		{"edit_file", `{"path":"/out/a","old":"1","new":""}`, Idempotent, Allow, `replace "1" by "".`},
		{"move_file", `{"path":"/local/notes/a","to":"/local/notes/b/a"}`, OnceOnly, Ask, "Move /local/notes/a to /local/notes/b/a."},
		{"move_file", `{"path":"/local/books/a","to":"/local/books/b"}`, OnceOnly, Deny, "read-only"},
		{"move_file", `{"path":"/out/a","to":"/out/b"}`, Idempotent, Allow, "Move /out/a to /out/b."},
		{"delete_file", `{"path":"/local/notes/a\u200bb"}`, OnceOnly, Ask, `Delete a\u200Bb in the folder /local/notes for good.`},
		{"delete_file", `{"path":"/out/a"}`, Idempotent, Allow, "Delete a in the folder /out for good."},

		{"move_file", `{"path":"/local/notes/a","to":"/out/a"}`, OnceOnly, Invalid, "write_file"},
		{"move_file", `{"path":"/local/notes/a","to":"/local/books/a"}`, OnceOnly, Invalid, "within one folder"},
		{"move_file", `{"path":"/local/notes/a","to":"/local/notes/a/b"}`, OnceOnly, Invalid, "into itself"},
		{"move_file", `{"path":"/local/notes/a","to":"/local/notes/./a"}`, OnceOnly, Invalid, "the same"},
		{"read_file", `{"path":"/local/notes"}`, ReadOnly, Invalid, "is a folder"},
		{"write_file", `{"path":"/local","content":""}`, OnceOnly, Invalid, "is a folder"},
		{"delete_file", `{"path":"/local/notes/"}`, OnceOnly, Invalid, "is a folder"},
		{"write_file", `{"path":"/out/sub/x","content":""}`, OnceOnly, Invalid, "no folders"},
		{"read_file", `{"path":"/local/other/x"}`, ReadOnly, Invalid, "no folder /local/other"},
		{"read_file", `{"path":"/etc/passwd"}`, ReadOnly, Invalid, "paths begin with"},
		{"read_file", `{"path":"notes/x"}`, ReadOnly, Invalid, "relative"},
		{"read_file", `{"path":"~/x"}`, ReadOnly, Invalid, "relative"},
		{"read_file", `{"path":"C:\\x"}`, ReadOnly, Invalid, "backslash"},
		{"read_file", `{"path":"/local/notes/../../etc/passwd"}`, ReadOnly, Invalid, ".."},
		{"read_file", `{"path":"/in/..\\..\\x"}`, ReadOnly, Invalid, "backslash"},
		{"read_file", `{"path":"/in/a\u0000b"}`, ReadOnly, Invalid, "control"},
		{"read_file", `{"path":""}`, ReadOnly, Invalid, "empty"},
		{"read_file", `{"path":"/in/` + strings.Repeat("x", 300) + `"}`, ReadOnly, Invalid, "longer than 255"},
		{"read_file", `{"path":"/in/` + strings.Repeat("x/", 3000) + `"}`, ReadOnly, Invalid, "longer than 4096"},

		{"read_file", `{}`, ReadOnly, Invalid, "needs the argument path"},
		{"read_file", `{"path":1}`, ReadOnly, Invalid, "must be a string"},
		{"read_file", `{"path":null}`, ReadOnly, Invalid, "must be a string"},
		{"read_file", `{"path":"/in/a","from":"1"}`, ReadOnly, Invalid, "whole number"},
		{"read_file", `{"path":"/in/a","from":0}`, ReadOnly, Invalid, "whole number"},
		{"read_file", `{"path":"/in/a","from":1.5}`, ReadOnly, Invalid, "whole number"},
		{"read_file", `{"path":"/in/a","from":null}`, ReadOnly, Invalid, "whole number"},
		{"read_file", `{"path":"/in/a","from":5,"to":4}`, ReadOnly, Invalid, "before"},
		{"read_file", `{"path":"/in/a","Path":"/in/b"}`, ReadOnly, Invalid, "no argument Path"},
		{"write_file", `{"path":"/out/a","path":"/local/notes/a","content":""}`, OnceOnly, Invalid, "given twice"},
		{"read_file", `[]`, ReadOnly, Invalid, "not a JSON object"},
		{"read_file", `{"path":"/in/a"} {}`, ReadOnly, Invalid, "not a JSON object"},
		{"read_file", ``, ReadOnly, Invalid, "not a JSON object"},
		{"edit_file", `{"path":"/out/a","old":"","new":"x"}`, OnceOnly, Invalid, "old is empty"},
		{"edit_file", `{"path":"/out/a","old":"x","new":"x"}`, OnceOnly, Invalid, "the same"},
		{"search_files", `{"path":"/","query":" "}`, ReadOnly, Invalid, "query is empty"},
		{"search_files", `{"path":"/","query":"a\nb"}`, ReadOnly, Invalid, "one line"},
		{"rm_rf", `{}`, OnceOnly, Invalid, "no tool rm_rf"},
	} {
		p := b.f.Plan(Call{Name: tt.name, Args: json.RawMessage(tt.args)})
		text := p.Sentence
		if p.Rule == Invalid || p.Rule == Deny {
			text = p.Reason
		}
		if p.Class != tt.class || p.Rule != tt.rule || !strings.Contains(text, tt.text) {
			t.Errorf("%s %.80s\n got %s %s %q\nwant %s %s %q", tt.name, tt.args, p.Class, p.Rule, text, tt.class, tt.rule, tt.text)
		}
		if p.Rule == Invalid || p.Rule == Deny {
			o := b.f.Run(context.Background(), b.w, Call{Name: tt.name, Args: json.RawMessage(tt.args)})
			if !o.Error || o.Content != p.Reason || len(o.Out) > 0 {
				t.Errorf("%s %.80s was run: %+v", tt.name, tt.args, o)
			}
		}
	}
	if tree := b.tree(); strings.Count(tree, "\n") != 2 {
		t.Errorf("planning or refusing left something:\n%s", tree)
	}
}

func TestListAndRead(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.put(b.notes, "todo.txt", "one\ntwo\r\nthree")
	b.put(b.notes, "sub/x", "")
	b.put(b.notes, "a\u202Eb", "evil name")
	b.w.in["letter.txt"] = "dear"
	b.w.in["a/b.txt"] = "name with a slash"
	equal(t, b.want("list_folder", m{"path": "/"}), "local/  folders the owner granted\nin/     attachments of the task's mails: 2\nout/    files that go back as attachments: 0")
	equal(t, b.want("list_folder", m{"path": "/local"}), "/local/notes/  read and write; changes are asked\n/local/books/  read only")
	equal(t, b.want("list_folder", m{"path": "/local/notes"}), "sub/\na\\u202Eb  9 bytes\ntodo.txt  14 bytes")
	equal(t, b.want("list_folder", m{"path": "/local/books"}), "[/local/books is empty]")
	equal(t, b.want("list_folder", m{"path": "/in"}), "a/b.txt  17 bytes\nletter.txt  4 bytes")
	equal(t, b.want("list_folder", m{"path": "/out"}), "[/out is empty]")
	b.refuse("is a file", "list_folder", m{"path": "/local/notes/todo.txt"})
	b.refuse("is a file", "list_folder", m{"path": "/in/letter.txt"})
	b.refuse("no such", "list_folder", m{"path": "/local/notes/none"})

	equal(t, b.want("read_file", m{"path": "/local/notes/todo.txt"}), "one\ntwo\r\nthree")
	equal(t, b.want("read_file", m{"path": "/local/notes/todo.txt", "from": 2, "to": 2}), "two\r\n")
	equal(t, b.want("read_file", m{"path": "/local/notes/todo.txt", "from": 3, "to": 300}), "three")
	equal(t, b.want("read_file", m{"path": "/local/notes/sub/x"}), "[/local/notes/sub/x is empty]")
	equal(t, b.want("read_file", m{"path": "/in/a/b.txt"}), "name with a slash")
	b.refuse("only 3 lines", "read_file", m{"path": "/local/notes/todo.txt", "from": 4})
	b.refuse("is a folder", "read_file", m{"path": "/local/notes/sub"})
	b.refuse("no such", "read_file", m{"path": "/in/none"})
	b.refuse("is a file", "read_file", m{"path": "/local/notes/todo.txt/x"})
}

func TestReadLimits(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "%d\n", i+1)
	}
	b.w.in["lines"] = text.String()
	got := b.want("read_file", m{"path": "/in/lines"})
	if !strings.HasSuffix(got, "\n2000\n[lines 1 to 2000; go on with from: 2001]") {
		t.Errorf("ends with %q", got[len(got)-60:])
	}
	got = b.want("read_file", m{"path": "/in/lines", "from": 4001})
	if !strings.HasPrefix(got, "4001\n") || !strings.HasSuffix(got, "\n5000\n") {
		t.Errorf("last piece is %q…%q", got[:10], got[len(got)-20:])
	}
	b.w.in["wide"] = strings.Repeat("x", 300<<10) + "\nshort\n"
	got = b.want("read_file", m{"path": "/in/wide"})
	if len(got) > maxReadBytes+200 || !strings.Contains(got[len(got)-200:], "go on with from: 2. line 1 is longer than 262,144 bytes") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-150:])
	}
	equal(t, b.want("read_file", m{"path": "/in/wide", "from": 2}), "short\n")
	b.w.in["pic"] = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	equal(t, b.want("read_file", m{"path": "/in/pic"}), "[/in/pic is no text: image/png, 16 bytes. Its content cannot be shown.]")
	b.w.in["latin"] = "caf\xe9\n"
	if got = b.want("read_file", m{"path": "/in/latin"}); !strings.HasPrefix(got, "caf\uFFFD\n[the file is not UTF-8") {
		t.Errorf("%q", got)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.put(b.notes, "a.txt", "Flour\nÄpfel and tomatoes\n"+strings.Repeat("long ", 100)+"OLIVE "+strings.Repeat("tail ", 100))
	b.put(b.notes, "deep/er/tomato.md", "x")
	b.put(b.notes, "bin", "tomato\x00")
	b.put(b.notes, "many", strings.Repeat("yeast\n", 50))
	b.put(b.books, "b.txt", "TOMATO sauce")
	b.put(b.books, "huge-tomato", strings.Repeat("tomato\n", 1<<20))
	b.w.in["in.txt"] = "a tomato"
	b.w.out["out.txt"] = "Tomato!"
	equal(t, b.want("search_files", m{"path": "/local/notes", "query": "Tomato"}), "/local/notes/a.txt:2: Äpfel and tomatoes\n/local/notes/deep/er/tomato.md")
	equal(t, b.want("search_files", m{"path": "/local/notes/a.txt", "query": "äPFEL"}), "/local/notes/a.txt:2: Äpfel and tomatoes")
	equal(t, b.want("search_files", m{"path": "/in", "query": "tomato"}), "/in/in.txt:1: a tomato")
	equal(t, b.want("search_files", m{"path": "/", "query": "tomato"}), strings.Join([]string{
		"/local/notes/a.txt:2: Äpfel and tomatoes", "/local/notes/deep/er/tomato.md", "/local/books/b.txt:1: TOMATO sauce",
		"/local/books/huge-tomato", "/in/in.txt:1: a tomato", "/out/out.txt:1: Tomato!", "[1 files over 5 MiB were searched by name only]"}, "\n"))
	if got := b.want("search_files", m{"path": "/local/notes", "query": "olive"}); !strings.Contains(got, "OLIVE") || len(got) > 300 {
		t.Errorf("%q", got)
	}
	if got := b.want("search_files", m{"path": "/local/notes", "query": "yeast"}); strings.Count(got, "yeast") != maxHitsFile || !strings.Contains(got, "more such lines") {
		t.Errorf("%q", got)
	}
	if got := b.want("search_files", m{"path": "/local", "query": "anchovy"}); !strings.HasPrefix(got, "[nothing in /local matches \"anchovy\"") {
		t.Errorf("%q", got)
	}
	b.refuse("no such", "search_files", m{"path": "/local/notes/none", "query": "x"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if o := b.f.Run(ctx, b.w, call("search_files", m{"path": "/", "query": "x"})); !o.Error {
		t.Errorf("cancelled search: %+v", o)
	}
}

func TestChangeLocal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	equal(t, b.want("write_file", m{"path": "/local/notes/new/sub/a.txt", "content": "one\ntwo\n"}), "Wrote /local/notes/new/sub/a.txt, 8 bytes, a new file.")
	equal(t, b.file(b.notes, "new/sub/a.txt"), "one\ntwo\n")
	if err := os.Chmod(filepath.Join(b.notes, "new/sub/a.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	equal(t, b.want("write_file", m{"path": "/local/notes/new/sub/a.txt", "content": "one\r\ntwo\r\none"}), "Wrote /local/notes/new/sub/a.txt, 13 bytes, in place of the one before.")
	if fi, err := os.Stat(filepath.Join(b.notes, "new/sub/a.txt")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	b.refuse("more than once", "edit_file", m{"path": "/local/notes/new/sub/a.txt", "old": "one", "new": "1"})
	b.refuse("not in it", "edit_file", m{"path": "/local/notes/new/sub/a.txt", "old": "three", "new": "1"})
	b.want("edit_file", m{"path": "/local/notes/new/sub/a.txt", "old": "one\ntwo", "new": "1\n2"})
	equal(t, b.file(b.notes, "new/sub/a.txt"), "1\r\n2\r\none")
	b.want("move_file", m{"path": "/local/notes/new/sub/a.txt", "to": "/local/notes/other/b.txt"})
	equal(t, b.file(b.notes, "other/b.txt"), "1\r\n2\r\none")
	b.want("write_file", m{"path": "/local/notes/top", "content": ""})
	b.refuse("nothing is overwritten", "move_file", m{"path": "/local/notes/top", "to": "/local/notes/other/b.txt"})
	b.refuse("is a folder that exists", "move_file", m{"path": "/local/notes/top", "to": "/local/notes/other"})
	b.refuse("no such", "move_file", m{"path": "/local/notes/none", "to": "/local/notes/x/y"})
	b.refuse("is a folder", "write_file", m{"path": "/local/notes/other", "content": "x"})
	b.refuse("is a folder", "edit_file", m{"path": "/local/notes/other", "old": "x", "new": "y"})
	b.refuse("is a file, not a folder", "write_file", m{"path": "/local/notes/top/x", "content": "x"})
	b.refuse("not empty", "delete_file", m{"path": "/local/notes/other"})
	b.refuse("no such", "delete_file", m{"path": "/local/notes/none"})
	b.want("delete_file", m{"path": "/local/notes/other/b.txt"})
	b.want("delete_file", m{"path": "/local/notes/other"})
	b.want("move_file", m{"path": "/local/notes/new", "to": "/local/notes/moved"})
	if tree := b.tree(); strings.Contains(tree, ".pizza-") || strings.Contains(tree, "other") || !strings.Contains(tree, "/moved/sub") {
		t.Errorf("left over:\n%s", tree)
	}
}

func TestChangeOut(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.want("write_file", m{"path": "/out/a.txt", "content": "one two"})
	equal(t, b.want("read_file", m{"path": "/out/a.txt"}), "one two")
	b.want("edit_file", m{"path": "/out/a.txt", "old": "two", "new": "three"})
	b.want("move_file", m{"path": "/out/a.txt", "to": "/out/b.txt"})
	equal(t, b.want("list_folder", m{"path": "/out"}), "b.txt  9 bytes")
	b.want("write_file", m{"path": "/out/c.txt", "content": "c"})
	b.refuse("nothing is overwritten", "move_file", m{"path": "/out/c.txt", "to": "/out/b.txt"})
	b.refuse("no such", "move_file", m{"path": "/out/none", "to": "/out/d"})
	b.refuse("no such", "edit_file", m{"path": "/out/none", "old": "a", "new": "b"})
	b.refuse("no such", "delete_file", m{"path": "/out/none"})
	b.want("delete_file", m{"path": "/out/b.txt"})
	equal(t, b.want("list_folder", m{"path": "/out"}), "c.txt  1 byte")
	if tree := b.tree(); strings.Count(tree, "\n") != 2 {
		t.Errorf("/out touched the disk:\n%s", tree)
	}
}

// What lies outside of a granted folder is neither read nor changed, whatever the
// folder's own content is.
func TestEscape(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	outside := t.TempDir()
	b.put(outside, "secret", "key")
	b.put(b.notes, "real/inside", "fine")
	for link, to := range map[string]string{
		"file": filepath.Join(outside, "secret"), "dir": outside, "up": "../../../../../../etc",
		"inner": "real", "innerfile": "real/inside", "loop": "loop", "dangling": "nowhere",
	} {
		if err := os.Symlink(to, filepath.Join(b.notes, link)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	b.refuse("leads out", "read_file", m{"path": "/local/notes/file"})
	b.refuse("leads out", "read_file", m{"path": "/local/notes/dir/secret"})
	b.refuse("leads out", "read_file", m{"path": "/local/notes/up/passwd"})
	b.refuse("leads out", "list_folder", m{"path": "/local/notes/dir"})
	b.refuse("leads out", "search_files", m{"path": "/local/notes/dir", "query": "key"})
	b.refuse("cannot be read", "read_file", m{"path": "/local/notes/loop"})
	equal(t, b.want("read_file", m{"path": "/local/notes/inner/inside"}), "fine")
	equal(t, b.want("search_files", m{"path": "/local/notes", "query": "fine"}), "/local/notes/real/inside:1: fine")
	equal(t, b.want("search_files", m{"path": "/", "query": "key"}), `[nothing in / matches "key"; 1 files searched]`)
	for _, p := range []string{"file", "dir/secret", "dir/new", "inner/inside", "inner/new", "innerfile", "dangling", "up/x", "loop"} {
		at := "/local/notes/" + p
		b.refuse("symbolic link", "write_file", m{"path": at, "content": "x"})
		b.refuse("symbolic link", "edit_file", m{"path": at, "old": "key", "new": "x"})
		b.refuse("symbolic link", "delete_file", m{"path": at})
		b.refuse("symbolic link", "move_file", m{"path": at, "to": "/local/notes/q"})
		b.refuse("symbolic link", "move_file", m{"path": "/local/notes/real/inside", "to": at})
	}
	equal(t, b.file(outside, "secret"), "key")
	if list := b.want("list_folder", m{"path": "/local/notes"}); strings.Count(list, "(symbolic link)") != 7 {
		t.Error(list)
	}
}

func TestRemovedGrantActsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	grants := []Grant{{ID: "x", Path: dir, Write: true}}
	f := NewFiles(func() []Grant { return grants })
	c := call("write_file", m{"path": "/local/x/a", "content": "a"})
	if p := f.Plan(c); p.Rule != Ask {
		t.Fatal(p)
	}
	grants[0].Write = false
	if o := f.Run(context.Background(), space{}, c); !o.Error || !strings.Contains(o.Content, "read-only") {
		t.Errorf("read-only: %+v", o)
	}
	grants = nil
	if o := f.Run(context.Background(), space{}, c); !o.Error || !strings.Contains(o.Content, "no folder /local/x") {
		t.Errorf("removed: %+v", o)
	}
	if es, err := os.ReadDir(dir); err != nil || len(es) != 0 {
		t.Errorf("%v, %v", es, err)
	}
	grants = []Grant{{ID: "x", Path: filepath.Join(dir, "gone"), Write: true}}
	if o := f.Run(context.Background(), space{}, c); !o.Error || strings.Contains(o.Content, dir) {
		t.Errorf("missing folder: %+v", o)
	}
}

func TestCancelledChangeHasNoEffect(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.put(b.notes, "a", "old")
	before := b.tree()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []Call{
		call("write_file", m{"path": "/local/notes/sub/a", "content": "x"}), call("edit_file", m{"path": "/local/notes/a", "old": "old", "new": "x"}),
		call("move_file", m{"path": "/local/notes/a", "to": "/local/notes/b"}), call("delete_file", m{"path": "/local/notes/a"}),
	} {
		if o := b.f.Run(ctx, b.w, c); !o.Error || o.Unknown || !strings.Contains(o.Content, "stopped") {
			t.Errorf("%s: %+v", c.Name, o)
		}
	}
	equal(t, b.tree(), before)
}

func TestShow(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ü 漢 😀": "plain ü 漢 😀", "a\nb": `a\u000Ab`, "a\u202eb": `a\u202Eb`, "\u00a0": `\u00A0`, "a\\u202e": `a\\u202e`,
		"\xff": `\xFF`, "\U000E0041": `\U000E0041`, "a\u200db": `a\u200Db`, "\u3164": `\u3164`, "\ufe0f": `\uFE0F`, "\u2066": `\u2066`,
	} {
		equal(t, Show(in), want)
	}
}

// What an approval's sentence shows as it is, and its block does, is one table.
func TestShowHidesWhatIsUnseen(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r > 0x40000 && r>>16 != 0xe {
			r += 250 // planes without a character of their own
		}
		if !utf8.ValidRune(r) || r == '\\' {
			continue
		}
		if s := "a" + string(r) + "b"; (Show(s) == s) == unseen.Hidden(r) {
			t.Fatalf("%U is shown as %s", r, Show(s))
		}
	}
}

func FuzzPlan(f *testing.F) {
	for _, t := range fileTools {
		f.Add(t.name, []byte(`{"path":"/local/notes/a","to":"/local/notes/b","content":"x","old":"a","new":"b","query":"q","from":1}`))
	}
	f.Add("read_file", []byte(`{"path":"/local/notes/..//a","path":null}`))
	f.Add("write_file", []byte(`{"path":"/out/\ud800","content":"\u0000"}`))
	files := NewFiles(func() []Grant { return []Grant{{ID: "notes", Path: "/nowhere", Write: true}} })
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		p := files.Plan(Call{Name: name, Args: raw})
		if p.Rule == Invalid || p.Rule == Deny {
			if p.Reason == "" {
				t.Errorf("%s %q: no reason", name, raw)
			}
			return
		}
		if p.Sentence == "" || Show(p.Sentence) != p.Sentence && !strings.Contains(p.Sentence, `\`) {
			t.Errorf("%s %q: sentence %q", name, raw, p.Sentence)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, p := range []string{"/", "/local/notes/a", "/in/../x", "/out/a/b", "//local//notes/./x", "/local/notes/\u2025/a", "a\\b"} {
		f.Add(p)
	}
	files := NewFiles(func() []Grant { return []Grant{{ID: "notes"}} })
	f.Fuzz(func(t *testing.T, p string) {
		at, err := files.resolve(p)
		if err != nil {
			return
		}
		for _, s := range strings.Split(at.rel, "/") {
			if s == ".." || s == "." || s == "" && at.rel != "" || strings.ContainsAny(s, "\\\x00") {
				t.Errorf("%q gives %q", p, at.rel)
			}
		}
		again, err := files.resolve(at.raw())
		if err != nil || again != at {
			t.Errorf("%q gives %q, which gives %+v, %v", p, at.raw(), again, err)
		}
	})
}
