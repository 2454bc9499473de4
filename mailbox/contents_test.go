package mailbox

import (
	"slices"
	"testing"
)

// The numbers of an account that was restored lie far apart: the set's size must not go
// by how large they are.
func TestContents(t *testing.T) {
	t.Parallel()
	var none *Contents
	if none.Has(0) || (&Contents{}).Has(1) {
		t.Error("an empty set has something")
	}
	numbers := []uint64{0, 1, 63, 64, pageBits - 1, pageBits, 3*pageBits + 7, 1<<32 + 5, 5, 1 << 40, 1<<64 - 1}
	var c Contents
	for _, n := range numbers {
		c.Add(n)
	}
	for _, n := range numbers {
		for _, near := range []uint64{n - 1, n, n + 1, n + 64, n + pageBits} {
			if c.Has(near) != slices.Contains(numbers, near) {
				t.Errorf("Has(%d) = %v", near, c.Has(near))
			}
		}
	}
	if len(c.pages) > len(numbers) {
		t.Errorf("%d pages for %d numbers", len(c.pages), len(numbers))
	}
}
