package imapserver

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// parser reads the tokens of one command (RFC 3501 section 9). Its first error
// stays, and every method returns the zero value after it.
type parser struct {
	b     []byte
	i     int
	utf8  bool // ENABLE UTF8=ACCEPT or IMAP4rev2: names are UTF-8
	rev2  bool // ENABLE IMAP4rev2: there is no \Recent
	err   error
	known func(at place, word string) bool // to the account; nil: everything is

	byNumber bool // a search key named message numbers
	modSeqs  bool // a search key named mod-sequences
}

// syntaxError is what a client did wrong, for a BAD.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = syntaxError(fmt.Sprintf(format, args...))
	}
}

func (p *parser) peek() byte {
	if p.err != nil || p.i >= len(p.b) {
		return 0
	}
	return p.b[p.i]
}

func (p *parser) accept(c byte) bool {
	if p.err == nil && p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *parser) expect(c byte) {
	if !p.accept(c) {
		p.fail("Expected %q", c)
	}
}

func (p *parser) sp() {
	if !p.accept(' ') {
		p.fail("Missing argument")
	}
}

// end checks that nothing is left.
func (p *parser) end() error {
	if p.err == nil {
		for p.accept(' ') { // some clients leave a space at the end
		}
		if p.i < len(p.b) {
			p.fail("Unexpected text after the arguments")
		}
	}
	return p.err
}

func isAtomChar(c byte) bool {
	return c > ' ' && c < 0x7f && strings.IndexByte(`(){%*"\]`, c) < 0
}

func (p *parser) take(ok func(byte) bool) string {
	if p.err != nil {
		return ""
	}
	from := p.i
	for p.i < len(p.b) && ok(p.b[p.i]) {
		p.i++
	}
	return string(p.b[from:p.i])
}

// tag returns "" and no error for a line that has none.
func (p *parser) tag() string {
	return p.take(func(c byte) bool { return (isAtomChar(c) || c == ']') && c != '+' })
}

func (p *parser) atom() string {
	s := p.take(isAtomChar)
	if s == "" {
		p.fail("Expected an atom")
	}
	return s
}

// word returns an atom in upper case.
func (p *parser) word() string { return strings.ToUpper(p.atom()) }

// item returns a name such as BODY.PEEK in upper case: an atom up to '['.
func (p *parser) item() string {
	s := p.take(func(c byte) bool { return isAtomChar(c) && c != '[' && c != '<' })
	if s == "" {
		p.fail("Expected an item")
	}
	return strings.ToUpper(s)
}

func (p *parser) isString() bool { c := p.peek(); return c == '"' || c == '{' }

// string_ reads a quoted string or a literal.
func (p *parser) string_() string {
	switch p.peek() {
	case '"':
		return p.quoted()
	case '{':
		return p.literal()
	}
	p.fail("Expected a string")
	return ""
}

func (p *parser) quoted() string {
	p.i++
	var out []byte
	for p.i < len(p.b) {
		c := p.b[p.i]
		p.i++
		switch c {
		case '"':
			return string(out)
		case '\\':
			if p.i >= len(p.b) || p.b[p.i] != '"' && p.b[p.i] != '\\' {
				p.fail("Bad escape in a quoted string")
				return ""
			}
			c = p.b[p.i]
			p.i++
		case 0, '\r', '\n':
			p.fail("Bad character in a quoted string")
			return ""
		}
		out = append(out, c)
	}
	p.fail("Unfinished quoted string")
	return ""
}

func (p *parser) literal() string {
	nl := strings.Index(string(p.b[p.i:min(len(p.b), p.i+32)]), "\r\n")
	if nl < 0 {
		p.fail("Bad literal")
		return ""
	}
	lit := announced(p.b[p.i : p.i+nl])
	start := p.i + nl + 2
	if lit == nil || lit.spec != nl || lit.size < 0 || lit.size > int64(len(p.b)-start) {
		p.fail("Bad literal")
		return ""
	}
	p.i = start + int(lit.size)
	s := string(p.b[start:p.i])
	if strings.IndexByte(s, 0) >= 0 {
		p.fail("NUL in a literal")
		return ""
	}
	return s
}

func (p *parser) astring() string {
	if p.isString() {
		return p.string_()
	}
	s := p.take(func(c byte) bool { return isAtomChar(c) || c == ']' || p.utf8 && c >= 0x80 })
	if s == "" {
		p.fail("Expected a string")
	}
	return s
}

