package boltstore

import (
	"sync"

	"pizza/mailbox"
)

// watchers are the channels that want to know of commits, by mailbox; under 0
// those that want to know of any.
type watchers struct {
	mu sync.Mutex
	by map[mailbox.MailboxID]map[chan struct{}]struct{}
}

func (w *watchers) add(id mailbox.MailboxID) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[mailbox.MailboxID]map[chan struct{}]struct{}{}
	}
	if w.by[id] == nil {
		w.by[id] = map[chan struct{}]struct{}{}
	}
	w.by[id][ch] = struct{}{}
	return ch, func() { w.remove(id, ch) }
}

func (w *watchers) remove(id mailbox.MailboxID, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.by[id], ch)
	if len(w.by[id]) == 0 {
		delete(w.by, id)
	}
}

// wake leaves a token for the watchers of these mailboxes.
func (w *watchers) wake(ids ...mailbox.MailboxID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		for ch := range w.by[id] {
			select {
			case ch <- struct{}{}:
			default: // a token is waiting already
			}
		}
	}
}

func (w *watchers) wakeAll() {
	w.mu.Lock()
	ids := make([]mailbox.MailboxID, 0, len(w.by))
	for id := range w.by {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	w.wake(ids...)
}
