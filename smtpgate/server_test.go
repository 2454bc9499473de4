package smtpgate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pizza/internal/scram/scramtest"
	"pizza/mailbox"
)

// #196 of go-smtp: after a time-out within DATA the rest of the mail was executed.
func TestDataTimeoutEndsTheConnection(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *Options) { o.DataTime = 50 * time.Millisecond })
	p := h.dial().login().begin()
	p.do("DATA", "354 ")
	p.send(okHeader + "half\r\n")
	p.want("421 4.4.2 ")
	// The rest of the mail, if anybody still listened:
	io.WriteString(p.conn, "MAIL FROM:<me@localhost>\r\nRCPT TO:<pizza@localhost>\r\nDATA\r\n"+okHeader+".\r\n")
	io.Copy(io.Discard, p.in)
	h.wantMails(0)
	h.log.wait("smtp session")
	if !strings.Contains(h.log.String(), "message cut") {
		t.Errorf("the log does not say why the session ended:\n%s", h.log)
	}
}

// Time-outs count silence, not the length of a message: go-smtp's ReadTimeout was for
// all of DATA.
func TestSlowUploadSucceeds(t *testing.T) {
	t.Parallel()
	const idle = 500 * time.Millisecond
	h := start(t, func(o *Options) { o.DataTime = idle })
	p := h.dial().login().begin()
	p.do("DATA", "354 ")
	p.send(okHeader)
	tick := time.NewTicker(idle / 10)
	defer tick.Stop()
	for range 14 { // more than the idle limit in all
		<-tick.C
		p.send("x")
	}
	p.do("\r\n.", "250 2.0.0 queued as ")
	h.wantMails(1)
}

func TestLongBodyLines(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login()
	for _, n := range []int{3000, maxLine - 2, maxLine - 1, maxLine, maxLine + 1, 300_000} {
		p.begin()
		p.do("DATA", "354 ")
		line := "." + strings.Repeat("x", n-1)
		p.send(okHeader + "." + line + "\r\n")
		p.do(".", "250 ")
		mails := h.back.stored()
		if got := mails[len(mails)-1].text; !strings.HasSuffix(got, "\r\n\r\n"+line+"\r\n") {
			t.Errorf("a line of %d octets was changed: %.60q", n, got[len(got)-min(len(got), 60):])
		}
	}
}

func TestLongCommandLineCloses(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial()
	p.want("220 ")
	p.do("NOOP "+strings.Repeat("x", maxLine-7), "250 ")
	p.send("NOOP " + strings.Repeat("x", maxLine-6) + "\r\n")
	p.want("500 5.5.2 ")
	p.gone()
}

func TestOversize(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *Options) { o.MaxSize = 100_000 })
	p := h.dial().login()
	fill := strings.Repeat("0123456789abcdef0123456789abcdef\r\n", 1)
	body := strings.Repeat(fill, (100_000-len(okHeader))/len(fill))
	body += strings.Repeat("x", 100_000-len(okHeader)-len(body)-2) + "\r\n"

	p.begin().do("DATA", "354 ")
	p.send(okHeader + body)
	p.do(".", "250 ") // exactly the limit
	p.begin().do("DATA", "354 ")
	p.send(okHeader + body + "y\r\n")
	p.do(".", "552 5.3.4 the message is over the limit of 97 KB")
	p.begin()
	p.send(fmt.Sprintf("BDAT %d LAST\r\n%s", 100_001, okHeader+body+"y"))
	p.want("552 5.3.4 ")
	p.do("NOOP", "250 ")
	// Far over the limit, nobody reads on.
	p.begin().do("DATA", "354 ")
	for range 4 {
		if _, err := io.WriteString(p.conn, okHeader+body); err != nil {
			break
		}
	}
	p.want("552 5.3.4 ")
	p.gone()
	h.wantMails(1)
}

// go-smtp takes the end of the connection for the end of the chunk.
func TestCutChunkIsNotAccepted(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login().begin()
	p.send("BDAT 1000 LAST\r\n" + okHeader)
	p.conn.(*net.TCPConn).CloseWrite()
	p.want("421 4.4.2 ")
	p.gone()
	h.wantMails(0)
}

