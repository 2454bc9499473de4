package mail

import (
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"time"
)

const (
	proseWidth = 64  // of our own sentences: programs do not wrap them when they quote
	maxReason  = 500 // characters of the agent's reason that are shown
	maxLink    = 1500
	maxSubject = 78
)

// Approval is a decision to ask for.
type Approval struct {
	Sentence     string // what will happen, from the tool's own template
	By           string // who asks, a sentence; "": the task itself
	Task         string // subject of the task, ""
	Tool         string
	Args         json.RawMessage // a JSON object
	Nonce        string          // of the marks
	Expires      time.Time       // shown with its zone
	ReplyAddress string          // pizza+a.<token>@…
	Subject      string          // of the approval mail
	Reason       string          // the agent's, plain; 500 characters are shown
	Always       bool            // "always" is possible
	Outside      bool            // it is asked about because the task holds text of others
	Again        string          // what was changed by an edit that this asks about once more, in words
}

// Unknown is a question about a call whose outcome is not known; the fields are
// as in Approval.
type Unknown struct {
	Sentence     string
	By           string
	Task         string
	Tool         string
	Args         json.RawMessage
	Nonce        string
	Started      time.Time // when the call was begun
	Said         string    // by the tool or about it, when the work was not just cut off; plain, 500 characters are shown
	Expires      time.Time
	ReplyAddress string
	Subject      string
}

// ApprovalText is the text of an approval mail, as Outgoing.Plain and .HTML: what will
// happen, the arguments, when it expires, how to answer, links, and last what the
// agent says. attachArgs is not nil when the arguments are too long to be shown
// whole: attach them as arguments.json.
func ApprovalText(a Approval) (plain, html string, attachArgs []byte) {
	d := &document{}
	d.say(sentence(a.Sentence))
	d.maySay(a.By)
	if a.Outside {
		d.say("You are asked because the task was told text that you did not write, and this may reach other people or machines.")
	}
	if a.Again != "" {
		d.say("You are asked once more because you changed " + oneLine(a.Again) + ". These are the final arguments:")
	}
	d.about(a.Task)
	attachArgs = d.arguments(a.Tool, a.Args, a.Nonce)
	d.say(expiry(a.Expires) + " Without an answer it will not be done.")
	d.list("To decide, reply to this mail. The first line must be one of these:", approvalWords(a.Always)...)
	d.say("You can also move this mail to the folder Action/Approve or Action/Reject.")
	d.links("Or use a link, which writes that reply for you to send:", a.ReplyAddress, a.Subject,
		"approve", "reject")
	d.agentSays(a.Reason)
	return d.plain.String(), d.html.String(), attachArgs
}

// approvalWords says which words decide an approval. No line is one of them alone.
func approvalWords(always bool) []string {
	words := []string{
		"Write the word approve and it is done, exactly so, once.",
		"Write the word reject and it is not done. You may add why, after a colon or on the lines below; the agent reads it.",
		"Write the word edit to change it first: keep the arguments in your reply, with both their marks, and change them there.",
		"Write answer, a colon and a text to tell the agent something instead; it is not done then.",
		"Write the words cancel task to end the whole task.",
	}
	if always {
		words = append(words, "Write the word always and it is done, and this tool is not asked about again in this task (pizza policies takes that back).")
	}
	return words
}

// UnknownText asks happened, repeat or stop about a call that was cut off; results as
// ApprovalText.
func UnknownText(u Unknown) (plain, html string, attachArgs []byte) {
	d := &document{}
	because := ", because the work was cut off at that moment"
	if u.Said != "" {
		because = ""
	}
	d.say("It is not known whether this was done" + because + ": " + sentence(u.Sentence))
	d.maySay(u.By)
	if !u.Started.IsZero() {
		d.say("It was begun on " + when(u.Started) + ". It will not be repeated by itself.")
	}
	d.about(u.Task)
	attachArgs = d.arguments(u.Tool, u.Args, u.Nonce)
	d.say(expiry(u.Expires) + " Without an answer it is not repeated.")
	d.list("Please look, then reply to this mail. The first line must be one word:",
		"Write the word happened if it was done; the task goes on.",
		"Write the word repeat and it is done now, once more.",
		"Write the word stop and the task ends here.")
	d.links("Or use a link, which writes that reply for you to send:", u.ReplyAddress, u.Subject,
		"happened", "repeat", "stop")
	d.theirs("What is known about it (not checked):", u.Said)
	return d.plain.String(), d.html.String(), attachArgs
}

// ApprovalSubject is the subject of an approval mail.
func ApprovalSubject(sentence string) string {
	return clip("Approve? "+gist(sentence), maxSubject)
}

// gist is a sentence up to its first semicolon: what a list has room for.
func gist(sentence string) string {
	head, rest, cut := strings.Cut(oneLine(sentence), "; ")
	if cut && rest != "" {
		return head + " …"
	}
	return head
}

// UnknownSubject is the subject of a question about an unknown outcome.
func UnknownSubject(sentence string) string {
	return clip("Did this happen? "+gist(sentence), maxSubject)
}

// ReplySubject is "Re: " and subject, without the prefixes that programs of several
// languages put there. An empty subject gets a name.
func ReplySubject(subject string) string {
	s := BareSubject(subject)
	if s == "" {
		s = "your mail"
	}
	return "Re: " + clip(s, 200)
}

// BareSubject is subject on one line without prefixes of replies.
func BareSubject(subject string) string {
	s := oneLine(subject)
	for {
		head, rest, ok := strings.Cut(s, ":")
		head, _, _ = strings.Cut(strings.TrimSpace(head), "[") // Re[2]:
		if !ok || !replyPrefixes[strings.ToLower(head)] {
			return s
		}
		s = strings.TrimSpace(rest)
	}
}

