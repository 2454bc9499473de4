// Package msgid makes the Message-IDs of mail that is made here or that came without
// one (RFC 5322 section 3.6.4).
//
// An id has 130 random bits on its left and a fixed name on its right, so that it tells
// nothing of the machine. That it is ours is known by index, never by its look.
//
// New is safe for concurrent use. Of this module the package imports internal/crockford.
package msgid

import "pizza/internal/crockford"

// domain has a dot: some programs take an id without one for a mistake.
const domain = "pizza.localhost"

// New returns a new id without the angle brackets.
func New() string { return crockford.Random(26) + "@" + domain }
