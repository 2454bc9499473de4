package imapserver

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pizza/internal/mime"
)

// TestLacks: what the quick look says of a message is what decoding it says. The
// messages are the nasty ones, the texts are pieces of what they decode to, and of
// what they look like undecoded.
func TestLacks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../internal/testkit/eml/*.eml")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	raws := [][]byte{
		[]byte("Subject : spaced\r\nX: a\r\n b\r\n\r\nplain text, no more\r\n"),
		[]byte("Content-Type: text/plain; format=flowed; delsp=yes\r\n\r\none \r\nword\r\n"),
		[]byte("Content-Type: text/plain; format=flowed\r\n\r\n>one \r\n>word\r\n"),
		[]byte("Content-Type: text/plain; charset=utf-7\r\n\r\nHi+AOk-there\r\n"),
		[]byte("Content-Type: text/plain; charset=utf-16be\r\n\r\n\x00a\x00b\x00c\x00d\r\n"),
		[]byte("Content-Type: text/plain; charset=hz-gb-2312\r\n\r\n~{VPND~}abcd\r\n"),
		[]byte("Content-Transfer-Encoding: quoted-printable\r\n\r\nsoft=\r\nbreak =41BC\r\n"),
		[]byte("Content-Transfer-Encoding: base64\r\n\r\nUGxhaW4gV09SRA==\r\n"),
		[]byte("Content-Type: text/html\r\n\r\nsp<b>lit</b> &#97;bc\r\n"),
		[]byte("Subject: nul\x00inside =?utf-8?q?word?=\r\n\r\nnul\x00inside \x1b(Babc\r\n"),
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	said := 0
	for _, raw := range raws {
		said += lacksAgrees(t, raw)
	}
	if said < len(raws) {
		t.Errorf("the quick look decided %d times in %d messages", said, len(raws))
	}
}

// lacksAgrees compares for one message, and returns how often the quick look decided.
func lacksAgrees(t *testing.T, raw []byte) (said int) {
	st, err := mime.Parse(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	m := &matcher{folder: newFolder()}
	body := bytes.NewReader(raw)
	header, err := mime.RawHeader(body, st.Root)
	if err != nil {
		t.Fatal(err)
	}
	err = st.EachSearched(body, header, func(place mime.Searched) bool {
		said += headerAgrees(t, m, place)
		if place.HasText() {
			said += textAgrees(t, m, place)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func headerAgrees(t *testing.T, m *matcher, place mime.Searched) (said int) {
	decoded := ""
	for _, f := range mime.Fields(place.Header) {
		decoded += f.Name + ": " + f.Text() + "\n"
	}
	for _, text := range pieces(m, decoded+string(place.Header)) {
		lacks := m.headerLacks(place.Header, text)
		if lacks && m.contains(decoded, text) {
			t.Errorf("header %.80q holds %q", place.Header, text)
		}
		said += count(lacks)
	}
	return said
}

func textAgrees(t *testing.T, m *matcher, place mime.Searched) (said int) {
	content, err := place.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range pieces(m, content) {
		lacks, err := m.partLacks(place, text)
		if err != nil || lacks && m.contains(content, text) {
			t.Errorf("part %.80q holds %q: %v", content, text, err)
		}
		said += count(lacks)
	}
	return said
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pieces returns folded words of a text, halves of them, and one that it lacks.
func pieces(m *matcher, text string) []string {
	out, last := []string{"nosuchword"}, "no"
	for w := range strings.FieldsSeq(m.String(text)) {
		out = append(out, w, w[:(len(w)+1)/2], w[len(w)/2:], last+" "+w)
		last = w
		if len(out) > 300 {
			break
		}
	}
	return out
}

// TestSearchManyBodies: a search that reads bodies, some of them from files, finds the
// same whether its key comes first or behind others, and in order.
func TestSearchManyBodies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	var want []string
	for i := range 60 {
		text := "nothing here\r\n"
		if i%7 == 3 {
			text = "a Needle here\r\n"
			want = append(want, decimal64(int64(i+1)))
		}
		if i%10 == 3 {
			text = strings.Repeat("padding of a large one\r\n", 7000) + text
		}
		h.deliver("INBOX", []byte("Subject: s\r\nX-Odd: "+strings.Repeat("o", i%2)+"\r\n\r\n"+text))
	}
	w := h.dial("a")
	w.must("LOGIN me secret")
	w.must("SELECT INBOX")
	all := "* SEARCH " + strings.Join(want, " ")
	for _, key := range []string{"TEXT needle", "BODY NEEDLE", "OR BODY needle HEADER X-Odd none", "SUBJECT s TEXT needle UNDELETED", "NOT NOT BODY needle"} {
		if got := w.must("SEARCH %s", key); !slices.Contains(got, all) {
			t.Errorf("SEARCH %s: %q, want %q", key, got, all)
		}
	}
	if got := w.must("SEARCH NOT HEADER X-Odd o"); len(strings.Fields(got[0])) != 32 {
		t.Errorf("SEARCH NOT HEADER: %q", got)
	}
}
