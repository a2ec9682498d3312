package gate

import (
	"encoding/json"

	"reeve"
	"reeve/internal/canonjson"
)

// CheckValue checks a value that a tool obtained against a JSON Schema and returns what is wrong with it. The error
// says what is wrong with the schema. If value is nil, only the schema is checked.
func (c *Catalogue) CheckValue(text, value json.RawMessage) ([]reeve.Field, error) {
	s, err := compile(text) // not cached: callers choose the schema
	if err != nil {
		return nil, err
	}
	if s.isCircular() {
		return nil, reeve.Errorf(reeve.Validation,
			"the schema refers to itself in a cycle, so no value can match it")
	}
	if value == nil {
		return nil, nil
	}
	v, err := canonjson.Parse(value)
	if err != nil {
		return []reeve.Field{{Path: "", Message: "is not valid JSON", Expected: "JSON"}}, nil
	}
	return s.check(v, ""), nil
}
