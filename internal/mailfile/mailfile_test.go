package mailfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pieces that messages of the property test are made of: what could be taken for
// structure of a format, in any order and with any line ends.
var pieces = []string{
	"From: a@b", "Subject: x", "Status: RO", "X-Status: AF", "X-Keywords: k", "X-Pizza-Bytes: lf", "X-Pizza-Bytes: exact-open",
	"From ", "From me@here Thu Jan  1 00:00:00 2026", ">From x", ">>From ", ">From", " From ", "", "", "", "text", " folded", "\ttab",
	"\x00", "\xff\xfe", strings.Repeat("long", 3000), ".", ">", "Fro", "m ",
}

var lineEnds = []string{"\r\n", "\n", "\r", ""}

// message is a random one; most have CRLF only, as mail has.
func message(rnd *rand.Rand) []byte {
	var b bytes.Buffer
	end := func() string { return "\r\n" }
	if rnd.IntN(3) == 0 {
		end = func() string { return lineEnds[rnd.IntN(len(lineEnds))] }
	}
	for range rnd.IntN(12) {
		b.WriteString(pieces[rnd.IntN(len(pieces))])
		b.WriteString(end())
	}
	if rnd.IntN(4) == 0 && b.Len() > 0 {
		b.Truncate(b.Len() - 1)
	}
	return b.Bytes()
}

var someFlags = []string{`\Seen`, `\Answered`, `\Flagged`, `\Draft`, `\Deleted`, "$Forwarded", "Work", "$label1", "NonJunk", "a[b"}

var someFolders = []string{"INBOX", "Sent", "Work", "Work/Sub", "Work/Sub/deep.er", "Empty", "a.b", `back\slash`, "Entwürfe/日本", "..", ".hidden", "50% off", "x.sbd/y", "x.mbox/z",
	"cur/new", "INBOX/below", "a&b", "%2E", "x.mbox", "mbox", "dovecot-keywords"}

func sampleMail(rnd *rand.Rand) map[string][]Message {
	all := map[string][]Message{}
	for _, f := range someFolders {
		all[f] = nil
		if f == "Empty" {
			continue
		}
		for range rnd.IntN(8) {
			m := Message{Folder: f, Body: message(rnd), Date: time.Unix(rnd.Int64N(2e9), 0)}
			for _, flag := range someFlags {
				if rnd.IntN(3) == 0 {
					m.Flags = append(m.Flags, flag)
				}
			}
			all[f] = append(all[f], m)
		}
		if f == "Work" { // Maildir orders by date; let it be theirs
			slices.SortStableFunc(all[f], func(x, y Message) int { return x.Date.Compare(y.Date) })
		}
	}
	return all
}

// TestRoundTrip: bytes, flags, dates and folders come back as they were written.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(string) (Sink, error){"mbox": NewMbox, "maildir": NewMaildir} {
		for seed := range uint64(12) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				all, dir := sampleMail(rand.New(rand.NewPCG(seed, 1))), filepath.Join(t.TempDir(), "out")
				sink, err := open(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, folder := range someFolders {
					if err := sink.Folder(folder); err != nil {
						t.Fatal(err)
					}
					for _, m := range all[folder] {
						if err := sink.Add(m); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := sink.Close(); err != nil {
					t.Fatal(err)
				}
				sameMail(t, collect(t, dir), all)
			})
		}
	}
}

