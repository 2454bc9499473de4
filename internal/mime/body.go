package mime

import (
	"bytes"
	"io"
	"strings"
)

// DecodedBody returns the body of p with its transfer encoding removed, leniently: junk
// in base64 is passed over, a broken escape of quoted-printable stays as it is, a cut
// end yields what is whole. Errors are those of r. For a multipart or a described
// message/rfc822 part these are the bytes as they are.
func DecodedBody(r io.ReaderAt, p *Part) io.Reader {
	raw := io.NewSectionReader(r, p.Body.Start, p.Body.Len())
	if p.Type == "multipart" {
		return raw
	}
	step := int(min(max(p.Body.Len(), 64), 16<<10))
	switch p.Encoding {
	case "base64":
		return &decodingReader{src: raw, dec: new(base64State), step: step}
	case "quoted-printable":
		return &decodingReader{src: raw, dec: new(qpState), step: step}
	}
	return raw
}

// bodyDecoder undoes a transfer encoding piece by piece.
type bodyDecoder interface {
	append(dst, src []byte) []byte
	flush(dst []byte) []byte
}

// decodingReader reads src through dec.
type decodingReader struct {
	src  io.Reader
	dec  bodyDecoder
	step int // octets to read at a time
	in   []byte
	out  []byte // decoded, unread from pos on
	pos  int
	done error
}

// Read implements io.Reader.
func (d *decodingReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for d.pos == len(d.out) {
		if d.done != nil {
			return 0, d.done
		}
		if d.in == nil {
			d.in, d.out = make([]byte, d.step), make([]byte, 0, d.step)
		}
		n, err := d.src.Read(d.in)
		d.out, d.pos = d.dec.append(d.out[:0], d.in[:n]), 0
		if err == io.EOF {
			d.out = d.dec.flush(d.out)
		}
		d.done = err
	}
	n := copy(b, d.out[d.pos:])
	d.pos += n
	return n, nil
}

// qpState decodes quoted-printable (RFC 2045 section 6.7). It keeps the end of a piece
// that may be an escape, or space that may end a line.
type qpState struct {
	held []byte
}

// maxHeldSpace is how much space before a line end is held back; more is text.
const maxHeldSpace = 1 << 10

func (q *qpState) append(dst, src []byte) []byte {
	if len(q.held) > 0 {
		src = append(q.held, src...)
		q.held = nil
	}
	for i := 0; i < len(src); {
		switch c := src[i]; c {
		case '=':
			n, whole := q.escape(src[i:], &dst)
			if !whole {
				q.held = bytes.Clone(src[i:])
				return dst
			}
			i += n
		case ' ', '\t':
			j := i
			for j < len(src) && isWSP(src[j]) {
				j++
			}
			if j == len(src) && j-i <= maxHeldSpace || j+1 == len(src) && src[j] == '\r' {
				q.held = bytes.Clone(src[i:])
				return dst
			}
			if !lineEndsAt(src, j) {
				dst = append(dst, src[i:j]...)
			}
			i = j
		default:
			j := i + 1
			for j < len(src) && src[j] != '=' && !isWSP(src[j]) {
				j++
			}
			dst = append(dst, src[i:j]...)
			i = j
		}
	}
	return dst
}

func lineEndsAt(b []byte, i int) bool {
	return i < len(b) && (b[i] == '\n' || b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n')
}

// escape reads what an '=' begins and returns its length; whole is false when b may be
// cut inside it.
func (q *qpState) escape(b []byte, dst *[]byte) (n int, whole bool) {
	if len(b) >= 3 && unhex(b[1]) >= 0 && unhex(b[2]) >= 0 {
		*dst = append(*dst, byte(unhex(b[1])<<4|unhex(b[2])))
		return 3, true
	}
	i := 1
	for i < len(b) && isWSP(b[i]) && i < maxHeldSpace {
		i++
	}
	switch {
	case i == len(b), i+1 == len(b) && b[i] == '\r', i == 1 && len(b) == 2 && unhex(b[1]) >= 0:
		return 0, false
	case b[i] == '\n':
		return i + 1, true // soft line break, with space behind the '='
	case lineEndsAt(b, i):
		return i + 2, true
	}
	*dst = append(*dst, '=')
	return 1, true
}

func (q *qpState) flush(dst []byte) []byte {
	held := q.held
	q.held = nil
	if bytes.HasPrefix(held, []byte("=")) && len(bytes.TrimRight(held[1:], " \t\r")) == 0 {
		return dst // a soft line break at the end
	}
	return append(dst, bytes.TrimRight(held, " \t")...)
}

// Text returns the text of a leaf as valid UTF-8 with LF line ends: transfer encoding
// and charset undone, and for text/plain format=flowed (RFC 3676) too. text/html is
// given as it is (see HTMLText). It is cut to limit octets at the start of a character,
// and about twice as much of the body is read. limit must be positive; otherwise nothing
// is returned. An error is one of r's; the text before it is returned too.
func Text(r io.ReaderAt, p *Part, limit int64) (string, error) {
	if limit <= 0 {
		return "", nil
	}
	limit = min(limit, maxText)
	most := 2*limit + utf8Slack
	var buf bytes.Buffer
	buf.Grow(int(min(p.Body.Len(), most, textGuess)) + bytes.MinRead)
	_, err := buf.ReadFrom(io.LimitReader(DecodedBody(r, p), most))
	b := buf.Bytes()
	v := decodeCharset(b, textCharset(p, b))
	v = strings.TrimPrefix(v, "\ufeff")
	v = lineFeeds(v)
	if p.Type == "text" && p.Subtype == "plain" && strings.EqualFold(strings.TrimSpace(p.Params["format"]), "flowed") {
		v = unflow(v, strings.EqualFold(strings.TrimSpace(p.Params["delsp"]), "yes"))
	}
	return cutText(v, int(limit)), err
}

const (
	maxText   = 1 << 30
	utf8Slack = 4 << 10
	textGuess = 1 << 20 // memory taken before anything is read
)

// textCharset finds the charset of b: the parameter, or what HTML says of itself. A
// byte order mark beats a charset that it contradicts.
func textCharset(p *Part, b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return "utf-8"
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
		if c := strings.ToLower(p.Params["charset"]); !strings.HasPrefix(c, "utf-16") && !strings.HasPrefix(c, "utf-32") {
			break
		}
		return p.Params["charset"]
	}
	if c := p.Params["charset"]; c != "" || p.Subtype != "html" {
		return c
	}
	return metaCharset(b)
}

// metaCharset finds charset=NAME in the first part of an HTML text.
func metaCharset(b []byte) string {
	head := bytes.ToLower(b[:min(len(b), 2048)])
	_, rest, ok := bytes.Cut(head, []byte("charset="))
	if !ok || !bytes.Contains(head, []byte("<meta")) {
		return ""
	}
	rest = bytes.TrimLeft(rest, `"' `)
	if i := bytes.IndexAny(rest, `"' />;`); i > 0 {
		rest = rest[:i]
	}
	name := string(rest)
	if strings.HasPrefix(name, "utf-16") || strings.HasPrefix(name, "utf-32") {
		return "" // it could not have been read that far
	}
	return name
}

// lineFeeds turns CRLF and bare CR into LF.
func lineFeeds(v string) string {
	i := strings.IndexByte(v, '\r')
	if i < 0 {
		return v
	}
	b := make([]byte, 0, len(v))
	for i >= 0 {
		b = append(append(b, v[:i]...), '\n')
		v = strings.TrimPrefix(v[i+1:], "\n")
		i = strings.IndexByte(v, '\r')
	}
	return string(append(b, v...))
}
