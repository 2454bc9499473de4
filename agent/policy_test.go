package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pizza/internal/policy"
	"pizza/internal/tools"
	"pizza/mailbox"
)

// ruleOf is what policy decided about the first call of a run, and by which row.
func ruleOf(o *office, run string) (rule, by string) {
	o.t.Helper()
	for _, e := range o.journal(run) {
		if e.Policy != nil {
			return e.Policy.Rule, e.Policy.By
		}
	}
	return "", ""
}

// What rows make of the tools' own rules: pay (asks, pays), note (asks, changes),
// list_folder-like reads are allowed by base.
func TestPoliciesTable(t *testing.T) {
	t.Parallel()
	row := func(tool, rule string) policy.Row { return policy.Row{Tool: tool, Rule: rule} }
	inArgs := row("note", policy.Deny)
	inArgs.Args = map[string]string{"text": "*secret*"}
	skilled := row("note", policy.Deny)
	skilled.Skill = "orders"
	for _, tt := range []struct {
		name   string
		base   tools.Rule
		effect tools.Effect
		skill  string
		rows   []policy.Row
		want   tools.Rule
		by     string
	}{
		{"no row", tools.Ask, tools.Changes, "", nil, tools.Ask, ""},
		{"allow lifts what may stand", tools.Ask, tools.Changes, "", []policy.Row{row("note", policy.Allow)}, tools.Allow, "policies[0]"},
		{"allow lifts no payment", tools.Ask, tools.Pays, "", []policy.Row{row("*", policy.Allow)}, tools.Ask, ""},
		{"nor a deletion", tools.Ask, tools.Deletes, "", []policy.Row{row("*", policy.Allow)}, tools.Ask, ""},
		{"nor what is sent", tools.Ask, tools.Sends, "", []policy.Row{row("*", policy.Allow)}, tools.Ask, ""},
		{"nor what declares nothing", tools.Ask, tools.Undeclared, "", []policy.Row{row("*", policy.Allow)}, tools.Ask, ""},
		{"allow lifts no deny", tools.Deny, tools.Changes, "", []policy.Row{row("*", policy.Allow)}, tools.Deny, ""},
		{"nor what is invalid", tools.Invalid, tools.Changes, "", []policy.Row{row("*", policy.Allow)}, tools.Invalid, ""},
		{"ask makes allow stricter", tools.Allow, tools.Reads, "", []policy.Row{row("note", policy.Ask)}, tools.Ask, "policies[0]"},
		{"deny too", tools.Allow, tools.Reads, "", []policy.Row{row("n*", policy.Deny)}, tools.Deny, "policies[0]"},
		{"the strictest counts", tools.Ask, tools.Changes, "", []policy.Row{row("note", policy.Allow), row("note", policy.Deny), row("*", policy.Ask)}, tools.Deny, "policies[1]"},
		{"ask goes before allow", tools.Ask, tools.Changes, "", []policy.Row{row("note", policy.Allow), row("*", policy.Ask)}, tools.Ask, "policies[1]"},
		{"of other tools", tools.Ask, tools.Changes, "", []policy.Row{row("pay", policy.Deny)}, tools.Ask, ""},
		{"arguments", tools.Allow, tools.Changes, "", []policy.Row{inArgs}, tools.Deny, "policies[0]"},
		{"of another skill", tools.Allow, tools.Changes, "mail", []policy.Row{skilled}, tools.Allow, ""},
		{"of no skill", tools.Allow, tools.Changes, "", []policy.Row{skilled}, tools.Allow, ""},
		{"of the skill", tools.Allow, tools.Changes, "orders", []policy.Row{skilled}, tools.Deny, "policies[0]"},
		{"broken", tools.Allow, tools.Reads, "", []policy.Row{row("note", "maybe")}, tools.Deny, "policies[0]"},
		{"broken, for another tool", tools.Allow, tools.Reads, "", []policy.Row{row("pay", "maybe")}, tools.Allow, ""},
		{"broken, nobody knows for which", tools.Allow, tools.Reads, "", []policy.Row{row("", policy.Deny)}, tools.Deny, "policies[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			l := newTill()
			l.change = func(p *tools.Plan) { p.Rule, p.Effect = tt.base, tt.effect }
			d.a.opt.Tools = l
			rows(tt.rows...)(&d.a.opt)
			c := Call{}
			c.ID, c.Name, c.Args = "c1", "note", []byte(`{"text":"a SECRET"}`)
			run := Run{ID: "t.1", Task: "t"}
			if tt.skill != "" {
				run.Path = []string{tt.skill}
			}
			got, err := d.a.weigh(t.Context(), d.me.Account, run, l.Plan(tools.Call{Name: c.Name, Args: c.Args}), c)
			if err != nil || got.Rule != tt.want || got.By != tt.by {
				t.Errorf("%s by %q, %v; want %s by %q", got.Rule, got.By, err, tt.want, tt.by)
			}
		})
	}
}

