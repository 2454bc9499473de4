package textindex

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// model is what an index should know: the texts by number.
type model struct {
	t     *testing.T
	r     *rand.Rand
	dir   string
	x     *Index
	g     Grams
	texts map[uint64]string // all that were ever there
	dead  map[uint64]bool
	last  uint64
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, r: rand.New(rand.NewPCG(seed, 7)), dir: filepath.Join(t.TempDir(), "i"), texts: map[uint64]string{}, dead: map[uint64]bool{}}
	m.open()
	return m
}

func (m *model) open() {
	m.t.Helper()
	x, err := Open(m.dir, 1, func([]Content) bool { return true })
	if err != nil {
		m.t.Fatal(err)
	}
	m.x = x
}

// words make texts that have much in common.
var words = strings.Fields(`mail server agent invoice über straße ab a zz 12 20.5 x@y.org <a@b> привет мир приветы
東京 東京都 京 特許 がんばれ カタカナ 한국어 한국 שלום مرحبا 🙂🙂 é e 𝒜𝒷 a東b`)

func (m *model) text() string {
	var b strings.Builder
	for range 1 + m.r.IntN(12) {
		w := words[m.r.IntN(len(words))]
		if m.r.IntN(4) == 0 {
			w += string(rune('a' + m.r.IntN(26)))
		}
		if m.r.IntN(30) == 0 {
			w = string(rune(0x20 + m.r.IntN(0xd000)))
		}
		b.WriteString(w)
		if m.r.IntN(5) > 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// commit makes new contents, with numbers left out.
func (m *model) commit(n int) {
	for range n {
		m.last += 1 + uint64(m.r.IntN(3)/2)
		m.texts[m.last] = m.text()
	}
}

// work indexes up to n contents, the first of the gap first, as a worker does.
func (m *model) work(n int) {
	m.t.Helper()
	for range n {
		from, to := m.x.Gap()
		to = min(to, m.last)
		if from > to {
			return
		}
		for ; m.texts[from] == "" || m.dead[from]; from++ {
			if from == to {
				m.x.Cover(to)
				m.flush()
				break
			}
		}
		if from > to || m.texts[from] == "" || m.dead[from] {
			continue
		}
		m.g.Reset()
		m.g.Add([]byte(m.texts[from]), Message)
		m.g.Add([]byte(m.texts[from][:len(m.texts[from])/2]), Envelope)
		m.x.Add(Content{from, uint32(len(m.texts[from]))}, &m.g)
		m.flush()
	}
}

func (m *model) flush() {
	m.t.Helper()
	if !m.x.Due() {
		return
	}
	if err := m.x.Flush(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) alive(n uint64) bool { return m.texts[n] != "" && !m.dead[n] }

func (m *model) merge() {
	m.t.Helper()
	for {
		did, err := m.x.Merge(m.alive)
		if err != nil {
			m.t.Fatal(err)
		}
		if !did {
			return
		}
	}
}

// query is a piece of some text, or a text that is in none.
func (m *model) query() string {
	all := m.text()
	for n := range m.texts {
		all = m.texts[n]
		break
	}
	r := []rune(all)
	i := m.r.IntN(len(r))
	return string(r[i : i+1+m.r.IntN(min(len(r)-i, 9))])
}

// check asks and compares: a content that holds the text is never named, and the index
// knows the ones up to its gap.
func (m *model) check(queries int) (named int) {
	m.t.Helper()
	for range queries {
		q := m.query()
		for _, zone := range []Zone{Message, Envelope} {
			lacking := map[uint64]bool{}
			ok, err := m.x.Lacking(q, zone, func(n uint64) { lacking[n] = true })
			if err != nil {
				m.t.Fatal(err)
			}
			if !ok && len([]rune(q)) > 3 && !strings.Contains(q, " ") {
				m.t.Errorf("no answer for %q", q)
			}
			for n := range lacking {
				text := m.texts[n]
				if zone == Envelope {
					text = text[:len(text)/2]
				}
				if strings.Contains(text, q) {
					m.t.Fatalf("content %d holds %q and was said to lack it: %q", n, q, text)
				}
			}
			named += len(lacking)
		}
	}
	return named
}

func TestNeverWrong(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, seed)
			named := 0
			for range 40 {
				switch m.r.IntN(8) {
				case 0, 1:
					m.commit(m.r.IntN(200))
				case 2, 3:
					m.work(m.r.IntN(400))
				case 4:
					m.merge()
				case 5:
					for n := range m.texts {
						if m.dead[n] = true; m.r.IntN(20) == 0 {
							break
						}
					}
				case 6:
					if err := m.x.Prune(m.alive); err != nil {
						t.Fatal(err)
					}
				case 7: // the process ends, and begins again
					m.open()
				}
				named += m.check(6)
			}
			if named == 0 {
				t.Error("the index never excluded anything")
			}
		})
	}
}

// TestExact: of what the index knows it names nearly all that lacks a text.
func TestExact(t *testing.T) {
	t.Parallel()
	m := newModel(t, 99)
	m.commit(3000)
	m.work(3000)
	m.merge()
	if st := m.x.Stats(); st.Contents != 3000 || st.Segments > mergeSegments+2 {
		t.Errorf("after 3000 contents: %+v", st)
	}
	for _, q := range []string{"nosuchword", "東京都", "привет", "invoice", "京", "x@y.org", "한국어"} {
		lacking, holding := 0, 0
		ok, err := m.x.Lacking(q, Message, func(uint64) { lacking++ })
		for _, text := range m.texts {
			if strings.Contains(text, q) {
				holding++
			}
		}
		if wrong := 3000 - holding - lacking; err != nil || wrong > 60 || !ok {
			t.Errorf("%q: %d of %d lack it, %d were named; ok %v, %v", q, 3000-holding, 3000, lacking, ok, err)
		}
	}
	if ok, _ := m.x.Lacking("ab", Message, nil); ok {
		t.Error("two letters were looked up")
	}
}

