package imapserver

import (
	"slices"
	"strings"
	"sync"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// verdict is what is known about a key: unknown asks for more of the message.
type verdict int

const (
	noMatch verdict = iota
	match
	unknown
)

func verdictOf(b bool) verdict {
	if b {
		return match
	}
	return noMatch
}

// candidate is a message under search: its entry, and what has been read of it so far.
type candidate struct {
	seq       uint32
	e         mailbox.Entry
	have      mailbox.Want // which of these has been read
	structure *mime.Structure
	header    []byte
	body      mailbox.Body
	fields    []mime.Field // of header
	err       error
}

// matcher evaluates a search for one session, the cheapest first: what the snapshot
// answers needs no reading, what the stored structure answers needs no octets.
type matcher struct {
	c     *conn
	now   int64
	want  mailbox.Want // what all keys together may need
	cheap mailbox.Want // the part of it to look at before bodies are read; 0: nothing is gained by that
	*folder
	// fields: a key wants more of the structure than the Date field.
	fields bool
	dated  mime.Structure // holds the date of the candidate in hand, when that is all

	mu    *sync.Mutex // guards what follows, and the session, while twins are at work
	spans map[*searchKey][]span
	flags map[flagOf]bool
}

// twin returns a matcher for the same search on another goroutine.
func (m *matcher) twin() *matcher {
	other := *m
	other.folder = newFolder()
	return &other
}

type flagOf struct {
	flag imap.Flag
	set  mailbox.FlagSet
}

func (m *matcher) eval(k *searchKey, d *candidate) verdict {
	switch k.op {
	case opAll:
		return match
	case opAnd:
		return m.joined(k.kids, d, noMatch, match)
	case opOr:
		return m.joined(k.kids, d, match, noMatch)
	case opNot:
		switch m.eval(&k.kids[0], d) {
		case match:
			return noMatch
		case noMatch:
			return match
		}
		return unknown
	}
	if k.lacking.Has(d.e.Content) {
		return noMatch
	}
	if k.op < opSentSince || k.op >= opYounger && k.op <= opSmaller {
		return verdictOf(m.entry(k, d))
	}
	switch need := wantOf(k.op); {
	case need&^d.have != 0:
		return unknown
	case k.op == opThreadID:
		return verdictOf(threadID(d.structure, d.e) == k.text)
	case need == mailbox.WantStructure:
		return verdictOf(m.structure(k, d.structure))
	}
	return verdictOf(m.octets(k, d))
}

// wantOf says what a key is answered from.
func wantOf(op searchOp) mailbox.Want {
	switch {
	case op == opBody || op == opText:
		return mailbox.WantBody | mailbox.WantHeader | mailbox.WantStructure
	case op == opHeader:
		return mailbox.WantHeader
	case op >= opSentSince && op <= opSentOn, op >= opThreadID && op <= opCc:
		return mailbox.WantStructure
	}
	return 0
}

// plan finds out what the keys need.
func (m *matcher) plan(k *searchKey) {
	need := wantOf(k.op)
	m.want |= need
	m.fields = m.fields || need == mailbox.WantStructure && (k.op < opSentSince || k.op > opSentOn)
	if need&mailbox.WantBody == 0 {
		m.cheap |= need
	}
	for i := range k.kids {
		m.plan(&k.kids[i])
	}
}

// judge evaluates a key for a candidate of which want has been read. It keeps nothing
// of the item.
func (m *matcher) judge(k *searchKey, d *candidate, it *mailbox.Item, want mailbox.Want) (v verdict, err error) {
	switch {
	case want&mailbox.WantBody != 0:
		d.structure, err = it.Structure()
	case want&mailbox.WantStructure != 0 && !m.fields:
		d.structure = &m.dated
		m.dated.Date, err = it.Sent()
	case want&mailbox.WantStructure != 0:
		d.structure, err = it.Fields()
	}
	if err != nil {
		return noMatch, err
	}
	if want&mailbox.WantHeader != 0 {
		d.header = it.Header[:min(len(it.Header), mime.MaxHeader):len(it.Header)]
	}
	d.body, d.have = it.Body, want
	v = m.eval(k, d)
	d.structure, d.header, d.body, d.fields, d.have = nil, nil, nil, nil, 0
	return v, d.err
}

// joined evaluates keys until one gives the verdict that decides; all others give rest.
func (m *matcher) joined(kids []searchKey, d *candidate, decides, rest verdict) verdict {
	for i := range kids {
		switch m.eval(&kids[i], d) {
		case decides:
			return decides
		case unknown:
			rest = unknown
		}
	}
	return rest
}

// entry answers from the snapshot.
func (m *matcher) entry(k *searchKey, d *candidate) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	day := func() int64 { return floorDay(d.e.Date + int64(d.e.Zone)*60) }
	switch k.op {
	case opSeq, opUID:
		return m.inSet(k, int(d.seq)-1)
	case opFlag:
		return m.hasFlag(k.flag, d.e)
	case opRecent:
		return m.c.sel.isRecent(d.e.UID)
	case opSince:
		return day() >= k.n
	case opBefore:
		return day() < k.n
	case opOn:
		return day() == k.n
	case opYounger:
		return d.e.Date >= m.now-k.n
	case opOlder:
		return d.e.Date <= m.now-k.n
	case opModSeq:
		return int64(d.e.ModSeq) >= k.n
	case opSavedSince:
		return savedDay(d.e) >= k.n
	case opSavedBefore:
		return savedDay(d.e) < k.n
	case opSavedOn:
		return savedDay(d.e) == k.n
	case opEmailID:
		return emailID(d.e) == k.text
	case opLarger:
		return int64(d.e.Size) > k.n
	}
	return int64(d.e.Size) < k.n
}

