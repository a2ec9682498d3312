package gate

import (
	"strings"
	"testing"
)

// A schema may refer to its own parts only. Data and property names that look like references are ignored.
func TestI10_OnlyFragmentReferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"properties":{"c":{"$ref":"city.json"}}}`, `"city.json" at /properties/c/$ref leads outside`},
		{`{"$ref":""}`, `"" at /$ref leads outside`},
		{`{"$ref":"?#/$defs/a","$defs":{"a":{}}}`, `leads outside`},
		{`{"$ref":"schema"}`, `leads outside`},
		{`{"$ref":" #"}`, `leads outside`},
		{`{"$ref":"https://reeve.invalid/schema#/$defs/a","$defs":{"a":{}}}`, `leads outside`},
		{`{"items":[{"$ref":"urn:uuid:1"}],"$schema":"http://json-schema.org/draft-07/schema#"}`, `leads outside`},
		{`{"allOf":[{"$dynamicRef":"other#n"}]}`, `leads outside`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","not":{"$recursiveRef":"other"}}`, `leads outside`},
		{`{"$id":"https://a.example/root.json","properties":{"a":{"$ref":"root.json#/x"}}}`, `leads outside`},
		{`{"$id":"https://a.example/root.json","$ref":"https://a.example/root.json#/$defs/a","$defs":{"a":{}}}`,
			`leads outside`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$id":"a.json","$ref":"#/$defs/b","$defs":{"b":{}}}}}`,
			`is relative to the $id at /$defs/a`},
		{`{"properties":{"x":{"$id":"urn:x","items":{"$ref":"#"}}}}`, `is relative to the $id at /properties/x`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"x":{"id":"urn:x","items":{"$ref":"#"}}}}`,
			`is relative to the id at`},
		{`{"$ref":"#/more/a","more":{"a":{"$ref":"schema"}}}`, `"schema" at /more/a/$ref leads outside`},
		{`{"$ref":"#/enum/0","enum":[{"$ref":"city.json"}]}`, `leads outside`},

		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`, ""},
		{`{"$id":"https://a.example/root.json","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`, ""},
		{`{"properties":{"a":{"$id":"a.json","type":"string"}}}`, ""},
		{`{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}`, ""},
		{`{"properties":{"a":{"const":{"$ref":"city.json"},"default":{"$ref":"x"},"enum":[{"$ref":"city.json"}]}}}`,
			""},
		{`{"x-note":{"$ref":"city.json"}}`, ""},
		{`{"$dynamicAnchor":"n","properties":{"child":{"$dynamicRef":"#n"}}}`, ""},
		{`{"properties":{"a":{"id":"one","items":{"$ref":"#"}}}}`, ""},
	} {
		text, want := c.text, c.want
		_, err := compile([]byte(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
