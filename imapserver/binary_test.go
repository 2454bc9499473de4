package imapserver

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/emersion/go-imap/v2"
)

// TestBinaryLarge: a decoded part that is longer than any buffer comes whole and in
// partials that make the whole, with NUL as a literal8.
func TestBinaryLarge(t *testing.T) {
	t.Parallel()
	want := make([]byte, 700_000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	var m strings.Builder
	m.WriteString("Subject: x\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n")
	for text := base64.StdEncoding.EncodeToString(want); text != ""; {
		n := min(76, len(text))
		m.WriteString(text[:n] + "\r\n")
		text = text[n:]
	}
	h := newHouse(t, nil)
	h.deliver("INBOX", []byte(m.String()))
	w := h.dial("a")
	w.do("LOGIN me secret")
	w.do("EXAMINE INBOX")
	if got := w.do("FETCH 1 BINARY.SIZE[1]"); got[0] != "* 1 FETCH (BINARY.SIZE[1] 700000)" {
		t.Error(got)
	}
	fetch := func(item string) []byte {
		t.Helper()
		got := w.do("FETCH 1 %s", item)
		_, lit, found := strings.Cut(got[0], "}\r\n")
		if !found || len(got) != 2 || !strings.Contains(got[0][:len(got[0])-len(lit)], "~{") {
			t.Fatalf("%s: %.100q", item, got)
		}
		return []byte(strings.TrimSuffix(lit, ")"))
	}
	if got := fetch("BINARY.PEEK[1]"); !bytes.Equal(got, want) {
		t.Errorf("the whole differs, %d octets", len(got))
	}
	var all []byte
	for at := 0; at < len(want); at += 100_000 {
		all = append(all, fetch(fmt.Sprintf("BINARY.PEEK[1]<%d.100000>", at))...)
	}
	if !bytes.Equal(all, want) {
		t.Errorf("partials make %d octets that differ", len(all))
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		p    *imap.SectionPartial
		want extent
	}{
		{"", nil, extent{}},
		{"abc", nil, extent{size: 3}},
		{"a\x00c", nil, extent{size: 3, nul: true}},
		{"\x00abc\x00", &imap.SectionPartial{Offset: 1, Size: 3}, extent{skip: 1, size: 3}},
		{"abc\x00", &imap.SectionPartial{Offset: 3, Size: 9}, extent{skip: 3, size: 1, nul: true}},
		{"abc", &imap.SectionPartial{Offset: 3, Size: 1}, extent{skip: 3}},
		{"abc", &imap.SectionPartial{Offset: 1 << 59, Size: 1 << 59}, extent{skip: 1 << 59}},
	} {
		got, err := measure(iotest.OneByteReader(strings.NewReader(tt.in)), tt.p)
		if err != nil || got != tt.want {
			t.Errorf("%q %+v: %+v, %v; want %+v", tt.in, tt.p, got, err, tt.want)
		}
	}
}
