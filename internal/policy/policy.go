// Package policy says which calls of tools the owner allows, wants to be asked about, or
// denies: rows that name tools, and which of the rows that apply is the strictest.
//
// A row that does not parse (Row.Check) disables the tools that it names, and all of them
// when that cannot be read either: a rule that was mistyped must not be passed over.
//
// The package is a leaf and pure: no clock, no I/O, no state.
package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The rules, from the loosest to the strictest.
const (
	Allow = "allow"
	Ask   = "ask"
	Deny  = "deny"
)

// Row is one policy.
type Row struct {
	// Name says which one it is, as in policies[0].
	Name string `json:"-"`
	// Tool is the name of a tool, or a pattern: * stands for any characters, ? for one.
	Tool string `json:"tool"`
	// Skill narrows the row to the runs of a skill (a worker); a pattern too. Empty: every run.
	Skill string `json:"skill,omitempty"`
	// Rule is allow, ask or deny.
	Rule string `json:"rule"`
	// Args are patterns for arguments, by name, all of which must fit: * and ? as above,
	// \ before a character that is meant itself, or a comparison as in >100. A name may go
	// into objects, as in payment.amount, and * stands for every argument. A call without
	// the argument does not fit.
	Args map[string]string `json:"args,omitempty"`
}

// Problem is a part of a row that does not parse.
type Problem struct {
	Key  string // "tool", "rule", "args.path"; as in the settings
	Text string // for a person
}

var (
	names   = regexp.MustCompile(`^[A-Za-z0-9_.:/*?-]{1,128}$`)
	argName = regexp.MustCompile(`^(\*|[^.\s*?]+(\.[^.\s*?]+)*)$`)
)

// Check lists what of the row does not parse.
func (r Row) Check() []Problem {
	var list []Problem
	add := func(key, format string, args ...any) {
		list = append(list, Problem{key, fmt.Sprintf(format, args...)})
	}
	if !names.MatchString(r.Tool) {
		add("tool", "%q is no name of a tool and no pattern of names, as in write_file or *_file", r.Tool)
	}
	if r.Skill != "" && !names.MatchString(r.Skill) {
		add("skill", "%q is no name of a skill and no pattern of names", r.Skill)
	}
	if !slices.Contains([]string{Allow, Ask, Deny}, r.Rule) {
		add("rule", "%q must be allow, ask or deny", r.Rule)
	}
	for name, pattern := range r.Args {
		if !argName.MatchString(name) {
			add("args."+name, "%q is no name of an argument, as in path or payment.amount", name)
		}
		if err := checkPattern(pattern); err != nil {
			add("args."+name, "%v", err)
		}
	}
	slices.SortFunc(list, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// Call is what a row is held against.
type Call struct {
	Tool string
	// Skills are those at work, from the task down to the one that makes the call.
	Skills []string
	// Args are the arguments as encoding/json decodes them with UseNumber.
	Args map[string]any
	// Exact has those arguments that can be written in several ways in their one spelling.
	Exact map[string]string
}

// Applies reports whether the row is about the call. Where it is not certain, a row that
// asks or denies applies, and one that allows does not: texts are then compared without
// letter case, and a value that is no number fits every comparison; of several values (a
// list) one is enough to ask or deny, and all must fit to allow.
func (r Row) Applies(c Call) bool {
	if !match(r.Tool, c.Tool) || !r.ofSkill(c.Skills) {
		return false
	}
	for name, pattern := range r.Args {
		if !r.fits(pattern, c.values(name)) {
			return false
		}
	}
	return true
}

// ofSkill: what a skill may not do, it may not have done for it by another either.
func (r Row) ofSkill(skills []string) bool {
	if r.Rule == Allow && len(skills) > 0 {
		skills = skills[len(skills)-1:]
	}
	return r.Skill == "" || slices.ContainsFunc(skills, func(s string) bool { return match(r.Skill, s) })
}

func (r Row) fits(pattern string, values []any) bool {
	one := func(v any) bool { return fits(pattern, v, r.Rule != Allow) }
	if r.Rule == Allow {
		return len(values) > 0 && !slices.ContainsFunc(values, func(v any) bool { return !one(v) })
	}
	return slices.ContainsFunc(values, one)
}

// Disables reports whether a row that does not parse takes the tool away.
func (r Row) Disables(tool string) bool {
	return !names.MatchString(r.Tool) || match(r.Tool, tool)
}

// ErrBroken is the rule of a row that does not parse.
var ErrBroken = errors.New("policy: a row does not parse")

// Strictest returns the index of the strictest row that applies to the call, -1 when none
// does. A row that does not parse and names the tool comes before all: err is then
// ErrBroken. Of several that are as strict, it is the first.
func Strictest(rows []Row, c Call) (index int, err error) {
	index = -1
	for i, r := range rows {
		switch broken := len(r.Check()) > 0; {
		case broken && r.Disables(c.Tool):
			return i, ErrBroken
		case broken || !r.Applies(c):
		case index < 0 || strictness(r.Rule) > strictness(rows[index].Rule):
			index = i
		}
	}
	return index, nil
}

func strictness(rule string) int { return slices.Index([]string{Allow, Ask, Deny}, rule) }

// String is the row in a line: "deny write_file path=/local/x/*".
func (r Row) String() string {
	var b strings.Builder
	b.WriteString(r.Rule + " " + r.Tool)
	if r.Skill != "" {
		b.WriteString(" of skill " + r.Skill)
	}
	var args []string
	for name, pattern := range r.Args {
		if name, compares := name, strings.IndexAny(pattern, "<>") == 0; compares {
			args = append(args, name+pattern)
		} else {
			args = append(args, name+"="+pattern)
		}
	}
	slices.Sort(args)
	for _, a := range args {
		b.WriteString(" " + a)
	}
	return b.String()
}
