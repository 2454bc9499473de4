package mail

import (
	"html"
	"strings"
	"time"
	"unicode/utf8"
)

// Question is what the agent wants to know of the owner.
type Question struct {
	By       string // the worker that asks, one sentence; "" when the task itself does
	Task     string // subject of the task
	Question string // the agent's words, plain text of any number of lines
	Expires  time.Time
}

// maxQuestion is how much of a question is shown, characters.
const maxQuestion = 4000

// QuestionText asks it. The words of the agent stand indented, so that they cannot pass
// for ours.
func QuestionText(q Question) (plain, htmlText string) {
	d := &document{}
	d.maySay(q.By)
	d.say("The agent asks you (its own words):")
	d.quote(q.Question)
	d.about(q.Task)
	d.say(expiry(q.Expires) + " Without an answer the agent goes on without one.")
	d.say("Reply to this mail: all that you write goes to the agent as your answer. A reply of the two words cancel task, and nothing else, ends the task instead.")
	return d.plain.String(), d.html.String()
}

// QuestionSubject is the subject of that mail.
func QuestionSubject(question string) string {
	return clip("Question: "+gist(question), maxSubject)
}

// quote adds words that are not ours, indented, line by line.
func (d *document) quote(text string) {
	text = strings.TrimSpace(breakMailto(visible(text)))
	if utf8.RuneCountInString(text) > maxQuestion {
		text = string([]rune(text)[:maxQuestion]) + " …"
	}
	d.gap()
	for l := range strings.SplitSeq(text, "\n") {
		for part := range strings.SplitSeq(wrap(strings.TrimRight(l, " \t\r"), proseWidth), "\n") {
			d.plain.WriteString(strings.TrimRight("  | "+part, " ") + "\n")
		}
	}
	d.html.WriteString("<blockquote>" + strings.ReplaceAll(html.EscapeString(text), "\n", "<br>\n") + "</blockquote>\n")
}