func (m *matcher) inSet(k *searchKey, pos int) bool {
	spans, resolved := m.spans[k]
	if !resolved {
		if k.set.saved {
			spans = m.c.sel.savedSpans()
		} else {
			spans, _ = m.c.sel.resolve(k.set, k.op == opUID)
		}
		m.spans[k] = spans
	}
	i, found := slices.BinarySearchFunc(spans, pos, func(s span, pos int) int { return s.from - pos })
	return found || i > 0 && pos < spans[i-1].to
}

func (m *matcher) hasFlag(f imap.Flag, e mailbox.Entry) bool {
	if f == imap.FlagDeleted {
		return e.Deleted
	}
	key := flagOf{f, e.Flags}
	has, known := m.flags[key]
	if !known {
		has = hasFlag(m.c.show(e.Flags).flags, f)
		m.flags[key] = has
	}
	return has
}

// structure answers from the stored structure.
func (m *matcher) structure(k *searchKey, s *mime.Structure) bool {
	switch k.op {
	case opSentSince:
		return !s.Date.IsZero() && dayOf(s.Date) >= k.n
	case opSentBefore:
		return !s.Date.IsZero() && dayOf(s.Date) < k.n
	case opSentOn:
		return !s.Date.IsZero() && dayOf(s.Date) == k.n
	case opSubject:
		return m.contains(s.Subject, k.text)
	case opFrom:
		return m.anyAddress(s.From, k.text)
	case opTo:
		return m.anyAddress(s.To, k.text)
	}
	return m.anyAddress(s.Cc, k.text)
}

func (m *matcher) anyAddress(list []mime.Address, text string) bool {
	return slices.ContainsFunc(list, func(a mime.Address) bool { return m.contains(a.Searched(), text) })
}

// octets answers from the message itself.
func (m *matcher) octets(k *searchKey, d *candidate) (found bool) {
	if k.op == opHeader {
		return m.inField(d, k.name, k.text)
	}
	err := d.structure.EachSearched(d.body, d.header, func(place mime.Searched) bool {
		found = (!place.Top || k.op == opText) && m.inHeader(place, k.text) || m.inText(place, k.text, &d.err)
		return !found && d.err == nil
	})
	if d.err == nil {
		d.err = err
	}
	return found
}

// inField looks for text in the decoded fields called name.
func (m *matcher) inField(d *candidate, name, text string) bool {
	if text != "" && m.headerLacks(d.header, text) {
		return false
	}
	if d.fields == nil {
		d.fields = mime.Fields(d.header)
	}
	return slices.ContainsFunc(d.fields, func(f mime.Field) bool {
		return strings.EqualFold(f.Name, name) && m.contains(f.Text(), text)
	})
}

func (m *matcher) inHeader(place mime.Searched, text string) (found bool) {
	if place.Part.Filename == "" && m.headerLacks(place.Header, text) {
		return false
	}
	place.EachField(func(field string) bool {
		found = m.contains(field, text)
		return !found
	})
	return found
}

func (m *matcher) inText(place mime.Searched, text string, fault *error) bool {
	if !place.HasText() {
		return false
	}
	if lacks, err := m.partLacks(place, text); lacks || err != nil {
		*fault = err
		return false
	}
	content, err := place.Text()
	*fault = err
	return err == nil && m.contains(content, text)
}
