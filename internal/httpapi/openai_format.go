package httpapi

import (
	"encoding/json"

	"reeve/model"
)

// v1Format says what an answer is to look like. The schema is beside the type, or in a place of its own.
type v1Format struct {
	Type string `json:"type"`
	v1Shape
	JSONSchema *v1Shape `json:"json_schema"`
}

type v1Shape struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// read gives it as the model is told it; nothing means that the answer is words.
func (f *v1Format) read(param string, s *v1Shape) (json.RawMessage, error) {
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		return json.Marshal(model.Format{})
	case "json_schema":
		var is map[string]any
		if s == nil || json.Unmarshal(s.Schema, &is) != nil || is == nil {
			return nil, wrongV1(param, "a json_schema has a schema, which is an object")
		}
		return json.Marshal(model.Format{Name: s.Name, Schema: s.Schema, Strict: s.Strict})
	}
	return nil, wrongV1(param, "its type is text, json_object or json_schema")
}
