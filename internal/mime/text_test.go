package mime

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestDecodeHeader(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                               "plain",
		" a\r\n\tb ":                          "a b",
		"=?utf-8?q?a_b?= c":                   "a b c",
		"=?UTF-8?B?w6k=?= =?UTF-8?B?w6k=?=":   "éé",
		"=?UTF-8?B?ww==?= =?UTF-8?B?qQ==?=":   "é", // split inside a character
		"=?utf-8?q?=C3?=\r\n =?utf-8?q?=A9?=": "é",
		"=?utf-8?q?a?=b":                      "ab",
		"x=?utf-8?q?a?=":                      "xa",
		`"=?utf-8?q?a?="`:                     `"a"`,
		"=?iso-8859-1*de?q?=E9?=":             "é",
		"=?x-nonsense?q?=E9?=":                "é",
		"=?utf-8?q?=E9?=":                     "\ufffd",
		"=?GB2312?B?xOO6ww==?=":               "你好",
		"=?ks_c_5601-1987?B?vsiz5w==?=":       "안녕",
		"=?cp1251?q?=CF=F0?=":                 "Пр",
		"=?iso-2022-jp?b?GyRCRnxLXBsoQg==?=":  "日本",
		"\x1b$BF|K\\\x1b(B":                   "日本",
		"=?utf-7?q?+AOk-?=":                   "é",
		"caf\xe9":                             "café",
		"caf\xc3\xa9":                         "café",
		"=?utf-8?q?broken":                    "=?utf-8?q?broken",
		"=?utf-8?x?a?=":                       "=?utf-8?x?a?=",
		"=?utf-8?q?a =?utf-8?q?b?=":           "=?utf-8?q?a b",
		"=?utf-8?q?=0D=0AX:_y?=":              "  X: y",
		"=?utf-8?b?w6k?=":                     "é",
		"=?utf-8?q?=4?=":                      "=4",
		"=?us-ascii?q?=C3=A9?=":               "é",
		"=?utf-8?q?a?= =?latin1?q?=E9?=":      "aé",
		"nul\x00":                             "nul",
	} {
		if got := strings.TrimRight(DecodeHeader(in), " "); got != want && got != strings.TrimRight(want, " ") {
			t.Errorf("DecodeHeader(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                 "",
		"a@b":                              "|a|b",
		"Ann <a@b>":                        "Ann|a|b",
		`"Ann \"X\" Y" <a@b>, c@d`:         `Ann "X" Y|a|b; |c|d`,
		"Smith, John <a@b>":                "Smith, John|a|b",
		"root, Ann <a@b>":                  "|root|; Ann|a|b",
		"a@b (Ann)":                        "Ann|a|b",
		"(c) a@b":                          "c|a|b",
		`"a@b"@c.d`:                        "|a@b|c.d",
		`"john doe"@x`:                     "|john doe|x",
		"team: a@b, c@d; , e@f":            "|a|b; |c|d; |e|f",
		"undisclosed-recipients:;":         "",
		"a@b; c@d":                         "|a|b; |c|d",
		"a@b c@d":                          "|a|b; |c|d",
		"John a@b":                         "John|a|b",
		"a @ b . c":                        "|a|b.c",
		"<a@b":                             "|a|b",
		"X <a@b, Y <c@d>":                  "X|a|b; Y|c|d",
		"<<a@b>>":                          "|a|b",
		"<@r,@s:a@b>":                      "|a|b",
		"<mailto:a@b>":                     "|a|b",
		"<>":                               "",
		"MAILER-DAEMON <>":                 "MAILER-DAEMON||",
		",, a@b,,":                         "|a|b",
		"bad <, good@x":                    "bad||; |good|x",
		`"open <a@b>, c@d`:                 `"open|a|b; |c|d`,
		"(open <a@b>":                      "(open|a|b",
		"=?utf-8?q?M=C3=BCller,_J?= <a@b>": "Müller, J|a|b",
		"=?utf-8?q?Smith,_J?= <a@b>":       "Smith, J|a|b",
		"\xe9 <a@b>":                       "é|a|b",
		"a@[1.2.3.4], b@[IPv6:::1]":        "|a|[1.2.3.4]; |b|[IPv6:::1]",
		"Pizza <pizza+a.x@localhost>":      "Pizza|pizza+a.x|localhost",
		"A <a@b> B <c@d>":                  "A|a|b; B|c|d",
		"Doe, Jane, root":                  "|Doe|; |Jane|; |root|",
	} {
		var got []string
		for _, a := range ParseAddresses(in) {
			got = append(got, a.Name+"|"+a.Local+"|"+a.Host)
		}
		if g := strings.Join(got, "; "); g != want {
			t.Errorf("%q\ngot  %q\nwant %q", in, g, want)
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`a/b; x=1; y="2;3"`:                     "x=1 y=2;3",
		`a/b; x = 1 ; Y="a\"b"`:                 `x=1 y=a"b`,
		`a/b; x=my file.pdf; y=2`:               "x=my file.pdf y=2",
		`a/b; x=1 y=2`:                          "x=1 y=2",
		`a/b x=1`:                               "x=1",
		`a/b; x="open`:                          "x=open",
		`a/b; x=1 (c); (d) y=2`:                 "x=1 y=2",
		`a/b; x=1; x=2`:                         "x=1",
		`a/b; x*=utf-8''%C3%A9`:                 "x=é",
		`a/b; x*0="a"; x*1="b"; x*2="c"`:        "x=abc",
		`a/b; x*1*=%62; x*0*=iso-8859-1'en'%E9`: "x=éb",
		`a/b; x="plain"; x*=utf-8''ext`:         "x=ext",
		`a/b; x="=?utf-8?q?=C3=A9?="`:           "x=é",
		`a/b; x=%zz; y*=%zz`:                    "x=%zz y=%zz",
		`a/b; x*=unknown''%E9`:                  "x=é",
		`a/b; x="C:\dir\f"`:                     `x=C:\dir\f`,
		`a/b;;; ;x=1;`:                          "x=1",
		`a/b; x*99999999999=1; y=2`:             "y=2",
	} {
		_, _, ps := parseContentType(in)
		var got []string
		for _, p := range ps {
			got = append(got, p.name+"="+p.value)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s\ngot  %q\nwant %q", in, g, want)
		}
	}
}

func TestFilename(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a.txt": "a.txt", "../../.ssh/keys": ".._.._.ssh_keys", `C:\x`: "C:_x", "..": "", ".": "", "": "", "a\x00b\r\nc": "abc",
		"gpj\u202eexe.x": "gpjexe.x", strings.Repeat("é", 300): strings.Repeat("é", 127), " a ": "a",
	} {
		if got := safeName(in); got != want {
			t.Errorf("safeName(%q) = %q, want %q", in, got, want)
		}
	}
	s := parse(t, "Content-Type: a/b; name=one\r\nContent-Disposition: attachment; filename*=UTF-8''..%2F..%2Fx\r\n\r\n")
	if s.Root.Filename != ".._.._x" || s.Root.Disposition != "attachment" {
		t.Errorf("%+v", s.Root)
	}
}

func TestTransferEncodings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ enc, in, want string }{
		{"7bit", "a=41", "a=41"}, {"8bit (yes)", "a", "a"}, {"x-unknown", "a", "a"}, {`"base64"`, "YQ==", "a"},
		{"base64", "aGVs\r\nbG8=", "hello"}, {"base64", "aG!!Vs bG8", "hello"}, {"base64", "aGVsbG8=\r\naGVsbG8=", "hellohello"},
		{"base64", "aGVsbG", "hell"}, {"base64", "a", ""}, {"quoted printable", "=41", "A"},
		{"quoted-printable", "a=\r\nb", "ab"}, {"quoted-printable", "a= \t\nb", "ab"}, {"quoted-printable", "a=3Db=3d", "a=b="},
		{"quoted-printable", "a=zz=", "a=zz"}, {"quoted-printable", "a  \r\nb \t", "a\r\nb"}, {"quoted-printable", "a=4", "a=4"},
		{"quoted-printable", "a =20\r\n", "a  \r\n"},
	} {
		msg := "Content-Transfer-Encoding: " + tt.enc + "\r\n\r\n" + tt.in
		s := parse(t, msg)
		got, err := io.ReadAll(DecodedBody(strings.NewReader(msg), s.Root))
		slow, _ := io.ReadAll(iotest.OneByteReader(DecodedBody(strings.NewReader(msg), s.Root)))
		if string(got) != tt.want || string(slow) != tt.want || err != nil {
			t.Errorf("%s %q: %q, %v; want %q", tt.enc, tt.in, got, err, tt.want)
		}
		var qp qpState
		var out []byte
		for i := range len(tt.in) { // however the input is cut
			out = qp.append(out, []byte(tt.in[i:i+1]))
		}
		if out = qp.flush(out); s.Root.Encoding == "quoted-printable" && string(out) != tt.want {
			t.Errorf("%q by octets: %q, want %q", tt.in, out, tt.want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	const flowed = "text/plain; format=flowed"
	for _, tt := range []struct{ typ, enc, in, want string }{
		{flowed, "", "one \r\ntwo\r\nthree", "one two\nthree"},
		{flowed, "", "> a \r\n> b\r\n>> c \r\nd\r\n", "> a b\n>> c \nd\n"},
		{flowed, "", " From x\r\n  y\r\n", "From x\n y\n"},
		{flowed, "", "a \r\n-- \r\nsig\r\n", "a \n-- \nsig\n"},
		{flowed + "; delsp=yes", "", "日 \r\n本\r\n", "日本\n"},
		{"text/plain; format=3Dflowed", "", "a \r\nb", "a \nb"},
		{flowed, "quoted-printable", "a=20\r\nb", "a b"},
		{"text/plain", "", "a\r\nb\rc\n", "a\nb\nc\n"},
		{"text/plain", "", "caf\xe9", "café"},
		{"text/plain", "", "caf\xc3\xa9", "café"},
		{"text/plain; charset=us-ascii", "", "\x1b$BF|K\\\x1b(B", "日本"},
		{"text/plain;", "", "\x1b$BF|K\\\x1b(B", "日本"},
		{"text/plain; charset=utf-8", "", "a\xffb", "a\ufffdb"},
		{"text/plain; charset=utf8", "", "é", "é"},
		{"text/plain; charset=windows-1258", "", "a", "a"},
		{"text/plain; charset=no-such", "", "caf\xe9", "café"},
		{"text/plain; charset=\"cp1252\"", "", "\x80", "€"},
		{"text/plain; charset=ansi", "", "\x80", "€"},
		{"text/plain; charset=cp932", "", "\x93\xfa", "日"},
		{"text/plain; charset=x-sjis", "", "\x93\xfa", "日"},
		{"text/plain; charset=gb18030", "", "\xc4\xe3", "你"},
		{"text/plain; charset=cp850", "", "\x82", "é"},
		{"text/plain; charset=cp437", "", "\x82", "é"},
		{"text/plain; charset=koi8-r", "", "\xc1", "а"},
		{"text/plain; charset=iso-8859-15", "", "\xa4", "€"},
		{"text/plain; charset=utf-16", "", "\x00a\x00b", "ab"},
		{"text/plain; charset=utf-16", "", "\xff\xfea\x00", "a"},
		{"text/plain; charset=utf-7", "", "a+AOk-b +- +2D3eAA-", "aéb + 😀"},
		{"text/plain; charset=unicode-1-1-utf-7", "", "+2D0-x", "\ufffdx"},
		{"text/html", "", "<meta charset=iso-8859-2>\xb1", "<meta charset=iso-8859-2>ą"},
		{"text/plain; charset=iso-2022-jp", "", "\x1b$BF|K\\\x1b(B % ok", "日本 % ok"},
		{"text/plain; charset=iso-8859-1", "", "\xef\xbb\xbfé", "é"},
	} {
		msg := "Content-Type: " + tt.typ + "\r\nContent-Transfer-Encoding: " + tt.enc + "\r\n\r\n" + tt.in
		s := parse(t, msg)
		if got, err := Text(strings.NewReader(msg), s.Root, 1<<20); got != tt.want || err != nil {
			t.Errorf("%s %q: %q, %v; want %q", tt.typ, tt.in, got, err, tt.want)
		}
	}
	msg := "A: b\r\n\r\naéé"
	if got, _ := Text(strings.NewReader(msg), parse(t, msg).Root, 4); got != "aé" {
		t.Errorf("cut to 4: %q", got)
	}
}

func TestHTMLText(t *testing.T) {
	t.Parallel()
	const hid = "secret"
	for _, tt := range []struct {
		in, want string
		hidden   int
	}{
		{"<p>a <b>b</b>\n c</p><p>d</p>", "a b c\n\nd\n", 0},
		{"a<br>b<br><br><br>c", "a\nb\n\nc\n", 0},
		{"<ul><li>a<li>b<ol start=1><li>c<li>d</ol></ul>e", "- a\n- b\n  1. c\n  2. d\n\ne\n", 0},
		{"<blockquote>a<br>b<blockquote>c</blockquote></blockquote>d", "> a\n> b\n>\n>> c\n\nd\n", 0},
		{"<pre>\na  b\n  c\n</pre>d", "a  b\n  c\n\nd\n", 0},
		{`<a href="https://evil.example/x">bank.example</a>`, "bank.example <https://evil.example/x>\n", 0},
		{`<a href="https://a.example/">a.example</a> <a href="mailto:x@y">x@y</a> <a href="#top">up</a> <a href="javascript:x">js</a>`, "a.example x@y up js\n", 0},
		{"<table><tr><td>a<td>b<tr><th>c</th><td>d</table>", "a\tb\nc\td\n", 0},
		{"&lt;b&gt; &amp; &eacute;&nbsp;x", "<b> & é x\n", 0},
		{"<img alt='a cat' src=x>", "[a cat]\n", 0},
		{"<title>t</title><style>p{}</style><script>x</script>a<!-- b -->", "a\n", 0},
		{"a<noscript><p>b</noscript>", "a\n\nb\n", 0},
		{"<div style='display:none'>" + hid + "</div>a", "a\n", 1},
		{"<div style='DISPLAY : none !important; display:block'>" + hid + "</div>a", "a\n", 1},
		{`<div style="d\69splay:/*x*/none">` + hid + "</div>a", "a\n", 1},
		{"<div hidden>" + hid + "<p>" + hid + "</div>a", "a\n", 1},
		{"<span style='visibility:hidden'>" + hid + "</span>a", "a\n", 1},
		{"<span style='font-size:0'>" + hid + "</span>a", "a\n", 1},
		{"<span style='font-size:1px'>" + hid + "</span>a", "a\n", 1},
		{"<span style='font:0/0 a'>" + hid + "</span>a", "a\n", 1},
		{"<td style='font-size:0'><div style='font-size:14px'>seen</div></td>", "seen\n", 0},
		{"<span style='opacity:0.0'>" + hid + "</span><span style='opacity:0.9'>seen</span>", "seen\n", 1},
		{"<div style='max-height:0px;overflow:hidden'>" + hid + "</div>a", "a\n", 1},
		{"<div style='position:absolute;left:-9999px'>" + hid + "</div>a", "a\n", 1},
		{"<span style='color:#ffffff'>" + hid + "</span>a", "a\n", 1},
		{"<font color=white>" + hid + "</font>a", "a\n", 1},
		{"<span style='color:transparent'>" + hid + "</span>a", "a\n", 1},
		{"<table bgcolor='#000'><tr><td style='color:rgb(255,255,255)'>seen</table>", "seen\n", 0},
		{"<div style='background:#123456;color:#123456'>" + hid + "</div>a", "a\n", 1},
		{"<style>.h, #i{display:none} @media x{.m{display:none}}</style><p class='a h'>" + hid + "<p id=i>" + hid + "<p class=m>seen", "seen\n", 2},
		{"<p><div hidden></p>" + hid + "</div>a", "a\n", 1},
		{"<b><div hidden></b>" + hid + "</div>a", "a\n", 1},
		{"<p><font style='display:none'>x</p><p>" + hid + "</p></font>a", "a\n", 1},
		{"<p style='display:none'>" + hid + "<p>seen", "seen\n", 1},
		{"<div hidden><span></div></span>seen", "seen\n", 0},
		{"<div style='display:none'>&zwnj;&nbsp;</div>a", "a\n", 0},
		{"<template>" + hid + "</template>a", "a\n", 1},
		{"s\u00ade\u200bcure", "secure\n", 0},
		{strings.Repeat("<div>", 600) + hid, "", 1},
		{"", "", 0},
		{"<", "<\n", 0},
	} {
		got, hidden := HTMLText(tt.in)
		if got != tt.want || hidden != tt.hidden {
			t.Errorf("%.200s\ngot  %q, %d hidden\nwant %q, %d", tt.in, got, hidden, tt.want, tt.hidden)
		}
	}
}
