package imapserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// fill puts n messages into INBOX, many to a transaction.
func (h *house) fill(n int) {
	ctx := context.Background()
	for n > 0 {
		var ops []mailbox.Op
		for range min(n, 500) {
			raw := []byte(strings.Replace(mail, "Hello", fmt.Sprintf("Hello %d", n), 1) + strings.Repeat("text of a line\r\n", 200+n%500))
			blob, err := h.store.Stage(ctx, account, bytes.NewReader(raw), 0)
			if err != nil {
				h.t.Fatal(err)
			}
			st, _ := mime.Parse(bytes.NewReader(raw), int64(len(raw)))
			id, err := h.store.NextMessageID(account)
			if err != nil {
				h.t.Fatal(err)
			}
			ops = append(ops, mailbox.AddMessage{ID: id, Blob: blob, Structure: st, Places: []mailbox.MailboxID{mailbox.Inbox}})
			n--
		}
		if _, err := h.store.Commit(ctx, account, mailbox.Tx{Ops: ops}); err != nil {
			h.t.Fatal(err)
		}
	}
}

func BenchmarkSession(b *testing.B) {
	h := newHouse(b, func(o *Options) { o.Log = nil })
	h.fill(10000)
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	for _, bm := range []struct{ name, command string }{
		{"SELECT", "SELECT INBOX"},
		{"FETCH chunk of a body", "UID FETCH 5000 BODY.PEEK[]<2000.1000>"},
		{"FETCH flags", "FETCH 1:* (UID FLAGS)"},
		{"FETCH envelope and structure", "FETCH 1:* (ENVELOPE BODYSTRUCTURE)"},
		{"FETCH Thunderbird headers", "UID FETCH 1:* (UID RFC822.SIZE FLAGS BODY.PEEK[HEADER.FIELDS (From To Cc Bcc Subject Date Message-ID Priority X-Priority References Newsgroups In-Reply-To Content-Type Reply-To Received)])"},
		{"FETCH bodies", "UID FETCH 1:* BODY.PEEK[]"},
		{"FETCH one body", "UID FETCH 5000 BODY.PEEK[]"},
		{"SEARCH subject", "SEARCH SUBJECT \"hello 77\""},
		{"SEARCH text", "SEARCH TEXT \"no such text\""},
		{"SEARCH unseen", "SEARCH UNSEEN"},
		{"SORT subject", "SORT (SUBJECT) UTF-8 ALL"},
		{"SORT date", "SORT (REVERSE DATE) UTF-8 ALL"},
		{"THREAD references", "THREAD REFERENCES UTF-8 ALL"},
		{"FETCH previews", "FETCH 1:* (PREVIEW)"},
		{"FETCH thread ids", "FETCH 1:* (EMAILID THREADID)"},
		{"STORE all", "STORE 1:* +FLAGS.SILENT (\\Seen)"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				w.raw(bm.command)
			}
		})
	}
}

// raw sends a command and reads to its tagged reply, which must be OK, at the least cost.
func (w *wire) raw(command string) {
	w.c.SetReadDeadline(time.Time{})
	io.WriteString(w.c, "zz "+command+"\r\n")
	w.await()
}

// await reads to the tagged reply of raw.
func (w *wire) await() {
	for {
		s, err := w.r.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // the numbers of a SEARCH
			s, err = w.r.ReadSlice('\n')
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if bytes.HasPrefix(s, []byte("zz ")) {
			if !bytes.HasPrefix(s, []byte("zz OK")) {
				w.t.Errorf("answer %s", s)
			}
			return
		}
		if lit := announced(trimEOL(s)); lit != nil {
			w.r.Discard(int(lit.size))
		}
	}
}

// TestServe serves a fresh mailbox until its standard input ends, for programs that
// are not Go. It runs when PIZZA_IMAP_TEST is an address to listen on.
func TestServe(t *testing.T) {
	addr := os.Getenv("PIZZA_IMAP_TEST")
	if addr == "" {
		t.Skip("PIZZA_IMAP_TEST is not set")
	}
	h := newHouse(t, nil)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	go h.srv.Serve(l)
	fmt.Println("serving on", l.Addr())
	io.Copy(io.Discard, os.Stdin)
}
