package mail

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Verb is what a decision says to do.
type Verb string

// The verbs, each with its synonyms in verbWords.
const (
	Approve    Verb = "approve"
	Reject     Verb = "reject"
	Edit       Verb = "edit"
	Always     Verb = "always"
	Answer     Verb = "answer"
	CancelTask Verb = "cancel" // "cancel task"; for results and status mails "cancel" too
	Happened   Verb = "happened"
	Repeat     Verb = "repeat"
	Stop       Verb = "stop"
	Continue   Verb = "continue"
	Fork       Verb = "fork"
)

// Kinds of mail that a decision answers.
const (
	ForApproval  = "approval"
	ForApprovals = "approvals" // a mail that lists several; see ParseDecisions
	ForUnknown   = "unknown"   // the outcome of a call is not known
	ForQuestion  = "question"
	ForLimit     = "limit"
	ForRestored  = "restored" // the store came out of a backup
	ForResult    = "result"
	ForStatus    = "status"
)

// Decision is what a reply decides.
type Decision struct {
	Verb  Verb
	Text  string // reason of a rejection, text of an answer, text of an edit
	Items []int  // numbers, in a mail that lists several
	All   bool   // "approve all"
	N     int    // of "continue N"; 0 without a number
}

// Outcome of reading a decision.
type Outcome int

const (
	Unclear Outcome = iota // decides nothing; a help mail may say why (zero value: nothing is ever decided by omission)
	Decided
	Empty   // nothing was written; decides nothing
	Message // no decision: the next message of the thread (results and status mails only)
)

// words of the table, per kind. A first line must be one of them.
var verbWords = map[string]map[string]Verb{
	ForApproval: {
		"approve": Approve, "approved": Approve, "yes": Approve,
		"reject": Reject, "rejected": Reject, "no": Reject, "deny": Reject,
		"edit": Edit, "always": Always, "answer": Answer, "cancel task": CancelTask,
	},
	ForUnknown:  {"happened": Happened, "repeat": Repeat, "stop": Stop, "cancel task": CancelTask},
	ForLimit:    {"continue": Continue, "stop": Stop, "cancel task": CancelTask},
	ForRestored: {"continue": Continue, "stop": Stop},
	ForResult:   {"cancel": CancelTask, "stop": CancelTask, "cancel task": CancelTask, "fork": Fork},
}

// maxContinue is the largest number after "continue".
const maxContinue = 999999

// anyVerb are the words that, later in a text, contradict another verb.
var anyVerb = map[string]Verb{
	"approve": Approve, "approved": Approve, "yes": Approve,
	"reject": Reject, "rejected": Reject, "no": Reject, "deny": Reject, "denied": Reject,
	"edit": Edit, "always": Always, "cancel": CancelTask, "stop": Stop,
	"happened": Happened, "repeat": Repeat, "continue": Continue, "fork": Fork,
}

var (
	continueN = regexp.MustCompile(`^continue ([0-9]+)$`)
	itemsLine = regexp.MustCompile(`^(approve|approved|yes|reject|rejected|no|deny) +(all|[0-9]{1,4}(?: *(?:,|and|&) *[0-9]{1,4}| +[0-9]{1,4})*)$`)
	hedgeLine = regexp.MustCompile(`^(but|only|if|except|wait|not|don'?t|do not|instead|unless|change|never|however|hold|maybe|perhaps)\b`)
	negation  = regexp.MustCompile(`\b(not|never|cannot|[a-z]+n't|dont|wont|cant|but|unless|except|instead|wait)\b`)
	wordRE    = regexp.MustCompile(`[\p{L}\p{M}\p{N}']+`)
)

// ParseDecision reads newText, which is what NewText gave, as a decision about a
// mail of the given kind, by the grammar of DESIGN.md section 2. When it does not
// decide, why says so in words for the person.
//
// It may refuse more than the grammar asks for, never less: an approval that a
// careful person might not have meant is unclear.
func ParseDecision(kind, newText string) (d Decision, o Outcome, why string) {
	t := readLines(newText)
	if len(t.lines) == 0 {
		return d, Empty, "your reply has no text of its own"
	}
	switch kind {
	case ForQuestion:
		if len(t.lines) == 1 && bareVerb(t.first()) == "cancel task" {
			return Decision{Verb: CancelTask}, Decided, ""
		}
		return Decision{Verb: Answer, Text: t.whole()}, Decided, ""
	case ForResult, ForStatus:
		return t.asMessage()
	}
	if t.inline && kind == ForApproval && bareVerb(t.first()) == string(Edit) {
		t = t.aboveQuote() // the rest is the block, changed in the quote
	}
	if t.inline {
		return d, Unclear, "your words stand between quoted lines, so it is not certain which of them decide"
	}
	d, o, why = t.firstLine(kind)
	if o != Decided {
		return d, o, why
	}
	if why := t.contradiction(d.Verb); why != "" {
		return Decision{}, Unclear, why
	}
	return d, Decided, ""
}

