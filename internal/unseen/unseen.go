// Package unseen tells which characters a person cannot see, so that what is shown to
// be approved is what will be done. It is the one table of them; what a caller does with
// such a character, drop it or write its number, is the caller's.
//
// The tables of the Unicode version that Go has decide. What that version does not
// assign is Hidden: a reader with an older font sees nothing, or a box like any other.
//
// All functions are pure. The package is a leaf: it imports nothing of this module.
package unseen

import "unicode"

// blank are characters that are drawn as nothing though Unicode counts them as letters
// or symbols, and has no property that says so.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // braille pattern blank
	},
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // Egyptian full and half blank
		{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, // Khitan filler
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // null notehead
	},
}

// Invisible reports whether r shows nothing or changes the order or look of what is
// beside it: format characters (bidi controls, zero-width ones, the soft hyphen, tags),
// variation selectors, fillers, private use, separators of lines and paragraphs.
// Control characters and blanks are not meant: they are told apart by position.
func Invisible(r rune) bool {
	if r < 0x80 {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, blank)
}

// Hidden reports whether r cannot stand as it is in a text that somebody approves:
// it is Invisible, a control character (LF and TAB too), a blank other than the space,
// a surrogate, or not assigned.
func Hidden(r rune) bool {
	if r < 0x80 {
		return r < ' ' || r == 0x7f
	}
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) || Invisible(r)
}
