package mime

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPreview(t *testing.T) {
	t.Parallel()
	alternative := "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\n%plain\r\n--b\r\nContent-Type: text/html\r\n\r\n%html\r\n--b--\r\n"
	fill := func(plain, html string) string {
		return strings.NewReplacer("%plain", plain, "%html", html).Replace(alternative)
	}
	for _, tt := range []struct{ name, msg, want string }{
		{"plain", "A: b\r\n\r\nHello,\r\n\r\n  this is\tit.\r\n", "Hello, this is it."},
		{"empty", "A: b\r\n\r\n", ""},
		{"nothing at all", "", ""},
		{"quoted first", "A: b\r\n\r\n> you said\r\n>> I said\r\nI say", "I say"},
		{"quoted only", "A: b\r\n\r\n> you said\r\n> this", "you said this"},
		{"decoded", "Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe =\r\naus", "Grüße aus"},
		{"plain of two", fill("short", "<p>long</p>"), "short"},
		{"plain says nothing", fill(" \r\n", "<style>p{}</style><p>Good <b>day</b> <a href='https://x.example/y'>to</a> you</p>"), "Good day to you"},
		{"html first, plain second", strings.Replace(strings.Replace(fill("second", "<p>first</p>"), "--b\r\n\r\nsecond\r\n", "", 1), "--b--", "--b\r\n\r\nsecond\r\n--b--", 1), "second"},
		{"hidden filling", "Content-Type: text/html\r\n\r\n<p>News &zwnj;&nbsp;&zwnj;&nbsp;&#847; of today</p>", "News of today"},
		{"attachment before the text", "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: attachment\r\n\r\nno\r\n--b\r\n\r\nyes\r\n--b--", "yes"},
		{"only an attachment", "Content-Type: application/pdf\r\n\r\nxx", ""},
		{"forwarded message", "Content-Type: message/rfc822\r\n\r\nA: b\r\n\r\nhi", ""},
		{"garbage", "Content-Type: text/plain; charset=utf-8\r\n\r\n\xffo\x00k", "\ufffdok"},
	} {
		got, err := Preview(strings.NewReader(tt.msg), parse(t, tt.msg), 200)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestPreviewIsCut(t *testing.T) {
	t.Parallel()
	msg := "Content-Type: text/plain; charset=utf-8\r\n\r\n" + strings.Repeat("süß ", 1000)
	for limit := range 20 {
		got, err := Preview(strings.NewReader(msg), parse(t, msg), limit)
		if n := utf8.RuneCountInString(got); err != nil || n > limit || n < limit-1 || !utf8.ValidString(got) {
			t.Errorf("limit %d: %q, %v", limit, got, err)
		}
	}
}

// countingReader notes how much is read.
type countingReader struct {
	io.ReaderAt
	n int64
}

func (r *countingReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, off)
	r.n += int64(n)
	return n, err
}

// TestPreviewReadsLittle: of a large message only the beginning of the text is read.
func TestPreviewReadsLittle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		msg, want string
		most      int64
	}{
		"quoted": {"A: b\r\n\r\n" + strings.Repeat("> quoted\r\n", 2000) + strings.Repeat("word ", 1<<20), "word word", 256 << 10},
		"plain":  {"A: b\r\n\r\n" + strings.Repeat("word ", 1<<20), "word word", 16 << 10},
		"html": {"Content-Type: text/html\r\n\r\n<style>" + strings.Repeat("p { color: red }\n", 8000) + "</style><p>" + strings.Repeat("word ", 1<<20),
			"word word", 2 << 20},
	} {
		r := &countingReader{ReaderAt: strings.NewReader(tt.msg)}
		got, err := Preview(r, parse(t, tt.msg), 200)
		if err != nil || !strings.HasPrefix(got, tt.want) || r.n > tt.most {
			t.Errorf("%s: %q, %v, %d octets read", name, got, err, r.n)
		}
	}
}
