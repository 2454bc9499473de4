package smtpgate

import (
	"fmt"
	"io"
	"net"
	"time"
)

// lingerTime and lingerOctets bound what is still taken from a peer that was hung
// up on, and thrown away.
const (
	lingerTime   = time.Second
	lingerOctets = 4 << 20
)

// receive reads from the network. Everything that is to be sent goes out first.
func (g *guard) receive(p []byte) (int, error) {
	if err := g.handshake(); err != nil {
		return 0, err
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	g.setReadDeadline()
	return g.conn.Read(p)
}

func (g *guard) setReadDeadline() {
	g.mu.Lock()
	defer g.mu.Unlock()
	deadline := g.until
	switch {
	case g.command && g.srv.closing.Load():
		deadline = time.Unix(1, 0)
	case deadline.IsZero() && g.grace:
		deadline = time.Now().Add(g.srv.opts.StrayTime)
	case deadline.IsZero():
		deadline = time.Now().Add(g.srv.opts.DataTime)
	}
	g.conn.SetReadDeadline(deadline)
}

// nudge wakes a guard that waits for a command.
func (g *guard) nudge() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.command {
		g.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

func (g *guard) handshake() error {
	if g.tls == nil || g.shaken {
		return nil
	}
	g.tls.SetDeadline(time.Now().Add(g.srv.opts.HandshakeTime))
	if err := g.tls.HandshakeContext(g.srv.ctx); err != nil {
		return fmt.Errorf("tls handshake: %w", err)
	}
	g.shaken = true
	return nil
}

// Close sends what waits and closes the connection, unless it was handed on.
func (g *guard) Close() error {
	g.mu.Lock()
	moved := g.moved
	g.mu.Unlock()
	if moved {
		return nil
	}
	g.hangUp.Store(true) // go-smtp goes on reading what was sent ahead, without a session, and panics
	if g.tls == nil || g.shaken {
		g.flush()
	}
	if g.shaken {
		g.tls.Close() // close_notify, within 5 s
	}
	if g.hangUp.Load() && !g.srv.closing.Load() {
		g.linger()
	}
	g.srv.detach(g)
	return g.link.close()
}

// linger lets the last reply arrive: closing a socket with octets unread resets the
// connection, and the peer may lose what it has not read yet.
func (g *guard) linger() {
	half, ok := g.link.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	g.link.conn.SetReadDeadline(time.Now().Add(lingerTime))
	io.CopyN(io.Discard, g.link.conn, lingerOctets)
}

func (g *guard) LocalAddr() net.Addr  { return g.link.conn.LocalAddr() }
func (g *guard) RemoteAddr() net.Addr { return g.link.conn.RemoteAddr() }

// Deadlines are the guard's own.
func (g *guard) SetDeadline(time.Time) error      { return nil }
func (g *guard) SetReadDeadline(time.Time) error  { return nil }
func (g *guard) SetWriteDeadline(time.Time) error { return nil }
