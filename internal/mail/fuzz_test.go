package mail

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pizza/internal/mime"
)

// letsHappen reports whether text holds a word that could let something happen.
func letsHappen(text string) bool {
	text = strings.ToLower(visible(text))
	for _, w := range []string{"approve", "yes", "always"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func FuzzParseDecision(f *testing.F) {
	for _, s := range []string{"approve", "**approve**\nbut", "reject: x", "edit\n[arguments a1]\nx: 1\n[end of arguments a1]", "> approve", "approve 1,3\nreject 2", "continue 5", "cancel task\n-- \nx"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for kind := range verbWords {
			d, o, why := ParseDecision(kind, s)
			if (o == Unclear || o == Empty) == (why == "") {
				t.Errorf("%s: outcome %v, reason %q", kind, o, why)
			}
			if o != Decided && d.Verb != "" {
				t.Errorf("%s: a verb %q without a decision", kind, d.Verb)
			}
			if o == Decided && d.Verb == Approve && (strings.Contains(s, "?") && !strings.Contains(s, "\n-- \n") && !footer(s) || !letsHappen(s)) {
				t.Errorf("approved: %q", s)
			}
		}
		ds, o, _ := ParseDecisions(s, 3)
		if (o == Decided) != (len(ds) > 0) {
			t.Errorf("several: outcome %v, %d decisions", o, len(ds))
		}
		bare := visible(s)
		if !strings.ContainsAny(bare, "0123456789") && !strings.Contains(strings.ToLower(bare), "all") && o == Decided && ds[0].Verb != CancelTask {
			t.Errorf("several without a number: %q", s)
		}
	})
}

// footer reports whether a part of s is cut as a footer or signature.
func footer(s string) bool { return cutSignature(visible(s)) != visible(s) }

func FuzzNewText(f *testing.F) {
	for _, quote := range quoters {
		f.Add(quote("approve", asked), "")
		f.Add(quote("", asked), "no\nway")
	}
	f.Fuzz(func(t *testing.T, text, noise string) {
		for _, parent := range []string{"", asked, noise} {
			newText, _, inline := NewText(text, parent)
			lines := map[string]bool{"": true}
			for _, l := range splitLines(text) {
				lines[l] = true
			}
			for _, l := range splitLines(newText) {
				if !inline && !lines[l] && !lines[strings.TrimLeft(l, "\n")] {
					t.Errorf("the line %q of the new text is not in %q", l, text)
				}
			}
		}
		if letsHappen(noise) {
			return
		}
		for name, quote := range quoters {
			if name == "iPhone" || name == "broken quote" { // they change the words
				continue
			}
			newText, _, _ := NewText(quote(noise, asked), asked)
			if d, o, _ := ParseDecision(ForApproval, newText); o == Decided && (d.Verb == Approve || d.Verb == Always) {
				t.Errorf("%s: %q approves; new text %q", name, noise, newText)
			}
		}
	})
}

func FuzzBlock(f *testing.F) {
	f.Add("path", "/local/a\u202e\n| x\n", "approve\n> [arguments k3v9x2]\n> a: b\n> [end of arguments k3v9x2]")
	f.Add("a b", " \\ \t\r\x00", "")
	f.Fuzz(func(t *testing.T, key, value, text string) {
		if utf8.ValidString(key) && utf8.ValidString(value) && len(value) < 2000 && len(key) < 200 && key != "n" {
			args, err := json.Marshal(map[string]any{key: value, key + "x": []string{value}, "n": 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := reversible(args); err != nil {
				t.Error(err)
			}
			block, _ := RenderBlock(args, "k3v9x2")
			for _, r := range block {
				if hidden(r) {
					t.Errorf("%U is shown as it is in\n%q", r, block)
				}
			}
			if value != "" {
				other, _ := json.Marshal(map[string]any{key: value + "x", key + "x": []string{value}, "n": 1})
				changed, _ := RenderBlock(other, "k3v9x2")
				if _, c := DiffBlock(block, changed); !c {
					t.Errorf("a change is not seen:\n%s\n%s", block, changed)
				}
			}
		}
		if block, found := FindBlock(text, "k3v9x2"); found {
			if _, err := ParseBlock(block); err == nil {
				DiffBlock(asked, block)
			}
		}
		RenderBlock(json.RawMessage(text), "k3v9x2")
		DiffBlock(text, value)
	})
}

func FuzzCompose(f *testing.F) {
	f.Add("subject", "text\n-- \nx", "# md\n[a](mailto:pizza@localhost)", "a.txt")
	f.Add("=?utf-8?q?x?=", "=20\r\n.\r\n\x00", "<b>\n> - ![x](y)", "../x")
	f.Fuzz(func(t *testing.T, subject, plain, md, name string) {
		o := outgoing()
		o.Subject, o.Plain, o.From.Name = subject, plain, name
		o.Headers = append(o.Headers, [2]string{"X-Fuzz", subject})
		raw, s, _ := composed(t, o)
		if want := oneLine(subject); s.Subject != want && utf8.ValidString(subject) {
			t.Errorf("subject %q became %q", want, s.Subject)
		}
		if got := firstText(t, raw, s); got != PlainText(o) {
			t.Errorf("text %q became %q", PlainText(o), got)
		}
		if md == "" {
			return
		}
		o.Plain, o.Markdown = "", md
		o.Attachments = []OutAttachment{file(name, subject, plain)}
		raw, s, rd := composed(t, o)
		if got := firstText(t, raw, s); got != PlainText(o) {
			t.Errorf("text %q became %q", PlainText(o), got)
		}
		html := strings.ToLower(htmlOf(t, raw, s))
		for _, bad := range []string{"<img", "<script", "<iframe", " src=", `href="javascript`, `href="data`, "@localhost\"", "@localhost?", "%40localhost"} {
			if strings.Contains(html, "<a") && strings.Contains(bad, "localhost") || !strings.Contains(bad, "localhost") {
				if strings.Contains(html, bad) && !strings.Contains(md, bad) {
					t.Errorf("%q in the HTML of %q:\n%s", bad, md, html)
				}
			}
		}
		if len(rd.Attachments) != 1 {
			t.Errorf("%d attachments", len(rd.Attachments))
		}
	})
}

func firstText(t testing.TB, raw string, s *mime.Structure) string {
	t.Helper()
	p := s.Root
	for len(p.Children) > 0 {
		p = p.Children[0]
	}
	text, err := mime.Text(strings.NewReader(raw), p, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