// decisionText is the text of a reply, prepared.
type decisionText struct {
	lines  []string // visible, trimmed, without a leading '>', non-empty ones and, between them, empty ones
	above  int      // how many of them stand before the first quoted one
	inline bool     // quoted and unquoted lines are mixed
}

func readLines(text string) decisionText {
	var t decisionText
	quoted, plain := 0, 0
	quotedAt := -1
	for _, l := range splitLines(cutSignature(visible(text))) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, ">") {
			quoted++
			if quotedAt < 0 {
				quotedAt = len(trimBlank(t.lines))
			}
			l = strings.TrimSpace(strings.TrimLeft(l, "> "))
		} else if l != "" {
			plain++
		}
		t.lines = append(t.lines, l)
	}
	t.lines = trimBlank(t.lines)
	t.inline = quoted > 0 && plain > 0
	t.above = quotedAt
	return t
}

// aboveQuote is what stands before the first quoted line, if anything does.
func (t decisionText) aboveQuote() decisionText {
	if t.above < 1 {
		return t
	}
	return decisionText{lines: trimBlank(t.lines[:t.above])}
}

func trimBlank(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func (t decisionText) first() string { return t.lines[0] }
func (t decisionText) whole() string { return strings.Join(t.lines, "\n") }
func (t decisionText) rest() string {
	return strings.TrimSpace(strings.Join(t.lines[1:], "\n"))
}

// asMessage reads a reply to a result or a status mail.
func (t decisionText) asMessage() (Decision, Outcome, string) {
	v, ok := verbWords[ForResult][bareVerb(t.first())]
	switch {
	case !ok:
		return Decision{}, Message, ""
	case v == Fork && !t.inline:
		return Decision{Verb: Fork, Text: t.rest()}, Decided, ""
	case v == CancelTask && len(t.lines) == 1:
		return Decision{Verb: CancelTask}, Decided, ""
	}
	return Decision{}, Message, "" // "stop" and more: words to the agent
}

// bareVerb is a line without surrounding markup, letter case and a final '.' or '!'.
func bareVerb(line string) string {
	s := strings.ToLower(strings.TrimSpace(straight(line)))
	for range 4 { // **"approve."** and the like
		n := strings.TrimSpace(strings.Trim(s, `*_"'`))
		if rest := strings.TrimRight(n, "!"); rest != n {
			n = rest
		} else if rest, ok := strings.CutSuffix(n, "."); ok && !strings.HasSuffix(rest, ".") {
			n = rest
		}
		if n == s {
			break
		}
		s = n
	}
	return strings.Join(strings.Fields(s), " ")
}

// firstLine reads the verb.
func (t decisionText) firstLine(kind string) (Decision, Outcome, string) {
	line := bareVerb(t.first())
	if v, ok := verbWords[kind][line]; ok {
		return t.withText(v, t.rest())
	}
	if m := continueN.FindStringSubmatch(line); m != nil && kind == ForLimit {
		n, err := strconv.Atoi(m[1])
		switch {
		case err != nil || n > maxContinue:
			return Decision{}, Unclear, "the number after “continue” is larger than " + strconv.Itoa(maxContinue)
		case n == 0:
			return Decision{}, Unclear, "“continue 0” says nothing"
		}
		return Decision{Verb: Continue, N: n}, Decided, ""
	}
	if word, text, ok := strings.Cut(t.first(), ":"); ok {
		v := verbWords[kind][bareVerb(word)]
		if v == Reject || v == Answer {
			return t.withText(v, strings.TrimSpace(strings.TrimLeft(text, "*_ ")+"\n"+t.rest()))
		}
	}
	if itemsLine.MatchString(line) && kind == ForApproval {
		return Decision{}, Unclear, "this mail asks for one decision only, so a number does not fit"
	}
	return Decision{}, Unclear, "the first line of your reply is “" + clip(t.first(), 60) + "”, which is none of the words that decide"
}

// withText makes the decision of a verb and what follows it.
func (t decisionText) withText(v Verb, text string) (Decision, Outcome, string) {
	switch v {
	case Reject:
		return Decision{Verb: v, Text: text}, Decided, ""
	case Edit:
		return Decision{Verb: v, Text: text}, Decided, ""
	case Answer:
		if text == "" {
			return Decision{}, Unclear, "“answer” needs the text of the answer after a colon"
		}
		return Decision{Verb: v, Text: text}, Decided, ""
	}
	return Decision{Verb: v}, Decided, ""
}

// contradiction looks for words after the verb that take it back.
func (t decisionText) contradiction(v Verb) string {
	if v == Reject || v == Answer {
		return "" // the rest is the reason or the text
	}
	hedged := v == Approve || v == Always || v == Continue || v == Repeat || v == Edit || v == Happened
	lines := outsideBlock(t.lines)
	near := 0
	for i, l := range lines {
		l = strings.ToLower(straight(l))
		if hedged && strings.ContainsAny(l, "?？؟;") && strings.ContainsAny(l, "?？؟") {
			return "there is a question mark in it"
		}
		if i == 0 || l == "" {
			continue
		}
		near++
		if m := hedgeWord(l, near <= 3); hedged && m != "" {
			return "“" + m + "” after the first line may take it back"
		}
		if w := otherVerb(l, v); w != "" {
			return "it also says “" + w + "”"
		}
	}
	return ""
}

// hedgeWord finds a word that takes back: at the start of the line or of a clause
// in it; in the lines next to the verb, anywhere.
func hedgeWord(line string, near bool) string {
	for _, clause := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(".,;:!()–—", r) }) {
		clause = strings.TrimLeft(clause, " *_\"'-•")
		if m := hedgeLine.FindString(clause); m != "" {
			return m
		}
	}
	if near {
		return negation.FindString(line)
	}
	return ""
}

