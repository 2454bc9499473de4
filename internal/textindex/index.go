// Package textindex finds which of many contents may hold a piece of text, without
// reading them.
//
// A content is a text with a number; numbers grow from 1, and a number never gets another
// text. The index knows of each content which grams (see gram) its folded text has. A
// query asks for the grams of what is looked for: a content that lacks one of them
// cannot hold it. So an answer may name too many contents, which the caller verifies,
// but never lacks one. Contents that the index does not know are in no answer: the
// caller has to look at them.
//
// On disk are immutable files, each about the contents of a range of numbers (see
// segment), which are merged as they become many. How far the index reaches is told by
// the same files, so there is nothing that could disagree: a kill at any moment leaves
// some of them and at most a temporary one. Files carry a checksum and are not synced:
// they are derived, and a damaged one is deleted and its range indexed again. The newest
// contents, few, are in memory until there are enough for a file.
//
// Concurrency: one goroutine adds, flushes and merges; any number query meanwhile.
//
// The package is a leaf: it imports nothing of this module.
package textindex

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
)

const (
	flushContents = 64      // contents in memory before they are written
	flushGrams    = 1 << 20 // grams in memory
	smallSegment  = 1024    // contents; segments with fewer are merged
	mergeSegments = 16      // as soon as so many lie side by side
	suffix        = ".seg"
	tempSuffix    = ".tmp"
)

// Index is an index in a directory of its own.
type Index struct {
	dir string
	tag uint32

	mu       sync.RWMutex // guards what follows; only the goroutine that adds changes it
	segments []*segment   // in order; they do not overlap
	tail     tail
	bad      []*segment // found damaged by queries
}

// tail is the newest contents, in memory: of the span behind the segments before it.
type tail struct {
	span
	docs  []doc
	grams int
}

type doc struct {
	Content
	grams []gram
	full  bool
}

// Open opens the index in dir, making the directory when it is missing. Files that are
// damaged, or were made with another tag, or whose contents genuine denies, are deleted.
// The tag stands for all that decides which text a content has.
func Open(dir string, tag uint32, genuine func([]Content) bool) (*Index, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	x := &Index{dir: dir, tag: tag}
	var found []*segment
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if strings.HasSuffix(path, suffix) {
			if s, err := openSegment(path); err == nil && s.tag == tag && os.Chmod(path, 0o600) == nil && genuine(s.contents) {
				found = append(found, s)
				continue
			}
		}
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	x.segments, err = disjoint(found)
	x.startTail()
	return x, err
}

// disjoint removes what a merge left behind: segments that a larger one holds.
func disjoint(all []*segment) (out []*segment, err error) {
	slices.SortFunc(all, func(a, b *segment) int {
		switch {
		case a.from != b.from && a.from < b.from, a.from == b.from && a.to > b.to:
			return -1
		}
		return 1
	})
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			err = errors.Join(err, remove(s.path))
			continue
		}
		out = append(out, s)
	}
	return out, err
}

// startTail puts an empty tail where the first gap is.
func (x *Index) startTail() {
	next := uint64(1)
	for _, s := range x.segments {
		if s.from > next {
			break
		}
		next = s.to + 1
	}
	x.tail = tail{span: span{next, next - 1}}
}

// Gap returns the first range of numbers that the index knows nothing of. The contents
// of it are to be added next.
func (x *Index) Gap() (from, to uint64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.gap()
}

// gap is Gap; x.mu is held.
func (x *Index) gap() (from, to uint64) {
	from, to = x.tail.to+1, math.MaxUint64
	for _, s := range x.segments {
		if s.from >= from {
			to = min(to, s.from-1)
		}
	}
	return from, to
}

// Add adds a content with its grams. Its number lies in the gap, else it is left out; all
// numbers of the gap below it are no contents, or shall not be known.
func (x *Index) Add(c Content, g *Grams) {
	list, full := g.sorted()
	x.mu.Lock()
	defer x.mu.Unlock()
	if from, to := x.gap(); c.Number < from || c.Number > to {
		return
	}
	x.tail.docs = append(x.tail.docs, doc{c, list, full})
	x.tail.grams += len(list)
	x.tail.to = c.Number
}

// Cover says that there are no further contents in the gap up to and including to.
func (x *Index) Cover(to uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if from, end := x.gap(); to >= from {
		x.tail.to = min(to, end)
	}
}

// Due reports whether it is time to Flush: there is enough in memory, or the gap that
// was being filled is filled.
func (x *Index) Due() bool {
	from, to := x.Gap()
	return len(x.tail.docs) >= flushContents || x.tail.grams >= flushGrams || from > to
}

// Flush writes what is in memory, unless there is no content in it and more may follow.
func (x *Index) Flush() error {
	if from, to := x.Gap(); x.tail.to < x.tail.from || len(x.tail.docs) == 0 && from <= to {
		return nil
	}
	s, err := writeTail(x.temp(), x.tag, &x.tail)
	if err != nil {
		return err
	}
	return x.replace(s, nil)
}

func (x *Index) temp() string { return filepath.Join(x.dir, "new"+tempSuffix) }

