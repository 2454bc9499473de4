package boltstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

const (
	smallBlob  = 128 << 10        // up to here bytes go into the bbolt file
	stageRoom  = 64 << 20         // small staged blobs beyond this go to disk
	stageTime  = 10 * time.Minute // how long a blob waits for its Tx
	tempPrefix = "tmp-"
)

// stage holds what was handed in and is not committed yet, and owns the files
// below blob/: whoever renames or removes one holds its lock.
type stage struct {
	dir string
	now func() time.Time

	mu    sync.Mutex
	held  map[sum]*staged
	bytes int64 // of data in memory
	timer *time.Timer
	done  bool

	frozen int   // backups at work
	later  []sum // files that go when they are done
}

// staged is one blob that waits. data is nil when it lies in its file.
type staged struct {
	data  []byte
	size  int64
	times int // how often it was staged and not yet used
	pins  int // commits at work on it
	until time.Time
}

func (s *stage) path(id sum) string {
	name := id.String()
	return filepath.Join(s.dir, name[:2], name)
}

// put reads r and registers what it holds.
func (s *stage) put(ctx context.Context, r io.Reader, limit int64) (mailbox.Blob, error) {
	src := &source{ctx: ctx, r: r, limit: limit}
	var head bytes.Buffer
	if 0 < limit && limit <= smallBlob { // how much comes is mostly known
		head.Grow(int(limit) + bytes.MinRead)
	}
	_, err := io.CopyN(&head, src, smallBlob+1)
	switch {
	case src.err != nil:
		return mailbox.Blob{}, src.err
	case err != nil && !errors.Is(err, io.EOF):
		return mailbox.Blob{}, wrap("stage", err)
	}
	if head.Len() <= smallBlob && s.room(int64(head.Len())) {
		data := head.Bytes()
		if cap(data)-len(data) > 2*bytes.MinRead {
			data = bytes.Clone(data)
		}
		id := sum(sha256.Sum256(data))
		s.register(id, &staged{data: data, size: int64(head.Len())})
		return mailbox.Blob{ID: id.String(), Size: int64(head.Len())}, nil
	}
	return s.putFile(&head, src)
}

func (s *stage) room(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes+n <= stageRoom
}

// source passes a reader on until ctx ends or limit is passed, and keeps the
// reason apart from faults of the destination.
type source struct {
	ctx   context.Context
	r     io.Reader
	limit int64
	n     int64
	err   error
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.err = ended("stage", err)
		return 0, s.err
	}
	n, err := s.r.Read(p)
	s.n += int64(n)
	if s.limit > 0 && s.n > s.limit {
		s.err = fail("stage", mailbox.TooLarge, "", "the message is larger than this server takes")
		return 0, s.err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = &mailbox.Error{Op: "stage", Kind: mailbox.Transient, Err: err}
		return n, s.err
	}
	return n, err
}

func ended(op string, err error) error {
	return &mailbox.Error{Op: op, Kind: mailbox.Transient, Err: err}
}

// putFile writes head and the rest of src to a file, durably.
func (s *stage) putFile(head *bytes.Buffer, src *source) (_ mailbox.Blob, err error) {
	f, err := os.CreateTemp(s.dir, tempPrefix)
	if err != nil {
		return mailbox.Blob{}, wrap("stage", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // may be closed already
			_ = os.Remove(f.Name())
		}
	}()
	h := sha256.New()
	size, err := io.CopyBuffer(io.MultiWriter(f, h), io.MultiReader(head, src), make([]byte, 64<<10))
	if src.err != nil {
		return mailbox.Blob{}, src.err
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return mailbox.Blob{}, wrap("stage", err)
	}
	id := sum(h.Sum(nil))
	if err := s.place(f.Name(), id, size); err != nil {
		return mailbox.Blob{}, wrap("stage", err)
	}
	return mailbox.Blob{ID: id.String(), Size: size}, nil
}

