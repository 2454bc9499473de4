package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"pizza/internal/crockford"
	"pizza/internal/levenshtein"
	"pizza/mailbox"
)

// place is what a recipient address stands for.
type place int

const (
	toPizza    place = iota // a new task, or the thread the mail names
	toDecision              // pizza+a.<token>@: answers a decision
	toThread                // pizza+t.<token>@: the next mail of a thread
	toPerson                // <account>@: straight into that INBOX
	toHelp                  // pizza+help@: answered with a mail
	toStatus                // pizza+status@: answered with a mail
)

// target is a recipient, resolved.
type target struct {
	place   place
	addr    string // canonical, without a token's case
	token   string // of a decision or thread
	task    string // of toThread and toDecision
	account mailbox.AccountID
	login   string // of toPerson
}

// key is equal for two recipients that mean the same.
func (t target) key() string { return t.addr }

const (
	pizzaUser  = "pizza"
	helpUser   = pizzaUser + "+help"
	statusUser = pizzaUser + "+status"
)

// Recipient says whether id may write to addr. It returns *mailbox.Error:
// NotFound for an address that does not exist (Text names near ones), Refused for
// a domain that is not ours, Denied when the credential's scope is too small.
func (a *Agent) Recipient(ctx context.Context, id mailbox.Identity, addr string) error {
	_, err := a.resolve(ctx, id, addr)
	return err
}

// resolve reads an address in the eyes of a login: threads and decisions are those
// of its account, so that a token of somebody else is an unknown address.
func (a *Agent) resolve(ctx context.Context, id mailbox.Identity, addr string) (target, error) {
	user, domain := splitAddress(addr)
	if !a.ourDomain(domain) {
		return target{}, addressError(mailbox.Refused, addr,
			"no relay: this server takes mail for @"+a.opt.Domain+" only")
	}
	t, err := a.resolveUser(ctx, id, user)
	if err != nil {
		return target{}, err
	}
	t.addr = cmp.Or(t.addr, user+"@")
	if id.Scope != mailbox.ScopeFull && t.place != toPizza && t.place != toPerson {
		return target{}, addressError(mailbox.Denied, addr,
			"a credential that may only send writes to "+pizzaUser+"@"+a.opt.Domain+" and to people")
	}
	return t, nil
}

func (a *Agent) resolveUser(ctx context.Context, id mailbox.Identity, user string) (target, error) {
	switch {
	case user == pizzaUser:
		return target{place: toPizza}, nil
	case user == helpUser:
		return target{place: toHelp}, nil
	case user == statusUser:
		return target{place: toStatus}, nil
	case strings.HasPrefix(user, pizzaUser+"+a."):
		return a.resolveDecision(ctx, id, user)
	case strings.HasPrefix(user, pizzaUser+"+t."):
		return a.resolveThread(ctx, id, user)
	}
	return a.resolvePerson(ctx, user)
}

func (a *Agent) resolveDecision(ctx context.Context, id mailbox.Identity, user string) (target, error) {
	token := crockford.Fold(strings.TrimPrefix(user, pizzaUser+"+a."))
	d, _, err := a.loadDecision(ctx, id.Account, token)
	if isKind(err, mailbox.NotFound) {
		return target{}, a.noSuchAddress(ctx, user)
	}
	if err != nil {
		return target{}, err
	}
	return target{place: toDecision, addr: pizzaUser + "+a." + token + "@", token: token, task: d.Task}, nil
}

func (a *Agent) resolveThread(ctx context.Context, id mailbox.Identity, user string) (target, error) {
	token := crockford.Fold(strings.TrimPrefix(user, pizzaUser+"+t."))
	recs, err := a.store.Lookup(ctx, id.Account, indexToken+token)
	if err != nil {
		return target{}, err
	}
	for _, r := range recs {
		if task, ok := strings.CutPrefix(r.Key, threadKey("")); ok {
			return target{place: toThread, addr: pizzaUser + "+t." + token + "@", token: token, task: task}, nil
		}
	}
	return target{}, a.noSuchAddress(ctx, user)
}

func (a *Agent) resolvePerson(ctx context.Context, user string) (target, error) {
	list, err := a.opt.Accounts.List(ctx)
	if err != nil {
		return target{}, err
	}
	for _, acc := range list {
		if acc.Login == user {
			return target{place: toPerson, account: acc.ID, login: acc.Login}, nil
		}
	}
	return target{}, a.noSuchAddress(ctx, user)
}

// ourDomain reports whether mail for domain is ours.
func (a *Agent) ourDomain(domain string) bool {
	return domain == "localhost" || domain == aliasDomain || domain == strings.ToLower(a.opt.Domain)
}

// noSuchAddress names the addresses that user could have meant.
func (a *Agent) noSuchAddress(ctx context.Context, user string) error {
	have := []string{pizzaUser, helpUser, statusUser}
	if list, err := a.opt.Accounts.List(ctx); err == nil {
		for _, acc := range list {
			have = append(have, acc.Login)
		}
	}
	near := nearest(user, have)
	for i := range near {
		near[i] += "@" + a.opt.Domain
	}
	return addressError(mailbox.NotFound, user,
		"no such address "+printable(user)+"@"+a.opt.Domain+"; did you mean "+strings.Join(near, ", ")+"?")
}

func addressError(kind mailbox.Kind, addr, text string) error {
	return &mailbox.Error{Op: "recipient", Kind: kind, Name: printable(addr), Text: text}
}

// splitAddress gives the local part and the domain in lower case.
func splitAddress(addr string) (user, domain string) {
	addr = strings.Trim(strings.ToLower(strings.TrimSpace(addr)), "<>")
	i := strings.LastIndexByte(addr, '@')
	if i < 0 {
		return addr, "localhost"
	}
	return strings.Trim(addr[:i], `"`), addr[i+1:]
}

// nearest lists up to three of have that are close to s, the closest first; when
// none is close, the address that everything can be sent to.
func nearest(s string, have []string) []string {
	type scored struct {
		name string
		dist int
	}
	var near []scored
	for _, name := range have {
		limit := max(2, min(len(s), len(name))/2)
		if d := levenshtein.Distance(clip(s, 64), name); d <= limit {
			near = append(near, scored{name, d})
		}
	}
	slices.SortStableFunc(near, func(x, y scored) int { return cmp.Compare(x.dist, y.dist) })
	var out []string
	for _, n := range near[:min(3, len(near))] {
		out = append(out, n.name)
	}
	if len(out) == 0 {
		out = []string{pizzaUser}
	}
	return out
}

// printable makes a name from outside safe for a reply line: ASCII without
// controls, at most 64 octets.
func printable(s string) string {
	return clip(strings.Map(func(r rune) rune {
		if r < 0x21 || r > 0x7e {
			return '?'
		}
		return r
	}, s), 64)
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// isKind reports whether err is a *mailbox.Error of that kind.
func isKind(err error, kind mailbox.Kind) bool {
	var me *mailbox.Error
	return errors.As(err, &me) && me.Kind == kind
}
