package mail

import (
	"strconv"
	"time"
)

// Limit is the question whether a task that reached a limit shall go on. All texts are
// plain; empty ones are left out.
type Limit struct {
	Sentence string   // which limit is reached
	By       string   // who reached it, a sentence; empty: the task itself
	Task     string   // subject of the task
	Done     []string // what was done so far, one thing a line
	Missing  []string // what was not, likewise
	Said     string   // the last words of the model; 500 characters are shown
	Again    string   // what continue gives: "with 20 further model calls"
	More     string   // what a number behind it does: "to let it make that many more model calls"
	Stop     string   // what stop does: "the task ends with what it has"
	Without  string   // what happens without an answer
	Expires  time.Time
	// ReplyAddress is the decision's; Subject that of the mail, for the links.
	ReplyAddress, Subject string
}

// maxListed is how many lines a list in a question has.
const maxListed = 20

// LimitText asks continue or stop.
func LimitText(l Limit) (plain, html string) {
	d := &document{}
	d.say(sentence(l.Sentence))
	d.maySay(l.By)
	d.about(l.Task)
	if len(l.Done) > 0 {
		d.list("Done so far:", listed(l.Done)...)
	}
	if len(l.Missing) > 0 {
		d.list("Still missing:", listed(l.Missing)...)
	}
	d.say(expiry(l.Expires) + " " + l.Without)
	words := []string{"Write the word continue and it goes on."}
	if l.Again != "" {
		words = []string{"Write the word continue and it goes on, " + l.Again + "."}
	}
	if l.More != "" {
		words = append(words, "Write continue and a number, as in continue 5, "+l.More+".")
	}
	d.list("To decide, reply to this mail. The first line must be:", append(words, "Write the word stop and "+l.Stop+".")...)
	d.links("Or use a link, which writes that reply for you to send:", l.ReplyAddress, l.Subject, "continue", "stop")
	d.agentSays(l.Said)
	return d.plain.String(), d.html.String()
}

// listed are lines for a list, the first of them only when there are many.
func listed(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines[:min(len(lines), maxListed)] {
		out = append(out, "- "+clip(oneLine(l), 200))
	}
	if n := len(lines) - maxListed; n > 0 {
		out = append(out, "- and "+strconv.Itoa(n)+" more")
	}
	return out
}

// LimitSubject is the subject of that question.
func LimitSubject(sentence string) string {
	return clip("Go on? "+gist(sentence), maxSubject)
}
