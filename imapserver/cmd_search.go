package imapserver

import (
	"runtime"
	"sync"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// search answers SEARCH and UID SEARCH.
func (c *conn) search(p *parser, num numbering) (reply, error) {
	s := p.searching()
	if c.rev2 && !s.extended { // IMAP4rev2 has no SEARCH response
		s.extended, s.ReturnAll = true, true
	}
	hits, refused, err := c.found(p, s)
	if refused != nil || err != nil {
		return refused.orNone(), err
	}
	if s.ReturnSave {
		c.sel.saved = s.toSave(hits)
	}
	switch {
	case s.onlySaves(): // RFC 5182 section 2.1
	case s.extended:
		c.writeESearch(s, hits, num)
	default:
		c.writeNumbers("SEARCH", s, hits, num)
	}
	return c.searched("SEARCH", num), nil
}

// found returns what a command that has been read finds; refused, when its charset is
// not known. "$" is empty after a search that failed (RFC 5182 section 2.1).
func (c *conn) found(p *parser, s *searching) (hits []hit, refused *reply, err error) {
	if p.err == nil && s.charset != "" {
		if s.ReturnSave {
			c.sel.saved = nil
		}
		return nil, &reply{no, "BADCHARSET (UTF-8 US-ASCII)", "Unknown charset: use UTF-8"}, nil
	}
	if err := p.end(); err != nil {
		return nil, nil, err
	}
	if s.modSeqs {
		c.aware()
	}
	hits, err = c.find(&s.key)
	if s.ReturnSave {
		c.sel.saved = nil
	}
	return hits, nil, err
}

// writeNumbers writes the answer to a search without RETURN.
func (c *conn) writeNumbers(name string, s *searching, hits []hit, num numbering) {
	c.out.str("* ").str(name)
	for _, h := range hits {
		c.out.str(" ").num(uint64(h.number(num)))
	}
	if s.modSeqs && len(hits) > 0 { // RFC 7162 section 3.1.6
		c.out.str(" (MODSEQ ").num(uint64(highest(hits))).str(")")
	}
	c.out.crlf()
}

func (s *searching) onlySaves() bool {
	return s.ReturnSave && !s.ReturnMin && !s.ReturnMax && !s.ReturnAll && !s.ReturnCount && s.partial == nil
}

type hit struct {
	seq    uint32
	uid    imap.UID
	modSeq mailbox.ModSeq
}

func (h hit) number(num numbering) uint32 {
	if num == uidNumbers {
		return uint32(h.uid)
	}
	return h.seq
}

// toSave picks what "$" holds afterwards: everything, unless only the ends were asked
// for (RFC 5182 section 2.4). Neighbours make one range: nothing can come between them.
func (s *searching) toSave(hits []hit) (set imap.UIDSet) {
	hits = s.returned(hits)
	for i, h := range hits {
		if i > 0 && hits[i-1].seq+1 == h.seq {
			set[len(set)-1].Stop = h.uid
			continue
		}
		set = append(set, imap.UIDRange{Start: h.uid, Stop: h.uid})
	}
	return set
}

// returned picks of the hits those that the answer speaks of: the ends and a part, when
// only these were asked for (RFC 5182 section 2.4, RFC 4731 section 3.2, RFC 9394
// section 3.2).
func (s *searching) returned(hits []hit) []hit {
	n := len(hits)
	if n == 0 || s.ReturnAll || s.ReturnCount || !s.ReturnMin && !s.ReturnMax && s.partial == nil {
		return hits
	}
	from, to := 0, 0
	if s.partial != nil {
		from, to = s.partial.of(n)
	}
	part := hits[from:max(from, to)]
	out := make([]hit, 0, len(part)+2)
	if s.ReturnMin && (from > 0 || len(part) == 0) {
		out = append(out, hits[0])
	}
	out = append(out, part...)
	if s.ReturnMax && (len(out) == 0 || out[len(out)-1] != hits[n-1]) {
		out = append(out, hits[n-1])
	}
	return out
}

// highest returns the highest mod-sequence of hits.
func highest(hits []hit) (m mailbox.ModSeq) {
	for _, h := range hits {
		m = max(m, h.modSeq)
	}
	return m
}

func (c *conn) writeESearch(s *searching, hits []hit, num numbering) {
	number := func(h hit) uint32 { return h.number(num) }
	w := c.out
	w.str("* ESEARCH (TAG ").quoted(c.tag, false).str(")")
	if num == uidNumbers {
		w.str(" UID")
	}
	if n := len(hits); n > 0 {
		if s.ReturnMin {
			w.str(" MIN ").num(uint64(number(hits[0])))
		}
		if s.ReturnMax {
			w.str(" MAX ").num(uint64(number(hits[n-1])))
		}
		if s.ReturnAll {
			w.str(" ALL ").bytes(appendRuns(nil, n, func(i int) uint32 { return number(hits[i]) }))
		}
	}
	if s.partial != nil {
		from, to := s.partial.of(len(hits))
		w.str(" PARTIAL (").str(s.partial.text).str(" ")
		if from < to {
			w.bytes(appendRuns(nil, to-from, func(i int) uint32 { return number(hits[from+i]) }))
		} else {
			w.str("NIL")
		}
		w.str(")")
	}
	if s.ReturnCount {
		w.str(" COUNT ").num(uint64(len(hits)))
	}
	if m := highest(s.returned(hits)); s.modSeqs && m > 0 {
		w.str(" MODSEQ ").num(uint64(m))
	}
	w.crlf()
}

// find returns the messages that match, in order.
func (c *conn) find(k *searchKey) ([]hit, error) {
	m := &matcher{c: c, now: time.Now().Unix(), mu: &sync.Mutex{}, spans: map[*searchKey][]span{}, flags: map[flagOf]bool{}, folder: newFolder()}
	m.plan(k)
	c.sel.missed.Store(false)
	if c.sel.len() >= fewMessages {
		if err := c.consult(k); err != nil {
			return nil, err
		}
	}
	var hits []hit
	var open []*candidate // those that the snapshot does not decide
	var err error
	decide := func() bool {
		var more []hit
		more, err = c.read(m, k, open)
		hits, open = mergeHits(hits, more), open[:0]
		return err == nil
	}
	var d candidate // one for all, and a copy of those that need more than the snapshot
	c.sel.each([]span{{0, c.sel.len()}}, func(seq uint32, e mailbox.Entry) bool {
		d = candidate{seq: seq, e: e}
		switch m.eval(k, &d) {
		case match:
			hits = append(hits, hit{seq, e.UID, e.ModSeq})
		case unknown:
			kept := d
			open = append(open, &kept)
			return len(open) < batchSize || decide()
		}
		return true
	})
	if err == nil && len(open) > 0 {
		decide()
	}
	return hits, err
}

// fewMessages are searched without asking the index.
const fewMessages = 32

// mergeHits joins two lists in order.
func mergeHits(a, b []hit) []hit {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 || a[len(a)-1].seq < b[0].seq {
		return append(a, b...)
	}
	out := make([]hit, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].seq < b[0].seq {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// read decides candidates by what is stored of them, the cheapest first. One that is
// gone does not match.
func (c *conn) read(m *matcher, k *searchKey, open []*candidate) (hits []hit, err error) {
	if m.cheap != 0 {
		if hits, open, err = c.readStage(m, k, open, m.cheap); err != nil {
			return nil, err
		}
	}
	if len(open) == 0 {
		return hits, nil
	}
	more, err := c.readBodies(m, k, open)
	return mergeHits(hits, more), err
}

// readBodies decides candidates for good, on two goroutines when that is worth it:
// reading and decoding text is what a search spends its time with.
func (c *conn) readBodies(m *matcher, k *searchKey, open []*candidate) ([]hit, error) {
	if m.want&mailbox.WantBody == 0 || len(open) < 16 || runtime.GOMAXPROCS(0) == 1 {
		hits, _, err := c.readStage(m, k, open, m.want)
		return hits, err
	}
	var first struct {
		hits []hit
		err  error
	}
	half := len(open) / 2
	ended := inBackground(func() { first.hits, _, first.err = c.readStage(m.twin(), k, open[:half], m.want) })
	hits, _, err := c.readStage(m, k, open[half:], m.want)
	ended()
	if err == nil {
		err = first.err
	}
	return append(first.hits, hits...), err
}

// inBackground runs fn on a goroutine. The function it returns waits for the end, and
// passes on a panic, so that it ends the connection only.
func inBackground(fn func()) (wait func()) {
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		fn()
	}()
	return func() {
		if p := <-panicked; p != nil {
			panic(p)
		}
	}
}

// readStage reads want of candidates and returns those that match, and those that
// this did not decide.
func (c *conn) readStage(m *matcher, k *searchKey, open []*candidate, want mailbox.Want) (hits []hit, rest []*candidate, err error) {
	ids := make([]mailbox.MessageID, len(open))
	for i, d := range open {
		ids[i] = d.e.Message
	}
	next, seen := 0, 0
	err = c.srv.opt.Store.Read(c.ctx, c.ident.Account, ids, want, func(it *mailbox.Item) error {
		seen++
		for next < len(open) && open[next].e.Message != it.Message {
			next++
		}
		if next == len(open) || c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		d := open[next]
		next++
		v, err := m.judge(k, d, it, want)
		switch v {
		case match:
			hits = append(hits, hit{d.seq, d.e.UID, d.e.ModSeq})
		case unknown:
			rest = append(rest, d)
		}
		return err
	})
	if seen < len(ids) {
		c.sel.missed.Store(true)
	}
	return hits, rest, err
}
