package mime

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxIndent = 8       // levels of quotes and of lists that are shown
	maxURL    = 2 << 10 // octets of a URL that are shown
)

// textWriter lays out text: it collapses spaces, keeps empty lines to one, and writes
// what stands before each line.
type textWriter struct {
	b           strings.Builder
	breaks      int // line ends wanted before the next text
	space       bool
	tab         bool
	lineText    bool // the line has text
	pre         int
	skipNewline bool // the first newline of a pre is not part of it
	quote       int
	lastQuote   int
	lists       int
	bullet      string
}

func (w *textWriter) String() string {
	v := strings.TrimRight(w.b.String(), " \t\n")
	if v == "" {
		return ""
	}
	return v + "\n"
}

func (w *textWriter) len() int { return w.b.Len() }

// breakFor wants the line ends that a block has around it.
func (w *textWriter) breakFor(k tagKind) {
	switch {
	case k&paragraph != 0 && w.lists == 0 || k&paragraph != 0 && w.pre > 0:
		w.breaks = max(w.breaks, 2)
	case k&(ownLine|paragraph) != 0:
		w.breaks = max(w.breaks, 1)
	}
}

// newline is a line break of the text itself.
func (w *textWriter) newline() {
	w.breaks = min(w.breaks+1, 2)
	w.space, w.tab = false, false
}

// cell separates the cells of a row.
func (w *textWriter) cell() {
	if w.lineText && w.breaks == 0 {
		w.tab = true
	}
}

func (w *textWriter) text(s string) {
	if w.pre > 0 {
		w.preText(s)
		return
	}
	for s != "" {
		i := strings.IndexFunc(s, func(r rune) bool { return !isHTMLSpace(r) })
		if i != 0 {
			w.space = true
		}
		if i < 0 {
			return
		}
		s = s[i:]
		end := strings.IndexFunc(s, isHTMLSpace)
		if end < 0 {
			end = len(s)
		}
		w.word(s[:end])
		s = s[end:]
	}
}

func isHTMLSpace(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '\f' }

func (w *textWriter) word(s string) {
	s = visible(s)
	if s == "" {
		return
	}
	w.begin()
	if w.lineText {
		switch {
		case w.tab:
			w.b.WriteByte('\t')
		case w.space:
			w.b.WriteByte(' ')
		}
	}
	w.space, w.tab, w.lineText = false, false, true
	w.b.WriteString(s)
}

// visible removes characters that take no room: they pad previews and split words that
// filters look for. A no-break space becomes a space.
func visible(s string) string {
	if isASCII(s) {
		return strings.Map(dropControl, s)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u00a0' || r == '\u202f':
			return ' '
		case r == '\u00ad' || r == '\u034f' || isBidi(r) && r != '\u200d' || r >= 0xe0000 && r <= 0xe007f:
			return -1
		case r == utf8.RuneError:
			return r
		}
		return dropControl(r)
	}, s)
}

func dropControl(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}

// begin writes the wanted line ends and what stands before the line.
func (w *textWriter) begin() {
	if w.b.Len() > 0 {
		for i := range w.breaks {
			w.b.WriteByte('\n')
			if i+1 < w.breaks {
				w.marks(min(w.lastQuote, w.quote), false)
			}
		}
	}
	if w.b.Len() == 0 || w.breaks > 0 {
		w.marks(w.quote, true)
		w.indent()
		w.lineText, w.lastQuote = false, w.quote
	} else if w.bullet != "" {
		w.b.WriteString(w.bullet)
	}
	w.breaks, w.bullet = 0, ""
}

// marks writes the quote marks of a line.
func (w *textWriter) marks(n int, text bool) {
	if n = min(n, maxIndent); n == 0 {
		return
	}
	w.b.WriteString(strings.Repeat(">", n))
	if text {
		w.b.WriteByte(' ')
	}
}

func (w *textWriter) indent() {
	n := min(w.lists, maxIndent)
	if w.bullet != "" {
		n--
	}
	if n > 0 {
		w.b.WriteString(strings.Repeat("  ", n))
	}
	w.b.WriteString(w.bullet)
}

// preText keeps spaces and lines.
func (w *textWriter) preText(s string) {
	if w.skipNewline {
		s = strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n")
		w.skipNewline = false
	}
	s = visible(strings.ReplaceAll(lineFeeds(s), "\u00a0", " "))
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			w.breaks++
		}
		if l != "" {
			w.begin()
			w.b.WriteString(l)
			w.lineText = true
		}
	}
}

// link writes the URL of a link whose text began at mark, unless the text is the URL.
func (w *textWriter) link(href string, mark int) {
	href = strings.TrimSpace(visible(strings.Join(strings.Fields(href), "")))
	scheme, rest, ok := strings.Cut(href, ":")
	if !ok || rest == "" || len(w.b.String()) <= mark {
		return
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto", "tel", "ftp":
	default:
		return
	}
	text := strings.Trim(w.b.String()[mark:], " \t\n>")
	if sameURL(text, href) {
		return
	}
	w.b.WriteString(" <" + cutText(href, maxURL) + ">")
}

// sameURL tells whether text says the URL already.
func sameURL(text, href string) bool {
	plain := func(v string) string {
		v = strings.ToLower(strings.TrimSpace(v))
		for _, p := range []string{"mailto:", "tel:", "https://", "http://"} {
			v = strings.TrimPrefix(v, p)
		}
		return strings.TrimRight(v, "/")
	}
	return len(text) < maxURL && plain(text) == plain(href)
}

func itoa(n int) string { return strconv.Itoa(n) }
