package mail

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseDecision(t *testing.T) {
	t.Parallel()
	const none = Verb("")
	for _, tt := range []struct {
		kind, text string
		want       Outcome
		verb       Verb
		arg        string
	}{
		{ForApproval, "approve", Decided, Approve, ""},
		{ForApproval, "Approve.", Decided, Approve, ""},
		{ForApproval, "APPROVED!", Decided, Approve, ""},
		{ForApproval, "yes!!", Decided, Approve, ""}, // F8
		{ForApproval, "**approve**", Decided, Approve, ""},
		{ForApproval, "*Approve.*", Decided, Approve, ""},
		{ForApproval, "“approve”", Decided, Approve, ""},
		{ForApproval, "\u200bap\u00adprove\u202c", Decided, Approve, ""},
		{ForApproval, "\ufeff\n\n  approve \u00a0\n", Decided, Approve, ""},
		{ForApproval, "> approve", Decided, Approve, ""},
		{ForApproval, ">approve\n>thanks", Decided, Approve, ""},
		{ForApproval, "approve\n\nSent from my iPhone", Decided, Approve, ""},
		{ForApproval, "approve\n-- \nNo. 5, if you must: reject?", Decided, Approve, ""},
		{ForApproval, "approve\nJane Doe\nTel +1 555 0100\nNo. 12 Long Street", Decided, Approve, ""}, // A23
		{ForApproval, "approve\nThanks a lot\nJane", Decided, Approve, ""},
		{ForApproval, "approve\nyes, approved", Decided, Approve, ""},

		{ForApproval, "approve?", Unclear, none, ""},
		{ForApproval, "approve？", Unclear, none, ""},
		{ForApproval, "approve\nor is it 40?", Unclear, none, ""},
		{ForApproval, "approve if it is under 40", Unclear, none, ""},
		{ForApproval, "do not approve", Unclear, none, ""},
		{ForApproval, "don’t approve", Unclear, none, ""},
		{ForApproval, "not approve", Unclear, none, ""},
		{ForApproval, "approve reject", Unclear, none, ""},
		{ForApproval, "approve / reject", Unclear, none, ""},
		{ForApproval, "approve, but only once", Unclear, none, ""},
		{ForApproval, "approve\nbut only once", Unclear, none, ""},
		{ForApproval, "approve\n\nOnly if it is under 40", Unclear, none, ""},
		{ForApproval, "approve\nexcept the last one", Unclear, none, ""},
		{ForApproval, "approve\nwait", Unclear, none, ""},
		{ForApproval, "approve\n*Not* now", Unclear, none, ""},
		{ForApproval, "approve\nDon’t do it yet", Unclear, none, ""},
		{ForApproval, "approve\ninstead use b.txt", Unclear, none, ""},
		{ForApproval, "approve\nunless it is late", Unclear, none, ""},
		{ForApproval, "approve\nchange the amount to 30", Unclear, none, ""},
		{ForApproval, "approve\n\nOn reflection, reject", Unclear, none, ""},
		{ForApproval, "approve\nno", Unclear, none, ""},
		{ForApproval, "yes\nI would rather not", Unclear, none, ""},
		{ForApproval, "approve\nI don't think so", Unclear, none, ""},
		{ForApproval, "yes and no", Unclear, none, ""},
		{ForApproval, "~~approve~~", Unclear, none, ""},
		{ForApproval, "approve…", Unclear, none, ""},
		{ForApproval, "approve..", Unclear, none, ""},
		{ForApproval, "approve: all of it", Unclear, none, ""},
		{ForApproval, "disapprove", Unclear, none, ""},
		{ForApproval, "approve 1", Unclear, none, ""},
		{ForApproval, "approve all", Unclear, none, ""},
		{ForApproval, "approve\ncancel task", Unclear, none, ""},
		{ForApproval, "Hello,\napprove", Unclear, none, ""},
		{ForApproval, "no problem", Unclear, none, ""},
		{ForApproval, "maybe", Unclear, none, ""},                            // F16
		{ForApproval, "yеs", Unclear, none, ""},                              // a Cyrillic e
		{ForApproval, "> amount: 40\napprove\n> to: bob", Unclear, none, ""}, // A12
		{ForApproval, "> approve\nno", Unclear, none, ""},
		{ForApproval, "approve\n> approve", Unclear, none, ""},
		{ForApproval, "continue", Unclear, none, ""},
		{ForApproval, "👍", Unclear, none, ""},

		{ForApproval, "", Empty, none, ""},
		{ForApproval, "\n \u200b\n", Empty, none, ""},
		{ForApproval, "Sent from my iPhone", Empty, none, ""},
		{ForApproval, "-- \napprove", Empty, none, ""},

		{ForApproval, "reject", Decided, Reject, ""},
		{ForApproval, "No", Decided, Reject, ""},
		{ForApproval, "deny.", Decided, Reject, ""},
		{ForApproval, "reject: too expensive, but thanks. approve later?", Decided, Reject, "too expensive, but thanks. approve later?"},
		{ForApproval, "**Reject:** too much", Decided, Reject, "too much"},
		{ForApproval, "no\n\nuse b.txt instead", Decided, Reject, "use b.txt instead"},
		{ForApproval, "no: use b\nand c\n\n-- \nJane", Decided, Reject, "use b\nand c"},
		{ForApproval, "edit\n[arguments k3v9x2]\namount: why? no\n[end of arguments k3v9x2]", Decided, Edit, "[arguments k3v9x2]\namount: why? no\n[end of arguments k3v9x2]"},
		{ForApproval, "edit\n[arguments k3v9x2]\namount: 3\n[end of arguments k3v9x2]\nor not?", Unclear, none, ""},
		{ForApproval, "always", Decided, Always, ""},
		{ForApproval, "always\nexcept on Sundays", Unclear, none, ""},
		{ForApproval, "answer: use the other folder", Decided, Answer, "use the other folder"},
		{ForApproval, "answer", Unclear, none, ""},
		{ForApproval, "cancel task", Decided, CancelTask, ""},
		{ForApproval, "Cancel Task.", Decided, CancelTask, ""},
		{ForApproval, "cancel", Unclear, none, ""},
		{ForApproval, "cancel task\napprove", Unclear, none, ""},

		{ForUnknown, "happened", Decided, Happened, ""},
		{ForUnknown, "Repeat!", Decided, Repeat, ""},
		{ForUnknown, "stop", Decided, Stop, ""},
		{ForUnknown, "repeat\nonly the last", Unclear, none, ""},
		{ForUnknown, "repeat\nno wait, it happened", Unclear, none, ""},
		{ForUnknown, "repeat?", Unclear, none, ""},
		{ForUnknown, "approve", Unclear, none, ""},
		{ForUnknown, "yes", Unclear, none, ""},
		{ForUnknown, "cancel task", Decided, CancelTask, ""},

		{ForLimit, "continue", Decided, Continue, ""},
		{ForLimit, "continue 50", Decided, Continue, ""},
		{ForLimit, "continue 0", Unclear, none, ""},
		{ForLimit, "continue\nif needed", Unclear, none, ""},
		{ForLimit, "stop", Decided, Stop, ""},
		{ForLimit, "approve", Unclear, none, ""},

		{ForQuestion, "the blue one\nor is there red?", Decided, Answer, "the blue one\nor is there red?"},
		{ForQuestion, "approve", Decided, Answer, "approve"},
		{ForQuestion, "cancel task", Decided, CancelTask, ""},
		{ForQuestion, "cancel task\nand start over", Decided, Answer, "cancel task\nand start over"},
		{ForQuestion, "", Empty, none, ""},

		{ForResult, "cancel", Decided, CancelTask, ""},
		{ForStatus, "Stop.", Decided, CancelTask, ""},
		{ForResult, "stop using that tool", Message, none, ""},
		{ForResult, "stop\nand use the other one", Message, none, ""},
		{ForResult, "fork\ntry it with b.txt", Decided, Fork, "try it with b.txt"},
		{ForResult, "approve", Message, none, ""},
		{ForResult, "thanks", Message, none, ""},
		{ForResult, "", Empty, none, ""},
		{"never heard of", "approve", Unclear, none, ""},
	} {
		d, o, why := ParseDecision(tt.kind, tt.text)
		if o != tt.want || d.Verb != tt.verb || d.Text != tt.arg {
			t.Errorf("ParseDecision(%s, %q) = %q %q, %v; want %q %q, %v", tt.kind, tt.text, d.Verb, d.Text, o, tt.verb, tt.arg, tt.want)
		}
		if (o == Unclear || o == Empty) != (why != "") {
			t.Errorf("ParseDecision(%s, %q): outcome %v with reason %q", tt.kind, tt.text, o, why)
		}
	}
	if d, _, _ := ParseDecision(ForLimit, "Continue 50."); d.N != 50 {
		t.Errorf("continue 50 gave %d", d.N)
	}
}

