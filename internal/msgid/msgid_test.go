package msgid

import (
	"strings"
	"testing"

	"pizza/internal/mime"
)

// An id comes back from a header field as it was made.
func TestNew(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := New()
		raw := "Message-ID: <" + id + ">\r\n\r\n"
		s, err := mime.Parse(strings.NewReader(raw), int64(len(raw)))
		if err != nil || s.MessageID != id || len(id) != 26+len("@pizza.localhost") {
			t.Fatalf("id %q reads as %q, %v", id, s.MessageID, err)
		}
		if seen[id] {
			t.Fatalf("%q came twice", id)
		}
		seen[id] = true
	}
}
