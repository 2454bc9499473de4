package chat

import (
	"bytes"
	"regexp"

	"pizza/providers/wire"
)

// quirks are ways in which a server differs, learned from what it refused.
type quirks struct {
	completionTokens bool // max_completion_tokens in place of max_tokens
	noStreamOptions  bool // no stream_options: there is no usage then
	noToolChoice     bool // no tool_choice: the model decides
	noReasoning      bool // reasoning is not taken back
}

var unsupported = regexp.MustCompile(`(?i)unsupported|not supported|does(n't| not) support|unknown|unrecognized|unexpected|not permitted|not allowed|only .{0,20}auto|is deprecated|instead`)

// learn reads a refusal that names an optional field which was sent, as one that the
// server does not know. A wrong value of a field (too large) teaches nothing.
func (q quirks) learn(f wire.Failure, sent []byte) (quirks, bool) {
	if !unsupported.MatchString(f.Message) {
		return q, false
	}
	named := func(field string) bool {
		return (f.Param == field || mentions(f.Message, field)) && bytes.Contains(sent, []byte(`"`+field+`":`))
	}
	switch {
	case named("max_tokens"):
		q.completionTokens = true
	case named("max_completion_tokens"):
		q.completionTokens = false
	case named("stream_options"), named("include_usage"):
		q.noStreamOptions = true
	case named("tool_choice"):
		q.noToolChoice = true
	case named("reasoning_content"), named("reasoning_details"), named("reasoning"):
		q.noReasoning = true
	default:
		return q, false
	}
	return q, true
}

// mentions looks for a field's name as a word: max_tokens is not in
// max_completion_tokens.
func mentions(text, field string) bool {
	return regexp.MustCompile(`(^|[^a-zA-Z0-9_])` + regexp.QuoteMeta(field) + `($|[^a-zA-Z0-9_])`).MatchString(text)
}