func TestParseDecisions(t *testing.T) { // F14
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []Decision // nil: not decided
	}{
		{"approve 1,3", []Decision{{Verb: Approve, Items: []int{1, 3}}}},
		{"Approve 1 and 3.", []Decision{{Verb: Approve, Items: []int{1, 3}}}},
		{"approve all", []Decision{{Verb: Approve, All: true}}},
		{"approve 1\nreject 2: too much\nreally\nyes 3", []Decision{{Verb: Approve, Items: []int{1}}, {Verb: Reject, Items: []int{2}, Text: "too much\nreally"}, {Verb: Approve, Items: []int{3}}}},
		{"cancel task", []Decision{{Verb: CancelTask}}},
		{"approve", nil},
		{"reject", nil},
		{"approve 4", nil},
		{"approve 0", nil},
		{"approve 1\nreject 1", nil},
		{"approve all\nreject 2", nil},
		{"approve 1\nbut not now", nil},
		{"approve 1\nis that right?", nil},
		{"approve 1?", nil},
		{"approve 1: ok", nil},
		{"", nil},
		{"thanks\napprove 1", nil},
		{"approve 1\n> x", nil},
	} {
		got, o, why := ParseDecisions(tt.text, 3)
		if !reflect.DeepEqual(got, tt.want) || (o == Decided) != (tt.want != nil) {
			t.Errorf("ParseDecisions(%q) = %+v, %v, %q; want %+v", tt.text, got, o, why, tt.want)
		}
	}
}

