package mail

import "time"

// Limit is the question whether a task that reached a limit shall go on.
type Limit struct {
	Sentence string // which limit is reached, plain text
	So       string // what it has so far and what is missing, plain text
	Expires  time.Time
	// ReplyAddress is the decision's; Subject that of the mail, for the links.
	ReplyAddress, Subject string
}

// LimitText asks continue or stop.
func LimitText(l Limit) (plain, html string) {
	d := &document{}
	d.say(sentence(l.Sentence))
	if l.So != "" {
		d.say(l.So)
	}
	d.say(expiry(l.Expires) + " Without an answer the task ends with what it has.")
	d.list("To decide, reply to this mail. The first line must be:",
		"Write the word continue and it goes on, with as much again.",
		"Write continue and a number to let it make that many more calls.",
		"Write the word stop and the task ends with what it has.")
	d.links("Or use a link, which writes that reply for you to send:", l.ReplyAddress, l.Subject, "continue", "stop")
	return d.plain.String(), d.html.String()
}

// LimitSubject is the subject of that question.
func LimitSubject(sentence string) string {
	return clip("Go on? "+gist(sentence), maxSubject)
}
