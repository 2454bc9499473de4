package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrNoBlock is returned by EditedArgs for a reply without a whole block.
var ErrNoBlock = errors.New("mail: the reply holds no block of arguments with both its marks")

// EditedArgs reads the arguments that a reply puts in the place of args: its block with
// the nonce, typed or changed in the quote. sent is the block as the mail showed it, text
// the whole text of the reply (Reading.Text).
//
// An argument whose lines are as they were sent, wrapping and quoting aside, keeps its
// bytes of args, also where it was shown in part; what was not shown at all stays. An
// argument whose lines are gone is left out. A text stays a text, whatever is written in
// it. The errors wrap ErrBlock or ErrNoBlock and are for the person.
func EditedArgs(args json.RawMessage, sent, nonce, text string) (json.RawMessage, error) {
	found, ok := FindBlock(text, nonce)
	if !ok {
		return nil, ErrNoBlock
	}
	var changed []string
	for _, b := range splitBlocks(found) {
		if !sameBlock(sent, b) {
			changed = append(changed, b)
		}
	}
	switch len(changed) {
	case 0:
		return args, nil
	case 1:
		return edited(args, sent, changed[0])
	}
	return nil, fmt.Errorf("%w: the reply holds several that differ", ErrBlock)
}

// splitBlocks takes apart what FindBlock put together.
func splitBlocks(found string) []string {
	var out []string
	for l := range strings.SplitSeq(found, "\n") {
		if markKind(strings.TrimSpace(l)) == markBegin || len(out) == 0 {
			out = append(out, l)
			continue
		}
		out[len(out)-1] += "\n" + l
	}
	return out
}

// blockField is an argument of a block with the lines it takes.
type blockField struct {
	key   string
	lines []string
}

func (f blockField) text() string { return strings.Join(f.lines, "\n") }

// quoted reports whether the value was shown as a JSON string: one in its place is JSON too.
func (f blockField) quoted() bool {
	_, value, _ := cutKey(f.lines[0])
	return strings.HasPrefix(value, `"`)
}

// withBlanksOf gives the lines of a text that were not changed the blanks they were sent
// with, where the program that quoted them made one of many, as HTML does.
func (f blockField) withBlanksOf(was blockField) blockField {
	out, next := blockField{key: f.key}, 0
	for _, l := range f.lines {
		for i := next; i < len(was.lines); i++ {
			if squash(was.lines[i]) == squash(l) {
				l, next = was.lines[i], i+1
				break
			}
		}
		out.lines = append(out.lines, l)
	}
	return out
}

// cut reports whether the block leaves a part of the argument out.
func (f blockField) cut() bool {
	for _, l := range f.lines {
		if strings.HasPrefix(strings.TrimSpace(l), "[…") {
			return true
		}
	}
	return false
}

// fieldsOf takes a block apart. Lines that name no argument belong to the one before.
func fieldsOf(block string) ([]blockField, error) {
	var out []blockField
	for _, l := range splitLines(block) {
		t := strings.TrimSpace(l)
		if t == "" || markKind(t) != noMark || strings.HasPrefix(t, "[in all ") || t == "(none)" && len(out) == 0 {
			continue
		}
		l = strings.TrimLeft(l, " ")
		if key, _, ok := cutKey(l); ok && l[0] != '|' && l[0] != ':' {
			out = append(out, blockField{key, []string{l}})
			continue
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("%w: line “%s” names no argument", ErrBlock, clip(t, 60))
		}
		out[len(out)-1].lines = append(out[len(out)-1].lines, l)
	}
	return out, nil
}

// rejoin puts lines back to the argument that a program broke there, though they look
// like the beginning of another: together they are what was sent.
func rejoin(got []blockField, sent map[string]blockField) []blockField {
	var out []blockField
	for i := 0; i < len(got); i++ {
		f := got[i]
		was, known := sent[strings.ToLower(f.key)]
		for j := i + 1; known && j < len(got) && j < i+20; j++ {
			whole := f
			for _, g := range got[i+1 : j+1] {
				whole.lines = append(whole.lines[:len(whole.lines):len(whole.lines)], g.lines...)
			}
			if sameBlock(was.text(), whole.text()) {
				f, i = whole, j
				break
			}
		}
		out = append(out, f)
	}
	return out
}

// edited lays a changed block over the arguments.
func edited(args json.RawMessage, sent, block string) (json.RawMessage, error) {
	before, err := fieldsOf(sent)
	if err != nil {
		return nil, err
	}
	shown := map[string]blockField{} // by key in lower case: phones write capitals
	for _, f := range before {
		shown[strings.ToLower(f.key)] = f
	}
	after, err := fieldsOf(block)
	if err != nil {
		return nil, err
	}
	now := map[string]blockField{}
	var order []string
	for _, f := range rejoin(after, shown) {
		key := strings.ToLower(f.key)
		if _, twice := now[key]; twice {
			return nil, fmt.Errorf("%w: %s comes twice", ErrBlock, f.key)
		}
		now[key], order = f, append(order, key)
	}
	collapsed := strings.Contains(sent, "\n  |") && !strings.Contains(block, "\n  |")
	w := objectWriter{}
	for _, a := range argumentsOf(args) {
		key := strings.ToLower(a.name())
		f, there := now[key]
		delete(now, key)
		was, seen := shown[key]
		switch {
		case !seen, there && sameBlock(was.text(), f.text()):
			w.add(a.name(), string(a.raw))
		case !there: // taken out
		default:
			if collapsed {
				f = f.withBlanksOf(was)
			}
			if err := w.addField(a.name(), f, was.cut(), isText(a.raw) && !(was.quoted() && f.quoted())); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range order {
		if f, there := now[key]; there {
			if err := w.addField(f.key, f, false, false); err != nil {
				return nil, err
			}
		}
	}
	return json.RawMessage("{" + strings.Join(w.members, ",") + "}"), nil
}

// name is the argument's name as it is in JSON.
func (a argument) name() string {
	var s string
	if strings.HasPrefix(a.key, `"`) && json.Unmarshal([]byte(a.key), &s) == nil {
		return s
	}
	return a.key
}

func isText(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// objectWriter collects the members of a JSON object.
type objectWriter struct{ members []string }

func (w *objectWriter) add(name, value string) {
	k, _ := json.Marshal(name) // a string always encodes
	w.members = append(w.members, string(k)+":"+value)
}

func (w *objectWriter) addField(name string, f blockField, partly, text bool) error {
	if partly || f.cut() {
		return fmt.Errorf("%w: %s was shown in part only and cannot be changed by a reply", ErrBlock, name)
	}
	p := blockParser{}
	for i, l := range f.lines {
		if i > 0 && l[0] != '|' && l[0] != ':' { // broken by a program
			n := len(p.vals[0]) - 1
			if n == 0 {
				p.vals[0] = append(p.vals[0], l)
			} else {
				p.vals[0][n] += " " + l
			}
			continue
		}
		if err := p.line(l); err != nil {
			return err
		}
	}
	if v := p.vals[0]; text && v[0] == "" {
		v[0] = "|" // it was a text and stays one, whatever it looks like
	}
	value, err := p.value(0)
	if err == nil {
		w.add(name, value)
	}
	return err
}
