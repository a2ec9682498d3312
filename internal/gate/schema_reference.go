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

// The keywords that hold schemas: one, a list of them, or several by name. What stands elsewhere is data, such as an
// enum's values.
var (
	schemaKeywords = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if",
		"items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	listKeywords = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	nameKeywords = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties",
		"properties"}
)

var referenceKeywords = []string{"$dynamicRef", "$recursiveRef", "$ref"}

// countKeywords bound lengths and numbers of things. The library keeps them as int, in which a larger one wraps around.
var countKeywords = []string{"maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems",
	"minLength", "minProperties"}

// maxCount is the largest value that such a keyword may have: that of an integer which every JSON reader keeps
// exactly.
const maxCount = 1 << 53

// schemaLocation is where in a schema a part of it stands.
type schemaLocation struct {
	path string // a JSON Pointer; empty at the root
	base string // the path of the $id that fragments count from; empty if that is the root
}

func (p schemaLocation) at(parts ...string) schemaLocation {
	p.path += jsonPointer(parts)
	return p
}

// referenceChecker looks at all references of a schema, and at the bounds that are kept as int.
type referenceChecker struct {
	root   any
	idWord string          // draft 4 writes id for $id
	seen   map[string]bool // the targets of references that were looked at, by path
}

// checkReferences refuses a schema with a reference that is anything but a fragment of the schema itself (#...): a
// relative or an
// absolute address, a URN, or a fragment below a nested $id, which counts from there and not from the root. It also
// refuses a length or a number of things above [mostCount].
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
			return reeve.Errorf(reeve.Validation, "%s is more than %d, the most that a length or a number of things "+
				"is compared with", p.at(word).path, maxCount).Hintf("leave it out, or give a smaller one")
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
		for _, name := range slices.Sorted(maps.Keys(named)) { // of several mistakes always the same one is named
			if err := f.checkSchema(named[name], p.at(word, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkReference looks at one reference, and at the schema it leads to, which need not stand under any known keyword.
func (f referenceChecker) checkReference(ref string, p schemaLocation, word string) error {
	fragment, ok := strings.CutPrefix(ref, "#")
	switch {
	case !ok:
		return reeve.Errorf(reeve.Validation,
			"the reference %q at %s leads outside the schema: only references to its own parts can be "+
				"used, such as #/$defs/name", ref, p.at(word).path)
	case p.base != "":
		return reeve.Errorf(reeve.Validation,
			"the reference %q at %s counts from the %s at %s and not from the root of the schema, so it "+
				"leads outside the schema: remove that %s", ref, p.at(word).path, f.idWord, p.base, f.idWord)
	}
	path, err := url.PathUnescape(fragment)
	if err != nil || f.seen[path] || !strings.HasPrefix(path, "/") {
		return nil //nolint:nilerr // what cannot be read does not compile
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
				return nil //nolint:nilerr // what leads nowhere does not compile
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
