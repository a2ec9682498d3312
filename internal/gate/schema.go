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

// schema is a compiled JSON Schema and the text it was compiled from, as a tree.
type schema struct {
	compiled *jsonschema.Schema
	tree     map[string]any
	printer  *message.Printer
	bound    bound
}

// refuse answers every reference that leads out of the schema itself: the library's default would open files.
type refuse struct{}

func (refuse) Load(url string) (any, error) {
	return nil, fmt.Errorf("the reference %q leads outside the schema", url)
}

// maxSchemas bounds how many compiled schemas are kept.
const maxSchemas = 2000

// schemaCache keeps compiled schemas by their text. A tool's schema is compiled when the tool is declared, and again
// each time its row is read; compiling takes a hundred times as long as a lookup.
type schemaCache struct {
	mu     sync.Mutex
	byText map[string]*schema
}

// compile returns the compiled form of a schema. Several tools may share it.
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

// compile reads a schema. A format is a note to the caller, as the standard has it by default; a pattern is a check.
func compile(text []byte) (*schema, error) {
	doc, err := canonjson.Parse(text)
	if err != nil {
		return nil, reeve.InvalidJSON(err)
	}
	tree, ok := doc.(map[string]any)
	if _, anything := doc.(bool); !ok && !anything {
		return nil, reeve.Errorf(reeve.Validation, "a schema is an object, true or false")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuse{})
	if err := onlyFragments(doc); err != nil {
		return nil, err
	}
	const here = "https://reeve.invalid/schema" // with a path, so that a relative reference means another document
	if err := c.AddResource(here, doc); err != nil {
		return nil, reeve.Errorf(reeve.Validation, "the schema cannot be read: %v", err)
	}
	s, err := c.Compile(here)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "the schema does not compile: %s",
			strings.ReplaceAll(err.Error(), here, ""))
	}
	out := &schema{compiled: s, tree: tree, printer: message.NewPrinter(language.English)}
	out.bound.keep(s)
	return out, nil
}

// CheckParameters says what is wrong with a JSON Schema that is to describe a tool's arguments; nil means nothing.
func CheckParameters(text []byte) error {
	_, err := compile(text)
	return err
}

// maxFields bounds how many wrong inputs one answer names.
const maxFields = 50

// check lists every failing path with what was expected there, below a prefix.
func (s *schema) check(v any, prefix string) []reeve.Field {
	var err error
	if s.bound.spent(v, func() { err = s.compiled.Validate(v) }) {
		return []reeve.Field{{Path: prefix, Message: tangled, Expected: "less, or less deeply nested"}}
	}
	if err == nil {
		return nil
	}
	ve, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // the library returns exactly this type
	if !ok {
		return []reeve.Field{{Path: prefix, Message: err.Error()}}
	}
	var out []reeve.Field
	s.leaves(ve, prefix, &out)
	if len(out) == 0 {
		out = append(out, reeve.Field{Path: prefix, Message: endless, Expected: "a schema that leads further"})
	}
	return out
}

// endless is what is wrong where a value was checked in a circle and nothing else is. It is the schema's fault; what
// else is wrong is the value's.
const endless = "cannot be checked: the tool's schema refers to itself in a circle"

// tangled is what is wrong where nobody knows whether a value fits, because finding out takes too long.
const tangled = "takes too long to check: the tool's schema has too many ways through it"

func (s *schema) leaves(e *jsonschema.ValidationError, prefix string, out *[]reeve.Field) {
	if len(*out) >= maxFields {
		return
	}
	if len(e.Causes) > 0 {
		for _, c := range e.Causes {
			s.leaves(c, prefix, out)
		}
		return
	}
	path := prefix + pointer(e.InstanceLocation)
	msg := e.ErrorKind.LocalizedString(s.printer)
	add := func(path, msg, expected string) {
		*out = append(*out, reeve.Field{Path: path, Message: msg, Expected: expected})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.RefCycle: // see endless
	case *kind.Required:
		for _, m := range k.Missing {
			add(path+pointer([]string{m}), "is missing", "a value")
		}
	case *kind.AdditionalProperties:
		for _, m := range k.Properties {
			add(path+pointer([]string{m}), "is not known", "no such property")
		}
	case *kind.FalseSchema:
		if strings.HasSuffix(e.SchemaURL, "/unevaluatedItems") || strings.HasSuffix(e.SchemaURL, "/items") {
			add(path, "is one item too many", "no such item")
		} else {
			add(path, "is not known", "no such property")
		}
	case *kind.Type:
		add(path, "is "+article(k.Got), strings.Join(k.Want, " or "))
	case *kind.Enum:
		add(path, "is not one of the allowed values", "one of "+listed(k.Want))
	case *kind.Const:
		add(path, "is not the only allowed value", listed([]any{k.Want}))
	case *kind.Minimum:
		add(path, "is too small", "at least "+decimal(k.Want))
	case *kind.ExclusiveMinimum:
		add(path, "is too small", "more than "+decimal(k.Want))
	case *kind.Maximum:
		add(path, "is too large", "at most "+decimal(k.Want))
	case *kind.ExclusiveMaximum:
		add(path, "is too large", "less than "+decimal(k.Want))
	case *kind.MultipleOf:
		add(path, "is not a multiple", "a multiple of "+decimal(k.Want))
	case *kind.MinItems:
		add(path, "has too few items", fmt.Sprintf("at least %d", k.Want))
	case *kind.MaxItems:
		add(path, "has too many items", fmt.Sprintf("at most %d", k.Want))
	case *kind.UniqueItems:
		add(path, "holds an item twice", "every item once")
	case *kind.Format:
		add(path, "is not well formed", "a value of format "+k.Want)
	case *kind.Pattern:
		add(path, "does not match", k.Want)
	case *kind.MinLength:
		add(path, "is too short", fmt.Sprintf("at least %d characters", k.Want))
	case *kind.MaxLength:
		add(path, "is too long", fmt.Sprintf("at most %d characters", k.Want))
	default:
		add(path, msg, "what the schema says here")
	}
}

// lacks tells that a schema lists the properties that there can be, and that a name is none of them. Where some come
// from elsewhere, nobody can tell.
func (s *schema) lacks(name string) bool {
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

func article(kind string) string {
	switch kind {
	case "null":
		return "null"
	case "integer", "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return string(canonjson.CanonicalValue(json.Number(r.Num().String())))
	}
	f, _ := r.Float64()
	return string(canonjson.CanonicalValue(f))
}

func listed(values []any) string {
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

func pointer(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + canonjson.EscapePointer(p))
	}
	return b.String()
}
