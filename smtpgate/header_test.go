package smtpgate

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"pizza/mailbox"
)

// deliver submits one message by DATA and returns the reply.
func deliver(p *peer, message string) string {
	p.t.Helper()
	p.begin().do("DATA", "354 ")
	p.send(message + ".\r\n")
	return p.reply()
}

func TestHeaderAtTheDoor(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login()
	in := "Authentication-Results: x; dmarc=pass\r\n" +
		"X-Pizza-Kind: approval\r\n\tfolded: yes\r\n" +
		"x-PIZZA-task : abc\r\n" +
		"From: Me <me@localhost>\r\n" +
		"X-Pizza-Model: runbook:mail\r\nX-Pizza-Budget: 3\r\nX-Pizza-At: tomorrow\r\n" +
		"Subject: a\r\n folded\r\n" +
		"Bcc: you@localhost\r\n" +
		"no colon here\r\n" +
		"Received: from elsewhere\r\n" +
		"AUTHENTICATION-RESULTS:\r\n \r\n" +
		"\r\nX-Pizza-Kind: in the body\r\n"
	if got := deliver(p, in); !strings.HasPrefix(got, "250 ") {
		t.Fatal(got)
	}
	text := h.wantMails(1)[0].text
	received, rest, _ := strings.Cut(text, "; ")
	const wantReceived = "Received: from there ([127.0.0.1])\r\n\tby localhost with ESMTPA id *\r\n\tfor <pizza@localhost>"
	if !globs(wantReceived, received) {
		t.Errorf("got %q", received)
	}
	date, rest, _ := strings.Cut(rest, "\r\n")
	if date != "Tue, 01 Dec 2026 09:30:00 +0100" {
		t.Errorf("date %q", date)
	}
	messageID, rest, _ := strings.Cut(rest, "\r\n")
	if !regexp.MustCompile(`^Message-ID: <[0-9a-hjkmnp-tv-z]{26}@pizza\.localhost>$`).MatchString(messageID) {
		t.Errorf("got %q", messageID)
	}
	want := "Date: " + date + "\r\n" +
		"From: Me <me@localhost>\r\n" +
		"X-Pizza-Model: runbook:mail\r\nX-Pizza-Budget: 3\r\nX-Pizza-At: tomorrow\r\n" +
		"Subject: a\r\n folded\r\n" +
		"Bcc: you@localhost\r\n" +
		"no colon here\r\n" +
		"Received: from elsewhere\r\n" +
		"\r\nX-Pizza-Kind: in the body\r\n"
	if rest != want {
		t.Errorf("stored\n%s\nwant\n%s", rest, want)
	}
}

func TestMessageIDIsMade(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login()
	for range 2 {
		if got := deliver(p, "From: me@localhost\r\n\r\nsame\r\n"); !strings.HasPrefix(got, "250 ") {
			t.Fatal(got)
		}
	}
	deliver(p, okHeader+"body\r\n")
	distinct := map[string]bool{}
	for i, m := range h.wantMails(3) {
		_, after, _ := strings.Cut(m.text, "\r\nMessage-ID: <")
		id, _, _ := strings.Cut(after, ">")
		distinct[id] = true
		if made := strings.HasSuffix(id, "@pizza.localhost"); made != (i < 2) || m.NoID != made {
			t.Errorf("mail %d: id %q, NoID %v", i, id, m.NoID)
		}
	}
	if len(distinct) != 3 || distinct[""] {
		t.Errorf("want 3 distinct ids: %v", distinct)
	}
}

func TestKeepsDateAndMessageID(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	deliver(h.dial().login(), okHeader+"body\r\n")
	text := h.wantMails(1)[0].text
	if i := strings.Index(text, okHeader); i < 0 || strings.Count(text[:i], "\r\n") != 3 || text[i:] != okHeader+"body\r\n" {
		t.Errorf("more than Received was added:\n%s", text)
	}
}

func TestAuthors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, header, want string }{
		{"own", "From: me@localhost\r\n", "250 "},
		{"other own, other case", "FROM: =?utf-8?q?M=C3=A9?= <ME@Pizza.LOCALHOST>\r\n", "250 "},
		{"with the dot of the root", "From: me@localhost.\r\nSender: me@Pizza.Localhost.\r\n", "250 "},
		{"folded", "From:\r\n \"Me, myself\"\r\n <me@localhost>\r\n", "250 "},
		{"two own", "From: me@localhost, Me <me@pizza.localhost>\r\nSender: me@localhost\r\n", "250 "},
		{"forged", "From: owner@localhost\r\n", "553 5.7.1 this login may not write as <owner@localhost>, but as me@localhost or me@pizza.localhost"},
		{"own name, forged address", "From: \"me@localhost\" <owner@localhost>\r\n", "553 5.7.1 "},
		{"one forged of two", "From: me@localhost, owner@localhost\r\n", "553 5.7.1 "},
		{"forged in a group", "From: us: me@localhost, owner@localhost;\r\n", "553 5.7.1 "},
		{"forged sender", "From: me@localhost\r\nSender: owner@localhost\r\n", "553 5.7.1 "},
		{"forged with blanks before the colon", "From : owner@localhost\r\n", "553 5.7.1 "},
		{"two From", "From: me@localhost\r\nFrom: owner@localhost\r\n", "550 5.6.0 the message has more than one From"},
		{"two From, second in old syntax", "From: me@localhost\r\nfrom  : owner@localhost\r\n", "550 5.6.0 "},
		{"none", "Subject: x\r\n", "550 5.6.0 the message has no From"},
		{"empty", "From:\r\n", "550 5.6.0 "},
		{"unquoted comma", "From: Smith, John <me@localhost>\r\n", "250 "},
		{"raw UTF-8", "From: Mé <me@localhost>\r\n", "250 "},
		{"raw Latin-1", "From: M\xe9 <me@localhost>\r\n", "250 "},
		{"unreadable", "From: <@>\r\n", "550 5.6.0 the From or Sender field"},
		{"hidden in a comment", "From: me@localhost (, owner@localhost)\r\n", "250 "},
		{"behind a comment", "From: (me@localhost) owner@localhost\r\n", "553 5.7.1 "},
		{"own without domain", "From: me\r\n", "550 5.6.0 "},
		{"no address", "From: Me\r\n", "550 5.6.0 "},
		{"empty group", "From: undisclosed:;\r\n", "550 5.6.0 "},
		{"starts with a continuation", " x\r\nFrom: me@localhost\r\n", "550 5.6.0 the header begins with a continuation line"},
		{"sub-address", "From: me+x@localhost\r\n", "553 5.7.1 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			p := h.dial().login()
			if got := deliver(p, tt.header+"\r\nbody\r\n"); !strings.HasPrefix(got, tt.want) {
				t.Errorf("reply %q, want %q", got, tt.want)
			}
			p.do("NOOP", "250 ")
			if tt.want != "250 " {
				h.wantMails(0)
			}
		})
	}
}