func TestAlwaysAllowsInTheThreadOnly(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	r := o.send("call note {\"text\":\"one\"}\ncall note {\"text\":\"two\"}", "Message-ID: <first@x>", "Subject: Notes")
	d := o.waiting(1)[0]
	if got := d.Verbs(); !slices.Contains(got, "always") || !strings.Contains(d.Text, "word always") {
		t.Errorf("always is not offered: %v\n%s", got, d.Text)
	}
	if r := o.reply(d, "always"); r.Note != "approved" {
		t.Errorf("receipt %+v", r)
	}
	o.ended(1)
	l.expect(t, `note {"text":"one"}`, `note {"text":"two"}`)
	list, err := o.a.Policies(t.Context(), o.me.Account)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	p := list[0]
	if p.Tool != "note" || p.Rule != policy.Allow || p.Task != r.Task || p.Subject != "Notes" || p.By.Login != "me" || p.Decision != d.ID || p.Broken != "" || p.Unmatched {
		t.Errorf("%+v", p)
	}
	// The next run of the thread is not asked, another task is.
	o.send(`call note {"text":"three"}`, "In-Reply-To: <first@x>")
	o.ended(2)
	if rule, by := ruleOf(o, r.Task+".2"); rule != "allow" || by != p.ID {
		t.Errorf("policy decided %s by %q", rule, by)
	}
	o.send(`call note {"text":"four"}`)
	other := o.waiting(1)[0]
	o.reply(other, "reject")
	o.ended(3)
	// Revoked, it is asked again.
	if err := o.a.RevokePolicy(t.Context(), o.me.Account, strings.ToUpper(p.ID)); err != nil {
		t.Fatal(err)
	}
	o.send(`call note {"text":"five"}`, "In-Reply-To: <first@x>")
	o.reply(o.waiting(1)[0], "reject")
	o.ended(4)
	l.expect(t, `note {"text":"one"}`, `note {"text":"two"}`, `note {"text":"three"}`)
	for _, id := range []string{p.ID, "nothing", ""} {
		if err := o.a.RevokePolicy(t.Context(), o.me.Account, id); !isKind(err, mailbox.NotFound) {
			t.Errorf("revoke %q: %v", id, err)
		}
	}
	if err := o.a.RevokePolicy(t.Context(), o.me.Account, "policies[0]"); !isKind(err, mailbox.Refused) || !strings.Contains(textOfError(err), "settings.json") {
		t.Errorf("revoke one of the settings: %v", err)
	}
	o.settledDown()
}

func TestAlwaysIsRefused(t *testing.T) {
	t.Parallel()
	for effect, why := range map[tools.Effect]string{
		tools.Pays: "commits money", tools.Deletes: "deletes", tools.Sends: "reaches other people", tools.Undeclared: "does not declare",
	} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			o, l := bank(t, nil)
			l.change = func(p *tools.Plan) { p.Effect = effect }
			o.send(`call pay {"to":"ann","amount":1}`)
			d := o.waiting(1)[0]
			if slices.Contains(d.Verbs(), "always") || strings.Contains(d.Text, "always") {
				t.Errorf("always is offered: %v", d.Verbs())
			}
			if r := o.reply(d, "always"); !strings.HasPrefix(r.Note, "not decided") {
				t.Errorf("receipt %+v", r)
			}
			if told := o.told("Not decided"); len(told) != 1 || !strings.Contains(unfolded(told[0].raw), why) {
				t.Errorf("told %v", subjects(told))
			}
			o.state(d, Open)
			o.reply(d, "reject")
			o.ended(1)
			if list, err := o.a.Policies(t.Context(), o.me.Account); err != nil || len(list) != 0 {
				t.Errorf("%+v, %v", list, err)
			}
			l.expect(t)
		})
	}
}

// A rule with a mistake takes its tool away and says so, and gives it back once corrected.
func TestBrokenPolicyDisablesItsTool(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[[]policy.Row]
	now.Store(&[]policy.Row{{Name: "policies[0]", Tool: "note", Rule: "alow"}})
	o, l := bank(t, nil, func(opt *Options) { opt.Policies = func() []policy.Row { return *now.Load() } })
	o.send("call note {\"text\":\"x\"}\nsay on")
	mails := o.ended(1)
	l.expect(t)
	if len(mails) != 1 || !strings.Contains(unfolded(mails[0].raw), "The policy policies[0] cannot be read, so this tool is off") {
		t.Errorf("%s", mails[0].raw)
	}
	now.Store(&[]policy.Row{{Name: "policies[0]", Tool: "note", Rule: "allow"}})
	o.send(`call note {"text":"x"}`)
	o.ended(2)
	l.expect(t, `note {"text":"x"}`)
	o.settledDown()
}

