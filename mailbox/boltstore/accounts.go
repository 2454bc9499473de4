package boltstore

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/text/unicode/norm"

	"pizza/internal/crockford"
	"pizza/mailbox"
)

const (
	iterations = 20_000 // of PBKDF2; RFC 7677 section 4 asks for 4096 at least
	saltSize   = 16
	maxProven  = 1024 // successful logins kept in memory
	domain     = "localhost"
	alias      = "pizza.localhost"
)

var (
	bucketLogins = []byte("login") // login -> account, JSON
	bucketMeta   = []byte("meta")
	keyFake      = []byte("fake") // in bucketMeta: what answers for unknown logins are made from
)

// Accounts is the logins of a data root, in accounts.db. Of a password it keeps a
// SCRAM-SHA-256 verifier (RFC 5802 section 3). The salt is one an account: a SCRAM
// server tells it before it knows which of the account's credentials is meant, and
// one derivation checks them all.
type Accounts struct {
	db    *bolt.DB
	slots chan struct{} // derivations at once: a flood of logins must not take the machine

	secret []byte // of this process
	fake   []byte // of this file

	mu     sync.Mutex
	proven map[[32]byte]mailbox.Identity
}

var _ mailbox.Accounts = (*Accounts)(nil)

// login is an account as stored.
type login struct {
	ID          mailbox.AccountID `json:"id"`
	Name        string            `json:"name,omitempty"`
	Salt        []byte            `json:"salt"`
	Iterations  int               `json:"iterations"`
	Credentials []verifier        `json:"credentials"`
}

// verifier is what SCRAM keeps of one password.
type verifier struct {
	Name   string        `json:"name"`
	Scope  mailbox.Scope `json:"scope"`
	Stored []byte        `json:"stored_key"`
	Server []byte        `json:"server_key"`
}

func newAccounts(db *bolt.DB) (*Accounts, error) {
	secret, fake := make([]byte, 32), make([]byte, 32)
	_, err := rand.Read(secret)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists(bucketLogins); err != nil {
			return err
		}
		b, err := tx.CreateBucketIfNotExists(bucketMeta)
		if err != nil {
			return err
		}
		if old := b.Get(keyFake); old != nil {
			copy(fake, old)
			return nil
		}
		if _, err := rand.Read(fake); err != nil {
			return err
		}
		return b.Put(keyFake, fake)
	})
	return &Accounts{db: db, fake: fake, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0))),
		secret: secret, proven: map[[32]byte]mailbox.Identity{}}, err
}

// canonicalLogin returns "me" for "me", "Me@localhost" and "me@pizza.localhost".
func canonicalLogin(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	local, host, at := strings.Cut(s, "@")
	if at && host != domain && host != alias {
		return s // matches nothing
	}
	return local
}

