package httpapi

import (
	"encoding/json"

	"reeve/model"
)

// v1Format is the requested format of an answer. The Responses API has the schema beside the type, the Chat API has it
// in json_schema.
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

// parse returns the format as JSON of a model.Format, or nil for plain text.
func (f *v1Format) parse(param string, s *v1Schema) (json.RawMessage, error) {
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		return json.Marshal(model.Format{})
	case "json_schema":
		var schema map[string]any
		if s == nil || json.Unmarshal(s.Schema, &schema) != nil || schema == nil {
			return nil, newV1Invalid(param, "json_schema needs a schema that is an object")
		}
		return json.Marshal(model.Format{Name: s.Name, Schema: s.Schema, Strict: s.Strict})
	}
	return nil, newV1Invalid(param, "type must be text, json_object or json_schema")
}
