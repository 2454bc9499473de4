package mail

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// invisible reports whether r shows nothing or changes the order of what is shown:
// format characters (bidi controls, zero-width ones, soft hyphen, tags), variation
// selectors, fillers and separators of lines and paragraphs.
func invisible(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return true
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	case r == 0x2800: // braille pattern blank
		return true
	}
	return false
}

// control reports whether r is a C0 or C1 control other than LF and TAB.
func control(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }

// visible drops invisible and control characters and turns every kind of blank but
// LF into a space.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t', unicode.Is(unicode.Zs, r):
			return ' '
		case control(r), invisible(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
}

// straight replaces typographic quotation marks by ASCII ones.
func straight(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '‘', '’', '‚', '‛', 'ʼ', '＇', '`', '´':
			return '\''
		case '“', '”', '„', '‟', '«', '»', '＂':
			return '"'
		}
		return r
	}, s)
}

// clip shortens s to at most n characters, with an ellipsis.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return strings.TrimRight(string(r[:n-1]), " ") + "…"
}

// oneLine makes s a single line of plain text, without what cannot be seen.
func oneLine(s string) string { return strings.Join(strings.Fields(visible(s)), " ") }
