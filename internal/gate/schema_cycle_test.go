package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"reeve"
)

// A circle is found in whatever a value is checked by as a whole, wherever in the schema it is. What gets smaller on
// the way, or has another way out, is none.
func TestI10_CirclesOfSchemas(t *testing.T) {
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
		// which nobody looks at without an if
		`{"then":{"$ref":"#"},"else":{"$ref":"#"}}`:                          false,
		`{"$dynamicAnchor":"n","properties":{"child":{"$dynamicRef":"#n"}}}`: false,
		// which nothing leads to
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

// Of a tool that was made before circles were looked for, callers are told that it is the tool that is wrong, in words
// of ours; what else is wrong with the arguments comes first.
func TestI10_AStoredCircleIsNotTheCallersFault(t *testing.T) {
	t.Parallel()
	validate := func(text, args string) *reeve.Error {
		s, err := compile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p := decideOn(reeve.Call{Tool: "round", Args: json.RawMessage(args)}, s)
		if _, err = p.checkArguments(t.Context()); err == nil {
			t.Fatalf("%s let %s pass", text, args)
		}
		return reeve.AsError(err)
	}
	const round = `{"type":"object","properties":{"b":{"type":"string"}},"dependentSchemas":{"a":{"$ref":"#"}}}`
	if told := validate(round, `{"a":1}`); told.Code != reeve.Unsupported ||
		!strings.Contains(told.Message, `the tool "round"`) || !strings.Contains(told.Message, "circle") ||
		!strings.Contains(told.Hint, "whoever made the tool") {
		t.Errorf("%+v", told)
	}
	way := `{"type":"object","properties":{"inner":{"anyOf":[{"$ref":"#/properties/inner"},{"type":"string"}]}}}`
	for text, args := range map[string]string{round: `{"a":1,"b":[]}`, way: `{"inner":[]}`} {
		if told := validate(text, args); told.Code != reeve.Validation || len(told.Fields) != 1 ||
			told.Fields[0].Expected != "string" || strings.Contains(told.Message, "circle") {
			t.Errorf("%s: %+v", args, told)
		}
	}
}
