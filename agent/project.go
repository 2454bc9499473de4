package agent

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"pizza/mailbox"
	"pizza/providers"
)

// projection is what a request is made from.
type projection struct {
	State   State
	Earlier []providers.Message                    // the thread before this run
	Inputs  map[mailbox.MessageID][]providers.Part // what each mail says
	Info    providers.Info
	Thread  string
}

// request derives the model request from the journal. It is never stored: the
// journal is the truth. Whatever the journal's prefix, every call has exactly one
// result, in one message right after the reply, in the order of the calls. Turns that were
// compacted are told by their mails and the recap.
func (p projection) request() providers.Request {
	req, _ := new(talk).next(p)
	return req
}

// talk is the conversation as the model is told it. It grows with the journal: a step
// costs what it adds.
type talk struct {
	begun        bool
	upto, window int // of the Context it stands on
	turns        int // told so far
	list         []providers.Message
	size         int // bytes of text
}

// next is the request of a projection, and how many bytes of text it has. Each projection
// is of the journal of the one before, grown by settled turns.
func (t *talk) next(p projection) (providers.Request, int) {
	c := &p.State.Context
	req := providers.Request{Thread: p.Thread}
	if p.State.Started != nil {
		req.System, req.Tools = p.State.Started.System, p.State.Started.Tools
	}
	if !t.begun || t.upto != c.Upto || t.window != c.Window {
		*t = talk{begun: true, upto: c.Upto, window: c.Window, turns: c.Upto}
		t.list = make([]providers.Message, 0, len(p.Earlier)+2*(len(p.State.Turns)-c.Upto)+1)
		t.open(p)
	}
	for ; t.turns < len(p.State.Turns); t.turns++ {
		turn := p.State.Turns[t.turns]
		if turn.Inbound != nil {
			t.push(p.mail(turn.Inbound))
			continue
		}
		t.push(p.assistant(turn.Reply.Reply.Message))
		t.push(p.results(turn.Calls))
	}
	req.Messages = slices.Clone(t.list) // the next one may merge into the last message
	if len(req.Messages) > 0 && req.Messages[0].Role != providers.User {
		first := providers.Message{Role: providers.User, Parts: []providers.Part{{Kind: providers.Text, Text: noText}}}
		req.Messages = slices.Insert(req.Messages, 0, first)
	}
	return req, t.size + sizeOfFrozen(req.System, req.Tools)
}

// open tells what stands before the turns that are told in full: the thread before this
// run, and what of the run was compacted.
func (t *talk) open(p projection) {
	for _, m := range p.Earlier {
		t.push(m)
	}
	if t.upto == 0 {
		return
	}
	for _, turn := range p.State.Turns[:t.upto] {
		if turn.Inbound != nil {
			t.push(p.mail(turn.Inbound))
		}
	}
	t.push(providers.Message{Role: providers.User, Parts: []providers.Part{{Kind: providers.Text, Text: p.State.recap()}}})
}

func (t *talk) push(m providers.Message) {
	t.list = push(t.list, m)
	t.size += sizeOfParts(m.Parts)
}

// mail is a mail as the model is told it.
func (p projection) mail(in *Inbound) providers.Message {
	parts := clean(p.Inputs[in.Message])
	if len(parts) == 0 {
		parts = []providers.Part{{Kind: providers.Text, Text: noText}}
	}
	return providers.Message{Role: providers.User, Parts: parts}
}

// push adds m, merged into the message before it when both are of one role: roles
// alternate. Merged replies (the model paused, or was asked again) lose their raw
// content, which is of one reply. A message without content is left out.
func push(list []providers.Message, m providers.Message) []providers.Message {
	if len(m.Parts) == 0 {
		return list
	}
	n := len(list)
	if n == 0 || m.Role != list[n-1].Role {
		return append(list, m)
	}
	last := &list[n-1]
	last.Parts = append(slices.Clip(last.Parts), m.Parts...)
	last.Raw, last.From = nil, nil
	return list
}

// assistant is a reply as it goes back: its raw content only to who produced it,
// because signatures and item ids are bound to provider, endpoint and model.
func (p projection) assistant(m providers.Message) providers.Message {
	parts := clean(m.Parts)
	if m.From == nil || *m.From != originOf(p.Info) {
		m.Raw, m.From = nil, nil
		parts = slices.DeleteFunc(parts, func(q providers.Part) bool { return q.Kind == providers.Reasoning })
	}
	speaks := slices.ContainsFunc(parts, func(q providers.Part) bool { return q.Kind != providers.Reasoning })
	if !speaks { // an empty reply says nothing to the next call
		parts = nil
	}
	m.Role, m.Parts = providers.Assistant, parts
	return m
}

