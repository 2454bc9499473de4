package textindex

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"slices"
	"sort"
)

// A segment is an immutable file about the contents of a range of numbers:
//
//	postings    for each gram that several contents have: which
//	dictionary  blocks of grams in order, with where and how long their postings are
//	directory   the contents, and where the blocks are
//	trailer     trailerSize octets: length of the directory, tag, checksum of all before
//	            it, version, magic
//
// Contents are named by their place in the directory. Postings are a bitmap or a list
// of differences, whichever is shorter; a single content stands in the dictionary.

const (
	trailerSize = 20
	magic       = 0x70697a78
	// formatVersion is of the file, and of what a gram is.
	formatVersion = 1

	blockGrams  = 64
	maxContents = 1 << 14 // in one segment
)

var errDamaged = errors.New("textindex: damaged file")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Content is a content in an index.
type Content struct {
	Number uint64
	// Print tells this content from another one that had the number in another life of
	// the store, as after a restore.
	Print uint32
}

// span is the range of numbers that something knows about, both ends included.
type span struct{ from, to uint64 }

// segment is an open segment: its directory, without its file.
type segment struct {
	span
	path     string
	size     int64
	tag      uint32 // see Open
	contents []Content
	full     []uint16 // places of contents that every query finds
	blocks   []block
}

type block struct {
	first        gram
	dict, length uint32 // where it is in the dictionary; all offsets are from the start of the file
	postings     uint32
}

// writing is a segment being written. Grams come in order.
type writing struct {
	*segment
	f      *os.File
	w      *bufio.Writer
	crc    uint32
	off    int64
	dict   []byte
	start  int // of the last block in dict
	inLast int // grams in it
	last   gram
	buf    []byte
}

func newWriting(path string, s *segment) (*writing, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	s.path = path
	return &writing{segment: s, f: f, w: bufio.NewWriterSize(f, 64<<10)}, nil
}

// put writes octets; the writer keeps the first error.
func (w *writing) put(b []byte) {
	w.crc = crc32.Update(w.crc, castagnoli, b)
	w.off += int64(len(b))
	_, _ = w.w.Write(b)
}

// add adds a gram with the places of the contents that have it, in order.
func (w *writing) add(g gram, places []uint16) {
	if w.inLast == 0 || w.inLast == blockGrams {
		w.endBlock()
		w.blocks = append(w.blocks, block{first: g, postings: uint32(w.off)})
		w.last = g
	}
	w.inLast++
	w.dict = binary.AppendUvarint(w.dict, uint64(g-w.last))
	w.last = g
	if len(places) == 1 {
		w.dict = binary.AppendUvarint(w.dict, uint64(places[0])<<1|1)
		return
	}
	w.buf = appendPostings(w.buf[:0], places, len(w.contents))
	w.dict = binary.AppendUvarint(w.dict, uint64(len(w.buf))<<1)
	w.put(w.buf)
}

func (w *writing) endBlock() {
	if n := len(w.blocks); n > 0 {
		w.blocks[n-1].dict, w.blocks[n-1].length = uint32(w.start), uint32(len(w.dict)-w.start)
	}
	w.start, w.inLast = len(w.dict), 0
}

// appendPostings writes places. The form is told by the length: a bitmap has as many
// octets as it needs for n places, a list always fewer.
func appendPostings(b []byte, places []uint16, n int) []byte {
	last := uint16(0)
	for _, p := range places {
		b = binary.AppendUvarint(b, uint64(p-last))
		last = p
	}
	if size := bitmapSize(n); len(b) >= size {
		b = append(b[:0], make([]byte, size)...)
		for _, p := range places {
			b[p/8] |= 1 << (p % 8)
		}
	}
	return b
}

func bitmapSize(n int) int { return (n + 7) / 8 }

// finish writes the rest. What it returns has been written, not synced: a file that a
// power failure cuts or empties does not pass its checksum and is built again.
func (w *writing) finish() (*segment, error) {
	w.endBlock()
	if w.off+int64(len(w.dict)) > 1<<32-1 {
		w.abandon()
		return nil, errors.New("textindex: segment over 4 GiB")
	}
	for i := range w.blocks {
		w.blocks[i].dict += uint32(w.off)
	}
	w.put(w.dict)
	dir := w.directory()
	w.put(dir)
	var t []byte
	for _, n := range []uint32{uint32(len(dir)), w.tag, w.crc, formatVersion, magic} {
		t = binary.LittleEndian.AppendUint32(t, n)
	}
	w.put(t)
	w.size = w.off
	if err := errors.Join(w.w.Flush(), w.f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(w.path))
	}
	return w.segment, nil
}

func (w *writing) abandon() {
	_ = w.f.Close()
	_ = os.Remove(w.path)
}

