package mail

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The texts of the mails that answer a reply, end a run or show a task. All but
// FailureText are for Outgoing.Plain. Each says what happened and what to do; none
// has a line that is a verb by itself.

// About names the decision that a notice is about.
type About struct {
	Kind     string // ForApproval, ForUnknown, …
	Sentence string // what it decides about
	Expires  time.Time
	Always   bool // "always" is possible
}

// paragraphs joins wrapped paragraphs; one that begins with a blank stays as it is.
func paragraphs(ps ...string) string {
	var out []string
	for _, p := range ps {
		switch {
		case p == "":
		case p[0] == ' ' || strings.Contains(p, "\n"):
			out = append(out, p)
		default:
			out = append(out, wrap(p, proseWidth))
		}
	}
	return strings.Join(out, "\n\n")
}

func (a About) what() string {
	if a.Sentence == "" {
		return ""
	}
	return "It is about: " + sentence(a.Sentence)
}

// words says which words decide.
func (a About) words() string {
	switch a.Kind {
	case ForUnknown:
		return items("Write the word happened if it was done.", "Write the word repeat to have it done once more.", "Write the word stop to end the task.")
	case ForLimit:
		return items("Write the word continue to let it go on, or continue and a number, as in continue 5, to say how far.", "Write the word stop to end it.")
	case ForRestored:
		return items("Write the word continue to let everything go on.", "Write the word stop to end what was open.")
	}
	return items(approvalWords(a.Always)...)
}

// items are sentences as a list.
func items(list ...string) string {
	lines := make([]string, len(list))
	for i, s := range list {
		lines[i] = indented(s)
	}
	return strings.Join(lines, "\n")
}

// HelpText answers an unclear or empty reply. why is ParseDecision's.
func HelpText(a About, why string) string {
	reason := ""
	if why != "" {
		reason = "The reason: " + sentence(why)
	}
	if a.Kind == ForQuestion {
		return paragraphs("Your reply held no answer. The question is still open.", reason, a.what(),
			"Please reply once more: all that you write goes to the agent as your answer. Files do not; send those to the task, in a reply to one of its other mails.",
			expiry(a.Expires))
	}
	return paragraphs(
		"Your reply decided nothing, because it could not be read as a clear decision. The question is still open.",
		reason, a.what(),
		"Please reply once more. The first line must be one of these and nothing else:",
		a.words(),
		expiry(a.Expires))
}

// RefusedText answers a clear decision that is not possible; why is for the person.
func RefusedText(a About, why string) string {
	return paragraphs("Nothing was decided; the question is still open.",
		"The reason: "+sentence(why), a.what(), expiry(a.Expires))
}

// DifferenceText answers an approve over a changed block; diff is DiffBlock's.
func DifferenceText(a About, diff string) string {
	lines := strings.Split(strings.TrimSpace(diff), "\n")
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return paragraphs(
		"Your reply approves, but the arguments in it are not those that you were shown. Nothing was decided; the question is still open.",
		a.what(),
		"The difference (- as sent to you, + as in your reply):",
		strings.Join(lines, "\n"),
		"To approve what was shown, reply without the quoted text. To have it done as your reply has it, send it with the word edit in the place of approve, and what you want changed between the two marks.",
		expiry(a.Expires))
}

// DecidedText answers a decision that comes after another one. verb, login and via are
// as recorded: "approve", "ann", "reply".
func DecidedText(a About, verb, login, via string, at time.Time) string {
	by := ""
	if login != "" || via != "" {
		by = " by " + ByText(login, via)
	}
	return paragraphs(
		"This was already decided: "+pastOf(verb)+by+" on "+when(at)+". Your reply changed nothing.",
		a.what(),
		"If you want something else, reply to the task's last mail or write a new one.")
}

// ByText names who did something and how, to follow "by". login and via are as recorded:
// "ann", "reply".
func ByText(login, via string) string {
	how, known := map[string]string{
		"reply": "by reply", "move": "by moving the mail", "delete": "by deleting the mail",
		"cli": "on the command line", "expiry": "because nobody answered",
	}[via]
	switch {
	case via == "":
		return login
	case !known:
		how = via
	}
	if login == "" {
		return "nobody (" + how + ")"
	}
	return login + " (" + how + ")"
}

// pastOf is the participle of a verb or a state.
func pastOf(verb string) string {
	switch verb {
	case "approve":
		return "approved"
	case "edit":
		return "approved with other arguments"
	case "always":
		return "approved for this task from then on"
	case "reject":
		return "rejected"
	case "expire":
		return "expired"
	case "happened":
		return "answered “happened”"
	case "repeat", "stop", "continue", "answer":
		return "answered “" + verb + "”"
	}
	return verb
}

// ExpiredText answers a decision that comes too late, and tells of an expiry.
func ExpiredText(a About) string {
	return paragraphs(
		"This expired on "+when(a.Expires)+" before it was decided, so it was not done.",
		a.what(),
		"If you still want it, reply to the task's last mail or write a new one; you will be asked again.")
}

