package boltstore

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"pizza/internal/mime"
	"pizza/mailbox"
)

const (
	maxGroup      = 1024     // Txs in one bbolt transaction
	maxGroupBytes = 32 << 20 // message bytes in one, about
)

// request is one Tx on its way through the writer.
type request struct {
	tx    mailbox.Tx
	seeds []mailbox.Mailbox // not nil: add missing seed mailboxes instead
	view  *viewWork         // not nil: work on a view instead

	renumber bool // instead: see Store.Renumber

	now     time.Time
	encoded map[*mime.Structure][]byte
	state   atomic.Int32 // waiting -> taken (by the writer) | left (by who asked)
	done    chan struct{}
	res     mailbox.Result
	err     error
}

const (
	waiting int32 = iota
	taken
	left
)

// submit hands a request to the writer and waits for its outcome.
func (a *account) submit(ctx context.Context, r *request) (mailbox.Result, error) {
	if err := ctx.Err(); err != nil {
		return mailbox.Result{}, ended("commit", err)
	}
	r.prepare(a.store.now())
	r.done = make(chan struct{})
	select {
	case <-a.closing:
		return mailbox.Result{}, mailbox.ErrClosed
	default:
	}
	if a.lead(r) {
		return r.res, r.err
	}
	select {
	case a.queue <- r:
	case <-ctx.Done():
		return mailbox.Result{}, ended("commit", ctx.Err())
	case <-a.closing:
		return mailbox.Result{}, mailbox.ErrClosed
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, left) {
			return mailbox.Result{}, ended("commit", ctx.Err())
		}
		<-r.done
	case <-a.stopped:
		if r.state.CompareAndSwap(waiting, left) {
			return mailbox.Result{}, mailbox.ErrClosed
		}
		<-r.done
	}
	return r.res, r.err
}

// lead commits r on the goroutine that asks, when nobody commits and nothing waits: to
// hand it to the writer and to be woken by it costs more than a small commit. What comes
// meanwhile waits for the writer, and is one group.
func (a *account) lead(r *request) bool {
	if len(a.queue) > 0 || !a.leading.TryLock() {
		return false
	}
	defer a.leading.Unlock()
	select {
	case <-a.closing:
		return false
	default:
	}
	r.state.Store(taken)
	a.commit([]*request{r})
	return true
}

// write is the part of the writer.
func (a *account) write(r *request) {
	a.leading.Lock()
	defer a.leading.Unlock()
	a.commit(a.gather(r))
}

// work is the writer: it takes what waits, commits it, and ends when the account
// closes and nothing waits any more.
func (a *account) work() {
	defer close(a.stopped)
	for {
		select {
		case r := <-a.queue:
			a.write(r)
		case <-a.closing:
			select {
			case r := <-a.queue:
				a.write(r)
			default:
				return
			}
		}
	}
}

// gather takes first and all that waits behind it.
func (a *account) gather(first *request) []*request {
	var group []*request
	size := int64(0)
	for r := first; ; {
		if r.state.CompareAndSwap(waiting, taken) {
			group = append(group, r)
			size += r.size()
		}
		if len(group) >= maxGroup || size >= maxGroupBytes {
			return group
		}
		select {
		case r = <-a.queue:
		default:
			return group
		}
	}
}

// size is about what the request adds to the file.
func (r *request) size() int64 {
	n := int64(0)
	for _, op := range r.tx.Ops {
		if add, ok := op.(mailbox.AddMessage); ok {
			n += min(add.Blob.Size, smallBlob)
		}
	}
	return n
}

// commit applies a group and answers. Nothing is shown before it is on disk.
func (a *account) commit(reqs []*request) {
	if len(reqs) == 0 {
		return
	}
	freed := a.transact(reqs)
	for _, r := range reqs {
		close(r.done)
	}
	for _, id := range freed {
		if err := a.stage.remove(id); err != nil {
			a.log.Warn("file of a deleted body stays until the next start", slog.Any("err", err))
		}
	}
}

// transact runs the group's bbolt transaction and publishes it. It returns the
// blobs whose files are no longer needed.
func (a *account) transact(reqs []*request) (freed []sum) {
	a.commitMu.Lock()
	defer a.commitMu.Unlock()
	flags := a.flags.mark()
	g, err := a.begin()
	if err == nil {
		err = g.all(reqs)
		g.unpin(err == nil)
	}
	switch {
	case err != nil:
		a.flags.cut(flags)
		a.spoil(reqs, err)
		return nil
	case g.changed:
		a.store.commits.Add(1)
		a.lastCommit = time.Now()
		a.publish(g)
	}
	return g.freed
}

// all runs every request and commits, or rolls all of them back.
func (g *group) all(reqs []*request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.a.log.Error("commit panicked", slog.Any("err", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", p)
		}
		_ = g.tx.Rollback() // no-op after Commit
	}()
	for _, r := range reqs {
		r.res, r.err = g.run(r)
	}
	if !g.changed {
		return nil
	}
	g.freed = slices.DeleteFunc(g.freed, func(id sum) bool { return needed(g.b, id.String()) })
	if err := g.a.store.hook("commit"); err != nil {
		return err
	}
	return g.tx.Commit()
}

func (g *group) unpin(committed bool) {
	for _, id := range g.used {
		g.a.stage.unpin(id, committed)
	}
	for _, id := range g.failed {
		g.a.stage.unpin(id, false)
	}
}

// spoil fails a group whose transaction did not commit. Whether it is on disk is
// unknown when the sync failed, so memory is read again from the file.
func (a *account) spoil(reqs []*request, err error) {
	a.log.Error("commit failed", slog.Any("err", err), slog.Int("txs", len(reqs)))
	for _, r := range reqs {
		if r.err == nil {
			r.res, r.err = mailbox.Result{}, wrap("commit", err)
		}
	}
	if err := a.reload(); err != nil {
		a.log.Error("state not read again after a failed commit", slog.Any("err", err))
	}
	a.watch.wakeAll()
}

// publish shows a committed group to readers, then wakes watchers.
func (a *account) publish(g *group) {
	a.flags.publish()
	woken := []mailbox.MailboxID{0}
	a.mu.Lock()
	for id, b := range g.boxes {
		woken = append(woken, id)
		if b == nil {
			delete(a.boxes, id)
			delete(a.snapshots, id)
			continue
		}
		a.boxes[id] = b
		if c := a.snapshots[id]; c != nil {
			c.snap = c.snap.With(b.Mailbox, edits(g.deltas[id]))
		}
	}
	if g.listed {
		a.arrange()
	}
	if g.dues {
		woken = append(woken, mailbox.DueEntries)
	}
	for _, d := range g.done {
		delete(a.claims, d)
	}
	a.mu.Unlock()
	a.search.grew(g.cnt.body)
	a.watch.wake(woken...)
}

// edits orders changes by UID; of several to one UID the last one counts.
func edits(changes []mailbox.Change) []mailbox.Change {
	slices.SortStableFunc(changes, func(a, b mailbox.Change) int { return int(int64(a.UID) - int64(b.UID)) })
	out := changes[:0]
	for i, c := range changes {
		if i+1 == len(changes) || changes[i+1].UID != c.UID {
			out = append(out, c)
		}
	}
	return out
}
