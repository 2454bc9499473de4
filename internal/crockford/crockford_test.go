package crockford

import (
	"strings"
	"testing"
)

func TestRandom(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for n := range 200 {
		s := Random(n%20 + 10)
		if len(s) != n%20+10 || strings.Trim(s, alphabet) != "" || Fold(s) != s {
			t.Errorf("Random(%d) = %q", n%20+10, s)
		}
		if seen[s] {
			t.Errorf("%q came twice", s)
		}
		seen[s] = true
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"7k2m":    "7k2m",
		" 7K2M\n": "7k2m",
		"OIL":     "011",
		"a.b-ü":   "a.b-ü",
		"":        "",
	} {
		if got := Fold(in); got != want {
			t.Errorf("Fold(%q) = %q, want %q", in, got, want)
		}
	}
}