// replyPrefixes are "Re" in the languages of mail programs.
var replyPrefixes = map[string]bool{"re": true, "aw": true, "sv": true, "antw": true, "vs": true,
	"ref": true, "rif": true, "res": true, "odp": true, "ynt": true, "回复": true, "答复": true, "回覆": true}

// document is a text that grows in both its forms.
type document struct{ plain, html strings.Builder }

// say adds a paragraph of prose.
func (d *document) say(s string) {
	d.gap()
	d.plain.WriteString(wrap(s, proseWidth) + "\n")
	d.html.WriteString("<p>" + html.EscapeString(s) + "</p>\n")
}

// maySay is say, for what there may be.
func (d *document) maySay(s string) {
	if s != "" {
		d.say(s)
	}
}

// list adds a head and sentences below it, each on lines of its own.
func (d *document) list(head string, lines ...string) {
	d.gap()
	d.plain.WriteString(wrap(head, proseWidth) + "\n\n")
	d.html.WriteString("<p>" + html.EscapeString(head) + "</p>\n<p>")
	for i, l := range lines {
		d.plain.WriteString(indented(l) + "\n")
		if i > 0 {
			d.html.WriteString("<br>\n")
		}
		d.html.WriteString(html.EscapeString(l))
	}
	d.html.WriteString("</p>\n")
}

// indented is a sentence wrapped as an item of a list: its first line by two blanks, the
// others by four.
func indented(s string) string {
	return "  " + strings.ReplaceAll(wrap(s, proseWidth-4), "\n", "\n    ")
}

// about adds which task it is about; its subject may be anybody's words.
func (d *document) about(task string) {
	if task = clip(breakMailto(oneLine(task)), maxSubject); task != "" {
		d.gap()
		d.plain.WriteString("Task: " + task + "\n")
		d.html.WriteString("<p>Task: " + html.EscapeString(task) + "</p>\n")
	}
}

// arguments adds the block; it returns the arguments if they must be attached.
func (d *document) arguments(tool string, args json.RawMessage, nonce string) (attach []byte) {
	block, cut := RenderBlock(args, nonce)
	d.gap()
	d.plain.WriteString("Tool: " + oneLine(tool) + "\n\n" + block + "\n")
	d.html.WriteString("<p>Tool: " + html.EscapeString(oneLine(tool)) + "</p>\n<pre>" + html.EscapeString(block) + "</pre>\n")
	if !cut {
		return nil
	}
	return args
}

// links adds a mailto: link for each verb: sending it is the person's act, opening
// it does nothing.
func (d *document) links(head, address, subject string, verbs ...string) {
	if address == "" {
		return
	}
	d.gap()
	d.plain.WriteString(wrap(head, proseWidth) + "\n\n")
	d.html.WriteString("<p>" + html.EscapeString(head) + "</p>\n<p>")
	for i, v := range verbs {
		link := MailtoLink(address, subject, v)
		d.plain.WriteString("  Reply " + v + ": <" + link + ">\n")
		if i > 0 {
			d.html.WriteString(" · ")
		}
		d.html.WriteString(`<a href="` + html.EscapeString(link) + `">Reply ` + v + `</a>`)
	}
	d.html.WriteString("</p>\n")
}

// agentSays adds the agent's reason.
func (d *document) agentSays(reason string) {
	d.theirs("The agent says (its own words, not checked):", reason)
}

// theirs adds what others say as one paragraph that cannot pass for ours.
func (d *document) theirs(head, text string) {
	text = clip(breakMailto(oneLine(text)), maxReason)
	if text == "" {
		return
	}
	d.gap()
	d.plain.WriteString(head + "\n\n")
	for l := range strings.SplitSeq(wrap(text, proseWidth), "\n") {
		d.plain.WriteString("  " + l + "\n")
	}
	d.html.WriteString("<p>" + head + "</p>\n<blockquote>" + html.EscapeString(text) + "</blockquote>\n")
}

func (d *document) gap() {
	if d.plain.Len() > 0 {
		d.plain.WriteByte('\n')
	}
}

// MailtoLink is a mailto: URL (RFC 6068) for a mail to address with a body of one
// line; under 1,500 octets.
func MailtoLink(address, subject, body string) string {
	address = strings.ReplaceAll(url.PathEscape(address), "+", "%2B")
	address = strings.ReplaceAll(address, "%40", "@")
	link := "mailto:" + address + "?subject=" + mailtoEscape("Re: "+clip(BareSubject(subject), 120)) + "&body=" + mailtoEscape(body)
	if len(link) >= maxLink {
		link = "mailto:" + address + "?body=" + mailtoEscape(clip(body, 100))
	}
	return link
}

// mailtoEscape escapes for a mailto: query, in which a plus sign is no blank.
func mailtoEscape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// sentence is s on one line, with a full stop.
func sentence(s string) string {
	s = oneLine(s)
	if s != "" && !strings.ContainsRune(".!?…", []rune(s)[len([]rune(s))-1]) {
		s += "."
	}
	return s
}

func expiry(t time.Time) string {
	if t.IsZero() {
		return "This does not expire."
	}
	return "This expires on " + when(t) + "."
}

// when shows a time with its zone.
func when(t time.Time) string {
	s := t.Format("Mon 2 Jan 2006, 15:04 MST")
	if name, offset := t.Zone(); offset != 0 && !strings.HasPrefix(name, "+") && !strings.HasPrefix(name, "-") {
		s += t.Format(" (UTC-07:00)")
	}
	return s
}
