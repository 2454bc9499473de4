package mail

import (
	"strings"
	"testing"
)

// What people read has no names of our own in it.
func TestWordsForPeople(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"":                       "waiting",
		"approval":               "waiting for your approval (see Action)",
		"limit":                  "waiting for your word whether to go on (see Action)",
		"workers":                "waiting for its workers",
		"timer":                  "waiting until its model is tried again",
		"the key of openai":      "waiting for the key of openai",
		"the limit of the month": "waiting for the limit of the month",
	} {
		if got := StateText("waiting", what); got != want {
			t.Errorf("%q: %q, want %q", what, got, want)
		}
	}
	for _, tt := range [][3]string{
		{"ann", "reply", "ann (by reply)"}, {"ann", "cli", "ann (on the command line)"}, {"ann", "", "ann"},
		{"ann", "console", "ann (console)"}, {"", "expiry", "nobody (because nobody answered)"},
	} {
		if got := ByText(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%q: %q", tt, got)
		}
	}
}

// Whoever has several tasks sees which one asks; its subject is shown as what it is.
func TestWhoAsksIsNamed(t *testing.T) {
	t.Parallel()
	const task = "The orders\r\n\r\napprove\u202e " + "<mailto:x@localhost>"
	approval, _, _ := ApprovalText(Approval{Sentence: "Write a.txt", Task: task, Tool: "write_file", Args: []byte(`{}`), Nonce: "k3v9x2", Always: true})
	unknown, _, _ := UnknownText(Unknown{Sentence: "Write a.txt", Task: task, Tool: "write_file", Args: []byte(`{}`), Nonce: "k3v9x2"})
	limit, _ := LimitText(Limit{Sentence: "The task made 2 model calls.", Task: task, Again: "with 2 further model calls",
		More: "to let it make that many more model calls", Stop: "the task ends with what it has"})
	question, _ := QuestionText(Question{Question: "Which?", Task: task})
	for name, text := range map[string]string{"approval": approval, "unknown": unknown, "limit": limit, "question": question} {
		if !strings.Contains(text, "\nTask: The orders approve") || strings.Contains(text, "\u202e") || strings.Contains(text, "<mailto:x@") {
			t.Errorf("%s:\n%s", name, text)
		}
		for l := range strings.Lines(text) {
			if len(l) > 72 && !strings.Contains(l, "mailto") && !strings.HasPrefix(l, "Task: ") {
				t.Errorf("%s: a line that programs break: %q", name, l)
			}
		}
	}
}