// TestKilled: whatever was written when the process ended, in whichever state, the
// index is right and completes itself.
func TestKilled(t *testing.T) {
	t.Parallel()
	m := newModel(t, 5)
	m.commit(1200)
	m.work(1150)
	before := files(t, m.dir)
	m.merge()
	after := files(t, m.dir)
	if len(after) >= len(before) {
		t.Fatal("nothing was merged")
	}
	for name, b := range before { // the merge had not deleted any yet
		write(t, filepath.Join(m.dir, name), b)
	}
	write(t, filepath.Join(m.dir, "new.tmp"), []byte("half of some"))
	m.open()
	if got := files(t, m.dir); len(got) != len(after) {
		t.Errorf("%d files, want %d", len(got), len(after))
	}
	m.check(100)
	m.work(1200)
	m.check(100)
	if m.x.Stats().Contents != 1200 {
		t.Errorf("%+v", m.x.Stats())
	}
}

// TestDamaged: a damaged file is dropped and its range indexed again, found at the
// start or, when it happens later, by the query that reads it.
func TestDamaged(t *testing.T) {
	t.Parallel()
	m := newModel(t, 6)
	m.commit(600)
	m.work(600)
	for i, change := range []func(b []byte) []byte{
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte { b[len(b)/3] ^= 1; return b },
		func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		func(b []byte) []byte { return append(b, 0) },
		func(b []byte) []byte { return make([]byte, len(b)) },
	} {
		all := files(t, m.dir)
		name := slices.Sorted(func(yield func(string) bool) {
			for n := range all {
				if !yield(n) {
					return
				}
			}
		})[i%len(all)]
		write(t, filepath.Join(m.dir, name), change(slices.Clone(all[name])))
		m.open()
		if st := m.x.Stats(); st.Segments != len(all)-1 {
			t.Errorf("change %d: %+v of %d files", i, st, len(all))
		}
		m.check(20)
		m.work(600)
		m.check(20)
		if st := m.x.Stats(); st.Contents != 600 {
			t.Errorf("change %d: %+v after indexing again", i, st)
		}
	}
	for name := range files(t, m.dir) { // under a running index
		write(t, filepath.Join(m.dir, name), nil)
		break
	}
	if _, err := m.x.Lacking("invoice", Message, func(uint64) {}); err == nil {
		t.Error("a query read a file that is empty")
	}
	m.merge()
	m.work(600)
	m.check(20)
	if st := m.x.Stats(); st.Contents != 600 {
		t.Errorf("%+v after damage under way", st)
	}
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name()] = b
	}
	return out
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestForeign: files of another tag, or of contents that are others now, do not count.
func TestForeign(t *testing.T) {
	t.Parallel()
	m := newModel(t, 8)
	m.commit(300)
	m.work(300)
	x, err := Open(m.dir, 1, func(c []Content) bool { return c[0].Number > 100 })
	if err != nil {
		t.Fatal(err)
	}
	if st := x.Stats(); st.Contents == 0 || st.Contents > 200 {
		t.Errorf("%+v", st)
	}
	if x, err = Open(m.dir, 2, func([]Content) bool { return true }); err != nil || x.Stats().Segments != 0 {
		t.Errorf("%v, %+v of another tag", err, x.Stats())
	}
	if len(files(t, m.dir)) != 0 {
		t.Error("files of another tag were kept")
	}
}

// TestQueriesMeanwhile asks while contents are added and merged.
func TestQueriesMeanwhile(t *testing.T) {
	t.Parallel()
	m := newModel(t, 9)
	m.commit(1300)
	texts := m.texts
	var wg sync.WaitGroup
	end := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if _, err := m.x.Lacking("привет", Message, func(n uint64) {
					if strings.Contains(texts[n], "привет") {
						t.Errorf("content %d was said to lack what it holds", n)
					}
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for m.x.Stats().Contents < 1300 {
		m.work(100)
		m.merge()
	}
	close(end)
	wg.Wait()
}

// TestFull: a content with too many grams is in every answer, and does not need the
// memory of them.
func TestFull(t *testing.T) {
	t.Parallel()
	m := newModel(t, 10)
	m.g.Reset()
	var b []byte
	for i := range 400_000 {
		b = append(b[:0], string(rune(0x3000+i%0x9000))...)
		b = append(b, string(rune(0x3000+i/7%0x9000))...)
		m.g.Add(b, Message)
		if len(m.g.list) > 2*maxGrams {
			t.Fatal("the list grows without bound")
		}
	}
	m.x.Add(Content{1, 0}, &m.g)
	m.g.Reset()
	m.g.AddAll()
	m.x.Add(Content{2, 0}, &m.g)
	m.g.Reset()
	m.g.Add([]byte("plain"), Message)
	m.x.Add(Content{3, 0}, &m.g)
	for range 2 {
		var got []uint64
		if ok, err := m.x.Lacking("nosuch", Message, func(n uint64) { got = append(got, n) }); !ok || err != nil || !slices.Equal(got, []uint64{3}) {
			t.Errorf("%d lack it: %v, %v", got, ok, err)
		}
		if err := m.x.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}
