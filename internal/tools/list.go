package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

const (
	maxListed  = 1000    // entries shown
	maxEntries = 100_000 // entries of a folder that are read
)

func runList(ctx context.Context, w Workspace, j *job) Outcome {
	switch j.path.place {
	case topPlace:
		return done("local/  folders the owner granted\nin/     attachments of the task's mails: %d\nout/    files that go back as attachments: %d", len(w.In()), len(w.Out()))
	case localPlace:
		return listGrants(j.f.grants())
	case inPlace:
		return listFiles(j.path, w.In())
	case outPlace:
		return listFiles(j.path, w.Out())
	}
	root, err := openGrant(j.path.grant)
	if err != nil {
		return failed("%s cannot be listed: %v", j.path, err)
	}
	defer root.Close()
	entries, all, err := readFolder(ctx, root, j.path.name())
	switch {
	case errors.Is(err, errNotFolder):
		return failed("%s is a file; read_file reads it", j.path)
	case err != nil:
		return failed("%s cannot be listed: %v", j.path, err)
	}
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		lines = append(lines, entryLine(e))
	}
	return listing(j.path, lines, all)
}

// readFolder reads a folder sorted by name, folders first. all is false if it has
// more entries than are read.
func readFolder(ctx context.Context, root *os.Root, name string) (entries []fs.DirEntry, all bool, err error) {
	fi, err := root.Stat(name)
	if err != nil {
		return nil, false, plainError(err)
	}
	if !fi.IsDir() {
		return nil, false, errNotFolder
	}
	d, err := root.Open(name)
	if err != nil {
		return nil, false, plainError(err)
	}
	defer d.Close()
	for len(entries) < maxEntries {
		some, err := d.ReadDir(1000)
		entries = append(entries, some...)
		if errors.Is(err, io.EOF) {
			all = true
			break
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, false, plainError(err)
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name(), b.Name())
	})
	return entries, all, nil
}

func entryLine(e fs.DirEntry) string {
	name := Show(e.Name())
	switch {
	case e.IsDir():
		return name + "/"
	case e.Type()&fs.ModeSymlink != 0:
		return name + "  (symbolic link)"
	case !e.Type().IsRegular():
		return name + "  (special file)"
	}
	fi, err := e.Info()
	if err != nil {
		return name // it is gone in this moment, or cannot be seen
	}
	return name + "  " + size(fi.Size())
}

func listGrants(grants []Grant) Outcome {
	if len(grants) == 0 {
		return done("[no folder is granted; the owner grants one with --grant PATH or in the settings]")
	}
	var lines []string
	for _, g := range grants {
		use := "read only"
		if g.Write {
			use = "read and write; changes are asked"
		}
		lines = append(lines, "/local/"+g.ID+"/  "+use)
	}
	return Outcome{Content: strings.Join(lines, "\n")}
}

func listFiles(t target, files []File) Outcome {
	if t.rel != "" {
		if listed(files, t.rel) != nil {
			return failed("%s is a file; read_file reads it", t)
		}
		return failed("%s: %v", t, errMissing)
	}
	var lines []string
	for _, f := range files {
		lines = append(lines, Show(f.Name)+"  "+size(f.Size))
	}
	slices.Sort(lines)
	return listing(t, lines, true)
}

func listing(t target, lines []string, all bool) Outcome {
	if len(lines) == 0 {
		return done("[%s is empty]", t)
	}
	note := ""
	if n := len(lines); n > maxListed || !all {
		lines = lines[:min(n, maxListed)]
		of := comma(int64(n))
		if !all {
			of = "more than " + of
		}
		note = fmt.Sprintf("\n[the first %s of %s; search_files finds others by name]", comma(int64(len(lines))), of)
	}
	return Outcome{Content: strings.Join(lines, "\n") + note}
}
