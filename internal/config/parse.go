package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"pizza/internal/levenshtein"
)

// node is a JSON value with its place in the file.
type node struct {
	offset  int64
	raw     json.RawMessage // of a value that is no object and no array
	object  []member        // in order; nil if it is no object
	array   []*node
	isObj   bool
	isArray bool
}

type member struct {
	key    string
	offset int64
	value  *node
}

// document is a parsed file: where each key stands, and what is wrong with it.
type document struct {
	data  []byte
	name  string
	keys  map[string]int64 // by path, as in "listen.imap"
	found problems
}

// bom is the mark that some editors put before UTF-8. RFC 8259 section 8.1 lets a reader
// pass over it.
const bom = "\uFEFF"

// Parse reads the contents of a settings file over the defaults. The error is an *Error
// with all problems of syntax, keys and types; values are looked at by Resolve.
func Parse(data []byte) (Settings, error) {
	s, doc := parse(FileName, data)
	return s, doc.found.err()
}

func parse(name string, data []byte) (Settings, *document) {
	data = bytes.TrimPrefix(data, []byte(bom))
	d := &document{data: data, name: name, keys: map[string]int64{}}
	d.found.where = d.where
	s := Default()
	if len(bytes.TrimSpace(data)) == 0 {
		return s, d
	}
	root, err := d.read()
	if err != nil {
		return s, d
	}
	d.assign(root, reflect.ValueOf(&s).Elem(), "")
	return s, d
}

// where is the place of a key, or of the nearest key above it.
func (d *document) where(key string) string {
	for {
		if off, ok := d.keys[key]; ok {
			return d.at(off)
		}
		i := strings.LastIndexAny(key, ".[")
		if i < 0 {
			return d.name
		}
		key = key[:i]
	}
}

// at gives line and column, counted in characters from 1.
func (d *document) at(off int64) string {
	before := d.data[:min(off, int64(len(d.data)))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := 1 + len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:])))
	return fmt.Sprintf("%s:%d:%d", d.name, line, column)
}

// problemAt adds a problem at an offset.
func (d *document) problemAt(off int64, key, format string, args ...any) {
	d.found.list = append(d.found.list, Problem{Where: d.at(off), Key: key, Text: fmt.Sprintf(format, args...)})
}

// read parses the whole file. A fault of syntax ends it.
func (d *document) read() (*node, error) {
	if !json.Valid(d.data) { // says where better than Token does
		var v any
		err := json.Unmarshal(d.data, &v)
		var syntax *json.SyntaxError
		off := int64(len(d.data))
		if errors.As(err, &syntax) && syntax.Error() != "unexpected end of JSON input" {
			off = max(0, syntax.Offset-1)
		}
		d.problemAt(off, "", "no valid JSON: %v", err)
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(d.data))
	dec.UseNumber()
	return d.readValue(dec)
}

// start skips what may stand before a token.
func (d *document) start(off int64) int64 {
	for off < int64(len(d.data)) && strings.IndexByte(" \t\r\n,:", d.data[off]) >= 0 {
		off++
	}
	return off
}

func (d *document) readValue(dec *json.Decoder) (*node, error) {
	n := &node{offset: d.start(dec.InputOffset())}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		n.isObj = true
		return n, d.readObject(dec, n)
	case json.Delim('['):
		n.isArray = true
		for dec.More() {
			v, err := d.readValue(dec)
			if err != nil {
				return nil, err
			}
			n.array = append(n.array, v)
		}
		_, err = dec.Token()
		return n, err
	}
	n.raw = d.data[n.offset:dec.InputOffset()]
	return n, nil
}

func (d *document) readObject(dec *json.Decoder, n *node) error {
	for dec.More() {
		off := d.start(dec.InputOffset())
		t, err := dec.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return io.ErrUnexpectedEOF
		}
		v, err := d.readValue(dec)
		if err != nil {
			return err
		}
		n.object = append(n.object, member{key, off, v})
	}
	_, err := dec.Token()
	return err
}

// assign sets v from n, as encoding/json would, and notes every problem.
func (d *document) assign(n *node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		d.assignStruct(n, v, path)
	case reflect.Map:
		d.assignMap(n, v, path)
	case reflect.Slice:
		if !n.isArray {
			d.problemAt(n.offset, path, "must be a list: [ ... ]")
			return
		}
		list := reflect.MakeSlice(v.Type(), len(n.array), len(n.array))
		for i, item := range n.array {
			at := path + "[" + strconv.Itoa(i) + "]"
			d.keys[at] = item.offset
			d.assign(item, list.Index(i), at)
		}
		v.Set(list)
	default:
		d.assignPlain(n, v, path)
	}
}

func (d *document) assignPlain(n *node, v reflect.Value, path string) {
	want := map[reflect.Kind]string{reflect.String: `text in quotes: "..."`, reflect.Int: "a whole number", reflect.Bool: "true or false",
		reflect.Float64: "a number"}[kindOf(v.Type())]
	if n.raw == nil || string(n.raw) == "null" || json.Unmarshal(n.raw, v.Addr().Interface()) != nil {
		d.problemAt(n.offset, path, "must be %s", want)
	}
}

// kindOf is the kind of a value, or of what a pointer leads to.
func kindOf(t reflect.Type) reflect.Kind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind()
}

// members calls fn for each key, and notes those that come twice.
func (d *document) members(n *node, path string, fn func(m member, at string)) {
	if !n.isObj {
		d.problemAt(n.offset, path, "must be an object: { ... }")
		return
	}
	seen := map[string]bool{}
	for _, m := range n.object {
		at := join(path, m.key)
		if seen[m.key] {
			d.problemAt(m.offset, at, "comes twice")
			continue
		}
		seen[m.key] = true
		d.keys[at] = m.value.offset
		fn(m, at)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *document) assignStruct(n *node, v reflect.Value, path string) {
	fields := map[string]reflect.Value{}
	var names []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		fields[name] = v.Field(i)
		names = append(names, name)
	}
	d.members(n, path, func(m member, at string) {
		f, ok := fields[m.key]
		if !ok {
			d.problemAt(m.offset, at, "unknown key%s", nearest(m.key, names))
			return
		}
		d.assign(m.value, f, at)
	})
}

func (d *document) assignMap(n *node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.members(n, path, func(m member, at string) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.assign(m.value, item, at)
		v.SetMapIndex(reflect.ValueOf(m.key), item)
	})
}

// nearest names the keys there are, or the one that was probably meant.
func nearest(key string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if dist := levenshtein.Distance(strings.ToLower(key), strings.ToLower(name)); dist < least {
			best, least = name, dist
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; known are " + strings.Join(names, ", ")
}
