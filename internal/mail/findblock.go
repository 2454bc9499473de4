package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// FindBlock finds the block with the nonce in the whole text of a reply
// (Reading.Text), whatever its quoting. Blanks of any kind become spaces, what cannot
// be seen is dropped. When the text holds several with that nonce that are not the
// same (one in the quote, one typed), they come one after the other, so that DiffBlock
// never takes an edit for none.
func FindBlock(text, nonce string) (block string, found bool) {
	var blocks []string
	var open []string
	depth, nonce := -1, strings.ToLower(nonce)
	for _, raw := range splitLines(visible(text)) {
		bare, d := unquote(raw)
		kind, n := markOf(bare)
		switch {
		case kind == markBegin && n == nonce:
			open, depth = []string{bare}, d
		case depth >= 0 && kind == markEnd && n == nonce:
			blocks = append(blocks, strings.Join(append(open, bare), "\n"))
			depth = -1
		case depth >= 0:
			open = append(open, strings.TrimRight(dropMarks(raw, depth), " "))
		}
	}
	if len(blocks) == 0 {
		return "", false
	}
	out := blocks[:1]
	for _, b := range blocks[1:] {
		if !sameBlock(out[0], b) {
			out = append(out, b)
		}
	}
	return strings.Join(out, "\n"), true
}

// dropMarks removes up to depth quote marks and the blank after the last.
func dropMarks(line string, depth int) string {
	for range depth {
		t := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(t, ">") {
			return line
		}
		line = t[1:]
	}
	if depth > 0 {
		line = strings.TrimPrefix(line, " ")
	}
	return line
}

// DiffBlock says whether got differs from sent in more than wrapping and quoting, and
// how, a line each: "-" what was sent, "+" what the reply holds. Quotation marks may be
// curly and the names of arguments may have other letter case.
func DiffBlock(sent, got string) (diff string, changed bool) {
	if sameBlock(sent, got) {
		return "", false
	}
	return diffLines(blockLines(sent), blockLines(got)), true
}

// blockLines are the lines between the marks that are not empty.
func blockLines(block string) []string {
	var out []string
	for _, l := range splitLines(block) {
		if t := strings.TrimSpace(l); t != "" && markKind(t) == noMark {
			out = append(out, t)
		}
	}
	return out
}

// blockRune is a character to compare; key ones may differ in case.
type blockRune struct {
	r   rune
	key bool
}

func blockRunes(block string, keys bool) []blockRune {
	var out []blockRune
	for i, l := range blockLines(block) {
		if i > 0 {
			out = append(out, blockRune{r: '\n'})
		}
		key := -1
		if keys && l[0] != '|' && l[0] != ':' {
			key = strings.IndexByte(l, ':')
		}
		for at, r := range straight(l) {
			out = append(out, blockRune{r, at < key})
		}
	}
	return out
}

// sameBlock compares two blocks. A line break in got may stand for any blank of sent,
// or for none, where a program broke a long word; a space stands for a blank only.
func sameBlock(sent, got string) bool {
	a, b := blockRunes(sent, true), blockRunes(dropLinkTargets(sent, got), false)
	for len(a) > 0 && len(b) > 0 {
		na, _ := blank(a)
		nb, broken := blank(b)
		switch {
		case na > 0 && nb > 0:
			a, b = a[na:], b[nb:]
		case na > 0, nb > 0 && !broken:
			return false
		case nb > 0:
			b = b[nb:]
		case a[0].r == b[0].r, a[0].key && strings.EqualFold(string(a[0].r), string(b[0].r)):
			a, b = a[1:], b[1:]
		default:
			return false
		}
	}
	return len(a) == 0 && len(b) == 0
}

// blank returns how many blanks s begins with, and whether a line break is one.
func blank(s []blockRune) (n int, broken bool) {
	for n < len(s) && (s[n].r == ' ' || s[n].r == '\n') {
		broken = broken || s[n].r == '\n'
		n++
	}
	return n, broken
}