// EditProblemText answers an edit that cannot be taken; why is for the person.
func EditProblemText(a About, why string) string {
	return paragraphs(
		"Your change was not taken, and nothing was decided; the question is still open.",
		"The reason: "+sentence(why), a.what(),
		"Please reply once more to the mail that asks. Keep the arguments with both their marks in your reply, change them between the marks, and write the word edit on the first line. What you do not touch stays as it is.",
		expiry(a.Expires))
}

// EditedText tells which arguments an edit made final. plain is the block.
func EditedText(a About, tool string, args json.RawMessage, nonce string) (plain string, attach []byte) {
	d := &document{}
	d.say("Approved with your changes. This is what the agent was allowed, and these are the final arguments:")
	d.say(sentence(a.Sentence))
	attach = d.arguments(tool, args, nonce)
	return d.plain.String(), attach
}

// ReminderSubject is the subject of a reminder.
func ReminderSubject(list []About) string {
	if len(list) == 1 {
		return clip("Still waiting: "+gist(list[0].Sentence), maxSubject)
	}
	return fmt.Sprintf("Still waiting: %d decisions", len(list))
}

// ReminderText tells what still waits for a decision.
func ReminderText(list []About) string {
	if len(list) == 1 {
		a := list[0]
		return paragraphs("This still waits for you:", sentence(a.Sentence), expiry(a.Expires)+" Without an answer it will not be done.",
			"The mail that asks lies in Action, with all it is about. Reply to it, or to this mail:", a.words())
	}
	lines := make([]string, 0, len(list))
	for _, a := range list {
		lines = append(lines, "- "+sentence(a.Sentence)+" "+expiry(a.Expires))
	}
	return paragraphs("These still wait for you:", strings.Join(lines, "\n"), "The mails that ask lie in Action; reply to each.")
}

// GoneText answers a reply to a decision that is not there any more.
func GoneText() string {
	return paragraphs(
		"Your reply decided nothing: the task that asked has ended, or it never asked this.",
		"If you want something done, write a new mail to Pizza.")
}

// AskAgainText asks about more mails moved at once than are decided without asking.
func AskAgainText(n int, verb string) string {
	return paragraphs(
		fmt.Sprintf("%d mails were moved at once to be %s. That is more than three, so they were put back undecided: it may have been a mistake.", n, pastOf(verb)),
		"If you meant it, move them again in threes, or reply to each of them.")
}

// Failure is a run that ended without a result.
type Failure struct {
	Class  string // providers.Class; "" for a fault of ours
	Model  string
	Detail string // the provider's own words, without secrets
	Tries  int    // calls made, when more than one
	Task   string
}

// FailureText says what went wrong and what to do, as Markdown.
func FailureText(f Failure) string {
	model := "The model"
	if f.Model != "" {
		model = "The model " + oneLine(f.Model)
	}
	what, do := failureWords(f.Class, model)
	if f.Tries > 1 {
		what += fmt.Sprintf(" It was tried %d times.", f.Tries)
	}
	out := []string{"This task could not be finished.", what}
	if d := clip(oneLine(f.Detail), 600); d != "" {
		out = append(out, "In its own words:\n\n    "+d)
	}
	out = append(out, do)
	if f.Task != "" {
		out = append(out, "What was done until then is kept: `pizza show "+f.Task+"` shows it.")
	}
	return strings.Join(out, "\n\n")
}

// failureWords are what happened and what to do, by class.
func failureWords(class, model string) (what, do string) {
	again := "Reply to this mail to try again."
	switch class {
	case "poison":
		return "The server went down three times while it worked on this task, so the task was put aside and the others go on.",
			again + " If that happens again, the log tells what the server was doing."
	case "lost":
		return "The server went down each time before the answer of the model had come.",
			again + " If that happens again, look why the server went down: a stop by `kill -9`, the machine, or too little memory."
	case "auth":
		return model + " did not accept our key, or the account behind it has no credit.",
			"Check the key of that provider: its environment variable, or `providers` in settings.json. Start `pizza serve` again, then reply to this mail to try again."
	case "no_key":
		return model + " was not asked: there is no key for it.",
			"Set the key, start `pizza serve` again, then reply to this mail to try again."
	case "rate_limit":
		return model + " allows no more calls for now.", "Wait a while, then reply to this mail to try again, or choose another model."
	case "overloaded":
		return model + " is overloaded.", "Wait a while, then reply to this mail to try again."
	case "context_length":
		return "The task has become too long for the model: " + strings.TrimPrefix(model, "The model "),
			"Write a new mail with only what is needed, or choose a model that reads more."
	case "timeout":
		return model + " did not answer in time.", again
	case "network":
		return model + " could not be reached, or the connection broke.", "Check the connection and the provider's address in the settings, then reply to this mail to try again."
	case "filtered":
		return model + " refused, by its own rules about content.", "Write it in other words in a reply, or choose another model."
	case "invalid":
		return model + " did not accept the request.", "That is probably a wrong model name or setting: check `model` and `providers` in settings.json, and PIZZA_MODEL (what is in the environment needs a new start of `pizza serve`). Then reply to this mail to try again."
	case "failed":
		return model + " reports that it failed.", "Change what the task asks for, in a reply or in a new mail."
	}
	return "Something went wrong in Pizza Mail itself.", again + " If it happens again, the log has the cause."
}

