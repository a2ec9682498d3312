package gate

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

// The keywords whose value is a schema, a list of schemas or a map of schemas. Other keywords hold data, such as the
// values of an enum.
var (
	schemaKeywords = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if",
		"items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	listKeywords = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	nameKeywords = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties",
		"properties"}
)

var referenceKeywords = []string{"$dynamicRef", "$recursiveRef", "$ref"}

// countKeywords limit lengths and counts. The library stores them as int, in which a larger value wraps around.
var countKeywords = []string{"maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems",
	"minLength", "minProperties"}

// maxCount is the largest value that a count keyword may have. Every JSON reader represents integers up to it exactly.
const maxCount = 1 << 53

// schemaLocation is the position of a subschema in a schema.
type schemaLocation struct {
	path string // a JSON Pointer; empty at the root
	base string // the path of the nested $id that fragments are relative to; empty for the root
}

func (p schemaLocation) at(parts ...string) schemaLocation {
	p.path += jsonPointer(parts)
	return p
}

// referenceChecker checks all references and count keywords of a schema.
type referenceChecker struct {
	root   any
	idWord string          // "$id", or "id" for draft 4
	seen   map[string]bool // paths of checked reference targets
}

// checkReferences refuses a schema with a reference that is not a fragment of the schema itself (#...). This covers
// relative and absolute addresses, URNs and fragments below a nested $id, which are relative to that $id. It also
// refuses count keywords above maxCount.
func checkReferences(doc any) error {
	f := referenceChecker{root: doc, idWord: "$id", seen: map[string]bool{}}
	if root, ok := doc.(map[string]any); ok && isDraft4(root) {
		f.idWord = "id"
	}
	return f.checkSchema(doc, schemaLocation{})
}

func (f referenceChecker) checkSchema(v any, p schemaLocation) error {
	s, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if id, ok := s[f.idWord].(string); ok && p.path != "" && !strings.HasPrefix(id, "#") {
		p.base = p.path
	}
	for _, word := range referenceKeywords {
		if ref, ok := s[word].(string); ok {
			if err := f.checkReference(ref, p, word); err != nil {
				return err
			}
		}
	}
	for _, word := range countKeywords {
		n, ok := s[word].(json.Number)
		if !ok {
			continue
		}
		if v, err := n.Float64(); err != nil || v > maxCount {
			return reeve.Errorf(reeve.Validation, "%s is more than %d, the largest supported value", p.at(word).path,
				maxCount).Hintf("remove it or use a smaller value")
		}
	}
	for _, word := range schemaKeywords {
		if err := f.checkSchema(s[word], p.at(word)); err != nil {
			return err
		}
	}
	for _, word := range listKeywords {
		list, _ := s[word].([]any)
		for i, part := range list {
			if err := f.checkSchema(part, p.at(word, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	}
	for _, word := range nameKeywords {
		named, _ := s[word].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(named)) { // so that the same mistake is reported each time
			if err := f.checkSchema(named[name], p.at(word, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkReference checks one reference and the schema that it leads to, which need not be under a known keyword.
func (f referenceChecker) checkReference(ref string, p schemaLocation, word string) error {
	fragment, ok := strings.CutPrefix(ref, "#")
	switch {
	case !ok:
		return reeve.Errorf(reeve.Validation,
			"the reference %q at %s leads outside the schema; use references within the schema, such as #/$defs/name",
			ref, p.at(word).path)
	case p.base != "":
		return reeve.Errorf(reeve.Validation,
			"the reference %q at %s is relative to the %s at %s and not to the root, so it leads outside the schema; "+
				"remove that %s", ref, p.at(word).path, f.idWord, p.base, f.idWord)
	}
	path, err := url.PathUnescape(fragment)
	if err != nil || f.seen[path] || !strings.HasPrefix(path, "/") {
		return nil //nolint:nilerr // a malformed reference fails to compile later
	}
	f.seen[path] = true
	target := f.root
	for _, part := range strings.Split(path[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch t := target.(type) {
		case map[string]any:
			target = t[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(t) {
				return nil //nolint:nilerr // a dangling reference fails to compile later
			}
			target = t[i]
		default:
			return nil
		}
	}
	return f.checkSchema(target, schemaLocation{path: path})
}

func isDraft4(schema map[string]any) bool {
	version, _ := schema["$schema"].(string)
	return strings.Contains(version, "draft-04")
}
