package wire

import (
	"strings"
	"testing"

	"pizza/providers"
	"pizza/providers/providertest"
)

// conversation reads "u:text", "a:text", "c:id id" (calls), "t:id id" (results), "r:" (reasoning only).
func conversation(lines ...string) []providers.Message {
	var ms []providers.Message
	for _, l := range lines {
		kind, rest, _ := strings.Cut(l, ":")
		var m providers.Message
		switch kind {
		case "u":
			m = text(providers.User, rest)
		case "a":
			m = text(providers.Assistant, rest)
		case "r":
			m = providers.Message{Role: providers.Assistant, Parts: []providers.Part{{Kind: providers.Reasoning, Text: "hm"}}}
		case "c":
			m.Role = providers.Assistant
			for _, id := range strings.Fields(rest) {
				m.Parts = append(m.Parts, providers.Part{Kind: providers.Call, Call: &providers.ToolCall{ID: id, Name: "n", Args: []byte("{}")}})
			}
		case "t":
			m.Role = providers.Tool
			for _, id := range strings.Fields(rest) {
				m.Parts = append(m.Parts, providers.Part{Kind: providers.ResultPart, Result: &providers.ToolResult{ID: id, Content: "of " + id}})
			}
		}
		ms = append(ms, m)
	}
	return ms
}

func show(ms []providers.Message) string {
	var out []string
	for _, m := range ms {
		s := string(m.Role)
		for _, p := range m.Parts {
			switch p.Kind {
			case providers.Call:
				s += " " + p.Call.ID
			case providers.ResultPart:
				s += " " + p.Result.ID + "=" + p.Result.Content
			default:
				s += " " + p.Text
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		in   []string
		want string
	}{
		{"whole", []string{"u:a", "c:1 2", "t:1 2", "u:b"}, "user a; assistant 1 2; tool 1=of 1 2=of 2; user b"},
		{"order of results", []string{"u:a", "c:1 2", "t:2 1"}, "user a; assistant 1 2; tool 1=of 1 2=of 2"},
		{"results in two messages", []string{"u:a", "c:1 2", "t:2", "t:1"}, "user a; assistant 1 2; tool 1=of 1 2=of 2"},
		{"mail between call and result", []string{"u:a", "c:1", "u:b", "t:1"}, "user a; assistant 1; tool 1=of 1; user b"},
		{"orphaned call", []string{"u:a", "c:1 2", "t:1", "u:b"}, "user a; assistant 1 2; tool 1=of 1 2=" + NoResult + "; user b"},
		{"call at the end", []string{"u:a", "c:1"}, "user a; assistant 1; tool 1=" + NoResult},
		{"result without call", []string{"u:a", "t:9", "a:b", "t:8", "u:c"}, "user a; assistant b; user c"},
		{"result twice", []string{"u:a", "c:1", "t:1 1"}, "user a; assistant 1; tool 1=of 1"},
		{"neighbours", []string{"u:a", "u:b", "a:c", "a:d", "u:e"}, "user a b; assistant c d; user e"},
		{"blank", []string{"u: \n", "a:\t", "u:b"}, "user (no text) b"},
		{"only reasoning", []string{"u:a", "r:", "u:b"}, "user a b"},
		{"assistant first", []string{"a:x", "u:b"}, "user (Earlier messages were left out.); assistant x; user b"},
		{"assistant last", []string{"u:a", "a:x"}, "user a; assistant x; user (Go on.)"},
		{"nothing", nil, "user (Go on.)"},
		{"control characters", []string{"u:a\x00b\x1b\tc\xff"}, "user ab\tc\uFFFD"},
	} {
		in := conversation(tt.in...)
		before := show(in)
		out := Repair(in)
		if got := show(out); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.name, got, tt.want)
		}
		if err := providertest.Validate(providers.Request{Messages: out}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if after := show(in); after != before {
			t.Errorf("%s: the input changed to %s", tt.name, after)
		}
	}
}

func FuzzRepair(f *testing.F) {
	f.Add("u:a;c:1 2;t:2;u:b;a:x")
	f.Fuzz(func(t *testing.T, script string) {
		var lines []string
		for i, l := range strings.Split(script, ";") {
			if strings.HasPrefix(l, "c:") { // ids are unique in a thread
				l = "c:" + strings.Repeat("i", i+1)
			}
			if len(l) > 2 && strings.Contains("uactr", l[:1]) && l[1] == ':' {
				lines = append(lines, l)
			}
		}
		if err := providertest.Validate(providers.Request{Messages: Repair(conversation(lines...))}); err != nil {
			t.Errorf("%q: %v", lines, err)
		}
	})
}

func TestNamesAndIDs(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "functions.x:0", strings.Repeat("a", 65), "call\n1", "ü", "toolu_1 "} {
		id := ID(in)
		if !legalID.MatchString(id) || id != ID(in) {
			t.Errorf("id %q gives %q", in, id)
		}
		if n := Name(in); !legalName.MatchString(n) {
			t.Errorf("name %q gives %q", in, n)
		}
	}
	if ID("call_1-A") != "call_1-A" || Name("read_file") != "read_file" {
		t.Error("legal ones are changed")
	}
	if ID("a.b") == ID("a:b") || Name("a.b") == Name("a:b") {
		t.Error("two become one")
	}
}
