package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pizza/internal/policy"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// The failure classes about decisions, acted as a person acts: mails to an office, whose
// tools write down what they did.

// till is a set of tools with a ledger: pay and note, which are asked about.
type till struct {
	mu     sync.Mutex
	ledger []string // "pay {...}", in order
	schema string   // of pay
	change func(*tools.Plan)
}

const paySchema = `{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"integer","minimum":1},"text":{"type":"string"}},"required":["to","amount"],"additionalProperties":false}`

func newTill() *till { return &till{schema: paySchema} }

func (l *till) Specs() []tools.Spec {
	l.mu.Lock()
	defer l.mu.Unlock()
	note := `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
	return []tools.Spec{{Name: "pay", Schema: json.RawMessage(l.schema)}, {Name: "note", Schema: json.RawMessage(note)}}
}

func (l *till) Plan(c tools.Call) tools.Plan {
	p := tools.Plan{Class: tools.OnceOnly, Rule: tools.Ask, Effect: tools.Pays, Sentence: "Call " + c.Name + " with " + string(c.Args)}
	if c.Name == "note" {
		p.Effect = tools.Changes
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.change != nil {
		l.change(&p)
	}
	return p
}

func (l *till) Run(_ context.Context, _ tools.Workspace, c tools.Call) tools.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger = append(l.ledger, c.Name+" "+string(c.Args))
	return tools.Outcome{Content: "did " + string(c.Args)}
}

func (l *till) set(f func(*till)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

// did is what was done, sorted.
func (l *till) did() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.ledger))
}

func (l *till) expect(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := l.did(); !slices.Equal(got, want) {
		t.Errorf("done: %q\nwant: %q", got, want)
	}
}

// bank is an office with a till.
func bank(t *testing.T, model providers.Model, change ...func(*Options)) (*office, *till) {
	t.Helper()
	l := newTill()
	o := newOffice(t, model, append([]func(*Options){func(opt *Options) { opt.Tools = l }}, change...)...)
	return o, l
}

// rows are policies of the settings.
func rows(list ...policy.Row) func(*Options) {
	for i := range list {
		list[i].Name = fmt.Sprintf("policies[%d]", i)
	}
	return func(opt *Options) { opt.Policies = func() []policy.Row { return list } }
}

// reply answers a decision by mail, with the quoted mail below.
func (o *office) reply(d Decision, text string) mailbox.Receipt {
	o.t.Helper()
	return o.mustGive(o.me, o.message(o.me, text+"\n\n"+quoted(d.Text), "In-Reply-To: <"+d.MailID+">"), token(d))
}

// changed answers edit with a change in the quoted block.
func (o *office) changed(d Decision, from, to string) mailbox.Receipt {
	o.t.Helper()
	at := strings.Index(d.Text, "[arguments ")
	if at < 0 || !strings.Contains(d.Text[at:], from) {
		o.t.Fatalf("%q is not in the block of\n%s", from, d.Text)
	}
	text := d.Text[:at] + strings.Replace(d.Text[at:], from, to, 1)
	return o.mustGive(o.me, o.message(o.me, "edit\n\n"+quoted(text), "In-Reply-To: <"+d.MailID+">"), token(d))
}

// byArgs finds the open decision whose arguments hold a text.
func byArgs(t *testing.T, list []Decision, part string) Decision {
	t.Helper()
	for _, d := range list {
		if strings.Contains(string(d.Args), part) {
			return d
		}
	}
	t.Fatalf("no decision about %q", part)
	return Decision{}
}

// told are the mails of ours in INBOX whose subject begins so.
func (o *office) told(prefix string) []shown {
	o.t.Helper()
	return slices.DeleteFunc(o.list(o.me.Account, mailbox.Inbox), func(s shown) bool { return !strings.HasPrefix(s.subject, prefix) })
}

const threePays = `call pay {"to":"ann","amount":1}
and call pay {"to":"bob","amount":2}
and call pay {"to":"eve","amount":3}`

func TestClass04AnswersHitTheirOwnCall(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	o.send(threePays)
	open := o.waiting(3)
	ann, bob, eve := byArgs(t, open, "ann"), byArgs(t, open, "bob"), byArgs(t, open, "eve")
	// The mail of another one quoted below: nobody knows which was meant.
	o.mustGive(o.me, o.message(o.me, "approve\n\n"+quoted(ann.Text), "References: <"+eve.MailID+">"), token(eve))
	o.state(ann, Open)
	o.state(eve, Open)
	o.reply(eve, "approve") // the last first
	// An address that names none, and one of a made-up decision: nothing happens.
	if _, err := o.give(o.me, o.message(o.me, "approve"), "pizza+a.000000000000000@localhost"); err == nil {
		o.mustGive(o.me, o.message(o.me, "approve", "In-Reply-To: <nobody@else>"), "pizza+a.000000000000000@localhost")
	}
	// It answers the mail of one and goes to the address of another: neither.
	o.mustGive(o.me, o.message(o.me, "approve", "In-Reply-To: <"+ann.MailID+">"), token(bob))
	o.state(ann, Open)
	o.state(bob, Open)
	o.reply(bob, "reject: not him")
	o.reply(ann, "approve")
	o.until("the end", func() bool {
		return slices.ContainsFunc(o.runs(o.me.Account), func(r Run) bool { return r.ID == ann.Run && r.State.Ended() })
	})
	l.expect(t, `pay {"amount":1,"to":"ann"}`, `pay {"amount":3,"to":"eve"}`)
}

// Every combination of three answers to three calls of one reply.
func TestClass05SiblingsSettleAlone(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	verbs := []string{"approve", "reject", "edit"}
	var tasks [][3]string
	for i := range 27 {
		combo := [3]string{verbs[i%3], verbs[i/3%3], verbs[i/9]}
		tasks = append(tasks, combo)
		var lines []string
		for k := range 3 {
			lines = append(lines, fmt.Sprintf(`call pay {"to":"p%d_%d","amount":1,"text":"old"}`, i, k))
		}
		o.send(strings.Join(lines, "\nand "))
	}
	open := o.waiting(81)
	var all []string
	for i, combo := range tasks {
		for k, verb := range combo {
			to := fmt.Sprintf("p%d_%d", i, k)
			d := byArgs(t, open, `"`+to+`"`)
			switch verb {
			case "edit":
				args := json.RawMessage(`{"to":"` + to + `","amount":1,"text":"new"}`)
				if _, err := o.a.Edit(t.Context(), o.me.Account, d.ID, args, by("me")); err != nil {
					t.Fatal(err)
				}
				all = append(all, `pay {"amount":1,"text":"new","to":"`+to+`"}`)
			case "approve":
				o.decide(d.ID, verb, "")
				all = append(all, `pay {"amount":1,"text":"old","to":"`+to+`"}`)
			default:
				o.decide(d.ID, verb, "not "+to)
			}
		}
	}
	mails := o.ended(27)
	l.expect(t, all...)
	for i, combo := range tasks {
		state := fold(t, o.journal(byArgs(t, open, fmt.Sprintf(`"p%d_0"`, i)).Run))
		if state.ModelCalls != 2 {
			t.Errorf("%v: the model was called %d times, want once before and once after all three", combo, state.ModelCalls)
		}
		for k, c := range state.Turns[1].Calls {
			status := map[string]string{"approve": endOK, "edit": endOK, "reject": endDenied}[combo[k]]
			if c.End.Status != status || combo[k] == "reject" && !strings.Contains(c.End.Content, fmt.Sprintf("not p%d_%d", i, k)) {
				t.Errorf("%v: call %d ended %s: %s", combo, k, c.End.Status, c.End.Content)
			}
		}
	}
	if len(mails) != 27 {
		t.Errorf("%d mails", len(mails))
	}
	o.settledDown()
}

func TestClass06MalformedAnswersBrickNothing(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	o.send(`call pay {"to":"ann","amount":1}`)
	d := o.waiting(1)[0]
	for i, text := range []string{
		"", "ok, do it", "approve 1", "approve 1,2", "approve all", "approve\nreject", "aprove", "[]", `{"decisions":[]}`,
		"edit", "edit\nto: bob", "edit\n[arguments " + d.Nonce + "]\nto bob\n[end of arguments " + d.Nonce + "]",
		"edit\n[arguments " + d.Nonce + "]\namount: many\nto: ann\n[end of arguments " + d.Nonce + "]", "always", "answer:", "approve?",
	} {
		if i%3 == 2 { // help mails are capped
			o.clock.add(time.Hour)
		}
		o.mustGive(o.me, o.message(o.me, text), token(d))
		o.state(d, Open)
	}
	for _, verb := range []string{"", "happened", "approve all", "edit", "expire", "always", "answer"} {
		if _, err := o.a.Decide(t.Context(), o.me.Account, d.ID, verb, "", by("me")); err == nil {
			t.Errorf("%q decided", verb)
		}
	}
	for _, args := range []string{"", "[]", "null", `{"to":"x"}`, `{"to":"x","amount":"1"}`, `{"to":"x","amount":1,"tool":"note"}`, `{"to":"x","to":"y","amount":1}`} {
		if _, err := o.a.Edit(t.Context(), o.me.Account, d.ID, json.RawMessage(args), by("me")); err == nil {
			t.Errorf("edit %s decided", args)
		}
	}
	o.state(d, Open)
	l.expect(t)
	o.reply(d, "approve") // the right one still works
	o.ended(1)
	l.expect(t, `pay {"amount":1,"to":"ann"}`)
	o.settledDown()
}

func TestClass07EditedArguments(t *testing.T) {
	t.Parallel()
	deny := rows(policy.Row{Tool: "pay", Rule: policy.Deny, Args: map[string]string{"amount": ">100"}})
	o, l := bank(t, nil, deny)
	r := o.send(`call pay {"to":"ann","amount":7,"text":"for <a>  & the tea"}`)
	d := o.waiting(1)[0]
	for _, wrong := range []struct{ from, to, why string }{
		{"amount: 7", "amount: 0", "at least 1"},                 // the schema
		{"amount: 7", "amount: 101", "policies[0]"},              // policy
		{"to: ann", "tool: note\nto: ann", "must not have tool"}, // another tool
	} {
		o.changed(d, wrong.from, wrong.to)
		o.state(d, Open)
		told := o.told("Not decided: ")
		if n := len(told); n == 0 || !strings.Contains(unfolded(told[n-1].raw), wrong.why) {
			t.Errorf("%s: told %v", wrong.to, subjects(told))
		}
	}
	o.clock.add(time.Hour)
	// A text: what is not touched keeps its bytes, nothing is asked again.
	if got := o.changed(d, "tea", "coffee"); got.Note != "edited" {
		t.Errorf("receipt %+v", got)
	}
	o.ended(1)
	l.expect(t, `pay {"amount":7,"text":"for <a>  & the coffee","to":"ann"}`)
	got := o.state(d, Edited)
	if string(canonicalOr(got.Edited)) != `{"amount":7,"text":"for <a>  & the coffee","to":"ann"}` || !strings.Contains(string(got.Args), "tea") || got.Used != 1 {
		t.Errorf("record: %s, %s, used %d", got.Edited, got.Args, got.Used)
	}
	// Both versions are in the journal, the hash of the intent is that of the edited one.
	var asked, decided, hash string
	for _, e := range o.journal(r.Task + ".1") {
		switch {
		case e.Reply != nil && asked == "":
			asked = string(callsOf(e.Reply.Reply.Message)[0].Args)
		case e.Decided != nil:
			decided = string(e.Decided.Args)
		case e.ToolStart != nil:
			hash = e.ToolStart.Hash
		}
	}
	if !strings.Contains(asked, "tea") || !strings.Contains(decided, "coffee") || hash != hashArgs(canonicalOr(json.RawMessage(decided))) {
		t.Errorf("journal: asked %s, decided %s, hash %s", asked, decided, hash)
	}
	// The person saw the final arguments, the model was told what ran.
	if told := o.told("Approved with your changes"); len(told) != 1 || !strings.Contains(told[0].raw, "coffee") {
		t.Errorf("told %v", subjects(told))
	}
	if mails := o.ofKind(mailbox.Inbox, KindResult); len(mails) != 1 || !strings.Contains(unfolded(mails[0].raw), "The owner changed the arguments of this call") {
		t.Errorf("the result does not tell what ran: %v", mails)
	}
	o.settledDown()
}

// unfolded is a mail with its soft line breaks undone.
func unfolded(raw string) string {
	raw = strings.NewReplacer("=\r\n", "", "=20", " ", "=3D", "=").Replace(raw)
	return strings.Join(strings.Fields(raw), " ")
}

func TestClass07AChangedRecipientIsAskedOnceMore(t *testing.T) {
	t.Parallel()
	m := providertest.Script(
		providertest.Calls(providertest.Call("a", "pay", `{"to":"ann","amount":7,"text":"x"}`)),
		providertest.Say("paid").If(func(req providers.Request) error {
			res := req.Messages[len(req.Messages)-1].Parts[0].Result
			if res.Error || !strings.Contains(res.Content, `- to: "bob"`) || strings.Contains(res.Content, "- text") {
				return fmt.Errorf("told %q", res.Content)
			}
			return nil
		}))
	o, l := bank(t, m)
	o.send("pay")
	first := o.waiting(1)[0]
	o.changed(first, "to: ann", "to: bob")
	second := o.waiting(1)[0]
	if second.ID == first.ID || string(second.Args) != `{"amount":7,"text":"x","to":"bob"}` {
		t.Fatalf("asked about %s", second.Args)
	}
	o.state(first, Edited)
	l.expect(t)
	if asks := o.ofKind(Action, KindApproval); len(asks) != 1 || !strings.Contains(unfolded(asks[0].raw), "once more because you changed to.") {
		t.Errorf("Action: %v", asks)
	}
	o.reply(second, "approve")
	o.ended(1)
	l.expect(t, `pay {"amount":7,"text":"x","to":"bob"}`)
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	o.settledDown()
}

// What was changed and changed back is not told as a change.
func TestClass07ChangedBack(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	o.send(`call pay {"to":"ann","amount":7,"text":"x"}`)
	o.changed(o.waiting(1)[0], "to: ann", "to: bob")
	o.changed(o.waiting(1)[0], "to: bob", "to: ann")
	o.reply(o.waiting(1)[0], "approve")
	mails := o.ended(1)
	l.expect(t, `pay {"amount":7,"text":"x","to":"ann"}`)
	if raw := unfolded(mails[0].raw); strings.Contains(raw, "changed the arguments") {
		t.Error(raw)
	}
}

// Whoever writes edit means a change. One that was lost on the way (outside the marks, or
// only of blanks) must not have what was shown done in its place.
func TestClass07AnEditWithoutAChangeDecidesNothing(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	o.send(`call pay {"to":"ann","amount":7,"text":"<&>"}`)
	d := o.waiting(1)[0]
	for _, text := range []string{"edit", "edit\n\namount: 5", "edit\n\nTo: bob"} {
		if r := o.reply(d, text); !strings.HasPrefix(r.Note, "not decided") {
			t.Errorf("%q: receipt %+v", text, r)
		}
	}
	_, err := o.a.Edit(t.Context(), o.me.Account, d.ID, []byte(`{"to":"ann", "text":"<&>", "amount":7.0}`), by("me"))
	if !isKind(err, mailbox.Refused) || !strings.Contains(textOfError(err), "nothing is changed") {
		t.Errorf("the command: %v", err)
	}
	o.state(d, Open)
	o.reply(d, "approve")
	o.ended(1)
	l.expect(t, `pay {"amount":7,"text":"<&>","to":"ann"}`)
}

// A model that would ask for something else when called twice is called once: what runs is
// what the journal holds, across a restart.
func TestClass08RunsWhatWasApproved(t *testing.T) {
	t.Parallel()
	m := providertest.Script(
		providertest.Calls(providertest.Call("a", "pay", `{"to":"ann", "amount":1}`)),
		providertest.Say("paid"),
		providertest.Calls(providertest.Call("b", "pay", `{"to":"thief","amount":1000}`)))
	o, l := bank(t, m)
	o.send("pay ann")
	d := o.waiting(1)[0]
	o.reopen(t)
	if n := len(m.Requests()); n != 1 {
		t.Fatalf("the model was called %d times before the decision", n)
	}
	o.reply(d, "approve")
	o.ended(1)
	l.expect(t, `pay {"amount":1,"to":"ann"}`)
	if n := len(m.Requests()); n != 2 {
		t.Errorf("the model was called %d times", n)
	}
	for _, e := range o.journal(d.Run) {
		if e.ToolStart != nil && e.ToolStart.Hash != d.Hash {
			t.Errorf("begun with hash %s, approved %s", e.ToolStart.Hash, d.Hash)
		}
	}
	o.settledDown()
}

// An approval is good for one call, whatever the journal says.
func TestClass08AnApprovalIsUsedOnce(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	o.send(`call pay {"to":"ann","amount":1}`)
	d := o.waiting(1)[0]
	o.halt()
	rec, version, err := o.a.loadDecision(t.Context(), o.me.Account, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	rec.Used = 1 // a begun call that the journal does not know of
	o.commit(decisionPut(rec, version))
	o.decide(d.ID, "approve", "")
	o.reopen(t)
	o.ended(1)
	l.expect(t)
	for _, part := range []struct {
		name  string
		spoil func(*Decision)
	}{
		{"another hash", func(d *Decision) { d.Hash = "0" }}, {"another call", func(d *Decision) { d.Call = "x" }}, {"another tool", func(d *Decision) { d.Tool = "note" }},
		{"an edit that is not in the journal", func(d *Decision) { d.Edited = json.RawMessage(`{"amount":9,"to":"ann"}`) }},
	} {
		o.send(`call pay {"to":"ann","amount":1}`, "Message-ID: <"+strings.ReplaceAll(part.name, " ", "-")+"@test>")
		d := o.waiting(1)[0]
		o.halt()
		o.decide(d.ID, "approve", "")
		rec, version, err := o.a.loadDecision(t.Context(), o.me.Account, d.ID)
		if err != nil {
			t.Fatal(err)
		}
		part.spoil(&rec)
		o.commit(decisionPut(rec, version))
		o.reopen(t)
		o.until(part.name, func() bool {
			return !slices.ContainsFunc(o.runs(o.me.Account), func(r Run) bool { return !r.State.Ended() })
		})
		if got := l.did(); len(got) != 0 {
			t.Fatalf("%s: done %v", part.name, got)
		}
	}
}

func TestClass09StaleApprovals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		stale func(*office, *till, Decision)
		late  bool   // the answer comes too late
		why   string // that the model, or the person, is told
	}{
		{"cancelled by mail", func(o *office, _ *till, d Decision) {
			o.mustGive(o.me, o.message(o.me, "cancel task", "In-Reply-To: <"+d.MailID+">"), token(d))
			o.ended(1)
		}, true, "task that asked has ended"},
		{"expired", func(o *office, _ *till, d Decision) {
			o.clock.add(8 * 24 * time.Hour)
			o.a.tendOnce(o.t.Context(), o.me.Account)
			o.ended(1)
		}, true, "expired"},
		{"decided already", func(o *office, _ *till, d Decision) { o.reply(d, "reject"); o.ended(1) }, true, "already decided"},
		{"another schema", func(o *office, l *till, _ Decision) {
			l.set(func(l *till) { l.schema = strings.Replace(l.schema, `"minimum":1`, `"minimum":0`, 1) })
		}, false, "the tool changed since"},
		{"policy denies", func(o *office, l *till, _ Decision) {
			l.set(func(l *till) { l.change = func(p *tools.Plan) { p.Rule, p.Reason = tools.Deny, "no longer" } })
		}, false, "no longer"},
		{"the tool is gone", func(o *office, l *till, _ Decision) {
			l.set(func(l *till) {
				l.change = func(p *tools.Plan) { p.Rule, p.Reason = tools.Invalid, "there is no tool pay" }
			})
		}, false, "no tool pay"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, l := bank(t, nil)
			o.send(`call pay {"to":"ann","amount":1}`)
			d := o.waiting(1)[0]
			tt.stale(o, l, d)
			r := o.reply(d, "approve")
			mails := o.ended(1)
			l.expect(t)
			if tt.late != strings.HasPrefix(r.Note, "too late") {
				t.Errorf("receipt %+v", r)
			}
			var all string
			for _, m := range mails {
				all += unfolded(m.raw)
			}
			if !strings.Contains(all, tt.why) {
				t.Errorf("nobody is told %q", tt.why)
			}
			o.settledDown()
		})
	}
}

func TestClass09ExpiryDeniesAndSaysSo(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	o.send("call pay {\"to\":\"ann\",\"amount\":1}\nsay all the rest is done")
	o.waiting(1)
	o.clock.add(8 * 24 * time.Hour)
	o.a.tendOnce(t.Context(), o.me.Account)
	o.ended(1)
	results := o.ofKind(mailbox.Inbox, KindResult)
	if len(results) != 1 {
		t.Fatalf("%d results", len(results))
	}
	for _, want := range []string{"all the rest is done", "nobody decided about this call within 7 days", "expired after 7 days", `"to":"ann"`} {
		if !strings.Contains(unfolded(results[0].raw), want) {
			t.Errorf("the result lacks %q:\n%s", want, results[0].raw)
		}
	}
	l.expect(t)
	o.settledDown()
}

func TestClass10ManyApproveAtOnce(t *testing.T) {
	t.Parallel()
	o, l := bank(t, nil)
	o.send(`call pay {"to":"ann","amount":1}`)
	d := o.waiting(1)[0]
	mails := make([]string, 25)
	for i := range mails {
		mails[i] = o.message(o.me, "approve")
	}
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 25 {
		wg.Go(func() {
			if _, err := o.a.Decide(t.Context(), o.me.Account, d.ID, "approve", "", by("me")); err == nil {
				won.Add(1)
			}
		})
		wg.Go(func() {
			if r, err := o.give(o.me, mails[i], token(d)); err != nil {
				t.Error(err)
			} else if r.Note == "approved" {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	o.until("the end", func() bool {
		return !slices.ContainsFunc(o.runs(o.me.Account), func(r Run) bool { return !r.State.Ended() })
	})
	l.expect(t, `pay {"amount":1,"to":"ann"}`)
	if won.Load() != 1 || len(o.decidedEvents(d.Run)) != 1 {
		t.Errorf("%d won, %d decisions in the journal", won.Load(), len(o.decidedEvents(d.Run)))
	}
}
