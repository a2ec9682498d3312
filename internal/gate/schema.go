package gate

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"reeve"
	"reeve/internal/canonjson"
)

// schema is a compiled JSON Schema with its source as a tree.
type schema struct {
	compiled *jsonschema.Schema
	tree     map[string]any
	printer  *message.Printer
	limit    stepLimit
}

// noExternalSchemas is a loader that refuses references to other documents. The default loader of the library opens
// files.
type noExternalSchemas struct{}

func (noExternalSchemas) Load(url string) (any, error) {
	return nil, fmt.Errorf("the reference %q leads outside the schema", url)
}

// maxSchemas limits the number of cached schemas. A full cache is emptied.
const maxSchemas = 2000

// schemaCache caches compiled schemas by their text. Each time a tool's row is read, its schema is needed. Compiling
// takes a hundred times as long as a lookup.
type schemaCache struct {
	mu     sync.Mutex
	byText map[string]*schema
}

// compile returns the compiled schema for a text. Several tools may share it.
func (c *schemaCache) compile(text []byte) (*schema, error) {
	c.mu.Lock()
	s, ok := c.byText[string(text)]
	c.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := compile(text)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byText == nil || len(c.byText) >= maxSchemas {
		c.byText = map[string]*schema{}
	}
	c.byText[string(text)] = s
	return s, nil
}

// compile parses and compiles a schema. As the standard has it by default, a format is only an annotation.
func compile(text []byte) (*schema, error) {
	doc, err := canonjson.Parse(text)
	if err != nil {
		return nil, reeve.InvalidJSON(err)
	}
	tree, ok := doc.(map[string]any)
	if _, isBool := doc.(bool); !ok && !isBool {
		return nil, reeve.Errorf(reeve.Validation, "a schema must be an object, true or false")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noExternalSchemas{})
	if err := checkReferences(doc); err != nil {
		return nil, err
	}
	const here = "https://reeve.invalid/schema" // has a path, so that a relative reference names another document
	if err := c.AddResource(here, doc); err != nil {
		return nil, reeve.Errorf(reeve.Validation, "the schema cannot be read: %v", err)
	}
	s, err := c.Compile(here)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "the schema does not compile: %s",
			strings.ReplaceAll(err.Error(), here, ""))
	}
	out := &schema{compiled: s, tree: tree, printer: message.NewPrinter(language.English)}
	out.limit.install(s)
	return out, nil
}

// CheckParameters returns an error if a text is not a valid JSON Schema for the arguments of a tool.
func CheckParameters(text []byte) error {
	_, err := compile(text)
	return err
}

// maxFields limits how many wrong fields an error names.
const maxFields = 50

// check validates a value and returns every path that is wrong, with prefix in front, and what is expected there.
func (s *schema) check(v any, prefix string) []reeve.Field {
	var err error
	if s.limit.isExceeded(v, func() { err = s.compiled.Validate(v) }) {
		return []reeve.Field{{Path: prefix, Message: messageTooComplex, Expected: "fewer or less deeply nested values"}}
	}
	if err == nil {
		return nil
	}
	ve, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // the library returns exactly this type
	if !ok {
		return []reeve.Field{{Path: prefix, Message: err.Error()}}
	}
	var out []reeve.Field
	s.collectFields(ve, prefix, &out)
	if len(out) == 0 {
		out = append(out, reeve.Field{Path: prefix, Message: messageCircular, Expected: "a schema without cycles"})
	}
	return out
}

// messageCircular is the message for a value that cannot be checked because of a cycle in the schema. It appears only
// if nothing else is wrong with the value.
const messageCircular = "cannot be checked: the tool's schema refers to itself in a cycle"

// messageTooComplex is the message for a value whose check exceeds the limit of steps.
const messageTooComplex = "takes too long to check: the tool's schema has too many alternatives"

