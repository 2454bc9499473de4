package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-imap/v2"
	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

// account is one open account.
type account struct {
	store *Store
	id    mailbox.AccountID
	log   *slog.Logger
	db    *dbFile
	epoch uint64

	sealed  bool       // it was closed in order before
	looking background // for damage

	stage *stage
	flags *flagTable
	watch watchers
	open  viewers

	search *indexer

	lastMessage atomic.Uint64 // the last MessageID given out

	leading sync.Mutex // held by whoever commits: the writer, or the one who asks
	queue   chan *request
	closing chan struct{} // closed: take nothing new
	stopped chan struct{} // closed: the writer has ended

	// commitMu is held by the writer from the begin of a group until it is
	// published, and by whoever loads a snapshot, so that a load and the published
	// state cannot miss each other.
	commitMu   sync.Mutex
	compacting *compaction // under way; guarded by commitMu, as what follows
	garbage    int64       // octets of values replaced or deleted since the file was looked at
	lastCommit time.Time

	mu        sync.RWMutex // guards what follows
	boxes     map[mailbox.MailboxID]*box
	byName    []mailbox.MailboxID // of boxes
	snapshots map[mailbox.MailboxID]*cached
	claims    map[dueKey]time.Time // until when
}

// cached is a snapshot in memory; tick says when it was asked for last.
type cached struct {
	snap *mailbox.Snapshot
	tick atomic.Int64
}

func openAccount(s *Store, id mailbox.AccountID) (*account, error) {
	dir := s.dir(id)
	blobs := filepath.Join(dir, "blob")
	for _, d := range []string{dir, blobs, filepath.Join(dir, searchDir)} {
		if err := makeDir(d); err != nil {
			return nil, err
		}
	}
	if err := removeStale(filepath.Join(dir, "mail.db.new")); err != nil {
		return nil, err
	}
	db, err := openFileDB(filepath.Join(dir, "mail.db"))
	if err != nil {
		return nil, err
	}
	a := &account{store: s, id: id, log: s.log.With(slog.String("account", string(id))), db: db,
		queue: make(chan *request, maxGroup), closing: make(chan struct{}), stopped: make(chan struct{}),
		stage: &stage{dir: blobs, now: s.now, held: map[sum]*staged{}}, claims: map[dueKey]time.Time{}, garbage: compactMin}
	a.search = newIndexer(a)
	if err := a.start(dir); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	go a.work()
	go a.search.work()
	if a.sealed {
		a.looking.start(a.lookThrough)
	}
	if err := a.tidyAll(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// start brings the file to the present schema, raises the epoch, reads what stays
// in memory and sweeps.
func (a *account) start(dir string) error {
	if err := a.db.Update(a.raise); err != nil {
		return err
	}
	if err := errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)), a.reload()); err != nil {
		return err
	}
	removed, err := a.stage.sweep(a.db)
	if removed > 0 {
		a.log.Info("unreferenced files removed", slog.Int("files", removed))
	}
	return errors.Join(err, a.missingBodies())
}

