package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"pizza/internal/unseen"
)

// Show returns s as it can be shown to a person: what is hidden (see internal/unseen:
// control, bidirectional and invisible characters, spaces other than the plain one,
// what is not assigned) is written as \uXXXX, bytes that are no UTF-8 as \xXX. A
// backslash is doubled, so that nothing that is shown can stand for two different things.
func Show(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02X`, s[i])
		case r == '\\':
			b.WriteString(`\\`)
		case !unseen.Hidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
		i += size
	}
	return b.String()
}

// quote shows a piece of text in quotes, its middle left out where it is long.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most/2]) + "…" + string(r[len(r)-most/2:])
	}
	return `"` + Show(s) + `"`
}

// comma writes a number with thousands separated.
func comma(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func size(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return comma(n) + " bytes"
}

// The sentences of Plan: what will happen, from the arguments alone.

func sentenceList(j *job) string { return "List the folder " + j.path.String() + "." }

func sentenceRead(j *job) string {
	s := "Read the file " + j.path.String()
	from, hasFrom := j.args.num["from"]
	to, hasTo := j.args.num["to"]
	switch {
	case hasFrom && hasTo:
		s += fmt.Sprintf(", lines %d to %d", from, to)
	case hasFrom:
		s += fmt.Sprintf(", from line %d", from)
	case hasTo:
		s += fmt.Sprintf(", up to line %d", to)
	}
	return s + "."
}

func sentenceSearch(j *job) string {
	return fmt.Sprintf("Search the files in %s for %s.", j.path, quote(j.args.text["query"]))
}

func sentenceWrite(j *job) string {
	return fmt.Sprintf("Write the file %s in the folder %s, %s; a file of that name there is replaced.",
		j.path.base(), j.path.folder(), size(int64(len(j.args.text["content"]))))
}

func sentenceEdit(j *job) string {
	return fmt.Sprintf("Change the file %s in the folder %s: replace %s by %s.",
		j.path.base(), j.path.folder(), quote(j.args.text["old"]), quote(j.args.text["new"]))
}

func sentenceMove(j *job) string {
	return fmt.Sprintf("Move %s to %s.", j.path, j.to)
}

func sentenceDelete(j *job) string {
	return fmt.Sprintf("Delete %s in the folder %s for good.", j.path.base(), j.path.folder())
}
