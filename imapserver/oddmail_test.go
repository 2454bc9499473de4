package imapserver

import (
	"bytes"
	"context"
	"fmt"

	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"pizza/internal/mime"
	"pizza/mailbox"
)

// oddMails are the corpus and what does not fit into a file: any octets are a mail.
func oddMails(t *testing.T) map[string][]byte {
	files, err := filepath.Glob("../internal/testkit/eml/*.eml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d mails in the corpus, %v", len(files), err)
	}
	mails := map[string][]byte{
		"CR before CRLF":   []byte("Subject: a\rb\r\r\n\r\r\nx\ty\x01\xff\r\n"),
		"one octet":        []byte("\xff"),
		"line ends only":   []byte("\r\n\n\r\r\n"),
		"header over 1 MB": []byte("Subject: x\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\nbody"),
		"40 levels":        []byte(nestedMail(40)),
	}
	for _, f := range files {
		if mails[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return mails
}

// nestedMail is a mail of n multiparts, each in the one before.
func nestedMail(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	b.WriteString("\r\nthe text\r\n")
	for i := n - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "--b%d--\r\n", i)
	}
	return b.String()
}

// TestOddMails appends all kinds of broken mail and reads it with another implementation:
// BODY[] is what was stored and as long as RFC822.SIZE says, header and text make the
// whole, every part that BODYSTRUCTURE describes is there, and has the size it says.
func TestOddMails(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	c, err := imapclient.DialInsecure(h.addr, nil)
	check(t, err)
	defer c.Close()
	check(t, c.Login("me", "secret").Wait())
	_, err = c.Select("INBOX", nil).Wait()
	check(t, err)
	uid := imap.UID(0)
	for name, raw := range oddMails(t) {
		a := c.Append("INBOX", int64(len(raw)), nil)
		_, err := a.Write(raw)
		check(t, err)
		check(t, a.Close())
		if _, err := a.Wait(); err != nil {
			if !bytes.Contains(raw, []byte{0}) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		uid++
		checkOdd(t, c, name, uid, raw)
	}
}

func checkOdd(t *testing.T, c *imapclient.Client, name string, uid imap.UID, raw []byte) {
	t.Helper()
	whole := &imap.FetchItemBodySection{Peek: true}
	header := &imap.FetchItemBodySection{Peek: true, Specifier: imap.PartSpecifierHeader}
	text := &imap.FetchItemBodySection{Peek: true, Specifier: imap.PartSpecifierText}
	opt := &imap.FetchOptions{RFC822Size: true, Envelope: true, BodyStructure: &imap.FetchItemBodyStructure{Extended: true},
		BodySection: []*imap.FetchItemBodySection{whole, header, text}}
	got := fetchOne(t, c, name, uid, opt)
	if got == nil {
		return
	}
	if b := got.FindBodySection(whole); !bytes.Equal(b, raw) || got.RFC822Size != int64(len(raw)) {
		t.Errorf("%s: BODY[] has %d octets, RFC822.SIZE is %d, stored are %d", name, len(b), got.RFC822Size, len(raw))
	}
	if b := append(bytes.Clone(got.FindBodySection(header)), got.FindBodySection(text)...); !bytes.Equal(b, raw) {
		t.Errorf("%s: header and text are not the message", name)
	}
	if got.Envelope == nil || got.BodyStructure == nil {
		t.Fatalf("%s: %+v", name, got)
	}
	got.BodyStructure.Walk(func(path []int, part imap.BodyStructure) bool {
		leaf, single := part.(*imap.BodyStructureSinglePart)
		if !single || len(path) == 0 {
			return true
		}
		section := &imap.FetchItemBodySection{Peek: true, Part: path}
		got := fetchOne(t, c, name, uid, &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}})
		if b := got.FindBodySection(section); len(b) != int(leaf.Size) {
			t.Errorf("%s: part %v has %d octets, BODYSTRUCTURE says %d", name, path, len(b), leaf.Size)
		}
		return true
	})
}

func fetchOne(t *testing.T, c *imapclient.Client, name string, uid imap.UID, opt *imap.FetchOptions) *imapclient.FetchMessageBuffer {
	t.Helper()
	msgs, err := c.Fetch(imap.UIDSetNum(uid), opt).Collect()
	if err != nil || len(msgs) != 1 {
		t.Fatalf("%s: %d messages, %v", name, len(msgs), err)
	}
	return msgs[0]
}

