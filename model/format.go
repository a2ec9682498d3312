package model

import (
	"cmp"
	"encoding/json"
)

// openaiFormat asks an OpenAI API for an answer in JSON. The Responses API expects the schema beside the type, the Chat
// API in a nested object.
type openaiFormat struct {
	Type string `json:"type"`
	*openaiJSONSchema
	Nested *openaiJSONSchema `json:"json_schema,omitempty"`
}

type openaiJSONSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

func (f *Format) openaiFormat() (kind string, shape *openaiJSONSchema) {
	if len(f.Schema) == 0 {
		return "json_object", nil
	}
	return "json_schema", &openaiJSONSchema{Name: cmp.Or(f.Name, "answer"), Schema: f.Schema, Strict: f.Strict}
}

// prompt asks for JSON in words, for APIs without a format parameter.
func (f *Format) prompt() string {
	text := "Answer with JSON only, without other text and without a code fence."
	if len(f.Schema) > 0 {
		text += " The JSON must match this JSON Schema:\n" + string(f.Schema)
	}
	return text
}
