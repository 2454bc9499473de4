package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	maxSlug = 48
	maxPath = 4096
)

// Folder is a grant that was looked at: the agent sees it as /local/<ID>.
type Folder struct {
	ID    string // slug of the folder's name, unique among the folders
	Path  string // absolute and clean, as given
	Write bool

	real string // with symbolic links resolved, for comparing
	key  string // where it was written, for problems
}

// ParseGrant reads "PATH", "PATH:rw" or "PATH:ro". A relative path is taken from the
// working directory: it comes from a command line.
func ParseGrant(value string) (Grant, error) {
	g := Grant{Path: value}
	if path, ok := strings.CutSuffix(value, ":rw"); ok {
		g = Grant{Path: path, Write: true}
	} else if path, ok := strings.CutSuffix(value, ":ro"); ok {
		g.Path = path
	}
	if _, err := os.Stat(g.Path); errors.Is(err, fs.ErrNotExist) {
		if i := strings.LastIndexByte(g.Path, ':'); i > 0 && strings.Trim(g.Path[i+1:], "rwx") == "" {
			return Grant{}, fmt.Errorf("%q cannot end in %s: only :rw (read and write) or :ro (read)", value, g.Path[i:])
		}
	}
	if g.Path == "" {
		return Grant{}, errors.New("must be a folder, with :rw behind it if the agent may also write there")
	}
	path, err := filepath.Abs(g.Path)
	if err != nil {
		return Grant{}, err
	}
	g.Path = path
	return g, nil
}

// folders looks at the grants and gives each its id, in order, so that ids stay as long
// as the grants before it do.
func folders(root string, grants []keyedGrant, p *problems) []Folder {
	realRoot := realPath(root)
	used := map[string]bool{}
	var out []Folder
	for _, g := range grants {
		f, err := g.look(realRoot)
		if err == nil {
			err = overlap(out, f)
		}
		if err != nil {
			p.add(g.key, "%v", err)
			continue
		}
		f.ID = uniqueSlug(filepath.Base(f.Path), used)
		out = append(out, f)
	}
	return out
}

// keyedGrant is a grant and where it was written.
type keyedGrant struct {
	Grant
	key string
}

func (g keyedGrant) look(realRoot string) (Folder, error) {
	switch {
	case !filepath.IsAbs(g.Path):
		return Folder{}, fmt.Errorf("%q is not an absolute path", g.Path)
	case len(g.Path) > maxPath:
		return Folder{}, fmt.Errorf("the path is longer than %d octets", maxPath)
	}
	f := Folder{Path: filepath.Clean(g.Path), Write: g.Write, key: g.key}
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, fmt.Errorf("there is no folder %s", f.Path)
	case err != nil:
		return f, err
	case !info.IsDir():
		return f, fmt.Errorf("%s is not a folder", f.Path)
	}
	f.real, err = filepath.EvalSymlinks(f.Path)
	switch {
	case err != nil:
		return f, err
	case within(f.real, realRoot):
		return f, fmt.Errorf("%s lies in the data root, where mail and keys are kept", f.Path)
	case within(realRoot, f.real):
		return f, fmt.Errorf("%s contains the data root, where mail and keys are kept: grant folders inside it instead", f.Path)
	}
	return f, nil
}

// overlap refuses what would give one file two answers: the same folder twice, a folder
// in a folder with the same access, and a read-only folder in a writable one. A writable
// folder in a read-only one is fine.
func overlap(before []Folder, f Folder) error {
	for _, b := range before {
		outer, inner := b, f
		if within(b.real, f.real) && b.real != f.real {
			outer, inner = f, b
		}
		switch {
		case !within(inner.real, outer.real):
		case inner.real == outer.real:
			return fmt.Errorf("%s is granted already (%s)", f.Path, b.key)
		case inner.Write == outer.Write:
			return fmt.Errorf("%s lies in %s, which is granted with the same access", inner.Path, outer.Path)
		case outer.Write:
			return fmt.Errorf("%s cannot be read-only in %s, which is writable", inner.Path, outer.Path)
		}
	}
	return nil
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// realPath resolves the links of a path of which the last parts may not exist yet.
func realPath(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// slug makes an id of a folder's name: lower-case letters, digits and hyphens.
func slug(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(name)) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r): // the accent of the letter before
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	s := b.String()
	s = strings.Trim(s[:min(len(s), maxSlug)], "-")
	if s == "" {
		return "folder"
	}
	return s
}

func uniqueSlug(name string, used map[string]bool) string {
	base := slug(name)
	id := base
	for n := 2; used[id]; n++ {
		suffix := "-" + strconv.Itoa(n)
		id = strings.TrimRight(base[:min(len(base), maxSlug-len(suffix))], "-") + suffix
	}
	used[id] = true
	return id
}

// mergeGrants lets a grant of the command line stand for one of the file with the same
// path.
func mergeGrants(file, flags []keyedGrant) []keyedGrant {
	out := slices.DeleteFunc(slices.Clone(file), func(g keyedGrant) bool {
		return slices.ContainsFunc(flags, func(f keyedGrant) bool { return filepath.Clean(f.Path) == filepath.Clean(g.Path) })
	})
	return append(out, flags...)
}
