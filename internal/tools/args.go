package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// args are the checked arguments of a call.
type args struct {
	text map[string]string
	num  map[string]int
}

// parse reads arguments strictly: one JSON object with exactly the declared fields,
// each once and of its type. The errors are for the model.
func (t *tool) parse(raw json.RawMessage) (args, error) {
	a := args{text: map[string]string{}, num: map[string]int{}}
	values, err := object(raw)
	if err != nil {
		return a, fmt.Errorf("the arguments of %s: %w", t.name, err)
	}
	for name, value := range values {
		f := t.field(name)
		if f == nil {
			return a, fmt.Errorf("%s has no argument %s; it has %s", t.name, Show(name), t.names())
		}
		if err := a.set(f, value); err != nil {
			return a, err
		}
	}
	for _, f := range t.fields {
		if _, ok := values[f.name]; !ok && !f.optional {
			return a, fmt.Errorf("%s needs the argument %s", t.name, f.name)
		}
	}
	return a, nil
}

func (t *tool) field(name string) *field {
	for i := range t.fields {
		if t.fields[i].name == name {
			return &t.fields[i]
		}
	}
	return nil
}

func (t *tool) names() string {
	var names []string
	for _, f := range t.fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func (a args) set(f *field, value json.RawMessage) error {
	if f.kind == "string" {
		var s *string
		if json.Unmarshal(value, &s) != nil || s == nil {
			return fmt.Errorf("%s must be a string", f.name)
		}
		a.text[f.name] = *s
		return nil
	}
	var n *float64
	if json.Unmarshal(value, &n) != nil || n == nil || *n != math.Trunc(*n) || *n < 1 || *n > math.MaxInt32 {
		return fmt.Errorf("%s must be a whole number from 1", f.name)
	}
	a.num[f.name] = int(*n)
	return nil
}

// object splits a JSON object into its members. Unlike encoding/json it refuses a
// name given twice: which of the two counts must not be a matter of the reader.
func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	errNot := errors.New("not a JSON object")
	if !json.Valid(raw) {
		return nil, errNot
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errNot
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errNot
		}
		key, _ := name.(string)
		if _, twice := members[key]; twice {
			return nil, fmt.Errorf("%s is given twice", Show(key))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errNot
		}
		members[key] = value
	}
	return members, nil
}
