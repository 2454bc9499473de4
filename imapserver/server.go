package imapserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// store is what IMAP needs of a mailbox.Store.
type store interface {
	Commit(ctx context.Context, account mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error)
	Stage(ctx context.Context, account mailbox.AccountID, r io.Reader, limit int64) (mailbox.Blob, error)
	Space(ctx context.Context, account mailbox.AccountID) (mailbox.Space, error)
	OpenBlob(ctx context.Context, account mailbox.AccountID, id string) (mailbox.Body, error)
	Record(ctx context.Context, account mailbox.AccountID, key string) (mailbox.Record, error)
	NextMessageID(account mailbox.AccountID) (mailbox.MessageID, error)
	Mailboxes(ctx context.Context, account mailbox.AccountID) ([]mailbox.Mailbox, error)
	Snapshot(ctx context.Context, account mailbox.AccountID, id mailbox.MailboxID) (*mailbox.Snapshot, error)
	Gone(ctx context.Context, account mailbox.AccountID, id mailbox.MailboxID, since mailbox.ModSeq) (uids imap.UIDSet, ok bool, err error)
	Flags(account mailbox.AccountID, set mailbox.FlagSet) []imap.Flag
	Read(ctx context.Context, account mailbox.AccountID, ids []mailbox.MessageID, want mailbox.Want, fn func(*mailbox.Item) error) error
	Lacking(ctx context.Context, account mailbox.AccountID, in mailbox.TextIn, text string) (*mailbox.Contents, error)
	OpenMessage(ctx context.Context, account mailbox.AccountID, id mailbox.MessageID) (mailbox.Body, error)
	Watch(account mailbox.AccountID, id mailbox.MailboxID) (wake <-chan struct{}, cancel func())
	Enter(account mailbox.AccountID, id mailbox.MailboxID) (leave func())
}

// authenticator checks passwords. mailbox.Accounts has it.
type authenticator interface {
	Authenticate(ctx context.Context, login, password string) (mailbox.Identity, error)
	Verifiers(ctx context.Context, login string) (mailbox.Verifiers, error)
}

// guesses remembers wrong passwords across connections (internal/guesses).
type guesses interface {
	// Wrong returns how long the answer to a wrong password has to wait.
	Wrong(login string) time.Duration
}

// Options configures a Server. Zero values mean the defaults named here.
type Options struct {
	Store    store
	Accounts authenticator
	Guesses  guesses      // nil: only what a connection itself tried counts
	TLS      *tls.Config  // nil: no STARTTLS
	Log      *slog.Logger // nil: none
	Name     string       // product, for ID; default "Pizza Mail"
	Version  string       // for ID
	// Hidden names capabilities that a login is not told of and that are unknown to it;
	// asked at each login. nil: none.
	Hidden func(login string) []string

	MaxLiteral         int64         // octets of an appended message; default 50 MiB
	MaxCommand         int           // octets of a command, and of its literals, APPEND's message aside; default 64 KiB
	MaxConns           int           // connections in all; default 2000
	MaxConnsPerAccount int           // logged-in connections of an account; default 64
	LoginTimeout       time.Duration // to log in, and between commands before that; default 60 s
	IdleTimeout        time.Duration // without a command or in IDLE; default 35 min (RFC 9051 section 5.4: at least 30)
	ReadTimeout        time.Duration // without progress inside a command; default 5 min
	WriteTimeout       time.Duration // without progress of a write; default 2 min
	LoginDelay         time.Duration // after the first failed login, doubled after each further one; default 1 s
}

func (o *Options) setDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.LoginTimeout, time.Minute)
	def(&o.IdleTimeout, 35*time.Minute)
	def(&o.ReadTimeout, 5*time.Minute)
	def(&o.WriteTimeout, 2*time.Minute)
	def(&o.LoginDelay, time.Second)
	if o.MaxLiteral == 0 {
		o.MaxLiteral = 50 << 20
	}
	if o.MaxCommand == 0 {
		o.MaxCommand = maxLine
	}
	if o.MaxConns == 0 {
		o.MaxConns = 2000
	}
	if o.MaxConnsPerAccount == 0 {
		o.MaxConnsPerAccount = 64
	}
	if o.Name == "" {
		o.Name = "Pizza Mail"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Server serves IMAP on any number of listeners.
type Server struct {
	opt    Options
	recent *recentBook
	nextID atomic.Uint64
	wg     sync.WaitGroup // connections
	done   chan struct{}  // closed when Shutdown begins

	mu        sync.Mutex // guards what follows
	closing   bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	logins    map[mailbox.AccountID]int
}

// New returns a Server that serves nothing yet.
func New(opt Options) *Server {
	opt.setDefaults()
	return &Server{
		opt:       opt,
		recent:    newRecentBook(time.Now()),
		done:      make(chan struct{}),
		listeners: map[net.Listener]struct{}{},
		conns:     map[*conn]struct{}{},
		logins:    map[mailbox.AccountID]int{},
	}
}

// Serve accepts plain connections until Shutdown, then returns nil. STARTTLS is
// offered when Options.TLS is set. Passwords are taken only over TLS or from the
// machine itself.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, nil) }

// ServeTLS accepts connections that begin with TLS (RFC 8314) until Shutdown.
func (s *Server) ServeTLS(l net.Listener) error {
	if s.opt.TLS == nil {
		return errors.New("imapserver: ServeTLS without a TLS configuration")
	}
	return s.serve(l, s.opt.TLS)
}

func (s *Server) serve(l net.Listener, implicit *tls.Config) error {
	if !s.track(l) {
		return nil
	}
	defer s.untrack(l)
	pause := 5 * time.Millisecond
	for {
		raw, err := l.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			s.start(raw, implicit)
		case s.isClosing():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // out of file descriptors, most likely: it passes
			s.opt.Log.Warn("imap: accept", "err", err)
			select {
			case <-s.done:
				return nil
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
		}
	}
}

func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		l.Close()
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) untrack(l net.Listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	l.Close()
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// start serves one connection on a goroutine of its own.
func (s *Server) start(raw net.Conn, implicit *tls.Config) {
	c := newConn(s, raw, implicit)
	s.mu.Lock()
	full := len(s.conns) >= s.opt.MaxConns
	closing := s.closing
	if !full && !closing {
		s.conns[c] = struct{}{}
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if full || closing {
		c.turnAway()
		return
	}
	go func() {
		defer s.wg.Done()
		defer func() {
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		}()
		c.serve()
	}()
}

// login counts a connection of an account, unless there are too many.
func (s *Server) login(id mailbox.AccountID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logins[id] >= s.opt.MaxConnsPerAccount {
		return false
	}
	s.logins[id]++
	return true
}

func (s *Server) logout(id mailbox.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logins[id]--; s.logins[id] <= 0 {
		delete(s.logins, id)
	}
}

// Shutdown stops accepting, lets running commands end, says BYE to everybody and
// waits. When ctx ends first the rest is cut off, and its error returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		close(s.done)
	}
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.stop()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.wg.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		c.cut(context.Cause(ctx))
	}
	s.mu.Unlock()
	<-ended
	return ctx.Err()
}
