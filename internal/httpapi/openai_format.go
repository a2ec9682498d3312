package httpapi

import (
	"encoding/json"

	"reeve/model"
)

// v1Format says what an answer is to look like. The schema is beside the type, or in a place of its own.
type v1Format struct {
	Type string `json:"type"`
	v1Schema
	JSONSchema *v1Schema `json:"json_schema"`
}

type v1Schema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// parse gives it as the model is told it; nothing means that the answer is words.
func (f *v1Format) parse(param string, s *v1Schema) (json.RawMessage, error) {
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		return json.Marshal(model.Format{})
	case "json_schema":
		var is map[string]any
		if s == nil || json.Unmarshal(s.Schema, &is) != nil || is == nil {
			return nil, newV1Invalid(param, "a json_schema has a schema, which is an object")
		}
		return json.Marshal(model.Format{Name: s.Name, Schema: s.Schema, Strict: s.Strict})
	}
	return nil, newV1Invalid(param, "its type is text, json_object or json_schema")
}
