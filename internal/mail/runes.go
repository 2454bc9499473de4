package mail

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"pizza/internal/unseen"
)

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
		case control(r), unseen.Invisible(r), r == utf8.RuneError:
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
