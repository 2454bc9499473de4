package imapserver

// PARTIAL (RFC 9394): a page of what SEARCH finds, or of what UID FETCH names.

// partial is a range of results, counted from 1, or backwards from the last one.
type partial struct {
	from, to int // from is the smaller one
	last     bool
	text     string // as it was asked for
}

// partial reads a partial-range.
func (p *parser) partial() *partial {
	p.sp()
	start := p.i
	r := &partial{last: p.accept('-')}
	a := p.setNumber()
	p.expect(':')
	if r.last {
		p.expect('-')
	}
	b := p.setNumber()
	if a == 0 || b == 0 {
		p.fail("Bad range")
	}
	r.from, r.to, r.text = int(min(a, b)), int(max(a, b)), string(p.b[start:p.i])
	return r
}

// of returns the range as indices [from, to) of n results.
func (r *partial) of(n int) (from, to int) {
	if r.last {
		return max(n-r.to, 0), max(n-r.from+1, 0)
	}
	return min(r.from-1, n), min(r.to, n)
}

// part returns the spans of those messages in spans that r names. Ghosts do not count.
func (v *view) part(spans []span, r *partial) (out []span) {
	var live []span
	n := 0
	for _, s := range spans {
		for pos := s.from; pos < s.to; {
			run, ghosts := v.run(pos, s.to)
			pos += ghosts
			if k := run.to - run.from; k > 0 {
				live = append(live, span{pos, pos + k})
				n, pos = n+k, pos+k
			}
		}
	}
	from, to := r.of(n)
	for _, s := range live {
		k := s.to - s.from
		if a, b := max(from, 0), min(to, k); a < b {
			out = append(out, span{s.from + a, s.from + b})
		}
		from, to = from-k, to-k
	}
	return out
}
