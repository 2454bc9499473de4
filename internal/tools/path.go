package tools

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// place is one of the folders that paths begin with.
type place int

const (
	topPlace   place = iota // "/", the folder of the three
	inPlace                 // "/in"
	outPlace                // "/out"
	localPlace              // "/local", the folder of the grants
	grantPlace              // "/local/<id>"
)

const (
	maxPath = 4096 // bytes
	maxName = 255  // bytes of a segment
)

// target is a checked path.
type target struct {
	place place
	grant Grant
	rel   string // within the place, slash-separated, clean; "" is the place itself
}

var topNames = map[string]place{"in": inPlace, "out": outPlace, "local": localPlace}

// resolve reads a path. It accepts absolute ones of our places only, has no notion of
// a parent folder, and looks at no file.
func (f *Files) resolve(p string) (target, error) {
	segments, err := split(p)
	if err != nil {
		return target{}, err
	}
	if len(segments) == 0 {
		return target{place: topPlace}, nil
	}
	at, ok := topNames[segments[0]]
	switch {
	case !ok:
		return target{}, fmt.Errorf("%s is not a path here: paths begin with /local/<folder>, /in or /out; list_folder / shows them", Show(p))
	case at != localPlace:
		return workspace(at, segments[1:])
	case len(segments) == 1:
		return target{place: localPlace}, nil
	}
	for _, g := range f.grants() {
		if g.ID == segments[1] {
			return target{place: grantPlace, grant: g, rel: strings.Join(segments[2:], "/")}, nil
		}
	}
	return target{}, fmt.Errorf("there is no folder /local/%s; list_folder /local shows the granted folders", Show(segments[1]))
}

// workspace is a path in /in or /out. Names of attachments may hold a slash; /out is
// flat, because mail has no folders.
func workspace(at place, segments []string) (target, error) {
	if at == outPlace && len(segments) > 1 {
		return target{}, errors.New("/out has no folders: write /out/<file>")
	}
	return target{place: at, rel: strings.Join(segments, "/")}, nil
}

// split cuts a path into its segments, or says what is wrong with it.
func split(p string) ([]string, error) {
	switch {
	case p == "":
		return nil, errors.New("path is empty; / shows the places there are")
	case len(p) > maxPath:
		return nil, fmt.Errorf("path is longer than %d bytes", maxPath)
	case !utf8.ValidString(p):
		return nil, errors.New("path is not UTF-8")
	case strings.Contains(p, `\`):
		return nil, errors.New(`path has a backslash; folders are separated by /`)
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return nil, errors.New("path has a control character")
	case p[0] != '/':
		return nil, fmt.Errorf("%s is a relative path; paths begin with /local/<folder>, /in or /out", Show(p))
	}
	var segments []string
	for _, s := range strings.Split(p, "/") {
		switch {
		case s == "" || s == ".":
			continue
		case s == "..":
			return nil, errors.New("path has ..; give the path itself")
		case len(s) > maxName:
			return nil, fmt.Errorf("a name in the path is longer than %d bytes", maxName)
		}
		segments = append(segments, s)
	}
	return segments, nil
}

// isFile wants a path below a place.
func (t target) isFile() error {
	if t.rel == "" {
		return fmt.Errorf("%s is a folder; give the path of a file in it", t)
	}
	return nil
}

// String is the path as it is shown to a person or a model.
func (t target) String() string { return Show(t.raw()) }

func (t target) raw() string {
	switch t.place {
	case inPlace:
		return path.Join("/in", t.rel)
	case outPlace:
		return path.Join("/out", t.rel)
	case localPlace:
		return "/local"
	case grantPlace:
		return path.Join("/local", t.grant.ID, t.rel)
	}
	return "/"
}

func (t target) base() string   { return Show(path.Base(t.raw())) }
func (t target) folder() string { return Show(path.Dir(t.raw())) }

// name is the path within an os.Root.
func (t target) name() string {
	if t.rel == "" {
		return "."
	}
	return t.rel
}