func validLogin(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

// Authenticate checks a password. A wrong one costs the same whether the login
// exists or not; a right one is remembered in memory until accounts change, since
// mail programs log in again and again.
func (a *Accounts) Authenticate(ctx context.Context, name, password string) (mailbox.Identity, error) {
	name, password = canonicalLogin(name), norm.NFKC.String(password)
	proof := a.proof(name, password)
	if id, ok := a.known(proof); ok {
		return id, nil
	}
	acc, err := a.load(name)
	if err != nil {
		return mailbox.Identity{}, err
	}
	salt, rounds := acc.Salt, acc.Iterations
	if salt == nil {
		salt, rounds = a.secret, iterations
	}
	stored, _, err := a.derive(ctx, password, salt, rounds)
	if err != nil {
		return mailbox.Identity{}, err
	}
	var match *verifier
	for i := range acc.Credentials {
		if subtle.ConstantTimeCompare(acc.Credentials[i].Stored, stored) == 1 {
			match = &acc.Credentials[i]
		}
	}
	if match == nil {
		return mailbox.Identity{}, fail("authenticate", mailbox.Denied, "", "login or password is wrong")
	}
	id := acc.identity(name, *match)
	return id, a.remember(proof, id, acc)
}

// identity is who logs in as name by a credential.
func (l login) identity(name string, v verifier) mailbox.Identity {
	return mailbox.Identity{Account: l.ID, Login: name, Credential: v.Name, Scope: v.Scope,
		Addresses: []string{name + "@" + domain, name + "@" + alias}}
}

// Verifiers returns the verifiers of a login. What is made up for an unknown one is
// the same after a restart: an account that changes its salt would be none.
func (a *Accounts) Verifiers(ctx context.Context, name string) (v mailbox.Verifiers, err error) {
	if err := ctx.Err(); err != nil {
		return v, ended("verifiers", err)
	}
	name = canonicalLogin(norm.NFKC.String(name))
	acc, err := a.load(name)
	if err != nil {
		return v, err
	}
	madeUp := mac(a.fake, "salt:"+name)[:saltSize]
	nobody := mailbox.Verifier{Stored: mac(a.fake, "stored:"+name), Server: mac(a.fake, "server:"+name)}
	if len(acc.Credentials) == 0 {
		return mailbox.Verifiers{Salt: madeUp, Iterations: iterations, Keys: []mailbox.Verifier{nobody}}, nil
	}
	v = mailbox.Verifiers{Salt: acc.Salt, Iterations: acc.Iterations}
	for _, c := range acc.Credentials {
		v.Keys = append(v.Keys, mailbox.Verifier{Identity: acc.identity(name, c), Stored: c.Stored, Server: c.Server})
	}
	return v, nil
}

// proof is the key under which a right password is remembered.
func (a *Accounts) proof(name, password string) (p [32]byte) {
	h := hmac.New(sha256.New, a.secret)
	fmt.Fprintf(h, "%d:%s:%s", len(name), name, password)
	h.Sum(p[:0])
	return p
}

func (a *Accounts) known(proof [32]byte) (mailbox.Identity, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, ok := a.proven[proof]
	id.Addresses = slices.Clone(id.Addresses)
	return id, ok
}

// remember keeps a proof if the account is still the one it was checked against.
func (a *Accounts) remember(proof [32]byte, id mailbox.Identity, checked login) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc, err := a.load(id.Login)
	if err != nil || !reflect.DeepEqual(acc, checked) {
		return err
	}
	if len(a.proven) >= maxProven {
		clear(a.proven)
	}
	id.Addresses = slices.Clone(id.Addresses)
	a.proven[proof] = id
	return nil
}

// derive returns StoredKey and ServerKey of a password (RFC 5802 section 3).
func (a *Accounts) derive(ctx context.Context, password string, salt []byte, rounds int) (stored, server []byte, err error) {
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return nil, nil, ended("authenticate", ctx.Err())
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return nil, nil, wrap("authenticate", err)
	}
	client := sha256.Sum256(mac(salted, "Client Key"))
	return client[:], mac(salted, "Server Key"), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// load returns a login; one without credentials when there is none.
func (a *Accounts) load(name string) (acc login, err error) {
	err = a.db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket(bucketLogins).Get([]byte(name))
		if v == nil {
			return nil
		}
		return json.Unmarshal(v, &acc)
	})
	return acc, wrap("accounts", err)
}

// Put makes or replaces a credential, and the account when it is new.
func (a *Accounts) Put(ctx context.Context, acc mailbox.Account, cred mailbox.Credential, password string) error {
	if err := checkPut(acc, cred, password); err != nil {
		return err
	}
	l, err := a.load(acc.Login)
	if err != nil {
		return err
	}
	if l.Salt == nil {
		l = login{ID: acc.ID, Salt: make([]byte, saltSize), Iterations: iterations}
		if _, err := rand.Read(l.Salt); err != nil {
			return wrap("accounts", err)
		}
	}
	stored, server, err := a.derive(ctx, norm.NFKC.String(password), l.Salt, l.Iterations)
	if err != nil {
		return err
	}
	v := verifier{Name: cred.Name, Scope: cred.Scope, Stored: stored, Server: server}
	return a.change(func(b *bolt.Bucket) error { return put(b, acc, l, v) })
}

