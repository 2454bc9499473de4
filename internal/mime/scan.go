package mime

import (
	"bytes"
	"io"
)

// Parse reads size octets of r. It never fails on content; an error is one of r's.
func Parse(r io.ReaderAt, size int64) (*Structure, error) {
	s := &scanner{
		lr:     newLineReader(r, max(size, 0)),
		size:   max(size, 0),
		open:   make(map[string][]int),
		budget: keepBudget,
		st:     &Structure{},
	}
	s.push("text", "plain", 0)
	if err := s.run(); err != nil {
		return nil, err
	}
	return s.structure(), nil
}

// keepBudget is how many octets of parameters, file names and nested envelopes are
// kept for one message. What comes after is left out of the description.
const keepBudget = 8 << 20

// node is a part with what only BODYSTRUCTURE needs, already in wire form.
type node struct {
	part     *Part
	kids     []*node
	boundary string // as in the message; empty for what is no multipart
	nested   bool   // message/rfc822 whose message is described
	envelope []byte // of the message whose top this part is
	wire     wireFields
}

// frame is a part that has not ended.
type frame struct {
	n       *node
	bodyLF  int64 // line feeds before the body
	defType string
	defSub  string
}

// junkLine remembers the first line of a header that is none, in case the body
// starts there.
type junkLine struct {
	set    bool
	off    int64
	lf     int64
	header int // length of the header buffer before it
}

// scanner is the state of one pass. Its stack holds the parts that are open at the
// current line; the top one is in its header (inHeader) or in its body.
type scanner struct {
	lr     *lineReader
	size   int64
	st     *Structure
	root   *node
	stack  []frame
	open   map[string][]int // boundary -> frames that wait for it, outermost first
	parts  int
	budget int
	rest   bool // MaxParts is reached: everything to the end is the last part

	inHeader bool
	header   []byte
	fields   int // fields seen in this header
	junk     junkLine

	lf          int64 // line feeds so far
	lineLen     int64 // length of the previous line without its end
	lineEnd     int64 // length of the previous line's end
	lastPartial bool  // the message does not end in a line feed
}

func (s *scanner) run() error {
	for {
		if !s.inHeader {
			s.skip(s.lr.skipTo())
		}
		l, ok, err := s.lr.next()
		if err != nil {
			return err
		}
		if ok {
			s.line(l)
			continue
		}
		if s.inHeader {
			s.endHeader(s.size)
			continue
		}
		s.closeFrames(0, s.size, s.size)
		return nil
	}
}

// skip counts the lines of body octets that hold no delimiter.
func (s *scanner) skip(b []byte) {
	if len(b) == 0 {
		return
	}
	s.lf += int64(bytes.Count(b, []byte{'\n'}))
	start := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
	l := line{b: b[start:], first: true, last: true}
	s.lineEnd = int64(l.eol())
	s.lineLen = int64(len(l.b)) - s.lineEnd
	s.lastPartial = false
}

func (s *scanner) line(l line) {
	if l.first && l.last && !s.rest && bytes.HasPrefix(l.b, []byte("--")) {
		if i, closing := s.match(l.b[2:]); i >= 0 {
			s.delimiter(i, closing, l)
			return
		}
	}
	if s.inHeader && s.headerLine(l) {
		return // the body has started, and the line is dealt with
	}
	s.passed(l)
}

// passed accounts for a line.
func (s *scanner) passed(l line) {
	if l.first {
		s.lineLen = 0
	}
	s.lineEnd = int64(l.eol())
	s.lineLen += int64(len(l.b)) - s.lineEnd
	if s.lineEnd > 0 {
		s.lf++
	}
	s.lastPartial = s.lineEnd == 0
}

