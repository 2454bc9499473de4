package mime

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// check holds what must be true of every structure.
func check(t testing.TB, msg string, s *Structure) {
	t.Helper()
	checkPart(t, s.Root, Range{0, int64(len(msg))}, 1, new(int))
	for name, wire := range map[string][]byte{"ENVELOPE": s.Envelope, "BODY": s.Body, "BODYSTRUCTURE": s.BodyStructure} {
		v, err := readWire(wire)
		if err == nil {
			switch name {
			case "ENVELOPE":
				err = checkEnvelope(v)
			default:
				err = checkBody(v, name == "BODYSTRUCTURE")
			}
		}
		if err != nil {
			t.Fatalf("%s: %v\n%.2000q", name, err, wire)
		}
	}
	enc := Encode(s)
	d, err := Decode(enc)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(Encode(d), enc) {
		t.Fatal("encoding changes on its way through Decode")
	}
	s.Root.Walk(func(path []int, p *Part) bool {
		found := s.Find(path)
		if p.Type == "multipart" && found != p && len(found.Children) == 1 {
			found = found.Children[0] // the message inside has its part's path
		}
		if found != p {
			t.Fatalf("Find(%v) is another part", path)
		}
		return true
	})
}

func checkPart(t testing.TB, p *Part, in Range, depth int, count *int) {
	t.Helper()
	if *count++; *count > MaxParts || depth > MaxDepth {
		t.Fatalf("%d parts, depth %d", *count, depth)
	}
	if p.Header.Start < in.Start || p.Header.End < p.Header.Start || p.Body.Start != p.Header.End ||
		p.Body.End < p.Body.Start || p.Body.End > in.End {
		t.Fatalf("ranges %+v %+v are outside of %+v", p.Header, p.Body, in)
	}
	if p.Lines < 0 || p.Lines > p.Body.Len() {
		t.Fatalf("%d lines in %d octets", p.Lines, p.Body.Len())
	}
	for _, v := range []string{p.Type, p.Subtype, p.Encoding, p.Filename, p.ContentID} {
		if !utf8.ValidString(v) {
			t.Fatalf("%q is not UTF-8", v)
		}
	}
	if !isToken(p.Type) || !isToken(p.Subtype) || p.Type == "multipart" && len(p.Children) == 0 {
		t.Fatalf("type %q/%q with %d parts", p.Type, p.Subtype, len(p.Children))
	}
	if strings.ContainsAny(p.Filename, "/\\\x00\r\n") || len(p.Filename) > maxFilename || p.Filename == ".." {
		t.Fatalf("file name %q", p.Filename)
	}
	last := p.Body.Start
	for _, c := range p.Children {
		if c.Header.Start < last {
			t.Fatalf("parts overlap at %d", last)
		}
		checkPart(t, c, p.Body, depth+1, count)
		last = c.Body.End
	}
}

// readWire reads one parenthesised IMAP value: a list is []any, a string is string, NIL
// is nil, a number is int64.
func readWire(b []byte) (any, error) {
	for _, c := range b {
		if c == 0 || c >= 0x80 {
			return nil, fmt.Errorf("octet %#x", c)
		}
	}
	r := &wireReader{b: b}
	v, err := r.value()
	if err == nil && len(r.b) > 0 {
		err = fmt.Errorf("%.20q behind the value", r.b)
	}
	return v, err
}

type wireReader struct{ b []byte }

