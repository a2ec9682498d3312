package model

import (
	"cmp"
	"encoding/json"
)

// openaiFormat is how OpenAI is told that an answer must be JSON. One of its APIs wants what a schema is called beside
// the type, and the other in a place of its own.
type openaiFormat struct {
	Type string `json:"type"`
	*openaiShape
	In *openaiShape `json:"json_schema,omitempty"`
}

type openaiShape struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

func (f *Format) openai() (kind string, shape *openaiShape) {
	if len(f.Schema) == 0 {
		return "json_object", nil
	}
	return "json_schema", &openaiShape{Name: cmp.Or(f.Name, "answer"), Schema: f.Schema, Strict: f.Strict}
}

// inWords asks a model for JSON that cannot be told otherwise.
func (f *Format) inWords() string {
	text := "Answer with JSON alone: no word, and no code fence, around it."
	if len(f.Schema) > 0 {
		text += " It must fit this JSON Schema:\n" + string(f.Schema)
	}
	return text
}
