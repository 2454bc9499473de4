package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pizza/internal/jsonschema"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// maxAnswer is the length of an answer or a reason, octets: it becomes part of a result.
const maxAnswer = maxResult

// shownCall is the call that a decision is about, with the arguments that were shown.
func shownCall(d Decision) Call {
	return Call{ToolCall: providers.ToolCall{ID: d.Call, Name: d.Tool, Args: d.Args}}
}

// Edit approves a call with other arguments (a JSON object) in the place of those that were
// shown. When a path, a recipient, an amount or a
// command changed, the returned decision has Again, and the owner is asked once more.
//
// Errors are as of Decide, and Refused when the arguments are all the same, do not fit the
// tool or policy denies them; nothing is decided then.
func (a *Agent) Edit(ctx context.Context, account mailbox.AccountID, id string, args json.RawMessage, by DecidedBy) (Decision, error) {
	if by.At.IsZero() {
		by.At = a.now()
	}
	d, err := a.findDecision(ctx, account, id)
	if err != nil {
		return Decision{}, err
	}
	return a.settle(ctx, account, d.ID, verdict{verb: "edit", args: args, by: by})
}

// finalArgs checks the arguments of an edit and notes them in d. One that changes nothing
// decides nothing.
func (a *Agent) finalArgs(ctx context.Context, account mailbox.AccountID, d *Decision, v *verdict) error {
	final, err := canonical(v.args)
	if err != nil {
		return decideError(mailbox.Refused, *d, "the new arguments cannot be used: "+err.Error())
	}
	shown := canonicalOr(d.Args)
	if bytes.Equal(final, shown) { // whoever writes edit means a change: it was lost on the way
		return decideError(mailbox.Refused, *d, "nothing is changed; say approve to have it done as it is")
	}
	spec, ok := a.spec(d.Tool)
	if !ok {
		return decideError(mailbox.Refused, *d, "the tool "+d.Tool+" is not there any more")
	}
	if err := jsonschema.Check(spec.Schema, final); err != nil {
		return decideError(mailbox.Refused, *d, "the new arguments do not fit "+d.Tool+": "+err.Error())
	}
	run, err := a.runRecord(ctx, account, d.Run)
	if err != nil {
		return err
	}
	c := shownCall(*d)
	c.Args = final
	j, err := a.weigh(ctx, account, run, a.judge(c), c)
	switch {
	case err != nil:
		return err
	case j.Rule == tools.Deny, j.Rule == tools.Invalid:
		return decideError(mailbox.Refused, *d, "with the new arguments it is not allowed: "+strings.TrimSuffix(j.Reason, "."))
	}
	v.args, d.Edited = final, final
	d.Again = weightyChanges(shown, final, j.Weighty)
	return nil
}

// weightyChanges are the changed arguments of which the owner is asked once more: paths,
// recipients, amounts, commands by their names, and those that the tool declares.
func weightyChanges(before, after json.RawMessage, declared []string) []string {
	var list []string
	for _, name := range changedNames(before, after) {
		words := strings.Split(name, ".")
		if slices.ContainsFunc(words, tools.Weighty) || slices.Contains(declared, words[0]) || slices.Contains(declared, name) {
			list = append(list, name)
		}
	}
	return list
}

// changedNames lists what differs between two objects in canonical form, by its path of
// names as in "payment.amount", sorted; what is in a list goes by the name of the list.
func changedNames(before, after json.RawMessage) []string {
	x, y := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	_ = json.Unmarshal(before, &x) // in canonical form: they decode
	_ = json.Unmarshal(after, &y)
	names := maps.Clone(x)
	maps.Copy(names, y)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if bytes.Equal(x[name], y[name]) {
			continue
		}
		inner := changedInside(x[name], y[name])
		if len(inner) == 0 {
			list = append(list, name)
		}
		for _, in := range inner {
			list = append(list, name+"."+in)
		}
	}
	return list
}

// changedInside goes into objects, and into lists whose members are.
func changedInside(x, y json.RawMessage) []string {
	object := func(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }
	var a, b []json.RawMessage
	switch {
	case object(x) && object(y):
		return changedNames(x, y)
	case object(x), object(y): // there was none, or there is none any more
		return changedNames(orEmpty(x, object), orEmpty(y, object))
	case json.Unmarshal(x, &a) != nil && json.Unmarshal(y, &b) != nil:
		return nil
	}
	_ = json.Unmarshal(y, &b)
	var list []string
	for i := range max(len(a), len(b)) {
		var p, q json.RawMessage
		if i < len(a) {
			p = a[i]
		}
		if i < len(b) {
			q = b[i]
		}
		if !bytes.Equal(p, q) {
			list = append(list, changedInside(p, q)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func orEmpty(raw json.RawMessage, ok func(json.RawMessage) bool) json.RawMessage {
	if ok(raw) {
		return raw
	}
	return json.RawMessage("{}")
}

// mayAlways says why "always" cannot be said about a call, "" when it can.
func mayAlways(tool string, p tools.Plan) string {
	if p.Effect.Standing() {
		return ""
	}
	return fmt.Sprintf("“always” is not possible for %s, because it %s: that is decided each time. Say approve or reject", tool, p.Effect.Because())
}

// maxRan is how much of one argument the model is told.
const maxRan = 1000

// ranText tells the model which arguments of a call were changed by the owner.
func ranText(c Call) string {
	if c.Asked == nil {
		return ""
	}
	var was, now map[string]json.RawMessage
	_, _ = json.Unmarshal(canonicalOr(c.Asked), &was), json.Unmarshal(canonicalOr(c.Args), &now) // objects: they were asked about
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if old, ok := was[name]; !ok || !bytes.Equal(old, now[name]) {
			fmt.Fprintf(&b, "- %s: %s\n", name, clip(string(now[name]), maxRan))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, ok := now[name]; !ok {
			fmt.Fprintf(&b, "- %s: (left out)\n", name)
		}
	}
	if b.Len() == 0 { // changed, and changed back
		return ""
	}
	return "The owner changed the arguments of this call. These differ from what you asked for:\n" + b.String() + "\n"
}

// canonicalOr is the canonical form of an object that was in it before: records and events
// are JSON themselves, and their encoding writes some characters in another way.
func canonicalOr(raw json.RawMessage) json.RawMessage {
	if c, err := canonical(raw); err == nil {
		return c
	}
	return raw
}

// answerMeans resolves `pizza answer ID TEXT`: a text that begins with a word that decides is
// that word, all else is an answer where one is possible. Only a reason or a text goes with a
// word: "approve: but only if" must not approve.
func answerMeans(kind, text string) (verb, rest string) {
	text = strings.TrimSpace(text)
	head, rest, _ := strings.Cut(text, ":")
	head, rest = strings.ToLower(strings.TrimSpace(head)), strings.TrimSpace(rest)
	_, answers := outcomes[kind]["answer"]
	switch _, known := outcomes[kind][head]; {
	case strings.EqualFold(text, "cancel task"), !answers && head == "cancel":
		return "cancel", ""
	case kind == decisionQuestion:
		return "answer", text
	case known, !answers:
		return head, rest
	}
	return "answer", text
}