// place gives a finished temporary file its name and registers it.
func (s *stage) place(temp string, id sum, size int64) error {
	to := s.path(id)
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := syncDir(s.dir); err != nil { // also when another made it: they may not have come so far yet
		return err
	}
	if err := s.rename(temp, to, id, size); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func (s *stage) rename(temp, to string, id sum, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info, err := os.Stat(to); err == nil && info.Size() == size {
		_ = os.Remove(temp) // the same bytes are there, perhaps open
	} else if err := os.Rename(temp, to); err != nil {
		return err
	}
	s.hold(id, &staged{size: size})
	return nil
}

func (s *stage) register(id sum, b *staged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(id, b)
}

// hold adds b to what waits. s.mu is held.
func (s *stage) hold(id sum, b *staged) {
	old := s.held[id]
	if old == nil {
		old = b
		s.held[id] = b
		s.bytes += int64(len(b.data))
	}
	old.times++
	old.until = s.now().Add(stageTime)
}

// pin gives the writer a staged blob and keeps it until unpin.
func (s *stage) pin(id sum) (data []byte, size int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.held[id]
	if b == nil {
		return nil, 0, false
	}
	b.pins++
	return b.data, b.size, true
}

// unpin ends a pin. used: the blob is committed, which pays for one staging.
func (s *stage) unpin(id sum, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.held[id]
	if b == nil {
		return
	}
	b.pins--
	if used {
		b.times--
	}
	if b.times > 0 || b.pins > 0 {
		return
	}
	s.drop(id, b)
	if b.data == nil && b.size <= smallBlob { // its bytes are in the bbolt file now
		_ = os.Remove(s.path(id)) // else swept at the next start
	}
}

func (s *stage) drop(id sum, b *staged) {
	delete(s.held, id)
	s.bytes -= int64(len(b.data))
}

// open returns a staged blob for reading.
func (s *stage) open(id sum) (mailbox.Body, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.held[id]
	switch {
	case b == nil:
		return nil, false, nil
	case b.data != nil || b.size == 0:
		return newMemBody(b.data), true, nil
	}
	f, err := openFile(s.path(id))
	return f, true, err
}

// remove deletes the file of a blob that nobody has any more, unless it waits
// again.
func (s *stage) remove(id sum) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[id] != nil && s.frozen == 0 {
		return nil
	}
	return s.giveUp(id)
}

// giveUp deletes a file that nobody needs any more, or leaves that to thaw. s.mu is held.
func (s *stage) giveUp(id sum) error {
	if s.frozen > 0 {
		s.later = append(s.later, id)
		return nil
	}
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// expire drops what has waited too long; stored tells which files are needed.
func (s *stage) expire(stored func(sum) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for id, b := range s.held {
		if b.pins > 0 || now.Before(b.until) {
			continue
		}
		s.drop(id, b)
		if b.data == nil && !stored(id) {
			_ = s.giveUp(id) // else swept at the next start
		}
	}
}

// sweep removes temporary files and files that the database does not name. It
// runs before anybody else uses the directory.
func (s *stage) sweep(db *dbFile) (removed int, err error) {
	return removed, db.View(func(tx *bolt.Tx) error {
		bs := bucketsOf(tx)
		return filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				return private(path, 0o700)
			}
			if needed(bs, d.Name()) {
				return private(path, 0o600)
			}
			removed++
			return os.Remove(path)
		})
	})
}

func needed(bs buckets, name string) bool {
	id, ok := parseSum(name)
	if !ok || strings.HasPrefix(name, tempPrefix) {
		return false
	}
	v := bs.at(bktBlob).Get(id[:])
	if v == nil {
		return false
	}
	row, err := decodeBlob(v)
	return err != nil || !row.inline // keep what we cannot judge
}

// memBody is a body in memory.
type memBody struct{ bytes.Reader }

func newMemBody(b []byte) *memBody {
	m := &memBody{}
	m.Reset(b)
	return m
}

func (*memBody) Close() error { return nil }

// fileBody is a body in a file; it stays readable when the file is deleted.
type fileBody struct {
	*os.File
	size int64
}

func (b *fileBody) Size() int64 { return b.size }

func openFile(path string) (mailbox.Body, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &fileBody{File: f, size: info.Size()}, nil
}

// arm calls expire after the waiting time, once for all that waits now.
func (s *stage) arm(expire func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil || s.done || len(s.held) == 0 {
		return
	}
	s.timer = time.AfterFunc(stageTime+time.Second, func() {
		s.mu.Lock()
		s.timer = nil
		s.mu.Unlock()
		expire()
		s.arm(expire)
	})
}

func (s *stage) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