func TestMessageWithoutBody(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login()
	for _, message := range []string{"From: me@localhost\r\n", "From: me@localhost\r\n\r\n"} {
		if got := deliver(p, message); !strings.HasPrefix(got, "250 ") {
			t.Errorf("%q: %s", message, got)
		}
	}
	p.begin().send("BDAT 18 LAST\r\nFrom: me@localhost")
	p.want("250 ")
	for i, end := range []string{"\r\nFrom: me@localhost\r\n", "\r\nFrom: me@localhost\r\n\r\n", "\r\nFrom: me@localhost"} {
		if got := h.wantMails(3)[i].text; !strings.HasSuffix(got, end) {
			t.Errorf("stored %q", got)
		}
	}
	for _, message := range []string{"", "\r\n", "\r\nFrom: me@localhost\r\n"} {
		if got := deliver(p, message); !strings.HasPrefix(got, "550 5.6.0 ") {
			t.Errorf("%q: %s", message, got)
		}
	}
}

// FuzzHeader: whatever the header block, what comes out begins with our Received, has
// all other fields as they were, and no verdict from outside.
func FuzzHeader(f *testing.F) {
	f.Add("From: me@localhost\r\nX-Pizza-Kind: x\r\n y\r\n\r\n")
	f.Add("a: b\r\n\t\r\nX-Pizza-Model: c\r\n")
	f.Add("no colon\r\n:\r\nAuthentication-Results :x")
	f.Fuzz(func(t *testing.T, in string) {
		head, beyond, err := readHeader(&checked{src: strings.NewReader(in), limit: 1 << 20})
		if err != nil {
			return
		}
		if string(head)+string(beyond) != in[:len(head)+len(beyond)] {
			t.Fatalf("readHeader changed %q", in)
		}
		h, err := parseHeader(head)
		if err != nil {
			return
		}
		var all, kept strings.Builder
		for _, f := range h.fields {
			all.Write(f.raw)
			if !isRemoved(f.name) {
				kept.Write(f.raw)
			}
		}
		if all.String()+string(h.tail) != string(head) {
			t.Fatalf("parseHeader lost something of %q", head)
		}
		sub := mailbox.Submission{Envelope: mailbox.Envelope{Helo: "x\r\ny", To: []string{"a@b"}}, Received: testTime}
		out := string(h.render("localhost", sub, "<1@x>"))
		if !strings.HasPrefix(out, "Received: from xy ([unknown])\r\n\tby ") || !strings.HasSuffix(out, kept.String()+string(h.tail)) {
			t.Fatalf("render of %q is %q", head, out)
		}
		again, err := parseHeader([]byte(out))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range again.fields {
			if f.name == "authentication-results" || strings.HasPrefix(f.name, "x-pizza-") && isRemoved(f.name) {
				t.Fatalf("%q is still in %q", f.name, out)
			}
		}
		_ = checkAuthors(again, mailbox.Identity{Addresses: []string{"me@localhost"}})
	})
}

// Any way of cutting a message into reads gives the same verdict.
func FuzzChecked(f *testing.F) {
	for _, s := range []string{"a\r\nb\r\n", "a\nb", "\r", "a\r\r\n", "\n", "a\x00", "\r\n\r\n", "a\rb\n", "\n\r"} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, in string, step int) {
		if len(in) > 4096 {
			return
		}
		clean := strings.ReplaceAll(in, "\r\n", "")
		want := strings.ContainsAny(clean, "\r\n\x00")
		out, err := io.ReadAll(&checked{src: &stepReader{in, max(1, step%17)}, limit: 4096})
		if (err != nil) != want {
			t.Fatalf("%q in steps of %d: %v, want a fault: %v", in, step, err, want)
		}
		if err == nil && string(out) != in {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

type stepReader struct {
	s    string
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	n := copy(p, r.s[:min(r.step, len(r.s))])
	r.s = r.s[n:]
	if len(r.s) == 0 {
		return n, io.EOF
	}
	return n, nil
}
