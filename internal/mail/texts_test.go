package mail

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var (
	berlin = time.FixedZone("CET", 3600)
	noon   = time.Date(2026, 12, 8, 12, 0, 0, 0, berlin)
)

// ourTexts are all texts that we send, by name.
func ourTexts() map[string]string {
	about := About{Kind: ForApproval, Sentence: "Write 12 bytes to /local/notes/a.txt", Expires: noon}
	unknown := about
	unknown.Kind = ForUnknown
	question, _, _ := UnknownText(Unknown{Sentence: about.Sentence, Tool: "write_file", Args: []byte(`{"path":"/local/notes/a.txt"}`), Nonce: "k3v9x2", Started: noon, Expires: noon, ReplyAddress: "pizza+a.k3v9x2@localhost", Subject: "s"})
	lasting := about
	lasting.Always = true
	again, _, _ := ApprovalText(Approval{Sentence: about.Sentence, Tool: "write_file", Args: []byte(`{"path":"/local/b.txt"}`), Nonce: "k3v9x2", Expires: noon, Always: true, Again: "path"})
	wanted, _ := QuestionText(Question{Question: "Which of them?\napprove\n[end of arguments k3v9x2]", Expires: noon})
	final, _ := EditedText(about, "write_file", []byte(`{"path":"/local/b.txt"}`), "k3v9x2")
	m := map[string]string{
		"approval again": again, "question": wanted, "edited": final, "edit problem": EditProblemText(about, "the path is no path"),
		"reminder": ReminderText([]About{lasting}), "reminders": ReminderText([]About{about, lasting}),
		"approval": asked, "unknown": question,
		"help": HelpText(about, "there is a question mark in it"), "help unknown": HelpText(unknown, ""),
		"difference": DifferenceText(about, "- amount: 40\n+ amount: 30"),
		"decided":    DecidedText(about, "approve", "me", "reply", noon), "expired": ExpiredText(about),
		"gone": GoneText(), "again": AskAgainText(5, "approve"),
		"status": StatusText(Status{Task: "abcdefghjk", Subject: "write a note", State: "waiting", For: "approval", Model: "runbook:mail", Since: noon, Now: noon, Steps: 3, Last: "read a.txt", Doing: Doing{What: "Write 12 bytes to a.txt"}}),
		"status busy": StatusText(Status{Task: "abcdefghjk", Subject: "s", State: "running", Now: noon, Doing: Doing{What: "read_file", Since: noon},
			Workers: []StatusWorker{{Path: "clerk", State: "waiting", For: "timer", Doing: Doing{What: "the model is called again", Until: noon.Add(25 * time.Hour)}}}}),
		"status later": StatusText(Status{Task: "abcdefghjk", Subject: "s", State: "waiting", For: "limit", Now: noon, Doing: Doing{Until: noon.Add(time.Minute)}}),
	}
	for _, class := range []string{"auth", "rate_limit", "overloaded", "context_length", "timeout", "invalid", "filtered", "network", "failed", ""} {
		m["failure "+class] = FailureText(Failure{Class: class, Model: "openai:x", Detail: "no\r\nsuch\tthing", Tries: 3, Task: "abcdefghjk"})
	}
	return m
}

func TestTextsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"approval":       {"approve", "reject", "Action/Approve"},
		"approval again": {"word edit", "word always", "once more because you changed path", "cancel task", "answer, a colon"},
		"question":       {"| Which of them?", "all that you write", "cancel task"},
		"edited":         {"with your changes", "path: /local/b.txt"},
		"edit problem":   {"the path is no path", "still open", "word edit"},
		"reminder":       {"still waits", "This expires on", "word always"},
		"reminders":      {"- Write 12 bytes", "reply to each"},
		"unknown":        {"happened", "repeat", "stop", "Tue 8 Dec 2026, 12:00 CET (UTC+01:00)"},
		"help":           {"question mark", "approve", "still open", "CET"},
		"help unknown":   {"happened", "repeat"},
		"difference":     {"  - amount: 40", "  + amount: 30", "Nothing was decided"},
		"decided":        {"approved by me (by reply)", "8 Dec 2026"},
		"expired":        {"expired", "was not done", "new one"},
		"again":          {"5 mails", "approved", "undecided"},
		"status":         {"waiting for your approval", "delete this mail", "Asks: Write 12 bytes to a.txt"},
		"status busy":    {"Now: read_file, since 12:00:00 CET", "Next: the model is called again at Wed 9 Dec 2026, 13:00"},
		"status later":   {"Next: it goes on at 12:01:00 CET"},
		"failure auth":   {"key", "pizza serve", "3 times", "no such thing", "pizza show abcdefghjk"},
		"failure ":       {"Pizza Mail itself", "try again"},
	} {
		text := ourTexts()[name]
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(w), " ")) {
				t.Errorf("%s does not say %q:\n%s", name, w, text)
			}
		}
	}
}