func (r *wireReader) value() (any, error) {
	if len(r.b) == 0 {
		return nil, fmt.Errorf("cut")
	}
	switch c := r.b[0]; {
	case c == '(':
		return r.list()
	case c == '"':
		return r.quoted()
	case c == '{':
		head, rest, ok := bytes.Cut(r.b[1:], []byte("}\r\n"))
		n, err := strconv.Atoi(string(head))
		if !ok || err != nil || n > len(rest) {
			return nil, fmt.Errorf("bad literal")
		}
		r.b = rest[n:]
		return string(rest[:n]), nil
	case bytes.HasPrefix(r.b, []byte("NIL")):
		r.b = r.b[3:]
		return nil, nil
	}
	i := 0
	for i < len(r.b) && r.b[i] >= '0' && r.b[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(string(r.b[:i]), 10, 64)
	r.b = r.b[i:]
	return n, err
}

func (r *wireReader) list() (any, error) {
	r.b = r.b[1:]
	out := []any{}
	for {
		if len(r.b) == 0 {
			return nil, fmt.Errorf("list is open")
		}
		if r.b[0] == ')' {
			r.b = r.b[1:]
			return out, nil
		}
		// Lists in a list need no space between them: "1*address", "1*body".
		if len(out) > 0 && r.b[0] == ' ' {
			r.b = r.b[1:]
		} else if len(out) > 0 && r.b[0] != '(' {
			return nil, fmt.Errorf("no space before %.20q", r.b)
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

func (r *wireReader) quoted() (any, error) {
	var b strings.Builder
	for i := 1; i < len(r.b); i++ {
		switch c := r.b[i]; c {
		case '"':
			r.b = r.b[i+1:]
			return b.String(), nil
		case '\r', '\n':
			return nil, fmt.Errorf("line end in a quoted string")
		case '\\':
			i++
			if i == len(r.b) || r.b[i] != '"' && r.b[i] != '\\' {
				return nil, fmt.Errorf("bad escape")
			}
			b.WriteByte(r.b[i])
		default:
			b.WriteByte(c)
		}
	}
	return nil, fmt.Errorf("quoted string is open")
}

// shape checks values against a pattern: s string, n nstring, l list or NIL, d number,
// v any.
func shape(vs []any, pattern string) error {
	if len(vs) != len(pattern) {
		return fmt.Errorf("%d values, want %q", len(vs), pattern)
	}
	for i, k := range pattern {
		ok := true
		switch _, isString := vs[i].(string); k {
		case 's':
			ok = isString
		case 'n':
			ok = isString || vs[i] == nil
		case 'l':
			_, ok = vs[i].([]any)
			ok = ok || vs[i] == nil
		case 'd':
			_, ok = vs[i].(int64)
		}
		if !ok {
			return fmt.Errorf("value %d is %T, want %c of %q", i, vs[i], k, pattern)
		}
	}
	return nil
}

func checkEnvelope(v any) error {
	vs, _ := v.([]any)
	if err := shape(vs, "nnllllllnn"); err != nil {
		return err
	}
	for _, list := range vs[2:8] {
		addrs, _ := list.([]any)
		if list != nil && len(addrs) == 0 {
			return fmt.Errorf("empty address list")
		}
		group := false
		for _, a := range addrs {
			f, _ := a.([]any)
			if err := shape(f, "nnnn"); err != nil {
				return err
			}
			start, end := f[3] == nil && f[2] != nil, f[3] == nil && f[2] == nil
			if start && group || end && !group {
				return fmt.Errorf("groups are not balanced")
			}
			if start || end {
				group = start
			}
		}
		if group {
			return fmt.Errorf("open group")
		}
	}
	return nil
}

func checkParams(v any) error {
	list, _ := v.([]any)
	if v != nil && (len(list) == 0 || len(list)%2 != 0) {
		return fmt.Errorf("parameter list of %d", len(list))
	}
	return shape(list, strings.Repeat("s", len(list)))
}

func checkBody(v any, extended bool) error {
	vs, _ := v.([]any)
	if len(vs) == 0 {
		return fmt.Errorf("%T is no body", v)
	}
	if _, multi := vs[0].([]any); multi {
		return checkMultipart(vs, extended)
	}
	pattern := "ssl" + "nns" + "d"
	typ, _ := vs[0].(string)
	sub, _ := vs[1].(string)
	switch kind := strings.ToLower(typ + "/" + sub); {
	case kind == "message/rfc822", kind == "message/global":
		pattern += "lld"
		if len(vs) < 10 {
			return fmt.Errorf("message of %d values", len(vs))
		}
		if err := checkEnvelope(vs[7]); err != nil {
			return err
		}
		if err := checkBody(vs[8], extended); err != nil {
			return err
		}
	case strings.EqualFold(typ, "text"):
		pattern += "d"
	}
	if extended {
		pattern += "nlvn"
	}
	if err := shape(vs, pattern); err != nil {
		return err
	}
	return checkParams(vs[2])
}

func checkMultipart(vs []any, extended bool) error {
	i := 0
	for i < len(vs) && reflect.TypeOf(vs[i]) == reflect.TypeFor[[]any]() {
		if err := checkBody(vs[i], extended); err != nil {
			return err
		}
		i++
	}
	pattern := "s"
	if extended {
		pattern = "sllvn"
	}
	if err := shape(vs[i:], pattern); err != nil {
		return err
	}
	if extended {
		return checkParams(vs[i+1])
	}
	return nil
}
