package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"pizza/internal/jsonschema"
	"pizza/internal/tools"
)

// maxQuestion is the length of a question to the owner, characters.
const maxQuestion = 4000

// questionSchema is the schema of ask_owner.
const questionSchema = `{"type":"object","properties":{"question":{"type":"string","minLength":1,"maxLength":4000,"description":"The question, plain text"}},"required":["question"],"additionalProperties":false}`

// askOwner is the tool by which the agent asks its owner: a decision of kind question,
// whose whole answer is the result. It never runs: policy has it asked, and the answer
// settles it.
var askOwner = own{
	spec: tools.Spec{
		Name:        "ask_owner",
		Description: "Ask the owner of this task a question by mail and wait for the answer, which is the result. Ask only what you cannot find out yourself and need to go on; the answer may take days. Ask one thing at a time, in plain words.",
		Schema:      json.RawMessage(questionSchema),
	},
	asks: decisionQuestion,
	plan: func(_ *Agent, c tools.Call) tools.Plan {
		q, err := questionOf(c.Args)
		if err != nil {
			return tools.Plan{Class: tools.ReadOnly, Rule: tools.Invalid, Reason: err.Error()}
		}
		return tools.Plan{Class: tools.ReadOnly, Rule: tools.Ask, Sentence: "Ask you: " + q}
	},
}

// questionOf reads the arguments of ask_owner.
func questionOf(args json.RawMessage) (string, error) {
	var a struct{ Question string }
	if err := jsonschema.Check(json.RawMessage(questionSchema), args); err != nil {
		return "", fmt.Errorf("ask_owner: %w", err)
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return "", fmt.Errorf("ask_owner: %w", err)
	}
	switch q := strings.TrimSpace(a.Question); {
	case q == "":
		return "", fmt.Errorf("ask_owner: the question is empty")
	case utf8.RuneCountInString(q) > maxQuestion:
		return "", fmt.Errorf("ask_owner: the question is longer than %d characters", maxQuestion)
	default:
		return q, nil
	}
}
