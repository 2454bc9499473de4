package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	maxHits        = 200
	maxHitsFile    = 20        // lines of one file
	maxSearchFile  = 5 << 20   // larger files are searched by name only
	maxSearchBytes = 512 << 20 // of all files
	maxSearchFiles = 50_000
	maxHitText     = 200 // characters of a line
)

// search goes over names and text.
type search struct {
	query string // lower case
	hits  []string
	files int
	bytes int64
	large int    // files searched by name only because of their size
	stop  string // why it ended early
}

func runSearch(ctx context.Context, w Workspace, j *job) Outcome {
	s := &search{query: strings.ToLower(j.args.text["query"])}
	var err error
	switch j.path.place {
	case inPlace, outPlace:
		err = s.listed(ctx, w, j.path)
	case grantPlace:
		err = s.grant(ctx, j.path)
	default:
		err = s.places(ctx, w, j.f.grants(), j.path.place == topPlace)
	}
	if err != nil {
		return failed("%s cannot be searched: %v", j.path, err)
	}
	return s.outcome(j)
}

// places searches all granted folders, and /in and /out with them if everything is
// asked for. A folder that cannot be opened is a line of the answer.
func (s *search) places(ctx context.Context, w Workspace, grants []Grant, all bool) error {
	for _, g := range grants {
		t := target{place: grantPlace, grant: g}
		if err := s.grant(ctx, t); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			s.hits = append(s.hits, fmt.Sprintf("[%s cannot be searched: %v]", t, err))
		}
	}
	if !all {
		return nil
	}
	return errors.Join(s.listed(ctx, w, target{place: inPlace}), s.listed(ctx, w, target{place: outPlace}))
}

// listed searches /in or /out, or one file of it.
func (s *search) listed(ctx context.Context, w Workspace, t target) error {
	files := w.In()
	if t.place == outPlace {
		files = w.Out()
	}
	if t.rel != "" && listed(files, t.rel) == nil {
		return errMissing
	}
	for _, f := range files {
		if t.rel != "" && t.rel != f.Name || s.full() {
			continue
		}
		at := target{place: t.place, rel: f.Name}
		if err := s.file(ctx, at, f.Size, func() (source, error) { return openTarget(w, at) }); err != nil {
			return err
		}
	}
	return nil
}

// grant walks a granted folder. It follows no links.
func (s *search) grant(ctx context.Context, t target) error {
	root, err := openGrant(t.grant)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Stat(t.name()); err != nil {
		return plainError(err)
	}
	return fs.WalkDir(root.FS(), t.name(), func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case s.full():
			return fs.SkipAll
		case err != nil:
			return nil // unreadable or gone meanwhile: the rest is still worth it
		}
		at := t
		if at.rel = name; name == "." {
			at.rel = ""
		}
		if d.IsDir() || !d.Type().IsRegular() {
			s.name(at)
			return nil
		}
		return s.regular(ctx, root, at, d)
	})
}

func (s *search) regular(ctx context.Context, root *os.Root, at target, d fs.DirEntry) error {
	fi, err := d.Info()
	if err != nil {
		return nil // gone meanwhile
	}
	return s.file(ctx, at, fi.Size(), func() (source, error) { return openIn(root, at.name()) })
}

// full reports whether a limit is reached, and remembers which.
func (s *search) full() bool {
	switch {
	case s.stop != "":
	case len(s.hits) >= maxHits:
		s.stop = fmt.Sprintf("stopped at %d results", maxHits)
	case s.files >= maxSearchFiles:
		s.stop = fmt.Sprintf("stopped after %s files", comma(maxSearchFiles))
	case s.bytes >= maxSearchBytes:
		s.stop = fmt.Sprintf("stopped after %d MiB", maxSearchBytes>>20)
	}
	return s.stop != ""
}

// name looks at a name only.
func (s *search) name(at target) {
	if at.rel != "" && strings.Contains(strings.ToLower(at.rel[strings.LastIndexByte(at.rel, '/')+1:]), s.query) {
		s.hits = append(s.hits, at.String())
	}
}

// file looks at the name and the text of a file. Its only error is ctx's.
func (s *search) file(ctx context.Context, at target, length int64, open func() (source, error)) error {
	s.files++
	s.name(at)
	if length > maxSearchFile {
		s.large++
		return nil
	}
	src, err := open()
	if err != nil {
		return ctx.Err() // cannot be read: it was searched by name
	}
	defer src.Close()
	r := bufio.NewReaderSize(io.LimitReader(src, maxSearchFile), 64<<10)
	if head, _ := r.Peek(sniffLen); binary(head) {
		return nil
	}
	s.bytes += length
	return s.lines(ctx, at, r)
}

func (s *search) lines(ctx context.Context, at target, r *bufio.Reader) error {
	found := 0
	for n := 1; ; n++ {
		line, _, err := readLine(ctx, r)
		if text := string(line); strings.Contains(strings.ToLower(text), s.query) {
			if found++; found > maxHitsFile {
				s.hits = append(s.hits, fmt.Sprintf("[%s has more such lines]", at))
				return nil
			}
			s.hits = append(s.hits, fmt.Sprintf("%s:%d: %s", at, n, s.around(text)))
		}
		if err != nil || len(s.hits) >= maxHits {
			return ctx.Err()
		}
	}
}

// around is the line, or for a long one the part with the query.
func (s *search) around(line string) string {
	line = strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
	if utf8.RuneCountInString(line) <= maxHitText {
		return line
	}
	r := []rune(line)
	at := 0
	if i := strings.Index(strings.ToLower(line), s.query); i >= 0 {
		at = utf8.RuneCountInString(strings.ToLower(line)[:i])
	}
	start := min(max(0, at-maxHitText/4), len(r)-maxHitText)
	return "…" + string(r[start:start+maxHitText]) + "…"
}

func (s *search) outcome(j *job) Outcome {
	var notes []string
	if s.stop != "" {
		notes = append(notes, s.stop+"; search a smaller folder or for a longer text")
	}
	if s.large > 0 {
		notes = append(notes, fmt.Sprintf("%d files over %d MiB were searched by name only", s.large, maxSearchFile>>20))
	}
	if len(s.hits) == 0 {
		s.hits = append(s.hits, fmt.Sprintf("[nothing in %s matches %s; %s files searched]", j.path, quote(j.args.text["query"]), comma(int64(s.files))))
	}
	text := strings.Join(s.hits, "\n")
	if len(notes) > 0 {
		text += "\n[" + strings.Join(notes, ". ") + "]"
	}
	return Outcome{Content: text}
}
