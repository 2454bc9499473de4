package runbook

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"pizza/providers"
)

// kind of a step.
type kind int

const (
	stepCall kind = iota
	stepThink
	stepSay
	stepFail
)

// step is one line of a program, or several when its JSON wraps.
type step struct {
	kind kind
	text string // of say and fail
	wait time.Duration
	tool string
	args json.RawMessage // a JSON object, {} when bad
	bad  string          // why the arguments cannot be used
	and  bool            // joins the batch above it
}

// program is a parsed mail.
type program struct {
	steps  []step
	passed []string // lines that are no step, in order
	signed bool     // a signature was left out
}

// Step lines. The keyword may have any case.
var (
	callLine  = regexp.MustCompile(`(?is)^(and\s+)?call\s+([a-zA-Z0-9_][a-zA-Z0-9_.:/-]{0,127})\s*(.*)$`)
	wordLine  = regexp.MustCompile(`(?is)^(say|fail)(?:\s+(.*))?$`)
	thinkLine = regexp.MustCompile(`(?is)^think\s+([0-9][0-9a-zµ. ]*)$`)
)

// parse reads a program. It never fails: what is no step is passed over and named.
func parse(text string, tools []providers.ToolSpec) program {
	var p program
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	for i := 0; i < len(lines); {
		line := strings.TrimSpace(lines[i])
		if line == "--" { // signature: RFC 3676 section 4.3
			p.signed = strings.TrimSpace(strings.Join(lines[i+1:], "")) != ""
			break
		}
		s, used := parseStep(line, lines[i:], tools)
		switch {
		case used > 0:
			p.steps = append(p.steps, s)
			i += used
			continue
		case line != "":
			p.passed = append(p.passed, line)
		}
		i++
	}
	return p
}

// parseStep reads the step that begins at rest[0], trimmed in line, and says how
// many lines it took: 0 if the line is no step.
func parseStep(line string, rest []string, tools []providers.ToolSpec) (step, int) {
	if m := callLine.FindStringSubmatch(line); m != nil {
		return parseCall(m, rest, tools)
	}
	if m := wordLine.FindStringSubmatch(line); m != nil {
		k := stepSay
		if strings.EqualFold(m[1], "fail") {
			k = stepFail
		}
		return step{kind: k, text: strings.TrimSpace(m[2])}, 1
	}
	if m := thinkLine.FindStringSubmatch(line); m != nil {
		d, err := time.ParseDuration(strings.ToLower(strings.ReplaceAll(m[1], " ", "")))
		if err == nil && d >= 0 {
			return step{kind: stepThink, wait: min(d, maxThink)}, 1
		}
	}
	return step{}, 0
}

// parseCall tells a call from a sentence such as "Call me tomorrow": what follows
// the name is JSON, or the name is one of the tools.
func parseCall(m []string, rest []string, tools []providers.ToolSpec) (step, int) {
	name, known := toolNamed(m[2], tools)
	s := step{kind: stepCall, tool: name, and: m[1] != ""}
	raw := m[3]
	if !known && !startsJSON(raw) {
		return step{}, 0
	}
	if raw == "" {
		s.args = json.RawMessage("{}")
		return s, 1
	}
	raw, used := gather(raw, rest)
	s.args, s.bad = arguments(raw)
	return s, used
}

func startsJSON(s string) bool { return s != "" && strings.Contains(`{["`, s[:1]) }

// toolNamed finds the declared tool of a name in any case.
func toolNamed(name string, tools []providers.ToolSpec) (string, bool) {
	for _, t := range tools {
		if strings.EqualFold(t.Name, name) {
			return t.Name, true
		}
	}
	return name, false
}

// gather appends the following lines to JSON that a mail program has wrapped, up to
// the one that closes it. JSON that nothing closes is left as it is on its own line:
// the lines after it are then steps of their own.
func gather(raw string, rest []string) (string, int) {
	b := balance{}
	if b.feed(raw); b.closed() {
		return raw, 1
	}
	var joined strings.Builder
	joined.WriteString(raw)
	for i, line := range rest[1:] {
		line = strings.TrimSpace(line)
		if m := callLine.FindStringSubmatch(line); m != nil && startsJSON(m[3]) || line == "--" {
			break // also keeps the cost linear: no line is looked at for two calls
		}
		// The line break stands for the space at which the program wrapped.
		joined.WriteString(" " + line)
		if b.feed(" " + line); b.closed() {
			return joined.String(), i + 2
		}
	}
	return raw, 1
}

// balance follows the brackets of JSON outside its strings.
type balance struct {
	depth  int
	quoted bool
	escape bool
}

func (b *balance) feed(s string) {
	for _, r := range s {
		switch {
		case b.escape:
			b.escape = false
		case b.quoted && r == '\\':
			b.escape = true
		case r == '"' || r == '“' && !b.quoted || r == '”' && b.quoted:
			b.quoted = !b.quoted
		case b.quoted:
		case r == '{' || r == '[':
			b.depth++
		case r == '}' || r == ']':
			b.depth--
		}
	}
}

func (b *balance) closed() bool { return !b.quoted && b.depth <= 0 }

// typographic undoes what mail programs do to JSON while it is typed.
var typographic = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "\u00a0", " ")

// arguments returns the JSON object in raw, or {} and why it is none. Typographic
// quotes are taken as plain ones only where raw is no JSON without that.
func arguments(raw string) (json.RawMessage, string) {
	for _, s := range []string{raw, typographic.Replace(raw)} {
		if !json.Valid([]byte(s)) {
			continue
		}
		if !strings.HasPrefix(s, "{") {
			return json.RawMessage("{}"), "the arguments are not a JSON object"
		}
		var out bytes.Buffer
		if err := json.Compact(&out, []byte(s)); err == nil {
			return out.Bytes(), ""
		}
	}
	var v any
	err := json.Unmarshal([]byte(raw), &v)
	return json.RawMessage("{}"), "the arguments are not JSON: " + err.Error()
}

// turn is what comes after a number of answers.
type turn struct {
	found bool
	think time.Duration
	fail  *string
	calls []step // empty: the program is at its end
}

// after returns the turn that follows done answers; found is false if the program
// has no step or has already ended.
func (p program) after(done int) turn {
	t := turn{found: len(p.steps) > 0}
	for i := 0; i < len(p.steps); i++ {
		s := p.steps[i]
		switch s.kind {
		case stepThink:
			t.think += s.wait
		case stepFail:
			if done == 0 {
				t.fail = &p.steps[i].text
				return t
			}
			return turn{} // it has failed: an answer after that is none of this program
		case stepCall:
			end := p.batchEnd(i)
			if done == 0 {
				t.calls = p.steps[i:end]
				return t
			}
			done, i, t.think = done-1, end-1, 0
		}
	}
	t.found = t.found && done == 0
	return t
}

// batchEnd returns the index after the batch that begins at i.
func (p program) batchEnd(i int) int {
	end := i + 1
	for end < len(p.steps) && p.steps[end].kind == stepCall && p.steps[end].and {
		end++
	}
	return end
}
