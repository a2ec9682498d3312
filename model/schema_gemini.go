package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Gemini accepts a subset of OpenAPI schemas: no references, one type, alternatives only as anyOf, few formats. The
// converter describes other constraints in the description.

// geminiKeywords are the keywords with the same meaning in Gemini's schemas.
var geminiKeywords = []string{"title", "description", "minItems", "maxItems", "minProperties", "maxProperties",
	"minLength",
	"maxLength", "pattern", "minimum", "maximum", "default"}

var geminiFormats = map[string][]string{"STRING": {"date-time", "enum"}, "INTEGER": {"int32", "int64"},
	"NUMBER": {"float", "double"}}

// geminiSchema returns a tool's parameters in Gemini's form, or nil for a tool without parameters.
func geminiSchema(t Tool) (schema, error) {
	s, err := objectSchema(t)
	if err != nil {
		return nil, err
	}
	if props, _ := s["properties"].(schema); len(props) == 0 {
		return nil, nil
	}
	g := geminiConverter{newReferences(t, s)}
	out := g.convert(s)
	return out, g.err()
}

type geminiConverter struct{ *references }

func (g geminiConverter) convert(s schema) schema {
	if ref, ok := s["$ref"].(string); ok {
		return g.convertRef(s, ref)
	}
	if _, ok := s["allOf"]; ok {
		outside := len(g.path)
		out := g.convert(g.mergeAllOf(s, outside))
		g.leave(outside)
		return out
	}
	out := schema{}
	for _, k := range geminiKeywords {
		if v, ok := s[k]; ok {
			out[k] = v
		}
	}
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	g.setType(s, out)
	g.setEnum(s, out, note)
	t, _ := out["type"].(string)
	if f, ok := s["format"].(string); ok {
		if slices.Contains(geminiFormats[t], f) {
			out["format"] = f
		} else {
			note("Format: %s.", f)
		}
	}
	for k, words := range map[string]string{"exclusiveMinimum": "More than", "exclusiveMaximum": "Less than",
		"multipleOf": "A multiple of"} {
		if n, ok := s[k].(json.Number); ok {
			note("%s %s.", words, n)
		}
	}
	if u, ok := s["uniqueItems"].(bool); ok && u {
		note("Items must be unique.")
	}
	g.setChildren(s, out, note)
	if len(notes) > 0 {
		slices.Sort(notes)
		d, _ := out["description"].(string)
		out["description"] = strings.TrimSpace(d + " " + strings.Join(notes, " "))
	}
	return out
}

// convertRef converts the schema that a reference points to. A recursive reference becomes an object that only names
// the definition.
func (g geminiConverter) convertRef(s schema, ref string) schema {
	outside := len(g.path)
	at, ok := g.enter(ref)
	if !ok {
		d, _ := s["description"].(string)
		return schema{"type": "OBJECT", "description": strings.TrimSpace(d + " Recursive: " +
			ref[strings.LastIndex(ref, "/")+1:] + ".")}
	}
	at = maps.Clone(at)
	for _, k := range []string{"description", "title", "default"} {
		if v, ok := s[k]; ok {
			at[k] = v
		}
	}
	out := g.convert(at)
	g.leave(outside)
	return out
}

// setType sets type, nullable and anyOf.
func (g geminiConverter) setType(s, out schema) {
	kinds := schemaTypes(s)
	var alternatives []any
	for _, k := range []string{"anyOf", "oneOf"} {
		list, _ := s[k].([]any)
		for _, e := range list {
			sub, ok := e.(schema)
			if !ok {
				continue
			}
			if sub["type"] == "null" {
				out["nullable"] = true
				continue
			}
			alternatives = append(alternatives, g.convert(sub))
		}
	}
	if kinds["null"] {
		out["nullable"] = true
		delete(kinds, "null")
	}
	names := slices.Sorted(maps.Keys(kinds))
	switch {
	case len(alternatives) == 1:
		only := alternatives[0].(schema)
		maps.Copy(only, out) // the outer schema takes precedence
		maps.Copy(out, only)
	case len(alternatives) > 1:
		out["anyOf"] = alternatives
	case len(names) == 1:
		out["type"] = strings.ToUpper(names[0])
	case len(names) > 1:
		for _, n := range names {
			sub := maps.Clone(s)
			sub["type"] = n
			for _, k := range []string{"description", "title", "default", "enum"} {
				delete(sub, k)
			}
			alternatives = append(alternatives, g.convert(sub))
		}
		out["anyOf"] = alternatives
	case s["properties"] != nil:
		out["type"] = "OBJECT"
	case s["items"] != nil:
		out["type"] = "ARRAY"
	default:
		out["type"] = "STRING" // any value is allowed, but Gemini requires a type
	}
}

