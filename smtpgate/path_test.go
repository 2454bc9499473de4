package smtpgate

import (
	"strings"
	"testing"
)

func TestPathOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command, want string
		bad           bool
	}{
		{command: "MAIL FROM:<>", want: ""},
		{command: "MAIL FROM:<me@localhost> SIZE=5", want: "me@localhost"},
		{command: "mail from: <me@localhost>", want: "me@localhost"},
		{command: "MAIL FROM:me@localhost BODY=8BITMIME", want: "me@localhost"},
		{command: `RCPT TO:<"a@b"@c.d>`, want: `"a@b"@c.d`},
		{command: `RCPT TO:<"a>b"@c.d> NOTIFY=NEVER`, want: `"a>b"@c.d`},
		{command: `RCPT TO:<"a\"b"@c.d>`, want: `"a\"b"@c.d`},
		{command: `RCPT TO:<"me"@localhost>`, want: "me@localhost"},
		{command: `RCPT TO:<"m\e"@localhost>`, want: "me@localhost"},
		{command: `RCPT TO:<""@localhost>`, want: `""@localhost`},
		{command: `RCPT TO:<"a..b"@localhost>`, want: `"a..b"@localhost`},
		{command: "RCPT TO:<@a,@b:c@d>", want: "c@d"},
		{command: "RCPT TO:<Postmaster>", want: "Postmaster"},
		{command: "RCPT TO:<x@[127.0.0.1]>", want: "x@[127.0.0.1]"},
		{command: "RCPT TO:<pü@localhost>", want: "pü@localhost"},
		{command: "RCPT TO:<a@b", bad: true},
		{command: "RCPT TO:<a@b c>", bad: true},
		{command: `RCPT TO:<"a@b>`, bad: true},
		{command: `RCPT TO:<"a\`, bad: true},
		{command: "RCPT TO:<@a>", bad: true},
		{command: "RCPT", bad: true},
	} {
		got, err := pathOf(tt.command)
		if (err != nil) != tt.bad || got != tt.want {
			t.Errorf("pathOf(%q) = %q, %v; want %q", tt.command, got, err, tt.want)
		}
	}
}

// A path survives being written into a command again.
func FuzzPath(f *testing.F) {
	f.Add(`"a@b"@c`)
	f.Add("a@b> X")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := pathOf("RCPT TO:<" + in + ">")
		if err != nil || strings.ContainsAny(in, "\x00\r\n") {
			return
		}
		again, err := pathOf("RCPT TO:<" + got + ">")
		if err != nil || again != got {
			t.Fatalf("%q became %q, then %q (%v)", in, got, again, err)
		}
	})
}
