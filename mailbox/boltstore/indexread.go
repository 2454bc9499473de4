package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"pizza/internal/mime"
	"pizza/internal/textindex"
	"pizza/mailbox"
)

// step indexes some contents, or merges; did is false when there is nothing to do.
func (x *indexer) step() (did bool, err error) {
	from, to := x.index.Gap()
	to = min(to, x.committed.Load())
	if from > to {
		return x.index.Merge(x.alive())
	}
	if x.a.store.disk.left() == 0 { // what is kept free is for what cannot be made again
		return false, fail("index", mailbox.Full, "", "the disk is almost full")
	}
	list, upTo, err := x.read(from, to)
	if err != nil {
		return false, err
	}
	for i := range list {
		if !x.add(&list[i]) {
			return true, nil
		}
		if x.index.Due() {
			if err := x.index.Flush(); err != nil {
				return false, err
			}
		}
		runtime.Gosched()
	}
	x.index.Cover(upTo)
	if x.index.Due() {
		if err := x.index.Flush(); err != nil {
			return false, err
		}
	}
	_, err = x.index.Merge(x.alive())
	return true, err
}

func (x *indexer) ended() bool {
	select {
	case <-x.a.closing:
		return true
	default:
		return false
	}
}

// unread is a content as copied out of a transaction.
type unread struct {
	number    uint64
	structure []byte
	octets    []byte // nil: in a file, or none
}

// read copies the first contents of a range, and returns up to where there are no others.
func (x *indexer) read(from, to uint64) (list []unread, upTo uint64, err error) {
	upTo = to
	err = x.a.view("index", func(bs buckets) error {
		structures, bodies := bs.at(bktStructure).Cursor(), table{Cursor: bs.at(bktBody).Cursor()}
		f := &finder{}
		size := 0
		for k, v := structures.Seek(key64(from)); len(k) == 8; k, v = structures.Next() {
			n := binary.BigEndian.Uint64(k)
			if n > to {
				return nil
			}
			octets := f.get(&bodies, n)
			if size += len(v) + len(octets); len(list) > 0 && size > readBytes {
				upTo = n - 1
				return nil
			}
			list = append(list, unread{n, append([]byte{}, v...), append([]byte(nil), octets...)})
		}
		return nil
	})
	return list, upTo, err
}

// add indexes a content. One that cannot be read, or that no reader survives, is one
// that every search looks at: nothing is lost but time.
func (x *indexer) add(u *unread) bool {
	x.grams.Reset()
	err := x.texts(u)
	switch {
	case x.ended():
		return false
	case err != nil:
		x.a.log.Debug("content not indexed", slog.Uint64("content", u.number), slog.Any("err", err))
		x.grams.AddAll()
	}
	x.index.Add(textindex.Content{Number: u.number, Print: print(u.structure)}, &x.grams)
	if cap(x.buf) > readBytes {
		x.buf = nil
	}
	return true
}

// texts adds all texts of a content.
func (x *indexer) texts(u *unread) (err error) {
	defer func() {
		if p := recover(); p != nil {
			x.a.log.Error("indexing panicked", slog.Any("err", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	s, err := mime.Decode(u.structure)
	if err != nil {
		return err
	}
	body, err := x.body(u)
	if err != nil {
		return err
	}
	defer body.Close()
	s.EachEnvelopeText(func(text string) { x.take(text, textindex.Envelope) })
	header, err := mime.RawHeader(body, &mime.Part{Header: mime.Range{End: min(s.Root.Header.End, body.Size())}})
	if err != nil {
		return err
	}
	var fault error
	err = s.EachSearched(body, header, func(place mime.Searched) bool {
		fault = x.place(place)
		return fault == nil && !x.ended() // who calls looks at ended again
	})
	return errors.Join(err, fault)
}

func (x *indexer) place(p mime.Searched) error {
	p.EachField(func(field string) bool {
		x.take(field, textindex.Message)
		return true
	})
	if !p.HasText() {
		return nil
	}
	text, err := p.Text()
	x.take(text, textindex.Message)
	return err
}

func (x *indexer) take(text string, zone textindex.Zone) {
	x.buf = x.folder.Append(x.buf[:0], text)
	x.grams.Add(x.buf, zone)
}

// body opens the bytes of a content.
func (x *indexer) body(u *unread) (mailbox.Body, error) {
	if u.octets != nil {
		return newMemBody(u.octets), nil
	}
	id, found := x.large[u.number]
	if !found && u.number > x.largest {
		if err := x.findLarge(u.number); err != nil {
			return nil, err
		}
		id, found = x.large[u.number]
	}
	if !found {
		return newMemBody(nil), nil // an empty message
	}
	delete(x.large, u.number)
	return openFile(x.a.stage.path(id))
}

// findLarge finds the files of the contents from number n on.
func (x *indexer) findLarge(n uint64) error {
	x.large = map[uint64]sum{}
	return x.a.view("index", func(bs buckets) error {
		return bs.at(bktBlob).ForEach(func(k, v []byte) error {
			row, err := decodeBlob(v)
			if err == nil && row.number >= n && !row.inline && len(k) == len(sum{}) {
				x.large[row.number] = sum(k)
			}
			x.largest = max(x.largest, row.number)
			return err
		})
	})
}
