package jsonschema

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const file = `{"type":"object","properties":{"path":{"type":"string","minLength":2},"from":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`
	for _, tt := range []struct{ schema, value, want string }{
		{"", `{"x":1}`, ""},
		{`{}`, `null`, ""},
		{`true`, `1`, ""},
		{`false`, `1`, "is not taken"},
		{`[]`, `1`, "cannot be read"},
		{`{`, `1`, "cannot be read"},
		{file, `{"path":"/a","from":1}`, ""},
		{file, `{"path":"/a","from":1.0}`, ""},
		{file, `{}`, "the arguments must have path"},
		{file, `{"path":7}`, "path must be a text"},
		{file, `{"path":"/"}`, "at least 2 characters"},
		{file, `{"path":"/a","from":0}`, "from must be at least 1"},
		{file, `{"path":"/a","from":1.5}`, "from must be a whole number"},
		{file, `{"path":"/a","tool":"x"}`, "must not have tool; there are from, path"},
		{file, `[]`, "must be an object"},
		{`{"type":["string","null"]}`, `null`, ""},
		{`{"type":["string","null"]}`, `1`, "a text or null"},
		{`{"enum":["a",1]}`, `1.0`, ""},
		{`{"enum":["a",1]}`, `"b"`, `one of "a", 1`},
		{`{"const":{"a":[1]}}`, `{"a":[1]}`, ""},
		{`{"const":{"a":[1]}}`, `{"a":[2]}`, "must be"},
		{`{"exclusiveMinimum":1,"exclusiveMaximum":3,"multipleOf":0.1}`, `2.3`, ""},
		{`{"exclusiveMinimum":1}`, `1`, "more than 1"},
		{`{"exclusiveMaximum":3}`, `3`, "less than 3"},
		{`{"maximum":3}`, `1e400`, "at most 3"},
		{`{"multipleOf":5}`, `12`, "multiple of 5"},
		{`{"pattern":"^a+$"}`, `"aa"`, ""},
		{`{"pattern":"^a+$"}`, `"b"`, "fit the pattern"},
		{`{"pattern":"(?<=x)"}`, `"b"`, ""},
		{`{"items":{"type":"integer"},"minItems":1,"maxItems":2,"uniqueItems":true}`, `[1,2]`, ""},
		{`{"items":{"type":"integer"}}`, `[1,"x"]`, "[1] must be a whole number"},
		{`{"minItems":1}`, `[]`, "at least 1 items"},
		{`{"uniqueItems":true}`, `[{"a":1},{"a":1.0}]`, "twice"},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, `["a"]`, ""},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, `["a",1]`, "[1] is not taken"},
		{`{"properties":{"a":{"properties":{"b":{"type":"boolean"}}}}}`, `{"a":{"b":1}}`, "a.b must be true or false"},
		{`{"additionalProperties":{"type":"integer"}}`, `{"x":"y"}`, "x must be a whole number"},
		{`{"patternProperties":{"^x_":{"type":"string"}},"additionalProperties":false}`, `{"x_a":"y"}`, ""},
		{`{"patternProperties":{"^x_":{"type":"string"}},"additionalProperties":false}`, `{"y":"y"}`, "must not have y"},
		{`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, "at most 2"},
		{`{"minProperties":1}`, `{}`, "at least 1"},
		{`{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":"x"}`, "a must be a whole number"},
		{`{"$ref":"https://elsewhere.example/x"}`, `1`, "not there"},
		{`{"$ref":"#"}`, `1`, "refers to itself"},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `1`, ""},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `true`, "must be a text"},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `1`, ""},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `3`, "several forms"},
		{`{"allOf":[{"minimum":1},{"maximum":2}]}`, `3`, "at most 2"},
		{`{"not":{"type":"string"}}`, `"x"`, "not taken"},
		{`{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":5}}`, `"x"`, "at least 2 characters"},
		{`{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":5}}`, `4`, "at least 5"},
		{`{"type":"object"}`, `{"a":1} {}`, "no valid JSON"},
	} {
		err := Check(json.RawMessage(tt.schema), json.RawMessage(tt.value))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s against %s: %v, want %q", tt.value, tt.schema, err, tt.want)
		}
	}
}

func TestDeepValuesEnd(t *testing.T) {
	t.Parallel()
	schema := `{"items":{"$ref":"#"}}`
	value := strings.Repeat("[", 400) + strings.Repeat("]", 400)
	if err := Check(json.RawMessage(schema), json.RawMessage(value)); err == nil || !strings.Contains(err.Error(), "too deeply") {
		t.Errorf("%v", err)
	}
	branches := `{"$defs":{"x":{"allOf":[{"not":{"$ref":"#/$defs/x"}},{"not":{"$ref":"#/$defs/x"}}]}},"$ref":"#/$defs/x"}`
	_ = Check(json.RawMessage(branches), json.RawMessage(`1`)) // ends
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":1}}`)
	f.Add(`{"oneOf":[{"enum":[1]},{"not":{}}]}`, `1`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		_ = Check(json.RawMessage(schema), json.RawMessage(value)) // no panic, no endless loop
	})
}