func TestConnectionLostWithinData(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login().begin()
	p.do("DATA", "354 ")
	p.send(okHeader + "half")
	p.conn.(*net.TCPConn).CloseWrite()
	p.want("421 4.4.2 ")
	p.gone()
	h.wantMails(0)
}

func TestHeaderTooLarge(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login()
	for _, tt := range []struct {
		size int
		want string
	}{{maxHeader, "250 "}, {maxHeader + 1, "552 5.3.4 header too large"}} {
		p.begin().do("DATA", "354 ")
		head := strings.TrimSuffix(okHeader, "\r\n") + "X-Long: "
		p.send(head + strings.Repeat("x", tt.size-len(head)-4) + "\r\n\r\n")
		p.do(".", tt.want)
	}
	h.wantMails(1)
}

func TestTooManyRecipients(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login()
	p.do("MAIL FROM:<me@localhost>", "250 ")
	for i := range 100 {
		p.do(fmt.Sprintf("RCPT TO:<r%d@localhost>", i), "250 ")
	}
	p.do("RCPT TO:<r5@localhost>", "250 ") // again
	p.do("RCPT TO:<r100@localhost>", "452 4.5.3 ")
	p.do("DATA", "354 ")
	p.send(okHeader)
	p.do(".", "250 ")
	if got := h.wantMails(1)[0].Envelope.To; len(got) != 100 {
		t.Errorf("%d recipients were handed over, want 100", len(got))
	}
}

func TestPanicsAnswer421(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"auth", "rcpt", "stage", "submit"} {
		for _, last := range []string{"DATA", "BDAT"} {
			t.Run(where+" "+last, func(t *testing.T) {
				t.Parallel()
				h := start(t, nil)
				h.back.panicIn = where
				p := h.dial()
				p.want("220 ")
				p.do("HELO x", "250 ")
				p.send(plainAuth("me") + "\r\nMAIL FROM:<me@localhost>\r\nRCPT TO:<pizza@localhost>\r\n")
				if last == "DATA" {
					p.send("DATA\r\n" + okHeader + ".\r\n")
				} else {
					p.send(fmt.Sprintf("BDAT %d LAST\r\n%s", len(okHeader), okHeader))
				}
				all, err := io.ReadAll(p.in)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasSuffix(string(all), "421 4.3.0 internal error, closing connection; nothing was accepted\r\n") {
					t.Errorf("replies:\n%s", all)
				}
				if strings.Contains(string(all), "secret") {
					t.Errorf("the cause leaked:\n%s", all)
				}
				h.dial().want("220 ") // the server goes on
			})
		}
	}
}

func TestBackendErrorsAreMapped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		stage, submit error
		want          string
	}{
		{"disk full", &mailbox.Error{Op: "stage", Kind: mailbox.Full, Err: errors.New("secret")}, nil, "452 4.3.1 "},
		{"unknown", nil, errors.New("/secret/path: broken"), "451 4.3.0 internal error, try again later"},
		{"refused", nil, &mailbox.Error{Kind: mailbox.Refused, Text: "a loop"}, "550 5.7.1 a loop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			h.back.stageErr, h.back.submitErr = tt.stage, tt.submit
			p := h.dial().login().begin()
			p.do("DATA", "354 ")
			p.send(okHeader + "body\r\n")
			p.do(".", tt.want)
			p.do("NOOP", "250 ") // in step
			p.begin()
			p.send(fmt.Sprintf("BDAT %d LAST\r\n%s", len(okHeader), okHeader))
			p.want(tt.want)
			p.do("NOOP", "250 ")
		})
	}
}

// TestFullDisk: mail is refused before it is sent, by what its size is said to be too.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login()
	h.back.used.Store(1 << 40)
	p.do("MAIL FROM:<me@localhost>", "452 4.3.1 ")
	h.back.used.Store(1<<40 - 1000)
	p.do("MAIL FROM:<me@localhost> SIZE=1001", "452 4.3.1 ")
	p.do("MAIL FROM:<me@localhost> SIZE=1000", "250 ")
}

