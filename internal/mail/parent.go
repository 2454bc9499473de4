package mail

import (
	"hash/maphash"
	"strings"
	"unicode"
)

const (
	shingle      = 3       // words that begin a match
	maxPositions = 16      // places of a shingle that are tried
	maxWords     = 200_000 // of a parent
)

// parentIndex finds lines of a reply in the mail it answers, whatever the wrapping,
// the quote marks, the markup and the letter case. Looking up a line costs its
// length times maxPositions at most.
type parentIndex struct {
	words []string
	at    map[uint64][]int // shingle -> where it begins
	seed  maphash.Seed
}

func newParentIndex(parent string) *parentIndex {
	p := &parentIndex{words: wordsOf(parent), at: map[uint64][]int{}, seed: maphash.MakeSeed()}
	p.words = p.words[:min(len(p.words), maxWords)]
	for i := range max(0, len(p.words)-shingle+1) {
		h := p.hash(p.words[i : i+shingle])
		if len(p.at[h]) < maxPositions {
			p.at[h] = append(p.at[h], i)
		}
	}
	return p
}

// wordsOf returns the runs of letters and digits in lower case.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(visible(s)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

func (p *parentIndex) hash(words []string) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, w := range words {
		h.WriteString(w)
		h.WriteByte(0)
	}
	return h.Sum64()
}

func (p *parentIndex) known() bool { return len(p.words) > 0 }

// hasAt reports whether words stand at position i.
func (p *parentIndex) hasAt(i int, words []string) bool {
	if i < 0 || i+len(words) > len(p.words) {
		return false
	}
	for k, w := range words {
		if p.words[i+k] != w {
			return false
		}
	}
	return true
}

// find returns the position after words: where they go on after the position prev,
// else anywhere, for which there must be a shingle of them. -1 if nowhere.
func (p *parentIndex) find(words []string, prev int) (end int) {
	if len(words) == 0 {
		return -1
	}
	if prev >= 0 && p.hasAt(prev, words) {
		return prev + len(words)
	}
	if len(words) < shingle {
		return -1
	}
	for _, i := range p.at[p.hash(words[:shingle])] {
		if p.hasAt(i, words) {
			return i + len(words)
		}
	}
	return -1
}

// alike reports whether most of words are the parent's, in its order: a line that a
// program changed while quoting it, say by writing a link's target beside it.
func (p *parentIndex) alike(words []string) bool {
	n := len(words) - shingle + 1
	if n < 3 {
		return false
	}
	hits := 0
	for i := range n {
		if len(p.at[p.hash(words[i:i+shingle])]) > 0 {
			hits++
		}
	}
	return hits*10 >= n*7
}
