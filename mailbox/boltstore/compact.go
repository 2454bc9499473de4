package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// bbolt reuses the pages of what was deleted, but its file never shrinks. So a file
// that is mostly free pages is written anew, beside the old one and while that is read
// and written:
//
//  1. All buckets are copied in key order, in steps of their own short read
//     transactions. From the beginning on every commit notes which keys it changed.
//  2. The keys changed meanwhile are copied again until few are left, and the new file
//     is synced.
//  3. With the writer held, the last few are copied, the new file is synced, takes the
//     old one's name, and the directory is synced. Only then does the writer go on.
//
// A key is right in the new file either because its last change came before it was
// copied or because it is among those copied again. A kill at any moment leaves one of
// the two files under the name, whole and with everything acknowledged; what is left of
// the other goes at the next start.

const (
	compactEvery = time.Minute      // how often it is looked whether a file is worth it
	compactIdle  = 10 * time.Second // without a commit, before it begins
	compactMin   = 8 << 20          // octets of free pages that are worth it, if they are half of the file
	compactStep  = 1 << 20          // octets copied in one transaction
	compactFew   = 256              // changed keys that are left for step 3
	compactMost  = 1 << 20          // changed keys after which it is given up for now
)

// compaction is one that is under way. What it notes is guarded by commitMu, which
// every commit holds.
type compaction struct {
	changed map[changedKey]struct{}
}

type changedKey struct {
	b   bkt
	key string
}

// errBusy: too much was changed to catch up.
var errBusy = errors.New("the account is too busy")

// noteChanges keeps what a Tx changed for a compaction under way, and how much it threw
// away. The caller holds commitMu.
func (g *group) noteChanges(notes []priorValue) {
	c := g.a.compacting
	for _, n := range notes {
		g.a.garbage += int64(len(n.old))
		if c != nil {
			c.changed[changedKey{n.b, string(n.key)}] = struct{}{}
		}
	}
}

// keepSmall gives space back from time to time until ctx ends.
func (s *Store) keepSmall(ctx context.Context) {
	tick := time.NewTicker(compactEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, a := range s.accountsOpen() {
			if !a.worthCompacting(compactIdle) {
				continue
			}
			if err := a.compact(ctx); err != nil && ctx.Err() == nil {
				a.log.Warn("space of deleted mail not given back", slog.Any("err", err))
			}
		}
	}
}

func (s *Store) accountsOpen() []*account {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*account
	for _, a := range s.open {
		out = append(out, a)
	}
	return out
}

// worthCompacting reports whether at least half of the file is free pages, compactMin
// at least, nothing was committed for idle, and the disk has room for the rest beside it:
// the reserve may serve for that, since more comes back. It looks only when about that much was
// deleted since it looked last.
func (a *account) worthCompacting(idle time.Duration) bool {
	if runtime.GOOS == "windows" { // an open file cannot be replaced there
		return false
	}
	a.commitMu.Lock()
	defer a.commitMu.Unlock()
	if a.garbage < compactMin || time.Since(a.lastCommit) < idle {
		return false
	}
	a.garbage = 0
	db := a.db.now.Load()
	stats := db.Stats()
	free := int64(stats.FreePageN+stats.PendingPageN) * int64(db.Info().PageSize)
	size := fileSize(a.db.Path())
	return free >= compactMin && free >= size/2 && a.store.disk.has(size-free+compactMin)
}

// compact writes the account's file anew.
func (a *account) compact(ctx context.Context) (err error) {
	began, was := time.Now(), fileSize(a.db.Path())
	temp := a.db.Path() + ".new"
	if err := removeStale(temp); err != nil {
		return err
	}
	fresh, err := openFresh(temp, was)
	if err != nil {
		return err
	}
	old := a.db.now.Load()
	a.watchChanges(&compaction{changed: map[changedKey]struct{}{}})
	pause, err := a.rewrite(ctx, fresh)
	a.watchChanges(nil) // before readers are awaited: a backup takes long
	if err != nil {
		return errors.Join(err, fresh.Close(), removeStale(temp))
	}
	a.log.Info("space of deleted mail given back", slog.Int64("before", was), slog.Int64("after", fileSize(a.db.Path())),
		slog.Duration("took", time.Since(began)), slog.Duration("held", pause))
	return old.Close() // waits for readers of it
}

