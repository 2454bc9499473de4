package mail

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pizza/internal/unseen"
)

// The block shows as it is what internal/unseen lets pass, in texts and in JSON, and
// what it does not can be read back.
func TestBlockHidesWhatIsUnseen(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r > 0x40000 && r>>16 != 0xe {
			r += 250 // planes without a character of their own
		}
		if !utf8.ValidRune(r) || r == '\\' || r == '\n' {
			continue
		}
		s := "a" + string(r) + "b"
		text, json := escape(s), escapeJSON(s)
		if (text == s) == unseen.Hidden(r) || (json == s) == unseen.Hidden(r) {
			t.Fatalf("%U is shown as %s and %s", r, text, json)
		}
		if back, err := unescape(text); back != s || err != nil {
			t.Fatalf("%U comes back as %q, %v", r, back, err)
		}
	}
}

func TestRenderBlock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, args, want string }{
		{"plain", `{"path":"/local/a.txt","n":3,"ok":true,"x":null}`, "path: /local/a.txt\nn: 3\nok: true\nx: null"},
		{"lines", `{"content":"a\n  b\n\nc\n"}`, "content:\n  | a\n  |   b\n  |\n  | c\n  |"},
		{"like JSON", `{"a":"3","b":"true","c":"","d":"[x","e":"\"q\""}`, "a: \"3\"\nb: \"true\"\nc: \"\"\nd: \"[x\"\ne: \"\\\"q\\\"\""},
		{"nested", `{"to":["a","b"],"o":{"k":"v"}}`, "to: [\"a\",\"b\"]\no: {\"k\":\"v\"}"},
		{"bidi, zero width, control", `{"p":"a\u202etxt\u200b\u0000\u00a0\ufeff\ud83d\ude00\udb40\udc41"}`, `p: a\u202etxt\u200b\u0000\u00a0\ufeff😀\U000e0041`},
		{"the same in JSON", `{"p":["a\u202e\u200b\udb40\udc41"]}`, `p: ["a\u202e\u200b\udb40\udc41"]`},
		{"backslash, tab", `{"p":"C:\\x\ty"}`, `p: C:\\x\ty`},
		{"blanks at the edges", `{"p":" a  b "}`, `p: \u0020a \u0020b\u0020`},
		{"odd keys", `{"a b":1,"approve:\nx":"y"}`, "\"a b\": 1\n\"approve:\\nx\": y"},
		{"none", `{}`, "(none)"},
		{"no object", `[1,2]`, "(value): [1,2]"},
		{"broken", `{"a":`, `(value): {"a":`},
		{"HTML", `{"a":"<b>&"}`, "a: <b>&"},
	} {
		got, attach := RenderBlock(json.RawMessage(tt.args), "k3v9x2")
		if want := "[arguments k3v9x2]\n" + tt.want + "\n[end of arguments k3v9x2]"; got != want || attach {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

func TestRenderBlockCutsWhatIsLong(t *testing.T) {
	t.Parallel()
	args, _ := json.Marshal(map[string]any{"content": strings.Repeat("Grüße \n", 3000), "path": "/local/a.txt"})
	block, attach := RenderBlock(args, "n1")
	if !attach || len(block) > maxBlock {
		t.Errorf("attach %v, %d octets", attach, len(block))
	}
	for _, want := range []string{"path: /local/a.txt", "bytes left out here", "sha256 ", fmt.Sprintf("in all %d bytes", len(args)), "  | Grüße"} {
		if !strings.Contains(block, want) {
			t.Errorf("%q is missing in\n%s", want, block)
		}
	}
	if _, err := ParseBlock(block); err == nil {
		t.Error("a cut block can be read as a whole one")
	}
	many := map[string]int{}
	for i := range 2000 {
		many[fmt.Sprint("key", i)] = i
	}
	args, _ = json.Marshal(many)
	if block, attach := RenderBlock(args, "n1"); !attach || len(block) > maxBlock {
		t.Errorf("many arguments: attach %v, %d octets", attach, len(block))
	}
}

func TestFindBlock(t *testing.T) {
	t.Parallel()
	sent, _ := RenderBlock(json.RawMessage(`{"amount":40,"content":"a long line of text that some program will break somewhere\nsecond \"line\"\n","mail":"bob@example.com","path":"/local/a.txt"}`), "k3v9x2")
	for _, tt := range []struct {
		name, reply string
		same        bool
	}{
		{"quoted", "approve\n\n" + quoteOf(sent), true},
		{"quoted twice", quoteOf(quoteOf(sent)), true},
		{"quoted without blank", strings.ReplaceAll(quoteOf(sent), "> ", ">"), true},
		{"bare", sent, true},
		{"wrapped again", quoteOf(wrapLines(sent, 40)), true},
		{"wrapped, the rest without mark", strings.ReplaceAll(quoteOf(sent), "will break", "will\nbreak"), true},
		{"a long word broken", strings.ReplaceAll(quoteOf(sent), "/local/a.txt", "/loc\n> al/a.txt"), true},
		{"no-break spaces", strings.ReplaceAll(quoteOf(sent), " ", "\u00a0"), true},
		{"curly quotes", strings.ReplaceAll(quoteOf(sent), `"line"`, "“line”"), true},
		{"capital keys", strings.NewReplacer("amount:", "Amount:", "path:", "Path:").Replace(quoteOf(sent)), true},
		{"zero width", strings.ReplaceAll(quoteOf(sent), "path", "pa\u200bth"), true},
		{"empty lines", strings.ReplaceAll(quoteOf(sent), "\n", "\n>\n"), true},
		{"link target beside", strings.ReplaceAll(quoteOf(sent), "bob@example.com", "bob@example.com <mailto:bob@example.com>"), true},
		{"both quoted and typed, same", sent + "\n\n" + quoteOf(sent), true},
		{"A15 edited in the quote", strings.ReplaceAll(quoteOf(sent), "> amount: 40", "> amount: 30"), false},
		{"edited, below an intact one", quoteOf(sent) + "\n\n" + strings.ReplaceAll(sent, "40", "30"), false},
		{"line removed", strings.ReplaceAll(quoteOf(sent), "> amount: 40\n", ""), false},
		{"blank removed", strings.ReplaceAll(quoteOf(sent), "long line", "longline"), false},
		{"blank added", strings.ReplaceAll(quoteOf(sent), "/local/a.txt", "/local/ a.txt"), false},
		{"words added", strings.ReplaceAll(quoteOf(sent), "> path", "> | and more\n> path"), false},
		{"capital value", strings.ReplaceAll(quoteOf(sent), "/local/a.txt", "/local/A.txt"), false},
	} {
		got, found := FindBlock(tt.reply, "K3V9X2")
		if !found {
			t.Errorf("%s: not found", tt.name)
			continue
		}
		diff, changed := DiffBlock(sent, got)
		if changed == tt.same || changed != (diff != "") {
			t.Errorf("%s: changed %v\n%s\nfound\n%s", tt.name, changed, diff, got)
		}
	}
	for name, text := range map[string]string{
		"another nonce": strings.ReplaceAll(sent, "k3v9x2", "zzzzzz"), "no end": strings.TrimSuffix(sent, endMark("k3v9x2")), "nothing": "approve", "empty": "",
	} {
		if got, found := FindBlock(text, "k3v9x2"); found {
			t.Errorf("%s: found %q", name, got)
		}
	}
	got, _ := FindBlock(strings.ReplaceAll(quoteOf(sent), "> amount: 40", "> amount: 30"), "k3v9x2")
	if diff, _ := DiffBlock(sent, got); diff != "- amount: 40\n+ amount: 30" {
		t.Errorf("the difference reads\n%s", diff)
	}
}

// reversible reports how args come back from their block.
func reversible(args []byte) error {
	block, attach := RenderBlock(args, "k3v9x2")
	if attach {
		return nil
	}
	found, ok := FindBlock(quoteOf(block), "k3v9x2")
	if !ok {
		return fmt.Errorf("not found in\n%s", block)
	}
	if diff, changed := DiffBlock(block, found); changed {
		return fmt.Errorf("changed by quoting:\n%s", diff)
	}
	back, err := ParseBlock(block)
	if err != nil {
		return fmt.Errorf("%w in\n%s", err, block)
	}
	var a, b any
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	if err := json.Unmarshal(back, &b); err != nil || !reflect.DeepEqual(a, b) {
		return fmt.Errorf("%s came back as %s (%v) from\n%s", args, back, err, block)
	}
	return nil
}

func TestBlockIsReversible(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		`{}`, `{"a":""}`, `{"a":"\n"}`, `{"a":"\n\n"}`, `{"a":" "}`, `{"a":" \n "}`, `{"a":"| x"}`, `{"a":": x","b":"|"}`, `{"a":"x\n| y\n: z"}`,
		`{"a":"C:\\new\\table"}`, `{"a":"\\u202e"}`, `{"a":"\u202e"}`, `{"a":"> quoted\n>> twice"}`, `{"a":"k: v\nk: v"}`, `{"a":"(none)"}`, `{"a":"[… x"}`,
		`{"a":"[end of arguments k3v9x]"}`, `{"a":"0x10","b":"1e3","c":"-"}`, `{"a b":{"c":[1,2,{"d":"e\nf"}]}}`, `{"a":["` + strings.Repeat("long ", 60) + `"],"b":1}`,
		`{"a":"` + strings.Repeat("x", 3000) + `"}`, `{"a":"tab\there\r\n"}`, `{"a":12345678901234567890}`, `{"a":"   lead\n   lead"}`, `{"a":"a  b   c"}`, `{"a":"` + "`" + `“q”"}`,
		`{"":1}`, `{"a":"trail \nx"}`,
	} {
		if err := reversible([]byte(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}
