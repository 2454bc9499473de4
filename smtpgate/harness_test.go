package smtpgate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pizza/internal/scram/scramtest"
	"pizza/mailbox"
)

// backend is accounts, handler and stager in memory. It keeps what was submitted.
type backend struct {
	mu        sync.Mutex
	blobs     map[string][]byte
	mails     []taken
	submitErr error
	stageErr  error
	receipt   mailbox.Receipt
	onSubmit  func(context.Context) error // called without the lock
	panicIn   string
	calls     int // Authenticate
	used      atomic.Int64
}

type taken struct {
	mailbox.Submission
	text string
}

func newBackend() *backend {
	return &backend{blobs: map[string][]byte{}, receipt: mailbox.Receipt{Task: "k3v9m2x7qa"}}
}

// Verifiers has them for the logins that Authenticate knows, and none that fit for others.
func (b *backend) Verifiers(ctx context.Context, login string) (mailbox.Verifiers, error) {
	id, err := b.Authenticate(ctx, login, "secret")
	switch {
	case err == nil:
		return scramtest.Verifiers(id, "secret"), nil
	case isDenied(err):
		return scramtest.Verifiers(mailbox.Identity{}, rand.Text()), nil
	}
	return mailbox.Verifiers{}, err
}

func (b *backend) Authenticate(_ context.Context, login, password string) (mailbox.Identity, error) {
	b.mu.Lock()
	b.calls++
	b.mu.Unlock()
	if b.panicIn == "auth" {
		panic("secret cause")
	}
	if login == "broken" {
		return mailbox.Identity{}, errors.New("/var/lib/accounts.db: input/output error")
	}
	name, _, _ := strings.Cut(strings.ToLower(login), "@")
	scope, known := map[string]mailbox.Scope{"me": mailbox.ScopeFull, "cron": mailbox.ScopeSend, "reader": mailbox.ScopeRead}[name]
	if !known || password != "secret" {
		return mailbox.Identity{}, &mailbox.Error{Op: "authenticate", Kind: mailbox.Denied, Name: login, Err: errors.New("secret cause")}
	}
	return mailbox.Identity{
		Account: mailbox.AccountID("acc-" + name), Login: name, Credential: "default", Scope: scope,
		Addresses: []string{name + "@localhost", name + "@pizza.localhost"},
	}, nil
}

func (b *backend) Recipient(_ context.Context, _ mailbox.Identity, addr string) error {
	if b.panicIn == "rcpt" {
		panic("secret cause")
	}
	if strings.HasPrefix(addr, "nobody") {
		return &mailbox.Error{Op: "recipient", Kind: mailbox.NotFound, Name: addr, Text: "no such address: did you mean pizza@localhost?", Err: errors.New("secret cause")}
	}
	return nil
}

// Space is plenty, or none when the test says so.
func (b *backend) Space(context.Context, mailbox.AccountID) (mailbox.Space, error) {
	return mailbox.Space{Left: 1<<40 - b.used.Load()}, nil
}

func (b *backend) Stage(_ context.Context, _ mailbox.AccountID, r io.Reader, _ int64) (mailbox.Blob, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return mailbox.Blob{}, &mailbox.Error{Op: "stage", Err: err}
	}
	if b.panicIn == "stage" {
		panic("secret cause")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stageErr != nil {
		return mailbox.Blob{}, b.stageErr
	}
	sum := sha256.Sum256(data)
	id := hex.EncodeToString(sum[:])
	b.blobs[id] = data
	return mailbox.Blob{ID: id, Size: int64(len(data))}, nil
}

func (b *backend) Submit(ctx context.Context, s mailbox.Submission) (mailbox.Receipt, error) {
	if b.panicIn == "submit" {
		panic("secret cause")
	}
	if b.onSubmit != nil {
		if err := b.onSubmit(ctx); err != nil {
			return mailbox.Receipt{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.submitErr != nil {
		return mailbox.Receipt{}, b.submitErr
	}
	b.mails = append(b.mails, taken{s, string(b.blobs[s.Blob.ID])})
	return b.receipt, nil
}

func (b *backend) stored() []taken {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]taken(nil), b.mails...)
}

// logBuffer is where a server logs to in tests.
type logBuffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote sync.Cond
}

func newLogBuffer() *logBuffer {
	l := &logBuffer{}
	l.wrote.L = &l.mu
	return l
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrote.Broadcast()
	return l.b.Write(p)
}

