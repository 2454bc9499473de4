package unseen

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
)

// runs writes a set of runes as ranges.
func runs(in func(rune) bool) string {
	var out []string
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !in(r) {
			continue
		}
		first := r
		for r < unicode.MaxRune && in(r+1) {
			r++
		}
		if first == r {
			out = append(out, fmt.Sprintf("%04X", r))
		} else {
			out = append(out, fmt.Sprintf("%04X-%04X", first, r))
		}
	}
	return strings.Join(out, " ")
}

// Of what Unicode calls a letter, mark, number, sign or symbol exactly these are hidden.
func TestHiddenAmongTheSeen(t *testing.T) {
	t.Parallel()
	got := runs(func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) && Hidden(r)
	})
	const want = "034F 115F-1160 17B4-17B5 180B-180D 180F 2800 3164 FE00-FE0F FFA0 13441-13442 16FE4 1D159 E0100-E01EF"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Of everything else only the space is shown.
func TestEverythingElseIsHidden(t *testing.T) {
	t.Parallel()
	got := runs(func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) && !Hidden(r)
	})
	if got != "0020" {
		t.Errorf("shown: %s", got)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		runes             []rune
		hidden, invisible bool
	}{
		{"ASCII", []rune("aZ09 ~!\\"), false, false},
		{"letters, marks, emoji", []rune("éß\u0301語ش😀€\uFFFD\uFFFC"), false, false},
		{"C0, DEL, C1", []rune{0, '\t', '\n', '\r', 0x1b, 0x7f, 0x80, 0x85, 0x9f}, true, false},
		{"blanks", []rune{0xa0, 0x1680, 0x2000, 0x200a, 0x202f, 0x205f, 0x3000}, true, false},
		{"line separators", []rune{0x2028, 0x2029}, true, true},
		{"bidi", []rune{0x061c, 0x200e, 0x200f, 0x202a, 0x202e, 0x2066, 0x2069}, true, true},
		{"zero width", []rune{0xad, 0x180e, 0x200b, 0x200c, 0x200d, 0x2060, 0x2064, 0xfeff}, true, true},
		{"fillers", []rune{0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0, 0x13441, 0x16fe4, 0x1d159}, true, true},
		{"variation selectors", []rune{0x180b, 0x180f, 0xfe00, 0xfe0f, 0xe0100, 0xe01ef}, true, true},
		{"tags", []rune{0xe0001, 0xe0020, 0xe007f}, true, true},
		{"reserved to be ignored", []rune{0x2065, 0xfff0, 0xe0000, 0xe0fff}, true, true},
		{"private use", []rune{0xe000, 0xf8ff, 0xf0000, 0x10fffd}, true, true},
		{"surrogates", []rune{0xd800, 0xdfff}, true, false},
		{"not assigned, not characters", []rune{0x0378, 0xfdd0, 0xffff, 0x10ffff}, true, false},
	} {
		for _, r := range tt.runes {
			if Hidden(r) != tt.hidden || Invisible(r) != tt.invisible {
				t.Errorf("%s: %U: hidden %v, invisible %v", tt.name, r, Hidden(r), Invisible(r))
			}
		}
	}
}

func TestInvisibleIsHidden(t *testing.T) {
	t.Parallel()
	if got := runs(func(r rune) bool { return Invisible(r) && !Hidden(r) }); got != "" {
		t.Errorf("invisible and not hidden: %s", got)
	}
	if got := runs(func(r rune) bool { return Invisible(r) && unicode.In(r, unicode.Cc, unicode.Zs, unicode.Cs) }); got != "" {
		t.Errorf("controls and blanks are not meant: %s", got)
	}
}
