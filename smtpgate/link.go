package smtpgate

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"pizza/internal/crockford"
)

// link is one connection from accept to close. It outlives STARTTLS, where guard
// and go-smtp session are replaced.
type link struct {
	srv      *Server
	conn     net.Conn
	id       string
	remote   string
	loopback bool
	started  time.Time
	log      *slog.Logger

	authed   atomic.Bool
	failures atomic.Int32 // refused logins
	attempts atomic.Int32 // AUTH commands
	messages atomic.Int32 // accepted
	octets   atomic.Int64 // of accepted messages

	once sync.Once

	mu    sync.Mutex // guards below
	login string
	tls   bool
	end   string // why it ended, when not by QUIT
}

func newLink(s *Server, c net.Conn) *link {
	l := &link{srv: s, conn: c, id: newID(), started: s.opts.Now()}
	if a := c.RemoteAddr(); a != nil {
		l.remote = a.String()
	}
	if ap, err := netip.ParseAddrPort(l.remote); err == nil {
		l.loopback = ap.Addr().Unmap().IsLoopback()
	}
	l.log = s.opts.Log.With("conn", l.id)
	return l
}

// host returns the peer's address without port, for Received.
func (l *link) host() string {
	host, _, err := net.SplitHostPort(l.remote)
	if err != nil {
		return "unknown"
	}
	return host
}

func (l *link) set(change func(*link)) {
	l.mu.Lock()
	change(l)
	l.mu.Unlock()
}

// close closes the socket and writes the session's one line.
func (l *link) close() error {
	err := l.conn.Close()
	l.once.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.log.Info("smtp session", "remote", l.remote, "login", l.login, "tls", l.tls,
			"messages", l.messages.Load(), "octets", l.octets.Load(),
			"dur", l.srv.opts.Now().Sub(l.started), "err", l.end)
		l.srv.closed()
	})
	return err
}

// newID names a connection or a message in the log and in Received: 80 random bits.
func newID() string { return crockford.Random(16) }
