package mime

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// charsetAlias are names that mail uses and the indexes of x/text do not know, or read
// in another way than mail does. Keys are lower case without '-', '_' and ' '.
var charsetAlias = map[string]encoding.Encoding{
	"ansi":                charmap.Windows1252,
	"latin1":              charmap.Windows1252,
	"cp932":               japanese.ShiftJIS,
	"ms932":               japanese.ShiftJIS,
	"windows932":          japanese.ShiftJIS,
	"xsjis":               japanese.ShiftJIS,
	"sjis":                japanese.ShiftJIS,
	"xeucjp":              japanese.EUCJP,
	"cp50220":             japanese.ISO2022JP,
	"cp50221":             japanese.ISO2022JP,
	"cp50222":             japanese.ISO2022JP,
	"iso2022jpms":         japanese.ISO2022JP,
	"iso2022jp1":          japanese.ISO2022JP,
	"iso2022jp2":          japanese.ISO2022JP,
	"cp936":               simplifiedchinese.GBK,
	"ms936":               simplifiedchinese.GBK,
	"windows936":          simplifiedchinese.GBK,
	"gb2312":              simplifiedchinese.GBK,
	"xgb2312":             simplifiedchinese.GBK,
	"xgbk":                simplifiedchinese.GBK,
	"euccn":               simplifiedchinese.GBK,
	"cp54936":             simplifiedchinese.GB18030,
	"hzgb2312":            simplifiedchinese.HZGB2312,
	"hz":                  simplifiedchinese.HZGB2312,
	"cp949":               korean.EUCKR,
	"ms949":               korean.EUCKR,
	"uhc":                 korean.EUCKR,
	"ksc5601":             korean.EUCKR,
	"ksc56011987":         korean.EUCKR,
	"ksc56011989":         korean.EUCKR,
	"5601":                korean.EUCKR,
	"xeuckr":              korean.EUCKR,
	"cp950":               traditionalchinese.Big5,
	"ms950":               traditionalchinese.Big5,
	"xbig5":               traditionalchinese.Big5,
	"big5hkscs":           traditionalchinese.Big5,
	"cp10000":             charmap.Macintosh,
	"xmacroman":           charmap.Macintosh,
	"macroman":            charmap.Macintosh,
	"cp20866":             charmap.KOI8R,
	"cp21866":             charmap.KOI8U,
	"cp28591":             charmap.Windows1252,
	"iso885911":           charmap.Windows874,
	"tis620":              charmap.Windows874,
	"cp874":               charmap.Windows874,
	"utf16":               unicode.UTF16(unicode.BigEndian, unicode.UseBOM), // RFC 2781 section 4.3
	"utf16be":             unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	"utf16le":             unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),
	"ucs2":                unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
	"utf32":               utf32.UTF32(utf32.BigEndian, utf32.UseBOM),
	"utf32be":             utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM),
	"utf32le":             utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM),
	"utf7":                utf7Encoding{},
	"unicode11utf7":       utf7Encoding{},
	"csunicode11utf7":     utf7Encoding{},
	"xunicode20utf7":      utf7Encoding{},
	"unicode20utf7":       utf7Encoding{},
	"cp65000":             utf7Encoding{},
	"xuserdefined":        charmap.Windows1252,
	"unknown8bit":         nil,
	"xunknown":            nil,
	"unknown":             nil,
	"default":             nil,
	"8bit":                nil,
	"binary":              nil,
	"none":                nil,
	"ascii":               nil,
	"usascii":             nil,
	"ansix3.41968":        nil,
	"iso646us":            nil,
	"utf8":                encoding.Nop,
	"utf8mb4":             encoding.Nop,
	"xutf8":               encoding.Nop,
	"unicode11utf8":       encoding.Nop,
	"unicode20utf8":       encoding.Nop,
	"cp65001":             encoding.Nop,
	"iso10646utf8":        encoding.Nop,
	"unicode":             encoding.Nop,
	"iso885915windows":    charmap.ISO8859_15,
	"iso88598i":           charmap.ISO8859_8,
	"iso88598e":           charmap.ISO8859_8,
	"windows1252http":     charmap.Windows1252,
	"iso88591windows3.11": charmap.Windows1252,
}

// squeezer takes out what spellings of a charset differ in.
var squeezer = strings.NewReplacer("-", "", "_", "", " ", "")

// findCharset returns the encoding named name; encoding.Nop means UTF-8, and nil that
// the name says nothing (it is missing, means ASCII or "unknown").
func findCharset(name string) (enc encoding.Encoding, known bool) {
	name = strings.ToLower(strings.Trim(name, " \t\"'<>"))
	if name == "" {
		return nil, true
	}
	if len(name) > 64 {
		return nil, false
	}
	squeezed := squeezer.Replace(name)
	if enc, ok := charsetAlias[squeezed]; ok {
		return enc, true
	}
	for _, try := range charsetNames(name, squeezed) {
		if enc, err := htmlindex.Get(try); err == nil && enc != encoding.Replacement {
			return enc, true
		}
		if enc, err := ianaindex.MIME.Encoding(try); err == nil && enc != nil {
			return enc, true
		}
	}
	return nil, false
}

// charsetNames are the ways to write name that the indexes may know.
func charsetNames(name, squeezed string) []string {
	names := []string{name, strings.ReplaceAll(name, "_", "-"), strings.TrimPrefix(name, "x-")}
	for _, prefix := range []string{"cp", "win", "windows", "xcp"} {
		if n, ok := strings.CutPrefix(squeezed, prefix); ok {
			names = append(names, "windows-"+n, "ibm"+n)
		}
	}
	if n, ok := strings.CutPrefix(squeezed, "iso8859"); ok {
		names = append(names, "iso-8859-"+n)
	}
	return names
}

// decodeCharset turns b into valid UTF-8. Without a charset, or with one that does not
// hold, it is UTF-8 where that fits, ISO-2022-JP where its escapes are, otherwise
// windows-1252. Octets that mean nothing become U+FFFD.
func decodeCharset(b []byte, charset string) string {
	enc, known := findCharset(charset)
	switch {
	case known && enc == encoding.Nop:
		return strings.ToValidUTF8(string(b), "\ufffd")
	case enc == nil:
		return guess(b)
	}
	return convert(b, enc)
}

func convert(b []byte, enc encoding.Encoding) string {
	out, err := enc.NewDecoder().Bytes(b)
	if err != nil {
		return guess(b)
	}
	return strings.ToValidUTF8(string(out), "\ufffd")
}

// guess decodes text that does not say what it is.
func guess(b []byte) string {
	if bytes.Contains(b, []byte("\x1b$B")) || bytes.Contains(b, []byte("\x1b$@")) {
		if out, err := japanese.ISO2022JP.NewDecoder().Bytes(b); err == nil {
			return strings.ToValidUTF8(string(out), "\ufffd")
		}
	}
	if utf8.Valid(b) {
		return string(b)
	}
	out, err := charmap.Windows1252.NewDecoder().Bytes(b)
	if err != nil {
		return strings.ToValidUTF8(string(b), "\ufffd")
	}
	return string(out)
}

// toUTF8 makes raw header text valid UTF-8.
func toUTF8(v string) string {
	if isASCII(v) && !strings.Contains(v, "\x1b") {
		return v
	}
	return guess([]byte(v))
}

func isASCII(v string) bool {
	for i := 0; i < len(v); i++ {
		if v[i] >= 0x80 {
			return false
		}
	}
	return true
}
