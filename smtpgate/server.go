package smtpgate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	"pizza/mailbox"
)

// authenticator checks a login. mailbox.Accounts satisfies it.
type authenticator interface {
	Authenticate(ctx context.Context, login, password string) (mailbox.Identity, error)
	Verifiers(ctx context.Context, login string) (mailbox.Verifiers, error)
}

// guesses remembers wrong passwords across connections (internal/guesses).
type guesses interface {
	// Wrong returns how long the answer to a wrong password has to wait.
	Wrong(login string) time.Duration
}

// handler decides what becomes of mail.
type handler interface {
	// Recipient reports whether id may write to addr. A *mailbox.Error NotFound with
	// Text names what could have been meant.
	Recipient(ctx context.Context, id mailbox.Identity, addr string) error
	// Submit takes the mail over. When it returns without an error the mail is safe.
	Submit(ctx context.Context, s mailbox.Submission) (mailbox.Receipt, error)
}

// stager puts bytes where a Submission can name them, and says whether there is room.
// mailbox.Store satisfies it.
type stager interface {
	Space(ctx context.Context, account mailbox.AccountID) (mailbox.Space, error)
	Stage(ctx context.Context, account mailbox.AccountID, r io.Reader, limit int64) (mailbox.Blob, error)
}

// Options are what a Server needs and may be told. Zero values of the limits and
// times are the defaults named.
type Options struct {
	Accounts authenticator
	Guesses  guesses // nil: only what a connection itself tried counts
	Handler  handler
	Stager   stager
	TLS      *tls.Config  // nil: no STARTTLS, and ServeTLS fails
	Domain   string       // our name in greetings and Received; "localhost"
	Log      *slog.Logger // nil: nothing is logged

	MaxSize       int64 // octets of a message as received; 50 MiB
	MaxRecipients int   // of one message; 100
	MaxConns      int   // connections at once; 200

	LoginTime     time.Duration // from the connection to the login; 3 min
	CommandTime   time.Duration // for one command line; 5 min (RFC 5321 section 4.5.3.2.7)
	DataTime      time.Duration // without any octet of a message; 3 min
	HandshakeTime time.Duration // for the TLS handshake; 30 s
	WriteTime     time.Duration // for one reply; 1 min
	AuthDelay     time.Duration // before the first refused login is answered, doubled for each further; 1 s
	StrayTime     time.Duration // silence after a malformed end of a message; 3 s

	Now func() time.Time // nil: time.Now
}

func (o *Options) setDefaults() {
	orElse(&o.Domain, "localhost")
	orElse(&o.MaxSize, 50<<20)
	orElse(&o.MaxRecipients, 100)
	orElse(&o.MaxConns, 200)
	orElse(&o.LoginTime, 3*time.Minute)
	orElse(&o.CommandTime, 5*time.Minute)
	orElse(&o.DataTime, 3*time.Minute)
	orElse(&o.HandshakeTime, 30*time.Second)
	orElse(&o.WriteTime, time.Minute)
	orElse(&o.AuthDelay, time.Second)
	orElse(&o.StrayTime, 3*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Server serves SMTP on any number of listeners.
type Server struct {
	opts Options
	ctx  context.Context // of all connections; cancelled when Shutdown gives up waiting
	stop context.CancelCauseFunc

	// go-smtp's own servers, fed by the guards: one offers STARTTLS, one runs under
	// TLS, where a connection begins anew.
	plain, secure *engine

	closing atomic.Bool
	wg      sync.WaitGroup // links

	mu        sync.Mutex // guards below
	listeners map[net.Listener]struct{}
	guards    map[*guard]struct{}
	conns     int
}

// errShutdown is the cause of a connection's cancelled context.
var errShutdown = errors.New("smtpgate: server is shutting down")

// New returns a Server. Serve and ServeTLS start it.
func New(opts Options) *Server {
	opts.setDefaults()
	s := &Server{
		opts:      opts,
		listeners: make(map[net.Listener]struct{}),
		guards:    make(map[*guard]struct{}),
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.plain = newEngine(s, opts.TLS)
	s.secure = newEngine(s, nil)
	return s
}

// Serve accepts connections on l until Shutdown, then returns nil. STARTTLS is
// offered when there is a TLS configuration.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, false) }

// ServeTLS accepts connections that begin with a TLS handshake (RFC 8314).
func (s *Server) ServeTLS(l net.Listener) error {
	if s.opts.TLS == nil {
		return errors.New("smtpgate: ServeTLS without a TLS configuration")
	}
	return s.serve(l, true)
}

func (s *Server) serve(l net.Listener, implicit bool) error {
	if !s.track(l) {
		return l.Close()
	}
	defer s.untrack(l)
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			s.open(c, implicit)
		case s.closing.Load():
			return nil
		case isTemporary(err):
			s.opts.Log.Warn("smtp accept", "err", err)
			if !wait(s.ctx, 100*time.Millisecond) {
				return nil
			}
		default:
			return fmt.Errorf("smtpgate: accept: %w", err)
		}
	}
}

// isTemporary reports whether accepting may work again soon: too many open files,
// a peer that was gone before it was accepted.
func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// wait returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) untrack(l net.Listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	l.Close() // a listener that is closed twice is no loss
}