// wait returns when text has been logged; the test's own time limit ends it else.
func (l *logBuffer) wait(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !strings.Contains(l.b.String(), text) {
		l.wrote.Wait()
	}
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// harness is a running server.
type harness struct {
	t        testing.TB
	back     *backend
	server   *Server
	log      *logBuffer
	addr     string
	addrTLS  string
	pool     *x509.CertPool
	finished chan error
}

var testTime = time.Date(2026, 12, 1, 9, 30, 0, 0, time.FixedZone("", 3600))

// start runs a server with short times; change may set others.
func start(t testing.TB, change func(*Options)) *harness {
	t.Helper()
	cert, pool := testCertificate(t)
	h := &harness{t: t, back: newBackend(), log: newLogBuffer(), pool: pool, finished: make(chan error, 2)}
	opts := Options{
		Accounts: h.back, Handler: h.back, Stager: h.back,
		TLS:       &tls.Config{Certificates: []tls.Certificate{cert}},
		Log:       slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		MaxSize:   1 << 20,
		AuthDelay: time.Millisecond,
		Now:       func() time.Time { return testTime },
	}
	if change != nil {
		change(&opts)
	}
	h.server = New(opts)
	plain, secure := listen(t), listen(t)
	h.addr, h.addrTLS = plain.Addr().String(), secure.Addr().String()
	go func() { h.finished <- h.server.Serve(plain) }()
	go func() { h.finished <- h.server.ServeTLS(secure) }()
	t.Cleanup(h.shutdown)
	return h
}

func (h *harness) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	h.server.Shutdown(ctx)
	for range 2 {
		select {
		case err := <-h.finished:
			if err != nil {
				h.t.Errorf("Serve returned %v after Shutdown", err)
			}
		case <-time.After(5 * time.Second):
			h.t.Fatal("Serve did not return after Shutdown")
		}
	}
	h.finished <- nil
	h.finished <- nil
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// testCertificate is made once: keys cost time.
var testCertificate = func() func(testing.TB) (tls.Certificate, *x509.CertPool) {
	var once sync.Once
	var cert tls.Certificate
	pool := x509.NewCertPool()
	var err error
	return func(t testing.TB) (tls.Certificate, *x509.CertPool) {
		t.Helper()
		once.Do(func() { cert, err = selfSigned(pool) })
		if err != nil {
			t.Fatal(err)
		}
		return cert, pool
	}
}()

func selfSigned(pool *x509.CertPool) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// peer is a client that says exactly what a test wants.
type peer struct {
	t    testing.TB
	h    *harness
	conn net.Conn
	in   *bufio.Reader
}

func (h *harness) dial() *peer {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.peer(conn)
}

func (h *harness) dialTLS() *peer {
	h.t.Helper()
	conn, err := tls.Dial("tcp", h.addrTLS, h.clientTLS())
	if err != nil {
		h.t.Fatal(err)
	}
	return h.peer(conn)
}

func (h *harness) clientTLS() *tls.Config {
	return &tls.Config{RootCAs: h.pool, ServerName: "localhost"}
}

func (h *harness) peer(conn net.Conn) *peer {
	p := &peer{t: h.t, h: h, conn: conn, in: bufio.NewReader(conn)}
	h.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	return p
}

func (p *peer) upgrade() {
	p.t.Helper()
	conn := tls.Client(p.conn, p.h.clientTLS())
	if err := conn.Handshake(); err != nil {
		p.t.Fatal(err)
	}
	p.conn, p.in = conn, bufio.NewReader(conn)
}

func (p *peer) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.conn, s); err != nil {
		p.t.Fatalf("send %.40q: %v", s, err)
	}
}

// reply reads one reply, also of several lines, without line ends at its end.
func (p *peer) reply() string {
	p.t.Helper()
	var all strings.Builder
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			p.t.Fatalf("reply: %v (after %q)", err, all.String())
		}
		all.WriteString(line)
		if len(line) > 3 && line[3] == ' ' {
			return strings.TrimRight(all.String(), "\r\n")
		}
	}
}

// do sends a command and wants a reply that begins so.
func (p *peer) do(command, want string) string {
	p.t.Helper()
	p.send(command + "\r\n")
	return p.want(want)
}

func (p *peer) want(prefix string) string {
	p.t.Helper()
	got := p.reply()
	if !strings.HasPrefix(got, prefix) {
		p.t.Fatalf("reply %q, want %q", got, prefix)
	}
	return got
}

// gone wants the end of the connection.
func (p *peer) gone() {
	p.t.Helper()
	rest, err := io.ReadAll(p.in)
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		p.t.Fatal("the connection is still open")
	}
	if len(rest) > 0 {
		p.t.Fatalf("more came before the end: %q", rest)
	}
}

func plainAuth(user string) string {
	return "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00"+user+"\x00secret"))
}

// login greets and logs in.
func (p *peer) login() *peer {
	p.t.Helper()
	p.want("220 ")
	p.do("EHLO there", "250-")
	p.do(plainAuth("me"), "235 ")
	return p
}

// begin starts a transaction up to DATA.
func (p *peer) begin() *peer {
	p.t.Helper()
	p.do("MAIL FROM:<me@localhost>", "250 ")
	p.do("RCPT TO:<pizza@localhost>", "250 ")
	return p
}

const okHeader = "From: me@localhost\r\nTo: pizza@localhost\r\nMessage-ID: <1@there>\r\nDate: Tue, 01 Dec 2026 09:00:00 +0100\r\nSubject: hi\r\n\r\n"

func (h *harness) wantMails(n int) []taken {
	h.t.Helper()
	got := h.back.stored()
	if len(got) != n {
		h.t.Fatalf("%d mails were accepted, want %d: %s", len(got), n, fmt.Sprint(got))
	}
	return got
}