func checkPut(acc mailbox.Account, cred mailbox.Credential, password string) error {
	switch {
	case !validLogin(acc.Login):
		return fail("accounts", mailbox.Invalid, acc.Login, "a login has 1 to 64 of a-z, 0-9, dot, underscore and hyphen")
	case acc.ID != "" && !validAccount(acc.ID):
		return fail("accounts", mailbox.Invalid, string(acc.ID), "an account id has lower-case letters and digits")
	case cred.Name == "" || len(cred.Name) > 255:
		return fail("accounts", mailbox.Invalid, cred.Name, "a credential needs a name")
	case cred.Scope != mailbox.ScopeFull && cred.Scope != mailbox.ScopeSend && cred.Scope != mailbox.ScopeRead:
		return fail("accounts", mailbox.Invalid, string(cred.Scope), "the scope is full, send or read")
	case password == "":
		return fail("accounts", mailbox.Invalid, acc.Login, "the password is empty")
	}
	return nil
}

// put stores verifier v of acc. derived is the account that v was derived for: when
// another Put has made it with another salt meanwhile, v is worthless.
func put(b *bolt.Bucket, acc mailbox.Account, derived login, v verifier) error {
	l := derived
	if old := b.Get([]byte(acc.Login)); old != nil {
		l = login{}
		if err := json.Unmarshal(old, &l); err != nil {
			return err
		}
		if !slices.Equal(l.Salt, derived.Salt) {
			return fail("accounts", mailbox.Conflict, acc.Login, "the account was made at the same moment; try again")
		}
	}
	if l.ID == "" {
		l.ID = mailbox.AccountID(crockford.Random(10))
	}
	if acc.ID != "" && acc.ID != l.ID {
		return fail("accounts", mailbox.Conflict, acc.Login, "the login belongs to another account")
	}
	if acc.Name != "" {
		l.Name = acc.Name
	}
	i := slices.IndexFunc(l.Credentials, func(o verifier) bool { return o.Name == v.Name })
	if i < 0 {
		l.Credentials = append(l.Credentials, v)
	} else {
		l.Credentials[i] = v
	}
	return putLogin(b, acc.Login, l)
}

func putLogin(b *bolt.Bucket, name string, l login) error {
	v, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return b.Put([]byte(name), v)
}

// Remove removes one credential, or with name "" the login as a whole.
func (a *Accounts) Remove(ctx context.Context, name, credential string) error {
	if err := ctx.Err(); err != nil {
		return ended("accounts", err)
	}
	name = canonicalLogin(name)
	return a.change(func(b *bolt.Bucket) error {
		v := b.Get([]byte(name))
		if v == nil {
			return fail("accounts", mailbox.NotFound, name, "there is no such login")
		}
		if credential == "" {
			return b.Delete([]byte(name))
		}
		var l login
		if err := json.Unmarshal(v, &l); err != nil {
			return err
		}
		n := len(l.Credentials)
		l.Credentials = slices.DeleteFunc(l.Credentials, func(o verifier) bool { return o.Name == credential })
		if len(l.Credentials) == n {
			return fail("accounts", mailbox.NotFound, credential, "there is no such credential")
		}
		return putLogin(b, name, l)
	})
}

// change runs an update and forgets what was proven before it.
func (a *Accounts) change(fn func(b *bolt.Bucket) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.proven)
	return wrap("accounts", a.db.Update(func(tx *bolt.Tx) error { return fn(tx.Bucket(bucketLogins)) }))
}

// List lists the accounts by login.
func (a *Accounts) List(ctx context.Context) (out []mailbox.Account, err error) {
	if err := ctx.Err(); err != nil {
		return nil, ended("accounts", err)
	}
	err = a.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketLogins).ForEach(func(k, v []byte) error {
			var l login
			if err := json.Unmarshal(v, &l); err != nil {
				return errors.Join(fmt.Errorf("login %s", k), err)
			}
			acc := mailbox.Account{ID: l.ID, Login: string(k), Name: l.Name}
			for _, c := range l.Credentials {
				acc.Credentials = append(acc.Credentials, mailbox.Credential{Name: c.Name, Scope: c.Scope})
			}
			out = append(out, acc)
			return nil
		})
	})
	return out, wrap("accounts", err)
}
