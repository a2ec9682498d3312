package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Gemini takes a part of OpenAPI's schemas: no references, one type, alternatives only as anyOf, few formats. What it
// cannot say is said in the description.

// geminiSame are the words that mean the same there.
var geminiSame = []string{"title", "description", "minItems", "maxItems", "minProperties", "maxProperties", "minLength",
	"maxLength", "pattern", "minimum", "maximum", "default"}

var geminiFormats = map[string][]string{"STRING": {"date-time", "enum"}, "INTEGER": {"int32", "int64"},
	"NUMBER": {"float", "double"}}

// geminiSchema gives a tool's parameters in Gemini's form, or nil for a tool that takes none.
func geminiSchema(t Tool) (schema, error) {
	s, err := rooted(t)
	if err != nil {
		return nil, err
	}
	if props, _ := s["properties"].(schema); len(props) == 0 {
		return nil, nil
	}
	g := geminiForm{newReferences(t, s)}
	out := g.of(s)
	return out, g.err()
}

type geminiForm struct{ *references }

func (g geminiForm) of(s schema) schema {
	if ref, ok := s["$ref"].(string); ok {
		return g.follow(s, ref)
	}
	if _, ok := s["allOf"]; ok {
		outside := len(g.path)
		out := g.of(g.merged(s, outside))
		g.leave(outside)
		return out
	}
	out := schema{}
	for _, k := range geminiSame {
		if v, ok := s[k]; ok {
			out[k] = v
		}
	}
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	g.kind(s, out)
	g.values(s, out, note)
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
		note("No item twice.")
	}
	g.inside(s, out, note)
	if len(notes) > 0 {
		slices.Sort(notes)
		d, _ := out["description"].(string)
		out["description"] = strings.TrimSpace(d + " " + strings.Join(notes, " "))
	}
	return out
}

// follow puts what is referred to in the place of the reference; within itself, only what it is.
func (g geminiForm) follow(s schema, ref string) schema {
	outside := len(g.path)
	at, ok := g.enter(ref)
	if !ok {
		d, _ := s["description"].(string)
		return schema{"type": "OBJECT", "description": strings.TrimSpace(d + " The same again: " +
			ref[strings.LastIndex(ref, "/")+1:] + ".")}
	}
	at = maps.Clone(at)
	for _, k := range []string{"description", "title", "default"} {
		if v, ok := s[k]; ok {
			at[k] = v
		}
	}
	out := g.of(at)
	g.leave(outside)
	return out
}

// kind sets type, nullable and anyOf.
func (g geminiForm) kind(s, out schema) {
	kinds := types(s)
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
			alternatives = append(alternatives, g.of(sub))
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
		maps.Copy(only, out) // what the outer schema says goes before
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
			alternatives = append(alternatives, g.of(sub))
		}
		out["anyOf"] = alternatives
	case s["properties"] != nil:
		out["type"] = "OBJECT"
	case s["items"] != nil:
		out["type"] = "ARRAY"
	default:
		out["type"] = "STRING" // anything goes: a type must be named, and text can hold it
	}
}

// values sets enum, which only strings have there.
func (g geminiForm) values(s, out schema, note func(string, ...any)) {
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

// inside sets properties, required and items.
func (g geminiForm) inside(s, out schema, note func(string, ...any)) {
	if props, ok := s["properties"].(schema); ok && len(props) > 0 && out["type"] == "OBJECT" {
		to := schema{}
		for name, p := range props {
			if sub, ok := p.(schema); ok {
				to[name] = g.of(sub)
			} else {
				to[name] = schema{"type": "STRING"}
			}
		}
		out["properties"] = to
		if req := slices.DeleteFunc(texts(s["required"]), func(n string) bool { return to[n] == nil }); len(req) > 0 {
			out["required"] = req
		}
	}
	if more, ok := s["additionalProperties"].(schema); ok && out["type"] == "OBJECT" {
		if t := slices.Sorted(maps.Keys(types(more))); len(t) > 0 {
			note("Other fields may be added, each of type %s.", strings.Join(t, " or "))
		}
	}
	if out["type"] == "ARRAY" {
		items, ok := s["items"].(schema)
		if list, tuple := s["prefixItems"].([]any); tuple && !ok {
			note("In this order: %d items.", len(list))
			items = schema{"anyOf": list}
			if len(list) == 1 {
				items, _ = list[0].(schema)
			}
		}
		if items == nil {
			items = schema{"type": "string"}
		}
		out["items"] = g.of(items)
	}
}

// merged joins the schemas of allOf into one. What is referred to stays on the path, for the result holds it; what the
// path had outside of this stays a reference.
func (g geminiForm) merged(s schema, outside int) schema {
	out := maps.Clone(s)
	delete(out, "allOf")
	props, need := schema{}, requiredBy(s)
	add(props, s["properties"])
	list, _ := s["allOf"].([]any)
	for _, e := range list {
		sub, ok := e.(schema)
		if !ok {
			continue
		}
		if ref, ok := sub["$ref"].(string); ok {
			if slices.Contains(g.path[outside:], ref) {
				continue // it is in already
			}
			if at, ok := g.enter(ref); ok {
				sub = at
			}
		}
		if _, deeper := sub["allOf"]; deeper {
			sub = g.merged(sub, outside)
		}
		for k, v := range sub {
			switch k {
			case "properties":
				add(props, v)
				out[k] = props
			case "required":
				need.add(texts(v))
			default:
				if _, ok := out[k]; !ok {
					out[k] = v
				}
			}
		}
	}
	need.put(out)
	return out
}
