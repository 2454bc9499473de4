package mime

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const corpus = "../testkit/eml/*.eml"

func seed(f *testing.F) {
	files, _ := filepath.Glob(corpus)
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && len(b) < 64<<10 {
			f.Add(b)
		}
	}
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b--\r\n"))
	f.Add([]byte("x\ny"))
}

func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parse(t, string(b))
		check(t, string(b), s)
		line, err := Preview(bytes.NewReader(b), s, 20)
		if err != nil || utf8.RuneCountInString(line) > 20 || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("preview %q, %v", line, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(parse(f, "From: a@b\r\n\r\nx")))
	f.Add(Encode(parse(f, "From: a@b, C <c@d>\r\nTo: e@f\r\nReferences: <1@a> <2@a>\r\nIn-Reply-To: <2@a>\r\nMessage-ID: <3@a>\r\nSubject: s\r\nDate: Tue, 1 Dec 2026 18:00:00 +0530\r\n\r\nx")))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, _, _ = Rendered(b)
		fields, ferr := DecodeFields(b)
		sent, serr := DecodeDate(b)
		if s, err := Decode(b); err == nil {
			s.Root.Walk(func([]int, *Part) bool { return true })
			s.Root, s.Envelope, s.Body, s.BodyStructure = nil, nil, nil, nil
			if ferr != nil || !reflect.DeepEqual(fields, s) {
				t.Fatalf("DecodeFields: %v", ferr)
			}
			if serr != nil || !reflect.DeepEqual(sent, s.Date) {
				t.Fatalf("DecodeDate: %v, %v", sent, serr)
			}
		}
	})
}

func FuzzHeader(f *testing.F) {
	for _, v := range []string{"=?utf-8?q?a?= b", "=?iso-2022-jp?b?GyRC?=", "a\r\n b", "=?utf-7?q?+AOk-?=", "text/plain; a*0*=utf-8''%41; b=\"c"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		got := DecodeHeader(v)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00") {
			t.Fatalf("%q", got)
		}
		if w := sevenBit(v); !isASCII(w) || strings.ContainsAny(w, "\r\n\x00") {
			t.Fatalf("sevenBit: %q", w)
		}
		_, _, ps := parseContentType(v)
		if _, err := readWire(appendParams(nil, ps)); err != nil {
			t.Fatal(err)
		}
		if name := safeName(got); strings.ContainsAny(name, "/\\\x00") || !utf8.ValidString(name) {
			t.Fatalf("name %q", name)
		}
		parseDate(v)
	})
}

func FuzzAddress(f *testing.F) {
	for _, v := range []string{`"A, B" <a@b>, c@d`, "g: a@b;", "<@a:b@c>", "Smith, John <a@b>", "(x (y)) a@b", "a@[1]"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		for _, a := range ParseAddresses(v) {
			if s := a.Name + a.Local + a.Host; !utf8.ValidString(s) || strings.ContainsAny(s, "\r\n\x00") {
				t.Fatalf("%+v", a)
			}
		}
		wire, err := readWire(appendAddresses(nil, parseAddressList(unfold(v))))
		if err == nil {
			err = checkEnvelope([]any{nil, nil, wire, nil, nil, nil, nil, nil, nil, nil})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzText(f *testing.F) {
	seed(f)
	f.Add([]byte("Content-Type: text/html\r\n\r\n<div style='display:none'>x</div><ul><li>a"))
	f.Add([]byte("Content-Type: text/plain; format=flowed; charset=utf-7\r\n\r\n> a \r\n> +AOk-"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := strings.NewReader(string(b))
		parse(t, string(b)).Root.Walk(func(_ []int, p *Part) bool {
			v, err := Text(r, p, 1<<20)
			if err != nil || !utf8.ValidString(v) {
				t.Fatalf("%q, %v", v, err)
			}
			if out, _ := HTMLText(v); !utf8.ValidString(out) {
				t.Fatalf("%q", out)
			}
			return true
		})
	})
}
