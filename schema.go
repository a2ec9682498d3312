package reeve

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// OwnerKeyword marks a property in the schema of a tool's settings that only an owner may set, because it gives access
// to the server itself.
const OwnerKeyword = "x-owner"

// SchemaFor infers a JSON Schema from a Go struct. Property names come from the json tag. A field is required unless it
// is a pointer or has omitempty or omitzero. The tags doc, enum, minimum, maximum, minLength, maxLength, pattern,
// minItems, maxItems and default set the keywords of the same meaning; in a list, enum and pattern apply to each
// element. The tag owner:"true" sets [OwnerKeyword]. Null is never allowed.
func SchemaFor[T any]() (json.RawMessage, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments must be a struct, not %s", t)
	}
	known := map[reflect.Type]*jsonschema.Schema{}
	if err := collectTypeSchemas(t, known, map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	if err := applyConstraints(s, t, known); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// collectTypeSchemas adds to known the schemas of all types below t that have their own JSON encoding.
func collectTypeSchemas(t reflect.Type, known map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	switch p := reflect.PointerTo(t); {
	case t == reflect.TypeFor[time.Time]():
		known[t] = &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[Scores]():
		known[t] = &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer"}}
	case t.Kind() == reflect.Pointer:
		return collectTypeSchemas(t.Elem(), known, seen)
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		known[t] = &jsonschema.Schema{Type: "string"}
	case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		known[t] = &jsonschema.Schema{}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		known[t] = &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map:
		return collectTypeSchemas(t.Elem(), known, seen)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _ := jsonName(f)
			if f.Anonymous && name != "" && name != "-" {
				return fmt.Errorf("field %s: an embedded struct cannot have the name %q; make it a field", f.Name, name)
			}
			if name == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			if err := collectTypeSchemas(f.Type, known, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// jsonName returns the name and the options in a field's json tag. The name is "" if there is none and "-" if the field
// is not encoded.
func jsonName(f reflect.StructField) (name string, options []string) {
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "-", nil
	}
	name, rest, _ := strings.Cut(tag, ",")
	return name, strings.Split(rest, ",")
}

// applyConstraints adds the keywords of struct tags to the inferred schema s of type t, and disallows null.
func applyConstraints(s *jsonschema.Schema, t reflect.Type, known map[reflect.Type]*jsonschema.Schema) error {
	if s.Types != nil { // ["null", T], or ["null"] for any type
		s.Type, s.Types = strings.Join(s.Types[1:], ""), nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known[t] != nil {
		return nil
	}
	switch {
	case s.Items != nil:
		return applyConstraints(s.Items, t.Elem(), known)
	case t.Kind() == reflect.Map:
		return applyConstraints(s.AdditionalProperties, t.Elem(), known)
	case t.Kind() != reflect.Struct:
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _ := jsonName(f)
		if name == "" {
			name = f.Name
		}
		p := s.Properties[name]
		if p == nil || !f.IsExported() || f.Anonymous {
			continue
		}
		if f.Type.Kind() == reflect.Pointer {
			s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
		}
		if err := applyConstraints(p, f.Type, known); err != nil {
			return err
		}
		if err := applyTags(p, f.Tag); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

// applyTags adds a field's tags to its schema p. It fails if a tag does not apply to the field's type.
func applyTags(p *jsonschema.Schema, tag reflect.StructTag) error {
	p.Description = tag.Get("doc")
	element := p
	for element.Items != nil {
		element = element.Items
	}
	r := tagReader{StructTag: tag}
	r.setNumber("minimum", p, &p.Minimum, "integer", "number")
	r.setNumber("maximum", p, &p.Maximum, "integer", "number")
	r.setCount("minLength", p, &p.MinLength, "string")
	r.setCount("maxLength", p, &p.MaxLength, "string")
	r.setCount("minItems", p, &p.MinItems, "array")
	r.setCount("maxItems", p, &p.MaxItems, "array")
	if v, ok := r.lookupFor("pattern", element, "string"); ok {
		element.Pattern = v
	}
	if v, ok := r.lookupFor("enum", element, "string", "integer", "number", "boolean"); ok {
		element.Enum = nil
		for e := range strings.SplitSeq(v, ",") {
			element.Enum = append(element.Enum, r.parseValue("enum", element, e))
		}
	}
	if tag.Get("owner") == "true" {
		p.Extra = map[string]any{OwnerKeyword: true}
	}
	if v, ok := tag.Lookup("default"); ok && r.err == nil {
		b, err := json.Marshal(r.parseValue("default", p, v))
		p.Default = b
		r.err = firstError(r.err, err)
	}
	if r.err != nil {
		return r.err
	}
	return checkFieldSchema(p)
}

// tagReader reads the tags of one field and records the first error.
type tagReader struct {
	reflect.StructTag
	err error
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (r *tagReader) fail(format string, args ...any) {
	r.err = firstError(r.err, fmt.Errorf(format, args...))
}

// lookupFor returns the value of a tag that applies only to the given types.
func (r *tagReader) lookupFor(tag string, p *jsonschema.Schema, types ...string) (string, bool) {
	v, ok := r.Lookup(tag)
	if ok && !slices.Contains(types, p.Type) {
		r.fail("tag %s:%q does not apply to type %q", tag, v, p.Type)
	}
	return v, ok
}

func (r *tagReader) setNumber(tag string, p *jsonschema.Schema, to **float64, types ...string) {
	if v, ok := r.lookupFor(tag, p, types...); ok {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			r.fail("tag %s:%q is not a number", tag, v)
		}
		*to = &n
	}
}

func (r *tagReader) setCount(tag string, p *jsonschema.Schema, to **int, types ...string) {
	if v, ok := r.lookupFor(tag, p, types...); ok {
		n, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			r.fail("tag %s:%q is not a count", tag, v)
		}
		i := int(n)
		*to = &i
	}
}

// parseValue parses a value in a tag. A string is taken as is, anything else is JSON.
func (r *tagReader) parseValue(tag string, p *jsonschema.Schema, v string) any {
	if p.Type == "string" {
		return v
	}
	d := json.NewDecoder(bytes.NewReader([]byte(v)))
	var out any
	if err := d.Decode(&out); err != nil || d.More() {
		r.fail("tag %s has %q, which is not of type %q", tag, v, p.Type)
	}
	return out
}

// checkFieldSchema returns an error if the pattern does not compile, or if an enum value or the default does not match
// the rest of the schema.
func checkFieldSchema(p *jsonschema.Schema) error {
	resolved, err := p.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return err
	}
	for _, v := range p.Enum {
		if err := resolved.Validate(v); err != nil {
			return fmt.Errorf("tag enum has %v, which does not match: %w", v, err)
		}
	}
	return nil
}
