package mime

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxParams     = 64
	maxParamValue = 4 << 10
)

// param is one parameter of Content-Type or Content-Disposition.
type param struct {
	name  string // lower case
	value string // decoded
	raw   string // before encoded-words and charsets
}

type params []param

func (ps params) get(name string) string {
	for _, p := range ps {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

func (ps params) raw(name string) string {
	for _, p := range ps {
		if p.name == name {
			return p.raw
		}
	}
	return ""
}

// parseContentType reads an unfolded Content-Type. What is no type at all is text/plain
// (RFC 2045 section 5.2); the parameters are kept.
func parseContentType(v string) (typ, sub string, ps params) {
	head, rest := cutValue(v)
	ps = parseParams(rest)
	head = strings.ToLower(stripComments(head))
	typ, sub, _ = strings.Cut(head, "/")
	typ, sub = strings.TrimSpace(typ), strings.TrimSpace(sub)
	if i := strings.IndexAny(sub, " \t/"); i > 0 {
		sub = sub[:i]
	}
	const maxType = 128
	switch {
	case !isToken(typ), len(typ)+len(sub) > maxType:
		return "text", "plain", ps
	case isToken(sub):
		return typ, sub, ps
	case typ == "multipart":
		return typ, "mixed", ps
	}
	return "text", "plain", ps
}

// parseDisposition reads an unfolded Content-Disposition (RFC 2183).
func parseDisposition(v string) (string, params) {
	head, rest := cutValue(v)
	head = strings.ToLower(strings.Trim(stripComments(head), " \t\""))
	ps := parseParams(rest)
	if !isToken(head) || len(head) > 128 {
		if head == "" && len(ps) == 0 {
			return "", nil
		}
		head = "attachment"
	}
	return head, ps
}

// cutValue cuts the value of a structured field from its parameters.
func cutValue(v string) (head, rest string) {
	head, rest, _ = strings.Cut(v, ";")
	// "text/plain charset=utf-8": the semicolon is missing.
	if i := strings.IndexByte(head, '='); i > 0 {
		if j := strings.LastIndexAny(strings.TrimRight(head[:i], " \t"), " \t"); j > 0 {
			return head[:j], v[j:]
		}
	}
	return head, rest
}

// segment is a piece of a parameter that RFC 2231 splits.
type segment struct {
	n        int
	extended bool
	value    string
}

// parseParams reads "a=b; c="d"; e*=utf-8”f", leniently: quotes may stay open,
// semicolons may be missing, the first of two equal names counts.
func parseParams(v string) params {
	var out params
	index := make(map[string]int)
	split := make(map[string][]segment)
	for n := 0; v != "" && n < maxParams; n++ {
		var name, val string
		name, val, v = nextParam(v)
		base, seg, ok := splitName(name)
		if base == "" {
			continue
		}
		if _, dup := index[base]; !dup {
			index[base] = len(out)
			out = append(out, param{name: base, raw: val, value: val})
		}
		if ok {
			seg.value = val
			split[base] = append(split[base], seg)
		}
	}
	for i := range out {
		p := &out[i]
		if segs := split[p.name]; segs != nil {
			p.value = joinSegments(segs)
			p.raw = p.value
		} else if p.name != "boundary" {
			p.value = DecodeHeader(p.value)
		} else {
			p.value = toUTF8(p.value)
		}
		p.value = cutText(p.value, maxParamValue)
	}
	return out
}

// nextParam takes one parameter off the front of v. The name is lower case, and empty
// for what is no parameter.
func nextParam(v string) (name, val, rest string) {
	v = skipCFWS(strings.TrimLeft(v, "; \t"))
	eq := strings.IndexAny(v, "=;")
	if eq < 0 {
		return "", "", ""
	}
	name = strings.ToLower(strings.TrimSpace(stripComments(v[:eq])))
	if v[eq] == ';' {
		return "", "", v[eq+1:]
	}
	v = skipCFWS(v[eq+1:])
	if strings.HasPrefix(v, `"`) {
		val, rest = quotedString(v)
	} else {
		val, rest = bareValue(v)
	}
	if !isToken(name) {
		name = ""
	}
	return name, val, rest
}

// quotedString reads a quoted-string at the front of v. Without an end it goes to the
// end of v.
func quotedString(v string) (val, rest string) {
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		switch c := v[i]; c {
		case '"':
			return b.String(), v[i+1:]
		case '\\':
			// A Windows path is no escape: only quotes and backslashes are.
			if i+1 < len(v) && (v[i+1] == '"' || v[i+1] == '\\') {
				i++
			}
			b.WriteByte(v[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// bareValue reads an unquoted value, which people let contain spaces, at the front of
// v: it ends at a semicolon, a comment or before a word that is followed by "=".
func bareValue(v string) (val, rest string) {
	end := strings.IndexByte(v, ';')
	if end < 0 {
		end = len(v)
	}
	val, rest = v[:end], v[end:]
	if eq := strings.LastIndexByte(val, '='); eq > 0 && !strings.Contains(val, "=?") {
		eq = strings.IndexByte(val, '=')
		if sp := strings.LastIndexAny(val[:eq], " \t"); sp > 0 && isToken(val[sp+1:eq]) {
			val, rest = v[:sp], v[sp:]
		}
	}
	if i := strings.Index(val, " ("); i > 0 {
		val = val[:i]
	}
	return strings.TrimSpace(val), rest
}

// splitName takes the section and the asterisk off a name (RFC 2231 sections 3 and 4).
func splitName(name string) (base string, seg segment, ok bool) {
	base, rest, ok := strings.Cut(name, "*")
	if !ok {
		return name, segment{}, false
	}
	if r, cut := strings.CutSuffix(rest, "*"); cut || rest == "" {
		seg.extended = true
		rest = r
	}
	if rest != "" {
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > maxParams {
			return "", segment{}, false
		}
		seg.n = n
	}
	return base, seg, true
}

// joinSegments puts the sections together; the first names the charset.
func joinSegments(segs []segment) string {
	sort.SliceStable(segs, func(i, j int) bool { return segs[i].n < segs[j].n })
	charset := ""
	var b []byte
	for i, s := range segs {
		if i > 0 && s.n == segs[i-1].n {
			continue
		}
		v := s.value
		if s.extended {
			if i == 0 {
				if parts := strings.SplitN(v, "'", 3); len(parts) == 3 {
					charset, v = parts[0], parts[2]
				}
			}
			v = percentDecode(v)
		}
		b = append(b, v...)
	}
	return cleanText(decodeCharset(b, charset))
}

func percentDecode(v string) string {
	if !strings.Contains(v, "%") {
		return v
	}
	b := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		if v[i] == '%' && i+2 < len(v) {
			h, l := unhex(v[i+1]), unhex(v[i+2])
			if h >= 0 && l >= 0 {
				b = append(b, byte(h<<4|l))
				i += 2
				continue
			}
		}
		b = append(b, v[i])
	}
	return string(b)
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c - 'a' + 10)
	case 'A' <= c && c <= 'F':
		return int(c - 'A' + 10)
	}
	return -1
}

// isToken tells whether v is a token of RFC 2045 section 5.1.
func isToken(v string) bool {
	for i := 0; i < len(v); i++ {
		if v[i] <= ' ' || v[i] >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?=`, v[i]) >= 0 {
			return false
		}
	}
	return v != ""
}

// stripComments removes comments (RFC 5322 section 3.2.2) from a value.
func stripComments(v string) string {
	if !strings.Contains(v, "(") {
		return strings.TrimSpace(v)
	}
	var b strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c == '\\' && i+1 < len(v):
			i++
			if depth == 0 {
				b.WriteString(v[i-1 : i+1])
			}
			continue
		case c == '"' && depth == 0:
			quoted = !quoted
		case c == '(' && !quoted:
			depth++
			continue
		case c == ')' && !quoted && depth > 0:
			depth--
			continue
		}
		if depth == 0 {
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// skipCFWS skips spaces and one comment.
func skipCFWS(v string) string {
	v = strings.TrimLeft(v, " \t")
	if strings.HasPrefix(v, "(") {
		if i := strings.IndexByte(v, ')'); i > 0 {
			v = strings.TrimLeft(v[i+1:], " \t")
		}
	}
	return v
}

const maxFilename = 255

// safeName makes a file name of what a message says is one: no directory separators,
// control or invisible direction characters, at most maxFilename octets; empty for
// names that mean a directory. It is a label, not a path.
func safeName(v string) string {
	v = strings.Map(func(r rune) rune {
		switch {
		case r == '/' || r == '\\' || r == utf8.RuneError:
			return '_'
		case r < ' ' || r >= 0x7f && r < 0xa0 || isBidi(r):
			return -1
		}
		return r
	}, v)
	v = strings.TrimSpace(cutText(strings.TrimSpace(v), maxFilename))
	if strings.Trim(v, ".") == "" {
		return ""
	}
	return v
}

// isBidi tells whether r changes the direction of text, or cannot be seen: it could
// disguise the end of a name.
func isBidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0x200b && r <= 0x200f ||
		r == 0x61c || r == 0xfeff || r == 0x2028 || r == 0x2029
}

// cutText cuts v to at most n octets at the start of a character.
func cutText(v string, n int) string {
	if len(v) <= n {
		return v
	}
	for n > 0 && !utf8.RuneStart(v[n]) {
		n--
	}
	return v[:n]
}