// otherVerb finds a word of another decision than v.
func otherVerb(line string, v Verb) string {
	at := wordRE.FindAllStringIndex(line, -1)
	for _, m := range at {
		word := strings.Trim(line[m[0]:m[1]], "'")
		other, ok := anyVerb[word]
		if !ok || other == v || v == CancelTask && other == Stop || numero(word, line[m[1]:]) {
			continue
		}
		return word
	}
	return ""
}

// numero reports whether "no" abbreviates number: "No. 12".
func numero(word, after string) bool {
	after = strings.TrimLeft(after, ". ")
	return word == "no" && after != "" && after[0] >= '0' && after[0] <= '9'
}

// outsideBlock drops a block of arguments with both its marks; the first line stays.
func outsideBlock(lines []string) []string {
	begin := slices.IndexFunc(lines, func(l string) bool { return markKind(l) == markBegin })
	if begin < 1 {
		return lines
	}
	end := slices.IndexFunc(lines[begin:], func(l string) bool { return markKind(l) == markEnd })
	if end < 0 {
		return lines
	}
	return slices.Concat(lines[:begin], lines[begin+end+1:])
}

// ParseDecisions reads a reply to a mail that lists n decisions: each line may hold
// a numbered verb, "approve 1,3" or "reject 2: reason", or "approve all". Lines
// without a verb that follow a rejection are its reason. A bare verb without a
// number, a number out of range or named twice is unclear.
func ParseDecisions(newText string, n int) (ds []Decision, o Outcome, why string) {
	t := readLines(newText)
	if len(t.lines) == 0 {
		return nil, Empty, "your reply has no text of its own"
	}
	if len(t.lines) == 1 && bareVerb(t.first()) == "cancel task" {
		return []Decision{{Verb: CancelTask}}, Decided, ""
	}
	if t.inline {
		return nil, Unclear, "your words stand between quoted lines, so it is not certain which of them decide"
	}
	seen := map[int]bool{}
	for i, line := range t.lines {
		d, ok := itemsOf(line)
		switch {
		case ok:
			if why := claim(seen, &d, n); why != "" {
				return nil, Unclear, why
			}
			ds = append(ds, d)
		case i == 0:
			return nil, Unclear, "this mail lists several, so a verb needs numbers: “approve 1,3”, “approve all”, “reject 2”"
		case line == "" || ds[len(ds)-1].Verb == Reject:
			last := &ds[len(ds)-1]
			if last.Verb == Reject {
				last.Text = strings.TrimSpace(last.Text + "\n" + line)
			}
		default:
			rest := decisionText{lines: []string{"approve", line}}
			if why := rest.contradiction(Approve); why != "" {
				return nil, Unclear, why
			}
		}
	}
	return ds, Decided, ""
}

// itemsOf reads one line of several decisions.
func itemsOf(line string) (Decision, bool) {
	head, reason, _ := strings.Cut(line, ":")
	m := itemsLine.FindStringSubmatch(bareVerb(head))
	if m == nil {
		return Decision{}, false
	}
	d := Decision{Verb: verbWords[ForApproval][m[1]], Text: strings.TrimSpace(reason), All: m[2] == "all"}
	if d.Verb == Approve && d.Text != "" {
		return Decision{}, false
	}
	for _, w := range strings.FieldsFunc(m[2], func(r rune) bool { return r < '0' || r > '9' }) {
		k, _ := strconv.Atoi(w)
		d.Items = append(d.Items, k)
	}
	return d, true
}

// claim marks the items of d as decided.
func claim(seen map[int]bool, d *Decision, n int) string {
	items := d.Items
	if d.All {
		for k := 1; k <= n; k++ {
			items = append(items, k)
		}
	}
	for _, k := range items {
		switch {
		case k < 1 || k > n:
			return "there is no number " + strconv.Itoa(k)
		case seen[k]:
			return "number " + strconv.Itoa(k) + " is decided twice"
		}
		seen[k] = true
	}
	return ""
}

// AfterFork is newText, which is what NewText gave, without its first line: the word fork.
func AfterFork(newText string) string {
	lines := splitLines(newText)
	for i, l := range lines {
		if strings.TrimSpace(visible(l)) != "" {
			return strings.TrimSpace(strings.Join(lines[i+1:], "\n"))
		}
	}
	return newText
}
