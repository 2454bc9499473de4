package imapserver

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// searchOp is what a search key asks.
type searchOp int

const (
	opAll searchOp = iota
	opAnd
	opOr
	opNot
	opSeq
	opUID
	opFlag
	opRecent
	opSince // by INTERNALDATE, its time and zone disregarded
	opBefore
	opOn
	opSentSince // by the Date field, the same way
	opSentBefore
	opSentOn
	opYounger // RFC 5032
	opOlder
	opModSeq     // RFC 7162 section 3.1.5
	opSavedSince // RFC 8514
	opSavedBefore
	opSavedOn
	opEmailID // RFC 8474
	opLarger
	opSmaller
	opThreadID
	opSubject
	opFrom
	opTo
	opCc
	opHeader
	opBody
	opText
)

// searchKey is one key, or several joined. imap.SearchCriteria cannot tell LARGER 0
// from none and has neither WITHIN nor "$", so the tree is our own.
type searchKey struct {
	op   searchOp
	kids []searchKey
	set  numSet
	flag imap.Flag
	name string // header field
	text string // folded, except for opHeader's empty one
	n    int64  // octets, seconds, or a day since 1970

	lacking *mailbox.Contents // these surely do not hold text
}

// searching is a SEARCH command as sent.
type searching struct {
	key      searchKey
	extended bool // RETURN was given: answer with ESEARCH (RFC 4731)
	imap.SearchOptions
	charset string // one that we do not know
	partial *partial
	modSeqs bool // MODSEQ is among the keys: the answer tells the highest one
}

// maxNesting is how deep search keys may be nested.
const maxNesting = 100

func (p *parser) searching() *searching {
	s := &searching{}
	p.sp()
	if p.knows(inReturn, "RETURN") && p.keyword("RETURN") {
		p.returning(s)
	}
	if p.keyword("CHARSET") {
		p.sp()
		s.setCharset(p.astring())
		if p.utf8 && !p.rev2 { // RFC 6855 section 3
			p.fail("No CHARSET after ENABLE UTF8=ACCEPT")
		}
		p.sp()
	}
	p.keys(s)
	return s
}

// returning reads the result options behind RETURN (RFC 4731).
func (p *parser) returning(s *searching) {
	s.extended = true
	p.sp()
	p.list(func() { s.option(p) })
	p.sp()
	if s.ReturnAll && s.partial != nil {
		p.fail("Either ALL or PARTIAL") // RFC 9394 section 3.1
	}
	if !s.ReturnMin && !s.ReturnMax && !s.ReturnAll && !s.ReturnCount && !s.ReturnSave && s.partial == nil {
		s.ReturnAll = true
	}
}

func (s *searching) setCharset(name string) {
	name = strings.ToUpper(name)
	if name != "UTF-8" && name != "US-ASCII" {
		s.charset = name
	}
}

// keys reads the search keys, unless their strings are in a charset that we cannot read.
func (p *parser) keys(s *searching) {
	if s.charset == "" {
		s.key = searchKey{op: opAnd, kids: p.searchKeys(0)}
		s.modSeqs = p.modSeqs
	}
}

// keyword accepts a word that may be left out.
func (p *parser) keyword(word string) bool {
	end := p.i + len(word)
	if p.err != nil || end >= len(p.b) || !strings.EqualFold(string(p.b[p.i:end]), word) || isAtomChar(p.b[end]) {
		return false
	}
	p.i = end
	return true
}

func (s *searching) option(p *parser) {
	name := p.word()
	if !p.knows(inReturn, name) {
		p.fail("Unknown SEARCH option")
	}
	switch name {
	case "MIN":
		s.ReturnMin = true
	case "MAX":
		s.ReturnMax = true
	case "ALL":
		s.ReturnAll = true
	case "COUNT":
		s.ReturnCount = true
	case "SAVE":
		s.ReturnSave = true
	case "PARTIAL":
		if s.partial != nil {
			p.fail("Unknown SEARCH option")
		}
		s.partial = p.partial()
	default:
		p.fail("Unknown SEARCH option")
	}
}

func (p *parser) searchKeys(depth int) []searchKey {
	keys := []searchKey{p.searchKey(depth)}
	for p.err == nil && p.accept(' ') {
		if p.i == len(p.b) {
			break
		}
		keys = append(keys, p.searchKey(depth))
	}
	return keys
}

func (p *parser) searchKey(depth int) searchKey {
	if depth > maxNesting {
		p.fail("Search keys are nested too deep")
		return searchKey{}
	}
	switch c := p.peek(); {
	case p.accept('('):
		k := searchKey{op: opAnd, kids: p.searchKeys(depth + 1)}
		p.expect(')')
		return k
	case isDigit(c), c == '*', c == '$':
		p.byNumber = p.byNumber || c != '$'
		return searchKey{op: opSeq, set: p.numSet()}
	}
	name := p.word()
	if !p.knows(inSearch, name) {
		p.fail("Unknown search key")
	}
	if plain, found := searchPlain[name]; found && !(p.rev2 && aboutRecent[name]) {
		return plain
	}
	switch name {
	case "NOT":
		p.sp()
		return searchKey{op: opNot, kids: []searchKey{p.searchKey(depth + 1)}}
	case "OR":
		p.sp()
		a := p.searchKey(depth + 1)
		p.sp()
		return searchKey{op: opOr, kids: []searchKey{a, p.searchKey(depth + 1)}}
	}
	read, found := searchArgs[name]
	if !found {
		p.fail("Unknown search key")
		return searchKey{}
	}
	p.sp()
	return read(p)
}

