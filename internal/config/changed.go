package config

import (
	"encoding/json"
	"maps"
	"slices"
)

// Changed lists the keys in which two settings differ, sorted, as in "grants" and
// "accounts.me.unread". It names no values: they may be what people take for secret.
func Changed(a, b Settings) []string {
	x, y := leaves(a), leaves(b)
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool { return x[key] == y[key] })
}

// leaves are the values by key, as JSON. A list is one value.
func leaves(s Settings) map[string]string {
	data, err := json.Marshal(s)
	if err != nil {
		return nil // strings, numbers and lists of them: Marshal takes them all
	}
	into := map[string]string{}
	flatten(into, "", data)
	return into
}

func flatten(into map[string]string, key string, value json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil || fields == nil {
		into[key] = string(value)
		return
	}
	for name, field := range fields {
		if key != "" {
			name = key + "." + name
		}
		flatten(into, name, field)
	}
}