func TestAcceptedSaysWhatItBecame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		receipt mailbox.Receipt
		want    string
	}{
		{mailbox.Receipt{Task: "abc"}, "250 2.0.0 queued as abc"},
		{mailbox.Receipt{}, "250 2.0.0 accepted"},
		{mailbox.Receipt{Note: "filed: automatic mail"}, "250 2.0.0 accepted; filed: automatic mail"},
		{mailbox.Receipt{Task: "abc", Note: "two\r\nlines"}, "250 2.0.0 queued as abc; two  lines"},
	} {
		h := start(t, nil)
		h.back.receipt = tt.receipt
		p := h.dial().login().begin()
		p.do("DATA", "354 ")
		p.send(okHeader)
		p.send(".\r\n")
		if got := p.reply(); got != tt.want {
			t.Errorf("reply %q, want %q", got, tt.want)
		}
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dialTLS()
	p.want("220 ")
	p.do("EHLO [127.0.0.1]", "250-")
	p.do(plainAuth("cron"), "235 ")
	p.do(`MAIL FROM:<"cron"@localhost> BODY=8BITMIME SMTPUTF8`, "250 ")
	p.do(`RCPT TO:<"a@b"@localhost>`, "250 ")
	p.do(`RCPT TO:<@relay:pizza+pü@localhost>`, "250 ")
	p.do("DATA", "354 ")
	p.send("From: cron@localhost\r\n\r\n")
	p.do(".", "250 ")
	got := h.wantMails(1)[0].Submission
	e := got.Envelope
	want := mailbox.Envelope{
		From: "cron@localhost", To: []string{`"a@b"@localhost`, "pizza+pü@localhost"},
		UTF8: true, EightBit: true, RemoteAddr: "127.0.0.1", Helo: "[127.0.0.1]", TLS: true, Protocol: "UTF8SMTPSA",
	}
	if fmt.Sprintf("%+v", e) != fmt.Sprintf("%+v", want) {
		t.Errorf("envelope\n got %+v\nwant %+v", e, want)
	}
	if got.Identity.Scope != mailbox.ScopeSend || got.Identity.Account != "acc-cron" || !got.Received.Equal(testTime) {
		t.Errorf("submission %+v", got)
	}
}

// A password in clear from another machine would be read on the way.
func TestPlainTextLoginNeedsLoopback(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	client, server := net.Pipe()
	h.server.open(farAway{server}, false)
	p := h.peer(client)
	p.want("220 ")
	if got := p.do("EHLO x", "250-"); strings.Contains(got, "AUTH") || !strings.Contains(got, "STARTTLS") {
		t.Errorf("EHLO in clear from afar:\n%s", got)
	}
	p.do(plainAuth("me"), "538 5.7.11 ")
	if h.back.calls != 0 {
		t.Error("the password was looked at")
	}
	p.do("STARTTLS", "220 ")
	p.upgrade()
	if got := p.do("EHLO x", "250-"); !strings.Contains(got, "AUTH PLAIN LOGIN") {
		t.Errorf("EHLO under TLS from afar:\n%s", got)
	}
	p.do(plainAuth("me"), "235 ")
}

// farAway is a connection that comes from another machine.
type farAway struct{ net.Conn }

func (farAway) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *Options) { o.MaxConns = 2 })
	first, second := h.dial(), h.dial()
	first.want("220 ")
	second.want("220 ")
	third := h.dial()
	third.want("421 4.3.2 ")
	third.gone()
	first.do("QUIT", "221 ")
	first.gone()
	// The place is free once the server has noted the end, which the log tells.
	h.log.wait("smtp session")
	h.dial().want("220 ")
}

