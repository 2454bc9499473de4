package mail

import "strings"

// NewText splits the text of a reply into what is new and what is old. parent is
// the plain text of the mail it answers, "" if that is not known.
//
// Old are: quoted lines ("> "); the line or lines that introduce them, in any
// language; a header block as Outlook writes it and what follows; a forwarded text;
// and text of the parent that stands there without marks. A signature belongs to
// neither. When answers stand between quoted lines, inline is true and newText holds
// above each answer the last quoted lines before it.
func NewText(text, parent string) (newText, quoted string, inline bool) {
	r := splitReply(text, parent)
	return r.New, r.Quoted, r.Inline
}

// reply is the result of splitting.
type reply struct {
	New, Quoted string
	Inline      bool
	Forward     bool // a forwarded text was found
}

// kind of a line.
type lineKind int

const (
	lineNew    lineKind = iota // the person's, until shown otherwise
	lineBlank                  // empty, goes with its neighbours
	lineQuote                  // marked with >
	lineOld                    // old without a mark
	lineHead                   // introduces what is old
	lineSigned                 // signature
)

// replyLine is one line of a reply.
type replyLine struct {
	raw   string
	text  string // visible, without quote marks, trimmed
	depth int
	words []string
	kind  lineKind
	end   int // position in the parent after its words; -1 if they are not there
}

// splitter works on the lines of one reply.
type splitter struct {
	lines   []replyLine
	parent  *parentIndex
	forward bool
	region  int // where unmarked old text begins; len(lines) if nowhere
}

func splitReply(text, parent string) reply {
	s := &splitter{parent: newParentIndex(parent)}
	s.read(text)
	s.match()
	s.findRegion()
	s.unmarked()
	s.introductions()
	s.rewrapped()
	s.belowRegion()
	s.leadingQuote()
	s.signatures()
	return s.result()
}

// read makes the lines.
func (s *splitter) read(text string) {
	for _, raw := range splitLines(text) {
		l := replyLine{raw: raw, end: -1}
		l.text, l.depth = unquote(visible(raw))
		l.words = wordsOf(l.text)
		switch {
		case l.depth > 0:
			l.kind = lineQuote
		case l.text == "":
			l.kind = lineBlank
		}
		s.lines = append(s.lines, l)
	}
	s.region = len(s.lines)
}

// unquote removes quote marks, of which it returns the number, and blanks.
func unquote(line string) (text string, depth int) {
	for {
		t := strings.TrimLeft(line, " ")
		if len(line)-len(t) > 3 && depth == 0 || !strings.HasPrefix(t, ">") {
			return strings.TrimSpace(line), depth
		}
		line = t[1:]
		depth++
	}
}

// match looks each line up in the parent.
func (s *splitter) match() {
	prev := -1
	for i := range s.lines {
		l := &s.lines[i]
		if len(l.words) == 0 {
			continue
		}
		l.end = s.parent.find(l.words, prev)
		prev = l.end
	}
}

// next returns the index of the first line from i on that is not empty.
func (s *splitter) next(i int) int {
	for i < len(s.lines) && s.lines[i].text == "" {
		i++
	}
	return i
}

// findRegion looks for the place from which on unmarked text is old: a forward's or
// Outlook's header block, or an introduction that the parent's text follows.
func (s *splitter) findRegion() {
	for i := range s.lines {
		if s.lines[i].kind != lineNew {
			continue
		}
		if begin, forward, ok := s.headerBlock(i); ok {
			s.forward = forward
			s.open(s.rulesAbove(i), begin)
			return
		}
		if n := s.introduction(i); n > 0 {
			after := s.next(i + n)
			if after < len(s.lines) && s.lines[after].kind != lineQuote && s.beginsParent(after) || after == len(s.lines) {
				s.open(i, i+n)
				return
			}
		}
	}
}

// open makes the lines from head to body an introduction, what follows the region.
func (s *splitter) open(head, body int) {
	for i := head; i < body; i++ {
		s.lines[i].kind = lineHead
	}
	s.region = body
}

// rulesAbove returns the first of the lines right above line i that are rules or empty,
// which programs put above a header block.
func (s *splitter) rulesAbove(i int) int {
	for j := i - 1; j >= 0 && (s.lines[j].kind == lineBlank || s.lines[j].kind == lineNew && ruleRE.MatchString(s.lines[j].text)); j-- {
		if s.lines[j].kind == lineNew {
			i = j
		}
	}
	return i
}

// beginsParent reports whether the parent's text begins at line i or goes on there.
func (s *splitter) beginsParent(i int) bool {
	l := s.lines[i]
	if l.end < 0 && !s.parent.alike(l.words) {
		first := l.words[:min(len(l.words), shingle)]
		return len(first) > 0 && s.parent.hasAt(0, first)
	}
	return true
}

