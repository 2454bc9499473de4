package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A file keeps no list of its free pages while it is written: commits are smaller so.
// Without it bbolt visits every page of the file when it opens it, and so do we before,
// to find damage where it can be told (inspect). For a large mailbox that is seconds, or
// minutes from a slow disk. So the last commit of an account that is closed in order
// writes the list, and a mark that it is there. A file with the mark opens without a
// visit to the bytes and structures of messages and to the events of journals; they are
// looked through afterwards, beside everything else.

// keyClosed is the mark, in bktMeta. The first commit after the start takes it away.
var keyClosed = []byte("closed")

// bulk are the buckets whose pages are not visited before a file with the mark opens.
var bulk = []bkt{bktBody, bktStructure, bktEvent}

// seal writes the mark. The caller holds commitMu and commits nothing afterwards.
func (f *dbFile) seal() error {
	db := f.now.Load()
	db.NoFreelistSync = false
	return db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(bucketNames[bktMeta])).Put(keyClosed, []byte{format1})
	})
}

func isBulk(name []byte) bool {
	return slices.ContainsFunc(bulk, func(b bkt) bool { return bucketNames[b] == string(name) })
}

func isSealed(tx *bolt.Tx) bool {
	meta := tx.Bucket([]byte(bucketNames[bktMeta]))
	return meta != nil && meta.Get(keyClosed) != nil
}

// lookThrough visits the pages that were not visited before the file was opened, at an
// easy pace, until ctx ends.
func (a *account) lookThrough(ctx context.Context) {
	for _, b := range bulk {
		if err := a.lookThroughBucket(ctx, b); err != nil && ctx.Err() == nil {
			a.log.Error("damage found after the start", slog.Any("err", damaged(a.db.Path(), err)))
			return
		}
	}
}

func (a *account) lookThroughBucket(ctx context.Context, b bkt) error {
	const step, pause = 200, 5 * time.Millisecond
	var last []byte
	for more := true; more; {
		err := a.db.View(func(tx *bolt.Tx) (err error) {
			last, more, err = orderedFrom(tx.Bucket([]byte(bucketNames[b])), last, step)
			return err
		})
		if err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// freelist is what a meta page says of the file.
type freelist struct {
	page, pages uint64 // where the list begins, and how many pages the file has
	pageSize    int64
	txid        uint64
}

// checkFreelist reads the list of free pages as bbolt will and reports what cannot be:
// with a wrong one bbolt would write over pages in use.
func checkFreelist(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	newest, err := newestMeta(f)
	if err != nil {
		return err
	}
	const pageHead, isFreelist = 16, 0x10
	head := make([]byte, pageHead+8)
	at := int64(newest.page) * newest.pageSize
	if _, err := f.ReadAt(head, at); err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	ne := binary.NativeEndian
	if ne.Uint64(head) != newest.page || ne.Uint16(head[8:])&isFreelist == 0 {
		return fmt.Errorf("page %d holds no list of free pages: %w", newest.page, errCodec)
	}
	n, from := uint64(ne.Uint16(head[10:])), at+pageHead
	if n == 0xffff { // the number is in the first word
		n, from = ne.Uint64(head[pageHead:]), from+8
	}
	return checkFree(io.NewSectionReader(f, from, int64(min(n, newest.pages))*8), n, newest.pages)
}

// checkFree wants n page numbers that grow and lie within the file.
func checkFree(r io.Reader, n, pages uint64) error {
	all, err := io.ReadAll(r)
	if err != nil || uint64(len(all)) != 8*n {
		return fmt.Errorf("list of %d free pages among %d: %w", n, pages, errors.Join(err, errCodec))
	}
	last := uint64(1) // 0 and 1 are meta pages
	for ; len(all) > 0; all = all[8:] {
		id := binary.NativeEndian.Uint64(all)
		if id <= last || id >= pages {
			return fmt.Errorf("free page %d after %d of %d: %w", id, last, pages, errCodec)
		}
		last = id
	}
	return nil
}

// newestMeta returns the newer of the two meta pages, or the one that is whole.
func newestMeta(f io.ReaderAt) (freelist, error) {
	first, one := metaAt(f, 0)
	size := first.pageSize
	if !one {
		size = int64(os.Getpagesize())
	}
	newest, two := metaAt(f, size)
	if !two || one && first.txid > newest.txid {
		newest = first
	}
	if !one && !two || newest.page < 2 || newest.page >= newest.pages {
		return newest, fmt.Errorf("no list of free pages: %w", errCodec)
	}
	return newest, nil
}

// metaAt reads a meta page; ok is false when it is not whole.
func metaAt(f io.ReaderAt, at int64) (m freelist, ok bool) {
	const pageHead, metaSize = 16, 64
	b := make([]byte, pageHead+metaSize)
	if _, err := f.ReadAt(b, at); err != nil {
		return m, false
	}
	ne, meta := binary.NativeEndian, b[pageHead:]
	h := fnv.New64a()
	_, _ = h.Write(meta[:56])
	m = freelist{page: ne.Uint64(meta[32:]), pages: ne.Uint64(meta[40:]), pageSize: int64(ne.Uint32(meta[8:])), txid: ne.Uint64(meta[48:])}
	return m, h.Sum64() == ne.Uint64(meta[56:])
}