func TestIdleTimeouts(t *testing.T) {
	t.Parallel()
	t.Run("before login", func(t *testing.T) {
		t.Parallel()
		h := start(t, func(o *Options) { o.LoginTime = 50 * time.Millisecond })
		p := h.dial()
		p.want("220 ")
		p.want("421 4.4.2 ")
		p.gone()
	})
	t.Run("after login", func(t *testing.T) {
		t.Parallel()
		h := start(t, func(o *Options) { o.CommandTime = 500 * time.Millisecond })
		p := h.dial().login()
		p.want("421 4.4.2 ")
		p.gone()
	})
	t.Run("in a chunk", func(t *testing.T) {
		t.Parallel()
		h := start(t, func(o *Options) { o.DataTime = 50 * time.Millisecond })
		p := h.dial().login().begin()
		p.send("BDAT 100 LAST\r\nhalf")
		p.want("421 4.4.2 ")
		p.gone()
		h.wantMails(0)
	})
	t.Run("in the handshake", func(t *testing.T) {
		t.Parallel()
		h := start(t, func(o *Options) { o.HandshakeTime = 50 * time.Millisecond })
		conn, err := net.Dial("tcp", h.addrTLS)
		if err != nil {
			t.Fatal(err)
		}
		h.peer(conn).gone()
	})
}

func TestHandshakeFailureIsLogged(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	if conn, err := tls.Dial("tcp", h.addrTLS, &tls.Config{ServerName: "localhost"}); err == nil {
		conn.Close()
		t.Fatal("the client trusts a certificate it does not know")
	}
	h.log.wait("smtp session")
	if !strings.Contains(h.log.String(), "bad certificate") {
		t.Errorf("the log does not name the TLS alert:\n%s", h.log)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	idle, busy := h.dial().login(), h.dial().login().begin()
	busy.do("DATA", "354 ")
	busy.send(okHeader)
	inSubmit, release := make(chan struct{}), make(chan struct{})
	h.back.onSubmit = func(context.Context) error {
		close(inSubmit)
		<-release
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- h.server.Shutdown(context.Background()) }()
	idle.want("421 4.3.2 ")
	idle.gone()
	// The message in transfer ends, also with a pipelined one behind that does not begin.
	busy.send(".\r\nMAIL FROM:<me@localhost>\r\n")
	<-inSubmit
	close(release)
	busy.want("250 2.0.0 queued as ")
	busy.want("421 4.3.2 ")
	busy.gone()
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	h.wantMails(1)
	if conn, err := net.Dial("tcp", h.addr); err == nil {
		conn.Close()
		t.Error("the port is still open")
	}
}

func TestShutdownDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial().login().begin()
	p.do("DATA", "354 ")
	h.back.onSubmit = func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	p.send(okHeader + ".\r\n")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := h.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown returned %v", err)
	}
	h.wantMails(0)
}

func TestSessionIsLoggedOnceWithoutSecrets(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	p := h.dial()
	p.want("220 ")
	p.do("EHLO x", "250-")
	p.do("STARTTLS", "220 ")
	p.upgrade()
	p.do("EHLO x", "250-")
	p.do(plainAuth("me"), "235 ")
	p.begin().do("DATA", "354 ")
	p.send(okHeader)
	p.do(".", "250 ")
	p.do("QUIT", "221 ")
	p.gone()
	h.shutdown()
	log := h.log.String()
	if n := strings.Count(log, `msg="smtp session"`); n != 1 {
		t.Errorf("%d session lines:\n%s", n, log)
	}
	for _, want := range []string{"login=me", "tls=true", "messages=1"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in\n%s", want, log)
		}
	}
	if strings.Contains(log, "AG1l") || strings.Contains(log, "=secret") {
		t.Errorf("a password is in the log:\n%s", log)
	}
}

