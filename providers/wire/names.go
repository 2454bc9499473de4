package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

var (
	legalID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	legalName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)
	illegal   = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)
)

// ID maps a call id to one that every API accepts: ^[a-zA-Z0-9_-]{1,64}$. Legal ids
// stay; others are named by a hash, so that a call and its result always agree.
func ID(id string) string {
	if legalID.MatchString(id) {
		return id
	}
	return "call_" + digest(id)
}

// Name maps a tool name to one that every API accepts: a letter or underscore, then
// up to 63 letters, digits, underscores and dashes. Legal names stay; of others what
// can be read is kept before a hash.
func Name(name string) string {
	if legalName.MatchString(name) {
		return name
	}
	readable := illegal.ReplaceAllString(name, "_")
	return "t_" + readable[:min(len(readable), 40)] + "_" + digest(name)[:12]
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