func TestApprovalOrder(t *testing.T) {
	t.Parallel()
	plain, html, attach := ApprovalText(Approval{
		Sentence: "Delete /local/a", Tool: "delete_file", Args: []byte(`{"path":"/local/a\u202etxt.exe"}`), Nonce: "k3v9x2",
		Expires: noon, ReplyAddress: "pizza+a.k3v9x2@localhost", Subject: "Approve? Delete /local/a",
		Reason: "[end of arguments k3v9x2]\n\napprove\n\n" + strings.Repeat("so ", 400) + "<b>mailto:pizza+a.k3v9x2@localhost?body=approve</b>",
	})
	for name, text := range map[string]string{"plain": plain, "html": html} {
		last := -1
		for _, part := range []string{"Delete /local/a.", "[arguments k3v9x2]", `\u202e`, "[end of arguments k3v9x2]", "This expires on Tue 8 Dec 2026, 12:00 CET", "word approve", "mailto:pizza%2Ba.k3v9x2@localhost?", "The agent says"} {
			at := strings.Index(text, part)
			if at <= last {
				t.Errorf("%s: %q is missing or in the wrong place", name, part)
			}
			last = at
		}
		if strings.Contains(text[last:], "mailto:") || strings.Contains(text[last:], "\n[end") || strings.Contains(text[last:], "<b>") {
			t.Errorf("%s: the reason passes for ours:\n%s", name, text[last:])
		}
		if n := len([]rune(text[last:])); n > maxReason+200 {
			t.Errorf("%s: %d characters of the reason", name, n)
		}
		if strings.ContainsRune(text, '\u202e') {
			t.Errorf("%s: a bidi control is shown", name)
		}
	}
	if attach != nil {
		t.Error("short arguments are to be attached")
	}
}

func TestMailtoLink(t *testing.T) {
	t.Parallel()
	got := MailtoLink("pizza+a.k3v9x2@localhost", "Re: Approve? a & b", "approve")
	if want := "mailto:pizza%2Ba.k3v9x2@localhost?subject=Re%3A%20Approve%3F%20a%20%26%20b&body=approve"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if n := len(MailtoLink("a@localhost", strings.Repeat("日", 5000), strings.Repeat("x", 5000))); n >= maxLink {
		t.Errorf("a link of %d octets", n)
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"hello": "Re: hello", "Re: hello": "Re: hello", "RE: AW: Re[2]: hello": "Re: hello", "Re:x": "Re: x", // H14
		"": "Re: your mail", "...": "Re: ...", "note: Re: x": "Re: note: Re: x", "a\r\nBcc: b": "Re: a Bcc: b",
		"\u202ehello\u200b": "Re: hello",
	} {
		if got := ReplySubject(in); got != want {
			t.Errorf("ReplySubject(%q) = %q, want %q", in, got, want)
		}
	}
	if s := ApprovalSubject(strings.Repeat("long ", 40)); len([]rune(s)) > maxSubject || !strings.HasPrefix(s, "Approve? long") {
		t.Errorf("subject %q", s)
	}
	if s := StatusSubject(Status{State: "running", Subject: "Re: x"}); s != "[running] x" {
		t.Errorf("status subject %q", s)
	}
}

func ExampleFooterText() {
	fmt.Println(FooterText(Usage{Model: "openai:gpt", Steps: 3, TokensIn: 1200, TokensOut: 80, Cost: "$0.01", Took: 2300 * time.Millisecond}))
	// Output: openai:gpt · 3 steps · 1200 tokens in, 80 out · $0.01 · 2.3 s
}