func not(k searchKey) searchKey { return searchKey{op: opNot, kids: []searchKey{k}} }

func flagKey(f imap.Flag) searchKey { return searchKey{op: opFlag, flag: f} }

// searchPlain are the keys without arguments.
var searchPlain = map[string]searchKey{
	"ALL":        {op: opAll},
	"ANSWERED":   flagKey(imap.FlagAnswered),
	"DELETED":    flagKey(imap.FlagDeleted),
	"DRAFT":      flagKey(imap.FlagDraft),
	"FLAGGED":    flagKey(imap.FlagFlagged),
	"SEEN":       flagKey(imap.FlagSeen),
	"UNANSWERED": not(flagKey(imap.FlagAnswered)),
	"UNDELETED":  not(flagKey(imap.FlagDeleted)),
	"UNDRAFT":    not(flagKey(imap.FlagDraft)),
	"UNFLAGGED":  not(flagKey(imap.FlagFlagged)),
	"UNSEEN":     not(flagKey(imap.FlagSeen)),
	"RECENT":     {op: opRecent},
	"OLD":        not(searchKey{op: opRecent}),
	"NEW":        {op: opAnd, kids: []searchKey{{op: opRecent}, not(flagKey(imap.FlagSeen))}},

	"SAVEDATESUPPORTED": {op: opAll}, // every mailbox does
}

// aboutRecent are the keys that IMAP4rev2 does not have.
var aboutRecent = map[string]bool{"RECENT": true, "OLD": true, "NEW": true}

// searchArgs are the keys with arguments.
var searchArgs = map[string]func(*parser) searchKey{
	"UID":        func(p *parser) searchKey { return searchKey{op: opUID, set: p.numSet()} },
	"KEYWORD":    func(p *parser) searchKey { return flagKey(imap.Flag(p.atom())) },
	"UNKEYWORD":  func(p *parser) searchKey { return not(flagKey(imap.Flag(p.atom()))) },
	"SINCE":      dayKey(opSince),
	"BEFORE":     dayKey(opBefore),
	"ON":         dayKey(opOn),
	"SENTSINCE":  dayKey(opSentSince),
	"SENTBEFORE": dayKey(opSentBefore),
	"SENTON":     dayKey(opSentOn),
	"MODSEQ":     modSeqKey,
	"YOUNGER":    intervalKey(opYounger),
	"OLDER":      intervalKey(opOlder),
	"LARGER":     numberKey(opLarger),
	"SMALLER":    numberKey(opSmaller),
	"SUBJECT":    textKey(opSubject, ""),
	"FROM":       textKey(opFrom, ""),
	"TO":         textKey(opTo, ""),
	"CC":         textKey(opCc, ""),
	"BCC":        textKey(opHeader, "Bcc"),
	"BODY":       textKey(opBody, ""),
	"TEXT":       textKey(opText, ""),
	"HEADER": func(p *parser) searchKey {
		name := p.astring()
		p.sp()
		return textKey(opHeader, name)(p)
	},

	"SAVEDSINCE":  dayKey(opSavedSince),
	"SAVEDBEFORE": dayKey(opSavedBefore),
	"SAVEDON":     dayKey(opSavedOn),
	"EMAILID":     func(p *parser) searchKey { return searchKey{op: opEmailID, text: p.objectID()} },
	"THREADID":    func(p *parser) searchKey { return searchKey{op: opThreadID, text: p.objectID()} },
}

func dayKey(op searchOp) func(*parser) searchKey {
	return func(p *parser) searchKey { return searchKey{op: op, n: dayOf(p.date())} }
}

// dayOf numbers the day that a time names in its own zone.
func dayOf(t time.Time) int64 {
	_, offset := t.Zone()
	return floorDay(t.Unix() + int64(offset))
}

func floorDay(seconds int64) int64 {
	const day = 24 * 60 * 60
	if seconds < 0 {
		return (seconds - day + 1) / day
	}
	return seconds / day
}

func numberKey(op searchOp) func(*parser) searchKey {
	return func(p *parser) searchKey { return searchKey{op: op, n: p.number64()} }
}

// intervalKey reads an interval in seconds, which is never 0 (RFC 5032 section 4).
func intervalKey(op searchOp) func(*parser) searchKey {
	return func(p *parser) searchKey { return searchKey{op: op, n: int64(p.nzNumber())} }
}

func textKey(op searchOp, name string) func(*parser) searchKey {
	return func(p *parser) searchKey {
		s := p.searchString()
		return searchKey{op: op, name: name, text: newFolder().String(s)}
	}
}

// searchString reads an astring that may hold UTF-8, whatever was said of it.
func (p *parser) searchString() string {
	if !p.isString() {
		s := p.take(func(c byte) bool { return isAtomChar(c) || c == ']' || c >= 0x80 })
		if s == "" {
			p.fail("Expected a string")
		}
		return p.valid(s)
	}
	return p.valid(p.string_())
}

func (p *parser) valid(s string) string {
	if !utf8.ValidString(s) {
		p.fail("The string is not UTF-8")
	}
	return s
}