// A record that does not decode disables as well: nobody knows what it said.
func TestBrokenPolicyRecord(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	r := o.send("say hello", "Message-ID: <first@x>")
	o.ended(1)
	for id, value := range map[string]string{"aaaaaaaaaaaaaaa": `{"tool":"note","rule":7}`} {
		o.commit(mailbox.PutRecord{Key: policyKey(id), Value: []byte(value), Index: []string{indexPolicies, indexPolicyOf + r.Task}})
	}
	o.send("call note {\"text\":\"x\"}\ncall pay {\"to\":\"ann\",\"amount\":1}", "In-Reply-To: <first@x>")
	o.reply(o.waiting(1)[0], "approve") // pay is another tool
	mails := o.ended(2)
	l.expect(t, `pay {"amount":1,"to":"ann"}`)
	if !strings.Contains(unfolded(mails[len(mails)-1].raw), "aaaaaaaaaaaaaaa cannot be read") {
		t.Errorf("%s", mails[len(mails)-1].raw)
	}
	list, err := o.a.Policies(t.Context(), o.me.Account)
	if err != nil || len(list) != 1 || list[0].Broken == "" || list[0].Tool != "note" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := o.a.RevokePolicy(t.Context(), o.me.Account, "aaaaaaaaaaaaaaa"); err != nil {
		t.Error(err)
	}
}

// The real file tools: a path has one spelling for policies, whatever the model writes.
func TestPoliciesOfPaths(t *testing.T) {
	t.Parallel()
	keep := policy.Row{Tool: "*_file", Rule: policy.Deny, Args: map[string]string{"*": "/local/docs/keep/*"}}
	work := policy.Row{Tool: "write_file", Rule: policy.Allow, Args: map[string]string{"path": "/local/docs/work/*"}}
	o := newOffice(t, nil, rows(keep, work))
	o.send(`call write_file {"path":"/local//docs/./keep/a.txt","content":"x"}
call move_file {"path":"/local/docs/a.txt","to":"/local/docs//keep/a.txt"}
call write_file {"path":"/local/docs//work/a.txt","content":"made"}
call delete_file {"path":"/local/docs/work/a.txt"}`)
	d := o.waiting(1)[0]
	if d.Tool != "delete_file" {
		t.Fatalf("asked about %s", d.Tool)
	}
	o.decide(d.ID, "reject", "")
	o.ended(1)
	if o.read("work/a.txt") != "made" || o.read("keep/a.txt") != "" {
		t.Error("a policy of a path was passed by")
	}
	var rules []string
	for _, e := range o.journal(d.Run) {
		if e.Policy != nil {
			rules = append(rules, e.Policy.Rule+" "+e.Policy.By)
		}
	}
	if want := []string{"deny policies[0]", "deny policies[0]", "allow policies[1]", "ask "}; !slices.Equal(rules, want) {
		t.Errorf("policy decided %q, want %q", rules, want)
	}
	o.settledDown()
}

func TestChangedNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ before, after, want string }{
		{`{"a":1}`, `{"a":1}`, ""},
		{`{"a":1,"b":2}`, `{"a":2,"c":2}`, "a b c"},
		{`{"p":{"amount":1,"note":"x"}}`, `{"p":{"amount":2,"note":"x"}}`, "p.amount"},
		{`{"to":["a","b"]}`, `{"to":["a","c"]}`, "to"},
		{`{"items":[{"price":1},{"price":2}]}`, `{"items":[{"price":1},{"price":3}]}`, "items.price"},
		{`{"items":[{"price":1}]}`, `{"items":[{"price":1},{"price":3}]}`, "items.price"},
		{`{"p":{"amount":1}}`, `{"p":7}`, "p.amount"},
		{`{}`, `{"p":{"amount":1}}`, "p.amount"},
		{`{"p":{}}`, `{"p":7}`, "p"},
	} {
		got := strings.Join(changedNames(json.RawMessage(tt.before), json.RawMessage(tt.after)), " ")
		if got != tt.want {
			t.Errorf("%s -> %s: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
	if got := weightyChanges([]byte(`{"kind":"a","p":{"amount":1}}`), []byte(`{"kind":"b","p":{"amount":2}}`), []string{"kind"}); strings.Join(got, " ") != "kind p.amount" {
		t.Errorf("weighty: %v", got)
	}
}
