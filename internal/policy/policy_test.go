package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func call(t *testing.T, tool, args string) Call {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	c := Call{Tool: tool, Skills: []string{"lead", "orders"}}
	if err := dec.Decode(&c.Args); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestApplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args, pattern, value string
		ask, allow                 bool
	}{
		{"exact", `{"path":"/a/b"}`, "path", "/a/b", true, true},
		{"below", `{"path":"/a/b/c"}`, "path", "/a/*", true, true},
		{"other", `{"path":"/b"}`, "path", "/a/*", false, false},
		{"anchored", `{"path":"/x/a/b"}`, "path", "/a/*", false, false},
		{"one character", `{"path":"/a1"}`, "path", "/a?", true, true},
		{"escaped star", `{"q":"a*b"}`, "q", `a\*b`, true, true},
		{"escaped star is no star", `{"q":"axb"}`, "q", `a\*b`, false, false},
		{"letter case", `{"to":"Bob@Evil.example"}`, "to", "*@evil.example", true, false},
		{"missing", `{}`, "path", "*", false, false},
		{"one of a list", `{"to":["a@x","b@y"]}`, "to", "*@x", true, false},
		{"all of a list", `{"to":["a@x","b@x"]}`, "to", "*@x", true, true},
		{"empty list", `{"to":[]}`, "to", "*", false, false},
		{"inside", `{"pay":{"amount":150}}`, "pay.amount", ">100", true, true},
		{"inside a list", `{"items":[{"n":1},{"n":200}]}`, "items.n", ">100", true, false},
		{"a name with a dot", `{"a.b":"x"}`, "a.b", "x", true, true},
		{"over", `{"amount":100.5}`, "amount", ">100", true, true},
		{"at most", `{"amount":100}`, "amount", "<=100", true, true},
		{"not over", `{"amount":100}`, "amount", ">100", false, false},
		{"a number as text", `{"amount":"150"}`, "amount", ">100", true, true},
		{"no number", `{"amount":"150 EUR"}`, "amount", ">100", true, false},
		{"huge", `{"amount":1e999}`, "amount", ">100", true, false},
		{"any argument", `{"from":"/a","to":"/secret/x"}`, "*", "/secret/*", true, false},
		{"true", `{"force":true}`, "force", "true", true, true},
		{"null", `{"force":null}`, "force", "null", true, true},
	} {
		c := call(t, "move_file", tt.args)
		for rule, want := range map[string]bool{Ask: tt.ask, Deny: tt.ask, Allow: tt.allow} {
			r := Row{Tool: "*_file", Rule: rule, Args: map[string]string{tt.pattern: tt.value}}
			if p := r.Check(); len(p) > 0 {
				t.Errorf("%s: %v", tt.name, p)
			}
			if got := r.Applies(c); got != want {
				t.Errorf("%s: %s applies %v, want %v", tt.name, rule, got, want)
			}
		}
	}
}

func TestAppliesByName(t *testing.T) {
	t.Parallel()
	c := call(t, "move_file", `{"path":"//a/./b"}`)
	c.Exact = map[string]string{"path": "/a/b"}
	for _, tt := range []struct {
		row  Row
		want bool
	}{
		{Row{Tool: "move_file"}, true}, {Row{Tool: "*"}, true}, {Row{Tool: "move"}, false}, {Row{Tool: "MOVE_FILE"}, false},
		{Row{Tool: "*", Skill: "orders"}, true}, {Row{Tool: "*", Skill: "ord*"}, true}, {Row{Tool: "*", Skill: "mail"}, false}, {Row{Tool: "*", Skill: "lead"}, true},
		{Row{Tool: "*", Args: map[string]string{"path": "/a/*"}}, true},
		{Row{Tool: "*", Args: map[string]string{"path": "//a*"}}, false},
	} {
		tt.row.Rule = Deny
		if got := tt.row.Applies(c); got != tt.want {
			t.Errorf("%v applies %v, want %v", tt.row, got, tt.want)
		}
	}
}

// A skill is allowed nothing by what the one is allowed that gave it the work.
func TestAllowIsOfTheSkillAtWork(t *testing.T) {
	t.Parallel()
	c := call(t, "x", `{}`)
	for skill, want := range map[string]bool{"lead": false, "orders": true} {
		if got := (Row{Tool: "x", Skill: skill, Rule: Allow}).Applies(c); got != want {
			t.Errorf("%s: %v", skill, got)
		}
	}
}

func TestStrictest(t *testing.T) {
	t.Parallel()
	c := call(t, "write_file", `{"path":"/a"}`)
	row := func(rule string) Row { return Row{Tool: "write_file", Rule: rule} }
	other := Row{Tool: "x", Rule: Deny}
	for _, tt := range []struct {
		rows   []Row
		want   int
		broken bool
	}{
		{nil, -1, false}, {[]Row{other}, -1, false},
		{[]Row{row(Allow)}, 0, false}, {[]Row{row(Allow), row(Ask)}, 1, false}, {[]Row{row(Deny), row(Ask)}, 0, false},
		{[]Row{row(Ask), row(Ask)}, 0, false}, {[]Row{other, row(Allow), row(Deny), row(Ask)}, 2, false},
		{[]Row{row(Allow), row("perhaps")}, 1, true}, {[]Row{{Tool: "x", Rule: "perhaps"}}, -1, false},
		{[]Row{{Rule: Allow}}, 0, true}, // nobody knows which tool is meant: all
		{[]Row{row(Allow), {Tool: "write_*", Rule: Deny, Args: map[string]string{"path": ">much"}}}, 1, true},
	} {
		got, err := Strictest(tt.rows, c)
		if got != tt.want || errors.Is(err, ErrBroken) != tt.broken {
			t.Errorf("%v: %d, %v; want %d, broken %v", tt.rows, got, err, tt.want, tt.broken)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	r := Row{Tool: "write file", Skill: "a b", Rule: "maybe", Args: map[string]string{"a b": "x", "path": `x\`, "n": "> some", "q": strings.Repeat("x", maxPattern+1)}}
	var keys []string
	for _, p := range r.Check() {
		keys = append(keys, p.Key)
	}
	if got, want := strings.Join(keys, " "), "args.a b args.n args.path args.q rule skill tool"; got != want {
		t.Errorf("problems at %q, want %q", got, want)
	}
	if got := (Row{Tool: "pay", Rule: Deny, Skill: "s", Args: map[string]string{"to": "x*", "amount": ">100"}}).String(); got != "deny pay of skill s amount>100 to=x*" {
		t.Errorf("shown as %q", got)
	}
}

// A pattern of stars takes no exponential time.
func TestMatchIsQuick(t *testing.T) {
	t.Parallel()
	if match(strings.Repeat("*a", 400), strings.Repeat("a", 399)+"b") {
		t.Error("it matches")
	}
}
