package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func read(t *testing.T, r io.Reader) ([]Event, error) {
	t.Helper()
	e := NewEventReader(r, 100)
	var all []Event
	for {
		ev, err := e.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, ev)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "data: a\n\ndata: b\n\n", "|a;|b;"},
		{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", "x|a;|b;"},
		{"CR", "data: a\r\rdata: b\r\r", "|a;|b;"},
		{"BOM", "\uFEFFdata: a\n\n", "|a;"},
		{"comments", ": hi\ndata: a\n:\n: there\n\n: bye\n\n", "|a;"},
		{"many lines", "data: a\ndata\ndata:  b\n\n", "|a\n\n b;"},
		{"unknown and odd fields", "id: 1\nretry: x\nfoo\ndata:a\n\n", "|a;"},
		{"type without data", "event: x\n\ndata: a\n\n", "|a;"},
		{"no last line end", "data: a\n\ndata: b", "|a;|b;"},
		{"only empty lines", "\n\n\r\n", ""},
		{"split rune", "data: ü漢😀\n\n", "|ü漢😀;"},
	} {
		for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))} {
			events, err := read(t, r)
			var got strings.Builder
			for _, e := range events {
				got.WriteString(e.Type + "|" + string(e.Data) + ";")
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("%s: %q, %v; want %q", tt.name, got.String(), err, tt.want)
			}
		}
	}
}

func TestEventLimits(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"data: " + strings.Repeat("x", 200), strings.Repeat("data: 12345678\n", 20), ":" + strings.Repeat("x", 200)} {
		if _, err := read(t, strings.NewReader(in)); !errors.Is(err, ErrTooLong) {
			t.Errorf("%.20q: %v", in, err)
		}
	}
	boom := errors.New("boom")
	if events, err := read(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(boom))); !errors.Is(err, boom) || len(events) != 1 {
		t.Errorf("%v, %v", events, err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("event: x\r\ndata: a\r\n\r\n:c\rdata\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		a, errA := read(t, strings.NewReader(in))
		b, errB := read(t, iotest.OneByteReader(strings.NewReader(in)))
		if len(a) != len(b) || (errA == nil) != (errB == nil) {
			t.Errorf("%d events and %v at once, %d and %v byte by byte", len(a), errA, len(b), errB)
		}
	})
}
