// Package guesses remembers wrong passwords by login, so that guessing is slow on
// however many connections it is tried.
//
// What waits is the answer to a wrong password, never the check: whoever has the right
// one gets in at once, whatever others try on the same login at the same time. So
// nobody can lock an account, or slow it down, by guessing at it. A guesser pays with
// the connection that waits: connections are limited, and each guesses once in the
// longest wait.
//
// The book is in memory, bounded, and forgets: one wrong password a minute. It is safe
// for concurrent use. Unknown logins are counted as known ones are, so the waits do not
// tell which there are.
package guesses

import (
	"strings"
	"sync"
	"time"
)

const (
	// Longest is the longest wait.
	Longest = 30 * time.Second
	// forget is how long it takes until one wrong password is forgotten.
	forget = time.Minute
	// most is how many wrong passwords of a login are remembered: more would not wait longer.
	most = 16
	// maxLogins is how many logins are remembered.
	maxLogins = 10_000
)

// Book counts wrong passwords.
type Book struct {
	first time.Duration
	now   func() time.Time

	mu     sync.Mutex // guards logins
	logins map[string]tally
}

// tally is what is remembered of a login: n wrong passwords at the time last, fewer since.
type tally struct {
	n    int
	last time.Time
}

// New returns an empty book. first is how long the answer to the first wrong password
// waits; it doubles with each further one, up to Longest. now is the clock; nil is
// time.Now.
func New(first time.Duration, now func() time.Time) *Book {
	if now == nil {
		now = time.Now
	}
	return &Book{first: first, now: now, logins: map[string]tally{}}
}

// Wrong notes a wrong password and returns how long its answer has to wait.
func (b *Book) Wrong(login string) time.Duration {
	key := keyOf(login)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	t := b.logins[key].at(now)
	if t.n == 0 && len(b.logins) >= maxLogins {
		b.makeRoom(now)
	}
	t.n = min(t.n+1, most)
	b.logins[key] = t
	return min(b.first<<(t.n-1), Longest)
}

// at is the tally with what has been forgotten by now.
func (t tally) at(now time.Time) tally {
	gone := int(max(now.Sub(t.last), 0) / forget)
	if t.n <= gone {
		return tally{last: now}
	}
	return tally{n: t.n - gone, last: t.last.Add(time.Duration(gone) * forget)}
}

// makeRoom drops what is forgotten, or else, in a flood of made-up logins, those with
// the fewest wrong passwords: never the one that is guessed at.
func (b *Book) makeRoom(now time.Time) {
	for least := 0; least < most && len(b.logins) > maxLogins/2; least++ {
		for key, t := range b.logins {
			if t.at(now).n <= least {
				delete(b.logins, key)
			}
		}
	}
}

// keyOf is the login without what does not tell logins apart: case, and the domain.
func keyOf(login string) string {
	local, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(login)), "@")
	return strings.Clone(local[:min(len(local), 64)])
}