// Status is a live task.
type Status struct {
	Task, Subject, State, For, Model string
	Since                            time.Time // when it began
	Now                              time.Time // when this was written
	Steps                            int       // calls made so far
	Last                             string    // what it did last, one sentence
	Origin                           string    // where the task came from, one sentence
	Doing                            Doing
	Workers                          []StatusWorker
}

// Doing is what somebody who is at work does now (Since), or waits for (Until a time, or
// for a word of the owner).
type Doing struct {
	What         string
	Since, Until time.Time
}

// line tells it, "" when nothing is known.
func (d Doing) line(now time.Time) string {
	what := clip(oneLine(d.What), 300)
	switch {
	case !d.Until.IsZero() && what == "":
		return "Next:  it goes on at " + clock(d.Until, now)
	case !d.Until.IsZero():
		return "Next:  " + what + " at " + clock(d.Until, now)
	case what == "":
		return ""
	case !d.Since.IsZero():
		return "Now:   " + what + ", since " + clock(d.Since, now)
	}
	return "Asks:  " + what
}

// clock is a time to the second, without its day when that is today.
func clock(t, now time.Time) string {
	y, m, day := t.Date()
	if ny, nm, nday := now.Date(); y == ny && m == nm && day == nday {
		return t.Format("15:04:05 MST")
	}
	return when(t)
}

// StatusWorker is a worker that is at work for a task.
type StatusWorker struct {
	Path       string // names of the workers from the task down to it
	State, For string
	Steps      int
	Last       string
	Doing      Doing
}

// StatusText is the text of the message in Running.
func StatusText(s Status) string {
	lines := []string{"State: " + StateText(s.State, s.For)}
	if !s.Since.IsZero() {
		lines = append(lines, "Since: "+when(s.Since))
	}
	if s.Model != "" {
		lines = append(lines, "Model: "+oneLine(s.Model))
	}
	if l := s.Doing.line(s.Now); l != "" {
		lines = append(lines, l)
	}
	if s.Steps > 0 {
		lines = append(lines, fmt.Sprintf("Steps: %d", s.Steps))
	}
	if s.Last != "" {
		lines = append(lines, "Last:  "+clip(oneLine(s.Last), 300))
	}
	if s.Origin != "" {
		lines = append(lines, "From:  "+clip(oneLine(s.Origin), 300))
	}
	if !s.Now.IsZero() {
		lines = append(lines, "As of: "+when(s.Now))
	}
	return paragraphs(
		"Task "+s.Task+": "+clip(oneLine(s.Subject), 200),
		strings.Join(lines, "\n"),
		workersText(s.Workers, s.Now),
		"To stop this task, delete this mail, or reply to it with the one word cancel in the first line.")
}

// StateText says in which state a task or a worker is, and what one that waits waits for.
func StateText(state, what string) string {
	switch what {
	case "":
		return state
	case "approval":
		return state + " for your approval (see Action)"
	case "question":
		return state + " for your answer (see Action)"
	case "limit":
		return state + " for your word whether to go on (see Action)"
	case "timer":
		return state + " until its model is tried again"
	case "workers":
		return state + " for its workers"
	}
	return state + " for " + what
}

// workersText is a line a worker.
func workersText(workers []StatusWorker, now time.Time) string {
	if len(workers) == 0 {
		return ""
	}
	lines := []string{"Workers:"}
	for _, w := range workers {
		line := "  " + oneLine(w.Path) + ": " + StateText(w.State, w.For)
		if w.Steps > 0 {
			line += ", " + steps(w.Steps)
		}
		if w.Last != "" {
			line += ", last " + clip(oneLine(w.Last), 80)
		}
		lines = append(lines, line)
		if l := w.Doing.line(now); l != "" {
			lines = append(lines, "    "+l)
		}
	}
	return strings.Join(lines, "\n")
}

// StatusSubject is its subject: the state before the task's own subject.
func StatusSubject(s Status) string {
	subject := BareSubject(s.Subject)
	if subject == "" {
		subject = "task " + s.Task
	}
	return clip("["+s.State+"] "+subject, maxSubject)
}

// Usage is what a result cost.
type Usage struct {
	Model               string
	Steps               int
	TokensIn, TokensOut int64
	Cost                string // with currency; "" if not known
	Took                time.Duration
}

// FooterText is the quiet line below a result.
func FooterText(u Usage) string {
	var out []string
	if u.Model != "" {
		out = append(out, oneLine(u.Model))
	}
	out = append(out, steps(u.Steps))
	if u.TokensIn+u.TokensOut > 0 {
		out = append(out, fmt.Sprintf("%d tokens in, %d out", u.TokensIn, u.TokensOut))
	}
	if u.Cost != "" {
		out = append(out, oneLine(u.Cost))
	}
	return strings.Join(append(out, took(u.Took)), " · ")
}

// took rounds a duration to what a person reads.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func steps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}