// dropLinkTargets removes what programs write beside a link when they make text of
// HTML: "me@example.com <mailto:me@example.com>".
func dropLinkTargets(sent, got string) string {
	if strings.Contains(sent, "<mailto:") || strings.Contains(sent, "<http") {
		return got
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(got, '<')
		if i < 0 {
			break
		}
		n := strings.IndexAny(got[i:], ">\n")
		target := ""
		if n > 0 && got[i+n] == '>' {
			target = strings.TrimSuffix(strings.TrimPrefix(got[i+1:i+n], "mailto:"), "/")
		}
		before := strings.TrimRight(got[:i], " ")
		if target == "" || !strings.HasSuffix(strings.TrimSuffix(before, "/"), target) {
			b.WriteString(got[:i+1])
			got = got[i+1:]
			continue
		}
		b.WriteString(before)
		got = got[i+n+1:]
	}
	b.WriteString(got)
	return b.String()
}

// maxDiff bounds the lines of each side that are compared with each other.
const maxDiff = 300

// diffLines shows how b differs from a, by their longest common subsequence.
func diffLines(a, b []string) string {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	a, b = a[:min(len(a), maxDiff)], b[:min(len(b), maxDiff)]
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			out, i = append(out, "- "+clip(a[i], 300)), i+1
		default:
			out, j = append(out, "+ "+clip(b[j], 300)), j+1
		}
	}
	return strings.Join(out, "\n")
}

// ErrBlock is returned for a block that cannot be read.
var ErrBlock = errors.New("mail: the block cannot be read")

// ParseBlock is the reverse of RenderBlock for a block that was shown whole. Lines
// that a program broke are joined with a space.
func ParseBlock(block string) (json.RawMessage, error) {
	p := blockParser{}
	for _, l := range splitLines(block) {
		if strings.TrimSpace(l) == "" || markKind(strings.TrimSpace(l)) != noMark {
			continue
		}
		if err := p.line(l); err != nil {
			return nil, err
		}
	}
	return p.object()
}

// blockParser collects arguments; val holds the lines of the one that is open.
type blockParser struct {
	keys []string
	vals [][]string // first: the bar ("", "|" or ":"), then its lines
}

func (p *blockParser) line(l string) error {
	t := strings.TrimLeft(l, " ")
	last := len(p.vals) - 1
	switch {
	case strings.HasPrefix(t, "[…"), strings.HasPrefix(t, "[in all "):
		return fmt.Errorf("%w: it was not shown whole", ErrBlock)
	case t == "(none)" && last < 0:
		return nil
	case (t[0] == '|' || t[0] == ':') && last >= 0:
		if p.vals[last][0] != t[:1] && len(p.vals[last]) > 1 {
			return fmt.Errorf("%w: line %q", ErrBlock, clip(t, 60))
		}
		p.vals[last][0] = t[:1]
		p.vals[last] = append(p.vals[last], strings.TrimPrefix(t[1:], " "))
		return nil
	}
	key, value, ok := cutKey(t)
	if !ok && last >= 0 && len(p.vals[last]) > 1 {
		n := len(p.vals[last]) - 1
		p.vals[last][n] += " " + t
		return nil
	}
	if !ok {
		return fmt.Errorf("%w: line %q names no argument", ErrBlock, clip(t, 60))
	}
	val := []string{""}
	if value != "" {
		val = append(val, value)
	}
	p.keys, p.vals = append(p.keys, key), append(p.vals, val)
	return nil
}

// cutKey splits "key: value"; the key may be a JSON string.
func cutKey(l string) (key, value string, ok bool) {
	if l[0] == '"' {
		dec := json.NewDecoder(strings.NewReader(l))
		if dec.Decode(&key) != nil {
			return "", "", false
		}
		value, ok = strings.CutPrefix(l[dec.InputOffset():], ":")
		return key, strings.TrimPrefix(value, " "), ok
	}
	key, value, ok = strings.Cut(l, ":")
	return key, strings.TrimPrefix(value, " "), ok && plainKey.MatchString(key) && (value == "" || value[0] == ' ')
}

