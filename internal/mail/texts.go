package mail

import "time"

// About names the decision that a notice is about.
type About struct {
	Kind     string // ForApproval, ForUnknown
	Sentence string
	Expires  time.Time
}

// HelpText answers an unclear or empty reply. why is ParseDecision's.
func HelpText(a About, why string) string { return "" }

// DifferenceText answers an approve over a changed block; diff is DiffBlock's.
func DifferenceText(a About, diff string) string { return "" }

// DecidedText answers a second decision; verb and via as recorded.
func DecidedText(a About, verb, login, via string, at time.Time) string { return "" }

// ExpiredText answers a decision after the expiry, or tells of it.
func ExpiredText(a About) string { return "" }

// ForeignText refuses a decision by another login or a credential without the right.
func ForeignText(a About, login string) string { return "" }

// GoneText answers a reply to a decision that is not there (any more).
func GoneText() string { return "" }

// AskAgainText asks about more than three mails moved at once.
func AskAgainText(n int, verb string) string { return "" }

// Failure is a run that ended without a result.
type Failure struct {
	Class  string // providers.Class, or "" for a fault of ours
	Model  string
	Detail string // the provider's own words, without secrets
	Tries  int
	Task   string
}

// FailureText says what went wrong and what to do, as Markdown.
func FailureText(f Failure) string { return "" }

// Status is a live task.
type Status struct {
	Task, Subject, State, For, Model string
	Since                            time.Time
	Steps                            int
	Now                              time.Time
	Last                             string // what it did last
}

// StatusText is the text of the message in Running; StatusSubject its subject.
func StatusText(s Status) string    { return "" }
func StatusSubject(s Status) string { return "" }

// Footer is the quiet line below a result.
type Usage struct {
	Model               string
	Steps               int
	TokensIn, TokensOut int64
	Cost                string // with currency; "" if not known
	Took                time.Duration
}

// FooterText renders it.
func FooterText(u Usage) string { return "" }
