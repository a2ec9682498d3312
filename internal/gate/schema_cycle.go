package gate

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// isCircular tells that somewhere in the schema to check a value leads back to checking the same value by the same
// schema, with no way out: what is checked there can never fit. A schema that refers to itself by properties or items
// is none, for the values get smaller; nor is one of several alternatives, while another leads out.
func (s *schema) isCircular() bool {
	c := cycleFinder{terminating: map[*jsonschema.Schema]bool{}, anchors: map[string]int{}}
	c.collect(s.compiled)
	left := c.all
	slices.Reverse(left) // what others need comes first, mostly
	for {                // whatever needs nothing but what has an end has one too
		var still []*jsonschema.Schema
		for _, v := range left {
			if c.terminating[v] = c.terminates(v); !c.terminating[v] {
				still = append(still, v)
			}
		}
		if len(still) == len(left) {
			return len(left) > 0
		}
		left = still
	}
}

// cycleFinder is all schemas that can be reached, and of which it is known that checking a value by them comes to an end.
type cycleFinder struct {
	all         []*jsonschema.Schema
	terminating map[*jsonschema.Schema]bool
	anchors     map[string]int // how many schemas have a dynamic anchor
}

func (c *cycleFinder) collect(s *jsonschema.Schema) {
	if _, seen := c.terminating[s]; s == nil || seen {
		return
	}
	c.all, c.terminating[s] = append(c.all, s), false
	if s.DynamicAnchor != "" {
		c.anchors[s.DynamicAnchor]++
	}
	must, either := schemasOfSameValue(s, nil)
	for _, list := range append(either, must, schemasOfParts(s)) {
		for _, v := range list {
			c.collect(v)
		}
	}
}

// terminates tells whether all that a value is checked by here comes to an end, as far as is known.
func (c *cycleFinder) terminates(s *jsonschema.Schema) bool {
	must, either := schemasOfSameValue(s, c.anchors)
	for _, v := range must {
		if !c.terminating[v] {
			return false
		}
	}
	for _, list := range either {
		out := len(list) == 0
		for _, v := range list {
			out = out || c.terminating[v]
		}
		if !out {
			return false
		}
	}
	return true
}

// schemasOfSameValue lists the schemas that the same value is checked by: those that it must be, and lists of which one may do.
// Where a dynamic reference leads is found out with the value, if several have its anchor.
func schemasOfSameValue(s *jsonschema.Schema,
	anchors map[string]int) (must []*jsonschema.Schema, either [][]*jsonschema.Schema) {
	for _, v := range []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If} {
		if v != nil {
			must = append(must, v)
		}
	}
	if d := s.DynamicRef; d != nil && d.Ref != nil && anchors[d.Anchor] < 2 {
		must = append(must, d.Ref)
	}
	if s.If != nil && s.Then != nil {
		must = append(must, s.Then)
	}
	if s.If != nil && s.Else != nil {
		must = append(must, s.Else)
	}
	must = append(must, s.AllOf...)
	for _, v := range s.DependentSchemas {
		must = append(must, v)
	}
	for _, v := range s.Dependencies {
		must = appendSchemas(must, v)
	}
	return must, [][]*jsonschema.Schema{s.AnyOf, s.OneOf}
}

// schemasOfParts lists the schemas that parts of a value are checked by, and names of properties.
func schemasOfParts(s *jsonschema.Schema) (list []*jsonschema.Schema) {
	for _, v := range s.Properties {
		list = append(list, v)
	}
	for _, v := range s.PatternProperties {
		list = append(list, v)
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems, s.PrefixItems, s.PropertyNames,
		s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems} {
		list = appendSchemas(list, v)
	}
	return list
}

// appendSchemas adds what is a schema or a list of them, where there may be something else.
func appendSchemas(list []*jsonschema.Schema, v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		if v != nil {
			list = append(list, v)
		}
	case []*jsonschema.Schema:
		list = append(list, v...)
	}
	return list
}
