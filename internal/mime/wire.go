package mime

import (
	"bytes"
	stdmime "mime"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Wire forms (RFC 9051 sections 4.3 and 9). Types, encodings and the names of
// parameters are written in upper case, values as they are in the message, decoded only
// as far as RFC 2231 and quoting go. What is not 7-bit becomes encoded-words in UTF-8
// (RFC 2047), in parameters too: a plain IMAP4rev1 client can show them.

const (
	// maxQuoted is how long a quoted string may be; a longer one is a literal.
	maxQuoted = 1000
	// missingMailbox and missingHost stand for what an address lacks: NIL would mean
	// the start or end of a group (RFC 9051 section 7.5.2). The host can never exist
	// (RFC 2606 section 2).
	missingMailbox = "missing-mailbox"
	missingHost    = "missing-domain.invalid"
)

var wireNil = []byte("NIL")

// appendString writes a quoted string, or a literal when it is long.
func appendString(dst []byte, v string) []byte {
	v = sevenBit(v)
	if len(v) > maxQuoted {
		dst = append(dst, '{')
		dst = strconv.AppendInt(dst, int64(len(v)), 10)
		dst = append(dst, "}\r\n"...)
		return append(dst, v...)
	}
	dst = append(dst, '"')
	for i := 0; i < len(v); i++ {
		if v[i] == '"' || v[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, v[i])
	}
	return append(dst, '"')
}

// sevenBit makes v octets 1 to 127 without CR and LF.
func sevenBit(v string) string {
	if !isASCII(v) || strings.Contains(v, "\x1b$") {
		v = encodeWords(DecodeHeader(v))
	}
	if strings.ContainsAny(v, "\r\n\x00") {
		v = unfold(v)
	}
	return v
}

// encodeWords writes v as encoded-words in UTF-8, the shorter way.
func encodeWords(v string) string {
	other := 0
	for i := 0; i < len(v); i++ {
		if v[i] >= 0x80 {
			other++
		}
	}
	if other*3 > len(v) {
		return stdmime.BEncoding.Encode("utf-8", v)
	}
	return stdmime.QEncoding.Encode("utf-8", v)
}

// appendNString writes NIL for nil.
func appendNString(dst []byte, v *string) []byte {
	if v == nil {
		return append(dst, wireNil...)
	}
	return appendString(dst, *v)
}

func quoteUpper(v string) []byte { return appendString(nil, strings.ToUpper(v)) }

// appendParams writes a parameter list; NIL if there is none (RFC 9051 body-fld-param).
func appendParams(dst []byte, ps params) []byte {
	if len(ps) == 0 {
		return append(dst, wireNil...)
	}
	for i, p := range ps {
		sep := byte(' ')
		if i == 0 {
			sep = '('
		}
		dst = append(dst, sep)
		dst = appendString(dst, strings.ToUpper(p.name))
		dst = append(dst, ' ')
		v := p.value
		if p.name == "boundary" {
			v = p.raw
		}
		dst = appendString(dst, v)
	}
	return append(dst, ')')
}

// appendLanguages writes Content-Language (RFC 3282): NIL, a string or a list.
func appendLanguages(dst []byte, v string) []byte {
	tags := strings.FieldsFunc(stripComments(v), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	switch len(tags) {
	case 0:
		return append(dst, wireNil...)
	case 1:
		return appendString(dst, tags[0])
	}
	for i, t := range tags[:min(len(tags), maxParams)] {
		sep := byte(' ')
		if i == 0 {
			sep = '('
		}
		dst = appendString(append(dst, sep), t)
	}
	return append(dst, ')')
}

// appendAddresses writes an address list of ENVELOPE; NIL if it is empty. Groups are
// written as RFC 9051 section 7.5.2 says: a start and an end with a NIL host.
func appendAddresses(dst []byte, items []addressItem) []byte {
	if len(items) == 0 {
		return append(dst, wireNil...)
	}
	dst = append(dst, '(')
	for _, it := range items {
		dst = appendAddress(dst, it)
	}
	return append(dst, ')')
}

func appendAddress(dst []byte, it addressItem) []byte {
	switch it.kind {
	case groupStart:
		dst = append(dst, "(NIL NIL "...)
		dst = appendString(dst, it.name)
		return append(dst, " NIL)"...)
	case groupEnd:
		return append(dst, "(NIL NIL NIL NIL)"...)
	}
	dst = append(dst, '(')
	dst = appendOptional(dst, it.name)
	dst = append(dst, ' ')
	dst = appendOptional(dst, it.route)
	dst = append(dst, ' ')
	local, host := it.local, it.host
	if local == "" {
		local = missingMailbox
	}
	if host == "" {
		host = missingHost
	}
	dst = appendString(dst, local)
	dst = append(dst, ' ')
	dst = appendString(dst, asciiHost(host))
	return append(dst, ')')
}

func appendOptional(dst []byte, v string) []byte {
	if v == "" {
		return append(dst, wireNil...)
	}
	return appendString(dst, v)
}

// asciiHost writes an internationalised domain name in its ASCII form (RFC 5891).
func asciiHost(host string) string {
	if isASCII(host) {
		return host
	}
	if a, err := idna.Punycode.ToASCII(toUTF8(host)); err == nil && isASCII(a) {
		return a
	}
	return host
}

// orNil returns NIL for what is missing.
func orNil(b []byte) []byte {
	if len(b) == 0 {
		return wireNil
	}
	return b
}

// joinSpace appends values with a space before each.
func joinSpace(buf *bytes.Buffer, values ...[]byte) {
	for _, v := range values {
		buf.WriteByte(' ')
		buf.Write(orNil(v))
	}
}