// TestMIMELimits: 100 levels and 10,000 parts are described, what is beyond is one opaque
// leaf that holds all the rest, and every octet can still be read.
func TestMIMELimits(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	deep := nestedMail(3000)
	var wide strings.Builder
	wide.WriteString("Content-Type: multipart/mixed; boundary=b\r\n\r\n")
	for i := range 12000 {
		fmt.Fprintf(&wide, "--b\r\n\r\n%d\r\n", i)
	}
	wide.WriteString("--b--\r\n")
	h.deliver("INBOX", []byte(deep))
	h.deliver("INBOX", []byte(wide.String()))
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	bs := w.must("FETCH 1 BODYSTRUCTURE")[0]
	if n := strings.Count(bs, `"MIXED"`); n != mime.MaxDepth-1 || strings.Count(bs, `"APPLICATION" "OCTET-STREAM"`) != 1 {
		t.Errorf("%d levels: %.300s", n, bs)
	}
	path := strings.Repeat("1.", mime.MaxDepth-2) + "1"
	leaf := sectionOf(t, w.must("FETCH 1 BODY.PEEK[%s]", path)[0])
	if !strings.Contains(leaf, "the text") || !strings.HasPrefix(leaf, fmt.Sprintf("--b%d\r\n", mime.MaxDepth-1)) {
		t.Errorf("the leaf begins with %.60q", leaf)
	}
	bs = w.must("FETCH 2 BODYSTRUCTURE")[0]
	if n := strings.Count(bs, `"TEXT" "PLAIN"`); n != mime.MaxParts-2 || strings.Count(bs, `"APPLICATION" "OCTET-STREAM"`) != 1 {
		t.Errorf("%d parts", n)
	}
	rest := sectionOf(t, w.must("FETCH 2 BODY.PEEK[%d]", mime.MaxParts-1)[0])
	if !strings.Contains(rest, "\r\n9998\r\n") || !strings.HasSuffix(rest, "11999\r\n--b--\r\n") {
		t.Errorf("the rest is %.30q to %.30q", rest, rest[max(0, len(rest)-30):])
	}
	if got := sectionOf(t, w.must("FETCH 1 BODY.PEEK[]")[0]); got != deep {
		t.Error("the deep message differs")
	}
}

// sectionOf returns the literal of a FETCH response with one section.
func sectionOf(t *testing.T, response string) string {
	t.Helper()
	head, rest, _ := strings.Cut(response, "\r\n")
	lit := announced([]byte(head))
	if lit == nil || lit.size > int64(len(rest)) {
		t.Fatalf("no section in %.100q", response)
	}
	return rest[:lit.size]
}

// TestPartialsCost: a program that reads a large message in pieces of 64 KiB (Thunderbird)
// costs what it reads, not the message each time; so does its structure.
func TestPartialsCost(t *testing.T) {
	t.Parallel()
	const size, step = 48 << 20, 64 << 10
	h := newHouse(t, nil)
	st := &countingStore{Store: h.store}
	srv := New(Options{Store: st, Accounts: logins{}})
	h.addr = h.listen(srv.Serve)
	t.Cleanup(func() { srv.Shutdown(t.Context()) })
	h.deliver("INBOX", append([]byte(mail), bytes.Repeat([]byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd\r\n"), size/64)...))
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	w.must("FETCH 1 BODYSTRUCTURE")
	if n := st.read.Load(); n != 0 {
		t.Errorf("BODYSTRUCTURE reads %d octets of the message", n)
	}
	got := 0
	for i := range 64 {
		got += len(sectionOf(t, w.must("UID FETCH 1 (UID BODY.PEEK[]<%d.%d>)", i*step, step)[0]))
	}
	if got != 64*step {
		t.Fatalf("read %d octets", got)
	}
	if n := st.read.Load(); n > 64*(step+4096) {
		t.Errorf("%d octets were read for %d", n, got)
	}
}

// countingStore notes how many octets of messages are read.
type countingStore struct {
	mailbox.Store
	read atomic.Int64
}

type countingBody struct {
	mailbox.Body
	read *atomic.Int64
}

func (b countingBody) ReadAt(p []byte, off int64) (int, error) {
	n, err := b.Body.ReadAt(p, off)
	b.read.Add(int64(n))
	return n, err
}

func (s *countingStore) Read(ctx context.Context, account mailbox.AccountID, ids []mailbox.MessageID, want mailbox.Want, fn func(*mailbox.Item) error) error {
	return s.Store.Read(ctx, account, ids, want, func(it *mailbox.Item) error {
		if it.Body != nil {
			it.Body = countingBody{it.Body, &s.read}
		}
		return fn(it)
	})
}

func (s *countingStore) OpenMessage(ctx context.Context, account mailbox.AccountID, id mailbox.MessageID) (mailbox.Body, error) {
	b, err := s.Store.OpenMessage(ctx, account, id)
	if err != nil {
		return nil, err
	}
	return countingBody{b, &s.read}, nil
}
