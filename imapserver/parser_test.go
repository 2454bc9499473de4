package imapserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pizza/internal/mutf7"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for wire, name := range map[string]string{
		"Sent": "Sent", "A&-B": "A&B", "&ZeVnLIqe-": "日本語", "Entw&APw-rfe": "Entwürfe",
		"inbox": "INBOX", "InBoX/a": "INBOX/a", "inboxes": "inboxes", "&2D3eAA-": "😀",
	} {
		got, err := decodeName(wire, false)
		if err != nil || got != name {
			t.Errorf("decode(%q) = %q, %v; want %q", wire, got, err, name)
		}
		if back := mutf7.Encode(name); !strings.EqualFold(back, wire) {
			t.Errorf("encode(%q) = %q, want %q", name, back, wire)
		}
	}
	for _, wire := range []string{"&", "&A", "&AA-", "&AGE-", "&2D0-", "&2D3eAA", "caf\xc3\xa9", "&ZeVnLIqe=-", "a\x7fb", "&AAA-", "&ZeW-x&ZeV-"} {
		if got, err := decodeName(wire, false); err == nil {
			t.Errorf("decode(%q) = %q, want an error", wire, got)
		}
	}
	if got, err := decodeName("café & Co", true); err != nil || got != "café & Co" {
		t.Errorf("UTF-8 name = %q, %v", got, err)
	}
}

