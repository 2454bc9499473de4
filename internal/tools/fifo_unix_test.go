//go:build unix

package tools

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe in a granted folder must not hold the call until somebody writes to it.
func TestPipeDoesNotBlock(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if err := syscall.Mkfifo(filepath.Join(b.books, "pipe"), 0o644); err != nil {
		t.Skip("no pipes here: ", err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.notes, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Call{
		call("read_file", m{"path": "/local/books/pipe"}),
		call("write_file", m{"path": "/local/notes/pipe", "content": "x"}),
		call("edit_file", m{"path": "/local/notes/pipe", "old": "x", "new": "y"}),
		call("delete_file", m{"path": "/local/notes/pipe"}),
	} {
		if o := b.f.Run(t.Context(), b.w, c); !o.Error || o.Unknown {
			t.Errorf("%s: %+v", c.Name, o)
		}
	}
	equal(t, b.want("search_files", m{"path": "/local/books", "query": "pipe"}), "/local/books/pipe")
	equal(t, b.want("list_folder", m{"path": "/local/books"}), "pipe  (special file)")
}