// setEnum sets enum, which Gemini supports for strings only.
func (g geminiConverter) setEnum(s, out schema, note func(string, ...any)) {
	values, _ := s["enum"].([]any)
	if c, ok := s["const"]; ok {
		values = []any{c}
	}
	if len(values) == 0 {
		return
	}
	var words []any
	var shown []string
	for _, v := range values {
		if v == nil {
			out["nullable"] = true
			continue
		}
		if w, ok := v.(string); ok {
			words = append(words, w)
		}
		raw, err := json.Marshal(v)
		if err == nil {
			shown = append(shown, string(raw))
		}
	}
	if len(words) == len(shown) && s["type"] == nil || out["type"] == "STRING" {
		out["type"], out["enum"] = "STRING", words
		return
	}
	note("One of %s.", strings.Join(shown, ", "))
}

// setChildren sets properties, required and items.
func (g geminiConverter) setChildren(s, out schema, note func(string, ...any)) {
	if props, ok := s["properties"].(schema); ok && len(props) > 0 && out["type"] == "OBJECT" {
		to := schema{}
		for name, p := range props {
			if sub, ok := p.(schema); ok {
				to[name] = g.convert(sub)
			} else {
				to[name] = schema{"type": "STRING"}
			}
		}
		out["properties"] = to
		if req := slices.DeleteFunc(stringList(s["required"]),
			func(n string) bool { return to[n] == nil }); len(req) > 0 {
			out["required"] = req
		}
	}
	if more, ok := s["additionalProperties"].(schema); ok && out["type"] == "OBJECT" {
		if t := slices.Sorted(maps.Keys(schemaTypes(more))); len(t) > 0 {
			note("Additional properties of type %s are allowed.", strings.Join(t, " or "))
		}
	}
	if out["type"] == "ARRAY" {
		items, ok := s["items"].(schema)
		if list, tuple := s["prefixItems"].([]any); tuple && !ok {
			note("An ordered list of %d items.", len(list))
			items = schema{"anyOf": list}
			if len(list) == 1 {
				items, _ = list[0].(schema)
			}
		}
		if items == nil {
			items = schema{"type": "string"}
		}
		out["items"] = g.convert(items)
	}
}

// mergeAllOf merges the schemas of allOf into one. References that it merges stay on the path, because the result
// contains their schemas. References on the path before this call, up to the index outside, stay unresolved.
func (g geminiConverter) mergeAllOf(s schema, outside int) schema {
	out := maps.Clone(s)
	delete(out, "allOf")
	props, need := schema{}, newRequiredNames(s)
	mergeProperties(props, s["properties"])
	list, _ := s["allOf"].([]any)
	for _, e := range list {
		sub, ok := e.(schema)
		if !ok {
			continue
		}
		if ref, ok := sub["$ref"].(string); ok {
			if slices.Contains(g.path[outside:], ref) {
				continue // already merged
			}
			if at, ok := g.enter(ref); ok {
				sub = at
			}
		}
		if _, deeper := sub["allOf"]; deeper {
			sub = g.mergeAllOf(sub, outside)
		}
		for k, v := range sub {
			switch k {
			case "properties":
				mergeProperties(props, v)
				out[k] = props
			case "required":
				need.add(stringList(v))
			default:
				if _, ok := out[k]; !ok {
					out[k] = v
				}
			}
		}
	}
	need.setOn(out)
	return out
}
