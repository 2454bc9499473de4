package mime

import "strings"

type tokenKind uint8

const (
	atomToken tokenKind = iota
	quotedToken
	commentToken
	spaceToken
	specialToken // one of , ; : < > @
	endToken
)

type token struct {
	kind tokenKind
	text string
}

func (t token) is(special string) bool { return t.kind == specialToken && t.text == special }

// addressLexer cuts an address list into tokens in linear time.
type addressLexer struct {
	v          string
	i          int
	words      wordScanner
	openQuote  bool // a quote without end was met: quotes are ordinary from here
	openParen  bool // likewise
	openSquare bool
}

func (x *addressLexer) next() token {
	if x.i >= len(x.v) {
		return token{kind: endToken}
	}
	start := x.i
	switch c := x.v[x.i]; {
	case isWSP(c):
		for x.i < len(x.v) && isWSP(x.v[x.i]) {
			x.i++
		}
		return token{spaceToken, " "}
	case strings.IndexByte(",;:<>@", c) >= 0:
		x.i++
		return token{specialToken, x.v[start:x.i]}
	case c == '"' && !x.openQuote:
		if t, ok := x.quoted(); ok {
			return t
		}
		x.openQuote = true
	case c == '(' && !x.openParen:
		if t, ok := x.comment(); ok {
			return t
		}
		x.openParen = true
	case c == '[' && !x.openSquare:
		if end := strings.IndexByte(x.v[x.i:], ']'); end > 0 {
			x.i += end + 1
			return token{atomToken, x.v[start:x.i]}
		}
		x.openSquare = true
	}
	return x.atom()
}

func (x *addressLexer) atom() token {
	start := x.i
	if strings.HasPrefix(x.v[x.i:], "=?") {
		// An encoded-word may hold commas and other specials, against the rules.
		if w, ok := x.words.at(x.i); ok && !strings.ContainsAny(w.text, " \t<>\"") {
			x.i = w.end
			return token{atomToken, x.v[start:x.i]}
		}
	}
	for x.i++; x.i < len(x.v); x.i++ {
		c := x.v[x.i]
		if isWSP(c) || strings.IndexByte(",;:<>@", c) >= 0 || c == '"' && !x.openQuote || c == '(' && !x.openParen {
			break
		}
		if c == '[' && !x.openSquare && x.v[x.i-1] == '@' {
			break
		}
	}
	return token{atomToken, x.v[start:x.i]}
}

func (x *addressLexer) quoted() (token, bool) {
	var b strings.Builder
	for i := x.i + 1; i < len(x.v); i++ {
		switch c := x.v[i]; c {
		case '"':
			x.i = i + 1
			return token{quotedToken, b.String()}, true
		case '\\':
			if i+1 < len(x.v) {
				i++
			}
			b.WriteByte(x.v[i])
		default:
			b.WriteByte(c)
		}
	}
	return token{}, false
}

func (x *addressLexer) comment() (token, bool) {
	var b strings.Builder
	depth := 0
	for i := x.i; i < len(x.v); i++ {
		c := x.v[i]
		switch {
		case c == '\\' && i+1 < len(x.v):
			i++
			c = x.v[i]
		case c == '(':
			if depth++; depth == 1 {
				continue
			}
		case c == ')':
			if depth--; depth == 0 {
				x.i = i + 1
				return token{commentToken, b.String()}, true
			}
		}
		b.WriteByte(c)
	}
	return token{}, false
}
