package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// simWorker begins the system prompt of workers.
const simWorker = "Work as you are told."

// simModel is a function of the request: after a crash the same request gets the same
// reply.
type simModel struct{ p *process }

func (m simModel) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "test", Window: cmp.Or(m.p.plot.window, 1_000_000), Joins: !m.p.plot.alone, Free: true}
}

func (m simModel) Complete(ctx context.Context, req providers.Request) (providers.Reply, error) {
	if err := providertest.Validate(req); err != nil {
		m.p.fault("request: %v\n%s", err, mustJSON(req.Messages))
	}
	m.p.truth(req)
	if !m.p.park(ctx, "model "+req.Thread) {
		return providers.Reply{}, cmpErr(ctx)
	}
	if strings.HasSuffix(req.Thread, "/summary") {
		return withRole(summary(req)), nil
	}
	turn, err := m.next(req)
	if m.p.plot.window > 0 {
		turn.Reply.Usage.Input = (len(req.System) + len(mustJSON(req.Messages))) / 4
	}
	return withRole(turn), err
}

func withRole(t providertest.Turn) providers.Reply {
	t.Reply.Message.Role = providers.Assistant
	return t.Reply
}

func cmpErr(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.New("killed")
}

// next finds the newest program that is not done, and its next turn.
// next finds the newest program that is not done, and its next turn.
func (m simModel) next(req providers.Request) (providertest.Turn, error) {
	did, tried, names := "", map[string]int{}, []string{}
	for _, msg := range req.Messages {
		for _, part := range msg.Parts {
			name, ok := strings.CutPrefix(strings.TrimSpace(part.Text), "do ")
			switch {
			case part.Result != nil:
				noteTurns(tried, part.Result.ID)
			case msg.Role == providers.Assistant, strings.Contains(part.Text, "summary of your earlier steps"):
				did += part.Text + " "
				noteTurns(tried, part.Text)
			case ok && (part.Login || req.System != "" && strings.HasPrefix(req.System, simWorker)):
				names = append(names, name)
			}
		}
	}
	say := ""
	for _, name := range names {
		if strings.Contains(did, "did "+name+".") || !m.p.works(req.Thread, name) {
			continue
		}
		prog := m.p.program(name)
		if n := tried[name]; n < len(prog.turns) {
			return m.turn(prog, n)
		}
		say += "did " + name + ". "
	}
	return providertest.Say(strings.TrimSpace(say)), nil
}

var simCallID = regexp.MustCompile(`\b([a-z][a-z0-9-]*)_(\d+)_(\d+)\b`)

// noteTurns notes how many turns of each program a text tells of, by the ids of their calls.
func noteTurns(tried map[string]int, text string) {
	for _, m := range simCallID.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[2]) // digits
		tried[m[1]] = max(tried[m[1]], n+1)
	}
}

var simDid = regexp.MustCompile(`did [a-z0-9-]+\.`)

// summary keeps what next looks for.
func summary(req providers.Request) providertest.Turn {
	text := textOf(req.Messages[0])
	return providertest.Say(strings.Join(slices.Concat(simCallID.FindAllString(text, -1), simDid.FindAllString(text, -1)), " "))
}

// works reports whether a program is work of the run that a thread belongs to: of another
// task, or of a run that ended, it is not.
func (p *process) works(thread, name string) bool {
	if strings.HasPrefix(name, "w-") {
		return true
	}
	return len(p.mem.pickRecords(func(rec mailbox.Record) bool {
		r, err := decodeRun(rec)
		return strings.HasPrefix(rec.Key, "run/") && err == nil && !r.child() && !r.State.Ended() && strings.Contains(thread, r.Task) &&
			slices.ContainsFunc(r.Inputs, func(in Inbound) bool { return in.Subject == name })
	})) > 0
}

func (w *world) program(name string) program {
	prog, ok := w.progs[name]
	if !ok {
		w.fault("asked to do %q", name)
	}
	return prog
}

func (m simModel) turn(prog program, n int) (providertest.Turn, error) {
	turn := prog.turns[n]
	once := func(what string) bool { // not a function of the request, but of how often it came
		m.p.mu.Lock()
		defer m.p.mu.Unlock()
		key := fmt.Sprint(prog.name, n, what)
		m.p.tries[key]++
		return m.p.tries[key] == 1
	}
	if turn.fail != "" && once("fail") {
		return providertest.Turn{}, &providers.Error{Class: turn.fail, Message: "try again"}
	}
	if turn.empty && once("empty") {
		return providertest.Say(""), nil
	}
	var list []providers.ToolCall
	for i, c := range turn.calls {
		id := simID(prog.name, n, i)
		list = append(list, providertest.Call(id, c.tool, argsOf(id, c)))
	}
	return providertest.Calls(list...), nil
}

func argsOf(id string, c simCall) string {
	switch c.tool {
	case taskName:
		return `{"worker":"hand","prompt":"do ` + workFor(id) + `"}`
	case askOwner.spec.Name:
		return `{"question":"What about ` + id + `?"}`
	}
	return `{"call":"` + id + `"}`
}

// truth checks that the model is told what happened.
func (w *world) truth(req providers.Request) {
	for _, part := range req.Messages[len(req.Messages)-1].Parts {
		r := part.Result
		if r != nil && r.Name == askOwner.spec.Name && !r.Error && !strings.Contains(r.Content, simAnswer(r.ID)) {
			w.fault("the model is not told the answer to %s: %s", r.ID, r.Content)
		}
		if r != nil && r.Name == taskName && !r.Error && !strings.Contains(r.Content, "did "+workFor(r.ID)+".") {
			w.fault("the model is not told what the worker of %s said: %s", r.ID, r.Content)
		}
		if r == nil || simClasses[r.Name] == "" || r.Name == "look" {
			continue
		}
		w.mu.Lock()
		n := 0
		for key := range w.keys[r.ID] {
			n += w.ledger[key]
		}
		w.mu.Unlock()
		switch open := strings.Contains(r.Content, noResult); {
		case !r.Error && n == 0:
			w.fault("the model is told that %s happened; it did not: %s", r.ID, r.Content)
		case r.Error && n > 0 && !open:
			w.fault("the model is told that %s did not happen; it did: %s", r.ID, r.Content)
		case open && w.calls[r.ID].answer != "expire":
			w.fault("the model is not told what became of %s: %s", r.ID, r.Content)
		}
	}
}
