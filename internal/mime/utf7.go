package mime

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// utf7Encoding decodes UTF-7 (RFC 2152). It does not encode.
type utf7Encoding struct{}

// NewDecoder implements encoding.Encoding.
func (utf7Encoding) NewDecoder() *encoding.Decoder {
	return &encoding.Decoder{Transformer: &utf7Decoder{}}
}

// NewEncoder implements encoding.Encoding; nothing of ours is written in UTF-7.
func (utf7Encoding) NewEncoder() *encoding.Encoder { return encoding.Nop.NewEncoder() }

// utf7Decoder keeps the state of a shifted sequence between calls.
type utf7Decoder struct {
	shifted bool
	fresh   bool   // nothing has followed the '+'
	bits    uint32 // undecoded bits
	n       uint   // how many
	high    uint16 // a high surrogate that waits for its other half
}

// Reset implements transform.Transformer.
func (d *utf7Decoder) Reset() { *d = utf7Decoder{} }

// Transform implements transform.Transformer.
func (d *utf7Decoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		if len(dst)-nDst < 2*utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += d.octet(dst[nDst:], src[nSrc])
		nSrc++
	}
	if atEOF && d.high != 0 {
		if len(dst)-nDst < utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += d.lone(dst[nDst:])
	}
	return nDst, nSrc, nil
}

func (d *utf7Decoder) octet(dst []byte, c byte) int {
	if !d.shifted {
		switch {
		case c == '+':
			*d = utf7Decoder{shifted: true, fresh: true}
			return 0
		case c >= 0x80:
			return utf8.EncodeRune(dst, utf8.RuneError)
		}
		dst[0] = c
		return 1
	}
	if v := strings.IndexByte(base64Alphabet, c); v >= 0 {
		d.fresh = false
		d.bits = d.bits<<6 | uint32(v)
		d.n += 6
		if d.n < 16 {
			return 0
		}
		d.n -= 16
		return d.unit(dst, uint16(d.bits>>d.n))
	}
	n := d.lone(dst)
	fresh := d.fresh
	*d = utf7Decoder{}
	switch {
	case c == '-' && fresh:
		dst[n] = '+'
		return n + 1
	case c == '-':
		return n
	}
	return n + d.octet(dst[n:], c)
}

// unit takes one UTF-16 code unit.
func (d *utf7Decoder) unit(dst []byte, u uint16) int {
	r := rune(u)
	if d.high != 0 {
		pair := utf16.DecodeRune(rune(d.high), r)
		if pair != utf8.RuneError {
			d.high = 0
			return utf8.EncodeRune(dst, pair)
		}
		n := d.lone(dst)
		return n + d.unit(dst[n:], u)
	}
	if u >= 0xd800 && u < 0xdc00 {
		d.high = u
		return 0
	}
	return utf8.EncodeRune(dst, r) // a lone low surrogate becomes U+FFFD
}

// lone writes U+FFFD for a high surrogate without its other half.
func (d *utf7Decoder) lone(dst []byte) int {
	if d.high == 0 {
		return 0
	}
	d.high = 0
	return utf8.EncodeRune(dst, utf8.RuneError)
}
