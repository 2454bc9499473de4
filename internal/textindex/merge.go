package textindex

import (
	"os"
	"slices"
)

// writeTail writes what is in memory as a segment.
func writeTail(path string, tag uint32, t *tail) (*segment, error) {
	s := &segment{span: t.span, tag: tag}
	var pairs []uint64 // gram, place
	for i, d := range t.docs {
		s.contents = append(s.contents, d.Content)
		if d.full {
			s.full = append(s.full, uint16(i))
		}
		for _, g := range d.grams {
			pairs = append(pairs, uint64(g)<<16|uint64(i))
		}
	}
	w, err := newWriting(path, s)
	if err != nil {
		return nil, err
	}
	var list []uint16
	pairs = sortByGram(pairs)
	for i, p := range pairs {
		list = append(list, uint16(p))
		if i+1 == len(pairs) || pairs[i+1]>>16 != p>>16 {
			w.add(gram(p>>16), list)
			list = list[:0]
		}
	}
	return w.finish()
}

// sortByGram sorts pairs that are in order of place for each gram: by digits, as that
// keeps this order and is many times faster than comparing.
func sortByGram(pairs []uint64) []uint64 {
	const digit = 11
	other := make([]uint64, len(pairs))
	for shift := 16; shift < 48; shift += digit {
		var count [1 << digit]int
		for _, p := range pairs {
			count[p>>shift&(1<<digit-1)]++
		}
		at := 0
		for i, n := range count {
			count[i], at = at, at+n
		}
		for _, p := range pairs {
			d := p >> shift & (1<<digit - 1)
			other[count[d]] = p
			count[d]++
		}
		pairs, other = other, pairs
	}
	return pairs
}

// cursor runs through the grams of a segment in order.
type cursor struct {
	s     *segment
	f     *os.File
	to    []int // new place of each place, -1: it is dropped
	next  int   // block to read
	dict  reader
	posts reader // what is left of the postings of the block
	gram  gram
	desc  uint64
	done  bool
	err   error
}

func newCursor(s *segment) (*cursor, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	c := &cursor{s: s, f: f}
	c.advance()
	return c, c.err
}

// advance goes to the next gram.
func (c *cursor) advance() {
	if len(c.dict.b) == 0 && !c.dict.bad {
		if c.next == len(c.s.blocks) {
			c.done = true
			return
		}
		c.load()
	}
	if c.err == nil {
		c.gram += gram(c.dict.uint())
		c.desc = c.dict.uint()
		c.err = c.dict.err()
	}
	c.done = c.err != nil
}

// load reads a block with its postings, which end where those of the next one begin.
func (c *cursor) load() {
	k := c.s.blocks[c.next]
	end := c.s.blocks[0].dict
	if c.next+1 < len(c.s.blocks) {
		end = c.s.blocks[c.next+1].postings
	}
	if end < k.postings {
		c.err = errDamaged
		return
	}
	dict, posts := make([]byte, k.length), make([]byte, end-k.postings)
	if _, c.err = c.f.ReadAt(dict, int64(k.dict)); c.err == nil && len(posts) > 0 {
		_, c.err = c.f.ReadAt(posts, int64(k.postings))
	}
	c.next++
	c.gram, c.dict, c.posts = k.first, reader{b: dict}, reader{b: posts}
}

// take appends the new places of the present gram to list and goes on.
func (c *cursor) take(list []uint16) []uint16 {
	put := func(p int) {
		if to := c.to[p]; to >= 0 {
			list = append(list, uint16(to))
		}
	}
	if c.desc&1 != 0 {
		c.err = decodeOne(c.desc, len(c.s.contents), put)
	} else if b := c.posts.take(c.desc >> 1); c.posts.bad {
		c.err = errDamaged
	} else {
		c.err = decodePostings(b, len(c.s.contents), put)
	}
	if c.done = c.err != nil; !c.done {
		c.advance()
	}
	return list
}

// merge writes segments that follow each other as one, without the contents that are
// not alive.
func merge(path string, from []*segment, alive func(uint64) bool) (_ *segment, err error) {
	s := &segment{span: span{from[0].from, from[len(from)-1].to}, tag: from[0].tag}
	var cursors []*cursor
	defer func() {
		for _, c := range cursors {
			_ = c.f.Close()
		}
	}()
	for _, old := range from {
		c, err := newCursor(old)
		if c != nil {
			cursors = append(cursors, c)
		}
		if err != nil {
			return nil, err
		}
		c.to = s.adopt(old, alive)
	}
	w, err := newWriting(path, s)
	if err != nil {
		return nil, err
	}
	if err := mergeGrams(w, cursors); err != nil {
		w.abandon()
		return nil, err
	}
	return w.finish()
}

// adopt takes the contents of old that are alive and returns their new places.
func (s *segment) adopt(old *segment, alive func(uint64) bool) []int {
	to := make([]int, len(old.contents))
	for i, c := range old.contents {
		to[i] = -1
		if alive(c.Number) {
			to[i] = len(s.contents)
			s.contents = append(s.contents, c)
		}
	}
	for _, p := range old.full {
		if to[p] >= 0 {
			s.full = append(s.full, uint16(to[p]))
		}
	}
	return to
}

func mergeGrams(w *writing, cursors []*cursor) error {
	var list []uint16
	left := slices.Clone(cursors)
	for {
		left = slices.DeleteFunc(left, func(c *cursor) bool { return c.done && c.err == nil })
		if len(left) == 0 {
			return nil
		}
		least := left[0].gram
		for _, c := range left {
			if c.err != nil {
				return c.err
			}
			least = min(least, c.gram)
		}
		list = list[:0]
		for _, c := range left {
			if c.gram == least {
				list = c.take(list)
			}
		}
		if len(list) > 0 {
			w.add(least, list)
		}
	}
}
