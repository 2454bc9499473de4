//go:build bench

package langgraph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"pizza/agent"
	"pizza/internal/tools"
	"pizza/mailbox"
	"pizza/providers"
)

// sender is the model of W7: two calls that ask and one that is free, then the end. It keeps
// what it was told last.
type sender struct {
	mu   sync.Mutex
	told []string
}

func (*sender) Info() providers.Info {
	return providers.Info{Provider: "script", Model: "steps", Joins: true, Free: true}
}

func (m *sender) Complete(_ context.Context, req providers.Request) (providers.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = nil
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			switch {
			case p.Result != nil:
				m.told = append(m.told, fmt.Sprintf("%s %s", p.Result.ID, map[bool]string{true: "not done", false: "done"}[p.Result.Error]))
			case p.Login:
				m.told = append(m.told, "mail: "+strings.TrimSpace(p.Text))
			}
		}
	}
	if len(req.Messages) > 1 {
		return answer("DONE"), nil
	}
	return reply("", call("c1", "send", map[string]any{"to": "boss", "n": 1}),
		call("c2", "send", map[string]any{"to": "client", "n": 2}),
		call("c3", "lookup", map[string]any{"to": "x", "n": 3})), nil
}

// bench7 is one case of W7 at work.
type bench7 struct {
	*office
	model   *sender
	mu      sync.Mutex
	effects []string
	mails   map[string]letter // approvals that waited at first, by whom they send to
}

// cases of W7, as they can be put to us. Each says what must have come of it: what was done,
// in any order, and what the model was told last.
var cases = map[string]struct {
	do      func(*bench7) error
	effects []string
	told    []string
}{
	"mixed": {(*bench7).mixed, []string{"lookup x", "send client"},
		[]string{"mail: go", "c1 not done", "c2 done", "c3 done"}},
	"toofew": {(*bench7).toofew, []string{"lookup x", "send boss", "send client"},
		[]string{"mail: go", "c1 done", "c2 done", "c3 done"}},
	"stale": {(*bench7).stale, []string{"lookup x", "send boss", "send client"},
		[]string{"mail: go", "c1 done", "c2 done", "c3 done", "mail: say when you are done"}},
	"twice": {(*bench7).twice, []string{"lookup x", "send boss", "send client"},
		[]string{"mail: go", "c1 done", "c2 done", "c3 done"}},
	"concurrent": {(*bench7).concurrent, []string{"lookup x", "send boss", "send client"},
		[]string{"mail: go", "c1 done", "c2 done", "c3 done"}},
}

// w7Order is the order of the cases in the table. "edit" of the baseline (another tool in the
// place of one that asks) is not among them: an edit of ours changes arguments, a tool cannot
// be named in it.
var w7Order = []string{"mixed", "toofew", "stale", "twice", "concurrent"}

// sideW7 plays one case. Arguments: case, data root.
func sideW7(args []string) (figures, error) {
	c, ok := cases[args[0]]
	if !ok {
		return nil, fmt.Errorf("no case %q", args[0])
	}
	b := &bench7{model: &sender{}, mails: map[string]letter{}}
	set := lookups(nil)
	set.schema = []byte(`{"type":"object","properties":{"to":{"type":"string"},"n":{"type":"number"}},"required":["to","n"]}`)
	set.class = tools.OnceOnly
	set.run = func(_ context.Context, name string, args map[string]any) string {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.effects = append(b.effects, fmt.Sprint(name, " ", args["to"]))
		return "ok"
	}
	o, err := openOffice(args[1], b.model, set)
	if err != nil {
		return nil, err
	}
	b.office = o
	if err := b.begin(); err != nil {
		return nil, err
	}
	if err := c.do(b); err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	if err := b.await(mailbox.Inbox, 3, nil); err != nil {
		return nil, err
	}
	if err := errors.Join(b.done(1), b.close()); err != nil {
		return nil, err
	}
	slices.Sort(b.effects)
	f := figures{"w": "W7", "kind": "pizza", "case": args[0], "effects": b.effects, "model_saw": b.model.told}
	f["right"] = slices.Equal(b.effects, c.effects) && slices.Equal(b.model.told, c.told)
	return f, nil
}

// begin starts the task and waits for both approvals.
func (b *bench7) begin() error {
	if _, err := b.send("pizza@localhost", "go", "go"); err != nil {
		return err
	}
	if err := b.await(agent.Action, 2, nil); err != nil {
		return err
	}
	open, err := b.open()
	if err != nil {
		return err
	}
	for _, l := range open {
		d, err := b.agent.Show(ctx, account, l.header.Get("X-Pizza-Approval"))
		if err != nil {
			return err
		}
		for _, to := range []string{"boss", "client"} {
			if strings.Contains(string(d.Decision.Args), to) {
				b.mails[to] = l
			}
		}
	}
	if len(b.mails) != 2 {
		return fmt.Errorf("%d approvals wait, not 2", len(b.mails))
	}
	return nil
}

func (b *bench7) id(to string) string { return b.mails[to].header.Get("X-Pizza-Approval") }

// mixed: one is rejected, one approved, each by a reply.
func (b *bench7) mixed() error {
	return errors.Join(b.answer(b.mails["boss"], "reject: no"), b.answer(b.mails["client"], "approve"))
}

// toofew: of two that wait one is approved; the other goes on waiting, and is approved then.
func (b *bench7) toofew() error {
	if err := b.answer(b.mails["boss"], "approve"); err != nil {
		return err
	}
	open, err := b.open()
	if err != nil || len(open) != 1 {
		return fmt.Errorf("%d wait after one decision, not 1: %v", len(open), err)
	}
	return b.answer(b.mails["client"], "approve")
}

// stale: a mail comes in while the task waits; then both are approved.
func (b *bench7) stale() error {
	list, err := b.letters(agent.Action, agent.KindApproval)
	if err != nil {
		return err
	}
	root := strings.Fields(list[0].header.Get("References"))[0]
	if _, err := b.send("pizza@localhost", "Re: go", "say when you are done", "In-Reply-To: "+root); err != nil {
		return err
	}
	return errors.Join(b.answer(b.mails["boss"], "approve"), b.answer(b.mails["client"], "approve"))
}

// twice: both are approved, and the first once more: it is told that it was decided.
func (b *bench7) twice() error {
	err := errors.Join(b.decide(b.id("boss"), "approve"), b.decide(b.id("client"), "approve"))
	if err != nil {
		return err
	}
	return refused(b.decide(b.id("boss"), "approve"))
}

func refused(err error) error {
	var me *mailbox.Error
	if errors.As(err, &me) && me.Kind == mailbox.Conflict && me.Text != "" {
		return nil
	}
	return fmt.Errorf("approved a second time: %v", err)
}

// concurrent: each is approved eight times at the same moment; one of the eight wins.
func (b *bench7) concurrent() error {
	const at = 8
	var wait sync.WaitGroup
	var mu sync.Mutex
	won := map[string]int{}
	var bad error
	for range at {
		for to := range b.mails {
			wait.Go(func() {
				err := b.decide(b.id(to), "approve")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won[to]++
				} else {
					bad = errors.Join(bad, refused(err))
				}
			})
		}
	}
	wait.Wait()
	if won["boss"] != 1 || won["client"] != 1 {
		bad = errors.Join(bad, fmt.Errorf("won: %v", won))
	}
	return bad
}
