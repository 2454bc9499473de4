// Package jsonschema checks a JSON value against a JSON Schema (draft 2020-12, as far as
// tools use it) and says what does not fit in words for a person or a model.
//
// Checked are type, enum, const, properties, required, additionalProperties,
// patternProperties, propertyNames, minProperties, maxProperties, items, prefixItems,
// minItems, maxItems, uniqueItems, minLength, maxLength, pattern, minimum, maximum,
// exclusiveMinimum, exclusiveMaximum, multipleOf, allOf, anyOf, oneOf, not, if/then/else,
// and $ref within the document. Other keywords (format among them) say nothing, as the
// standard has it for annotations; a schema that cannot be read fits nothing.
//
// The package is a leaf and pure.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of nesting, references that lead to themselves among it, and of work.
const (
	maxDepth = 100
	maxSteps = 100_000 // of one check: forms within forms would take for ever
)

// Check returns nil when value fits schema. An empty schema takes any value.
func Check(schema, value json.RawMessage) error {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil
	}
	s, err := decode(schema)
	if err != nil {
		return errors.New("the schema of the tool cannot be read")
	}
	v, err := decode(value)
	if err != nil {
		return errors.New("no valid JSON")
	}
	c := &checker{root: s}
	return c.check(s, v, "", 0)
}

func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

type checker struct {
	root  any
	steps int
}

func wrong(at, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if at == "" {
		return errors.New("the arguments " + text)
	}
	return errors.New(at + " " + text)
}

// check holds v against a schema; at is the path to v.
func (c *checker) check(schema, v any, at string, depth int) error {
	c.steps++
	if depth > maxDepth || c.steps > maxSteps {
		return wrong(at, "is nested too deeply, or its schema refers to itself")
	}
	s, ok := schema.(map[string]any)
	if !ok {
		if fits, isBool := schema.(bool); isBool && fits {
			return nil
		} else if isBool {
			return wrong(at, "is not taken")
		}
		return wrong(at, "has a schema that cannot be read")
	}
	for _, rule := range []func(map[string]any, any, string, int) error{
		c.reference, c.kind, c.choice, c.number, c.text, c.list, c.object, c.combined,
	} {
		if err := rule(s, v, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) reference(s map[string]any, v any, at string, depth int) error {
	ref, ok := s["$ref"].(string)
	if !ok {
		return nil
	}
	to, found := c.root, strings.HasPrefix(ref, "#")
	for _, name := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if name == "" {
			continue
		}
		m, isObject := to.(map[string]any)
		to, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
		found = found && isObject && ok
	}
	if !found {
		return wrong(at, "has a schema that refers to %q, which is not there", ref)
	}
	return c.check(to, v, at, depth)
}

func (c *checker) kind(s map[string]any, v any, at string, _ int) error {
	var kinds []string
	switch t := s["type"].(type) {
	case string:
		kinds = []string{t}
	case []any:
		for _, k := range t {
			name, _ := k.(string)
			kinds = append(kinds, name)
		}
	default:
		return nil
	}
	is := typeOf(v)
	for _, k := range kinds {
		if k == is || k == "number" && is == "integer" {
			return nil
		}
	}
	for i, k := range kinds {
		kinds[i] = map[string]string{"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
			"array": "a list", "object": "an object", "null": "null"}[k]
	}
	return wrong(at, "must be %s", strings.Join(kinds, " or "))
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case json.Number:
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) {
			return "integer"
		}
		return "number"
	}
	return "null"
}

func (c *checker) choice(s map[string]any, v any, at string, _ int) error {
	if want, ok := s["const"]; ok && !equal(want, v) {
		return wrong(at, "must be %s", show(want))
	}
	list, ok := s["enum"].([]any)
	if !ok || slices.ContainsFunc(list, func(w any) bool { return equal(w, v) }) {
		return nil
	}
	var names []string
	for _, w := range list {
		names = append(names, show(w))
	}
	return wrong(at, "must be one of %s", strings.Join(names, ", "))
}

func show(v any) string {
	b, _ := json.Marshal(v) // decoded from JSON
	return string(b)
}

// equal compares values; numbers by value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, errX := a.Float64()
		y, errY := n.Float64()
		return a == n || errX == nil && errY == nil && x == y
	case []any:
		list, ok := b.([]any)
		return ok && slices.EqualFunc(a, list, equal)
	case map[string]any:
		m, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, m, equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

func (c *checker) number(s map[string]any, v any, at string, _ int) error {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	f, _ := n.Float64() // too large is an infinity, which compares rightly
	for _, r := range []struct {
		key, text string
		ok        func(limit float64) bool
	}{
		{"minimum", "must be at least", func(l float64) bool { return f >= l }},
		{"maximum", "must be at most", func(l float64) bool { return f <= l }},
		{"exclusiveMinimum", "must be more than", func(l float64) bool { return f > l }},
		{"exclusiveMaximum", "must be less than", func(l float64) bool { return f < l }},
		{"multipleOf", "must be a multiple of", func(l float64) bool {
			q := f / l
			return l <= 0 || math.Abs(q-math.Round(q)) <= 1e-9*math.Max(1, math.Abs(q))
		}},
	} {
		if l, given := limit(s, r.key); given && !r.ok(l) {
			return wrong(at, "%s %s", r.text, strconv.FormatFloat(l, 'g', -1, 64))
		}
	}
	return nil
}

func limit(s map[string]any, key string) (float64, bool) {
	n, ok := s[key].(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func (c *checker) text(s map[string]any, v any, at string, _ int) error {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	if err := count(s, "minLength", "maxLength", utf8.RuneCountInString(text), at, "characters"); err != nil {
		return err
	}
	pattern, ok := s["pattern"].(string)
	if !ok {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil // of another dialect: the tool itself checks it
	}
	if !re.MatchString(text) {
		return wrong(at, "must fit the pattern %s", pattern)
	}
	return nil
}

func count(s map[string]any, least, most string, n int, at, what string) error {
	if l, ok := limit(s, least); ok && float64(n) < l {
		return wrong(at, "must have at least %v %s", l, what)
	}
	if l, ok := limit(s, most); ok && float64(n) > l {
		return wrong(at, "must have at most %v %s", l, what)
	}
	return nil
}

func (c *checker) list(s map[string]any, v any, at string, depth int) error {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	if err := count(s, "minItems", "maxItems", len(list), at, "items"); err != nil {
		return err
	}
	if unique, _ := s["uniqueItems"].(bool); unique {
		for i, w := range list {
			if slices.ContainsFunc(list[:i], func(o any) bool { return equal(o, w) }) {
				return wrong(at, "must not hold anything twice")
			}
		}
	}
	first, _ := s["prefixItems"].([]any)
	for i, w := range list {
		schema, given := s["items"]
		if i < len(first) {
			schema, given = first[i], true
		}
		if !given {
			continue
		}
		if err := c.check(schema, w, at+"["+strconv.Itoa(i)+"]", depth); err != nil {
			return err
		}
	}
	return nil
}
