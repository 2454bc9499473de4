package imapserver

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"pizza/internal/mime"
)

// folder makes strings comparable without regard to case and width, in all of
// Unicode. It is not safe for concurrent use.
type folder struct {
	caser   cases.Caser
	scratch []byte
	buf     bytes.Buffer
}

func newFolder() *folder { return &folder{caser: cases.Fold()} }

func (f *folder) fold(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return norm.NFKC.String(f.caser.String(norm.NFKC.String(s)))
		}
	}
	return strings.ToLower(s)
}

func (f *folder) contains(s, folded string) bool {
	return folded == "" || strings.Contains(f.fold(s), folded)
}

// Most messages do not hold the text that is searched for, and most of them are plain
// ASCII, which decoding would leave as it is. What follows tells these at the cost of
// one pass. It only ever says no; all else is decoded and looked at properly.

// lowered is what a plain octet becomes without regard to case; 0: it is not plain, so
// that decoding may make something else of it.
var lowered = func() (t [256]byte) {
	for _, c := range "\t\r\n" {
		t[c] = byte(c)
	}
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = c
		if 'A' <= c && c <= 'Z' {
			t[c] = c + 'a' - 'A'
		}
	}
	return t
}()

// lacks reports that b is plain, and does not hold a folded text. In both of them are
// no octets that folding or unfolding of lines could change.
func (f *folder) lacks(b []byte, folded string) bool {
	for i := 0; i < len(folded); i++ {
		if c := folded[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	f.scratch = append(f.scratch[:0], b...)
	for i, c := range f.scratch {
		if lowered[c] == 0 {
			return false
		}
		f.scratch[i] = lowered[c]
	}
	return folded != "" && !bytes.Contains(f.scratch, []byte(folded))
}

// headerLacks is lacks for a raw header: it holds no encoded-words either, and the
// text no colon, which may stand behind blanks.
func (f *folder) headerLacks(raw []byte, folded string) bool {
	return !strings.Contains(folded, ":") && !bytes.Contains(raw, []byte("=?")) && f.lacks(raw, folded)
}

// partLacks is lacks for a text part whose charset has ASCII in it.
func (f *folder) partLacks(r io.ReaderAt, p *mime.Part, folded string) (bool, error) {
	if p.Subtype == "html" || p.Params["delsp"] != "" || p.Body.Len() > maxText || !asciiBased(p.Params["charset"]) {
		return false, nil
	}
	f.buf.Reset()
	_, err := f.buf.ReadFrom(mime.DecodedBody(r, p))
	return f.lacks(f.buf.Bytes(), folded), err
}

// asciiBased reports charsets in which plain octets mean what they mean in ASCII.
func asciiBased(charset string) bool {
	c := strings.ToLower(charset)
	switch c {
	case "", "us-ascii", "ascii", "utf-8", "utf8":
		return true
	}
	return strings.HasPrefix(c, "iso-8859-") || strings.HasPrefix(c, "windows-125")
}
