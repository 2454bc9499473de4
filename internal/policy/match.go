package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// match reports whether s is what the pattern says. It takes time O(len(pattern)*len(s))
// at the most.
func match(pattern, s string) bool {
	p, text := tokens(pattern), []rune(s)
	i, j, star, mark := 0, 0, -1, 0
	for j < len(text) {
		switch {
		case i < len(p) && p[i].any:
			star, mark = i, j
			i++
		case i < len(p) && (p[i].one || p[i].r == text[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i].any {
		i++
	}
	return i == len(p)
}

// token is a character of a pattern: itself, any one, or any number.
type token struct {
	r        rune
	one, any bool
}

func tokens(pattern string) []token {
	var out []token
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			out, escaped = append(out, token{r: r}), false
		case r == '\\':
			escaped = true
		case r == '*':
			out = append(out, token{any: true})
		case r == '?':
			out = append(out, token{one: true})
		default:
			out = append(out, token{r: r})
		}
	}
	return out
}

const maxPattern = 1000 // octets

var comparison = regexp.MustCompile(`^(<=|>=|<|>) *(-?[0-9]{1,15}(\.[0-9]{1,9})?)$`)

func checkPattern(p string) error {
	rest := strings.ReplaceAll(p, `\\`, "")
	switch {
	case len(p) > maxPattern:
		return fmt.Errorf("the pattern is longer than %d octets", maxPattern)
	case strings.IndexAny(p, "<>") == 0 && !comparison.MatchString(p):
		return fmt.Errorf(`%q begins like a comparison, as in >100, and is none; write \ before the sign if it is meant itself`, p)
	case strings.HasSuffix(rest, `\`):
		return errors.New(`the pattern ends in a single \`)
	}
	return nil
}

// fits compares one value. loose: in doubt it fits.
func fits(pattern string, v any, loose bool) bool {
	text := textOf(v)
	if m := comparison.FindStringSubmatch(pattern); m != nil {
		n, err := strconv.ParseFloat(text, 64)
		limit, _ := strconv.ParseFloat(m[2], 64) // the expression takes numbers only
		if err != nil {
			return loose
		}
		switch m[1] {
		case "<":
			return n < limit
		case "<=":
			return n <= limit
		case ">":
			return n > limit
		}
		return n >= limit
	}
	if loose {
		return match(strings.ToLower(pattern), strings.ToLower(text))
	}
	return match(pattern, text)
}

// textOf is a value as a pattern sees it.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return "null"
}

// values are all plain values under a name; "*" is all there are.
func (c Call) values(name string) []any {
	if name == "*" {
		var all []any
		for _, n := range slices.Sorted(maps.Keys(c.Args)) {
			all = append(all, c.values(n)...)
		}
		return all
	}
	if exact, ok := c.Exact[name]; ok {
		return []any{exact}
	}
	if v, ok := c.Args[name]; ok {
		return leaves(nil, v)
	}
	return inside(nil, c.Args, strings.Split(name, "."))
}

// inside follows a path of names, through lists.
func inside(into []any, v any, path []string) []any {
	if len(path) == 0 {
		return leaves(into, v)
	}
	switch v := v.(type) {
	case map[string]any:
		if w, ok := v[path[0]]; ok {
			return inside(into, w, path[1:])
		}
	case []any:
		for _, w := range v {
			into = inside(into, w, path)
		}
	}
	return into
}

func leaves(into []any, v any) []any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			into = leaves(into, v[k])
		}
		return into
	case []any:
		for _, w := range v {
			into = leaves(into, w)
		}
		return into
	}
	return append(into, v)
}
