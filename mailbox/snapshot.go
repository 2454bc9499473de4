package mailbox

import (
	"iter"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/emersion/go-imap/v2"
)

// Snapshot is the entries of one mailbox at one moment, in UID order. It is
// immutable. Successive snapshots share the chunks that did not change, so that a
// difference costs what changed, not the size of the mailbox.
type Snapshot struct {
	Mailbox Mailbox // the row at that moment
	chunks  []chunk
}

// chunkSize is how many entries a chunk normally holds at most.
const chunkSize = 256

// chunk is the first n entries of a block. Two chunks with equal values hold equal
// entries.
type chunk struct {
	*block
	n     int
	start int // index of its first entry in the snapshot
}

// block is the memory of a chunk. Entries below used are never written again; a
// successor of a snapshot may append behind them, so that an append copies
// nothing.
type block struct {
	entries []Entry
	used    atomic.Int64
	flags   atomic.Pointer[flagIndex] // nil until somebody asks
}

// Change is one difference between two snapshots. The entries are shared; do not
// change them.
type Change struct {
	UID imap.UID
	Old *Entry // nil: added
	New *Entry // nil: gone
}

// NewSnapshot returns a snapshot of entries, which are in UID order. It keeps no
// reference to them.
func NewSnapshot(row Mailbox, entries []Entry) *Snapshot {
	s := &Snapshot{Mailbox: row}
	for part := range slices.Chunk(entries, chunkSize) {
		s.add(newChunk(part))
	}
	return s
}

func newChunk(entries []Entry) chunk {
	room := len(entries)
	if room < chunkSize { // the chunk that grows
		room = min(chunkSize, max(8, 2*room))
	}
	b := &block{entries: make([]Entry, room)}
	copy(b.entries, entries)
	b.used.Store(int64(len(entries)))
	return chunk{block: b, n: len(entries)}
}

func (c chunk) list() []Entry  { return c.entries[:c.n] }
func (c chunk) last() imap.UID { return c.entries[c.n-1].UID }

// add puts c at the end, if it holds anything.
func (s *Snapshot) add(c chunk) {
	if c.n == 0 {
		return
	}
	c.start = 0
	if k := len(s.chunks); k > 0 {
		c.start = s.chunks[k-1].start + s.chunks[k-1].n
	}
	s.chunks = append(s.chunks, c)
}

// Len returns the number of entries.
func (s *Snapshot) Len() int {
	if len(s.chunks) == 0 {
		return 0
	}
	c := s.chunks[len(s.chunks)-1]
	return c.start + c.n
}

// UIDNext returns the next UID the mailbox will assign.
func (s *Snapshot) UIDNext() imap.UID { return s.Mailbox.UIDNext }

// At returns the entry with index i, which is from 0 to Len()-1.
func (s *Snapshot) At(i int) Entry {
	c := s.chunks[s.chunkOf(i)]
	return c.list()[i-c.start]
}

// chunkOf returns the index of the chunk that holds entry i.
func (s *Snapshot) chunkOf(i int) int {
	return sort.Search(len(s.chunks), func(k int) bool { return s.chunks[k].start > i }) - 1
}

// Search returns the first index whose UID is uid or greater; Len() if there is
// none.
func (s *Snapshot) Search(uid imap.UID) int {
	k := sort.Search(len(s.chunks), func(k int) bool { return s.chunks[k].last() >= uid })
	if k == len(s.chunks) {
		return s.Len()
	}
	list := s.chunks[k].list()
	return s.chunks[k].start + sort.Search(len(list), func(i int) bool { return list[i].UID >= uid })
}

// Find returns the entry with this UID.
func (s *Snapshot) Find(uid imap.UID) (Entry, bool) {
	i := s.Search(uid)
	if i == s.Len() {
		return Entry{}, false
	}
	e := s.At(i)
	return e, e.UID == uid
}

// All yields every index and entry.
func (s *Snapshot) All() iter.Seq2[int, Entry] { return s.Range(0, s.Len()) }

// Range yields the entries with index from to to-1; what lies outside the
// snapshot is passed over.
func (s *Snapshot) Range(from, to int) iter.Seq2[int, Entry] {
	from, to = max(from, 0), min(to, s.Len())
	return func(yield func(int, Entry) bool) {
		if from >= to {
			return
		}
		for _, c := range s.chunks[s.chunkOf(from):] {
			list := c.list()
			for i := max(from, c.start); i < min(to, c.start+c.n); i++ {
				if !yield(i, list[i-c.start]) {
					return
				}
			}
			if c.start+c.n >= to {
				return
			}
		}
	}
}

