package boltstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"

	"pizza/mailbox"
)

// Put takes one file of a backup: its path below the data root, with slashes, its size
// in octets, and write, which writes exactly so many.
type Put func(name string, size int64, write func(io.Writer) error) error

// Backup hands all files of the store to put, as they were at one moment: what was
// acknowledged before it began is in them, and no mail between two accounts is in
// neither. It goes on beside everything else; while it lasts the files of deleted large
// bodies stay, and so do the pages of deleted rows. An account that does not open is an
// error: a backup without it would not be one.
func (s *Store) Backup(ctx context.Context, put Put) error {
	all, err := s.all(ctx)
	if err != nil {
		return err
	}
	for _, a := range all {
		a.stage.freeze()
		defer func() { a.stage.thaw(a.hasFile) }()
	}
	logins, moments, err := s.moment(all)
	defer func() {
		for _, tx := range append(moments, logins) {
			if tx != nil {
				_ = tx.Rollback() // only reads
			}
		}
	}()
	if err != nil {
		return wrap("backup", err)
	}
	put = until(ctx, put)
	if err := put("accounts.db", logins.Size(), writeTx(logins)); err != nil {
		return err
	}
	for i, a := range all {
		if err := a.backup(moments[i], put); err != nil {
			return err
		}
	}
	return nil
}

// all opens all accounts.
func (s *Store) all(ctx context.Context) ([]*account, error) {
	ids, err := s.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	var out []*account
	for _, id := range ids {
		a, err := s.account(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// moment begins a read transaction of every file between two commits of each of them.
func (s *Store) moment(all []*account) (logins *bolt.Tx, moments []*bolt.Tx, err error) {
	for _, a := range all {
		a.commitMu.Lock()
		defer a.commitMu.Unlock()
	}
	if logins, err = s.logins.db.Begin(false); err != nil {
		return nil, nil, err
	}
	for _, a := range all {
		tx, err := a.db.Begin(false)
		if err != nil {
			return logins, moments, err
		}
		moments = append(moments, tx)
	}
	return logins, moments, nil
}

// until ends a backup with its context.
func until(ctx context.Context, put Put) Put {
	return func(name string, size int64, write func(io.Writer) error) error {
		return put(name, size, func(w io.Writer) error { return write(&stoppable{ctx, w}) })
	}
}

type stoppable struct {
	ctx context.Context
	w   io.Writer
}

func (s *stoppable) Write(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, ended("backup", err)
	}
	return s.w.Write(b)
}

func writeTx(tx *bolt.Tx) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := tx.WriteTo(w)
		return err
	}
}

// backup hands over one account's file and the large bodies that it names.
func (a *account) backup(tx *bolt.Tx, put Put) error {
	dir := "accounts/" + string(a.id) + "/"
	if err := put(dir+"mail.db", tx.Size(), writeTx(tx)); err != nil {
		return err
	}
	return bucketsOf(tx).at(bktBlob).ForEach(func(k, v []byte) error {
		row, err := decodeBlob(v)
		if err != nil || row.inline || len(k) != len(sum{}) {
			return err
		}
		return a.backupBlob(sum(k), row, dir, put)
	})
}

func (a *account) backupBlob(id sum, row blobRow, dir string, put Put) error {
	name := id.String()
	return put(dir+"blob/"+name[:2]+"/"+name, row.size, func(w io.Writer) error {
		f, err := os.Open(a.stage.path(id))
		if err != nil {
			return &mailbox.Error{Op: "backup", Kind: mailbox.Internal, Name: name, Err: err,
				Text: fmt.Sprintf("the bytes of a large message are missing: %s", a.stage.path(id))}
		}
		_, err = io.CopyN(w, f, row.size)
		return errors.Join(err, f.Close())
	})
}

// freeze keeps all files until thaw; a second freeze needs a second thaw.
func (s *stage) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen++
}

// thaw removes the files that nobody needed any more meanwhile.
func (s *stage) thaw(stored func(sum) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen--; s.frozen > 0 {
		return
	}
	for _, id := range s.later {
		if s.held[id] == nil && !stored(id) {
			_ = os.Remove(s.path(id)) // else swept at the next start
		}
	}
	s.later = nil
}

// The numbers that a restored account goes on with: beyond whatever the lost one gave
// out after the backup was made, so that no program takes a new thing for an old one
// that it remembers.
const (
	skipNumbers   = 1 << 32 // mod-sequences, messages, contents
	skipMailboxes = 1 << 16
)

// Renumber makes an account that came out of a backup one of its own: every mailbox
// gets a UIDVALIDITY that it never had, so that programs forget the UIDs and
// mod-sequences they know (RFC 9051 section 2.3.1.1), and ids of messages, contents and
// mailboxes go on beyond those that were given out after the backup.
func (s *Store) Renumber(ctx context.Context, id mailbox.AccountID) error {
	a, err := s.account(ctx, id)
	if err != nil {
		return err
	}
	a.lastMessage.Add(skipNumbers)
	_, err = a.submit(ctx, &request{renumber: true})
	return err
}

func (t *txn) renumber() error {
	t.cnt.modseq += skipNumbers
	t.cnt.body += skipNumbers
	t.cnt.message = t.a.lastMessage.Load()
	t.cnt.mailbox = max(t.cnt.mailbox, min(t.cnt.mailbox+skipMailboxes, 1<<31))
	t.cnt.uidvalidity = max(t.cnt.uidvalidity, uint64(uint32(t.req.now.Unix())))
	rows := t.a.list()
	slices.SortFunc(rows, func(x, y mailbox.Mailbox) int { return cmp.Compare(x.ID, y.ID) })
	for _, m := range rows {
		ob, err := t.need("renumber", m.ID)
		if err != nil {
			return err
		}
		if t.cnt.uidvalidity >= math.MaxUint32 {
			return fail("renumber", mailbox.TooLarge, m.Name, "there is no UIDVALIDITY left")
		}
		t.cnt.uidvalidity++
		ob.UIDValidity, ob.HighestModSeq = uint32(t.cnt.uidvalidity), t.step()
		ob.goneFloor = ob.HighestModSeq
	}
	return nil
}
