package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-imap/v2"
	bolterr "go.etcd.io/bbolt/errors"

	"pizza/mailbox"
)

// Options configure a Store. The zero value works.
type Options struct {
	Log   *slog.Logger     // nil: nothing is logged
	Guard mailbox.Guard    // may also be set with SetGuard before the first use
	Now   func() time.Time // nil: time.Now

	// Keep is how many octets of the disk are left free: with less, the disk counts as
	// full (mailbox.Space). 0 is 5 % of the disk, and 200 MB at most; below 0 nothing
	// is kept.
	Keep int64
	// Disk says what the disk has; nil: what the system says of the root, looked at
	// once a second at most.
	Disk func() (free, size int64, err error)

	// hook is called at named points of a commit; tests let it fail.
	hook func(point string) error
}

// Store is all accounts below a data root. It is safe for concurrent use.
type Store struct {
	root    string
	log     *slog.Logger
	now     func() time.Time
	hook    func(point string) error
	guards  atomic.Pointer[mailbox.Guard]
	logins  *Accounts
	commits atomic.Uint64 // groups synced
	disk    *disk
	janitor background

	readings sync.Pool // of *reading

	mu     sync.RWMutex // guards what follows
	open   map[mailbox.AccountID]*account
	gates  map[mailbox.AccountID]*sync.Mutex // held while an account is opened
	broken map[mailbox.AccountID]error       // damaged files are not tried again
	closed bool
}

var _ mailbox.Store = (*Store)(nil)

// Open opens the data root, which it makes when it is missing. When another
// process has it open, the error names that process.
func Open(root string, opts Options) (*Store, error) {
	s := &Store{root: root, log: opts.Log, now: opts.Now, hook: opts.hook,
		open: map[mailbox.AccountID]*account{}, gates: map[mailbox.AccountID]*sync.Mutex{}, broken: map[mailbox.AccountID]error{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.hook == nil {
		s.hook = func(string) error { return nil }
	}
	s.disk = newDisk(root, opts, s.log)
	s.SetGuard(opts.Guard)
	for _, dir := range []string{root, filepath.Join(root, "accounts"), filepath.Join(root, "run")} {
		if err := makeDir(dir); err != nil {
			return nil, wrap("open", err)
		}
	}
	if err := s.lock(); err != nil {
		return nil, err
	}
	s.janitor.start(s.keepSmall)
	return s, nil
}

// lock opens accounts.db, whose lock stands for the root: the system drops it with
// the process, however that ends.
func (s *Store) lock() error {
	db, err := openBolt(filepath.Join(s.root, "accounts.db"), 0)
	if errors.Is(err, bolterr.ErrTimeout) {
		return s.inUse()
	}
	if err != nil {
		return wrap("open", err)
	}
	if s.logins, err = newAccounts(db); err == nil {
		err = writeFile(s.pidFile(), []byte(strconv.Itoa(os.Getpid())+"\n"))
	}
	if err != nil {
		return wrap("open", errors.Join(err, db.Close()))
	}
	return nil
}

func (s *Store) pidFile() string { return filepath.Join(s.root, "run", "store.pid") }

func (s *Store) inUse() error {
	who := "another process"
	if b, err := os.ReadFile(s.pidFile()); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			who = fmt.Sprintf("process %d", pid)
		}
	}
	return &mailbox.Error{Op: "open", Kind: mailbox.Transient, Text: fmt.Sprintf("data root %s is in use by %s", s.root, who)}
}

// SetGuard sets the guard. Set it before the first Commit of a person.
func (s *Store) SetGuard(g mailbox.Guard) { s.guards.Store(&g) }

// Commits is how many groups of transactions were synced since Open.
func (s *Store) Commits() uint64 { return s.commits.Load() }

func (s *Store) guard() mailbox.Guard { return *s.guards.Load() }

// AccountDB returns the logins.
func (s *Store) AccountDB() mailbox.Accounts { return s.logins }

// Close ends all accounts: what waits is committed, later calls get ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	again, accounts := s.closed, s.open
	s.closed, s.open = true, nil
	s.mu.Unlock()
	if again {
		return nil
	}
	s.janitor.end()
	var errs []error
	for _, a := range accounts {
		errs = append(errs, a.close())
	}
	errs = append(errs, os.Remove(s.pidFile()), s.logins.db.Close())
	return wrap("close", errors.Join(errs...))
}

func (s *Store) dir(id mailbox.AccountID) string {
	return filepath.Join(s.root, "accounts", string(id))
}