// With returns the successor of s after edits, which are in UID order, one a UID:
// New replaces or adds the entry, a nil New removes it; Old is not read. It costs
// what changes. It is for a Store.
func (s *Snapshot) With(row Mailbox, edits []Change) *Snapshot {
	next := &Snapshot{Mailbox: row, chunks: make([]chunk, 0, len(s.chunks)+1+len(edits)/chunkSize)}
	for _, c := range s.chunks {
		n := sort.Search(len(edits), func(i int) bool { return edits[i].UID > c.last() })
		if n == 0 {
			next.add(c)
			continue
		}
		next.absorb(c.with(edits[:n]))
		edits = edits[n:]
	}
	next.extend(edits)
	return next
}

// with returns the entries of c after edits.
func (c chunk) with(edits []Change) []Entry {
	out := make([]Entry, 0, c.n+len(edits))
	for _, e := range c.list() {
		for len(edits) > 0 && edits[0].UID < e.UID {
			out = appendNew(out, edits[0])
			edits = edits[1:]
		}
		if len(edits) > 0 && edits[0].UID == e.UID {
			out = appendNew(out, edits[0])
			edits = edits[1:]
			continue
		}
		out = append(out, e)
	}
	return out
}

func appendNew(out []Entry, c Change) []Entry {
	if c.New == nil {
		return out
	}
	return append(out, *c.New)
}

// absorb adds changed entries as a chunk, joined with the one before when both
// are small: a mailbox that is emptied bit by bit must not end as many crumbs.
func (s *Snapshot) absorb(list []Entry) {
	if k := len(s.chunks) - 1; k >= 0 && len(list) > 0 && s.chunks[k].n+len(list) <= chunkSize/2 {
		list = slices.Concat(s.chunks[k].list(), list)
		s.chunks = s.chunks[:k]
	}
	s.add(newChunk(list))
}

// extend adds the entries of edits, all of them behind the last one.
func (s *Snapshot) extend(edits []Change) {
	var list []Entry
	for _, e := range edits {
		list = appendNew(list, e)
	}
	if k := len(s.chunks) - 1; k >= 0 && len(list) > 0 && s.chunks[k].n < chunkSize {
		n := min(len(list), chunkSize-s.chunks[k].n)
		s.chunks[k] = s.chunks[k].append(list[:n])
		list = list[n:]
	}
	for part := range slices.Chunk(list, chunkSize) {
		s.add(newChunk(part))
	}
}

// append returns c with list behind it: in place where there is room and nobody
// else has taken it, else in a copy.
func (c chunk) append(list []Entry) chunk {
	n := c.n + len(list)
	if n <= len(c.entries) && c.used.CompareAndSwap(int64(c.n), int64(n)) {
		copy(c.entries[c.n:n], list)
		return chunk{block: c.block, n: n, start: c.start}
	}
	grown := newChunk(slices.Concat(c.list(), list))
	grown.start = c.start
	return grown
}

// Diff returns what changed from old to new, two snapshots of one mailbox in any
// order and however far apart, in UID order. It costs what changed, where they
// share history. Entries are compared as a whole: a changed ModSeq is a change.
func Diff(old, new *Snapshot) []Change {
	var out []Change
	a, b := cursor{chunks: old.chunks}, cursor{chunks: new.chunks}
	for !a.end() && !b.end() {
		if n := shared(a, b); n > 0 {
			a.skip(n)
			b.skip(n)
			continue
		}
		x, y := a.entry(), b.entry()
		switch {
		case x.UID < y.UID:
			out = append(out, Change{UID: x.UID, Old: x})
			a.skip(1)
		case x.UID > y.UID:
			out = append(out, Change{UID: y.UID, New: y})
			b.skip(1)
		default:
			if *x != *y {
				out = append(out, Change{UID: x.UID, Old: x, New: y})
			}
			a.skip(1)
			b.skip(1)
		}
	}
	for ; !a.end(); a.skip(1) {
		out = append(out, Change{UID: a.entry().UID, Old: a.entry()})
	}
	for ; !b.end(); b.skip(1) {
		out = append(out, Change{UID: b.entry().UID, New: b.entry()})
	}
	return out
}

// cursor walks a snapshot: chunks[0] is the present chunk, i the entry in it.
type cursor struct {
	chunks []chunk
	i      int
}

func (c *cursor) end() bool     { return len(c.chunks) == 0 }
func (c *cursor) entry() *Entry { return &c.chunks[0].entries[c.i] }

// skip goes on by n entries, at most to the end of the chunk.
func (c *cursor) skip(n int) {
	if c.i += n; c.i >= c.chunks[0].n {
		c.chunks, c.i = c.chunks[1:], 0
	}
}

// shared returns how many entries from here on are the same memory.
func shared(a, b cursor) int {
	if a.chunks[0].block != b.chunks[0].block || a.i != b.i {
		return 0
	}
	return min(a.chunks[0].n, b.chunks[0].n) - a.i
}
