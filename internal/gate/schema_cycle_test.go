package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"reeve"
)

// isCircular finds cycles through all keywords that apply to the same value, anywhere in the schema. A reference to a
// smaller value or with an alternative is not a cycle.
func TestI10_CircularSchemas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"$ref":"#"}`:                                            true,
		`{"allOf":[{"$ref":"#"}]}`:                                true,
		`{"anyOf":[{"$ref":"#"}]}`:                                true,
		`{"oneOf":[{"$ref":"#"}]}`:                                true,
		`{"not":{"$ref":"#"}}`:                                    true,
		`{"if":{"$ref":"#"}}`:                                     true,
		`{"if":true,"then":{"$ref":"#"}}`:                         true,
		`{"if":false,"else":{"$ref":"#"}}`:                        true,
		`{"type":"object","dependentSchemas":{"a":{"$ref":"#"}}}`: true,
		`{"$dynamicAnchor":"n","allOf":[{"$dynamicRef":"#n"}]}`:   true,
		`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`:             true,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","allOf":[{"$recursiveRef":"#"}]}`:          true,
		`{"properties":{"a":{"items":{"$ref":"#/$defs/a"}}},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`:  true,
		`{"$ref":"#/$defs/a","$defs":{"a":{"dependentSchemas":{"x":{"$ref":"#/$defs/b"}}},"b":{"$ref":"#"}}}`: true,
		`{"anyOf":[{"allOf":[{"$ref":"#"}]},{"not":{"$ref":"#"}}]}`:                                           true,
		`{"properties":{"inner":{"$ref":"#"}}}`:                                                               false,
		`{"items":{"$ref":"#"},"prefixItems":[{"$ref":"#"}],"contains":{"$ref":"#"},"not":{"type":"string"}}`: false,
		`{"additionalProperties":{"$ref":"#"},"patternProperties":{"x":{"$ref":"#"}},"propertyNames":{}}`:     false,
		`{"dependentSchemas":{"a":{"properties":{"b":{"$ref":"#"}}}}}`:                                        false,
		`{"anyOf":[{"$ref":"#"},{"type":"string"}]}`:                                                          false,
		`{"oneOf":[{"$ref":"#"},{"type":"string"}]}`:                                                          false,
		// ignored without an if
		`{"then":{"$ref":"#"},"else":{"$ref":"#"}}`:                          false,
		`{"$dynamicAnchor":"n","properties":{"child":{"$dynamicRef":"#n"}}}`: false,
		// not reachable
		`{"type":"object","$defs":{"a":{"$ref":"#/$defs/a"}}}`:                                  false,
		`{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"object"}}}`: false,
		`true`:  false,
		`false`: false,
	} {
		s, err := compile([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if s.isCircular() != want {
			t.Errorf("%s: circular is %v", text, !want)
		}
	}
}

// For a stored tool with a circular schema, the error blames the tool. Other mistakes in the arguments are reported
// first.
func TestI10_StoredCircularSchema(t *testing.T) {
	t.Parallel()
	validate := func(text, args string) *reeve.Error {
		s, err := compile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p := newTestDecider(reeve.Call{Tool: "round", Args: json.RawMessage(args)}, s)
		if _, err = p.checkArguments(t.Context()); err == nil {
			t.Fatalf("schema %s accepted %s", text, args)
		}
		return reeve.AsError(err)
	}
	const circular = `{"type":"object","properties":{"b":{"type":"string"}},"dependentSchemas":{"a":{"$ref":"#"}}}`
	if got := validate(circular, `{"a":1}`); got.Code != reeve.Unsupported ||
		!strings.Contains(got.Message, `the tool "round"`) || !strings.Contains(got.Message, "cycle") ||
		!strings.Contains(got.Hint, "the author of the tool") {
		t.Errorf("%+v", got)
	}
	alternative := `{"type":"object",
		"properties":{"inner":{"anyOf":[{"$ref":"#/properties/inner"},{"type":"string"}]}}}`
	for text, args := range map[string]string{circular: `{"a":1,"b":[]}`, alternative: `{"inner":[]}`} {
		if got := validate(text, args); got.Code != reeve.Validation || len(got.Fields) != 1 ||
			got.Fields[0].Expected != "string" || strings.Contains(got.Message, "cycle") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
