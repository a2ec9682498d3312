package toolexport

import (
	"slices"
	"strings"

	"reeve"
)

// geminiSchema converts a JSON Schema to the subset that Gemini accepts.
type geminiSchema struct {
	x    *exporter
	tool reeve.Tool
	root object
}

// maxDepth is the maximum depth of nested references. A recursive schema is cut off there.
const maxDepth = 8

// geminiKeywords are the keywords that are copied unchanged.
var geminiKeywords = []string{"title", "description", "default", "minimum", "maximum", "minLength", "maxLength",
	"pattern", "minItems", "maxItems", "minProperties", "maxProperties", "required"}

// geminiFormats are the formats that Gemini accepts.
var geminiFormats = []string{"date-time", "enum", "float", "double", "int32", "int64"}

// silentKeywords are left out without a note, because they are converted elsewhere or mean nothing to a caller.
var silentKeywords = []string{"type", "properties", "items", "enum", "const", "anyOf", "oneOf", "format", "nullable",
	"$ref", "$defs", "definitions", "$schema", "$id", "$comment", "examples", "exclusiveMinimum", "exclusiveMaximum"}

func (g *geminiSchema) note(path, format string) { g.x.note(g.tool, path, format) }

// convert returns the schema of a value. The schema of an object always has properties.
func (g *geminiSchema) convert(s object, path string, depth int) object {
	if ref, ok := s["$ref"].(string); ok {
		target := g.resolve(ref)
		if target == nil || depth > maxDepth {
			g.note(path, "the reference "+ref+" was left out, because Gemini does not support references")
			return object{"type": "OBJECT", "properties": object{}, "description": "Any value"}
		}
		merged := object{}
		for k, v := range target {
			merged[k] = v
		}
		for k, v := range s {
			if k != "$ref" {
				merged[k] = v
			}
		}
		return g.convert(merged, path, depth+1)
	}
	out := object{}
	for _, k := range geminiKeywords {
		if v, ok := s[k]; ok {
			out[k] = v
		}
	}
	g.convertType(s, out, path)
	g.convertChoices(s, out, path, depth)
	g.convertEnum(s, out, path)
	for _, k := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
		if v, ok := s[k]; ok {
			out[map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}[k]] = v
			g.note(path+"/"+k, k+" "+text(v)+" became an inclusive limit")
		}
	}
	if f, ok := s["format"].(string); ok {
		if slices.Contains(geminiFormats, f) {
			out["format"] = f
		} else {
			g.describe(out, "Format: "+f+".")
		}
	}
	if properties, ok := s["properties"].(object); ok || out["type"] == "OBJECT" {
		to := object{}
		for _, name := range sortedKeys(properties) {
			if p, ok := properties[name].(object); ok {
				to[name] = g.convert(p, path+"/properties/"+name, depth+1)
			} else {
				to[name] = g.anyValue(object{})
			}
		}
		out["properties"] = to
	}
	if items, ok := s["items"].(object); ok {
		out["items"] = g.convert(items, path+"/items", depth+1)
	} else if out["type"] == "ARRAY" {
		out["items"] = g.anyValue(object{})
	}
	for _, k := range sortedKeys(s) {
		isFree := k == "additionalProperties" && s[k] == false // no note needed: Gemini adds no unknown properties
		if !isFree && !slices.Contains(geminiKeywords, k) && !slices.Contains(silentKeywords, k) {
			g.note(path+"/"+k, k+" was left out, because Gemini does not know it; "+checkedLater)
		}
	}
	return out
}

// convertType converts the keyword type. A missing one is inferred.
func (g *geminiSchema) convertType(s, out object, path string) {
	var types []string
	switch v := s["type"].(type) {
	case string:
		types = []string{v}
	case []any:
		for _, one := range v {
			if one == "null" {
				out["nullable"] = true
			} else if one, ok := one.(string); ok {
				types = append(types, one)
			}
		}
	}
	if s["nullable"] == true {
		out["nullable"] = true
	}
	switch {
	case len(types) == 1:
		out["type"] = strings.ToUpper(types[0])
	case len(types) > 1:
		var choices []any
		for _, one := range types {
			part := object{"type": strings.ToUpper(one)}
			if one == "array" {
				part["items"] = g.anyValue(object{})
			}
			choices = append(choices, part)
		}
		out["anyOf"] = choices
		g.note(path+"/type", "the types "+strings.Join(types, ", ")+" became anyOf")
	case s["properties"] != nil:
		out["type"] = "OBJECT"
	case s["items"] != nil:
		out["type"] = "ARRAY"
	case s["enum"] != nil || s["const"] != nil:
		out["type"] = "STRING"
	case s["anyOf"] == nil && s["oneOf"] == nil:
		g.anyValue(out)
	}
}

// anyValue makes a schema accept any string, number or boolean.
func (g *geminiSchema) anyValue(out object) object {
	out["anyOf"] = []any{object{"type": "STRING"}, object{"type": "NUMBER"}, object{"type": "BOOLEAN"}}
	return out
}

// convertChoices converts anyOf and oneOf to anyOf.
func (g *geminiSchema) convertChoices(s, out object, path string, depth int) {
	for _, k := range []string{"anyOf", "oneOf"} {
		list, ok := s[k].([]any)
		if !ok {
			continue
		}
		var choices []any
		for _, v := range list {
			if one, ok := v.(object); ok && one["type"] == "null" {
				out["nullable"] = true
			} else if ok && s["type"] == "object" && isCondition(one) {
				g.note(path+"/"+k, "a condition on the properties was left out; "+checkedLater)
			} else if ok {
				choices = append(choices, g.convert(one, path+"/"+k, depth+1))
			}
		}
		if len(choices) > 0 {
			out["anyOf"] = choices
			delete(out, "type")
		}
	}
}

// isCondition reports whether a schema only restricts the properties of the object around it, for example by required.
func isCondition(s object) bool {
	return s["type"] == nil && s["properties"] == nil && s["$ref"] == nil
}

// convertEnum converts enum and const. Gemini accepts only strings as values.
func (g *geminiSchema) convertEnum(s, out object, path string) {
	values, _ := s["enum"].([]any)
	if v, ok := s["const"]; ok {
		values = []any{v}
	}
	if len(values) == 0 {
		return
	}
	for _, v := range values {
		if _, ok := v.(string); !ok {
			g.describe(out, "One of "+text(values)+".")
			g.note(path+"/enum", "the values "+text(values)+" are only described, because Gemini takes only strings")
			return
		}
	}
	out["enum"] = values
}

// describe adds a sentence to a description.
func (g *geminiSchema) describe(out object, sentence string) {
	about, _ := out["description"].(string)
	out["description"] = strings.TrimSpace(about + " " + sentence)
}

// resolve returns the schema that a local reference names, or nil.
func (g *geminiSchema) resolve(ref string) object {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := g.root
	for part := range strings.SplitSeq(path, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if at, ok = at[part].(object); !ok {
			return nil
		}
	}
	return at
}
