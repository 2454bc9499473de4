package mailbox

import "context"

// Accounts authenticates logins and manages them. boltstore implements it on
// accounts.db.
type Accounts interface {
	// Authenticate checks a password. login is "me" or "me@localhost" or
	// "me@pizza.localhost", any case. *Error Denied when login or password is wrong
	// (the same error and the same time for both).
	Authenticate(ctx context.Context, login, password string) (Identity, error)
	// Verifiers returns what SCRAM-SHA-256 needs to check a login without its password.
	// For an unknown login it makes up an answer, always the same one, that fits no
	// password. The error is never about the login.
	Verifiers(ctx context.Context, login string) (Verifiers, error)
	// Put makes or replaces a credential of an account, and the account when new.
	Put(ctx context.Context, acc Account, cred Credential, password string) error
	// Remove removes one credential, or with name "" the account's login as a whole
	// (its mail stays on disk).
	Remove(ctx context.Context, login, name string) error
	List(ctx context.Context) ([]Account, error)
}

// Account is a person who can log in.
type Account struct {
	ID          AccountID
	Login       string // lower case, [a-z0-9._-]{1,64}
	Name        string // display name
	Credentials []Credential
}

// Credential is one password of an account; only its SCRAM-SHA-256 verifier
// (RFC 5802) is stored.
type Credential struct {
	Name  string // "default", or as the person named it
	Scope Scope
}

// Verifiers are the SCRAM-SHA-256 verifiers (RFC 5802 section 3) of a login: one salt,
// and a key for each of its credentials.
type Verifiers struct {
	Salt       []byte
	Iterations int
	Keys       []Verifier
}

// Verifier is what is stored of one password, and who logs in by it.
type Verifier struct {
	Identity       Identity
	Stored, Server []byte // StoredKey and ServerKey
}
