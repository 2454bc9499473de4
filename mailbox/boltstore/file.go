package boltstore

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"
)

// dbFile is an account's bbolt file. Compaction puts another one in its place while it
// is read; writers are kept out meanwhile by commitMu.
type dbFile struct {
	path string
	now  atomic.Pointer[bolt.DB]
}

func openFileDB(path string) (*dbFile, error) {
	db, err := openBolt(path, 0)
	if err != nil {
		return nil, err
	}
	f := &dbFile{path: path}
	f.now.Store(db)
	return f, nil
}

// View runs fn in a read transaction. A page that bbolt cannot make sense of, or the disk
// not read, is an error.
func (f *dbFile) View(fn func(*bolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading %s: %v\n%s", f.path, p, debug.Stack())
		}
	}()
	for {
		db := f.now.Load()
		err := db.View(fn)
		// Closed between Load and View, because another took its place: fn did not run.
		if errors.Is(err, bolterr.ErrDatabaseNotOpen) && f.now.Load() != db {
			continue
		}
		return err
	}
}

// Begin begins a transaction. To write, the caller holds commitMu.
func (f *dbFile) Begin(writable bool) (*bolt.Tx, error) { return f.now.Load().Begin(writable) }

// Update runs fn in a write transaction. It is for the start, before the account is
// compacted for the first time.
func (f *dbFile) Update(fn func(*bolt.Tx) error) error { return f.now.Load().Update(fn) }

// Path is where the file lies.
func (f *dbFile) Path() string { return f.path }

// Close closes the file after the transactions that are open.
func (f *dbFile) Close() error { return f.now.Load().Close() }
