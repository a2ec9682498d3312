package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"reeve"
)

// schema is a JSON Schema as decoded, always a copy: what tools declare is never changed.
type schema = map[string]any

// maxSchema is how many bytes a tool's parameters may have, with what they refer to written out: definitions that refer
// to others several times over come to any size.
const maxSchema = 256 << 10

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

// rooted makes a schema one that Anthropic and OpenAI take: an object at the root, with nothing combined there. Below
// the root both take JSON Schema as it is.
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
	r := newReferences(t, s)
	s = r.flatten(s)
	if err := r.err(); err != nil {
		return nil, err
	}
	delete(s, "$schema")
	delete(s, "$id")
	s["type"] = "object"
	if _, ok := s["properties"].(schema); !ok {
		s["properties"] = schema{}
	}
	return s, nil
}

// references follows those of a schema, each only once on its way, for as long as what they lead to is not too much.
type references struct {
	tool string
	root schema
	path []string // those that are being followed
	left int      // of maxSchema
}

func newReferences(t Tool, root schema) *references {
	return &references{tool: t.Name, root: root, left: maxSchema - len(t.Parameters)}
}

// enter gives what a reference leads to, and puts it on the path.
func (r *references) enter(ref string) (schema, bool) {
	if r.left < 0 || slices.Contains(r.path, ref) {
		return nil, false
	}
	at, ok := lookup(r.root, ref).(schema)
	if !ok {
		return nil, false
	}
	raw, err := json.Marshal(at)
	if r.left -= len(raw); err != nil || r.left < 0 {
		return nil, false
	}
	r.path = append(r.path, ref)
	return at, true
}

// leave takes the path back to the length it had.
func (r *references) leave(length int) { r.path = r.path[:length] }

// err is the error for a schema that is too large, or nil.
func (r *references) err() error {
	if r.left >= 0 {
		return nil
	}
	return reeve.Errorf(reeve.Unsupported,
		"the parameters of tool %s come to more than %d KB with all that they refer to", r.tool, maxSchema>>10).
		Hintf("Let the schema refer to fewer definitions, or make several tools of it.")
}

// flatten puts the properties of what is combined at the root into the root itself. What all of the alternatives of
// oneOf and anyOf require is required. The gate still judges by the tool's own schema, so nothing is let through that
// the tool did not declare.
func (r *references) flatten(s schema) schema {
	out := maps.Clone(s)
	props, need := schema{}, requiredBy(s)
	add(props, s["properties"])
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, ok := s[k].([]any)
		if !ok {
			continue
		}
		delete(out, k)
		out["properties"] = props
		var common []string
		for i, e := range list {
			sub, ok := e.(schema)
			if !ok {
				continue
			}
			outside := len(r.path)
			if ref, ok := sub["$ref"].(string); ok {
				if at, ok := r.enter(ref); ok {
					sub = at
				}
			}
			sub = r.flatten(sub)
			r.leave(outside)
			add(props, sub["properties"])
			switch req := texts(sub["required"]); {
			case k == "allOf":
				need.add(req)
			case i == 0:
				common = req
			default:
				both := set(req)
				common = slices.DeleteFunc(common, func(r string) bool { return !both[r] })
			}
		}
		need.add(common)
	}
	need.put(out)
	for _, k := range []string{"not", "if", "then", "else", "enum", "const"} {
		delete(out, k)
	}
	return out
}

// add adds properties to a set of them; one that both have may be either.
func add(to schema, more any) {
	m, _ := more.(schema)
	for name, s := range m {
		have, ok := to[name]
		switch {
		case !ok:
			to[name] = s
		case !reflect.DeepEqual(have, s):
			to[name] = schema{"anyOf": []any{have, s}}
		}
	}
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

// required are the names that a schema requires, in order and each once. They are looked up, for there may be very
// many.
type required struct {
	list []any
	has  map[string]bool
}

func requiredBy(s schema) *required {
	r := &required{has: map[string]bool{}}
	r.add(texts(s["required"]))
	return r
}

func (r *required) add(names []string) {
	for _, n := range names {
		if !r.has[n] {
			r.list, r.has[n] = append(r.list, n), true
		}
	}
}

// put has a schema require them.
func (r *required) put(s schema) {
	if len(r.list) > 0 {
		s["required"] = r.list
	}
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

// strictWords are what OpenAI's strict mode knows.
var strictWords = []string{"type", "description", "title", "properties", "required", "additionalProperties", "items",
	"enum", "const", "anyOf", "$ref", "$defs",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format", "minItems",
	"maxItems"}

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
		must := set(texts(s["required"]))
		for name, p := range props {
			if !must[name] || !strictBelow(p) {
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
