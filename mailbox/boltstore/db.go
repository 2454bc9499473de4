package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterr "go.etcd.io/bbolt/errors"

	"pizza/mailbox"
)

// bkt is a bucket of an account's file.
type bkt int

const (
	bktMeta      bkt = iota // schema, epoch, counters
	bktBox                  // mailbox id -> box
	bktName                 // mailbox name -> mailbox id
	bktEntry                // mailbox id, UID -> row
	bktMessage              // message id -> message
	bktBody                 // body number -> bytes, of small messages and blobs
	bktStructure            // body number -> mime.Structure
	bktBlob                 // content address -> blobRow
	bktGone                 // mailbox id, mod-sequence -> UIDs expunged
	bktFlags                // flag set id -> flags joined by blanks
	bktStream               // stream -> last sequence number
	bktEvent                // stream, NUL, sequence number -> format byte, event
	bktKept                 // stream, NUL, content address: a blob kept by a stream
	bktRecord               // record key -> record
	bktIndex                // index key, NUL, record key
	bktDue                  // kind, NUL, time, due key -> format byte, value
	bktDueKey               // kind, NUL, due key -> time
	bktCount
)

var bucketNames = [bktCount]string{"meta", "mbox", "name", "entry", "msg", "body", "part", "blob", "gone", "flag",
	"stream", "event", "kept", "rec", "rix", "due", "duekey"}

// appending buckets get new keys mostly at their end, so pages may be filled.
var appending = [bktCount]bool{bktEntry: true, bktMessage: true, bktBody: true, bktStructure: true}

var (
	keySchema   = []byte("schema")
	keyEpoch    = []byte("epoch")
	keyCounters = []byte("counters")
)

// schemaVersion 2: a message's row knows the size of its header. 3: an entry's row
// knows the number of the bytes, and whether a look at its message's row is needed.
// See migrate.
const schemaVersion = 3

// buckets are the buckets of one transaction. Each is opened when it is asked for: most
// transactions need two or three of them.
type buckets struct {
	tx   *bolt.Tx
	open *[bktCount]*bolt.Bucket
}

func bucketsOf(tx *bolt.Tx) buckets { return buckets{tx, new([bktCount]*bolt.Bucket)} }

// at opens a bucket. They are all made before an account is used: that one is missing
// panics, as bbolt does on pages it cannot make sense of.
func (bs buckets) at(b bkt) *bolt.Bucket {
	if got := bs.open[b]; got != nil {
		return got
	}
	got := bs.tx.Bucket([]byte(bucketNames[b]))
	if got == nil {
		panic(fmt.Sprintf("bucket %s is missing", bucketNames[b]))
	}
	if appending[b] {
		got.FillPercent = 0.9
	}
	bs.open[b] = got
	return got
}

// lockTimeout is how long to wait for another process that may just be ending.
const lockTimeout = 200 * time.Millisecond

// mapped is how much of a file of size octets is mapped when it is opened. When a file
// outgrows its mapping every commit, and every new reader behind it, waits for the
// readers that are there; a backup is one for minutes. Addresses cost nothing: room for
// the file to double is taken, and 1 GiB at least.
func mapped(size int64) int {
	if runtime.GOOS == "windows" || strconv.IntSize < 64 { // there the file itself grows so far, or addresses are few
		return 0
	}
	return int(2*size + 1<<30)
}

// openBolt opens a bbolt file that has size octets at least, or soon will have. A damaged
// one is an error with advice.
func openBolt(path string, size int64) (*bolt.DB, error) {
	opts := *bolt.DefaultOptions
	opts.Timeout = lockTimeout
	opts.NoFreelistSync = true
	opts.FreelistType = bolt.FreelistMapType
	opts.NoStatistics = false // compaction asks for the free pages
	if err := inspect(path, opts); err != nil {
		return nil, err
	}
	opts.InitialMmapSize = mapped(max(size, fileSize(path)))
	db, err := bolt.Open(path, 0o600, &opts)
	if err != nil {
		return nil, judge(path, err)
	}
	return db, private(path, 0o600)
}

// inspect walks the pages of an existing file before it is opened for writing; all of
// them, unless it was closed in order (see seal).
// There bbolt looks for free pages on goroutines of its own, whose panics nobody
// can recover; here everything it does not like is an error.
func inspect(path string, opts bolt.Options) (err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil // new
	}
	var db *bolt.DB
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damaged(path, fmt.Errorf("%v", r))
		}
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	opts.ReadOnly = true
	if db, err = bolt.Open(path, 0o600, &opts); err != nil {
		return judge(path, err)
	}
	sealed := false
	err = db.View(func(tx *bolt.Tx) error {
		sealed = isSealed(tx)
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			if sealed && isBulk(name) {
				return nil
			}
			_, _, err := orderedFrom(b, nil, math.MaxInt)
			return err
		})
	})
	if err == nil && sealed {
		err = checkFreelist(path)
	}
	if err != nil {
		return damaged(path, err)
	}
	return nil
}

// orderedFrom visits the next n keys after last, which have to grow. It returns a copy of
// the last one, and whether there may be more.
func orderedFrom(b *bolt.Bucket, last []byte, n int) (_ []byte, more bool, err error) {
	c := b.Cursor()
	k, _ := c.Seek(last)
	if last != nil && bytes.Equal(k, last) {
		k, _ = c.Next()
	}
	for ; k != nil && n > 0; k, _ = c.Next() {
		if last != nil && bytes.Compare(last, k) >= 0 {
			return nil, false, fmt.Errorf("keys out of order: % x after % x", k[:min(len(k), 16)], last[:min(len(last), 16)])
		}
		last, n = k, n-1
	}
	return bytes.Clone(last), k != nil, nil
}

// judge tells damage from other reasons why a file does not open.
func judge(path string, err error) error {
	for _, bad := range []error{bolterr.ErrInvalid, bolterr.ErrChecksum, bolterr.ErrVersionMismatch, bolterr.ErrInvalidMapping, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, bad) {
			return damaged(path, err)
		}
	}
	return err
}

func damaged(path string, err error) error {
	return &mailbox.Error{Op: "open", Kind: mailbox.Internal, Name: path, Err: err,
		Text: "the file is damaged; stop the server, keep a copy of the file, and put the newest backup in its place"}
}

// kindOf classifies a fault of the disk or of bbolt.
func kindOf(err error) mailbox.Kind {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return mailbox.Full
	case runtime.GOOS == "windows" && errors.Is(err, syscall.Errno(112)): // ERROR_DISK_FULL
		return mailbox.Full
	case errors.Is(err, bolterr.ErrDatabaseNotOpen), errors.Is(err, bolterr.ErrTimeout):
		return mailbox.Transient
	default:
		return mailbox.Internal
	}
}

// wrap makes an *mailbox.Error of any error.
func wrap(op string, err error) error {
	var me *mailbox.Error
	if err == nil || errors.As(err, &me) {
		return err
	}
	if errors.Is(err, bolterr.ErrDatabaseNotOpen) {
		return mailbox.ErrClosed
	}
	return &mailbox.Error{Op: op, Kind: kindOf(err), Err: err}
}

func fail(op string, kind mailbox.Kind, name, text string) error {
	return &mailbox.Error{Op: op, Kind: kind, Name: name, Text: text}
}

// makeDir makes a private directory, or makes an existing one private.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return private(path, 0o700)
}

func private(path string, mode os.FileMode) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" || info.Mode().Perm()&^mode == 0 {
		return nil
	}
	return os.Chmod(path, mode)
}

// syncDir makes the names in a directory durable. Windows has no such call.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeFile writes a small file so that it is whole or not there.
func writeFile(path string, b []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