// unmarked finds the parent's text without marks and without an introduction: a run
// of its lines that holds most of it, or much.
func (s *splitter) unmarked() {
	if len(s.parent.words) < 8 {
		return
	}
	for i := 0; i < s.region; i++ {
		if s.lines[i].kind != lineNew || s.lines[i].end < 0 {
			continue
		}
		end, words, n := s.parentRun(i)
		if words*10 >= len(s.parent.words)*6 || words >= 40 && n >= 3 {
			s.makeOld(i, end)
		}
		i = end - 1
	}
}

// parentRun returns the end of a run of unmarked lines of the parent that begins at
// line i, its words and its lines. Lines without words may lie within.
func (s *splitter) parentRun(i int) (end, words, n int) {
	for j := i; j < s.region; j++ {
		l := s.lines[j]
		switch {
		case l.kind == lineBlank, l.kind == lineNew && len(l.words) == 0:
		case l.kind == lineNew && l.end >= 0:
			end, words, n = j+1, words+len(l.words), n+1
		default:
			return end, words, n
		}
	}
	return end, words, n
}

// makeOld makes the new lines in [i, j) old.
func (s *splitter) makeOld(i, j int) {
	for ; i < j; i++ {
		if s.lines[i].kind == lineNew {
			s.lines[i].kind = lineOld
		}
	}
}

// introductions marks the lines that introduce a quoted block.
func (s *splitter) introductions() {
	for i := 0; i < s.region; i++ {
		if s.lines[i].kind != lineNew {
			continue
		}
		n := s.introduction(i)
		if n == 0 {
			continue
		}
		after := s.next(i + n)
		if after == len(s.lines) || s.lines[after].kind == lineQuote || s.lines[after].kind == lineOld {
			for k := i; k < i+n; k++ {
				s.lines[k].kind = lineHead
			}
		}
		i += n - 1
	}
}

// rewrapped finds ends of quoted lines that a program broke without marking the rest.
func (s *splitter) rewrapped() {
	for i := 1; i < s.region; i++ {
		l, before := s.lines[i], s.lines[i-1]
		wrapped := before.kind == lineQuote || before.kind == lineOld
		if l.kind == lineNew && wrapped && before.end >= 0 && len(l.words) > 0 && s.parent.hasAt(before.end, l.words) {
			s.lines[i].kind = lineOld
			s.lines[i].end = before.end + len(l.words)
		}
	}
}

// belowRegion tells new from old in the region of unmarked old text. What does not
// look like the parent's is new if it stands below the parent's end, or if the person
// wrote nothing above and the region is the parent's text for the most part.
func (s *splitter) belowRegion() {
	last, theirs, all, bottom := -1, 0, 0, s.region
	for i := s.region; i < len(s.lines); i++ {
		l := &s.lines[i]
		if l.kind != lineNew || len(l.words) == 0 {
			continue
		}
		all++
		if l.end >= 0 || s.parent.alike(l.words) {
			l.kind = lineOld
			theirs++
			bottom = i
			if l.end*10 >= len(s.parent.words)*8 {
				last = i
			}
		}
	}
	if s.forward || theirs == 0 {
		s.makeOld(s.region, len(s.lines))
		return
	}
	for i := s.region; i < bottom; i++ {
		if len(s.lines[i].words) == 0 {
			s.makeOld(i, i+1)
		}
	}
	if s.wroteAbove() || theirs*2 < all {
		s.makeOld(s.region, bottom)
		if last < 0 {
			s.makeOld(bottom, len(s.lines))
		}
	}
}

func (s *splitter) wroteAbove() bool {
	for i := range s.region {
		if s.lines[i].kind == lineNew {
			return true
		}
	}
	return false
}

// leadingQuote takes quoted lines at the very beginning for new when the parent is
// known and they are not its text, and nothing else is new: some programs quote the
// person's own words.
func (s *splitter) leadingQuote() {
	if !s.parent.known() {
		return
	}
	for i := range s.lines {
		if s.lines[i].kind == lineNew {
			return
		}
	}
	for i := s.next(0); i < len(s.lines) && s.lines[i].kind == lineQuote && s.lines[i].end < 0; i++ {
		if s.parent.alike(s.lines[i].words) || introduces(s.lines[i].text) {
			return
		}
		s.lines[i].kind = lineNew
		if s.lines[i].text == "" {
			s.lines[i].kind = lineBlank
		}
	}
}

// signatures cuts the signature from each run of new lines.
func (s *splitter) signatures() {
	for i := 0; i < len(s.lines); {
		j := i
		for j < len(s.lines) && (s.lines[j].kind == lineNew || s.lines[j].kind == lineBlank) {
			j++
		}
		if j > i {
			run := make([]string, 0, j-i)
			for _, l := range s.lines[i:j] {
				run = append(run, visible(l.raw))
			}
			for k := i + signatureAt(run); k < j; k++ {
				s.lines[k].kind = lineSigned
			}
		}
		i = j + 1
	}
}
