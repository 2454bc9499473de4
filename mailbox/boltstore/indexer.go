package boltstore

import (
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pizza/internal/fold"
	"pizza/internal/mime"
	"pizza/internal/textindex"
)

// searchDir is the directory of an account's text index.
const searchDir = "search"

// The text index is derived: a worker reads what was committed, in order of content
// number, and adds it in small steps when no mail is coming in. Nothing waits for it;
// what it has not come to yet is not in its answers, and searches read that. When the
// directory is deleted it is made again.

// indexVersion changes with what indexer.texts does; fold and mime count for themselves.
const indexVersion = 1

const (
	// settle is how long after the opening of an account the worker begins, unless a
	// commit or a search comes first: commands that only look do not pay for it.
	settle = 2 * time.Second
	// quiet is how long after mail came in the worker takes it that none follows.
	quiet = 300 * time.Millisecond
	// patience is how long the worker waits for quiet, unless more than maxBehind contents
	// wait, which take a search about a tenth of a second to read.
	patience  = 5 * time.Second
	maxBehind = 1000
	// yield is how many times as long as it has worked the worker rests while it is not
	// quiet: it keeps up with about 500 messages a second. When four times maxBehind wait
	// all the same, it rests as long as it works.
	yield = 3
	// retry is how long the worker waits after a fault, such as a full disk.
	retry = time.Minute
)

// indexer is the text index of an account and its worker.
type indexer struct {
	a      *account
	folder *fold.Folder
	grams  textindex.Grams
	buf    []byte

	wake      chan struct{} // capacity 1: there is something to do
	loaded    chan struct{} // closed: index is set, unless it does not open
	stopped   chan struct{} // closed: the worker has ended
	committed atomic.Uint64 // greatest content number that is on disk
	lastMail  atomic.Int64  // when that grew, Unix nanoseconds
	hurried   atomic.Int64  // who waits in CatchUp

	index *textindex.Index // after loaded

	mu       sync.Mutex // guards what follows
	progress chan struct{}
	fault    error // why the worker rests

	large   map[uint64]sum // contents in files, by number, up to the greatest one known
	largest uint64
}

func newIndexer(a *account) *indexer {
	return &indexer{a: a, folder: fold.New(), wake: make(chan struct{}, 1), loaded: make(chan struct{}),
		stopped: make(chan struct{}), progress: make(chan struct{})}
}

// grew tells the worker that a commit is on disk, with the greatest content number in it.
func (x *indexer) grew(content uint64) {
	if x.committed.Swap(content) != content {
		x.lastMail.Store(time.Now().UnixNano())
		x.kick()
	}
}

func (x *indexer) kick() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// work is the worker. It ends soon after the account closes. A fault of ours in it costs
// the index what would come, and not the server.
func (x *indexer) work() {
	defer close(x.stopped)
	defer func() {
		if p := recover(); p != nil {
			x.a.log.Error("text index panicked, it rests until the next start", slog.Any("err", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	if !x.pause(settle, true) {
		close(x.loaded)
		return
	}
	err := x.open()
	close(x.loaded)
	if err != nil {
		x.a.log.Warn("no text index, searches read the messages", slog.Any("err", err))
		return
	}
	for x.awaitQuiet() {
		begin := time.Now()
		did, err := x.step()
		x.tell(err)
		switch {
		case err != nil:
			x.a.log.Warn("text index", slog.Any("err", err))
			if !x.pause(retry, false) {
				return
			}
		case !did:
			if !x.pause(0, true) {
				return
			}
		case !x.rest(time.Since(begin)):
			return
		}
	}
}

// busy reports whether mail is coming in, and nobody waits for the worker.
func (x *indexer) busy() bool {
	return x.hurried.Load() == 0 && time.Now().UnixNano()-x.lastMail.Load() < int64(quiet)
}

// awaitQuiet waits until no more mail comes in, within reason.
func (x *indexer) awaitQuiet() (goOn bool) {
	for begin := time.Now(); x.busy() && time.Since(begin) < patience; {
		if x.behind(maxBehind) {
			return true
		}
		if !x.pause(quiet, true) {
			return false
		}
	}
	return true
}

// behind reports whether more than n contents wait.
func (x *indexer) behind(n uint64) bool {
	from, _ := x.index.Gap()
	return x.committed.Load() > from+n
}

// rest makes way for others after a step, much when commits come in.
func (x *indexer) rest(worked time.Duration) (goOn bool) {
	if x.busy() {
		if !x.behind(4 * maxBehind) {
			worked *= yield
		}
		return x.pause(worked, false)
	}
	runtime.Gosched()
	select {
	case <-x.a.closing:
		return false
	default:
		return true
	}
}

// pause waits for a time (0: without end), and ends early with a wake-up if that counts.
// It returns false when the account closes.
func (x *indexer) pause(d time.Duration, wakes bool) (goOn bool) {
	var over <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	var wake <-chan struct{}
	if wakes {
		wake = x.wake
	}
	select {
	case <-x.a.closing:
		return false
	case <-over:
	case <-wake:
	}
	return true
}

// tell wakes those who wait for the worker.
func (x *indexer) tell(fault error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fault = fault
	close(x.progress)
	x.progress = make(chan struct{})
}

func (x *indexer) open() (err error) {
	tag := uint32(indexVersion<<24 | fold.Version<<16 | mime.SearchVersion<<8 | mime.FormatVersion)
	x.index, err = textindex.Open(filepath.Join(x.a.store.dir(x.a.id), searchDir), tag, x.genuine)
	if err != nil {
		return err
	}
	return x.index.Prune(x.alive())
}

// genuine compares the newest contents that are still there with what the index knows of
// them: the store may be an older one, put back from a backup, that has given their
// numbers away again.
func (x *indexer) genuine(contents []textindex.Content) bool {
	same := len(contents) == 0 || contents[len(contents)-1].Number <= x.committed.Load()
	err := x.a.view("index", func(bs buckets) error {
		for _, c := range slices.Backward(contents) {
			if v := bs.at(bktStructure).Get(key64(c.Number)); v != nil {
				same = same && print(v) == c.Print
				return nil
			}
		}
		return nil
	})
	return same && err == nil
}

func print(structure []byte) uint32 { return crc32.ChecksumIEEE(structure) }

// alive returns a function that tells which contents are still there. It is for a walk
// in order of number.
func (x *indexer) alive() func(uint64) bool {
	var numbers map[uint64]bool
	var from, to uint64
	return func(n uint64) bool {
		if numbers == nil || n < from || n > to {
			numbers, from = map[uint64]bool{}, n
			to = x.numbers(n, numbers)
		}
		return numbers[n]
	}
}

// numbers adds the contents from n on, some, and returns up to where that is.
func (x *indexer) numbers(n uint64, out map[uint64]bool) (to uint64) {
	const step = 4096
	to = n + step
	err := x.a.view("index", func(bs buckets) error {
		c := bs.at(bktStructure).Cursor()
		for k, _ := c.Seek(key64(n)); len(k) == 8 && binary.BigEndian.Uint64(k) <= to; k, _ = c.Next() {
			out[binary.BigEndian.Uint64(k)] = true
		}
		return nil
	})
	if err != nil { // nothing is dropped
		for i := n; i <= to; i++ {
			out[i] = true
		}
	}
	return to
}
