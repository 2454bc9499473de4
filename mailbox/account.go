package mailbox

import "context"

// Accounts authenticates logins and manages them. boltstore implements it on
// accounts.db.
type Accounts interface {
	// Authenticate checks a password. login is "me" or "me@localhost" or
	// "me@pizza.localhost", any case. *Error Denied when login or password is wrong
	// (the same error and the same time for both).
	Authenticate(ctx context.Context, login, password string) (Identity, error)
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
