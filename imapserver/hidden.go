package imapserver

import (
	"slices"
	"strings"
)

// An account can hide capabilities from its programs (accounts.<login>.hide_capabilities).
// What is hidden is not advertised, and the words that go with it are unknown: BAD, as by
// a server that never heard of them. Three things cannot be taken back and are not: a
// literal in a form that was not offered is read as what it is, since its octets would
// otherwise be taken for commands; attributes of LIST that nobody asks for stay; before
// the login nobody is known.

// place is where in the protocol a word stands.
type place int

const (
	inCommand place = iota
	inSelect        // a parameter of SELECT and EXAMINE
	inFetch
	inFetchModifier
	inStoreModifier
	inStatus
	inSearch
	inReturn     // a result option of SEARCH
	inSortReturn // of SORT
	inSort
	inThread
	inList // "(" and RETURN, and the options
	inCreate
	inAppend // "~": a literal8; "{": a second message
	inSet    // "$"
	inCode   // a response code that is sent unasked
)

// capabilityWords says what goes with each capability that an account can hide.
var capabilityWords = map[string]map[place]string{
	"ID":                 {inCommand: "ID"},
	"ENABLE":             {inCommand: "ENABLE"},
	"IDLE":               {inCommand: "IDLE"},
	"NAMESPACE":          {inCommand: "NAMESPACE"},
	"UNSELECT":           {inCommand: "UNSELECT"},
	"MOVE":               {inCommand: "MOVE UID-MOVE"},
	"UIDPLUS":            {inCommand: "UID-EXPUNGE", inCode: "APPENDUID COPYUID"},
	"NOTIFY":             {inCommand: "NOTIFY"},
	"QUOTA":              {inCommand: "GETQUOTA GETQUOTAROOT"},
	"QUOTA=RES-STORAGE":  {inStatus: "DELETED-STORAGE"},
	"QUOTA=RES-MESSAGE":  {inStatus: "DELETED"},
	"ESEARCH":            {inReturn: "RETURN"},
	"SEARCHRES":          {inReturn: "SAVE", inSet: "$"},
	"PARTIAL":            {inReturn: "PARTIAL", inFetchModifier: "PARTIAL"},
	"WITHIN":             {inSearch: "YOUNGER OLDER"},
	"SPECIAL-USE":        {inList: "SPECIAL-USE"},
	"CREATE-SPECIAL-USE": {inCreate: "USE"},
	"LIST-EXTENDED":      {inList: "( RETURN"},
	"LIST-STATUS":        {inList: "STATUS"},
	"STATUS=SIZE":        {inStatus: "SIZE"},
	"APPENDLIMIT":        {inStatus: "APPENDLIMIT"},
	"MULTIAPPEND":        {inAppend: "{"},
	"BINARY":             {inFetch: "BINARY BINARY.PEEK BINARY.SIZE", inAppend: "~"},
	"CONDSTORE": {inSelect: "CONDSTORE", inFetch: "MODSEQ", inFetchModifier: "CHANGEDSINCE", inStoreModifier: "UNCHANGEDSINCE",
		inStatus: "HIGHESTMODSEQ", inSearch: "MODSEQ", inCode: "HIGHESTMODSEQ"},
	"QRESYNC":               {inSelect: "QRESYNC", inFetchModifier: "VANISHED"},
	"SORT":                  {inCommand: "SORT UID-SORT"},
	"SORT=DISPLAY":          {inSort: "DISPLAYFROM DISPLAYTO"},
	"ESORT":                 {inSortReturn: "RETURN"},
	"THREAD=ORDEREDSUBJECT": {inCommand: "THREAD UID-THREAD", inThread: "ORDEREDSUBJECT"},
	"THREAD=REFERENCES":     {inCommand: "THREAD UID-THREAD", inThread: "REFERENCES"},
	"PREVIEW":               {inFetch: "PREVIEW"},
	"SAVEDATE":              {inFetch: "SAVEDATE", inSearch: "SAVEDSINCE SAVEDBEFORE SAVEDON SAVEDATESUPPORTED"},
	"OBJECTID":              {inFetch: "EMAILID THREADID", inStatus: "MAILBOXID", inSearch: "EMAILID THREADID", inCode: "MAILBOXID"},

	// ENABLE switches these on, and does not when they are hidden.
	"UTF8=ACCEPT": nil,
	"IMAP4rev2":   {inStatus: "DELETED"},
	// Nothing is asked for by name.
	"LITERAL+": nil, "SASL-IR": nil, "CHILDREN": nil,
}

// restsOn says what a capability cannot be used without: where that is hidden, so is this.
// IMAP4rev2 has many extensions in it (RFC 9051 appendix E).
var restsOn = map[string]string{
	"IMAP4rev2": "LITERAL+ SASL-IR ENABLE IDLE NAMESPACE CHILDREN UIDPLUS UNSELECT MOVE ESEARCH SEARCHRES SPECIAL-USE " +
		"LIST-EXTENDED LIST-STATUS STATUS=SIZE BINARY",
	"UTF8=ACCEPT": "ENABLE",
	"QRESYNC":     "ENABLE CONDSTORE",
	"SEARCHRES":   "ESEARCH",
	"LIST-STATUS": "LIST-EXTENDED",
	"ESORT":       "SORT",
}

type placedWord struct {
	at   place
	word string
}

// wordNeeds is capabilityWords the other way round: a word is known when one of its
// capabilities is offered, or when it has none.
var wordNeeds = func() map[placedWord][]string {
	needs := map[placedWord][]string{}
	for capability, places := range capabilityWords {
		for at, words := range places {
			for word := range strings.FieldsSeq(words) {
				w := placedWord{at, strings.Replace(word, "UID-", "UID ", 1)}
				needs[w] = append(needs[w], capability)
			}
		}
	}
	return needs
}()

// knows reports whether a word at some place is known to the account.
func (c *conn) knows(at place, word string) bool {
	if len(c.hidden) == 0 {
		return true
	}
	needs := wordNeeds[placedWord{at, word}]
	return len(needs) == 0 || slices.ContainsFunc(needs, c.offers)
}

// knows is conn.knows of the connection that sent the command.
func (p *parser) knows(at place, word string) bool { return p.known == nil || p.known(at, word) }

// offers reports whether a capability is hidden neither by itself nor with one that it
// rests on. A value after "=" is not looked at unless it was named.
func (c *conn) offers(name string) bool {
	plain, _, _ := strings.Cut(name, "=")
	for capability, others := range restsOn {
		if strings.EqualFold(name, capability) && slices.ContainsFunc(strings.Fields(others), func(o string) bool { return !c.offers(o) }) {
			return false
		}
	}
	return !slices.ContainsFunc(c.hidden, func(h string) bool { return strings.EqualFold(h, name) || strings.EqualFold(h, plain) })
}

// hide takes over what is hidden from the account that logs in.
func (c *conn) hide(login string) {
	if c.srv.opt.Hidden != nil {
		c.hidden = c.srv.opt.Hidden(login)
	}
}
