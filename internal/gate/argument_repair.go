package gate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reeve/internal/canonjson"
)

// argumentRepair corrects arguments that do not match the schema, where the schema leaves only one interpretation:
//
//   - null for an optional property that may not be null: the property is removed
//   - a string that spells a number, integer or boolean: replaced by that value
//   - a string with JSON where an object or array is expected: replaced by that value
//   - a number where a string is expected: replaced by its digits
type argumentRepair struct{ notes []string }

// repairValue repairs the values inside v, recursively, and returns v.
func (r *argumentRepair) repairValue(v any, schema, root map[string]any, path string) any {
	schema = resolveRef(schema, root)
	switch t := v.(type) {
	case map[string]any:
		props, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(t)) { // for a stable order of the notes
			value := t[name]
			sub, ok := props[name].(map[string]any)
			if !ok {
				continue
			}
			here := path + jsonPointer([]string{name})
			if value == nil && !allowsType(resolveRef(sub, root), "null") && !isRequired(schema, name) {
				delete(t, name)
				r.addNote(here, "null, removed")
				continue
			}
			t[name] = r.repairValue(r.repairScalar(value, resolveRef(sub, root), here), sub, root, here)
		}
	case []any:
		if sub, ok := schema["items"].(map[string]any); ok {
			for i, value := range t {
				here := path + "/" + strconv.Itoa(i)
				t[i] = r.repairValue(r.repairScalar(value, resolveRef(sub, root), here), sub, root, here)
			}
		}
	}
	return v
}

// repairScalar returns v, or the value that it stands for if v has the wrong type.
func (r *argumentRepair) repairScalar(v any, schema map[string]any, path string) any {
	switch t := v.(type) {
	case string:
		if allowsType(schema, "string") {
			return v
		}
		s := strings.TrimSpace(t)
		parsed, err := canonjson.Parse([]byte(s))
		if err != nil {
			return v
		}
		for _, kind := range []string{"integer", "number", "boolean", "object", "array"} {
			if allowsType(schema, kind) && hasType(parsed, kind) {
				r.addNote(path, "a string, read as "+withArticle(kind))
				return parsed
			}
		}
	case json.Number:
		if schema["type"] != nil && allowsType(schema, "string") && !allowsType(schema, "number") &&
			!allowsType(schema, "integer") {
			r.addNote(path, "a number, read as a string")
			return string(t)
		}
	}
	return v
}

func (r *argumentRepair) addNote(path, what string) { r.notes = append(r.notes, path+": "+what) }

// hasType reports whether a value has a JSON Schema type.
func hasType(v any, kind string) bool {
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

// allowsType reports whether a schema allows a type. A schema without types counts as allowing string and null, so that
// values for it are not repaired.
func allowsType(schema map[string]any, kind string) bool {
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

func isRequired(schema map[string]any, name string) bool {
	list, _ := schema["required"].([]any)
	for _, r := range list {
		if r == name {
			return true
		}
	}
	return false
}

// resolveRef follows references to definitions in the same schema. It returns the schema unchanged if that fails.
func resolveRef(schema, root map[string]any) map[string]any {
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
