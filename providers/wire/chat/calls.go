package chat

import (
	"bytes"
	"encoding/json"
	"strings"

	"pizza/providers"
)

// callDelta is a piece of a tool call.
type callDelta struct {
	Index    json.RawMessage `json:"index"`
	ID       json.RawMessage `json:"id"`
	Function functionDelta   `json:"function"`
}

type functionDelta struct {
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a piece of JSON text; some send the object itself
}

// call is a tool call that is being assembled.
type call struct {
	index    int // -1: the server gives none
	id, name string
	args     strings.Builder
}

// calls assembles tool calls, in the order in which they began.
type calls struct{ list []*call }

func (cs *calls) len() int { return len(cs.list) }

// add takes the pieces of one chunk.
func (cs *calls) add(ds []callDelta) {
	for i, d := range ds {
		index := -1
		var n int
		if json.Unmarshal(d.Index, &n) == nil && given(d.Index) {
			index = n
		}
		id, name := str(d.ID), str(d.Function.Name)
		c := cs.find(index, id, name, i, len(ds))
		if c != nil && c.ended(index, name, d.Function.Arguments) {
			c = nil
		}
		if c == nil {
			c = &call{index: index}
			cs.list = append(cs.list, c)
		}
		c.add(id, name, d.Function.Arguments)
	}
}

// find returns the call that a piece belongs to, nil for a new one: by index, where
// a new id with a name is a new call all the same (some servers number every call
// 0); else by id; else a name begins a new call; else by place.
func (cs *calls) find(index int, id, name string, at, of int) *call {
	if index >= 0 {
		c := cs.last(func(c *call) bool { return c.index == index })
		if c != nil && id != "" && c.id != "" && id != c.id && name != "" {
			return cs.last(func(c *call) bool { return c.index == index && c.id == id })
		}
		return c
	}
	if id != "" {
		if c := cs.last(func(c *call) bool { return c.id == id }); c != nil || name != "" {
			return c
		}
	}
	switch {
	case name != "" || len(cs.list) == 0:
		return nil
	case of > 1 && len(cs.list) >= of:
		return cs.list[len(cs.list)-of+at]
	}
	return cs.list[len(cs.list)-1]
}

// ended reports whether a piece that seems to belong to c begins another call: ids
// and indexes are not always unique. A name that comes again with arguments, after
// c's own are a whole object, does; so does another name for the same id where there
// is no index.
func (c *call) ended(index int, name string, args json.RawMessage) bool {
	if name == "" || c.name == "" {
		return false
	}
	if index < 0 && name != c.name {
		return true
	}
	text := strings.TrimSpace(c.args.String())
	return given(args) && strings.HasSuffix(text, "}") && json.Valid([]byte(text))
}

func (cs *calls) last(is func(*call) bool) *call {
	for i := len(cs.list) - 1; i >= 0; i-- {
		if is(cs.list[i]) {
			return cs.list[i]
		}
	}
	return nil
}

func (c *call) add(id, name string, args json.RawMessage) {
	if c.id == "" {
		c.id = id
	}
	if name != "" && name != c.name {
		c.name += name
	}
	var s string
	switch {
	case !given(args) && string(args) != "{}" && string(args) != "false":
	case json.Unmarshal(args, &s) == nil:
		c.args.WriteString(s)
	default:
		c.args.Write(args)
	}
}

// calledTool is a finished call, and its name as it was on the wire.
type calledTool struct {
	providers.ToolCall
	sent string
}

// finish returns the calls. cut says that the reply ended at its length: then the
// last call may be a part of one, even if what there is of it reads well.
func (cs *calls) finish(cut bool) []calledTool {
	out := make([]calledTool, 0, len(cs.list))
	for i, c := range cs.list {
		t := calledTool{providers.ToolCall{ID: c.id, Name: c.name}, c.name}
		t.Args, t.Bad = arguments(c.args.String(), cut && i == len(cs.list)-1)
		if strings.TrimSpace(c.name) == "" {
			t.Name, t.sent, t.Bad = "unnamed", "unnamed", "the call names no tool"
		}
		out = append(out, t)
	}
	return out
}

const cutOff = "the arguments were cut off, because the reply reached its length limit; use shorter ones"

// arguments reads the text of arguments. None at all are {}; an object within a JSON
// string is unwrapped once; anything else is {} and why.
func arguments(text string, cut bool) (json.RawMessage, string) {
	raw := []byte(strings.TrimSpace(text))
	if len(raw) == 0 && cut {
		return json.RawMessage("{}"), cutOff
	}
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = []byte(strings.TrimSpace(inner))
	}
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), ""
	}
	switch {
	case json.Valid(raw) && raw[0] == '{':
		return bytes.Clone(raw), ""
	case cut:
		return json.RawMessage("{}"), cutOff
	case json.Valid(raw):
		return json.RawMessage("{}"), "the arguments are not a JSON object"
	}
	return json.RawMessage("{}"), "the arguments are not JSON"
}
