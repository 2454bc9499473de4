package mutf7

import (
	"errors"
	"testing"
	"unicode/utf8"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, wire := range map[string]string{
		"": "", "Sent": "Sent", "A&B": "A&-B", "日本語": "&ZeVnLIqe-", "Entwürfe": "Entw&APw-rfe", "😀": "&2D3eAA-", "ä&ö": "&AOQ-&-&APY-",
		"tab\t": "tab&AAk-", "\ufffd": "&,,0-",
	} {
		if got := Encode(name); got != wire {
			t.Errorf("Encode(%q) = %q, want %q", name, got, wire)
		}
		if got, err := Decode(wire); err != nil || got != name {
			t.Errorf("Decode(%q) = %q, %v; want %q", wire, got, err, name)
		}
	}
}

// TestInvalid: what is none, and what is another spelling of a name that has one already.
func TestInvalid(t *testing.T) {
	t.Parallel()
	for why, wire := range map[string]string{
		"an end is missing":      "&ZeU",
		"half a character":       "&AA-",
		"half a surrogate pair":  "&2D0-",
		"a low surrogate alone":  "&3gA-",
		"not base64":             "&ZeVnLIqe=-",
		"bits that mean nothing": "&ZeW-x",
		"ASCII that is coded":    "&AGE-",
		"8-bit":                  "caf\xc3\xa9",
		"one digit":              "&+-",
		"a shift too many":       "&U,BTFw-&ZeVnLIqe-",
		"a control character":    "a\x7fb",
	} {
		if got, err := Decode(wire); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: Decode(%q) = %q, %v", why, wire, got, err)
		}
	}
}

// FuzzRoundTrip: a name that decodes is UTF-8, and has no other form.
func FuzzRoundTrip(f *testing.F) {
	for _, wire := range []string{"A&-B", "&ZeVnLIqe-", "&2D3eAA-", "&AOQ-&APY-", "&,,0-"} {
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire string) {
		name, err := Decode(wire)
		if err != nil {
			return
		}
		if !utf8.ValidString(name) {
			t.Fatalf("Decode(%q) = %q, which is not UTF-8", wire, name)
		}
		if back := Encode(name); back != wire {
			t.Fatalf("Decode(%q) = %q, which is encoded as %q", wire, name, back)
		}
	})
}
