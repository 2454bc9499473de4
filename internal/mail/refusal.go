package mail

import "strings"

// Refusal is a provider that takes no call for want of a good key. Tasks wait for it.
type Refusal struct {
	Name   string // of the provider, or of the model where only that is refused
	Model  string // that the task wants
	None   bool   // there is no key; else it is refused
	Detail string // the provider's own words without secrets, or how to set the key
	Task   string // the first that waits
}

// RefusalSubject is the subject of the mail that tells it.
func RefusalSubject(r Refusal) string {
	if r.None {
		return clip("No key for "+oneLine(r.Name)+": tasks wait", maxSubject)
	}
	return clip(oneLine(r.Name)+" refuses our key: tasks wait", maxSubject)
}

// RefusalText says what happened, what to do, and that nothing is lost.
func RefusalText(r Refusal) string {
	what, do := "The provider "+oneLine(r.Name)+" refuses our key, or the account behind it has no credit.",
		"Check the key: its environment variable, or `providers` in settings.json. If it is the credit, or a right that the key lacks, set that right at the provider; nothing else is needed here."
	if strings.Contains(r.Name, ":") {
		what = "Our key may not use the model " + oneLine(r.Name) + "."
	}
	said := "In its own words:\n\n    " + clip(oneLine(r.Detail), 600)
	if r.None {
		what, said = "The model "+oneLine(r.Model)+" was not asked: there is no key for "+oneLine(r.Name)+" yet.",
			"What is missing: "+clip(oneLine(r.Detail), 600)+"."
		do = "A key that settings.json refers to acts within seconds, a file with a key too. An environment variable needs a new start of `pizza serve`."
	} else if r.Detail == "" {
		said = ""
	}
	out := []string{what}
	if said != "" {
		out = append(out, said)
	}
	out = append(out, do,
		"Nothing is lost. This task waits, and so does every other one for it; you are told once, not for each of them. As soon as the key is accepted they go on by themselves.")
	if r.Task != "" {
		out = append(out, "To stop waiting: `pizza cancel "+r.Task+"`, or delete the task's message in Running.")
	}
	return strings.Join(out, "\n\n") + "\n"
}
