package mime

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxAddresses is how many addresses of one field are read.
const maxAddresses = 10_000

// ParseAddresses reads an address list (RFC 5322 section 3.4) leniently: what can be
// read is kept and one bad address costs no other. Groups are flattened. An address
// without "@" has no Host, and a name without an address has neither Local nor Host.
// "Smith, John <a@b>" with its comma unquoted is one address. At most MaxHeader octets are
// read.
func ParseAddresses(value string) []Address {
	var out []Address
	for _, it := range parseAddressList(unfold(value[:min(len(value), MaxHeader)])) {
		if it.kind == mailboxItem {
			out = append(out, it.address())
		}
	}
	return out
}

type itemKind uint8

const (
	mailboxItem itemKind = iota
	groupStart
	groupEnd
)

// addressItem is one element of an address list as IMAP shows it. Its strings are as in
// the message, with quotes and comments removed.
type addressItem struct {
	kind              itemKind
	name, local, host string
	route             string
}

func (it addressItem) address() Address {
	return Address{Name: DecodeHeader(it.name), Local: cleanText(toUTF8(it.local)), Host: cleanText(toUTF8(it.host))}
}

// addressParser collects the tokens of one mailbox at a time.
type addressParser struct {
	lex     addressLexer
	out     []addressItem
	inGroup bool
	toks    []token // outside of angle brackets
	angle   []token // inside
	at      bool    // "@" is among toks
	hasAddr bool    // angle brackets were seen
	comment string
	phrase  string // a name that a comma cut off: "Smith" of "Smith, John <a@b>"
}

func parseAddressList(v string) []addressItem {
	p := &addressParser{lex: addressLexer{v: v, words: wordScanner{v: v}}}
	for len(p.out) < maxAddresses {
		t := p.lex.next()
		switch {
		case t.kind == endToken:
			p.end(false)
			p.flushPhrase()
			p.closeGroup()
			return p.out
		case t.is(","):
			p.end(true)
		case t.is(";"):
			p.end(false)
			p.flushPhrase()
			p.closeGroup()
		case t.is(":"):
			p.colon(t)
		case t.is("<"):
			if p.hasAddr {
				p.end(false)
			}
			p.bracket()
		case t.is(">"):
		case t.kind == commentToken:
			if p.comment == "" {
				p.comment = strings.TrimSpace(t.text)
			}
			p.toks = append(p.toks, token{spaceToken, " "})
		case p.hasAddr && t.kind != spaceToken:
			p.end(false) // a second mailbox without a comma before it
			p.toks = append(p.toks, t)
		default:
			p.at = p.at || t.is("@")
			p.toks = append(p.toks, t)
		}
	}
	p.closeGroup()
	return p.out
}

// colon starts a group, if there is a name before it.
func (p *addressParser) colon(t token) {
	plain := token{atomToken, t.text}
	if p.inGroup || p.hasAddr || p.at {
		p.toks = append(p.toks, plain)
		return
	}
	name := phraseOf(p.toks)
	if name == "" {
		p.toks = append(p.toks, plain)
		return
	}
	if p.phrase != "" {
		name = p.phrase + ", " + name
	}
	p.out = append(p.out, addressItem{kind: groupStart, name: name})
	p.inGroup = true
	p.reset()
	p.phrase = ""
}

func (p *addressParser) closeGroup() {
	if p.inGroup {
		p.out = append(p.out, addressItem{kind: groupEnd})
		p.inGroup = false
	}
}

// bracket reads what stands between "<" and ">". A comma, a semicolon or another "<"
// ends it too, unless the comma is part of a source route (RFC 5322 section 4.4).
func (p *addressParser) bracket() {
	p.hasAddr = true
	for {
		mark := p.lex.i
		t := p.lex.next()
		route := len(p.angle) > 0 && p.angle[0].is("@")
		switch {
		case t.kind == endToken, t.is(">"):
			return
		case t.is("<"), t.is(";"), t.is(",") && !route:
			p.lex.i = mark
			return
		case t.kind == spaceToken, t.kind == commentToken:
		default:
			p.angle = append(p.angle, t)
		}
	}
}