// What a script writes that uses Python's own library.
func TestPythonSmtplib(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	h := start(t, nil)
	host, port, err := net.SplitHostPort(h.addr)
	if err != nil {
		t.Fatal(err)
	}
	const script = `
import smtplib, ssl, sys
from email.message import EmailMessage
m = EmailMessage()
m["From"], m["To"], m["Subject"] = "me@localhost", "pizza@localhost", "Grüße"
m.set_content("first\n.\n..\nlast ü\n")
context = ssl._create_unverified_context()
with smtplib.SMTP(sys.argv[1], int(sys.argv[2])) as s:
    s.starttls(context=context)
    s.login("me", "secret")
    assert s.send_message(m) == {}
    try:
        s.sendmail("other@localhost", ["pizza@localhost"], "From: x\r\n\r\n")
    except smtplib.SMTPSenderRefused as e:
        assert e.smtp_code == 553, e
    else:
        raise Exception("sender was not refused")
`
	out, err := exec.Command(python, "-c", script, host, port).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := h.wantMails(1)[0].text; !strings.Contains(got, "first\r\n.\r\n..\r\nlast") {
		t.Errorf("stored:\n%s", got)
	}
}

// What arrives is checked and copied line by line, not octet by octet.
func BenchmarkBody(b *testing.B) {
	message := []byte(strings.Repeat("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd\r\n", 1<<14) + ".\r\n")
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		g := &guard{in: bufio.NewReaderSize(bytes.NewReader(message), maxLine)}
		n, err := io.Copy(io.Discard, &checked{src: g.beginData(), limit: 1 << 30})
		if err != nil || n != int64(len(message)-3) {
			b.Fatal(n, err)
		}
	}
}

// TestScram: SCRAM-SHA-256, with and without an initial response; a wrong proof and an
// unknown login get the same answer, and count as guesses at the login.
func TestScram(t *testing.T) {
	t.Parallel()
	g := &guessed{}
	h := start(t, func(o *Options) { o.Guesses = g })
	for _, tt := range []struct {
		client  scramtest.Client
		initial bool
		want    string
	}{
		{scramtest.Client{User: "me", Password: "secret"}, true, "235 "},
		{scramtest.Client{User: "me", Password: "secret", Authzid: "me@localhost"}, false, "235 "},
		{scramtest.Client{User: "me", Password: "secret", Authzid: "cron"}, true, "535 "},
		{scramtest.Client{User: "me", Password: "wrong"}, true, "535 5.7.8 wrong user name or password"},
		{scramtest.Client{User: "you", Password: "secret"}, true, "535 5.7.8 wrong user name or password"},
		{scramtest.Client{User: "reader", Password: "secret"}, true, "535 5.7.8 this password may only read"},
		{scramtest.Client{User: "broken", Password: "secret"}, true, "454 "},
	} {
		tt.client.Nonce = "abc"
		scramLogin(t, h.dial(), &tt.client, tt.initial, tt.want)
	}
	if got := fmt.Sprint(g.logins); got != "[me you]" {
		t.Errorf("wrong passwords of %s", got)
	}
	h.dial().do("EHLO x", "") // stays usable
}

type guessed struct{ logins []string }

func (g *guessed) Wrong(login string) time.Duration {
	g.logins = append(g.logins, login)
	return 0
}

func scramLogin(t *testing.T, p *peer, c *scramtest.Client, initial bool, want string) {
	t.Helper()
	code := base64.StdEncoding.EncodeToString
	p.want("220 ")
	p.do("EHLO x", "250-")
	first := "AUTH SCRAM-SHA-256 " + code([]byte(c.First()))
	if !initial {
		p.do("AUTH SCRAM-SHA-256", "334 ")
		first = code([]byte(c.First()))
	}
	got := p.do(first, "")
	if !strings.HasPrefix(got, "334 ") {
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", c.User, got)
		}
		return
	}
	challenge, err := base64.StdEncoding.DecodeString(strings.TrimSpace(got[4:]))
	if err != nil {
		t.Fatal(err)
	}
	final, err := c.Final(string(challenge))
	if err != nil {
		t.Fatal(err)
	}
	got = p.do(code([]byte(final)), "")
	if strings.HasPrefix(got, "334 ") {
		proof, err := base64.StdEncoding.DecodeString(strings.TrimSpace(got[4:]))
		if err != nil || !c.Trusts(string(proof)) {
			t.Errorf("the server's proof is %q", proof)
		}
		got = p.do("", "")
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s: %s", c.User, got)
	}
}