func validAccount(id mailbox.AccountID) bool {
	return id != "" && len(id) <= 64 && strings.Trim(string(id), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

func noAccount(id mailbox.AccountID) error {
	return fail("account", mailbox.NotFound, string(id), "there is no such account")
}

// account returns an account, opening it at the first use.
func (s *Store) account(ctx context.Context, id mailbox.AccountID) (*account, error) {
	if err := ctx.Err(); err != nil {
		return nil, ended("account", err)
	}
	if a, err := s.opened(id); a != nil || err != nil {
		return a, err
	}
	if !validAccount(id) {
		return nil, noAccount(id)
	}
	if _, err := os.Stat(filepath.Join(s.dir(id), "mail.db")); errors.Is(err, fs.ErrNotExist) {
		return nil, noAccount(id)
	}
	return s.load(id)
}

// opened returns an account that is open; nil when it is not.
func (s *Store) opened(id mailbox.AccountID) (*account, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, mailbox.ErrClosed
	}
	return s.open[id], s.broken[id]
}

func (s *Store) gate(id mailbox.AccountID) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[id] == nil {
		s.gates[id] = &sync.Mutex{}
	}
	return s.gates[id]
}

// load opens an account's file, new or not; others may be used meanwhile.
func (s *Store) load(id mailbox.AccountID) (*account, error) {
	gate := s.gate(id)
	gate.Lock()
	defer gate.Unlock()
	if a, err := s.opened(id); a != nil || err != nil {
		return a, err
	}
	a, err := openAccount(s, id)
	if err != nil {
		return nil, s.unopened(id, wrap("open", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(a.close(), mailbox.ErrClosed)
	}
	s.open[id] = a
	return a, nil
}

// unopened logs why an account does not open and remembers it when that will not
// change by itself.
func (s *Store) unopened(id mailbox.AccountID, err error) error {
	s.log.Error("account does not open", slog.String("account", string(id)), slog.Any("err", err))
	var me *mailbox.Error
	if errors.As(err, &me) && me.Text != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.broken[id] = err
	}
	return err
}

// CreateAccount makes the account's file, or adds the seeds that are missing.
func (s *Store) CreateAccount(ctx context.Context, id mailbox.AccountID, seeds []mailbox.Mailbox) error {
	if !validAccount(id) {
		return fail("create account", mailbox.Invalid, string(id), "an account id has lower-case letters and digits")
	}
	a, err := s.load(id)
	if err != nil {
		return err
	}
	_, err = a.submit(ctx, &request{seeds: append([]mailbox.Mailbox{}, seeds...)})
	return err
}

// Accounts lists the accounts that have a file.
func (s *Store) Accounts(ctx context.Context) ([]mailbox.AccountID, error) {
	if err := ctx.Err(); err != nil {
		return nil, ended("accounts", err)
	}
	files, err := filepath.Glob(filepath.Join(s.root, "accounts", "*", "mail.db"))
	if err != nil {
		return nil, wrap("accounts", err)
	}
	var ids []mailbox.AccountID
	for _, f := range files {
		if id := mailbox.AccountID(filepath.Base(filepath.Dir(f))); validAccount(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Commit applies tx. When ctx ends before the writer has taken tx, nothing is
// applied; afterwards the outcome is awaited and told as it is.
func (s *Store) Commit(ctx context.Context, id mailbox.AccountID, tx mailbox.Tx) (mailbox.Result, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return mailbox.Result{}, err
	}
	return a.submit(ctx, &request{tx: tx})
}

// Stage takes bytes in; they wait 10 minutes for the Tx that names them.
func (s *Store) Stage(ctx context.Context, id mailbox.AccountID, r io.Reader, limit int64) (mailbox.Blob, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return mailbox.Blob{}, err
	}
	b, err := a.stage.put(ctx, r, limit)
	s.disk.took(b.Size)
	a.armExpiry()
	return b, err
}

// NextMessageID returns an id that no message has had.
func (s *Store) NextMessageID(id mailbox.AccountID) (mailbox.MessageID, error) {
	a, err := s.account(context.Background(), id)
	if err != nil {
		return 0, err
	}
	return mailbox.MessageID(a.lastMessage.Add(1)), nil
}

// Flags returns the members of a set.
func (s *Store) Flags(id mailbox.AccountID, set mailbox.FlagSet) []imap.Flag {
	a, err := s.account(context.Background(), id)
	if err != nil {
		return nil
	}
	return a.flags.members(set)
}

// Epoch returns how often the account was opened; 0 when it cannot be.
func (s *Store) Epoch(id mailbox.AccountID) uint64 {
	a, err := s.account(context.Background(), id)
	if err != nil {
		return 0
	}
	return a.epoch
}

// Watch tells about commits. The channel of an unknown account stays silent.
func (s *Store) Watch(id mailbox.AccountID, box mailbox.MailboxID) (<-chan struct{}, func()) {
	a, err := s.account(context.Background(), id)
	if err != nil {
		return make(chan struct{}), func() {}
	}
	return a.watch.add(box)
}
