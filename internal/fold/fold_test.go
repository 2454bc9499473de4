package fold

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestString(t *testing.T) {
	t.Parallel()
	f := New()
	for _, same := range [][]string{
		{"hello", "HELLO", "ＨＥＬＬＯ", "ｈello"},
		{"straße", "STRASSE", "STRAẞE", "strasse"},
		{"é", "É", "e\u0301", "E\u0301", "\u00c9"},
		{"ガ", "ｶﾞ", "カ\u3099"},
		{"パン", "ﾊﾟﾝ"},
		{"fi", "ﬁ", "FI"},
		{"σοφοσ", "ΣΟΦΟΣ", "σοφος"},
		{"istanbul", "İSTANBUL", "Istanbul", "I\u0307stanbul"},
		{"ınce", "ınce"},
		{"a b", "a\r\n b", "a\u00a0b", "a\u3000b", "a \t\u2003 b", "a\u2028b"},
		{"zusammen", "zu\u00adsammen", "zu\u200bsammen", "\ufeffzusammen"},
		{"mhz", "㎒"},
		{"각", "\u1100\u1161\u11a8"},
		{"5", "５", "⑤"},
		{"\u0430\u0431\u0432", "\u0410\u0411\u0412"},
		{"", "\u00ad\u200d"},
	} {
		for _, s := range same[1:] {
			if a, b := f.String(same[0]), f.String(s); a != b {
				t.Errorf("%q folds to %q, %q to %q", same[0], a, s, b)
			}
		}
	}
	for _, differ := range [][2]string{{"e", "é"}, {"ı", "i"}, {"か", "カ"}, {"は", "ぱ"}, {"ab", "a b"}} {
		if a, b := f.String(differ[0]), f.String(differ[1]); a == b {
			t.Errorf("%q and %q both fold to %q", differ[0], differ[1], a)
		}
	}
	if got := f.String(" Two  \n"); got != " two " {
		t.Errorf("blanks at the ends: %q", got)
	}
}

// alphabet has letters of many scripts, marks, and what is easily forgotten.
var alphabet = []rune("aAiIıİzZ09 \t\r\n.,:éÉßẞŉΣσςάА яЖأبת中文東京カｶﾞﾊﾟがㄱ한글ᄒ\u1161\u11abﬁﬀ㎒①Ⅳ\u0300\u0301\u0307\u0323\u0345\u3099\u00ad\u200b\u200d\ufe0f\u00a0\u3000\u2028\u0085𝒜🙂\u1e9e\u0130\ufffdǅ")

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		c := alphabet[r.IntN(len(alphabet))]
		if r.IntN(20) == 0 {
			c = rune(r.IntN(utf8.MaxRune))
		}
		b.WriteRune(c)
	}
	return b.String()
}

// TestWays: folding does not depend on how the text is put together, composed or
// cut at an ASCII character, and folding twice is folding once.
func TestWays(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	f := New()
	for range 20000 {
		s := randomText(r, 1+r.IntN(12))
		got := f.String(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%+q folds to %q, which is not UTF-8", s, got)
		}
		if again := f.String(got); again != got {
			t.Fatalf("%+q folds to %+q and that to %+q", s, got, again)
		}
		if other := f.String(norm.NFD.String(s)); other != got {
			t.Fatalf("%+q folds to %+q, taken apart to %+q", s, got, other)
		}
		if whole := string(f.appendHard(nil, s)); whole != got {
			t.Fatalf("%+q folds to %+q, in one piece to %+q", s, got, whole)
		}
		if upper := f.String(strings.ToUpper(norm.NFKC.String(s))); !strings.ContainsAny(s, "ı") && upper != got && latin(s) {
			t.Fatalf("%+q folds to %+q, in capitals to %+q", s, got, upper)
		}
	}
}

func latin(s string) bool {
	for _, r := range s {
		if r >= 0x100 {
			return false
		}
	}
	return true
}

func TestPlain(t *testing.T) {
	t.Parallel()
	f := New()
	for _, s := range []string{"", "One  Two\r\n\tThree", "del\x7f", "esc\x1b(B", "nul\x00", "é", "a\vb"} {
		got, plain := Plain(nil, []byte(s))
		if want := !strings.ContainsAny(s, "\x7f\x1b\x00é\v"); plain != want {
			t.Errorf("%q: plain is %v", s, plain)
		}
		if plain && string(got) != f.String(s) {
			t.Errorf("%q is folded to %q, not %q", s, got, f.String(s))
		}
	}
}

func FuzzString(f *testing.F) {
	f.Add("Straße İ ｶﾞ e\u0301")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\ufffd")
		fold := New()
		got := fold.String(s)
		if whole := string(fold.appendHard(nil, s)); whole != got {
			t.Fatalf("%+q folds to %+q, in one piece to %+q", s, got, whole)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for name, s := range map[string]string{
		"ascii":    strings.Repeat("The quick brown Fox jumps\r\n", 400),
		"german":   strings.Repeat("Grüße aus der schönen Stadt\r\n", 400),
		"japanese": strings.Repeat("東京特許許可局へようこそ。\r\n", 400),
	} {
		b.Run(name, func(b *testing.B) {
			f := New()
			var dst []byte
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				dst = f.Append(dst[:0], s)
			}
		})
	}
}