// collectFields appends a field for each leaf of a validation error.
func (s *schema) collectFields(e *jsonschema.ValidationError, prefix string, out *[]reeve.Field) {
	if len(*out) >= maxFields {
		return
	}
	if len(e.Causes) > 0 {
		for _, c := range e.Causes {
			s.collectFields(c, prefix, out)
		}
		return
	}
	path := prefix + jsonPointer(e.InstanceLocation)
	msg := e.ErrorKind.LocalizedString(s.printer)
	add := func(path, msg, expected string) {
		*out = append(*out, reeve.Field{Path: path, Message: msg, Expected: expected})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.RefCycle: // reported by check
	case *kind.Required:
		for _, m := range k.Missing {
			add(path+jsonPointer([]string{m}), "is missing", "a value")
		}
	case *kind.AdditionalProperties:
		for _, m := range k.Properties {
			add(path+jsonPointer([]string{m}), "is unknown", "no such property")
		}
	case *kind.FalseSchema:
		if strings.HasSuffix(e.SchemaURL, "/unevaluatedItems") || strings.HasSuffix(e.SchemaURL, "/items") {
			add(path, "is one item too many", "no such item")
		} else {
			add(path, "is unknown", "no such property")
		}
	case *kind.Type:
		add(path, "is "+withArticle(k.Got), strings.Join(k.Want, " or "))
	case *kind.Enum:
		add(path, "is not one of the allowed values", "one of "+formatValues(k.Want))
	case *kind.Const:
		add(path, "is not the only allowed value", formatValues([]any{k.Want}))
	case *kind.Minimum:
		add(path, "is too small", "at least "+formatNumber(k.Want))
	case *kind.ExclusiveMinimum:
		add(path, "is too small", "more than "+formatNumber(k.Want))
	case *kind.Maximum:
		add(path, "is too large", "at most "+formatNumber(k.Want))
	case *kind.ExclusiveMaximum:
		add(path, "is too large", "less than "+formatNumber(k.Want))
	case *kind.MultipleOf:
		add(path, "is not a multiple", "a multiple of "+formatNumber(k.Want))
	case *kind.MinItems:
		add(path, "has too few items", fmt.Sprintf("at least %d", k.Want))
	case *kind.MaxItems:
		add(path, "has too many items", fmt.Sprintf("at most %d", k.Want))
	case *kind.UniqueItems:
		add(path, "contains an item twice", "unique items")
	case *kind.Format:
		add(path, "is not well formed", "a value of format "+k.Want)
	case *kind.Pattern:
		add(path, "does not match the pattern", k.Want)
	case *kind.MinLength:
		add(path, "is too short", fmt.Sprintf("at least %d characters", k.Want))
	case *kind.MaxLength:
		add(path, "is too long", fmt.Sprintf("at most %d characters", k.Want))
	default:
		add(path, msg, "a value that matches the schema")
	}
}

// lacksProperty reports whether the schema defines its properties completely and name is not one of them. It returns
// false for schemas whose properties may be defined by other keywords.
func (s *schema) lacksProperty(name string) bool {
	for _, elsewhere := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas",
		"patternProperties"} {
		if s.tree[elsewhere] != nil {
			return false
		}
	}
	listed, ok := s.tree["properties"].(map[string]any)
	_, found := listed[name]
	return !found && (ok || s.tree["additionalProperties"] == false)
}

func withArticle(kind string) string {
	switch kind {
	case "null":
		return "null"
	case "integer", "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

func formatNumber(r *big.Rat) string {
	if r.IsInt() {
		return string(canonjson.CanonicalValue(json.Number(r.Num().String())))
	}
	f, _ := r.Float64()
	return string(canonjson.CanonicalValue(f))
}

func formatValues(values []any) string {
	out := make([]string, len(values))
	for i, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte(fmt.Sprint(v))
		}
		out[i] = string(b)
	}
	return strings.Join(out, ", ")
}

// jsonPointer returns a JSON Pointer with the given parts.
func jsonPointer(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + canonjson.EscapePointer(p))
	}
	return b.String()
}
