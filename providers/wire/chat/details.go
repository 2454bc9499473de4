package chat

import (
	"encoding/json"
	"strings"
)

// details merges the fragments of reasoning_details (OpenRouter). Fragments of the
// same index and type are one entry: its text grows, other members are set by the
// last that has them. Fragments without an index follow each other by type.
type details struct{ list []*detail }

type detail struct {
	index, kind string // as written
	order       []string
	members     map[string]json.RawMessage
}

// growing are the members that come in pieces.
var growing = map[string]bool{"text": true, "summary": true, "data": true}

func (ds *details) add(fragment json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(fragment, &members) != nil || members == nil {
		return
	}
	index, kind := string(members["index"]), string(members["type"])
	d := ds.find(index, kind, members)
	if d == nil {
		d = &detail{index: index, kind: kind, members: map[string]json.RawMessage{}}
		ds.list = append(ds.list, d)
	}
	for _, name := range names(fragment) {
		d.set(name, members[name])
	}
}

// find returns the entry that a fragment goes on with. Encrypted data is whole in
// one fragment: a second with an id of its own is an entry of its own.
func (ds *details) find(index, kind string, members map[string]json.RawMessage) *detail {
	for i := len(ds.list) - 1; i >= 0; i-- {
		d := ds.list[i]
		if d.index != index || d.kind != kind {
			if index == "" {
				return nil
			}
			continue
		}
		if id := members["id"]; given(id) && given(d.members["id"]) && string(id) != string(d.members["id"]) {
			return nil
		}
		return d
	}
	return nil
}

func (d *detail) set(name string, value json.RawMessage) {
	old, has := d.members[name]
	if !has {
		d.order = append(d.order, name)
	}
	var a, b string
	if growing[name] && json.Unmarshal(old, &a) == nil && json.Unmarshal(value, &b) == nil {
		value = encode(a + b)
	}
	if !has || given(value) {
		d.members[name] = value
	}
}

// names lists the members of an object in their order.
func names(object json.RawMessage) []string {
	d := json.NewDecoder(strings.NewReader(string(object)))
	var out []string
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return out
		}
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return out
		}
		if s, ok := name.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// merged returns the entries, members in the order in which they came.
func (ds *details) merged() []json.RawMessage {
	var out []json.RawMessage
	for _, d := range ds.list {
		var b strings.Builder
		for i, name := range d.order {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(encode(name))
			b.WriteByte(':')
			b.Write(d.members[name])
		}
		out = append(out, json.RawMessage("{"+b.String()+"}"))
	}
	return out
}

// text is what can be shown of the reasoning.
func (ds *details) text() string {
	var b strings.Builder
	for _, d := range ds.list {
		b.WriteString(str(d.members["text"]))
		b.WriteString(str(d.members["summary"]))
	}
	return b.String()
}
