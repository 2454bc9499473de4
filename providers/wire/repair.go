package wire

import (
	"strings"
	"unicode"

	"pizza/providers"
)

// What stands for content that an API wants and the conversation does not have.
const (
	NoText   = "(no text)"
	NoOutput = "(no output)"
	NoResult = "The result of this call is not available; it may or may not have run."
	GoOn     = "(Go on.)"
	LeftOut  = "(Earlier messages were left out.)"
)

// Repair returns a conversation that every API accepts: it starts with a user
// message and ends with a user or tool message; neighbours alternate; blank text is
// gone; each call has exactly one result, in the order of the calls, in the message
// right after it, and no result is without its call. The input is not changed.
func Repair(ms []providers.Message) []providers.Message {
	var out []providers.Message
	for i, m := range ms {
		switch m.Role {
		case providers.User:
			out = addUser(out, m)
		case providers.Assistant:
			out = addAssistant(out, m, ms[i+1:])
		}
	}
	if len(out) == 0 || out[len(out)-1].Role == providers.Assistant {
		out = append(out, text(providers.User, GoOn))
	}
	return out
}

func text(role providers.Role, s string) providers.Message {
	return providers.Message{Role: role, Parts: []providers.Part{{Kind: providers.Text, Text: s}}}
}

func addUser(out []providers.Message, m providers.Message) []providers.Message {
	parts := written(m.Parts, providers.Text, providers.Image, providers.File)
	if len(parts) == 0 {
		parts = text(providers.User, NoText).Parts
	}
	if n := len(out); n > 0 && out[n-1].Role == providers.User {
		out[n-1].Parts = append(out[n-1].Parts, parts...)
		return out
	}
	return append(out, providers.Message{Role: providers.User, Parts: parts})
}

// addAssistant adds a turn and the results of its calls, which it looks for in the
// messages up to the next turn.
func addAssistant(out []providers.Message, m providers.Message, rest []providers.Message) []providers.Message {
	parts := written(m.Parts, providers.Text, providers.Reasoning, providers.Call)
	if !says(parts) {
		return out // nothing but reasoning: no API takes that as a turn
	}
	m.Parts = parts
	switch n := len(out); {
	case n == 0:
		out = append(out, text(providers.User, LeftOut), m)
	case out[n-1].Role == providers.Assistant:
		// Two turns in one have no raw form.
		out[n-1] = providers.Message{Role: providers.Assistant, Parts: append(out[n-1].Parts, parts...)}
	default:
		out = append(out, m)
	}
	if results := resultsOf(parts, rest); len(results) > 0 {
		out = append(out, providers.Message{Role: providers.Tool, Parts: results})
	}
	return out
}

// written keeps the parts of these kinds that hold something.
func written(parts []providers.Part, kinds ...providers.PartKind) []providers.Part {
	var keep []providers.Part
	for _, p := range parts {
		for _, k := range kinds {
			if p.Kind == k && holds(p) {
				p.Text = CleanText(p.Text)
				keep = append(keep, p)
			}
		}
	}
	return keep
}

func holds(p providers.Part) bool {
	switch p.Kind {
	case providers.Call:
		return p.Call != nil
	case providers.Text, providers.Reasoning:
		return strings.TrimSpace(CleanText(p.Text)) != ""
	}
	return true
}

func says(parts []providers.Part) bool {
	for _, p := range parts {
		if p.Kind != providers.Reasoning {
			return true
		}
	}
	return false
}

// resultsOf gives each call of a turn its result, or says that there is none. What
// happened to a call without one is not known; the wording claims nothing.
func resultsOf(turn []providers.Part, rest []providers.Message) []providers.Part {
	found := resultsUntilNextTurn(rest)
	var results []providers.Part
	for _, p := range turn {
		if p.Kind != providers.Call {
			continue
		}
		r := found[p.Call.ID]
		if r == nil {
			r = &providers.ToolResult{ID: p.Call.ID, Content: NoResult, Error: true}
		}
		c := *r
		c.Name = p.Call.Name
		if c.Content = CleanText(c.Content); strings.TrimSpace(c.Content) == "" {
			c.Content = NoOutput
		}
		results = append(results, providers.Part{Kind: providers.ResultPart, Result: &c})
	}
	return results
}

// resultsUntilNextTurn collects results by call id; the first for an id counts.
func resultsUntilNextTurn(rest []providers.Message) map[string]*providers.ToolResult {
	found := map[string]*providers.ToolResult{}
	for _, m := range rest {
		if m.Role == providers.Assistant {
			break
		}
		for _, p := range m.Parts {
			if p.Kind == providers.ResultPart && p.Result != nil && found[p.Result.ID] == nil {
				found[p.Result.ID] = p.Result
			}
		}
	}
	return found
}

// CleanText returns s as valid UTF-8 without NUL and the other control characters
// that are no white space: some servers refuse a whole request because of one.
func CleanText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
