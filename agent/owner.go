package agent

import (
	"context"
	"strings"
	"sync"
	"time"

	"pizza/mailbox"
)

// owner is the person an account belongs to.
type owner struct {
	Account   mailbox.AccountID
	Login     string   // "me"
	Name      string   // display name; may be empty
	Addresses []string // lower case; the first is the one we write to
}

// aliasDomain is the second name of our domain: some programs refuse a domain
// without a dot.
const aliasDomain = "pizza.localhost"

// ownerCache remembers the accounts for a short time: a new login is seen at once
// (a miss reads again), a changed display name within ownerAge.
type ownerCache struct {
	mu   sync.Mutex
	read time.Time
	by   map[mailbox.AccountID]owner
}

const ownerAge = 30 * time.Second

// owner returns who an account belongs to. *mailbox.Error NotFound for an account
// without a login.
func (a *Agent) owner(ctx context.Context, id mailbox.AccountID) (owner, error) {
	c := &a.owners
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.by[id]; ok && a.now().Sub(c.read).Abs() < ownerAge {
		return o, nil
	}
	list, err := a.opt.Accounts.List(ctx)
	if err != nil {
		return owner{}, err
	}
	c.by, c.read = make(map[mailbox.AccountID]owner, len(list)), a.now()
	for _, acc := range list {
		c.by[acc.ID] = owner{Account: acc.ID, Login: acc.Login, Name: acc.Name, Addresses: a.addresses(acc.Login)}
	}
	o, ok := c.by[id]
	if !ok {
		return owner{}, &mailbox.Error{Op: "owner", Kind: mailbox.NotFound, Name: string(id)}
	}
	return o, nil
}

// addresses lists what a login owns, the one used towards the person first.
func (a *Agent) addresses(login string) []string {
	all := []string{login + "@" + strings.ToLower(a.opt.Domain)}
	for _, d := range []string{"localhost", aliasDomain} {
		if addr := login + "@" + d; addr != all[0] {
			all = append(all, addr)
		}
	}
	return all
}
