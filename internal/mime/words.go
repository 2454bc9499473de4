package mime

import (
	"strings"
)

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// DecodeHeader returns an unstructured header value unfolded, with encoded-words
// (RFC 2047) decoded wherever they stand: valid UTF-8 without control characters.
func DecodeHeader(value string) string {
	value = unfold(value)
	if !strings.Contains(value, "=?") {
		return cleanText(toUTF8(value))
	}
	var out strings.Builder
	ws := wordScanner{v: value}
	var run []byte // decoded octets of adjacent words with one charset
	charset, plain := "", 0
	flush := func() {
		if run != nil {
			out.WriteString(decodeCharset(run, charset))
			run = nil
		}
	}
	for i := 0; ; {
		w, ok := ws.next(i)
		if !ok {
			break
		}
		between := value[plain:w.start]
		if run == nil || strings.Trim(between, " \t") != "" {
			flush()
			out.WriteString(toUTF8(between))
		} else if !strings.EqualFold(w.charset, charset) {
			flush()
		}
		if run == nil {
			run, charset = []byte{}, w.charset
		}
		// Octets are joined before the charset is applied: some programs split words
		// inside a character.
		run = append(run, w.decode()...)
		plain, i = w.end, w.end
	}
	flush()
	out.WriteString(toUTF8(value[plain:]))
	return cleanText(out.String())
}

// cleanText makes control characters spaces: a decoded value must not hold a line end.
func cleanText(v string) string {
	clean := func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }
	if strings.IndexFunc(v, clean) < 0 {
		return v
	}
	return strings.Map(func(r rune) rune {
		if clean(r) {
			return ' '
		}
		return r
	}, v)
}

// word is one encoded-word.
type word struct {
	start, end int
	charset    string
	encoding   byte // 'b' or 'q'
	text       string
}

// wordScanner finds encoded-words. It remembers where the next end is, so that values
// full of beginnings are read in linear time.
type wordScanner struct {
	v       string
	end     int // first "?=" at or after the last position asked, -1 none
	endFrom int
	endSet  bool
}

// next returns the first encoded-word at or after i.
func (ws *wordScanner) next(i int) (word, bool) {
	for {
		j := strings.Index(ws.v[i:], "=?")
		if j < 0 {
			return word{}, false
		}
		i += j
		if w, ok := ws.at(i); ok {
			return w, true
		}
		i += 2
	}
}

// at returns the encoded-word that starts at i.
func (ws *wordScanner) at(i int) (word, bool) {
	const maxCharset = 80
	rest := ws.v[i+2:]
	c := strings.IndexByte(rest[:min(len(rest), maxCharset)], '?')
	if c <= 0 || len(rest) < c+3 || rest[c+2] != '?' {
		return word{}, false
	}
	enc := rest[c+1] | 0x20
	if enc != 'b' && enc != 'q' || strings.ContainsAny(rest[:c], " \t=\"<>,;") {
		return word{}, false
	}
	text := i + 2 + c + 3
	end := ws.nextEnd(text)
	if end < 0 {
		return word{}, false
	}
	if open := strings.Index(ws.v[text:min(end, text+maxWord)], "=?"); open >= 0 && text+open+1 < end {
		return word{}, false // another word begins before this one ends
	}
	if end-text > maxWord {
		return word{}, false
	}
	charset, _, _ := strings.Cut(rest[:c], "*") // RFC 2231 section 5: a language
	return word{start: i, end: end + 2, charset: charset, encoding: enc, text: ws.v[text:end]}, true
}

// maxWord is how long the text of an encoded-word may be: RFC 2047 allows 75 octets,
// programs that do not split send whole subjects.
const maxWord = 4 << 10

func (ws *wordScanner) nextEnd(i int) int {
	if ws.endSet && i >= ws.endFrom && (ws.end < 0 || i <= ws.end) {
		return ws.end
	}
	ws.endSet, ws.endFrom, ws.end = true, i, -1
	if j := strings.Index(ws.v[i:], "?="); j >= 0 {
		ws.end = i + j
	}
	return ws.end
}

func (w word) decode() []byte {
	if w.encoding == 'b' {
		return decodeBase64([]byte(w.text))
	}
	b := make([]byte, 0, len(w.text))
	for i := 0; i < len(w.text); i++ {
		c := w.text[i]
		switch {
		case c == '_':
			c = ' '
		case c == '=' && i+2 < len(w.text) && unhex(w.text[i+1]) >= 0 && unhex(w.text[i+2]) >= 0:
			c = byte(unhex(w.text[i+1])<<4 | unhex(w.text[i+2]))
			i += 2
		}
		b = append(b, c)
	}
	return b
}
