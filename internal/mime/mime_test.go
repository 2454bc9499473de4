package mime

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func parse(t testing.TB, msg string) *Structure {
	t.Helper()
	s, err := Parse(strings.NewReader(msg), int64(len(msg)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outline writes a structure as nested types with each leaf's body.
func outline(msg string, p *Part) string {
	out := p.Type + "/" + p.Subtype
	if len(p.Children) == 0 {
		return out + "=" + msg[p.Body.Start:p.Body.End]
	}
	var kids []string
	for _, c := range p.Children {
		kids = append(kids, outline(msg, c))
	}
	return out + "(" + strings.Join(kids, " | ") + ")"
}

func TestStructure(t *testing.T) {
	t.Parallel()
	const mp = "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
	for _, tt := range []struct{ name, msg, want string }{
		{"empty", "", "text/plain="},
		{"plain", "A: b\r\n\r\nhi\r\n", "text/plain=hi\r\n"},
		{"bare LF", "A: b\nContent-Type: multipart/x; boundary=b\n\n--b\n\nhi\n--b--\n", "multipart/x(text/plain=hi)"},
		{"two CR before LF", "A: b\r\r\n\r\r\nhi", "text/plain=hi"},
		{"header only", "A: b\r\n", "text/plain="},
		{"no header", "hello\r\nyou\r\n", "text/plain=hello\r\nyou\r\n"},
		{"one line without header", "hello\r\n\r\nyou", "text/plain=hello\r\n\r\nyou"},
		{"missing empty line", "A: b\r\nhello you\r\nand me\r\n", "text/plain=hello you\r\nand me\r\n"},
		{"missing empty line at the end", "A: b\r\nhello", "text/plain=hello"},
		{"line without colon", "A: b\r\njunk\r\nContent-Type: text/html\r\n\r\nhi", "text/html=hi"},
		{"mbox From", "From me Mon Jan 1\r\nContent-Type: text/html\r\n\r\nhi", "text/html=hi"},
		{"leading continuation", " x\r\nContent-Type: text/html\r\n\r\nhi", "text/html=hi"},
		{"space before colon", "Content-Type : text/html\r\n\r\nhi", "text/html=hi"},
		{"preamble and epilogue", mp + "pre\r\n--b\r\n\r\n1\r\n--b \t\r\n\r\n2\r\n--b--\r\nepi", "multipart/mixed(text/plain=1 | text/plain=2)"},
		{"missing last delimiter", mp + "--b\r\n\r\n1\r\n", "multipart/mixed(text/plain=1\r\n)"},
		{"prefix of a boundary", mp + "--b\r\nContent-Type: multipart/alternative; boundary=bb\r\n\r\n--bb\r\n\r\n1\r\n--bb--\r\n--b\r\n\r\n2\r\n--b--", "multipart/mixed(multipart/alternative(text/plain=1) | text/plain=2)"},
		{"boundary ends in dashes", "Content-Type: multipart/mixed; boundary=\"b--\"\r\n\r\n--b--\r\n\r\n1\r\n--b----\r\n", "multipart/mixed(text/plain=1)"},
		{"same boundary inside", mp + "--b\r\n" + mp + "--b\r\n\r\n1\r\n--b--\r\n--b\r\n\r\n2\r\n--b--", "multipart/mixed(multipart/mixed(text/plain=1) | text/plain=2)"},
		{"inner not closed", mp + "--b\r\nContent-Type: multipart/x; boundary=c\r\n\r\n--c\r\n\r\n1\r\n--b\r\n\r\n2\r\n--b--", "multipart/mixed(multipart/x(text/plain=1) | text/plain=2)"},
		{"empty part", mp + "--b\r\n--b\r\n\r\n--b\r\n\r\n\r\n--b--", "multipart/mixed(text/plain= | text/plain= | text/plain=)"},
		{"no boundary", "Content-Type: multipart/mixed\r\n\r\nhi", "text/plain=hi"},
		{"no parts", mp + "just text", "text/plain=just text"},
		{"boundary of another case is none", mp + "--B\r\n\r\nhi", "text/plain=--B\r\n\r\nhi"},
		{"digest", "Content-Type: multipart/digest; boundary=b\r\n\r\n--b\r\n\r\nA: b\r\n\r\nhi\r\n--b--", "multipart/digest(message/rfc822(text/plain=hi))"},
		{"message", "Content-Type: message/rfc822\r\n\r\n" + mp + "--b\r\n\r\n1\r\n--b--", "message/rfc822(multipart/mixed(text/plain=1))"},
		{"global message", "Content-Type: message/global\r\n\r\nA: b\r\n\r\nhi", "message/global(text/plain=hi)"},
		{"encoded message", "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\nQTogYg==", "message/rfc822=QTogYg=="},
		{"message without header", "Content-Type: message/rfc822\r\n\r\nhi\r\nyou", "message/rfc822(text/plain=hi\r\nyou)"},
		{"two junk lines in a message", "Content-Type: message/rfc822\r\njunk\r\njunk\r\n", "message/rfc822(text/plain=junk\r\njunk\r\n)"},
		{"delimiter in a header", mp + "--b\r\nContent-Type: text/html\r\n--b\r\n\r\n2\r\n--b--", "multipart/mixed(text/html= | text/plain=2)"},
		{"junk before a delimiter", mp + "--b\r\nContent-Type: text/html\r\njunk\r\n--b--", "multipart/mixed(text/html=junk)"},
		{"garbage type", "Content-Type: garbage\r\n\r\nhi", "text/plain=hi"},
		{"type without subtype", "Content-Type: multipart; boundary=b\r\n\r\n--b\r\n\r\n1", "multipart/mixed(text/plain=1)"},
		{"duplicate parameters", "Content-Type: text/html; charset=a; charset=b\r\n\r\nhi", "text/html=hi"},
		{"two types", "Content-Type: text/html\r\nContent-Type: text/plain\r\n\r\nhi", "text/html=hi"},
		{"folded boundary", "Content-Type: multipart/mixed;\r\n\tboundary\r\n =\r\n \"b\"\r\n\r\n--b\r\n\r\n1\r\n--b--", "multipart/mixed(text/plain=1)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := parse(t, tt.msg)
			if got := outline(tt.msg, s.Root); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			check(t, tt.msg, s)
		})
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for msg, want := range map[string]int64{
		"A: b\r\n\r\n": 0, "A: b\r\n\r\na": 1, "A: b\r\n\r\na\r\n": 1, "A: b\r\n\r\na\r\nb": 2, "A: b\n\n\n\n": 2,
	} {
		if got := parse(t, msg).Root.Lines; got != want {
			t.Errorf("%q has %d lines, want %d", msg, got, want)
		}
	}
	for body, want := range map[string]int64{"": 0, "a": 1, "a\r\n": 1, "a\r\nb": 2, "\r\n": 1, "\r\n\r\n": 2, "a\r\n\r\n": 2} {
		msg := "Content-Type: multipart/x; boundary=b\r\n\r\n--b\r\n\r\n" + body + "\r\n--b--\r\n"
		if got := parse(t, msg).Root.Children[0]; got.Lines != want || got.Body.Len() != int64(len(body)) {
			t.Errorf("part %q has %d lines and %d octets, want %d", body, got.Lines, got.Body.Len(), want)
		}
	}
	if got := parse(t, "A: b\r\n\r\nx\r\ny").Lines; got != 4 {
		t.Errorf("message has %d lines, want 4", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	deep := 0
	var last *Part
	parse(t, nested(3000)).Root.Walk(func(path []int, p *Part) bool {
		if len(path) >= deep {
			deep, last = len(path), p
		}
		return true
	})
	if deep != MaxDepth-1 || last.Type != "application" || last.Subtype != "octet-stream" {
		t.Errorf("deepest part is %d, %s/%s", deep, last.Type, last.Subtype)
	}
	msg := flat(MaxParts + 5)
	kids := parse(t, msg).Root.Children
	rest := kids[len(kids)-1]
	if len(kids) != MaxParts-1 || rest.Type != "application" || rest.Body.End != int64(len(msg)) {
		t.Errorf("%d parts, the last %+v", len(kids), rest)
	}
	long := "Subject: first\r\nX: " + strings.Repeat("x", MaxHeader) + "\r\nContent-Type: text/html\r\n\r\nbody"
	if s := parse(t, long); s.Subject != "first" || long[s.Root.Body.Start:] != "body" {
		t.Errorf("long header: %q, body at %d", s.Subject, s.Root.Body.Start)
	}
}

func TestParseReportsTheReadersError(t *testing.T) {
	t.Parallel()
	if _, err := Parse(strings.NewReader("A: b\r\n\r\n"), 100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut message: %v", err)
	}
	s := parse(t, "A: b\r\n\r\nhello")
	r := strings.NewReader("A: b")
	if _, err := RawHeader(r, s.Root); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut header: %v", err)
	}
}

func TestTopLevel(t *testing.T) {
	t.Parallel()
	s := parse(t, "Message-ID:  <a@b> (x)\r\nIn-Reply-To: Your mail <c\r\n @d>\r\nReferences: <1@x> <2@x>\r\n\t<3@x>\r\n"+
		"Subject: =?utf-8?q?caf=C3=A9?=\r\n time\r\nFrom: Ann <ann@Example.ORG>\r\nTo: team: b@c, d@e;, f\r\nCc: g@h\r\nCc: i@j\r\n"+
		"Reply-To: <r@s>\r\nDate: Thu, 1 Jan 2026 10:00:00 +0200 (EET)\r\n\r\n")
	want := Structure{
		MessageID: "a@b", InReplyTo: []string{"c@d"}, References: []string{"1@x", "2@x", "3@x"}, Subject: "café time",
		From: []Address{{"Ann", "ann", "Example.ORG"}}, To: []Address{{"", "team", ""}, {"", "b", "c"}, {"", "d", "e"}, {"", "f", ""}},
		Cc: []Address{{"", "g", "h"}, {"", "i", "j"}}, ReplyTo: []Address{{"", "r", "s"}},
	}
	got := *s
	got.Root, got.Envelope, got.Body, got.BodyStructure, got.Lines, got.Date = nil, nil, nil, nil, 0, time.Time{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !s.Date.Equal(time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)) {
		t.Errorf("date %v", s.Date)
	}
	if got := s.From[0].String(); got != "ann@example.org" {
		t.Errorf("String() = %q", got)
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, v := range []string{
		"Fri, 02 Jan 2026 15:04:05 +0000", "Fri, 2 Jan 2026 15:04:05 GMT", "2 Jan 26 15:04:05 +0000", "Fri Jan  2 15:04:05 2026",
		"Fri, 2 Jan 2026 17:04:05 GMT+0200", "Fri, 2 Jan 2026 15:04:05 +00:00", "2026-01-02T15:04:05Z", "Fri, 2 Jan 2026 15:04:05",
		"Fri,  2  Jan 2026 15:04:05 +0000 (UTC (x))", "2026-01-02 15:04:05",
	} {
		if got := parseDate(v); !got.Equal(want) {
			t.Errorf("%q is %v", v, got)
		}
	}
	for _, v := range []string{"", "yesterday", "Fri, 2 Jan 0026 15:04:05 +0000", strings.Repeat("1", 1000)} {
		if got := parseDate(v); !got.IsZero() {
			t.Errorf("%q is %v", v, got)
		}
	}
}

func TestWireForms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, msg, envelope, structure string }{
		{
			"everything",
			"Date: x\r\nSubject: a \"b\" \\c\r\nFrom: \"A, B\" <\"a b\"@c>\r\nTo: g:;\r\nMessage-ID: <i>\r\nContent-Type: image/PNG; name=\"x y\"\r\n" +
				"Content-ID: <1>\r\nContent-Description: d\r\nContent-MD5: m\r\nContent-Disposition: inline; filename*=utf-8''%C3%A9\r\n" +
				"Content-Language: de, en\r\nContent-Location: http://x\r\nContent-Transfer-Encoding: Base64\r\n\r\nAAAA",
			`("x" "a \"b\" \\c" (("A, B" NIL "a b" "c")) (("A, B" NIL "a b" "c")) (("A, B" NIL "a b" "c")) ((NIL NIL "g" NIL)(NIL NIL NIL NIL)) NIL NIL NIL "<i>")`,
			`("IMAGE" "PNG" ("NAME" "x y") "<1>" "d" "BASE64" 4 "m" ("INLINE" ("FILENAME" "=?utf-8?b?w6k=?=")) ("de" "en") "http://x")`,
		},
		{
			"8-bit", "Subject: caf\xc3\xa9 x\r\nFrom: Andr\xe9 <a@m\xc3\xbcller.de>\r\n\r\n",
			`(NIL "=?utf-8?q?caf=C3=A9_x?=" (("=?utf-8?q?Andr=C3=A9?=" NIL "a" "xn--mller-kva.de")) (("=?utf-8?q?Andr=C3=A9?=" NIL "a" "xn--mller-kva.de")) (("=?utf-8?q?Andr=C3=A9?=" NIL "a" "xn--mller-kva.de")) NIL NIL NIL NIL NIL)`,
			`("TEXT" "PLAIN" ("CHARSET" "US-ASCII") NIL NIL "7BIT" 0 0 NIL NIL NIL NIL)`,
		},
		{
			"lacking", "Subject:\r\nFrom: root, <@a,@b:c@d>, @e\r\nReply-To: x@y\r\nContent-Transfer-Encoding: x-strange\r\nContent-Type: text/x-y; a=\"\"\r\n\r\n1\n2",
			`(NIL "" ((NIL NIL "root" "missing-domain.invalid")(NIL "@a,@b" "c" "d")(NIL NIL "missing-mailbox" "e")) ((NIL NIL "root" "missing-domain.invalid")(NIL "@a,@b" "c" "d")(NIL NIL "missing-mailbox" "e")) ((NIL NIL "x" "y")) NIL NIL NIL NIL NIL)`,
			`("TEXT" "X-Y" ("A" "") NIL NIL "X-STRANGE" 3 2 NIL NIL NIL NIL)`,
		},
		{
			"message", "Content-Type: message/rfc822\r\n\r\nSubject: in\r\n\r\nhi\r\n",
			`(NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL)`,
			`("MESSAGE" "RFC822" NIL NIL NIL "7BIT" 19 (NIL "in" NIL NIL NIL NIL NIL NIL NIL NIL) ("TEXT" "PLAIN" ("CHARSET" "US-ASCII") NIL NIL "7BIT" 4 1 NIL NIL NIL NIL) 3 NIL NIL NIL NIL)`,
		},
		{
			"encoded message", "Content-Type: message/rfc822; name=x\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA",
			`(NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL)`,
			`("APPLICATION" "OCTET-STREAM" ("NAME" "x") NIL NIL "BASE64" 4 NIL NIL NIL NIL)`,
		},
	} {
		s := parse(t, tt.msg)
		if string(s.Envelope) != tt.envelope {
			t.Errorf("%s: envelope\ngot  %s\nwant %s", tt.name, s.Envelope, tt.envelope)
		}
		if string(s.BodyStructure) != tt.structure {
			t.Errorf("%s: structure\ngot  %s\nwant %s", tt.name, s.BodyStructure, tt.structure)
		}
		check(t, tt.msg, s)
	}
	long := parse(t, "Subject: "+strings.Repeat("x", maxQuoted+1)+"\r\n\r\n")
	if !bytes.HasPrefix(long.Envelope, []byte("(NIL {1001}\r\nxxx")) {
		t.Errorf("long subject: %.40s", long.Envelope)
	}
}

func TestFindAndWalk(t *testing.T) {
	t.Parallel()
	msg := "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n" +
		"Content-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\ntwo-one\r\n--c--\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nA: b\r\n\r\nthree-one\r\n--b--\r\n"
	s := parse(t, msg)
	for _, tt := range []struct {
		path []int
		want string
	}{{[]int{1}, "one"}, {[]int{2, 1}, "two-one"}, {[]int{3, 1}, "three-one"}, {[]int{3}, "A: b\r\n\r\nthree-one"}} {
		p := s.Find(tt.path)
		if p == nil || msg[p.Body.Start:p.Body.End] != tt.want {
			t.Errorf("Find(%v) = %+v, want %q", tt.path, p, tt.want)
		}
	}
	for _, path := range [][]int{{0}, {4}, {-1}, {1, 1}, {2, 2}, {3, 1, 1}, {1, 0}} {
		if p := s.Find(path); p != nil {
			t.Errorf("Find(%v) = %+v", path, p)
		}
	}
	if s.Find(nil) != s.Root {
		t.Error("the empty path is not the message")
	}
	single := parse(t, "A: b\r\n\r\nx")
	if single.Find([]int{1}) != single.Root || single.Find([]int{2}) != nil {
		t.Error("part 1 of a message that is no multipart is not the message")
	}
	n := 0
	s.Root.Walk(func([]int, *Part) bool { n++; return n < 3 })
	if n != 3 {
		t.Errorf("Walk went on to %d parts after false", n)
	}
}

func TestCodec(t *testing.T) {
	t.Parallel()
	msg := "Date: Fri, 2 Jan 2026 15:04:05 +0130\r\nFrom: é <a@b>\r\nReferences: <a@b> <c@d>\r\n" + flat(3)
	s := parse(t, msg)
	b := Encode(s)
	d, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Date.Equal(s.Date) {
		t.Errorf("date %v became %v", s.Date, d.Date)
	}
	d.Date = s.Date
	if !reflect.DeepEqual(d, s) {
		t.Errorf("got  %+v\nwant %+v", d, s)
	}
	env, body, bs, err := Rendered(b)
	if err != nil || !bytes.Equal(env, s.Envelope) || !bytes.Equal(body, s.Body) || !bytes.Equal(bs, s.BodyStructure) {
		t.Errorf("Rendered: %v", err)
	}
	for i := range b {
		if _, err := Decode(b[:i]); !errors.Is(err, ErrFormat) {
			t.Fatalf("Decode of %d octets of %d: %v", i, len(b), err)
		}
	}
	if _, err := Decode(append(bytes.Clone(b), 0)); !errors.Is(err, ErrFormat) {
		t.Error("octets behind the end are taken")
	}
	b[0]++
	if _, err := Decode(b); !errors.Is(err, ErrFormat) {
		t.Error("another version is taken")
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	raw := "From x\r\nA: 1\r\n 2\r\njunk\r\n more\r\nB :=?utf-8?q?=0A_x?=\r\n\r\nC: 3\r\n"
	f := Fields([]byte(raw))
	if len(f) != 2 || f[0].Name != "A" || f[0].Value != " 1\r\n 2" || string(f[0].Raw) != "A: 1\r\n 2\r\n" || f[0].Text() != "1 2" ||
		f[1].Name != "B" || f[1].Text() != "  x" {
		t.Errorf("%q", f)
	}
	s := parse(t, raw)
	h, err := RawHeader(iotestReaderAt{strings.NewReader(raw)}, s.Root)
	if want := raw[:strings.Index(raw, "C:")]; err != nil || string(h) != want {
		t.Errorf("RawHeader = %q, %v", h, err)
	}
}

// iotestReaderAt gives io.EOF with the last octets, as ReaderAt may.
type iotestReaderAt struct{ r *strings.Reader }

func (r iotestReaderAt) ReadAt(b []byte, off int64) (int, error) {
	n, err := iotest.DataErrReader(io.NewSectionReader(r.r, off, int64(len(b)))).Read(b)
	if off+int64(n) < r.r.Size() {
		err = nil
	}
	return n, err
}

// TestReferencesAreLimited: of very many the oldest, which names the thread, and the newest
// are kept.
func TestReferencesAreLimited(t *testing.T) {
	t.Parallel()
	s := parse(t, "References: <root@x>"+strings.Repeat(" <old@x>", 2000)+strings.Repeat(" <new@x>", maxReferences-1)+"\r\n\r\n")
	if n := len(s.References); n != maxReferences || s.References[0] != "root@x" || s.References[1] != "new@x" {
		t.Errorf("%d references, %.60q", n, s.References)
	}
}