func (a *account) raise(tx *bolt.Tx) error {
	fresh := tx.Bucket([]byte(bucketNames[bktMeta])) == nil
	for _, name := range bucketNames {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	meta := tx.Bucket([]byte(bucketNames[bktMeta]))
	if fresh {
		return a.found(meta)
	}
	if err := a.migrate(tx, meta); err != nil {
		return err
	}
	if a.sealed = isSealed(tx); a.sealed {
		if err := meta.Delete(keyClosed); err != nil {
			return err
		}
	}
	if v := meta.Get(keyEpoch); len(v) == 8 {
		a.epoch = binary.BigEndian.Uint64(v) + 1
	}
	cnt, err := decodeCounters(meta.Get(keyCounters))
	if err != nil {
		return damaged(tx.DB().Path(), err)
	}
	a.lastMessage.Store(cnt.message)
	a.search.committed.Store(cnt.body)
	return meta.Put(keyEpoch, key64(a.epoch))
}

// found writes the first values. UIDVALIDITY begins with the time, so that an
// account that is made again does not repeat values that clients remember.
func (a *account) found(meta *bolt.Bucket) error {
	a.epoch = 1
	cnt := counters{uidvalidity: uint64(uint32(a.store.now().Unix())), mailbox: uint64(mailbox.FirstUserMailbox) - 1}
	return errors.Join(meta.Put(keySchema, key64(schemaVersion)), meta.Put(keyEpoch, key64(a.epoch)),
		meta.Put(keyCounters, encodeCounters(cnt)))
}

// reload reads what stays in memory from the file: at the start, and after a
// commit whose outcome is unknown.
func (a *account) reload() error {
	boxes, flags := map[mailbox.MailboxID]*box{}, newFlagTable()
	err := a.db.View(func(tx *bolt.Tx) error {
		bs := bucketsOf(tx)
		if err := loadFlags(bs, flags); err != nil {
			return err
		}
		err := bs.at(bktBox).ForEach(func(k, v []byte) error {
			b, err := decodeBox(k, v)
			if err == nil {
				boxes[b.ID] = b
			}
			return err
		})
		return errors.Join(err, checkNames(bs, boxes))
	})
	if err != nil {
		if errors.Is(err, errCodec) {
			return damaged(a.db.Path(), err)
		}
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.boxes, a.snapshots = boxes, map[mailbox.MailboxID]*cached{}
	a.arrange()
	a.adopt(flags)
	return nil
}

// checkNames refuses a list of names that is not that of the mailboxes: one that is not
// found by its name would be made a second time.
func checkNames(bs buckets, boxes map[mailbox.MailboxID]*box) error {
	for id, b := range boxes {
		if v := bs.at(bktName).Get([]byte(b.Name)); len(v) != 4 || mailbox.MailboxID(binary.BigEndian.Uint32(v)) != id {
			return fmt.Errorf("name of mailbox %d: %w", id, errCodec)
		}
	}
	return nil
}

// adopt takes over a table read from disk. Readers keep the one they have until
// the swap; ids on disk never change their meaning.
func (a *account) adopt(flags *flagTable) {
	if a.flags == nil {
		a.flags = flags
		flags.publish()
		return
	}
	a.flags.cut(mark{len(*a.flags.shown.Load()), 0})
	for _, s := range flags.sets[min(len(a.flags.sets), len(flags.sets)):] {
		a.flags.add(s.text)
	}
	for _, s := range a.flags.sets {
		for _, f := range s.flags {
			a.flags.learn(f)
		}
	}
	a.flags.publish()
}

func loadFlags(bs buckets, flags *flagTable) error {
	return bs.at(bktFlags).ForEach(func(k, v []byte) error {
		if len(k) != 4 || int(binary.BigEndian.Uint32(k)) != len(flags.sets) {
			return fmt.Errorf("flag set % x: %w", k, errCodec)
		}
		for f := range strings.FieldsSeq(string(v)) {
			if c, err := mailbox.CleanFlag(imap.Flag(f)); err != nil || string(c) != f {
				return fmt.Errorf("flag set % x: %w", k, errCodec)
			}
		}
		flags.add(string(v))
		return nil
	})
}

func (a *account) boxCount() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.boxes)
}

// list returns all mailboxes by name.
func (a *account) list() []mailbox.Mailbox {
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := make([]mailbox.Mailbox, len(a.byName))
	for i, id := range a.byName {
		out[i] = a.boxes[id].Mailbox
	}
	return out
}

// arrange puts the mailboxes in order of name anew. a.mu is held.
func (a *account) arrange() {
	a.byName = slices.SortedFunc(maps.Keys(a.boxes), func(x, y mailbox.MailboxID) int {
		return strings.Compare(a.boxes[x].Name, a.boxes[y].Name)
	})
}

// close lets the writer finish what waits, then closes the file.
func (a *account) close() error {
	close(a.closing)
	<-a.stopped
	a.leading.Lock() // who leads now ends; nobody leads any more
	defer a.leading.Unlock()
	<-a.search.stopped
	a.stage.stop()
	a.looking.end()
	a.commitMu.Lock()
	defer a.commitMu.Unlock()
	if err := a.db.seal(); err != nil {
		a.log.Warn("the next start will look through the whole file", slog.Any("err", err))
	}
	return a.db.Close()
}

// armExpiry sees to it that staged blobs nobody commits go after their time.
func (a *account) armExpiry() {
	a.stage.arm(func() { a.stage.expire(a.hasFile) })
}

// hasFile reports whether the file of a blob is needed, also when in doubt.
func (a *account) hasFile(id sum) (needs bool) {
	err := a.db.View(func(tx *bolt.Tx) error {
		needs = needed(bucketsOf(tx), id.String())
		return nil
	})
	return needs || err != nil
}