// collect walks a path and keeps everything.
func collect(t *testing.T, path string) map[string][]Message {
	t.Helper()
	got := map[string][]Message{}
	err := Walk(path, "loose", func(m Message, err error) error {
		if err != nil {
			t.Error(err)
			return nil
		}
		list := got[m.Folder]
		if m.Body != nil {
			m.Body = bytes.Clone(m.Body)
			list = append(list, m)
		}
		got[m.Folder] = list
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// sameMail compares per folder, whatever the order: each says what a message is.
func sameMail(t *testing.T, got, want map[string][]Message) {
	t.Helper()
	lines := func(list []Message) []string {
		var out []string
		for _, m := range list {
			flags := slices.Sorted(slices.Values(m.Flags))
			out = append(out, fmt.Sprintf("%d %v %q", m.Date.Unix(), flags, m.Body))
		}
		slices.Sort(out)
		return out
	}
	for folder := range want {
		g, w := lines(got[folder]), lines(want[folder])
		if _, there := got[folder]; !there {
			t.Errorf("folder %q did not come back", folder)
		}
		for i := range max(len(g), len(w)) {
			if i >= len(g) || i >= len(w) || g[i] != w[i] {
				t.Errorf("folder %q:\n got %.300s\nwant %.300s", folder, g, w)
				break
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d folders, want %d", len(got), len(want))
	}
}

func TestMboxOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "From ann@x Thu Jan  1 00:00:09 2026\nX-Mozilla-Status: 0005\nX-Mozilla-Keys: $label1 $label2      \nSubject: one\n\n" +
		"From here on it is a text\n>From quoted\n>>From twice\n\n" +
		"From bob@x  Fri Jan  2 10:00:00 2026 +0100\r\nSubject: two\r\nStatus: RO\r\nX-Status: A\r\n\r\nbody\r\n\r\n" +
		"From - Sat Jan  3 00:00:00 2026\n\n"
	if err := os.WriteFile(filepath.Join(dir, "Old"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Old.msf"), []byte("index"), 0o600); err != nil {
		t.Fatal(err)
	}
	sameMail(t, collect(t, dir), map[string][]Message{"Old": {
		{Date: time.Date(2026, 1, 1, 0, 0, 9, 0, time.UTC), Flags: []string{`\Seen`, `\Flagged`, "$label1", "$label2"},
			Body: []byte("Subject: one\r\n\r\nFrom here on it is a text\r\nFrom quoted\r\n>From twice\r\n")},
		{Date: time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC), Flags: []string{`\Seen`, `\Answered`},
			Body: []byte("Subject: two\r\nStatus: RO\r\nX-Status: A\r\n\r\nbody\r\n")},
		{Date: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), Body: []byte("\r\n")},
	}})
}

func TestMaildirOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600),
			os.Chtimes(path, time.Time{}, time.Unix(1e9, 0))); err != nil {
			t.Fatal(err)
		}
	}
	write("cur/1700000000.M1P2.host,S=12,W=14:2,RSb", "A: b\n\nhello\n")
	write("new/1600000000.x.host", "N: 1\n\n")
	write("dovecot-keywords", "0 zero\n1 one\n")
	write(".Sent.Old/cur/1.a:2,S", "S: 1\r\n\r\nkept\r\n") // CRLF already
	write("Verbatim/v1.2/cur/2.b:2,", "V: 1\n\n")
	write("dovecot.index.log", "not mail")
	sameMail(t, collect(t, dir), map[string][]Message{
		"INBOX": {
			{Date: time.Unix(1e9, 0), Flags: []string{`\Answered`, `\Seen`, "one"}, Body: []byte("A: b\r\n\r\nhello\r\n")},
			{Date: time.Unix(1e9, 0), Body: []byte("N: 1\r\n\r\n")},
		},
		"Sent/Old":      {{Date: time.Unix(1e9, 0), Flags: []string{`\Seen`}, Body: []byte("S: 1\r\n\r\nkept\r\n")}},
		"Verbatim/v1.2": {{Date: time.Unix(1e9, 0), Body: []byte("V: 1\r\n\r\n")}},
	})
}

func TestLooseFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Unix(1e9, 0)
	for name, text := range map[string]string{"one.eml": "A: 1\n\nx\n", "sub/two.EML": "B: 2\r\n\r\nx\ny\r\n", "Work.sbd/Inner": "From x Thu Jan 1 00:00:00 2026\nC: 3\n\n",
		"Apple.mbox/mbox": "From x Thu Jan 1 00:00:00 2026\nD: 4\n\n"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	sameMail(t, collect(t, dir), map[string][]Message{
		"loose": {{Date: at, Body: []byte("A: 1\r\n\r\nx\r\n")}}, "sub": {{Date: at, Body: []byte("B: 2\r\n\r\nx\ny\r\n")}},
		"Work/Inner": {{Date: from, Body: []byte("C: 3\r\n")}}, "Apple": {{Date: from, Body: []byte("D: 4\r\n")}},
	})
}

// TestUnusable: what cannot be read is told, and the rest goes on.
func TestUnusable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600),
		os.WriteFile(filepath.Join(dir, "b.eml"), []byte("B: 1\r\n\r\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var texts []string
	n := 0
	if err := Walk(dir, "loose", func(m Message, err error) error {
		var e *Error
		if errors.As(err, &e) {
			texts = append(texts, e.Error())
		} else if m.Body != nil {
			n++
		}
		return nil
	}); err != nil || n != 1 || len(texts) != 1 || !strings.Contains(texts[0], "a.txt: neither an mbox file nor a message") {
		t.Errorf("%d messages, %v, %v", n, texts, err)
	}
	if err := Walk(filepath.Join(dir, "none"), "", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path that is not there: %v", err)
	}
	stop := errors.New("stop")
	if err := Walk(dir, "loose", func(Message, error) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := NewFrameWriter(&b)
	if err := errors.Join(w.Folder("F"), w.Add(Message{Folder: "F", Flags: []string{`\Seen`}, Date: time.Unix(7, 0), Body: []byte("a\nb")}), w.End(nil)); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := ReadFrames(bytes.NewReader(b.Bytes()), func(m Message) error {
		if n++; n == 2 && (string(m.Body) != "a\nb" || m.Date.Unix() != 7 || m.Flags[0] != `\Seen`) {
			t.Errorf("%+v", m)
		}
		return nil
	}); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	for cut := range b.Len() - 1 {
		if err := ReadFrames(bytes.NewReader(b.Bytes()[:cut]), func(Message) error { return nil }); err == nil {
			t.Fatalf("cut off at %d is whole", cut)
		}
	}
	b.Reset()
	if err := w.End(errors.New("broken")); err != nil {
		t.Fatal(err)
	}
	if err := ReadFrames(&b, nil); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v", err)
	}
}