// object makes the JSON object.
func (p *blockParser) object() (json.RawMessage, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, key := range p.keys {
		value, err := p.value(i)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		k, _ := json.Marshal(key) // a string always encodes
		b.Write(k)
		b.WriteByte(':')
		b.WriteString(value)
	}
	b.WriteByte('}')
	return json.RawMessage(b.String()), nil
}

func (p *blockParser) value(i int) (string, error) {
	bar, lines := p.vals[i][0], p.vals[i][1:]
	text := strings.Join(lines, "\n")
	if bar == ":" || bar == "" && (text != "" && strings.ContainsRune(`"{[`, rune(text[0])) || json.Valid([]byte(text))) {
		if !json.Valid([]byte(text)) {
			return "", fmt.Errorf("%w: the value of %s is not valid JSON", ErrBlock, p.keys[i])
		}
		return compact(json.RawMessage(text)), nil
	}
	text, err := unescape(text)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %v", ErrBlock, p.keys[i], err)
	}
	quoted, _ := json.Marshal(text) // a string always encodes
	return string(quoted), nil
}

// EditedOutsideMarks looks for arguments that a reply quotes with another value though
// the block's marks are gone: such a reply was edited, and must not pass for a plain
// approval. block is what was sent, text the whole text of the reply.
func EditedOutsideMarks(block, text string) (diff string, changed bool) {
	sent := valuesOf(block)
	var out []string
	for _, raw := range splitLines(visible(text)) {
		if l, depth := unquote(raw); depth > 0 {
			out = append(out, sent.other(l)...)
		}
	}
	return joinDiff(out)
}

// TypedArguments looks for arguments with another value among the words of a decision
// (newText, which is what NewText gave), outside the block: they say what is wanted and
// would change nothing. block is what was sent.
func TypedArguments(block, newText string) (diff string, typed bool) {
	t := readLines(newText)
	if t.inline {
		t = t.aboveQuote()
	}
	sent := valuesOf(block)
	var out []string
	for i, l := range outsideBlock(t.lines) {
		if i > 0 { // the first is the verb
			out = append(out, sent.other(l)...)
		}
	}
	return joinDiff(out)
}

// joinDiff makes the text of a difference, of maxDiff lines at most.
func joinDiff(lines []string) (string, bool) {
	return strings.Join(lines[:min(len(lines), maxDiff)], "\n"), len(lines) > 0
}

// sentValues are the values of a block, squashed, by the names of arguments in lower case.
type sentValues map[string][]string

func valuesOf(block string) sentValues {
	sent := sentValues{}
	for _, l := range blockLines(block) {
		if key, value, ok := cutKey(l); ok {
			sent[strings.ToLower(key)] = append(sent[strings.ToLower(key)], squash(value))
		}
	}
	return sent
}

// other shows a line that gives an argument of the block another value, nil for any other.
func (s sentValues) other(l string) []string {
	if l == "" {
		return nil
	}
	key, value, ok := cutKey(l)
	values := s[strings.ToLower(key)]
	if !ok || len(values) == 0 || beginsOne(values, squash(value)) {
		return nil
	}
	return []string{"- " + key + ": " + clip(values[0], 300), "+ " + clip(l, 300)}
}

// squash makes values comparable whatever the blanks and quotation marks.
func squash(s string) string { return strings.Join(strings.Fields(straight(s)), " ") }

// beginsOne reports whether value is one of values, or the beginning of one that a
// program wrapped at a blank.
func beginsOne(values []string, value string) bool {
	for _, v := range values {
		if rest, ok := strings.CutPrefix(v, value); ok && (rest == "" || value == "" || rest[0] == ' ') {
			return true
		}
	}
	return false
}
