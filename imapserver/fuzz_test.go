package imapserver

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"
)

var plainTag = regexp.MustCompile(`^([A-Za-z0-9]+)( |$)`)

// waits are the commands that read lines of their own, or end the dialogue.
var waits = regexp.MustCompile(`(?i)idle|authenticate|logout|starttls|login`)

// fuzzStates are the beginnings of a session: each state, and what changes the language.
var fuzzStates = []string{
	"", "l LOGIN me secret\r\n", "l LOGIN me secret\r\ns SELECT INBOX\r\n", "l LOGIN reader secret\r\ns EXAMINE INBOX\r\n",
	"l LOGIN me secret\r\ne ENABLE QRESYNC\r\ns SELECT INBOX\r\n",
	"l LOGIN me secret\r\ne ENABLE IMAP4rev2 UTF8=ACCEPT\r\ns SELECT INBOX\r\n",
	"l LOGIN me secret\r\nn NOTIFY SET STATUS (personal (MessageNew MessageExpunge FlagChange MailboxName))\r\n",
}

// FuzzSession sends anything to a live session in each state. It must not panic or
// hang; and where the input is plain lines, each tag gets exactly one tagged reply, in
// order.
func FuzzSession(f *testing.F) {
	for _, s := range []string{
		"a NOOP\r\nb CAPABILITY\r\n", "a LOGIN me {6+}\r\nsecret\r\nb SELECT INBOX\r\n", "a\r\nb \r\n* x\r\n",
		"a FETCH 1:* (FLAGS BODY[1.MIME]<0.5> ENVELOPE BODYSTRUCTURE)\r\nb STORE 1 +FLAGS (\\Deleted x)\r\nc EXPUNGE\r\n",
		"a ENABLE QRESYNC\r\nb SELECT INBOX (QRESYNC (1 1 1:9 (1,3 2,9)))\r\nc UID FETCH $ (FLAGS) (CHANGEDSINCE 1 VANISHED PARTIAL -1:-2)\r\n",
		"a STORE 1:* (UNCHANGEDSINCE 0) +FLAGS.SILENT (\\Seen)\r\nb SEARCH RETURN (PARTIAL 1:2 MIN) MODSEQ \"/flags/x\" all 1\r\n",
		"a NOTIFY SET STATUS (SELECTED (MessageNew (UID) MessageExpunge)) (SUBTREE (a b) (MessageNew MessageExpunge MailboxName))\r\nb CREATE a/b\r\n",
		"a SEARCH RETURN (SAVE) OR TEXT x NOT 1\r\nb UID COPY $ Trash\r\nc UID FETCH $:1 ALL\r\n",
		"a APPEND INBOX {3+}\r\nabc\r\nb APPEND INBOX (\\Foo) {3+}\r\nabc\r\nc IDLE\r\nDONE\r\n",
		"a LIST (SUBSCRIBED) \"\" (% *) RETURN (STATUS (MESSAGES RECENT))\r\nb CREATE a/&AOQ-\r\nc RENAME a b\r\nd DELETE b/&AOQ-\r\n",
		"a ENABLE UTF8=ACCEPT\r\nb APPEND INBOX UTF8 (~{3+}\r\nabc)\r\nc UID MOVE 1:* Trash\r\nd CLOSE\r\ne STATUS Trash (SIZE)\r\n",
		"a SORT RETURN (SAVE MIN ALL) (REVERSE SUBJECT DATE DISPLAYFROM) UTF-8 TEXT x\r\nb UID THREAD REFERENCES US-ASCII $\r\nc THREAD ORDEREDSUBJECT KOI8-R ALL\r\n",
		"a FETCH 1:* (PREVIEW (LAZY) SAVEDATE EMAILID THREADID)\r\nb SEARCH OR THREADID Tx EMAILID M1 SAVEDON 1-Jan-2026\r\nc STATUS INBOX (MAILBOXID)\r\n",
		"a FETCH 1:* (UID MODSEQ PREVIEW SAVEDATE EMAILID THREADID BINARY.PEEK[1]<0.3> BINARY.SIZE[1]) (CHANGEDSINCE 1)\r\nb STORE 1 (UNCHANGEDSINCE 0) FLAGS ()\r\n",
		"a SORT RETURN (PARTIAL 1:2) (REVERSE DATE SUBJECT) UTF-8 ALL\r\nb UID THREAD REFERENCES US-ASCII ALL\r\nc SEARCH MODSEQ \"/flags/\\\\Seen\" all 2\r\n",
		"a SELECT INBOX (QRESYNC (1 1 1:9 (1:3 1:3)))\r\nb UID FETCH 1:* FLAGS (CHANGEDSINCE 1 VANISHED)\r\nc GETQUOTAROOT INBOX\r\nd CREATE x (USE (\\Archive))\r\n",
		"a APPEND INBOX {3+}\r\nabc {3+}\r\ndef ~{3+}\r\nghi\r\nb NOTIFY SET (selected (MessageNew (UID BODY.PEEK[]) MessageExpunge)) (subtree INBOX (MailboxName))\r\nc NOTIFY NONE\r\n",
		"a AUTHENTICATE PLAIN\r\n*\r\nb ID (\"a\" NIL)\r\nc LSUB \"\" %\r\n", "a UID EXPUNGE 1:*,4294967295\r\nb UNSELECT\r\n",
	} {
		for state := range byte(len(fuzzStates)) {
			f.Add(state, []byte(s))
		}
	}
	var faults syncBuffer // panics and faults of ours; nothing else is logged, for it is read each time
	h := newHouse(f, func(o *Options) {
		o.LoginTimeout, o.IdleTimeout, o.ReadTimeout = time.Second, 2*time.Second, time.Second
		o.Log = slog.New(slog.NewTextHandler(&faults, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	f.Fuzz(func(t *testing.T, state byte, in []byte) {
		h := h.with(t)
		if h.box("INBOX").Exists < 3 {
			h.deliver("INBOX", []byte(mail))
		}
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		setup := fuzzStates[int(state)%len(fuzzStates)]
		go func() { // the server may stop reading: what it says is read meanwhile
			io.WriteString(c, setup)
			c.Write(in)
			c.(*net.TCPConn).CloseWrite()
		}()
		tags, bye := replies(t, c)
		if log := faults.String(); log != "" {
			t.Fatal(log)
		}
		if want, checkable := expectedTags(setup + string(in)); checkable {
			compareTags(t, want, tags, bye)
		}
	})
}

// replies reads to the end and returns the tags of the tagged replies.
func replies(t *testing.T, c net.Conn) (tags []string, bye bool) {
	r := bufio.NewReader(c)
	w := &wire{t: t, c: c, r: r}
	for {
		s, err := w.response()
		if err != nil {
			if nerr, isNet := err.(net.Error); isNet && nerr.Timeout() {
				t.Fatalf("hangs after %q", tags)
			}
			return tags, bye
		}
		tag, rest, _ := strings.Cut(s, " ")
		switch {
		case strings.HasPrefix(s, "* BYE"):
			bye = true
		case tag != "*" && tag != "+":
			if !regexp.MustCompile(`^(OK|NO|BAD) `).MatchString(rest) {
				t.Fatalf("strange response %q", s)
			}
			tags = append(tags, tag)
		}
	}
}

// expectedTags returns the tags of input that is nothing but lines without literals.
func expectedTags(in string) (tags []string, checkable bool) {
	body, _ := strings.CutPrefix(in, "l LOGIN ")
	if waits.MatchString(body) || strings.ContainsAny(in, "{}") || !strings.HasSuffix(in, "\n") || len(in) > maxLine {
		return nil, false
	}
	for line := range bytes.Lines([]byte(in)) {
		text := string(trimEOL(line))
		if m := plainTag.FindStringSubmatch(text); m != nil {
			tags = append(tags, m[1])
		} else if strings.Trim(text, " ") != "" && !strings.HasPrefix(text, "*") && !strings.HasPrefix(text, " ") {
			return nil, false // a tag of other characters, perhaps
		}
	}
	return tags, true
}

func compareTags(t *testing.T, want, got []string, bye bool) {
	t.Helper()
	if bye && len(got) < len(want) {
		want = want[:len(got)]
	}
	if strings.Join(want, " ") != strings.Join(got, " ") {
		t.Fatalf("tagged replies %q, want %q", got, want)
	}
}