// end ends a mailbox; comma tells that a comma does.
func (p *addressParser) end(comma bool) {
	defer p.reset()
	name := phraseOf(p.toks)
	switch {
	case p.hasAddr:
		p.endBracket(name)
	case p.at:
		p.flushPhrase()
		p.endBare()
	case name == "":
	case comma && looksLikeName(name):
		p.flushPhrase()
		p.phrase = name
	default:
		p.flushPhrase()
		p.out = append(p.out, addressItem{name: p.comment, local: name})
	}
}

func (p *addressParser) endBracket(name string) {
	var it addressItem
	it.route, it.local, it.host = splitSpec(p.angle)
	if p.phrase != "" && name != "" {
		name = p.phrase + ", " + name
		p.phrase = ""
	}
	p.flushPhrase()
	if it.name = name; name == "" {
		it.name = p.comment
	}
	if it.name != "" || it.local != "" || it.host != "" {
		p.out = append(p.out, it)
	}
}

// endBare reads a mailbox without angle brackets: words with "@" are addresses, other
// words are a name.
func (p *addressParser) endBare() {
	var name []token
	first := len(p.out)
	for _, w := range addressWords(p.toks) {
		if !hasAt(w) {
			name = append(append(name, token{spaceToken, " "}), w...)
			continue
		}
		it := addressItem{name: phraseOf(name)}
		_, it.local, it.host = splitSpec(w)
		p.out = append(p.out, it)
		name = nil
	}
	if first < len(p.out) && p.out[first].name == "" {
		if p.out[first].name = p.comment; p.comment == "" {
			p.out[first].name = phraseOf(name)
		}
	}
}

// flushPhrase keeps a name that belonged to no address after all.
func (p *addressParser) flushPhrase() {
	if p.phrase != "" {
		p.out = append(p.out, addressItem{local: p.phrase})
		p.phrase = ""
	}
}

func (p *addressParser) reset() {
	p.toks, p.angle = p.toks[:0], p.angle[:0]
	p.at, p.hasAddr, p.comment = false, false, ""
}

// looksLikeName tells a person's name from the bare name of a local account.
func looksLikeName(v string) bool {
	r, _ := utf8.DecodeRuneInString(v)
	return r >= utf8.RuneSelf || unicode.IsUpper(r) || strings.Contains(v, " ") || strings.HasPrefix(v, "=?")
}

func hasAt(toks []token) bool {
	for _, t := range toks {
		if t.is("@") {
			return true
		}
	}
	return false
}

// phraseOf joins tokens to a display name.
func phraseOf(toks []token) string {
	var b strings.Builder
	space := false
	for _, t := range toks {
		if t.kind == spaceToken {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteString(t.text)
	}
	return strings.TrimSpace(b.String())
}

// addressWords splits at spaces, but not at those beside "@" or a dot
// (RFC 5322 section 4.4).
func addressWords(toks []token) [][]token {
	var words [][]token
	var cur []token
	for i, t := range toks {
		if t.kind != spaceToken {
			cur = append(cur, t)
			continue
		}
		if len(cur) == 0 || joins(cur[len(cur)-1], ".") || i+1 < len(toks) && joinsNext(toks[i+1]) {
			continue
		}
		words, cur = append(words, cur), nil
	}
	if len(cur) > 0 {
		words = append(words, cur)
	}
	return words
}

func joins(t token, suffix string) bool {
	return t.is("@") || t.kind == atomToken && strings.HasSuffix(t.text, suffix)
}

func joinsNext(t token) bool {
	return t.is("@") || t.kind == atomToken && strings.HasPrefix(t.text, ".")
}

// splitSpec splits an addr-spec at its last "@".
func splitSpec(toks []token) (route, local, host string) {
	if len(toks) > 0 && toks[0].is("@") {
		for i, t := range toks {
			if t.is(":") {
				route, toks = joinTokens(toks[:i]), toks[i+1:]
				break
			}
		}
	}
	if len(toks) > 1 && toks[1].is(":") && strings.EqualFold(toks[0].text, "mailto") {
		toks = toks[2:]
	}
	at := -1
	for i, t := range toks {
		if t.is("@") {
			at = i
		}
	}
	if at < 0 {
		return route, joinTokens(toks), ""
	}
	return route, joinTokens(toks[:at]), joinTokens(toks[at+1:])
}

func joinTokens(toks []token) string {
	if len(toks) == 1 {
		return toks[0].text
	}
	var b strings.Builder
	for _, t := range toks {
		b.WriteString(t.text)
	}
	return b.String()
}
