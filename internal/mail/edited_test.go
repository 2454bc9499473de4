package mail

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestEditedArgs(t *testing.T) {
	t.Parallel()
	args := json.RawMessage(`{"amount":40.50,"content":"a long text that goes on and on and\u00e4 so that it is wrapped here path: by some program","lines":"l1\nl2","path":"/local/notes/a.txt","opt":{"b":1,  "a":2}}`)
	sent, _ := RenderBlock(args, "k3v9x2")
	in := func(change ...string) string { return quoteOf(strings.NewReplacer(change...).Replace(sent)) }
	want := func(change ...string) string { return strings.NewReplacer(change...).Replace(string(args)) }
	for _, tt := range []struct{ name, text, want string }{
		{"nothing changed", in(), string(args)},
		{"one in the quote", in("40.50", "30"), want("40.50", "30")},
		{"typed above the quote", strings.Replace(sent, "a.txt", "b.txt", 1) + "\n\n" + in(), want("a.txt", "b.txt")},
		{"typed over the mark", strings.Replace(in("40.50", "7"), "> amount", "amount", 1), want("40.50", "7")},
		{"a further line", in("  | l2", "  | l2\n  | l3"), want(`l2"`, `l2\nl3"`)},
		{"wrapped at what looks like an argument", in("here path: by", "here\npath: by", "a.txt", "c.txt"), want("a.txt", "c.txt")},
		{"a capital", in("path: /local", "Path: /local", "a.txt", "c.txt"), want("a.txt", "c.txt")},
		{"a text that looks like a number", in("path: /local/notes/a.txt", "path: 42"), want(`"/local/notes/a.txt"`, `"42"`)},
		{"taken out", in("amount: 40.50\n", ""), want(`"amount":40.50,`, "")},
		{"added", in("amount: 40.50\n", "amount: 40.50\ncc: bob\n"), want(`2}}`, `2},"cc":"bob"}`)},
		{"JSON", in(`{"b":1,"a":2}`, `{"b":2}`), want(`{"b":1,  "a":2}`, `{"b":2}`)},
	} {
		got, err := EditedArgs(args, sent, "k3v9x2", "edit\n\n"+tt.text)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n got %s\nwant %s", tt.name, err, got, tt.want)
		}
	}
	if got, err := EditedArgs(args, sent, "k3v9x2", "edit\n\n"+in("path: /local/notes/a.txt", `path: "a" b`)); err != nil || string(got) != want(`"/local/notes/a.txt"`, `"\"a\" b"`) {
		t.Errorf("a text in quotation marks: %s %v", got, err)
	}
	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"no block":      {"amount: 30", ErrNoBlock},
		"no end":        {strings.Replace(in("40", "30"), "[end of", "[", 1), ErrNoBlock},
		"another nonce": {strings.ReplaceAll(in("40", "30"), "k3v9x2", "zzzzzz"), ErrNoBlock},
		"two versions":  {in("40", "30") + "\n" + in("40", "20"), ErrBlock},
		"twice":         {in("amount: 40.50\n", "amount: 1\namount: 2\n"), ErrBlock},
		"no JSON":       {in(`{"b":1,"a":2}`, `{"b":`), ErrBlock},
		"no argument":   {in("amount: 40.50\n", "what is this\namount: 40.50\n"), ErrBlock},
	} {
		if got, err := EditedArgs(args, sent, "k3v9x2", "edit\n\n"+tt.text); !errors.Is(err, tt.want) {
			t.Errorf("%s: %s, %v; want %v", name, got, err, tt.want)
		}
	}
}

// What was shown in part keeps its bytes when it was not touched.
func TestEditedArgsOfALongBlock(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 2000)
	args := json.RawMessage(`{"content":"` + long + `","path":"/local/notes/a.txt"}`)
	sent, attach := RenderBlock(args, "k3v9x2")
	if !attach {
		t.Fatal("the block is whole")
	}
	got, err := EditedArgs(args, sent, "k3v9x2", quoteOf(strings.ReplaceAll(sent, "a.txt", "b.txt")))
	if want := strings.ReplaceAll(string(args), "a.txt", "b.txt"); err != nil || string(got) != want {
		t.Errorf("%v: %.80s", err, got)
	}
	if _, err := EditedArgs(args, sent, "k3v9x2", quoteOf(strings.Replace(sent, "word", "work", 1))); !errors.Is(err, ErrBlock) {
		t.Errorf("a change of what is shown in part: %v", err)
	}
}

func TestEditInTheQuoteIsClear(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Outcome{
		"edit\n\nOn x, y wrote:\n> Write it.\n> [arguments k3v9x2]\namount: 30?": Decided,
		"edit\nbut wait\n> [arguments k3v9x2]\namount: 30":                       Unclear,
		"approve\n> [arguments k3v9x2]\namount: 30":                              Unclear,
	} {
		if d, o, why := ParseDecision(ForApproval, text); o != want || o == Decided && d.Verb != Edit {
			t.Errorf("%q: %+v %v %s", text, d, o, why)
		}
	}
}

// HTML makes one blank of many: lines that nobody touched keep theirs.
func TestEditedArgsOfCollapsedBlanks(t *testing.T) {
	t.Parallel()
	args := json.RawMessage(`{"content":"if a:\n    b()\n\n    c()\nd()"}`)
	sent, _ := RenderBlock(args, "k3v9x2")
	var lines []string
	for l := range strings.Lines(sent) {
		lines = append(lines, strings.Join(strings.Fields(l), " "))
	}
	reply := quoteOf(strings.Replace(strings.Join(lines, "\n"), "c()", "cc()", 1))
	got, err := EditedArgs(args, sent, "k3v9x2", "edit\n\n"+reply)
	if want := `{"content":"if a:\n    b()\n\ncc()\nd()"}`; err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	kept := quoteOf(strings.Replace(sent, "    c()", " cc()", 1))
	if got, err := EditedArgs(args, sent, "k3v9x2", "edit\n\n"+kept); err != nil || string(got) != `{"content":"if a:\n    b()\n\n cc()\nd()"}` {
		t.Errorf("a blank taken out by hand: %s %v", got, err)
	}
}

// What is left of a line that was cut is not taken for an argument.
func TestCutBlockShowsNoOtherArgument(t *testing.T) {
	t.Parallel()
	hidden := strings.Repeat("\x01", 600)
	for n := range 40 {
		text := hidden + "\n" + strings.Repeat("path: /local/notes/b.txt\n", 20+n) + strings.Repeat("\x02", 900)
		quoted, _ := json.Marshal(text)
		block, attach := RenderBlock(json.RawMessage(`{"content":`+string(quoted)+`,"path":"/local/notes/a.txt"}`), "k3v9x2")
		if !attach {
			t.Fatal("the block is whole")
		}
		for l := range strings.Lines(block) {
			if key, _, ok := cutKey(strings.TrimLeft(l, " ")); ok && key != "content" && strings.TrimSpace(l) != "path: /local/notes/a.txt" {
				t.Errorf("%d: %q", n, l)
			}
		}
	}
}
