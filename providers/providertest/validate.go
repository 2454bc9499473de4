package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"pizza/providers"
)

var toolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// Validate checks a neutral request as the strictest API would: it starts with a
// user message and ends with a user or tool message, neighbours alternate, every
// call has exactly one result in the message right after it, and no result is
// without its call. Call ids are unique over the request; declared names are legal.
func Validate(req providers.Request) error {
	if _, err := json.Marshal(req); err != nil {
		return err
	}
	return errors.Join(validateTools(req.Tools), validateMessages(req.Messages))
}

func validateTools(specs []providers.ToolSpec) error {
	seen := map[string]bool{}
	for _, s := range specs {
		if !toolName.MatchString(s.Name) || seen[s.Name] {
			return fmt.Errorf("tool name %q is not legal or not unique", s.Name)
		}
		seen[s.Name] = true
		if err := validateSchema(s.Schema); err != nil {
			return fmt.Errorf("tool %s: %w", s.Name, err)
		}
	}
	return nil
}

func validateSchema(schema json.RawMessage) error {
	var root struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if root.Type != "object" {
		return fmt.Errorf("schema: root type is %q, not object", root.Type)
	}
	if p := bytes.TrimSpace(root.Properties); len(p) == 0 || p[0] != '{' {
		return errors.New("schema: root has no properties object")
	}
	return nil
}

func validateMessages(ms []providers.Message) error {
	if len(ms) == 0 || ms[0].Role != providers.User {
		return errors.New("the first message is not from the user")
	}
	if ms[len(ms)-1].Role == providers.Assistant {
		return errors.New("the last message is from the assistant")
	}
	seen := map[string]bool{}
	for i, m := range ms {
		var prev providers.Message
		if i > 0 {
			prev = ms[i-1]
		}
		if err := validateMessage(prev, m, seen); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
	}
	return nil
}

func validateMessage(prev, m providers.Message, seen map[string]bool) error {
	if m.Role == prev.Role {
		return errors.New("same role as the message before it")
	}
	if len(m.Parts) == 0 && len(m.Raw) == 0 {
		return errors.New("no content")
	}
	open := callIDs(prev)
	switch m.Role {
	case providers.Tool:
		return validateResults(m, open)
	case providers.User, providers.Assistant:
		if len(open) > 0 {
			return fmt.Errorf("%d calls before it have no result", len(open))
		}
	default:
		return errors.New("unknown role")
	}
	for _, p := range m.Parts {
		if err := validatePart(m.Role, p, seen); err != nil {
			return err
		}
	}
	return nil
}

func validatePart(role providers.Role, p providers.Part, seen map[string]bool) error {
	switch {
	case p.Kind == providers.Call && role == providers.Assistant && p.Call != nil:
		if p.Call.ID == "" || seen[p.Call.ID] {
			return fmt.Errorf("call id %q is empty or was used before", p.Call.ID)
		}
		seen[p.Call.ID] = true
		var args map[string]json.RawMessage
		if err := json.Unmarshal(p.Call.Args, &args); err != nil || args == nil {
			return fmt.Errorf("arguments of call %s are not an object", p.Call.ID)
		}
	case p.Kind == providers.Call || p.Kind == providers.ResultPart:
		return fmt.Errorf("a %s part does not belong here", p.Kind)
	}
	return nil
}

// validateResults wants one result for each open call, and nothing else.
func validateResults(m providers.Message, open map[string]bool) error {
	for _, p := range m.Parts {
		if p.Kind != providers.ResultPart || p.Result == nil {
			return fmt.Errorf("a %s part is not a result", p.Kind)
		}
		if !open[p.Result.ID] {
			return fmt.Errorf("result %q answers no call before it, or twice", p.Result.ID)
		}
		delete(open, p.Result.ID)
	}
	if len(open) > 0 {
		return fmt.Errorf("%d calls have no result", len(open))
	}
	return nil
}

func callIDs(m providers.Message) map[string]bool {
	ids := map[string]bool{}
	if m.Role != providers.Assistant {
		return ids
	}
	for _, p := range m.Parts {
		if p.Kind == providers.Call && p.Call != nil {
			ids[p.Call.ID] = true
		}
	}
	return ids
}
