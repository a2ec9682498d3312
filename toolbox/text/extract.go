package text

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/model"
)

// maxSchemaBytes limits the size of a schema.
const maxSchemaBytes = 32_000

type extractArgs struct {
	Text         string         `json:"text" minLength:"1" maxLength:"1000000" doc:"Text to read"`
	Schema       map[string]any `json:"schema" doc:"JSON Schema of the data, without references to other documents"`
	Instructions string         `json:"instructions,omitempty" maxLength:"8000" doc:"What to look for, and how to write it"`
}

const extractTask = "You extract data from a text. Answer with JSON that matches the JSON Schema below, and with " +
	"nothing else. Use only what the text says; never guess or invent a value."

// partTask is added to the task if the text is one of several parts.
const partTask = " The text is part %d of %d of a longer text: leave out what this part does not contain."

// mergeTask is the task of correcting the merged results of all parts.
const mergeTask = "The text is JSON that was extracted from the parts of a document. It does not match the JSON " +
	"Schema below. Answer with JSON that matches it, and with nothing else. Keep the data; never guess or invent a " +
	"value."

// extract returns data from a text.
func (p *Pack) extract(ctx context.Context, in extractArgs) (json.RawMessage, error) {
	schema, err := json.Marshal(in.Schema)
	if err != nil || len(schema) > maxSchemaBytes {
		return nil, reeve.InvalidField("/schema", "is too large", fmt.Sprintf("at most %d bytes", maxSchemaBytes))
	}
	if _, err := p.Schemas.CheckValue(schema, nil); err != nil {
		return nil, reeve.InvalidField("/schema", reeve.AsError(err).Message, "a JSON Schema (2020-12)")
	}
	parts := splitText(in.Text, partBytes)
	if len(parts) == 1 {
		return p.extractPart(ctx, addInstructions(extractTask, in.Instructions), in.Text, schema)
	}
	partial, err := json.Marshal(dropRequired(in.Schema))
	if err != nil {
		return nil, err
	}
	var merged any
	for i, part := range parts {
		found, err := p.extractPart(ctx, addInstructions(extractTask+fmt.Sprintf(partTask, i+1, len(parts)),
			in.Instructions), part, partial)
		if err != nil {
			return nil, err
		}
		v, err := canonjson.Parse(found)
		if err != nil {
			return nil, reeve.Errorf(reeve.ModelFailed, "the model's answer is not valid JSON")
		}
		merged = merge(merged, v)
	}
	out := canonjson.CanonicalValue(merged)
	if fields, err := p.Schemas.CheckValue(schema, out); err != nil || len(fields) == 0 {
		return out, err
	}
	return p.extractPart(ctx, mergeTask, string(out), schema)
}

// extractPart extracts data from one part of a text.
func (p *Pack) extractPart(ctx context.Context, task, text string, schema json.RawMessage) (out json.RawMessage,
	err error) {
	q := question{task: task + "\n\nJSON Schema:\n" + string(schema), text: text, tokens: extractTokens}
	var root struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &root) == nil && root.Type == "object" { // providers accept only objects
		q.format = &model.Format{Name: "data", Schema: schema}
	}
	err = p.askChecked(ctx, q, func(text string) (string, error) {
		raw, ok := parseJSON(text)
		if !ok {
			return "it is not JSON", nil
		}
		fields, err := p.Schemas.CheckValue(schema, raw)
		out = raw
		return describeFields(fields), err
	})
	return out, err
}

// dropRequired returns a schema without the list of required properties at its root, because a part of a text may lack
// any of them.
func dropRequired(schema map[string]any) map[string]any {
	out := maps.Clone(schema)
	delete(out, "required")
	delete(out, "minItems")
	delete(out, "minProperties")
	return out
}

// merge combines the results of two parts of a text. It joins lists without duplicates and merges objects property by
// property. Of other values it takes the first that is not null.
func merge(a, b any) any {
	if a == nil {
		return b
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return a
		}
		out := maps.Clone(x)
		for name, v := range y {
			out[name] = merge(out[name], v)
		}
		return out
	case []any:
		y, ok := b.([]any)
		if !ok {
			return a
		}
		out, seen := slices.Clone(x), map[string]bool{}
		for _, v := range x {
			seen[string(canonjson.CanonicalValue(v))] = true
		}
		for _, v := range y {
			if key := string(canonjson.CanonicalValue(v)); !seen[key] {
				seen[key] = true
				out = append(out, v)
			}
		}
		return out
	}
	return a
}