// rewrite is the three steps. It returns how long writers were held.
func (a *account) rewrite(ctx context.Context, fresh *bolt.DB) (pause time.Duration, err error) {
	for b := range bktCount {
		if err := a.copyBucket(ctx, fresh, b); err != nil {
			return 0, err
		}
	}
	if err := a.store.hook("compact copied"); err != nil {
		return 0, err
	}
	for {
		keys, err := a.takeChanged(compactFew)
		if err != nil {
			return 0, err
		}
		if len(keys) == 0 {
			break
		}
		if err := a.copyKeys(ctx, fresh, keys); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(fresh.Sync(), a.store.hook("compact synced")); err != nil {
		return 0, err
	}
	return a.replace(ctx, fresh)
}

// replace is step 3.
func (a *account) replace(ctx context.Context, fresh *bolt.DB) (time.Duration, error) {
	a.commitMu.Lock()
	defer a.commitMu.Unlock()
	began := time.Now()
	keys := a.compacting.take()
	if err := a.copyKeys(ctx, fresh, keys); err != nil {
		return 0, err
	}
	fresh.NoSync, fresh.NoGrowSync = false, false
	if err := errors.Join(fresh.Sync(), a.store.hook("compact ready")); err != nil {
		return 0, err
	}
	if err := os.Rename(fresh.Path(), a.db.Path()); err != nil {
		return 0, err
	}
	a.db.now.Store(fresh) // from here on it is the file, whatever the directory says
	if err := errors.Join(syncDir(filepath.Dir(a.db.Path())), a.store.hook("compact renamed")); err != nil {
		a.log.Error("directory not synced after a compaction", slog.Any("err", err))
	}
	return time.Since(began), nil
}

func (a *account) watchChanges(c *compaction) {
	a.commitMu.Lock()
	defer a.commitMu.Unlock()
	a.compacting = c
}

// takeChanged takes the keys that were changed, when they are more than few.
func (a *account) takeChanged(few int) ([]changedKey, error) {
	a.commitMu.Lock()
	defer a.commitMu.Unlock()
	switch n := len(a.compacting.changed); {
	case n > compactMost:
		return nil, errBusy
	case n <= few:
		return nil, nil
	}
	return a.compacting.take(), nil
}

func (c *compaction) take() []changedKey {
	keys := make([]changedKey, 0, len(c.changed))
	for k := range c.changed {
		keys = append(keys, k)
	}
	clear(c.changed)
	return keys
}

// pair is a key and its value as read from the old file; value nil: it is gone.
type pair struct {
	b          bkt
	key, value []byte
}

// copyBucket copies a bucket as it is, in key order.
func (a *account) copyBucket(ctx context.Context, fresh *bolt.DB, b bkt) error {
	var after []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var step []pair
		err := a.db.View(func(tx *bolt.Tx) error {
			step = readStep(tx.Bucket([]byte(bucketNames[b])), b, after)
			return nil
		})
		if err == nil {
			err = putPairs(fresh, step)
		}
		if err != nil || len(step) == 0 {
			return err
		}
		after = step[len(step)-1].key
	}
}

func readStep(from *bolt.Bucket, b bkt, after []byte) (step []pair) {
	c := from.Cursor()
	k, v := c.Seek(after)
	if after != nil && bytes.Equal(k, after) {
		k, v = c.Next()
	}
	for size := 0; k != nil && size < compactStep; k, v = c.Next() {
		step = append(step, pair{b, bytes.Clone(k), cloneValue(v)})
		size += len(k) + len(v)
	}
	return step
}

// cloneValue is not nil for an empty value.
func cloneValue(v []byte) []byte { return append(make([]byte, 0, len(v)), v...) }

// copyKeys brings keys to what they are in the old file now.
func (a *account) copyKeys(ctx context.Context, fresh *bolt.DB, keys []changedKey) error {
	for len(keys) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		var step []pair
		err := a.db.View(func(tx *bolt.Tx) error {
			for size := 0; len(keys) > 0 && size < compactStep; keys = keys[1:] {
				k := keys[0]
				p := pair{b: k.b, key: []byte(k.key)}
				if v := tx.Bucket([]byte(bucketNames[k.b])).Get(p.key); v != nil {
					p.value = cloneValue(v)
				}
				step = append(step, p)
				size += len(p.key) + len(p.value)
			}
			return nil
		})
		if err == nil {
			err = putPairs(fresh, step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func putPairs(db *bolt.DB, pairs []pair) error {
	return db.Update(func(tx *bolt.Tx) error {
		for _, p := range pairs {
			b := tx.Bucket([]byte(bucketNames[p.b]))
			b.FillPercent = 0.9
			var err error
			if p.value == nil {
				err = b.Delete(p.key)
			} else {
				err = b.Put(p.key, p.value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// openFresh makes an empty file for what is in one of size octets. Nothing in it counts
// before it is synced as a whole.
func openFresh(path string, size int64) (*bolt.DB, error) {
	db, err := openBolt(path, size)
	if err != nil {
		return nil, err
	}
	db.NoSync, db.NoGrowSync = true, true
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range bucketNames {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close(), removeStale(path))
	}
	return db, nil
}

// removeStale removes what a compaction left that did not come to its end.
func removeStale(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("left of a compaction: %w", err)
	}
	return nil
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// background is what a store does beside its accounts.
type background struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func (b *background) start(fn func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.wg.Go(func() { fn(ctx) })
}

func (b *background) end() {
	if b.stop != nil {
		b.stop()
	}
	b.wg.Wait()
}
