package mailbox

import "testing"

func TestOwns(t *testing.T) {
	t.Parallel()
	id := Identity{Addresses: []string{"me@localhost", "me@pizza.localhost"}}
	for addr, want := range map[string]bool{
		"me@localhost":         true,
		"me@pizza.localhost":   true,
		"Me@LocalHost":         true,
		"me@localhost.":        true,
		"me@localhost..":       false,
		"me.@localhost":        false,
		"me":                   false,
		"me@":                  false,
		"me@.":                 false,
		"@localhost":           false,
		"":                     false,
		"<me@localhost>":       false,
		" me@localhost":        false,
		"me@localhost ":        false,
		"me@localhost\u200b":   false,
		"you@localhost":        false,
		"you@me@localhost":     false,
		"me@localhost@example": false,
		"me@example":           false,
		"me+x@localhost":       false,
	} {
		if got := id.Owns(addr); got != want {
			t.Errorf("Owns(%q) = %v, want %v", addr, got, want)
		}
	}
	// The Kelvin sign and the long s fold to k and s in Unicode: other letters, though.
	kiss := Identity{Addresses: []string{"kiss@localhost", "", "x"}}
	for _, addr := range []string{"\u212aiss@localhost", "ki\u017fs@localhost", "", "x"} {
		if kiss.Owns(addr) {
			t.Errorf("Owns(%q) = true", addr)
		}
	}
	if (Identity{}).Owns("me@localhost") {
		t.Error("an identity without addresses owns one")
	}
}
