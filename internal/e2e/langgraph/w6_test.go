//go:build bench

package langgraph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"pizza/agent"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

var subOf = regexp.MustCompile(`sub=(\d)`)

// crew is the model of W6: of the parent, which gives work to three workers at once, and of
// these: a lookup, a send, an answer. It counts the parent's calls in a file, because they are
// of several processes.
type crew struct{ calls string }

func (crew) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "steps", Joins: true, Free: true}
}

func (m crew) Complete(_ context.Context, req providers.Request) (providers.Reply, error) {
	results, sub := 0, ""
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			if p.Result != nil {
				results++
			}
			if got := subOf.FindStringSubmatch(p.Text); got != nil && msg.Role == providers.User {
				sub = got[1]
			}
		}
	}
	switch {
	case sub == "":
		if err := appendLine(m.calls, "call"); err != nil {
			return providers.Reply{}, err
		}
		if results > 0 {
			return answer(fmt.Sprint("DONE ", results)), nil
		}
		var calls []providers.ToolCall
		for i := range 3 {
			calls = append(calls, call(fmt.Sprint("t", i+1), "task", map[string]any{"worker": "worker", "prompt": fmt.Sprint("sub=", i+1)}))
		}
		return reply("", calls...), nil
	case results == 0:
		return reply("", call("l"+sub, "lookup", map[string]any{"sub": sub})), nil
	case results == 1:
		return reply("", call("s"+sub, "send", map[string]any{"sub": sub})), nil
	}
	return answer("answer of sub " + sub), nil
}

// appendLine puts a line at the end of a file, and syncs it.
func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// linesOf are the lines of a file, sorted; none of one that is not there.
func linesOf(file string) []string {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	list := strings.Split(strings.TrimSpace(string(b)), "\n")
	slices.Sort(list)
	return list
}

// sideW6 is one process of W6. Arguments: start or resume, data root, file of effects, and of
// a resume the worker whose send is approved.
func sideW6(args []string) (figures, error) {
	phase, root, file := args[0], args[1], args[2]
	set := lookups(nil)
	set.schema = []byte(`{"type":"object","properties":{"sub":{"type":"string"}},"required":["sub"]}`)
	set.class = tools.OnceOnly
	set.run = func(_ context.Context, name string, args map[string]any) string {
		if err := appendLine(file, fmt.Sprint(name, " ", args["sub"])); err != nil {
			panic(err)
		}
		return "ok " + name
	}
	o, err := openOffice(root, crew{file + ".calls"}, set, func(opt *agent.Options) {
		opt.Subagents = func() []agent.Worker {
			return []agent.Worker{{Name: "worker", Description: "does a job", Instructions: "work", Tools: []string{"lookup", "send"}}}
		}
	})
	if err != nil {
		return nil, err
	}
	f := figures{"w": "W6", "kind": "pizza"}
	if phase == "start" {
		if _, err := o.send("pizza@localhost", "go", "go"); err != nil {
			return nil, err
		}
		return f, errors.Join(o.await(agent.Action, 3, nil), o.close())
	}
	if err := o.approveSub(args[3], file); err != nil {
		return nil, err
	}
	if left, err := o.holds(agent.Action); err != nil || left > 0 {
		return f, errors.Join(err, o.close())
	}
	if err := errors.Join(o.await(mailbox.Inbox, 4, nil), o.done(1), o.close()); err != nil {
		return nil, err
	}
	f["effects"], f["parent_calls"] = linesOf(file), len(linesOf(file+".calls"))
	f["right"] = slices.Equal(linesOf(file), []string{"lookup 1", "lookup 2", "lookup 3", "send 1", "send 2", "send 3"}) && f["parent_calls"] == 2
	return f, nil
}

// approveSub approves the send of one worker, and waits until it is done. Afterwards one
// decision less waits.
func (o *office) approveSub(sub, file string) error {
	open, err := o.open()
	if err != nil {
		return err
	}
	wake, stop := o.store.Watch(account, 0)
	defer stop()
	for _, l := range open {
		id := l.header.Get("X-Pizza-Approval")
		shown, err := o.agent.Show(ctx, account, id)
		if err != nil {
			return err
		}
		if !strings.Contains(string(shown.Decision.Args), `"`+sub+`"`) {
			continue
		}
		if err := o.answer(l, "approve"); err != nil {
			return err
		}
		for !slices.Contains(linesOf(file), "send "+sub) {
			<-wake
		}
		left, err := o.open()
		if err == nil && len(left) != len(open)-1 {
			err = fmt.Errorf("%d decisions wait after one of %d", len(left), len(open))
		}
		return err
	}
	return fmt.Errorf("of %d decisions none is of worker %s", len(open), sub)
}
