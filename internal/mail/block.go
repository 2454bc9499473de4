package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"pizza/internal/unseen"
)

// The block looks like this; each argument is on a line of its own:
//
//	[arguments k3v9x2]
//	path: /local/notes/a.txt
//	content:
//	  | first line
//	  | second line
//	options: {"append":true}
//	[end of arguments k3v9x2]
//
// A text stands there as it is, or as JSON when it could be taken for JSON. Long JSON
// has ':' where a text has '|'. A backslash is doubled; what cannot be seen is written
// \t, \r, \u202e or \U000e0041.
const (
	maxBlock  = 4 << 10 // octets of a block shown whole
	maxShown  = 1 << 10 // octets of one argument of a longer one
	headShown = 600
	tailShown = 300
	maxInline = 100 // characters of JSON on the argument's own line
)

type mark int

const (
	noMark mark = iota
	markBegin
	markEnd
)

var markRE = regexp.MustCompile(`(?i)^\[ ?(end of )?arguments ([0-9a-z]+) ?\]$`)

// markOf reads a line, without quote marks, as a mark.
func markOf(line string) (mark, string) {
	m := markRE.FindStringSubmatch(strings.Trim(line, " *_"))
	switch {
	case m == nil:
		return noMark, ""
	case m[1] == "":
		return markBegin, strings.ToLower(m[2])
	}
	return markEnd, strings.ToLower(m[2])
}

func markKind(line string) mark {
	k, _ := markOf(line)
	return k
}

func beginMark(nonce string) string { return "[arguments " + nonce + "]" }
func endMark(nonce string) string   { return "[end of arguments " + nonce + "]" }

// RenderBlock shows the arguments of a call between two marks that carry the nonce.
// The block is readable and reversible; characters that cannot be seen are escaped.
// Of arguments whose block is over 4 KB, head and tail of what is long, size and
// sha256 are shown; attach then says that the whole must be attached.
func RenderBlock(args json.RawMessage, nonce string) (block string, attach bool) {
	fields := argumentsOf(args)
	var b strings.Builder
	for _, f := range fields {
		f.render(&b, 0)
	}
	body := b.String()
	if len(body) > maxBlock {
		body, attach = cutBlock(fields, args), true
	}
	if body == "" {
		body = "(none)\n"
	}
	return beginMark(nonce) + "\n" + body + endMark(nonce), attach
}

// cutBlock shows every argument, long ones in part.
func cutBlock(fields []argument, args []byte) string {
	var b strings.Builder
	for _, f := range fields {
		f.render(&b, maxShown)
	}
	body := b.String()
	if len(body) > maxBlock {
		body = cutMiddle(body, maxBlock/2, maxBlock/4)
	}
	sum := sha256.Sum256(args)
	return body + fmt.Sprintf("[in all %d bytes, sha256 %s; the whole is attached]\n", len(args), hex.EncodeToString(sum[:]))
}

// cutMiddle keeps head and tail octets of s, in whole lines. A line too long for that is
// cut at a character, and what is left of its end cannot be taken for another argument.
func cutMiddle(s string, head, tail int) string {
	if len(s) <= head+tail {
		return s
	}
	h, t := strings.ToValidUTF8(s[:head], ""), strings.ToValidUTF8(s[len(s)-tail:], "")
	if i := strings.LastIndexByte(h, '\n'); i > 0 {
		h = h[:i]
	}
	left := "  … "
	if i := strings.IndexByte(strings.TrimRight(t, "\n"), '\n'); i >= 0 {
		left, t = "", t[i+1:]
	}
	return strings.TrimRight(h, "\n") + fmt.Sprintf("\n[… %d bytes left out here …]\n", len(s)-len(h)-len(t)) + left + t
}

// argument is one member of the arguments.
type argument struct {
	key string // as shown
	raw json.RawMessage
}

// argumentsOf returns the members in order. What is no object is one nameless member.
func argumentsOf(args json.RawMessage) []argument {
	dec := json.NewDecoder(bytes.NewReader(args))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return []argument{{"(value)", args}}
	}
	var out []argument
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return []argument{{"(value)", args}}
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return []argument{{"(value)", args}}
		}
		out = append(out, argument{shownKey(key), raw})
	}
	if _, err := dec.Token(); err != nil {
		return []argument{{"(value)", args}}
	}
	return out
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func shownKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return quoteJSON(key)
}

