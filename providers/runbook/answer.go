package runbook

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"pizza/providers"
)

const (
	maxShown  = 4000 // characters shown of one result
	maxArgs   = 200  // characters shown of the arguments of a call
	maxPassed = 20   // lines named that are no step
	maxLine   = 80   // characters shown of such a line
)

// guide answers a mail without a step.
const guide = `No AI model is set up for this task, so nothing was done with this mail.

To set one up, start the server with the name of a model, for example

    PIZZA_MODEL=ollama:MODEL            a model of an Ollama on this machine, no key
    PIZZA_MODEL=openai:MODEL            with your key in OPENAI_API_KEY

(PIZZA_OPENAI_BASE_URL points "openai" at any other server that speaks Chat Completions.)

Without a model, a mail can still hold steps, one a line, which are done exactly as written:

    call list_folder {"path": "/local"}
    call write_file {"path": "/out/note.txt", "content": "hello"}
    and call read_file {"path": "/in/letter.txt"}
    think 2s
    say This is the text of the answer.
    fail This makes the task fail.

A line that begins with "and call" joins the batch above it. Your mail had no such line.`

// answer tells what was said and what each call of the turns after the program
// returned. It is Markdown; what tools returned stands in code blocks, because it is
// data.
func (p program) answer(after []providers.Message) string {
	var said, blocks []string
	for _, s := range p.steps {
		if s.kind == stepSay {
			said = append(said, s.text)
		}
	}
	if text := strings.Trim(strings.Join(said, "\n"), "\n"); text != "" {
		blocks = append(blocks, text)
	}
	blocks = append(blocks, told(after)...)
	if len(blocks) == 0 {
		blocks = append(blocks, "Done.")
	}
	if passed := p.passedOver(); passed != "" {
		blocks = append(blocks, passed)
	}
	return strings.Join(blocks, "\n\n")
}

// told gives one block a call, in the order of the calls.
func told(after []providers.Message) []string {
	results := map[string]*providers.ToolResult{}
	for _, m := range after {
		for _, part := range m.Parts {
			if part.Kind == providers.ResultPart && part.Result != nil {
				results[part.Result.ID] = part.Result
			}
		}
	}
	var blocks []string
	for _, m := range after {
		for _, part := range m.Parts {
			if part.Kind == providers.Call && part.Call != nil {
				blocks = append(blocks, tell(part.Call, results[part.Call.ID]))
			}
		}
	}
	return blocks
}

func tell(c *providers.ToolCall, r *providers.ToolResult) string {
	head := "`" + c.Name + "`"
	if args := string(c.Args); args != "{}" {
		shown, _ := cut(strings.Map(plain, args), maxArgs)
		head = "`" + c.Name + " " + shown + "`"
	}
	switch {
	case r == nil:
		return head + " has no result."
	case r.Error:
		return head + " failed:\n\n" + block(r.Content)
	case strings.TrimSpace(r.Content) == "" && len(r.Media) == 0:
		return head + " returned nothing."
	}
	for _, m := range r.Media {
		r = &providers.ToolResult{Content: r.Content + fmt.Sprintf("\n(%s %s)", m.Media, m.Name)}
	}
	return head + " returned:\n\n" + block(r.Content)
}

// plain keeps a code span on one line and closed.
func plain(r rune) rune {
	switch {
	case r == '`':
		return '\''
	case r < ' ':
		return ' '
	}
	return r
}

// block is an indented code block of a result, cut where it is long.
func block(content string) string {
	content = strings.Trim(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	shown, was := cut(content, maxShown)
	if was > 0 {
		shown += fmt.Sprintf("\n(%d of %d characters shown)", maxShown, was)
	}
	lines := strings.Split(shown, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight("    "+l, " ")
	}
	return strings.Join(lines, "\n")
}

// cut keeps the first n characters of s. If that is not all, it also returns how
// many there were.
func cut(s string, n int) (string, int) {
	if len(s) <= n {
		return s, 0
	}
	was := utf8.RuneCountInString(s)
	if was <= n {
		return s, 0
	}
	at := 0
	for range n {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at] + "…", was
}

// passedOver names the lines that are no step, so that nothing is passed over in
// silence.
func (p program) passedOver() string {
	var quoted []string
	for i, line := range p.passed {
		if i == maxPassed {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(p.passed)-i))
			break
		}
		shown, _ := cut(line, maxLine)
		quoted = append(quoted, "`"+strings.Map(plain, shown)+"`")
	}
	if len(quoted) > 0 && p.signed {
		quoted = append(quoted, "and the signature")
	}
	if len(quoted) == 0 {
		return ""
	}
	return "Not understood, so not done: " + strings.Join(quoted, ", ") + "."
}
