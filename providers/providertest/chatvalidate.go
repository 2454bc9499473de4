package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ChatBody is the body of a Chat Completions request.
type ChatBody struct {
	Model               string          `json:"model"`
	Messages            []ChatMessage   `json:"messages"`
	Tools               []ChatTool      `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// ChatMessage is one message.
type ChatMessage struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	ToolCalls        []ChatCall      `json:"tool_calls"`
	ToolCallID       string          `json:"tool_call_id"`
	Refusal          string          `json:"refusal"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        string          `json:"reasoning"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
}

// ChatCall is a tool call of the assistant.
type ChatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// ChatTool declares a tool.
type ChatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Text is a content that is text, else its JSON.
func (m ChatMessage) Text() string {
	var s string
	if json.Unmarshal(m.Content, &s) != nil {
		return string(m.Content)
	}
	return s
}

var callID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// decodeChat refuses fields that the API does not have.
func decodeChat(body []byte) (ChatBody, error) {
	var b ChatBody
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return b, d.Decode(&b)
}

func (b ChatBody) validate(anyID bool) error {
	switch {
	case b.Model == "":
		return errors.New("you must provide a model parameter")
	case !b.Stream:
		return errors.New("stream is not set")
	case b.MaxTokens != 0 && b.MaxCompletionTokens != 0:
		return errors.New("max_tokens and max_completion_tokens are both set")
	case len(b.Tools) > 128:
		return errors.New("tools: at most 128")
	case len(b.Tools) == 0 && len(b.ToolChoice) > 0:
		return errors.New("tool_choice without tools")
	}
	for _, t := range b.Tools {
		if t.Type != "function" || !callID.MatchString(t.Function.Name) {
			return fmt.Errorf("tools: name %q or type %q is not legal", t.Function.Name, t.Type)
		}
		if err := validateSchema(t.Function.Parameters); err != nil {
			return fmt.Errorf("tools: %s: %w", t.Function.Name, err)
		}
	}
	return validateChatMessages(b.Messages, anyID)
}

// validateChatMessages walks the roles: system, then user, then turns; each call is
// answered at once and nothing else is.
func validateChatMessages(ms []ChatMessage, anyID bool) error {
	if len(ms) > 0 && ms[0].Role == "system" {
		if strings.TrimSpace(ms[0].Text()) == "" {
			return errors.New("messages: blank system text")
		}
		ms = ms[1:]
	}
	if len(ms) == 0 || ms[0].Role != "user" {
		return errors.New("messages: the first is not from the user")
	}
	open, seen, before := map[string]bool{}, map[string]bool{}, ""
	for i, m := range ms {
		if err := m.validate(before, open, seen, anyID); err != nil {
			return fmt.Errorf("messages[%d] (%s): %w", i, m.Role, err)
		}
		before = m.Role
	}
	if before == "assistant" {
		return errors.New("messages: the last is from the assistant")
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: %d tool calls have no answer", len(open))
	}
	return nil
}

func (m ChatMessage) validate(before string, open, seen map[string]bool, anyID bool) error {
	if m.Role != "tool" && len(open) > 0 {
		return fmt.Errorf("an assistant message with tool_calls must be followed by tool messages; %d are missing", len(open))
	}
	if m.Role == before && m.Role != "tool" {
		return errors.New("roles must alternate")
	}
	switch m.Role {
	case "user":
		return validateContent(m.Content)
	case "tool":
		if !open[m.ToolCallID] {
			return fmt.Errorf("tool_call_id %q answers nothing", m.ToolCallID)
		}
		delete(open, m.ToolCallID)
		return validateContent(m.Content)
	case "assistant":
		return m.validateTurn(open, seen, anyID)
	}
	return errors.New("unknown role")
}

func (m ChatMessage) validateTurn(open, seen map[string]bool, anyID bool) error {
	if string(m.Content) != "null" {
		if err := validateContent(m.Content); err != nil {
			return err
		}
	} else if len(m.ToolCalls) == 0 && m.Refusal == "" {
		return errors.New("neither content nor tool_calls")
	}
	for _, c := range m.ToolCalls {
		var args map[string]json.RawMessage
		switch {
		case c.ID == "" || !anyID && !callID.MatchString(c.ID):
			return fmt.Errorf("call id %q is not legal", c.ID)
		case seen[c.ID]:
			return fmt.Errorf("call id %q was used before", c.ID)
		case c.Type != "function" || !callID.MatchString(c.Function.Name):
			return fmt.Errorf("call of %q is not legal", c.Function.Name)
		case json.Unmarshal([]byte(c.Function.Arguments), &args) != nil || args == nil:
			return fmt.Errorf("arguments %q are no object", c.Function.Arguments)
		}
		open[c.ID], seen[c.ID] = true, true
	}
	return nil
}

func validateContent(content json.RawMessage) error {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if strings.TrimSpace(text) == "" {
			return errors.New("blank text")
		}
		return nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL *struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File *struct {
			Data string `json:"file_data"`
		} `json:"file"`
	}
	if err := json.Unmarshal(content, &parts); err != nil || len(parts) == 0 {
		return errors.New("content is neither text nor parts")
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && strings.TrimSpace(p.Text) != "":
		case p.Type == "image_url" && p.ImageURL != nil && strings.HasPrefix(p.ImageURL.URL, "data:image/"):
		case p.Type == "file" && p.File != nil && strings.HasPrefix(p.File.Data, "data:application/pdf;"):
		default:
			return fmt.Errorf("a part of type %q is not legal", p.Type)
		}
	}
	return nil
}
