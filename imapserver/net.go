package imapserver

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// progressConn lies under TLS and gives every connection deadlines by progress: a
// slow client may take as long as it likes for a message, as long as octets move.
type progressConn struct {
	net.Conn
	write time.Duration

	mu      sync.Mutex // guards what follows
	wait    time.Duration
	until   time.Time // an absolute end beside wait; zero: none
	stopped bool
}

// waitFor sets how long each read may wait, and until when all of them may.
func (p *progressConn) waitFor(d time.Duration, until time.Time) {
	p.mu.Lock()
	p.wait, p.until = d, until
	p.mu.Unlock()
}

func (p *progressConn) Read(b []byte) (int, error) {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return 0, os.ErrDeadlineExceeded
	}
	deadline := time.Now().Add(p.wait)
	if !p.until.IsZero() && p.until.Before(deadline) {
		deadline = p.until
	}
	err := p.Conn.SetReadDeadline(deadline)
	p.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// stop ends the present read and all later ones with a time-out.
func (p *progressConn) stop() {
	p.mu.Lock()
	p.stopped = true
	p.Conn.SetReadDeadline(time.Unix(1, 0))
	p.mu.Unlock()
}

// Write goes on after a time-out as long as some octets went out.
func (p *progressConn) Write(b []byte) (int, error) {
	written := 0
	for {
		if err := p.Conn.SetWriteDeadline(time.Now().Add(p.write)); err != nil {
			return written, err
		}
		n, err := p.Conn.Write(b[written:])
		written += n
		if err == nil || n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
	}
}

// linger lets the client read our last words: without it, what it still sends makes
// the system throw them away.
func (p *progressConn) linger() {
	if t, ok := p.Conn.(interface{ CloseWrite() error }); !ok || t.CloseWrite() != nil {
		return
	}
	p.Conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	var scrap [4096]byte
	for left := 1 << 20; left > 0; {
		n, err := p.Conn.Read(scrap[:])
		if err != nil {
			return
		}
		left -= n
	}
}

// loopback reports whether the peer is this machine.
func loopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return !ok && a != nil && a.Network() == "unix" || ok && t.IP.IsLoopback()
}
