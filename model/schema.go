package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reeve"
)

// schema is a JSON Schema as decoded, always a copy: what tools declare is never changed.
type schema = map[string]any

// maxDepth is how far combined schemas are followed: one may hold itself.
const maxDepth = 16

// decodeSchema reads a tool's parameters. None at all means an object without properties.
func decodeSchema(t Tool) (schema, error) {
	if len(bytes.TrimSpace(t.Parameters)) == 0 {
		return schema{"type": "object", "properties": schema{}}, nil
	}
	d := json.NewDecoder(bytes.NewReader(t.Parameters))
	d.UseNumber()
	var s schema
	if err := d.Decode(&s); err != nil || s == nil {
		return nil, reeve.Errorf(reeve.Unsupported, "the parameters of tool %s are not a JSON Schema object", t.Name)
	}
	return s, nil
}

// rooted makes a schema one that Anthropic and OpenAI take: an object at the root, with nothing combined there. Below the root both take JSON Schema as it is.
func rooted(t Tool) (schema, error) {
	s, err := decodeSchema(t)
	if err != nil {
		return nil, err
	}
	if ref, ok := s["$ref"].(string); ok {
		if at, ok := lookup(s, ref).(schema); ok {
			at = maps.Clone(at)
			for _, k := range []string{"$defs", "definitions"} {
				if defs, ok := s[k]; ok {
					at[k] = defs
				}
			}
			s = at
		}
		delete(s, "$ref")
	}
	s = flatten(s, s, 0)
	delete(s, "$schema")
	delete(s, "$id")
	s["type"] = "object"
	if _, ok := s["properties"].(schema); !ok {
		s["properties"] = schema{}
	}
	return s, nil
}

// flatten puts the properties of what is combined at the root into the root itself. What all of the alternatives of oneOf and anyOf require is required.
// The gate still judges by the tool's own schema, so nothing is let through that the tool did not declare.
func flatten(s, root schema, depth int) schema {
	out := maps.Clone(s)
	if depth > maxDepth {
		return schema{}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, ok := s[k].([]any)
		if !ok {
			continue
		}
		delete(out, k)
		var common []string
		for i, e := range list {
			sub, ok := e.(schema)
			if !ok {
				continue
			}
			if ref, ok := sub["$ref"].(string); ok {
				if at, ok := lookup(root, ref).(schema); ok {
					sub = at
				}
			}
			sub = flatten(sub, root, depth+1)
			out["properties"] = union(out["properties"], sub["properties"])
			switch req := texts(sub["required"]); {
			case k == "allOf":
				out["required"] = with(out["required"], req)
			case i == 0:
				common = req
			default:
				common = slices.DeleteFunc(common, func(r string) bool { return !slices.Contains(req, r) })
			}
		}
		if len(common) > 0 {
			out["required"] = with(out["required"], common)
		}
	}
	for _, k := range []string{"not", "if", "then", "else", "enum", "const"} {
		delete(out, k)
	}
	return out
}

// union joins two sets of properties; one that both have may be either.
func union(a, b any) schema {
	out := schema{}
	if m, ok := a.(schema); ok {
		maps.Copy(out, m)
	}
	m, _ := b.(schema)
	for name, s := range m {
		have, ok := out[name]
		switch {
		case !ok:
			out[name] = s
		case !same(have, s):
			out[name] = schema{"anyOf": []any{have, s}}
		}
	}
	return out
}

func same(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// lookup follows a reference within a schema.
func lookup(root schema, ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	var at any = root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if step == "" {
			continue
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := at.(type) {
		case schema:
			at = v[step]
		case []any:
			var i int
			if _, err := fmt.Sscanf(step, "%d", &i); err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

func texts(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// with adds names to a list that was decoded from JSON.
func with(v any, names []string) []any {
	list, _ := v.([]any)
	list = slices.Clone(list)
	for _, n := range names {
		if !slices.Contains(texts(list), n) {
			list = append(list, n)
		}
	}
	return list
}

// strictWords are what OpenAI's strict mode knows.
var strictWords = []string{"type", "description", "title", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format", "minItems", "maxItems"}

var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// strict says whether OpenAI's strict mode takes a schema as it is: every object is closed and every property required.
func strict(s schema) bool {
	for k := range s {
		if !slices.Contains(strictWords, k) {
			return false
		}
	}
	if f, ok := s["format"].(string); ok && !slices.Contains(strictFormats, f) {
		return false
	}
	props, isObject := s["properties"].(schema)
	if types(s)["object"] || isObject {
		if closed, ok := s["additionalProperties"].(bool); !ok || closed {
			return false
		}
		required := texts(s["required"])
		for name, p := range props {
			if !slices.Contains(required, name) || !strictBelow(p) {
				return false
			}
		}
	}
	if items, ok := s["items"]; ok && !strictBelow(items) {
		return false
	}
	if list, ok := s["anyOf"].([]any); ok && !all(list, strictBelow) {
		return false
	}
	if defs, ok := s["$defs"].(schema); ok && !all(slices.Collect(maps.Values(defs)), strictBelow) {
		return false
	}
	return true
}

// strictBelow is strict for a schema that is not the root: it must say its type.
func strictBelow(v any) bool {
	s, ok := v.(schema)
	if !ok {
		return false
	}
	_, typed := s["type"]
	for _, k := range []string{"$ref", "anyOf", "enum", "const"} {
		_, has := s[k]
		typed = typed || has
	}
	return typed && strict(s)
}

func all(list []any, ok func(any) bool) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return !ok(v) })
}

// types gives the types that a schema allows.
func types(s schema) map[string]bool {
	out := map[string]bool{}
	switch t := s["type"].(type) {
	case string:
		out[t] = true
	case []any:
		for _, e := range texts(t) {
			out[e] = true
		}
	}
	return out
}
