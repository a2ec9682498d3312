package reeve

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// resultSchemas caches the results of inferResultSchema by type. The schema of a type never changes, and a program that
// starts several hosts, such as a test, infers each schema once.
var resultSchemas sync.Map

// resultSchema returns the JSON Schema of a tool's results, whose Go type is t. It returns nil for a type that is not a
// struct, or that JSON Schema cannot describe.
func resultSchema(t reflect.Type) json.RawMessage {
	if known, ok := resultSchemas.Load(t); ok {
		return bytes.Clone(known.(json.RawMessage))
	}
	s := inferResultSchema(t)
	resultSchemas.Store(t, s)
	return bytes.Clone(s)
}

func inferResultSchema(t reflect.Type) json.RawMessage {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	known := map[reflect.Type]*jsonschema.Schema{}
	if collectResultTypes(t, known, map[reflect.Type]bool{}); t.Kind() != reflect.Struct || known[t] != nil {
		return nil
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil // the type is recursive, for example
	}
	for _, p := range s.Properties {
		allowNilMaps(p)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return b
}

// collectResultTypes adds to known the schemas of all types below t that have their own JSON encoding.
func collectResultTypes(t reflect.Type, known map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	encodes := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case t.Kind() == reflect.Interface:
	case t == reflect.TypeFor[time.Time]():
		known[t] = &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t.Kind() == reflect.Pointer:
		collectResultTypes(t.Elem(), known, seen)
	case encodes(reflect.TypeFor[json.Marshaler]()):
		known[t] = &jsonschema.Schema{}
	case encodes(reflect.TypeFor[encoding.TextMarshaler]()):
		known[t] = &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		known[t] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map:
		collectResultTypes(t.Elem(), known, seen)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			collectResultTypes(t.Field(i).Type, known, seen)
		}
	}
}

// allowNilMaps lets the schemas of maps accept null, which is how a nil map is encoded.
func allowNilMaps(s *jsonschema.Schema) {
	if s.Type == "object" && s.Properties == nil {
		s.Type, s.Types = "", []string{"null", "object"}
	}
	for _, p := range s.Properties {
		allowNilMaps(p)
	}
	for _, p := range []*jsonschema.Schema{s.Items, s.AdditionalProperties} {
		if p != nil {
			allowNilMaps(p)
		}
	}
}