func (s *segment) directory() []byte {
	b := binary.AppendUvarint(nil, s.from)
	b = binary.AppendUvarint(b, s.to)
	b = binary.AppendUvarint(b, uint64(len(s.contents)))
	last := s.from
	for _, c := range s.contents {
		b = binary.AppendUvarint(b, c.Number-last)
		b = binary.LittleEndian.AppendUint32(b, c.Print)
		last = c.Number
	}
	b = binary.AppendUvarint(b, uint64(len(s.full)))
	for _, p := range s.full {
		b = binary.AppendUvarint(b, uint64(p))
	}
	b = binary.AppendUvarint(b, uint64(len(s.blocks)))
	for _, k := range s.blocks {
		for _, n := range []uint32{k.first, k.dict, k.length, k.postings} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return b
}

// openSegment reads a whole file and checks it.
func openSegment(path string) (*segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s := &segment{path: path, size: info.Size()}
	if err := s.load(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (s *segment) load(f io.ReaderAt) error {
	if s.size < trailerSize {
		return errDamaged
	}
	t := make([]byte, trailerSize)
	if _, err := f.ReadAt(t, s.size-trailerSize); err != nil {
		return err
	}
	le := binary.LittleEndian
	if le.Uint32(t[12:]) != formatVersion || le.Uint32(t[16:]) != magic || int64(le.Uint32(t)) > s.size-trailerSize {
		return errDamaged
	}
	s.tag = le.Uint32(t[4:])
	h := crc32.New(castagnoli)
	if _, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, s.size-trailerSize), make([]byte, 64<<10)); err != nil {
		return err
	}
	if h.Sum32() != le.Uint32(t[8:]) {
		return errDamaged
	}
	dir := make([]byte, le.Uint32(t))
	if _, err := f.ReadAt(dir, s.size-trailerSize-int64(len(dir))); err != nil {
		return err
	}
	return s.read(dir)
}

func (s *segment) read(dir []byte) error {
	r := reader{b: dir}
	s.from, s.to = r.uint(), r.uint()
	last := s.from
	for n := r.count(maxContents); n > 0; n-- {
		last += r.uint()
		s.contents = append(s.contents, Content{last, r.uint32()})
	}
	for n := r.count(maxContents); n > 0; n-- {
		p := r.uint()
		r.bad = r.bad || p >= uint64(len(s.contents))
		s.full = append(s.full, uint16(p))
	}
	for n := r.count(len(dir)); n > 0; n-- {
		k := block{uint32(r.uint()), uint32(r.uint()), uint32(r.uint()), uint32(r.uint())}
		r.bad = r.bad || int64(k.dict)+int64(k.length) > s.size
		s.blocks = append(s.blocks, k)
	}
	if r.bad || len(r.b) > 0 || last > s.to {
		return errDamaged
	}
	s.contents, s.blocks = slices.Clip(s.contents), slices.Clip(s.blocks)
	return nil
}

// reader reads numbers; after a fault all are zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *reader) uint32() uint32 {
	if len(r.b) < 4 {
		r.b, r.bad = nil, true
		return 0
	}
	n := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return n
}

func (r *reader) count(limit int) int {
	n := r.uint()
	if n > uint64(limit) {
		r.b, r.bad = nil, true
		return 0
	}
	return int(n)
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// places is a set of places in a segment, a bit each.
type places []uint64

func newPlaces(n int) places { return make(places, (n+63)/64) }

func (p places) has(i int) bool { return p[i/64]&(1<<(i%64)) != 0 }
func (p places) set(i int)      { p[i/64] |= 1 << (i % 64) }

func (p places) count() (n int) {
	for _, w := range p {
		n += bits.OnesCount64(w)
	}
	return n
}

// find returns the places of the contents that may have all grams.
func (s *segment) find(f io.ReaderAt, grams []gram) (places, error) {
	var all places
	for _, g := range grams {
		got := newPlaces(len(s.contents))
		found, err := s.lookUp(f, g, got)
		if err != nil {
			return nil, err
		}
		switch {
		case !found:
			all = newPlaces(len(s.contents))
		case all == nil:
			all = got
		default:
			for i := range all {
				all[i] &= got[i]
			}
		}
		if !found || all.count() == 0 {
			break
		}
	}
	for _, p := range s.full {
		all.set(int(p))
	}
	return all, nil
}

// lookUp adds the places of a gram to got.
func (s *segment) lookUp(f io.ReaderAt, g gram, got places) (found bool, err error) {
	i := sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].first > g }) - 1
	if i < 0 {
		return false, nil
	}
	k := s.blocks[i]
	dict := make([]byte, k.length)
	if _, err := f.ReadAt(dict, int64(k.dict)); err != nil {
		return false, err
	}
	r := reader{b: dict}
	off := int64(k.postings)
	for at := k.first; len(r.b) > 0; {
		at += gram(r.uint())
		desc := r.uint()
		switch {
		case r.bad || at > g:
			return false, r.err()
		case at < g && desc&1 == 0:
			off += int64(desc >> 1)
		case at == g && desc&1 != 0:
			return true, decodeOne(desc, len(s.contents), got.set)
		case at == g:
			b := make([]byte, min(desc>>1, uint64(s.size)))
			if _, err := f.ReadAt(b, off); err != nil {
				return false, err
			}
			return true, decodePostings(b, len(s.contents), got.set)
		}
	}
	return false, r.err()
}

func (r *reader) err() error {
	if r.bad {
		return errDamaged
	}
	return nil
}

func decodeOne(desc uint64, n int, set func(int)) error {
	if desc>>1 >= uint64(n) {
		return errDamaged
	}
	set(int(desc >> 1))
	return nil
}

// decodePostings calls set for each place of n.
func decodePostings(b []byte, n int, set func(int)) error {
	if len(b) == bitmapSize(n) {
		for i, octet := range b {
			for ; octet != 0; octet &= octet - 1 {
				p := 8*i + bits.TrailingZeros8(octet)
				if p >= n {
					return errDamaged
				}
				set(p)
			}
		}
		return nil
	}
	r := reader{b: b}
	at := uint64(0)
	for len(r.b) > 0 {
		if at += r.uint(); at >= uint64(n) || r.bad {
			return errDamaged
		}
		set(int(at))
	}
	return nil
}
