package mail

import (
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"pizza/internal/unseen"
)

// cleanModelText drops what a reader cannot see or what would reorder what they see;
// joiners stay, emoji and several scripts need them.
func cleanModelText(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u200c', r == '\u200d', r >= '\ufe00' && r <= '\ufe0f':
			return r
		case control(r), unseen.Invisible(r):
			return -1
		}
		return r
	}, s)
}

var (
	ownMailto = regexp.MustCompile(`(?i)mailto:(\S*localhost)`)
	manyBlank = regexp.MustCompile(`\n{4,}`)
)

// tidyMarkdown is the text/plain form of a model's Markdown: itself, without blanks
// at line ends and without mailto links to ourselves.
func tidyMarkdown(md string) string {
	return tidyPlain(breakMailto(cleanModelText(md)))
}

// breakMailto keeps programs from making a link to ourselves of a model's text.
func breakMailto(s string) string { return ownMailto.ReplaceAllString(s, "mailto $1") }

// tidyPlain has LF line ends, no blanks at line ends, no empty lines around, and no
// control characters.
func tidyPlain(s string) string {
	s = strings.Map(func(r rune) rune {
		if control(r) && r != '\r' || r == '\ufeff' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	lines := splitLines(s)
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return manyBlank.ReplaceAllString(strings.Trim(strings.Join(lines, "\n"), "\n"), "\n\n\n")
}

// plainHTML is the HTML of a text of ours: paragraphs that keep their line breaks.
func plainHTML(s string) string {
	var b strings.Builder
	for para := range strings.SplitSeq(s, "\n\n") {
		if para = strings.Trim(para, "\n"); para == "" {
			continue
		}
		if strings.HasPrefix(para, " ") || strings.Contains(para, "\n ") {
			b.WriteString("<pre>" + html.EscapeString(para) + "</pre>\n")
			continue
		}
		b.WriteString("<p>" + strings.ReplaceAll(html.EscapeString(para), "\n", "<br>\n") + "</p>\n")
	}
	return b.String()
}

func quietHTML(s string) string { return "<p><small>" + html.EscapeString(s) + "</small></p>" }

func page(body string) string {
	return "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"></head><body>\n" + body + "\n</body></html>\n"
}

// wrap breaks prose at spaces into lines of at most width characters.
func wrap(s string, width int) string {
	var b strings.Builder
	n := 0
	for _, w := range strings.Fields(s) {
		l := utf8.RuneCountInString(w)
		switch {
		case n > 0 && n+1+l > width:
			b.WriteByte('\n')
			n = 0
		case n > 0:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += l
	}
	return b.String()
}