// render writes the argument; with a limit, a longer value only in part.
func (a argument) render(b *strings.Builder, limit int) {
	var text string
	if json.Unmarshal(a.raw, &text) != nil || len(a.raw) == 0 || a.raw[0] != '"' {
		a.renderJSON(b, limit)
		return
	}
	cut := limit > 0 && len(text) > limit
	switch {
	case !cut && !strings.Contains(text, "\n") && !likeJSON(text):
		fmt.Fprintf(b, "%s: %s\n", a.key, escape(text))
	case !cut && !strings.Contains(text, "\n"):
		fmt.Fprintf(b, "%s: %s\n", a.key, quoteJSON(text))
	case !cut:
		b.WriteString(a.key + ":\n")
		barred(b, "|", escape(text))
	default:
		head, tail := strings.ToValidUTF8(text[:headShown], ""), strings.ToValidUTF8(text[len(text)-tailShown:], "")
		b.WriteString(a.key + ":\n")
		barred(b, "|", escape(head))
		fmt.Fprintf(b, "[… %d of %d bytes left out here …]\n", len(text)-len(head)-len(tail), len(text))
		barred(b, "|", escape(tail))
	}
}

func (a argument) renderJSON(b *strings.Builder, limit int) {
	short := escapeJSON(compact(a.raw))
	if utf8.RuneCountInString(short) <= maxInline {
		fmt.Fprintf(b, "%s: %s\n", a.key, short)
		return
	}
	var buf bytes.Buffer
	if json.Indent(&buf, a.raw, "", "  ") != nil {
		buf.Reset()
		buf.Write(a.raw)
	}
	long := escapeJSON(buf.String())
	if limit > 0 {
		long = cutMiddle(long, limit*2/3, limit/3)
	}
	b.WriteString(a.key + ":\n")
	barred(b, ":", long)
}

func barred(b *strings.Builder, bar, text string) {
	for l := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight("  "+bar+" "+l, " ") + "\n")
	}
}

func compact(raw json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, raw) != nil {
		return string(raw)
	}
	return buf.String()
}

// likeJSON reports whether a text must be quoted to be told from JSON or from nothing.
func likeJSON(s string) bool {
	return s == "" || strings.ContainsRune(`"{[`, rune(s[0])) || json.Valid([]byte(s))
}

// hidden reports whether r must be escaped. Line ends are shown by the lines.
func hidden(r rune) bool { return r != '\n' && unseen.Hidden(r) }

// escape makes a text visible and reversible, line by line.
func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		edge := r == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == '\n' || s[i+1] == '\n' || s[i-1] == ' ')
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case edge && !indent(s, i), hidden(r) && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// indent reports whether the space at s[i] is part of a line's indentation in a text
// of several lines, before something to see: a bar stands before it.
func indent(s string, i int) bool {
	if !strings.Contains(s, "\n") {
		return false
	}
	line := s[strings.LastIndexByte(s[:i], '\n')+1:]
	if end := strings.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	n := i - (strings.LastIndexByte(s[:i], '\n') + 1)
	return strings.Trim(line[:n], " ") == "" && strings.Trim(line, " ") != ""
}

// unescape is the reverse of escape.
func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i >= len(s) {
			return "", fmt.Errorf(`a single \ at the end`)
		}
		n, ok := map[byte]int{'\\': 0, 't': 0, 'r': 0, 'u': 4, 'U': 8}[s[i]]
		if !ok || i+n >= len(s)+0 && n > 0 {
			return "", fmt.Errorf(`\%c is no escape; a backslash is written \\`, s[i])
		}
		switch s[i] {
		case '\\':
			b.WriteByte('\\')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		default:
			code, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil {
				return "", fmt.Errorf(`\%s is no escape`, s[i:i+1+n])
			}
			b.WriteRune(rune(code))
			i += n
		}
	}
	return b.String(), nil
}

// quoteJSON is s as a JSON string with everything hidden escaped.
func quoteJSON(s string) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // a string always encodes
	return escapeJSON(strings.TrimRight(buf.String(), "\n"))
}

// escapeJSON escapes what is hidden in JSON text; there it can only be in strings.
func escapeJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b.String()
}
