package guesses

import (
	"fmt"
	"testing"
	"time"
)

func book() (*Book, *time.Time) {
	now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	return New(time.Second, func() time.Time { return now }), &now
}

func TestWaitsGrowAndEnd(t *testing.T) {
	t.Parallel()
	b, now := book()
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if got := b.Wrong("ann"); got != want*time.Second {
			t.Errorf("wrong password %d waits %v, want %d s", i+1, got, want)
		}
	}
	if got := b.Wrong("bob"); got != time.Second {
		t.Errorf("another login waits %v", got)
	}
	if got := b.Wrong(" Ann@pizza.localhost"); got != Longest {
		t.Errorf("the same login, written otherwise, waits %v", got)
	}
	*now = now.Add(5*forget + time.Second) // 8 were remembered
	if got := b.Wrong("ann"); got != 8*time.Second {
		t.Errorf("after five minutes the wait is %v", got)
	}
	*now = now.Add(time.Hour)
	if got := b.Wrong("ann"); got != time.Second {
		t.Errorf("after an hour the wait is %v", got)
	}
}

// TestFlood: made-up logins neither fill the memory nor push out the login that is
// guessed at.
func TestFlood(t *testing.T) {
	t.Parallel()
	b, _ := book()
	for range 10 {
		b.Wrong("ann")
	}
	for i := range 3 * maxLogins {
		b.Wrong(fmt.Sprint("made-up", i))
	}
	if n := len(b.logins); n > maxLogins {
		t.Errorf("%d logins are remembered", n)
	}
	if got := b.Wrong("ann"); got != Longest {
		t.Errorf("the flood made the wait %v", got)
	}
}

// TestClockBack: a clock that goes back forgets nothing and breaks nothing.
func TestClockBack(t *testing.T) {
	t.Parallel()
	b, now := book()
	b.Wrong("ann")
	*now = now.Add(-time.Hour)
	if got := b.Wrong("ann"); got != 2*time.Second {
		t.Errorf("the wait is %v", got)
	}
}
