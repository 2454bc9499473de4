package tools

import (
	"slices"
	"strings"
	"unicode"
)

// Effect says what a call does to the world.
type Effect string

const (
	Undeclared Effect = ""
	Reads      Effect = "read"   // changes nothing
	Changes    Effect = "change" // of things of the owner, which can be made good again
	Deletes    Effect = "delete" // what is gone is gone
	Sends      Effect = "send"   // reaches other people or machines
	Pays       Effect = "pay"    // commits money
)

// Standing reports whether an owner may allow calls of this effect once and for all. What
// deletes, sends or pays is decided each time, and so is what a tool does not declare
// (DESIGN.md section 2, "always").
func (e Effect) Standing() bool { return e == Reads || e == Changes }

// Outside reports whether calls of this effect may reach other people or machines: what
// sends or pays, and what a tool does not declare.
func (e Effect) Outside() bool { return e != Reads && e != Changes && e != Deletes }

// Because says why it may not, in words that follow the tool's name; "" when it may.
func (e Effect) Because() string {
	switch e {
	case Reads, Changes:
		return ""
	case Deletes:
		return "deletes"
	case Sends:
		return "reaches other people or machines"
	case Pays:
		return "commits money"
	}
	return "does not declare what it does"
}

func (t *tool) effect() Effect {
	switch {
	case t.class == ReadOnly:
		return Reads
	case t.name == "delete_file":
		return Deletes
	}
	return Changes
}

// exact are the paths in their one spelling.
func (j *job) exact() map[string]string {
	paths := map[string]string{"path": j.path.raw()}
	if _, ok := j.args.text["to"]; ok {
		paths["to"] = j.to.raw()
	}
	return paths
}

// weighty are the words in names of arguments that say where to, who, how much and what
// is run.
var weighty = []string{
	"path", "file", "filename", "folder", "dir", "directory", "src", "source", "dst", "dest", "destination", "target", "location",
	"to", "cc", "bcc", "from", "recipient", "recipients", "receiver", "email", "mail", "address", "addresses", "phone", "user", "account",
	"iban", "url", "uri", "host", "server", "endpoint", "channel", "room",
	"amount", "sum", "total", "price", "cost", "quantity", "currency",
	"command", "cmd", "script", "shell", "code", "sql", "exec", "args", "argv",
}

// Weighty reports whether an argument of this name is a path, a recipient, an amount or a
// command, as far as its name tells: "to", "amount_eur", "filePath".
func Weighty(name string) bool {
	return slices.ContainsFunc(wordsIn(name), func(w string) bool { return slices.Contains(weighty, w) })
}

// wordsIn splits a name at what is no letter and at capitals, in lower case.
func wordsIn(name string) []string {
	var b strings.Builder
	small := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			r = ' '
		case unicode.IsUpper(r) && small:
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
