package gate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reeve/internal/canonjson"
)

// repair mends arguments that do not fit, by these rules and no others, each only where the schema leaves no doubt:
//
//   - null for a property that is not required and may not be null: the property is left out
//   - a string for a number, integer or boolean that it spells exactly: that value
//   - a string for an object or array whose JSON it holds: that value
//   - a number for a string: its digits
type repair struct{ notes []string }

func (r *repair) object(v any, schema, root map[string]any, path string) any {
	schema = resolve(schema, root)
	switch t := v.(type) {
	case map[string]any:
		props, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(t)) { // so that the notes are in one order
			value := t[name]
			sub, ok := props[name].(map[string]any)
			if !ok {
				continue
			}
			here := path + pointer([]string{name})
			if value == nil && !allows(resolve(sub, root), "null") && !required(schema, name) {
				delete(t, name)
				r.note(here, "null left out")
				continue
			}
			t[name] = r.object(r.scalar(value, resolve(sub, root), here), sub, root, here)
		}
	case []any:
		if sub, ok := schema["items"].(map[string]any); ok {
			for i, value := range t {
				here := path + "/" + strconv.Itoa(i)
				t[i] = r.object(r.scalar(value, resolve(sub, root), here), sub, root, here)
			}
		}
	}
	return v
}

func (r *repair) scalar(v any, schema map[string]any, path string) any {
	switch t := v.(type) {
	case string:
		if allows(schema, "string") {
			return v
		}
		s := strings.TrimSpace(t)
		parsed, err := canonjson.Parse([]byte(s))
		if err != nil {
			return v
		}
		for _, kind := range []string{"integer", "number", "boolean", "object", "array"} {
			if allows(schema, kind) && is(parsed, kind) {
				r.note(path, "a string read as "+article(kind))
				return parsed
			}
		}
	case json.Number:
		if schema["type"] != nil && allows(schema, "string") && !allows(schema, "number") &&
			!allows(schema, "integer") {
			r.note(path, "a number read as a string")
			return string(t)
		}
	}
	return v
}

func (r *repair) note(path, what string) { r.notes = append(r.notes, path+": "+what) }

func is(v any, kind string) bool {
	switch t := v.(type) {
	case json.Number:
		return kind == "number" || (kind == "integer" && !strings.ContainsAny(string(t), ".eE"))
	case bool:
		return kind == "boolean"
	case map[string]any:
		return kind == "object"
	case []any:
		return kind == "array"
	}
	return false
}

// allows tells whether a schema names a type. One that names none is left alone.
func allows(schema map[string]any, kind string) bool {
	switch t := schema["type"].(type) {
	case string:
		return t == kind
	case []any:
		for _, k := range t {
			if k == kind {
				return true
			}
		}
		return false
	}
	return kind == "string" || kind == "null"
}

func required(schema map[string]any, name string) bool {
	list, _ := schema["required"].([]any)
	for _, r := range list {
		if r == name {
			return true
		}
	}
	return false
}

// resolve follows a reference into the schema's own definitions.
func resolve(schema, root map[string]any) map[string]any {
	for range 16 {
		ref, ok := schema["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#/") {
			return schema
		}
		var at any = root
		for _, part := range strings.Split(ref[2:], "/") {
			m, ok := at.(map[string]any)
			if !ok {
				return schema
			}
			at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		next, ok := at.(map[string]any)
		if !ok {
			return schema
		}
		schema = next
	}
	return schema
}