// quoters are the ways in which mail programs put a reply and its parent together.
var quoters = map[string]func(reply, parent string) string{
	"Thunderbird below": func(r, p string) string { return "On 12/1/26 08:33, Pizza wrote:\n" + quoteOf(p) + "\n\n" + r + "\n" },
	"Thunderbird above": func(r, p string) string { return r + "\n\nOn 12/1/26 08:33, Pizza wrote:\n" + quoteOf(p) + "\n" },
	"Gmail": func(r, p string) string {
		return r + "\n\nOn Tue, Dec 1, 2026 at 8:33 AM Pizza <pizza+a.k3v9x2@localhost> wrote:\n\n" + quoteOf(p)
	},
	"Gmail German": func(r, p string) string {
		return r + "\n\nAm Di., 1. Dez. 2026 um 08:33 Uhr schrieb Pizza decision <\npizza+a.k3v9x2@localhost>:\n\n" + quoteOf(p)
	},
	"Outlook": func(r, p string) string {
		return r + "\n\n________________________________\nFrom: Pizza <pizza@localhost>\nSent: Tuesday, December 1, 2026 8:33 AM\nTo: me <me@localhost>\nSubject: Approve? x\n\n" + p
	},
	"Outlook German": func(r, p string) string {
		return r + "\n\nVon: Pizza <pizza@localhost>\nGesendet: Dienstag, 1. Dezember 2026 08:33\nAn: me <me@localhost>\nBetreff: Approve? x\n\n" + p
	},
	"Apple Mail": func(r, p string) string {
		return r + "\n\n> On 1. Dec 2026, at 08:33, Pizza <pizza@localhost> wrote:\n> \n" + quoteOf(p)
	},
	"iPhone": func(r, p string) string {
		return r + "\n\nSent from my iPhone\n\n> On 1. Dec 2026, at 08:33, Pizza <pizza@localhost> wrote:\n> \n> \uFEFF" + p[:20] + "\n" + quoteOf(p[20:])
	},
	"Yahoo": func(r, p string) string {
		return r + "\n\n    On Tuesday, December 1, 2026 at 08:33:00 AM GMT+1, Pizza <pizza@localhost> wrote:\n\n " + strings.ReplaceAll(p, "\n", "\n ")
	},
	"mutt": func(r, p string) string {
		return "On Tue, Dec 01, 2026 at 08:33:00AM +0100, Pizza wrote:\n" + quoteOf(p) + "\n" + r
	},
	"s-nail": func(r, p string) string {
		return "Pizza wrote in\n <1@pizza.localhost>:\n" + strings.ReplaceAll(quoteOf(p), "> ", " |") + "\n\n" + r
	},
	"re-wrapped": func(r, p string) string { return r + "\n\nOn 12/1/26 08:33, Pizza wrote:\n" + quoteOf(wrap(p, 50)) },
	"broken quote": func(r, p string) string {
		return r + "\n\nOn 12/1/26 08:33, Pizza wrote:\n" + strings.ReplaceAll(quoteOf(wrap(p, 90)), " you ", " you\n")
	},
	"no quote":      func(r, _ string) string { return r },
	"bare, no mark": func(r, p string) string { return r + "\n\n" + p },
}