func TestMatchName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "Action/Approve", true}, {"%", "Action/Approve", false}, {"%", "Action", true},
		{"%/%", "Action/Approve", true}, {"Act*ve", "Action/Approve", true}, {"Act%ve", "Action/Approve", false},
		{"", "", true}, {"*a", "b", false}, {"INBOX", "INBOX", true}, {"a*b*c", "aXbXbXc", true}, {"a%%b", "ab", true},
	} {
		if got := matchName(tt.pattern, tt.name); got != tt.want {
			t.Errorf("matchName(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

// A pattern of many stars once took a server seconds. Where the cost is exponential this
// one does not end before the test is given up.
func TestMatchNameIsNotExponential(t *testing.T) {
	t.Parallel()
	pattern, name := strings.Repeat("*a", 300)+"b", strings.Repeat("a", 1000)
	if matchName(pattern, name) {
		t.Error("matched")
	}
}

func TestFetchLabels(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"BODY[]":            "BODY[]",
		"body.peek[header]": "BODY[HEADER]",
		"BODY.PEEK[HEADER.FIELDS (From To X-Strange)]<0.10>": "BODY[HEADER.FIELDS (From To X-Strange)]<0>",
		"BODY[1.2.mime]":                                 "BODY[1.2.MIME]",
		"BODY.PEEK[3.HEADER.FIELDS.NOT (date)]":          "BODY[3.HEADER.FIELDS.NOT (date)]",
		"BODY[HEADER.FIELDS ({4}\r\nFrom \"To\")]<5.99>": `BODY[HEADER.FIELDS ("From" "To")]<5>`,
		"RFC822.PEEK":                                    "RFC822",
	} {
		p := parser{b: []byte(in)}
		f := p.fetching(seqNumbers)
		if err := p.end(); err != nil || len(f.items) != 1 || f.items[0].label != want {
			t.Errorf("%q = %+v, %v; want %q", in, f.items, err, want)
		}
	}
	for _, in := range []string{"", "BODY[", "BODY[0]", "BODY[1.]", "BODY[1HEADER]", "BODY[MIME]", "BODY[HEADER.FIELDS ()]",
		"BODY[]<1>", "BODY[]<0.0>", "FOO", "(FLAGS", "BODY.PEEK", "BODY[TEXT.1]", "(FLAGS  UID)"} {
		p := parser{b: []byte(in)}
		p.fetching(seqNumbers)
		if p.end() == nil {
			t.Errorf("%q: no error", in)
		}
	}
}

func TestSearchSyntax(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"ALL", "1:*", "UID 1,5:7 UNSEEN", `OR FROM a (NOT TO "b" 3)`, "RETURN (MIN COUNT) ALL", "RETURN () ALL",
		"CHARSET utf-8 SUBJECT {4}\r\n\xc3\xbcab", "SINCE 1-Feb-2026 SENTBEFORE \"2-Feb-2026\"", "HEADER Message-ID \"\"",
		"KEYWORD $label1 UNKEYWORD x", "LARGER 0 SMALLER 18446744073", "YOUNGER 60 OLDER 1 OLDER 4294967295", "$", "NEW OLD RECENT",
	} {
		p := parser{b: []byte(" " + in)}
		p.searching()
		if err := p.end(); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, in := range []string{
		"", "FOO", "OR ALL", "NOT", "(ALL", "()", "SINCE 31-Feb-2026", "UID x", "0", "LARGER -1", "RETURN (X) ALL",
		"SUBJECT", "SUBJECT \xff", strings.Repeat("NOT ", 5000) + "ALL", strings.Repeat("(", 5000), "ALL)", "KEYWORD \\Seen",
	} {
		p := parser{b: []byte(" " + in)}
		p.searching()
		if p.end() == nil {
			t.Errorf("%.40q: no error", in)
		}
	}
}

func TestStoreSyntax(t *testing.T) {
	t.Parallel()
	p := parser{b: []byte(`+Flags.Silent \seen $label1 \ANSWERED`)}
	sf := p.storeFlags()
	if err := p.end(); err != nil || fmt.Sprint(sf.Flags) != `[\Seen $label1 \Answered]` || !sf.Silent {
		t.Errorf("%+v, %v", sf, err)
	}
}

// readAll cuts input into commands, as a connection does that refuses all messages.
func readAll(in string) (got []string, lost bool, err error) {
	r := &reader{max: maxLine, in: bufio.NewReaderSize(strings.NewReader(in), 64), proceed: func() {}}
	for {
		l, err := r.command()
		if err != nil {
			return got, lost, err
		}
		s := string(l.raw)
		if l.refused != nil {
			s = "refused " + s[:min(len(s), 12)]
		}
		if l.message != nil {
			s = "message " + s
			if l.lost, err = r.drain(l.message, maxDrain); err != nil {
				return got, l.lost, err
			}
		}
		got = append(got, s)
		if l.lost {
			return got, true, nil
		}
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string
		lost     bool
	}{
		{"plain", "a NOOP\r\nb NOOP\n", []string{"a NOOP", "b NOOP"}, false},
		{"literals", "a LOGIN {2}\r\nme {3+}\r\nx\r\n\r\nb NOOP\r\n", []string{"a LOGIN {2}\r\nme {3+}\r\nx\r\n", "b NOOP"}, false},
		{"append", "a APPEND INBOX {7+}\r\nb NOOP\n\r\nc NOOP\r\n", []string{"message a APPEND INBOX {7+}", "c NOOP"}, false},
		{"append, name as a literal", "a APPEND {5}\r\nINBOX (\\Seen) {3+}\r\nabc\r\nc NOOP\r\n",
			[]string{"message a APPEND {5}\r\nINBOX (\\Seen) {3+}", "c NOOP"}, false},
		{"append, the client waits", "a APPEND INBOX {7}\r\nc NOOP\r\n", []string{"message a APPEND INBOX {7}", "c NOOP"}, false},
		{"append, several", "a APPEND INBOX {2+}\r\nab {2+}\r\ncd\r\nc NOOP\r\n", []string{"message a APPEND INBOX {2+}", "c NOOP"}, false},
		{"append too large to drain", "a APPEND INBOX {70000+}\r\nb DELETE x\r\n", []string{"message a APPEND INBOX {70000+}"}, true},
		{"buffered literal too large", "a LOGIN {70000}\r\nb NOOP\r\n", []string{"refused a LOGIN {700", "b NOOP"}, false},
		{"the same, not synchronising", "a LOGIN {70000+}\r\nb NOOP\r\n", []string{"refused a LOGIN {700"}, true},
		{"several that are too large", "a LOGIN {60000+}\r\n" + strings.Repeat("x", 60000) + " {6000+}\r\n" + strings.Repeat("y", 6000) + "\r\nb NOOP\r\n",
			[]string{"refused a LOGIN {600", "b NOOP"}, false},
		{"number without end", "a LOGIN {99999999999999999999999999+}\r\nb NOOP\r\n", []string{"refused a LOGIN {999"}, true},
		{"long line", "a X" + strings.Repeat("x", 70000) + "\r\nb NOOP\r\n", []string{"refused a Xxxxxxxxxx", "b NOOP"}, false},
		{"long line with a literal", "a X" + strings.Repeat("x", 70000) + " {8+}\r\nb NOOP\r\n\r\nc NOOP\r\n", []string{"refused a Xxxxxxxxxx", "c NOOP"}, false},
		{"endless line", "a " + strings.Repeat("x", 3<<20), []string{"refused a xxxxxxxxxx"}, true},
		{"no literal at all", "a X {3-}\r\nb X 3}\r\nc X {}\r\nd X {+}\r\n", []string{"a X {3-}", "b X 3}", "c X {}", "d X {+}"}, false},
	} {
		got, lost, err := readAll(tt.in)
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || lost != tt.lost {
			t.Errorf("%s: %.200q lost=%v err=%v", tt.name, got, lost, err)
		}
	}
}

func TestPickFields(t *testing.T) {
	t.Parallel()
	raw := "From: a\r\nTo: b,\r\n\tc\r\nSubject : x\r\nno colon\r\nto: d\r\n\r\n"
	for _, tt := range []struct {
		names string
		not   bool
		want  string
	}{
		{"TO", false, "To: b,\r\n\tc\r\nto: d\r\n\r\n"},
		{"Subject", false, "Subject : x\r\n\r\n"},
		{"Date", false, "\r\n"},
		{"To From", true, "Subject : x\r\nno colon\r\n\r\n"},
	} {
		got := string(pickFields(nil, []byte(raw), strings.Fields(tt.names), tt.not))
		if tt.not {
			got = strings.Replace(got, "no colon\r\n", "", 1)
			tt.want = strings.Replace(tt.want, "no colon\r\n", "", 1)
		}
		if got != tt.want {
			t.Errorf("%s = %q, want %q", tt.names, got, tt.want)
		}
	}
}

func TestWriterLiteralFrom(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 1000, 65535, 65536, 65537, 300000} {
		data := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		var out bytes.Buffer
		w := &writer{w: &out}
		w.str(strings.Repeat("-", 40000)).literalFrom(bytes.NewReader(data), 0, int64(size))
		w.str(")")
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("{%d}\r\n%s)", size, data)
		if size == 0 {
			want = `"")`
		}
		if got := out.String()[40000:]; got != want {
			t.Errorf("%d octets: got %d, want %d", size, len(got), len(want))
		}
	}
}

// A body that cannot be read to its end must end the connection, not desynchronise it.
func TestWriterLiteralFails(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &writer{w: &out}
	w.literalFrom(strings.NewReader("short"), 0, 10)
	w.str("after")
	if err := w.flush(); err == nil || strings.Contains(out.String(), "after") {
		t.Errorf("err = %v, out = %q", err, out.String())
	}
}

// FuzzCommandLine reads and parses anything as commands: no panic, no endless loop, and
// what is parsed stays within the line.
func FuzzCommandLine(f *testing.F) {
	for _, s := range []string{
		"a LOGIN {2}\r\nme \"x\"\r\n", "a FETCH 1:* (FLAGS BODY.PEEK[HEADER.FIELDS (From)]<0.5>)\r\n",
		"a SEARCH RETURN (MIN) CHARSET UTF-8 OR (1:3 NOT SEEN) HEADER x \"\"\r\n", "a STORE 1 +FLAGS.SILENT (\\Seen)\r\n",
		"a LIST (SUBSCRIBED) \"\" (\"*\" %) RETURN (STATUS (MESSAGES))\r\n", "a APPEND INBOX (\\Seen) \" 1-Feb-2026 10:00:00 +0000\" {3+}\r\nabc\r\n",
		"a APPEND x UTF8 (~{3}\r\n", "a ID (\"name\" NIL)\r\n", "* \r\n\r\n a\r\n",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	parsers := []func(*parser){
		func(p *parser) { p.sp(); p.numSet(); p.sp(); p.fetching(uidNumbers) },
		func(p *parser) { p.searching() },
		func(p *parser) { p.sp(); p.numSet(); p.sp(); p.storeFlags() },
		func(p *parser) { p.sp(); p.numSet(); p.sp(); p.mailbox() },
		func(p *parser) { p.sp(); (&listing{response: "LIST"}).arguments(p) },
		func(p *parser) { p.sp(); p.mailbox(); p.sp(); p.statusItems() },
		func(p *parser) { p.sp(); p.astring(); p.sp(); p.astring() },
		func(p *parser) { p.sp(); p.mailbox(); p.sp(); p.appended(&literal{}) },
	}
	f.Fuzz(func(t *testing.T, in []byte, utf8 bool) {
		r := &reader{max: maxLine, in: bufio.NewReaderSize(bytes.NewReader(in), 64), proceed: func() {}}
		for {
			l, err := r.command()
			if err != nil || l.lost {
				return
			}
			for _, parse := range parsers {
				p := &parser{b: l.raw, utf8: utf8}
				p.tag()
				p.sp()
				p.word()
				parse(p)
				var syntax syntaxError
				if err := p.end(); p.i > len(p.b) || err != nil && !errors.As(err, &syntax) {
					t.Fatalf("%q: at %d, %v", l.raw, p.i, err)
				}
			}
			if l.message != nil {
				if lost, err := r.drain(l.message, maxDrain); lost || err != nil {
					return
				}
			}
		}
	})
}