// clean copies parts, without blank text and with text that any JSON reader takes.
func clean(parts []providers.Part) []providers.Part {
	var kept []providers.Part
	for _, q := range parts {
		if q.Kind == providers.Text {
			q.Text = plain(q.Text)
			if strings.TrimSpace(q.Text) == "" {
				continue
			}
		}
		kept = append(kept, q)
	}
	return kept
}

// plain makes text valid UTF-8 without control characters but tab and line feed.
func plain(s string) string {
	if isPlain(s) {
		return s
	}
	ok := func(r rune) bool { return r >= ' ' && r != 0x7f || r == '\n' || r == '\t' }
	return strings.Map(func(r rune) rune {
		if !ok(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// isPlain tells whether plain has nothing to do: control characters are single octets.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(s)
}

// noText stands for a mail without content.
const noText = "(no text)"

// noResult stands for an outcome that is not known, in neutral words.
const noResult = "No result is available. The call may or may not have had its effect."

// results answers every call of a reply in one message.
func (p projection) results(calls []Call) providers.Message {
	handle := p.State.Started != nil && hasTool(p.State.Started.Tools, readResultName)
	return results(calls, batchLimit(calls, p.State.Context.Window), handle)
}

// results is that message with each result cut to limit.
func results(calls []Call, limit int, handle bool) providers.Message {
	m := providers.Message{Role: providers.Tool}
	for i := range calls {
		c := &calls[i]
		r := &providers.ToolResult{ID: c.ID, Name: c.Name, Content: noResult, Error: true}
		if c.State == callSettled {
			r.Content, r.Error = plain(ranText(*c)+c.shown(limit, handle)), c.End.Status != endOK
		}
		if strings.TrimSpace(r.Content) == "" {
			r.Content = "(no output)"
		}
		m.Parts = append(m.Parts, providers.Part{Kind: providers.ResultPart, Result: r})
	}
	return m
}

// callsOf lists the calls of a message in order.
func callsOf(m providers.Message) []providers.ToolCall {
	var calls []providers.ToolCall
	for _, p := range m.Parts {
		if p.Kind == providers.Call && p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}

// textOf is the text of a message, without blank parts.
func textOf(m providers.Message) string {
	var parts []string
	for _, p := range m.Parts {
		if t := strings.TrimSpace(p.Text); p.Kind == providers.Text && t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n\n")
}

// checkPairs refuses a request that providers refuse for ever after: roles that do
// not alternate, a call without its result, a result without its call.
func checkPairs(req providers.Request) error {
	var open []providers.ToolCall
	seen := make(map[string]bool, len(req.Messages)/2)
	last := providers.Role("")
	for i, m := range req.Messages {
		if err := checkRole(i, last, m.Role, open); err != nil {
			return err
		}
		if m.Role == providers.Tool {
			if !answers(m, open) {
				return fmt.Errorf("agent: message %d: its results are not of the calls %v", i, idsOf(open))
			}
			open = open[:0]
		}
		for _, p := range m.Parts {
			if p.Kind != providers.Call || p.Call == nil {
				continue
			}
			id := p.Call.ID
			if m.Role != providers.Assistant || seen[id] || id == "" {
				return fmt.Errorf("agent: message %d: call %q is out of place", i, id)
			}
			seen[id] = true
			open = append(open, *p.Call)
		}
		last = m.Role
	}
	if len(open) > 0 {
		return fmt.Errorf("agent: calls %v have no result", idsOf(open))
	}
	return nil
}

func checkRole(i int, last, role providers.Role, open []providers.ToolCall) error {
	switch {
	case i == 0 && role != providers.User:
		return fmt.Errorf("agent: the first message is of role %s", role)
	case role == last:
		return fmt.Errorf("agent: message %d: role %s twice", i, role)
	case len(open) > 0 && role != providers.Tool:
		return fmt.Errorf("agent: message %d: calls %v have no result", i, idsOf(open))
	case role == providers.Tool && len(open) == 0:
		return fmt.Errorf("agent: message %d: results without calls", i)
	}
	return nil
}

// answers tells whether the results of a message are those of the calls, in their order.
func answers(m providers.Message, calls []providers.ToolCall) bool {
	n := 0
	for _, p := range m.Parts {
		if p.Result == nil {
			continue
		}
		if n == len(calls) || calls[n].ID != p.Result.ID {
			return false
		}
		n++
	}
	return n == len(calls)
}

func idsOf(calls []providers.ToolCall) []string {
	var ids []string
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids
}

const (
	// maxResult is how much of a text of a mail the model is told, and of a tool result in
	// journals of before read_result.
	maxResult = 32 << 10
)

// headTail shortens a long text to its two ends, on rune boundaries.
func headTail(s string) string {
	if len(s) <= maxResult {
		return s
	}
	head, tail := cutEnds(s, maxResult)
	return fmt.Sprintf("%s\n\n[%d of %d bytes left out here; the result was too long. Ask for a smaller part.]\n\n%s",
		head, len(s)-len(head)-len(tail), len(s), tail)
}