// For any quoting of our own mail, the decision is what the person wrote, and nothing
// is decided where they wrote nothing.
func TestDecisionThroughQuoting(t *testing.T) {
	t.Parallel()
	for name, quote := range quoters {
		for _, tt := range []struct {
			reply string
			o     Outcome
			v     Verb
		}{
			{"approve", Decided, Approve},
			{"no", Decided, Reject},
			{"reject: yes, but the other folder", Decided, Reject},
			{"approve?", Unclear, ""},
			{"do not approve", Unclear, ""},
			{"approve\nbut later", Unclear, ""},
			{"", Empty, ""},
		} {
			newText, _, _ := NewText(quote(tt.reply, asked), asked)
			d, o, why := ParseDecision(ForApproval, newText)
			if o == Decided && (tt.o != Decided || d.Verb != tt.v) {
				t.Errorf("%s, %q: decided %q\nnew text:\n%s", name, tt.reply, d.Verb, newText)
			}
			if name != "s-nail" && (o != tt.o || d.Verb != tt.v) {
				t.Errorf("%s, %q: %v %q (%s), want %v %q\nnew text:\n%s", name, tt.reply, o, d.Verb, why, tt.o, tt.v, newText)
			}
		}
	}
}

// No line of our own mails is a verb: what is left of a quote never decides.
func TestOurTextsHoldNoVerb(t *testing.T) {
	t.Parallel()
	for name, text := range ourTexts() {
		for _, width := range []int{0, 64, 66, 68, 70, 72, 74, 76, 78, 80} {
			shown := text
			if width > 0 {
				shown = wrapLines(text, width)
			}
			for _, l := range splitLines(shown) {
				for kind := range verbWords {
					if d, o, _ := ParseDecision(kind, l); o == Decided {
						t.Errorf("%s at %d: the line %q decides %s", name, width, l, d.Verb)
					}
				}
			}
		}
	}
}

func wrapLines(text string, width int) string {
	var out []string
	for _, l := range splitLines(text) {
		out = append(out, wrap(l, width))
	}
	return strings.Join(out, "\n")
}

func ExampleParseDecision() {
	newText, _, _ := NewText("On 12/1/26 08:33, Pizza wrote:\n> Write a.txt?\n\nreject: use b.txt\n", "Write a.txt?")
	d, o, _ := ParseDecision(ForApproval, newText)
	fmt.Println(o == Decided, d.Verb, d.Text)
	// Output: true reject use b.txt
}
