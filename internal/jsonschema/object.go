package jsonschema

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// object checks the members of an object.
func (c *checker) object(s map[string]any, v any, at string, depth int) error {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if err := count(s, "minProperties", "maxProperties", len(m), at, "members"); err != nil {
		return err
	}
	for _, name := range texts(s["required"]) {
		if _, there := m[name]; !there {
			return wrong(at, "must have %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if names, ok := s["propertyNames"]; ok {
			if err := c.check(names, name, "the name "+name, depth); err != nil {
				return err
			}
		}
		if err := c.member(s, name, m[name], at, depth); err != nil {
			return err
		}
	}
	return nil
}

// member checks one member by the schemas that are about its name.
func (c *checker) member(s map[string]any, name string, v any, at string, depth int) error {
	where := name
	if at != "" {
		where = at + "." + name
	}
	properties, _ := s["properties"].(map[string]any)
	schema, known := properties[name]
	if known {
		if err := c.check(schema, v, where, depth); err != nil {
			return err
		}
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, p := range slices.Sorted(maps.Keys(patterns)) {
		re, err := regexp.Compile(p)
		if err != nil || !re.MatchString(name) {
			continue
		}
		known = true
		if err := c.check(patterns[p], v, where, depth); err != nil {
			return err
		}
	}
	more, given := s["additionalProperties"]
	switch {
	case known || !given:
		return nil
	case more == false:
		return wrong(at, "must not have %s; there are %s", name, strings.Join(slices.Sorted(maps.Keys(properties)), ", "))
	}
	return c.check(more, v, where, depth)
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, w := range list {
		if s, ok := w.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// combined checks what is put together of further schemas.
func (c *checker) combined(s map[string]any, v any, at string, depth int) error {
	fit := func(schema any) error { return c.check(schema, v, at, depth) }
	for _, schema := range listOf(s["allOf"]) {
		if err := fit(schema); err != nil {
			return err
		}
	}
	if list := listOf(s["anyOf"]); len(list) > 0 {
		if n, err := fitting(list, fit); n == 0 {
			return err
		}
	}
	if list := listOf(s["oneOf"]); len(list) > 0 {
		n, err := fitting(list, fit)
		if n == 0 {
			return err
		}
		if n > 1 {
			return wrong(at, "fits several forms of which one is wanted")
		}
	}
	if not, ok := s["not"]; ok && fit(not) == nil {
		return wrong(at, "has a value that is not taken")
	}
	if test, ok := s["if"]; ok {
		branch, given := s["then"]
		if fit(test) != nil {
			branch, given = s["else"]
		}
		if given {
			return fit(branch)
		}
	}
	return nil
}

// fitting counts the schemas that fit; the error is of the first that does not.
func fitting(list []any, fit func(any) error) (n int, first error) {
	for _, schema := range list {
		err := fit(schema)
		if err == nil {
			n++
		} else if first == nil {
			first = err
		}
	}
	return n, first
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}
