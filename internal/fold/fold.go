// Package fold makes texts comparable as people compare them: without regard to case,
// width and composition, in all of Unicode. A search folds what it looks for and what
// it looks through, and then looks for a substring.
//
// Folding is compatibility composition (NFKC) around full case folding, with three
// things on top that mail needs:
//
//   - Any run of white space, line ends included, is one space: lines are broken
//     where the writer's program liked.
//   - Characters that nobody sees (soft hyphen, zero width space and joiners,
//     variation selectors, direction marks, ...) are left out.
//   - A dot above that stands on an i is left out: the capital I with a dot, as Turkish
//     writes it, is an i. The i without a dot is a letter of its own.
//
// So "ＦＵＬＬ" is "full", "ﾊﾟ" is "パ", "ß" is "ss", "ﬁ" is "fi" and "É" is "é", composed
// or not; "e" is not "é".
//
// The package is a leaf: it imports nothing of this module.
package fold

import (
	"slices"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Version changes with every change of what folding yields, so that whoever stores
// folded text knows that it is old.
const Version = 1

// Folder folds. It keeps memory between calls and is not safe for concurrent use.
type Folder struct {
	caser  cases.Caser
	normed []byte
	cased  []byte
}

// New returns a Folder.
func New() *Folder { return &Folder{caser: cases.Fold()} }

// String folds s.
func (f *Folder) String(s string) string { return string(f.Append(nil, s)) }

// lowered is what an ASCII octet becomes: white space a blank, a capital its small
// letter, all else itself.
var lowered = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		t[c] = byte(c)
		switch {
		case 'A' <= c && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		case '\t' <= c && c <= '\r':
			t[c] = ' '
		}
	}
	return t
}()

// Append appends s, folded, to dst. White space at the beginning of s is joined with
// that at the end of dst.
//
// Nearly all characters become one other each, by a table, whatever stands around them.
// The rest is done by the book, together with the character before it, which it may
// join, up to the next one of the table, which joins nothing before it.
func (f *Folder) Append(dst []byte, s string) []byte {
	last := 0 // where the last character that was appended begins, and how long dst was before it
	was := len(dst)
	dst = slices.Grow(dst, len(s))
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			dst, i, was = appendASCII(dst, s, i)
			last = i - 1
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if to := simple(r); to != 0 {
			last, was = i, len(dst)
			dst = appendRune(dst, to)
			i += size
			continue
		}
		for i += size; i < len(s) && s[i] >= utf8.RuneSelf; i += size {
			if r, size = utf8.DecodeRuneInString(s[i:]); simple(r) != 0 {
				break
			}
		}
		dst = f.appendHard(dst[:was], s[last:i])
		last, was = i, len(dst)
	}
	return dst
}

// appendASCII appends the ASCII characters from i on. It returns where they end, and
// how long dst was before the last one.
func appendASCII(dst []byte, s string, i int) (_ []byte, end, was int) {
	blank := len(dst) > 0 && dst[len(dst)-1] == ' '
	for i < len(s) && s[i] < utf8.RuneSelf {
		c := lowered[s[i]]
		i++
		was = len(dst)
		if c != ' ' {
			dst, blank = append(dst, c), false
		} else if !blank {
			dst, blank = append(dst, c), true
		}
	}
	return dst, i, was
}

// appendRune appends one folded character, and of white space one blank.
func appendRune(dst []byte, r rune) []byte {
	switch {
	case r == ' ':
		if len(dst) > 0 && dst[len(dst)-1] == ' ' {
			return dst
		}
		return append(dst, ' ')
	case r < utf8.RuneSelf:
		return append(dst, byte(r))
	}
	return utf8.AppendRune(dst, r)
}

// appendHard folds a piece by the book.
func (f *Folder) appendHard(dst []byte, s string) []byte {
	f.normed = norm.NFKC.AppendString(f.normed[:0], s)
	const growth = 3 // an octet folds to three at most
	if need := growth*len(f.normed) + utf8.UTFMax; cap(f.cased) < need {
		f.cased = make([]byte, need)
	}
	f.caser.Reset()
	n, _, err := f.caser.Transform(f.cased[:cap(f.cased)], f.normed, true)
	if err != nil {
		return append(dst, s...) // it cannot be: there is room
	}
	// The octets that are left out are done so in place, before marks find their letter.
	kept := f.cased[:0]
	for b := f.cased[:n]; len(b) > 0; {
		r, size := utf8.DecodeRune(b)
		if !unseen(r) && !(r == '\u0307' && len(kept) > 0 && kept[len(kept)-1] == 'i') {
			kept = append(kept, b[:size]...)
		}
		b = b[size:]
	}
	f.normed = norm.NFKC.Append(f.normed[:0], kept...)
	for b := f.normed; len(b) > 0; {
		r, size := utf8.DecodeRune(b)
		if unicode.IsSpace(r) {
			r = ' '
		}
		if !unseen(r) {
			dst = appendRune(dst, r)
		}
		b = b[size:]
	}
	return dst
}

// pages holds what appendHard makes of single characters, 256 a page, made when first
// needed.
var pages [256]atomic.Pointer[[256]uint16]

// simple returns what r becomes when that is one character, whatever stands around r;
// 0 when r is not that simple.
func simple(r rune) rune {
	if r > 0xffff {
		return 0
	}
	page := pages[r>>8].Load()
	if page == nil {
		page = makePage(r &^ 0xff)
		pages[r>>8].Store(page)
	}
	return rune(page[r&0xff])
}

func makePage(first rune) *[256]uint16 {
	var page [256]uint16
	f := New()
	for i := range page {
		s := string(first + rune(i))
		if first+rune(i) == utf8.RuneError || !norm.NFKC.PropertiesString(s).BoundaryBefore() {
			continue
		}
		folded := string(f.appendHard(nil, s))
		r, size := utf8.DecodeRuneInString(folded)
		if size == len(folded) && r <= 0xffff && r != utf8.RuneError && norm.NFKC.PropertiesString(folded).BoundaryBefore() {
			page[i] = uint16(r)
		}
	}
	return &page
}

// unseen tells the characters that take no room and mean nothing to a search.
func unseen(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x180e, r == 0xfeff:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	}
	return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0000 && r <= 0xe0fff
}

// Plain folds octets that are printable ASCII and white space into dst, which it
// empties first. plain is false when b holds anything else: what that means depends on
// how it is decoded.
func Plain(dst, b []byte) (folded []byte, plain bool) {
	for _, c := range b {
		if c >= 0x7f || c < ' ' && c != '\t' && c != '\r' && c != '\n' {
			return dst[:0], false
		}
	}
	dst = dst[:0]
	for _, c := range b {
		dst = appendRune(dst, rune(lowered[c]))
	}
	return dst, true
}
