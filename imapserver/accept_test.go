package imapserver

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// brokenListener accepts nothing, as one does when there are no file descriptors left.
type brokenListener struct{ tries int }

func (l *brokenListener) Accept() (net.Conn, error) {
	l.tries++
	return nil, errors.New("too many open files")
}
func (l *brokenListener) Close() error   { return nil }
func (l *brokenListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestShutdownEndsTheWaitAfterAFailedAccept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := New(Options{}), &brokenListener{}
		ended := make(chan error)
		go func() { ended <- s.Serve(l) }()
		time.Sleep(10*time.Second + time.Millisecond) // of the bubble: the wait is 1 s by now
		synctest.Wait()
		if l.tries < 10 || l.tries > 20 {
			t.Errorf("%d tries in 10 s", l.tries)
		}
		tries, before := l.tries, time.Now()
		for range 2 {
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if waited := time.Since(before); waited != 0 || l.tries != tries {
			t.Errorf("it ended after %v and %d more tries", waited, l.tries-tries)
		}
	})
}
