package mail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pizza/internal/mime"
)

func file(name, media, content string) OutAttachment {
	return OutAttachment{Name: name, Media: media, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

func outgoing() Outgoing {
	return Outgoing{
		From: Address{Name: "Pizza", Local: "pizza", Host: "localhost"}, To: Address{Name: "Jörg, der", Local: "me", Host: "localhost"},
		ReplyTo: &Address{Name: "Pizza decision", Local: "pizza+a.k3v9x2", Host: "localhost"},
		Subject: "Re: Grüße", MessageID: "1@pizza.localhost", InReplyTo: "<0@client>", References: []string{"00@client", "0@client"},
		Date: noon, AutoSubmitted: "auto-replied", Headers: [][2]string{{"X-Pizza-Kind", "result"}, {"X-Pizza-Task", "abc"}},
	}
}

// composed writes o, checks what must hold of every mail of ours, and reads it again.
func composed(t testing.TB, o Outgoing) (raw string, s *mime.Structure, rd *Reading) {
	t.Helper()
	var buf bytes.Buffer
	if err := Compose(&buf, o); err != nil {
		t.Fatal(err)
	}
	raw = buf.String()
	for i, l := range strings.Split(raw, "\r\n") {
		if len(l) > 998 || strings.ContainsAny(l, "\r\n\x00") || !isASCII(l) {
			t.Errorf("line %d is not fit to be sent: %.100q", i, l)
		}
	}
	s, err := mime.Parse(strings.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	rd, err = Read(strings.NewReader(raw), int64(len(raw)), s, "")
	if err != nil {
		t.Fatal(err)
	}
	return raw, s, rd
}

func htmlOf(t testing.TB, raw string, s *mime.Structure) string {
	t.Helper()
	var out string
	s.Root.Walk(func(_ []int, p *mime.Part) bool {
		if p.Type == "text" && p.Subtype == "html" && out == "" {
			out, _ = mime.Text(strings.NewReader(raw), p, 1<<24)
		}
		return true
	})
	return out
}

func TestComposeHeader(t *testing.T) {
	t.Parallel()
	o := outgoing()
	o.Markdown = "hello"
	raw, s, _ := composed(t, o)
	head, _, _ := strings.Cut(raw, "\r\n\r\n")
	for _, want := range []string{
		"From: \"Pizza\" <pizza@localhost>", "Reply-To: \"Pizza decision\" <pizza+a.k3v9x2@localhost>", "Date: Tue, 08 Dec 2026 12:00:00 +0100",
		"Message-ID: <1@pizza.localhost>", "In-Reply-To: <0@client>", "References: <00@client> <0@client>", "Auto-Submitted: auto-replied",
		"X-Auto-Response-Suppress: All", "X-Pizza-Kind: result", "X-Pizza-Task: abc", "MIME-Version: 1.0",
	} {
		if !strings.Contains(head+"\r\n", "\r\n"+want+"\r\n") && !strings.HasPrefix(head, want+"\r\n") {
			t.Errorf("%q is missing in\n%s", want, head)
		}
	}
	if s.Subject != o.Subject || s.To[0] != o.To || s.MessageID != o.MessageID || len(s.References) != 2 || !s.Date.Equal(noon) {
		t.Errorf("read back: %q %+v %q %q %v", s.Subject, s.To, s.MessageID, s.References, s.Date)
	}
	if strings.Contains(head, "List-Post") || strings.Contains(head, "Disposition-Notification-To") { // N1, N2
		t.Error("a header that turns replies elsewhere")
	}
	if reason := Automatic(mime.Fields([]byte(head)), "me@localhost", s); reason == "" { // G5, G9: both halves
		t.Error("our own mail does not pass for automatic")
	}
}

func TestComposeHostileHeader(t *testing.T) {
	t.Parallel()
	o := outgoing()
	o.Plain = "x"
	o.Subject = "a\r\nBcc: eve@example.com\r\n\r\nbody\u202e =?utf-8?q?x?= " + strings.Repeat("w", 3000)
	o.From.Name = "Pizza\r\nBcc: eve@example.com"
	o.InReplyTo = "a>\r\nBcc: eve@example.com"
	o.References = append(o.References, "b c", strings.Repeat("r", 2000), "")
	for i := range 300 {
		o.References = append(o.References, fmt.Sprintf("%d@%s", i, strings.Repeat("h", 50)))
	}
	o.Headers = append(o.Headers, [2]string{"X-A\r\nBcc", "eve@example.com"}, [2]string{"X-B", "1\r\nBcc: eve@example.com"})
	raw, s, rd := composed(t, o)
	if strings.Contains(raw, "\r\nBcc:") || rd.New != "x" {
		t.Errorf("a field was smuggled in:\n%s", raw)
	}
	if want := oneLine(o.Subject); s.Subject != want {
		t.Errorf("subject %q, want %q", s.Subject, want)
	}
	if len(s.References) != maxRefs || s.References[0] != "00@client" || len(s.InReplyTo) != 0 {
		t.Errorf("%d references from %q, in reply to %q", len(s.References), s.References[0], s.InReplyTo)
	}
}

func TestComposeText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"short", "Grüße 日本語 😀", "From here\n.\n..\n", "a  b\n\n    indented\n\ttab", strings.Repeat("long ", 1000), strings.Repeat("x", 5000),
		"=3D =\n=20", "--=_text_0\n--", "a\n\n\n\nb",
	} {
		o := outgoing()
		o.Plain, o.Footer = text, "runbook:mail · 3 steps · 5 ms"
		_, _, rd := composed(t, o)
		if want := PlainText(o); rd.Text != strings.TrimRight(want, "\n") {
			t.Errorf("%.40q: read %.200q, want %.200q", text, rd.Text, want)
		}
		if rd.New != strings.Trim(tidyPlain(text), "\n") {
			t.Errorf("%.40q: new text %.200q", text, rd.New)
		}
	}
}

func TestComposeAttachments(t *testing.T) {
	t.Parallel()
	o := outgoing()
	o.Markdown = "see files"
	big := strings.Repeat("0123456789abcdef", 1<<16)
	o.Attachments = []OutAttachment{
		file("a.txt", "text/plain", "one\r\ntwo\n"), file("../../etc/passwd", "", "x"), file("A.TXT", "text/plain; charset=latin1", "\xff"),
		file("Übersicht \u202efdp.exe", "application/pdf", ""), file("m.eml", "message/rfc822", "From: a\r\n\r\nb"), file("big.bin", "nonsense", big),
	}
	_, _, rd := composed(t, o)
	want := []struct{ name, media, content string }{
		{"a.txt", "text/plain", "one\r\ntwo\n"}, {"passwd", "application/octet-stream", "x"}, {"A (2).TXT", "text/plain", "\xff"},
		{"Übersicht fdp.exe", "application/pdf", ""}, {"m.eml", "application/octet-stream", "From: a\r\n\r\nb"}, {"big.bin", "application/octet-stream", big},
	}
	if len(rd.Attachments) != len(want) || rd.New != "see files" {
		t.Fatalf("%d attachments, text %q", len(rd.Attachments), rd.New)
	}
	for i, a := range rd.Attachments {
		f, err := a.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if a.Name != want[i].name || a.Media != want[i].media || string(got) != want[i].content || a.Size != int64(len(got)) || err != nil {
			t.Errorf("attachment %d: %q %q, %d octets of %d, %v", i, a.Name, a.Media, len(got), a.Size, err)
		}
	}
}

func TestComposeErrors(t *testing.T) {
	t.Parallel()
	o := outgoing()
	o.Plain = "x"
	broken := errors.New("broken")
	o.Attachments = []OutAttachment{{Name: "a", Open: func() (io.ReadCloser, error) { return nil, broken }}}
	if err := Compose(io.Discard, o); !errors.Is(err, broken) {
		t.Errorf("an attachment that does not open: %v", err)
	}
	for n := range 30 {
		if err := Compose(&failing{after: n * 50}, outgoing()); err == nil && n < 10 {
			t.Errorf("no error from a writer that fails after %d octets", n*50)
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(b []byte) (int, error) {
	if f.after -= len(b); f.after < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// An attachment is written while it is read.
func TestComposeStreams(t *testing.T) {
	t.Parallel()
	o := outgoing()
	o.Plain = "x"
	src := &zeros{left: 8 << 20}
	o.Attachments = []OutAttachment{{Name: "a", Open: func() (io.ReadCloser, error) { return src, nil }}}
	if err := Compose(&src.written, o); err != nil {
		t.Fatal(err)
	}
	if src.behind > 256<<10 || src.left != 0 || !src.closed {
		t.Errorf("%d octets were held back; closed %v", src.behind, src.closed)
	}
}

// zeros is a file that watches how far the writer is behind.
type zeros struct {
	left, read, behind int64
	written            counter
	closed             bool
}

func (z *zeros) Read(b []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	z.behind = max(z.behind, z.read-int64(z.written))
	n := min(int64(len(b)), z.left)
	clear(b[:n])
	z.left -= n
	z.read += n
	return int(n), nil
}

func (z *zeros) Close() error { z.closed = true; return nil }

type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, md, has, not string }{
		{"emphasis", "**a** _b_ ~~c~~", "<strong>a</strong> <em>b</em> <del>c</del>", ""},
		{"table", "|a|b|\n|-|-|\n|1|2|", "<td>1</td>", ""},
		{"code", "```go\na < b\n```", "a &lt; b", "class="},
		{"raw HTML", "x <img src=https://e.com/p.gif> <script>alert(1)</script>", "&lt;img src=", "<img"},
		{"raw HTML block", "<div onclick=x>\n<iframe src=y>\n</div>\n", "&lt;iframe", "<iframe"},
		{"remote image", "![logo](https://e.com/p.gif)", "[image: logo at e.com]", "p.gif"},
		{"data image", "![logo](data:image/png;base64,AAAA)", "[image: logo]", "data:"},
		{"link says its host", "[bank](https://evil.example/x)", ">bank</a> [evil.example]", ""},
		{"link that lies", "[https://bank.com](https://evil.example/)", "[evil.example]", ""},
		{"user part", "[x](https://bank.com@evil.example/)", "[evil.example]", ""},
		{"other script", "[x](https://аpple.com/)", "[xn--pple-43d.com]", ""},
		{"bare link", "see https://example.com/a", `href="https://example.com/a"`, "[example.com]"},
		{"javascript", "[x](javascript:alert(1))", "<p>x</p>", "href"},
		{"mailto ours", "[x](mailto:pizza+a.k3@localhost?body=approve)", "<p>x</p>", "href"},
		{"mailto ours, alias", "[x](MAILTO:pizza@Pizza.LocalHost)", "<p>x</p>", "href"},
		{"mailto ours, escaped", "[x](mailto:pizza%40%6cocalhost)", "<p>x</p>", "href"},
		{"mailto ours, entities", "[x](mai&#108;to:pizza&#64;localhost)", "<p>x</p>", "href"},
		{"mailto ours as copy", "[x](mailto:a@e.com?cc=pizza@localhost)", "<p>x</p>", "href"},
		{"mailto ours in to=", "[x](mailto:?to=pizza@localhost)", "<p>x</p>", "href"},
		{"mailto ours, autolink", "<mailto:pizza@localhost> <pizza@pizza.localhost>", "pizza@localhost", "href"},
		{"mailto ours, bare", "write to pizza@pizza.localhost now", "pizza@pizza.localhost", "href"},
		{"mailto reference", "[x][r]\n\n[r]: mailto:pizza@localhost", "<p>x</p>", "href"},
		{"mailto others", "[x](mailto:a@example.com)", "[example.com]", ""},
		{"mailto others, autolink", "<a@example.com>", `href="mailto:a@example.com"`, ""},
		{"relative", "[x](/settings?delete=1)", "<p>x</p>", "href"},
		{"bidi", "a\u202eb\u200bc", "<p>abc</p>", ""},
		{"emoji joiner", "👩\u200d💻", "👩\u200d💻", ""},
		{"image in link", "[![a](https://e.com/i)](https://e.com/l)", `href="https://e.com/l"`, "<img"},
		{"nested emphasis in link", "[**a**](https://e.com/)", "<strong>a</strong></a> [e.com]", ""},
		{"NUL", "a\x00b", "ab", "\x00"},
	} {
		got := markdownHTML(tt.md)
		if !strings.Contains(got, tt.has) || tt.not != "" && strings.Contains(got, tt.not) {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
	if got := tidyMarkdown("a  \r\n[x](mailto:pizza+a.k@localhost?body=approve) <MAILTO:me@x.org>\r\n"); got != "a\n[x](mailto pizza+a.k@localhost?body=approve) <MAILTO:me@x.org>" {
		t.Errorf("plain text %q", got)
	}
}

// Whatever the Markdown, rendering ends soon.
func TestMarkdownIsBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{">", "[", "*a_ ", "- ", "![", "`", "<a", "[a](", "|", "~~", "**a", "&", "\\", "1. ", "> - ", "[x]: y\n", "http://", "a@b.", "_", "<!--", "](", "[\n", "![\n", "`\n``\n", "<a \n", "*a\n", ">\n", "-\n", "[a][b]"} {
		start := time.Now()
		markdownHTML(strings.Repeat(unit, 40_000/len(unit)))
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%q: %v", unit, took)
		} else if took > time.Second {
			t.Logf("%q: %v", unit, took)
		}
	}
}
