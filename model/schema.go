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

// schema is a decoded JSON Schema. It is always a copy of the tool's schema.
type schema = map[string]any

// maxSchema limits the bytes of a tool's parameters including all referenced definitions. Nested references can expand
// to any size.
const maxSchema = 256 << 10

// decodeSchema decodes a tool's parameters. Empty parameters mean an object without properties.
func decodeSchema(t Tool) (schema, error) {
	if len(bytes.TrimSpace(t.Parameters)) == 0 {
		return schema{"type": "object", "properties": schema{}}, nil
	}
	d := json.NewDecoder(bytes.NewReader(t.Parameters))
	d.UseNumber()
	var s schema
	if err := d.Decode(&s); err != nil || s == nil {
		return nil, reeve.Errorf(reeve.Unsupported, "the parameters of tool %s must be a JSON Schema object", t.Name)
	}
	return s, nil
}

// objectSchema returns a tool's schema in a form that Anthropic and OpenAI accept: the root is an object without allOf,
// anyOf and oneOf. Below the root both accept any JSON Schema.
func objectSchema(t Tool) (schema, error) {
	s, err := decodeSchema(t)
	if err != nil {
		return nil, err
	}
	if ref, ok := s["$ref"].(string); ok {
		if at, ok := resolveRef(s, ref).(schema); ok {
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

// references resolves the references of a schema. It does not follow a reference within itself, and stops at maxSchema.
type references struct {
	tool string
	root schema
	path []string // references being followed
	left int      // bytes left of maxSchema
}

func newReferences(t Tool, root schema) *references {
	return &references{tool: t.Name, root: root, left: maxSchema - len(t.Parameters)}
}

// enter resolves a reference and appends it to the path. It fails for a reference on the path and at the size limit.
func (r *references) enter(ref string) (schema, bool) {
	if r.left < 0 || slices.Contains(r.path, ref) {
		return nil, false
	}
	at, ok := resolveRef(r.root, ref).(schema)
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

// leave truncates the path to a previous length.
func (r *references) leave(length int) { r.path = r.path[:length] }

// err returns an error if the schema exceeds maxSchema.
func (r *references) err() error {
	if r.left >= 0 {
		return nil
	}
	return reeve.Errorf(reeve.Unsupported,
		"the parameters of tool %s exceed %d KB with all references expanded", r.tool, maxSchema>>10).
		Hintf("use fewer references in the schema, or split the tool into several")
}

// flatten merges the properties of allOf, anyOf and oneOf into the root. Properties that all alternatives of anyOf or
// oneOf require stay required. The result is less strict than the schema. The gate still checks calls against the
// tool's own schema.
func (r *references) flatten(s schema) schema {
	out := maps.Clone(s)
	props, need := schema{}, newRequiredNames(s)
	mergeProperties(props, s["properties"])
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
			mergeProperties(props, sub["properties"])
			switch req := stringList(sub["required"]); {
			case k == "allOf":
				need.add(req)
			case i == 0:
				common = req
			default:
				both := toSet(req)
				common = slices.DeleteFunc(common, func(r string) bool { return !both[r] })
			}
		}
		need.add(common)
	}
	need.setOn(out)
	for _, k := range []string{"not", "if", "then", "else", "enum", "const"} {
		delete(out, k)
	}
	return out
}

// mergeProperties adds properties to a set. A property with two different schemas becomes an anyOf of both.
func mergeProperties(to schema, more any) {
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

// resolveRef returns the value that a reference within a schema points to, or nil.
func resolveRef(root schema, ref string) any {
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

func stringList(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// requiredNames is an ordered set of required property names. The map keeps lookups fast, because there may be very
// many.
type requiredNames struct {
	list []any
	has  map[string]bool
}

func newRequiredNames(s schema) *requiredNames {
	r := &requiredNames{has: map[string]bool{}}
	r.add(stringList(s["required"]))
	return r
}

func (r *requiredNames) add(names []string) {
	for _, n := range names {
		if !r.has[n] {
			r.list, r.has[n] = append(r.list, n), true
		}
	}
}

// setOn sets the required names of a schema, if there are any.
func (r *requiredNames) setOn(s schema) {
	if len(r.list) > 0 {
		s["required"] = r.list
	}
}

func toSet(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

// strictKeywords are the JSON Schema keywords of OpenAI's strict mode.
var strictKeywords = []string{"type", "description", "title", "properties", "required", "additionalProperties", "items",
	"enum", "const", "anyOf", "$ref", "$defs",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format", "minItems",
	"maxItems"}

var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// isStrict reports whether OpenAI's strict mode accepts a schema: every object is closed and every property required.
func isStrict(s schema) bool {
	for k := range s {
		if !slices.Contains(strictKeywords, k) {
			return false
		}
	}
	if f, ok := s["format"].(string); ok && !slices.Contains(strictFormats, f) {
		return false
	}
	props, isObject := s["properties"].(schema)
	if schemaTypes(s)["object"] || isObject {
		if closed, ok := s["additionalProperties"].(bool); !ok || closed {
			return false
		}
		must := toSet(stringList(s["required"]))
		for name, p := range props {
			if !must[name] || !isStrictNested(p) {
				return false
			}
		}
	}
	if items, ok := s["items"]; ok && !isStrictNested(items) {
		return false
	}
	if list, ok := s["anyOf"].([]any); ok && !allMatch(list, isStrictNested) {
		return false
	}
	if defs, ok := s["$defs"].(schema); ok && !allMatch(slices.Collect(maps.Values(defs)), isStrictNested) {
		return false
	}
	return true
}

// isStrictNested is like isStrict for a schema below the root, which must also have a type.
func isStrictNested(v any) bool {
	s, ok := v.(schema)
	if !ok {
		return false
	}
	_, typed := s["type"]
	for _, k := range []string{"$ref", "anyOf", "enum", "const"} {
		_, has := s[k]
		typed = typed || has
	}
	return typed && isStrict(s)
}

func allMatch(list []any, ok func(any) bool) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return !ok(v) })
}

// schemaTypes returns the types that a schema allows.
func schemaTypes(s schema) map[string]bool {
	out := map[string]bool{}
	switch t := s["type"].(type) {
	case string:
		out[t] = true
	case []any:
		for _, e := range stringList(t) {
			out[e] = true
		}
	}
	return out
}
