package textindex

import (
	"slices"
	"unicode/utf8"
)

// A gram is a short piece of folded text by which contents are found, as a number:
// three characters of narrow script, or one or two of a wide one (Han, kana, Hangul),
// where words are that short. Other than ASCII is hashed. All grams of a text are in
// every text that holds it: only windows that lie wholly in the text are grams, and
// whether a window is one depends on what is in it alone.
type gram = uint32

// Zone tells texts of one content apart that are searched separately.
type Zone uint32

const (
	// Message is all of it.
	Message Zone = 0
	// Envelope is the fields that lists show: subject and addresses.
	Envelope Zone = 1 << 30
)

const hashed gram = 1 << 31

// eachGram calls fn for the grams of a folded text, repeatedly for some.
func eachGram[T string | []byte](text T, zone Zone, fn func(gram)) {
	var r [3]rune // the last characters, the newest at the end
	n := 0
	for i := 0; i < len(text); n++ {
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
		}
		i += size
		r[0], r[1], r[2] = r[1], r[2], c
		if wide(c) {
			fn(hash(zone, c, 0, 0))
			if n > 0 && wide(r[1]) {
				fn(hash(zone, r[1], c, 0))
			}
			continue
		}
		if n < 2 || r[1] == ' ' || wide(r[0]) || wide(r[1]) {
			continue // across words: nearly every text has it
		}
		if r[0]|r[1]|r[2] < utf8.RuneSelf && zone == Message {
			fn(gram(r[0]<<14 | r[1]<<7 | r[2]))
		} else {
			fn(hash(zone, r[0], r[1], r[2]))
		}
	}
}

// wide tells scripts with so many characters that one of them says much.
func wide(r rune) bool {
	return r >= 0x2e80 && (r <= 0xd7ff || r >= 0xf900 && r <= 0xfaff || r >= 0x20000 && r <= 0x3ffff)
}

func hash(zone Zone, a, b, c rune) gram {
	h := (uint64(a)<<42 | uint64(b)<<21 | uint64(c)) * 0x9e3779b97f4a7c15
	return hashed | gram(zone) | gram(h>>34)
}

// maxQuery is how many grams of a query are looked up. They are enough to tell.
const maxQuery = 48

// queryGrams returns the grams of a query, each once; none when it is too short.
func queryGrams(folded string, zone Zone) []gram {
	var out []gram
	eachGram(folded, zone, func(g gram) {
		if len(out) < maxQuery && !slices.Contains(out, g) {
			out = append(out, g)
		}
	})
	return out
}

// Grams collects the grams of one content. It is a quarter of a megabyte large; use it
// again with Reset. The zero value is empty.
type Grams struct {
	ascii [1 << 21 / 64]uint64 // which of those in list, by number
	list  []gram               // each ASCII one once, others perhaps repeatedly
	seen  [1 << 12]gram        // some of the others that are in list
	full  bool
}

// maxGrams is how many grams a content may have. One with more is not told apart: every
// query finds it.
const maxGrams = 1 << 18

// Reset makes g empty.
func (g *Grams) Reset() {
	for _, n := range g.list {
		if n&hashed == 0 {
			g.ascii[n/64] = 0
		}
	}
	clear(g.seen[:])
	g.list, g.full = g.list[:0], false
	if cap(g.list) > 1<<16 {
		g.list = nil
	}
}

// Add adds the grams of a folded text.
func (g *Grams) Add(folded []byte, zone Zone) {
	eachGram(folded, zone, g.add)
}

// AddAll makes the content one that every query finds.
func (g *Grams) AddAll() { g.full = true }

func (g *Grams) add(n gram) {
	switch {
	case g.full:
		return
	case n&hashed == 0:
		if g.ascii[n/64]&(1<<(n%64)) != 0 {
			return
		}
		g.ascii[n/64] |= 1 << (n % 64)
	default:
		slot := &g.seen[n%gram(len(g.seen))]
		if *slot == n {
			return
		}
		*slot = n
	}
	if len(g.list) == 2*maxGrams {
		g.compact()
	}
	g.list = append(g.list, n)
}

// compact leaves each gram once. It must find room.
func (g *Grams) compact() {
	slices.Sort(g.list)
	g.list = slices.Compact(g.list)
	if len(g.list) > maxGrams {
		g.full = true
	}
}

// sorted returns the grams in order, each once; full: there are too many.
func (g *Grams) sorted() (list []gram, full bool) {
	g.compact()
	if g.full {
		return nil, true
	}
	return slices.Clone(g.list), false
}
