package mail

import (
	"errors"
	"fmt"
	"strings"

	"pizza/internal/crockford"
	"pizza/internal/mime"
)

// Address is one mailbox.
type Address = mime.Address

// Domain is ours; DomainAlias is for programs that refuse a domain without a dot.
const (
	Domain      = "localhost"
	DomainAlias = "pizza.localhost"
)

// ErrAddress is returned for what is not an address.
var ErrAddress = errors.New("mail: not an address")

// Canonical returns addr in the form in which addresses are compared: without
// angle brackets and blanks, in lower case, our alias domain as our domain. An
// address without a domain is one of ours. It refuses what cannot be an address
// of an envelope (RFC 5321 section 4.1.2), quoted local parts included.
func Canonical(addr string) (string, error) {
	a := strings.TrimSpace(addr)
	if inner, ok := strings.CutPrefix(a, "<"); ok {
		if a, ok = strings.CutSuffix(inner, ">"); !ok {
			return "", fmt.Errorf("%w: %q", ErrAddress, addr)
		}
	}
	at := strings.LastIndexByte(a, '@')
	local, host := a, Domain
	if at >= 0 {
		local, host = a[:at], strings.TrimSuffix(a[at+1:], ".")
	}
	if !validLocal(local) || !validHost(host) {
		return "", fmt.Errorf("%w: %q", ErrAddress, addr)
	}
	local, host = strings.ToLower(local), strings.ToLower(host)
	if host == DomainAlias {
		host = Domain
	}
	return local + "@" + host, nil
}

func validLocal(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '.' || s[len(s)-1] == '.' {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`()<>[]:;@\,"`, r) || invisible(r) {
			return false
		}
	}
	return true
}

func validHost(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`()<>;@\,"`, r) || invisible(r) {
			return false
		}
	}
	return true
}

// NewMessageID returns <random>@pizza.localhost, without the angle brackets.
func NewMessageID() string {
	return crockford.Random(26) + "@" + DomainAlias
}
