package smtpgate

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// FuzzSession throws bytes at a server in each state of a session: it must end the
// connection when the peer has nothing more to say, panic nowhere, and accept a mail
// only where the bytes end one in order.
func FuzzSession(f *testing.F) {
	f.Add(0, "EHLO x\r\nAUTH PLAIN\r\n")
	f.Add(1, "MAIL FROM:<me@localhost>\r\nRCPT TO:<a>\r\nBDAT 3\r\nabc")
	f.Add(2, "BDAT 3 LAST\r\nabcRSET\r\nBDAT 0 LAST\r\n")
	f.Add(2, "BDAT 18\r\nFrom: me@localhostRSET\r\nBDAT 1\r\nxQUIT\r\n")
	f.Add(2, "BDAT 22 LAST\r\nFrom: me@localhost\r\n\r\nNOOP\r\nBDAT 5")
	f.Add(3, "From: me@localhost\r\n\r\n.\r\nNOOP\r\n")
	f.Add(3, "From: me@localhost\n\n.\n")
	f.Add(2, strings.Repeat("WHAT\r\n", 6)+"DATA\r\nFrom: me@localhost\r\n\r\n.\r\n") // go-smtp hangs up before DATA
	f.Add(4, "bWU=\r\nSTARTTLS\r\n")
	states := []string{
		"",
		"EHLO x\r\n" + plainAuth("me") + "\r\n",
		"EHLO x\r\n" + plainAuth("me") + "\r\nMAIL FROM:<me@localhost>\r\nRCPT TO:<pizza@localhost>\r\n",
		"EHLO x\r\n" + plainAuth("me") + "\r\nMAIL FROM:<me@localhost>\r\nRCPT TO:<pizza@localhost>\r\nDATA\r\n",
		"EHLO x\r\nAUTH LOGIN\r\n",
	}
	h := start(f, func(o *Options) { o.AuthDelay = time.Microsecond })
	f.Fuzz(func(t *testing.T, state int, in string) {
		before := len(h.back.stored())
		conn, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		go func() {
			io.WriteString(conn, states[((state%len(states))+len(states))%len(states)]+in)
			conn.(*net.TCPConn).CloseWrite()
		}()
		out, err := io.ReadAll(conn)
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Fatalf("state %d, %q: the connection hangs after %q", state, in, out)
		}
		if strings.Contains(h.log.String(), "panic") {
			t.Fatalf("state %d, %q: panic\n%s", state, in, h.log)
		}
		queued := strings.Count(string(out), " queued as ")
		stored := h.back.stored()[before:]
		if err == nil && queued != len(stored) {
			t.Fatalf("state %d, %q: %d mails, %d told", state, in, len(stored), queued)
		}
		for _, m := range stored {
			if strings.ContainsAny(strings.ReplaceAll(m.text, "\r\n", ""), "\r\n\x00") {
				t.Fatalf("state %d, %q: stored %q", state, in, m.text)
			}
		}
	})
}