func (p *parser) nstring() (s string, ok bool) {
	if p.isString() {
		return p.string_(), true
	}
	if p.word() != "NIL" {
		p.fail("Expected a string or NIL")
	}
	return "", false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (p *parser) number64() int64 {
	s := p.take(isDigit)
	if s == "" || len(s) > 18 {
		p.fail("Expected a number")
		return 0
	}
	n := int64(0)
	for i := 0; i < len(s); i++ {
		n = n*10 + int64(s[i]-'0')
	}
	return n
}

// modSeq reads a mod-sequence-valzer: 63 bits (RFC 7162 section 7).
func (p *parser) modSeq() mailbox.ModSeq {
	n, err := strconv.ParseUint(p.take(isDigit), 10, 63)
	if err != nil {
		p.fail("Expected a mod-sequence")
	}
	return mailbox.ModSeq(n)
}

func (p *parser) number() uint32 {
	n := p.number64()
	if n > 1<<32-1 {
		p.fail("Number too large")
		return 0
	}
	return uint32(n)
}

// list calls one for each element of a parenthesised list, separated by spaces.
func (p *parser) list(one func()) {
	p.expect('(')
	if p.accept(')') {
		return
	}
	for p.err == nil {
		one()
		if p.accept(')') {
			return
		}
		p.sp()
	}
}

// numRange is one element of a sequence-set; 0 stands for "*".
type numRange struct{ from, to uint32 }

// numSet is a sequence-set as sent, or the saved result "$" (RFC 5182).
type numSet struct {
	ranges []numRange
	saved  bool
}

func (p *parser) numSet() numSet {
	if p.knows(inSet, "$") && p.accept('$') {
		return numSet{saved: true}
	}
	var s numSet
	for p.err == nil {
		r := numRange{from: p.setNumber()}
		r.to = r.from
		if p.accept(':') {
			r.to = p.setNumber()
		}
		s.ranges = append(s.ranges, r)
		if !p.accept(',') {
			break
		}
	}
	return s
}

func (p *parser) setNumber() uint32 {
	if p.accept('*') {
		return 0
	}
	n := p.number()
	if n == 0 {
		p.fail("Bad message number")
	}
	return n
}

// nzNumber reads an nz-number: 1 to 2^32-1.
func (p *parser) nzNumber() uint32 {
	n := p.number()
	if n == 0 {
		p.fail("Expected a number larger than 0")
	}
	return n
}

// mailbox reads the name of a mailbox and returns it as package mailbox knows it.
func (p *parser) mailbox() string {
	return p.mailboxName(p.astring())
}

func (p *parser) mailboxName(s string) string {
	if p.err != nil {
		return ""
	}
	name, err := decodeName(s, p.utf8)
	if err != nil { // the command is well-formed, the name none that a mailbox can have: NO, not BAD
		p.err = &mailbox.Error{Op: "name", Kind: mailbox.Invalid, Text: "Bad mailbox name: " + err.Error()}
	}
	return name
}

// noName is what no mailbox is called: what a pattern that cannot match becomes.
const noName = "\x00"

// patternName is mailboxName for a pattern: one that is not encoded as a name must be
// matches nothing.
func (p *parser) patternName(s string) string {
	name, err := decodeName(s, p.utf8)
	if err != nil && p.err == nil {
		return noName
	}
	return name
}

// pattern reads a list-mailbox: a name in which * and % stand for more.
func (p *parser) pattern() string {
	if p.isString() {
		return p.patternName(p.string_())
	}
	s := p.take(func(c byte) bool {
		return isAtomChar(c) || c == ']' || c == '*' || c == '%' || p.utf8 && c >= 0x80
	})
	if s == "" {
		p.fail("Expected a mailbox pattern")
	}
	return p.patternName(s)
}

var systemFlags = map[string]imap.Flag{
	`\SEEN`: imap.FlagSeen, `\ANSWERED`: imap.FlagAnswered, `\FLAGGED`: imap.FlagFlagged,
	`\DELETED`: imap.FlagDeleted, `\DRAFT`: imap.FlagDraft,
}

// flag reads one flag; system flags come out in their canonical case. \Recent, which
// nobody can set, comes out as "".
func (p *parser) flag() imap.Flag {
	if !p.accept('\\') {
		return imap.Flag(p.atom())
	}
	name := `\` + p.atom()
	if f, ok := systemFlags[strings.ToUpper(name)]; ok {
		return f
	}
	if !strings.EqualFold(name, `\Recent`) {
		p.fail("Unknown system flag")
	}
	return ""
}

func (p *parser) flagList() []imap.Flag {
	flags := []imap.Flag{}
	p.list(func() {
		if f := p.flag(); f != "" {
			flags = append(flags, f)
		}
	})
	return flags
}

// date reads a date, quoted or not: 1-Feb-1994. It is midnight UTC.
func (p *parser) date() time.Time {
	quoted := p.accept('"')
	s := p.take(func(c byte) bool { return isAtomChar(c) })
	if quoted {
		p.expect('"')
	}
	t, err := time.Parse("2-Jan-2006", s)
	if err != nil {
		p.fail("Bad date")
	}
	return t
}

// dateTime reads a quoted date-time: " 1-Feb-1994 21:52:25 -0800".
func (p *parser) dateTime() time.Time {
	t, err := time.Parse("_2-Jan-2006 15:04:05 -0700", p.string_())
	if err != nil || t.Year() < 1 || t.Year() > 9998 {
		p.fail("Bad date-time")
	}
	return t
}
