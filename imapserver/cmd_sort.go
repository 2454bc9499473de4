package imapserver

import (
	"cmp"
	"slices"

	"pizza/mailbox"
)

// sortBy is what SORT can sort by (RFC 5256 section 3, RFC 5957).
type sortBy int

const (
	byArrival sortBy = iota
	bySize
	byDate // from here on the stored header fields are needed
	bySubject
	byFrom
	byTo
	byCc
	byDisplayFrom
	byDisplayTo
)

var sortNames = map[string]sortBy{
	"ARRIVAL": byArrival, "SIZE": bySize, "DATE": byDate, "SUBJECT": bySubject, "FROM": byFrom, "TO": byTo, "CC": byCc,
	"DISPLAYFROM": byDisplayFrom, "DISPLAYTO": byDisplayTo,
}

type criterion struct {
	by      sortBy
	reverse bool
}

// maxCriteria is how many criteria a SORT may name.
const maxCriteria = 20

// sorting is a SORT command as sent.
type sorting struct {
	searching
	criteria []criterion
}

func (p *parser) sorting() *sorting {
	s := &sorting{}
	p.sp()
	if p.knows(inSortReturn, "RETURN") && p.keyword("RETURN") { // RFC 5267 section 3.1
		p.returning(&s.searching)
	}
	p.list(func() { s.criteria = append(s.criteria, p.criterion()) })
	if n := len(s.criteria); n == 0 || n > maxCriteria {
		p.fail("Bad number of sort criteria")
	}
	p.charsetAndKeys(&s.searching)
	return s
}

func (p *parser) criterion() (c criterion) {
	name := p.word()
	if c.reverse = name == "REVERSE"; c.reverse {
		p.sp()
		name = p.word()
	}
	by, known := sortNames[name]
	if c.by = by; !known || !p.knows(inSort, name) {
		p.fail("Unknown sort criterion")
	}
	return c
}

// charsetAndKeys reads the charset, which SORT and THREAD cannot do without, and the
// search keys.
func (p *parser) charsetAndKeys(s *searching) {
	p.sp()
	s.setCharset(p.astring())
	p.sp()
	p.keys(s)
}

// sort answers SORT and UID SORT.
func (c *conn) sort(p *parser, num numbering) (reply, error) {
	s := p.sorting()
	hits, refused, err := c.found(p, &s.searching)
	if refused != nil || err != nil {
		return refused.orNone(), err
	}
	if hits, err = c.sorted(hits, s.criteria); err != nil {
		return reply{}, err
	}
	if s.ReturnSave {
		c.sel.saved = s.toSave(hits)
	}
	switch {
	case s.onlySaves():
	case s.extended:
		c.writeESearch(&s.searching, hits, num)
	default:
		c.writeNumbers("SORT", &s.searching, hits, num)
	}
	return c.searched("SORT", num), nil
}

// sortKey is what a criterion compares of one message.
type sortKey struct {
	n    int64
	text string
}

type sortRow struct {
	hit
	keys []sortKey
}

// sorted sorts by the criteria, and what is equal by number.
func (c *conn) sorted(hits []hit, criteria []criterion) ([]hit, error) {
	keys := make([]sortKey, 0, len(hits)*len(criteria))
	rows := make([]sortRow, 0, len(hits))
	add := func(r *mailRow) {
		from := len(keys)
		for _, k := range criteria {
			keys = append(keys, r.sortKey(k.by))
		}
		rows = append(rows, sortRow{r.hit, keys[from:]})
	}
	if err := c.eachRow(hits, wantOfSort(criteria), add); err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b sortRow) int {
		for i, k := range criteria {
			n := cmp.Compare(a.keys[i].n, b.keys[i].n)
			if n == 0 {
				n = cmp.Compare(a.keys[i].text, b.keys[i].text)
			}
			if n != 0 {
				if k.reverse {
					return -n
				}
				return n
			}
		}
		return cmp.Compare(a.seq, b.seq)
	})
	hits = hits[:0]
	for _, r := range rows {
		hits = append(hits, r.hit)
	}
	return hits, nil
}

// wantOfSort says what the criteria are answered from.
func wantOfSort(criteria []criterion) mailbox.Want {
	if slices.ContainsFunc(criteria, func(k criterion) bool { return k.by >= byDate }) {
		return mailbox.WantStructure
	}
	return 0
}

func (r *mailRow) sortKey(by sortBy) sortKey {
	switch by {
	case byArrival:
		return sortKey{n: r.entry.Date}
	case bySize:
		return sortKey{n: int64(r.entry.Size)}
	case byDate:
		return sortKey{n: r.sentDate()}
	case bySubject:
		base, _ := baseSubject(r.fields.Subject)
		return sortKey{text: collate(base)}
	case byFrom:
		return sortKey{text: collate(address(r.fields.From))}
	case byTo:
		return sortKey{text: collate(address(r.fields.To))}
	case byCc:
		return sortKey{text: collate(address(r.fields.Cc))}
	case byDisplayFrom:
		return sortKey{text: collate(display(r.fields.From))}
	}
	return sortKey{text: collate(display(r.fields.To))} // byDisplayTo
}
