package imapserver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/internal/mime"
	"pizza/internal/scram/scramtest"
	"pizza/mailbox"
	"pizza/mailbox/boltstore"
)

const account mailbox.AccountID = "me"

// logins is an authenticator with fixed logins: me, reader and sender, all with the
// password secret.
type logins struct{}

func (logins) Authenticate(_ context.Context, login, password string) (mailbox.Identity, error) {
	scope := map[string]mailbox.Scope{
		"me": mailbox.ScopeFull, "reader": mailbox.ScopeRead, "sender": mailbox.ScopeSend,
	}[login]
	if scope == "" || password != "secret" {
		return mailbox.Identity{}, &mailbox.Error{Op: "authenticate", Kind: mailbox.Denied}
	}
	return mailbox.Identity{Account: account, Login: login, Credential: "default", Scope: scope,
		Addresses: []string{login + "@localhost"}}, nil
}

// Verifiers has them for the same logins, and none that fit for others.
func (l logins) Verifiers(ctx context.Context, login string) (mailbox.Verifiers, error) {
	if id, err := l.Authenticate(ctx, login, "secret"); err == nil {
		return scramtest.Verifiers(id, "secret"), nil
	}
	return scramtest.Verifiers(mailbox.Identity{}, rand.Text()), nil
}

// house is a server with a store of its own.
type house struct {
	t     testing.TB
	store mailbox.Store
	srv   *Server
	addr  string // plain
	tls   string // implicit TLS
	log   *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func seeds() []mailbox.Mailbox {
	box := func(id mailbox.MailboxID, name string, use imap.MailboxAttr) mailbox.Mailbox {
		return mailbox.Mailbox{ID: id, Name: name, SpecialUse: use, Subscribed: true, System: id < mailbox.FirstUserMailbox}
	}
	unread := box(13, "Unread", "")
	unread.Hidden = true
	return []mailbox.Mailbox{
		box(mailbox.Inbox, "INBOX", ""), box(2, "Action", imap.MailboxAttrImportant), box(3, "Action/Approve", ""),
		box(9, "Sent", imap.MailboxAttrSent), box(10, "Drafts", imap.MailboxAttrDrafts),
		box(11, "Trash", imap.MailboxAttrTrash), unread,
	}
}

// newHouse starts a server on loopback; edit may change its options.
func newHouse(t testing.TB, edit func(*Options)) *house {
	t.Helper()
	h := newQuietHouse(t, func(o *Options) {
		o.TLS = testTLS(t)
		if edit != nil {
			edit(o)
		}
	})
	h.addr = h.listen(h.srv.Serve)
	if h.srv.opt.TLS != nil {
		h.tls = h.listen(h.srv.ServeTLS)
	}
	return h
}

// newQuietHouse is newHouse without listeners, which a bubble cannot hold: use pipe.
func newQuietHouse(t testing.TB, edit func(*Options)) *house {
	t.Helper()
	h := &house{t: t, log: &syncBuffer{}}
	st, err := boltstore.Open(t.TempDir(), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.store = st
	if err := st.CreateAccount(t.Context(), account, seeds()); err != nil {
		t.Fatal(err)
	}
	opt := Options{Store: st, Accounts: logins{}, LoginDelay: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	edit(&opt)
	h.srv = New(opt)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.srv.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := st.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

// with is the house for another test, as a fuzz target is one.
func (h *house) with(t testing.TB) *house {
	own := *h
	own.t = t
	return &own
}

func (h *house) listen(serve func(net.Listener) error) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	go serve(l)
	return l.Addr().String()
}

// deliver puts a message into a mailbox, as the system does, and returns its UID.
func (h *house) deliver(box string, raw []byte, flags ...imap.Flag) imap.UID {
	h.t.Helper()
	ctx := context.Background()
	blob, err := h.store.Stage(ctx, account, bytes.NewReader(raw), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	structure, err := mime.Parse(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		h.t.Fatal(err)
	}
	id, err := h.store.NextMessageID(account)
	if err != nil {
		h.t.Fatal(err)
	}
	to := h.box(box).ID
	res, err := h.store.Commit(ctx, account, mailbox.Tx{Ops: []mailbox.Op{mailbox.AddMessage{
		ID: id, Blob: blob, Structure: structure, Flags: flags, Places: []mailbox.MailboxID{to},
		Date: time.Date(2026, 2, 1, 21, 52, 25, 0, time.FixedZone("", -8*3600)),
	}}})
	if err != nil {
		h.t.Fatal(err)
	}
	return res.UIDs[id][0].UID
}

func (h *house) box(name string) mailbox.Mailbox {
	h.t.Helper()
	all, err := h.store.Mailboxes(context.Background(), account)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, m := range all {
		if m.Name == name {
			return m
		}
	}
	h.t.Fatalf("no mailbox %s", name)
	return mailbox.Mailbox{}
}

var makeTLS = sync.OnceValues(func() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
})

func testTLS(t testing.TB) *tls.Config {
	cert, err := makeTLS()
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
}