// replace gives a new segment its name and puts it in the place of others, or of the
// tail when there are none. A disk that is busy may take seconds to rename and remove:
// queries do not wait for that, but where the name stays the same.
func (x *Index) replace(s *segment, old []*segment) error {
	temp := s.path
	s.path = filepath.Join(x.dir, fmt.Sprintf("%016x-%016x%s", s.from, s.to, suffix))
	anew := slices.ContainsFunc(old, func(o *segment) bool { return o.path == s.path })
	if !anew {
		if err := os.Rename(temp, s.path); err != nil {
			return err
		}
	}
	if err := x.swap(s, old, temp, anew); err != nil {
		return err
	}
	var err error
	for _, o := range old { // no query has them any more
		if o.path != s.path {
			err = errors.Join(err, remove(o.path))
		}
	}
	return err
}

// swap is the part of replace that queries wait for.
func (x *Index) swap(s *segment, old []*segment, temp string, rename bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if rename {
		if err := os.Rename(temp, s.path); err != nil {
			return err
		}
	}
	x.segments = slices.DeleteFunc(x.segments, func(o *segment) bool { return slices.Contains(old, o) })
	i := sort.Search(len(x.segments), func(i int) bool { return x.segments[i].from > s.from })
	x.segments = slices.Insert(x.segments, i, s)
	if old == nil {
		x.startTail()
	}
	return nil
}

// Merge makes one segment of small ones when there are many, leaving out contents that
// are not alive. It returns whether it did; call it again then.
func (x *Index) Merge(alive func(uint64) bool) (did bool, err error) {
	run := x.run()
	if run == nil {
		return false, x.dropBad()
	}
	return true, x.rewrite(run, alive)
}

func (x *Index) rewrite(run []*segment, alive func(uint64) bool) error {
	s, err := merge(x.temp(), run, alive)
	if err != nil {
		x.note(run...)
		return errors.Join(err, x.dropBad())
	}
	return x.replace(s, run)
}

// run returns segments to merge: small ones side by side, many, or enough for a large
// one.
func (x *Index) run() []*segment {
	start, contents := 0, 0
	for i, s := range x.segments {
		if i > start && x.segments[i-1].to+1 != s.from || len(s.contents) >= smallSegment {
			start, contents = i, 0
		}
		if len(s.contents) >= smallSegment {
			start = i + 1
			continue
		}
		contents += len(s.contents)
		if n := i + 1 - start; n >= mergeSegments || n > 1 && contents >= smallSegment {
			return slices.Clone(x.segments[start : i+1])
		}
	}
	return nil
}

// Prune writes segments anew, most of whose contents are not alive any more.
func (x *Index) Prune(alive func(uint64) bool) error {
	for _, s := range slices.Clone(x.segments) {
		dead := 0
		for _, c := range s.contents {
			if !alive(c.Number) {
				dead++
			}
		}
		if 2*dead > len(s.contents) {
			if err := x.rewrite([]*segment{s}, alive); err != nil {
				return err
			}
		}
	}
	return nil
}

// note remembers segments that do not read as they were written.
func (x *Index) note(bad ...*segment) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bad = append(x.bad, bad...)
}

// dropBad deletes the segments that were noted, so that their contents are indexed
// again.
func (x *Index) dropBad() error {
	x.mu.Lock()
	bad := x.bad
	x.bad = nil
	x.mu.Unlock()
	if bad == nil {
		return nil
	}
	err := x.Flush()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range bad {
		if i := slices.Index(x.segments, s); i >= 0 {
			x.segments = slices.Delete(x.segments, i, i+1)
			err = errors.Join(err, remove(s.path))
		}
	}
	x.startTail()
	return err
}

// remove deletes a file; it is as well that there is none.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Lacking calls fn with every content the index knows that cannot hold a folded text.
// ok is false, and fn not called, for a text too short to tell. An error means that some
// contents are not known any more.
func (x *Index) Lacking(folded string, zone Zone, fn func(number uint64)) (ok bool, err error) {
	grams := queryGrams(folded, zone)
	if len(grams) == 0 {
		return false, nil
	}
	bad, err := x.lacking(grams, fn)
	if bad != nil {
		x.note(bad...)
	}
	return true, err
}

func (x *Index) lacking(grams []gram, fn func(uint64)) (bad []*segment, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range x.segments {
		if e := s.lacking(grams, fn); e != nil {
			bad, err = append(bad, s), errors.Join(err, e)
		}
	}
	for _, d := range x.tail.docs {
		if d.lacks(grams) {
			fn(d.Number)
		}
	}
	return bad, err
}

func (s *segment) lacking(grams []gram, fn func(uint64)) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	found, err := s.find(f, grams)
	if err != nil {
		return err
	}
	for i, c := range s.contents {
		if !found.has(i) {
			fn(c.Number)
		}
	}
	return nil
}

func (d *doc) lacks(grams []gram) bool {
	return !d.full && slices.ContainsFunc(grams, func(g gram) bool {
		_, has := slices.BinarySearch(d.grams, g)
		return !has
	})
}

// Stats are figures of an index.
type Stats struct {
	Segments, Contents int
	Bytes              int64 // of the files
}

// Stats returns the present figures.
func (x *Index) Stats() (st Stats) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	st.Contents = len(x.tail.docs)
	for _, s := range x.segments {
		st.Segments++
		st.Contents += len(s.contents)
		st.Bytes += s.size
	}
	return st
}