// open takes a new connection in, or turns it away when there are too many.
func (s *Server) open(c net.Conn, implicit bool) {
	s.mu.Lock()
	if s.closing.Load() || s.conns >= s.opts.MaxConns {
		s.mu.Unlock()
		s.turnAway(c, implicit)
		return
	}
	s.conns++
	s.wg.Add(1)
	s.mu.Unlock()
	l := newLink(s, c)
	if implicit {
		s.secure.serve(newGuard(s, l, tls.Server(c, s.opts.TLS)))
		return
	}
	s.plain.serve(newGuard(s, l, nil))
}

// turnAway answers in clear text only: a handshake for a connection that is not
// wanted would cost more than the connection.
func (s *Server) turnAway(c net.Conn, implicit bool) {
	if !implicit {
		c.SetWriteDeadline(time.Now().Add(time.Second))
		io.WriteString(c, "421 4.3.2 too many connections, try again later\r\n")
	}
	c.Close()
	s.opts.Log.Warn("smtp connection turned away", "remote", c.RemoteAddr().String())
}

// attach and detach keep the guards that Shutdown has to wake.
func (s *Server) attach(g *guard) {
	s.mu.Lock()
	s.guards[g] = struct{}{}
	s.mu.Unlock()
}

func (s *Server) detach(g *guard) {
	s.mu.Lock()
	delete(s.guards, g)
	s.mu.Unlock()
}

// closed is called once by each link.
func (s *Server) closed() {
	s.mu.Lock()
	s.conns--
	s.mu.Unlock()
	s.wg.Done()
}

// Shutdown stops accepting, tells idle connections 421, lets messages in transfer
// end, and closes what is left when ctx ends. It returns ctx's error then.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing.Store(true)
	for l := range s.listeners {
		l.Close()
	}
	for g := range s.guards {
		g.nudge()
	}
	s.mu.Unlock()

	err := s.drain(ctx)
	s.stop(errShutdown)
	if err != nil {
		s.abort()
		s.wg.Wait()
	}
	s.plain.close()
	s.secure.close()
	return err
}

func (s *Server) drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("smtpgate: shutdown: %w", context.Cause(ctx))
	}
}

// abort closes the sockets under all connections.
func (s *Server) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range s.guards {
		g.link.conn.Close()
	}
}

// engine is one go-smtp server that is fed with guards instead of a listener.
type engine struct {
	smtp  *smtp.Server
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	ended chan struct{}
}

func newEngine(s *Server, offer *tls.Config) *engine {
	e := &engine{conns: make(chan net.Conn), done: make(chan struct{}), ended: make(chan struct{})}
	e.smtp = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return newSession(s, c)
	}))
	e.smtp.Domain = s.opts.Domain
	e.smtp.TLSConfig = offer // only so that STARTTLS is advertised: the guard does it
	e.smtp.EnableSMTPUTF8 = true
	e.smtp.AllowInsecureAuth = true // the session decides
	e.smtp.MaxLineLength = 0        // the guard limits lines
	e.smtp.MaxMessageBytes = 0      // the session limits messages and says so in its own words
	e.smtp.ErrorLog = libraryLog{s.opts.Log}
	return e
}

// serve hands a guard to go-smtp, which runs it on a goroutine of its own.
func (e *engine) serve(g *guard) {
	e.once.Do(func() {
		go func() {
			defer close(e.ended)
			e.smtp.Serve((*feed)(e))
		}()
	})
	select {
	case e.conns <- g:
	case <-e.done:
		g.Close()
	}
}

// close ends the engine once no guard comes any more.
func (e *engine) close() {
	e.once.Do(func() { close(e.ended) })
	select {
	case <-e.done:
		return
	default:
	}
	e.smtp.Close()
	close(e.done)
	<-e.ended
}

// feed is an engine as the net.Listener that go-smtp wants.
type feed engine

func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

func (f *feed) Close() error   { return nil }
func (f *feed) Addr() net.Addr { return &net.TCPAddr{} }

// libraryLog takes what go-smtp logs: accept errors and panics of its own.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Printf(format string, v ...any) {
	l.log.Error("smtp library", "err", fmt.Sprintf(format, v...))
}

func (l libraryLog) Println(v ...any) { l.log.Error("smtp library", "err", fmt.Sprint(v...)) }
