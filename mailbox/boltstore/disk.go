package boltstore

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// defaultKeep is how many octets of a disk are kept free for what must still be
// recorded when new mail is refused: 5 % of its size, and 200 MB at most, because on a
// large disk 5 % is room for years of it.
func defaultKeep(size int64) int64 { return min(size/20, 200_000_000) }

// diskEvery is how long the disk's free space is taken as known. What is written
// meanwhile is counted.
const diskEvery = time.Second

// disk knows how much room there is.
type disk struct {
	ask   func() (free, size int64, err error)
	every time.Duration // 0: asked each time
	keep  int64
	log   *slog.Logger

	taken atomic.Int64 // octets written since it was asked

	mu   sync.Mutex // guards what follows
	at   time.Time
	room int64 // free less what is kept
	bad  bool  // the system did not say
	full bool
}

func newDisk(root string, opts Options, log *slog.Logger) *disk {
	d := &disk{ask: opts.Disk, keep: opts.Keep, log: log}
	if d.ask == nil {
		d.every = diskEvery
		d.ask = func() (int64, int64, error) { return freeSpace(root) }
	}
	return d
}

// took counts octets that were written.
func (d *disk) took(n int64) { d.taken.Add(n) }

// left is how many octets there are until the disk counts as full, never below 0. A
// disk that does not tell takes everything until a write fails.
func (d *disk) left() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.at.IsZero() || now.Sub(d.at) >= d.every {
		d.look()
		d.at = now
	}
	return max(0, d.room-d.taken.Load())
}

// has reports whether n octets can be written, the reserve included. A disk that does not
// tell has them.
func (d *disk) has(n int64) bool {
	free, _, err := d.ask()
	return err != nil || free >= n
}

// look asks the system. It tells the log when the disk becomes full, and when there is
// room again.
func (d *disk) look() {
	free, size, err := d.ask()
	d.taken.Store(0)
	if err != nil {
		if !d.bad {
			d.log.Warn("the disk does not tell its free space: mail is taken until a write fails", slog.Any("err", err))
		}
		d.bad, d.room, d.full = true, 1<<62, false
		return
	}
	keep := d.keep
	if keep == 0 {
		keep = defaultKeep(size)
	}
	d.bad, d.room = false, free-max(0, keep)
	if full := d.room <= 0; full != d.full {
		d.full = full
		d.tell(free, keep)
	}
}

func (d *disk) tell(free, keep int64) {
	if d.full {
		d.log.Warn("the disk is almost full: new mail is refused, tasks wait", slog.Int64("free", free), slog.Int64("kept", keep))
		return
	}
	d.log.Info("there is room on the disk again", slog.Int64("free", free))
}