// match finds the innermost multipart that b, a line behind its "--", delimits, or -1.
// The whole line must match: RFC 2046 section 5.1.1 would allow more behind the
// boundary, but then one boundary could not be the beginning of another.
func (s *scanner) match(b []byte) (frame int, closing bool) {
	b = bytes.TrimRight(b, " \t\r\n")
	frame = s.waiting(b)
	if c, ok := bytes.CutSuffix(b, []byte("--")); ok {
		if i := s.waiting(bytes.TrimRight(c, " \t")); i > frame {
			return i, true
		}
	}
	return frame, false
}

func (s *scanner) waiting(boundary []byte) int {
	w := s.open[string(boundary)]
	if len(w) == 0 {
		return -1
	}
	return w[len(w)-1]
}

// delimiter ends what is inside frame i at line l and starts its next part.
func (s *scanner) delimiter(i int, closing bool, l line) {
	for s.inHeader {
		if s.endHeader(l.start) {
			return // back to the start of the body; this line comes again
		}
	}
	s.closeFrames(i+1, l.start-s.lineEnd, l.start)
	s.passed(l)
	if closing {
		s.forget(i)
		return
	}
	typ, sub := "text", "plain"
	if p := s.stack[i].n.part; p.Subtype == "digest" {
		typ, sub = "message", "rfc822" // RFC 2046 section 5.1.5
	}
	s.push(typ, sub, l.start+int64(len(l.b)))
}

// push starts a part whose header begins at off.
func (s *scanner) push(typ, sub string, off int64) {
	n := &node{part: &Part{Type: typ, Subtype: sub, Encoding: "7bit"}}
	n.part.Header = Range{off, off}
	n.part.Body = Range{off, off}
	if len(s.stack) == 0 {
		s.root = n
	} else {
		up := s.stack[len(s.stack)-1].n
		up.kids = append(up.kids, n)
		up.part.Children = append(up.part.Children, n.part)
	}
	s.stack = append(s.stack, frame{n: n, defType: typ, defSub: sub, bodyLF: s.lf})
	s.parts++
	if s.parts == MaxParts {
		opaque(n)
		s.rest, s.inHeader = true, false
		return
	}
	s.inHeader, s.fields, s.junk = true, 0, junkLine{}
	s.header = s.header[:0]
}

// closeFrames ends the frames from i on at the line that starts at next; end is next
// without the line end that belongs to a delimiter (RFC 2046 section 5.1.1).
func (s *scanner) closeFrames(i int, end, next int64) {
	for k := len(s.stack) - 1; k >= i; k-- {
		s.forget(k)
	}
	limit := next
	for k := i; k < len(s.stack); k++ {
		f := &s.stack[k]
		p := f.n.part
		// The line end of the delimiter may be the empty line of a header in here.
		p.Header = Range{min(p.Header.Start, limit), min(p.Header.End, limit)}
		p.Body.Start = p.Header.End
		p.Body.End = max(min(end, limit), p.Body.Start)
		limit = p.Body.End
		p.Lines = s.lines(f, next)
		if p.Type == "multipart" && len(f.n.kids) == 0 {
			p.Type, p.Subtype, p.Params = "text", "plain", nil
			f.n.wire.params = nil
		}
	}
	s.stack = s.stack[:i]
}

// lines counts the lines of a body that has just ended. A last line without line end
// is one.
func (s *scanner) lines(f *frame, next int64) int64 {
	p := f.n.part
	n := s.lf - f.bodyLF
	switch {
	case p.Body.Len() == 0:
		return 0
	case p.Body.End == next: // the end of the message
		if s.lastPartial {
			n++
		}
	case s.lineLen == 0: // the delimiter's line end is an empty line of its own
		n--
	}
	return n
}

// forget takes frame i's boundary out of the waiting ones.
func (s *scanner) forget(i int) {
	n := s.stack[i].n
	if n.boundary == "" {
		return
	}
	w := s.open[n.boundary]
	if w = w[:len(w)-1]; len(w) == 0 {
		delete(s.open, n.boundary)
	} else {
		s.open[n.boundary] = w
	}
	n.boundary = ""
}
