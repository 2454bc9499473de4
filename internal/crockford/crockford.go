// Package crockford makes and reads names in Crockford's base 32, lower case: no i, l,
// o or u, so that a person can read one aloud and type it. A name of n characters has
// 5n random bits.
//
// All functions are pure or draw from crypto/rand; they are safe for concurrent use.
// The package is a leaf: it imports nothing of this module.
package crockford

import (
	"crypto/rand"
	"strings"
)

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// Random returns n random characters.
func Random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	for i := range b {
		b[i] = alphabet[b[i]&31]
	}
	return string(b)
}

// Fold reads a name as people type it: blanks around it, any case, o for 0, i and l
// for 1.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case 'o':
			return '0'
		case 'i', 'l':
			return '1'
		}
		return r
	}, strings.ToLower(strings.TrimSpace(s)))
}
