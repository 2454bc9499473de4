package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
	"pizza/providers/providertest"
)

// namedTool is a set with one tool that does nothing.
type namedTool string

func (n namedTool) Specs() []tools.Spec {
	return []tools.Spec{{Name: string(n), Description: "Does nothing.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}
}
func (n namedTool) Plan(c tools.Call) tools.Plan {
	return tools.Plan{Class: tools.ReadOnly, Rule: tools.Allow, Effect: tools.Reads, Sentence: "Do nothing."}
}
func (n namedTool) Run(context.Context, tools.Workspace, tools.Call) tools.Outcome {
	return tools.Outcome{Content: "nothing done by " + string(n)}
}

func toolNames(req providers.Request) (names []string) {
	for _, t := range req.Tools {
		names = append(names, t.Name)
	}
	return names
}

// TestPromptAndToolsAreFrozen: what the first run of a thread was told, each later one is
// told too, over a restart with other tools; a tool that is gone says so in words, a new
// one is there for new threads.
func TestPromptAndToolsAreFrozen(t *testing.T) {
	t.Parallel()
	tool := namedTool("old_tool")
	m := providertest.Script(providertest.Say("one"))
	o := newOffice(t, m, func(opt *Options) { opt.Tools = tools.Join(tool, opt.Tools) })
	r := o.send("first", "Message-ID: <one@test>")
	o.ended(1)
	tool = "new_tool"
	o.reopen(t)
	m.Append(providertest.Calls(providertest.Call("c1", "old_tool", `{}`)), providertest.Say("two").If(func(req providers.Request) error {
		if res := resultOf(req); !strings.Contains(res, "old_tool was taken away") {
			return fmt.Errorf("the result of a tool that is gone: %q", res)
		}
		return nil
	}))
	o.send("second", "In-Reply-To: <one@test>", "Message-ID: <two@test>")
	o.ended(2)
	m.Append(providertest.Say("three"))
	o.send("a new task")
	o.ended(3)
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	reqs := m.Requests()
	if !reflect.DeepEqual(reqs[0].Tools, reqs[1].Tools) || reqs[0].System != reqs[1].System {
		t.Errorf("the second run of the thread was told other tools: %v, %v", toolNames(reqs[0]), toolNames(reqs[1]))
	}
	if last := toolNames(reqs[len(reqs)-1]); last[0] != "new_tool" {
		t.Errorf("a new thread was told %v", last)
	}
	// A run whose predecessor was forgotten takes over from the one before.
	drop := []mailbox.Op{mailbox.DropStream{Stream: runKey(r.Task + ".2")}}
	o.commit(drop...)
	m.Append(providertest.Say("four"))
	o.send("third", "In-Reply-To: <two@test>")
	o.ended(4)
	reqs = m.Requests()
	if !reflect.DeepEqual(reqs[0].Tools, reqs[len(reqs)-1].Tools) {
		t.Errorf("after a run was forgotten: %v", toolNames(reqs[len(reqs)-1]))
	}
}
