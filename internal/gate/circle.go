package gate

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// circular tells that somewhere in the schema to check a value leads back to checking the same value by the same
// schema, with no way out: what is checked there can never fit. A schema that refers to itself by properties or items
// is none, for the values get smaller; nor is one of several alternatives, while another leads out.
func (s *schema) circular() bool {
	c := circles{known: map[*jsonschema.Schema]bool{}, anchors: map[string]int{}}
	c.gather(s.compiled)
	left := c.all
	slices.Reverse(left) // what others need comes first, mostly
	for {                // whatever needs nothing but what has an end has one too
		var still []*jsonschema.Schema
		for _, v := range left {
			if c.known[v] = c.ends(v); !c.known[v] {
				still = append(still, v)
			}
		}
		if len(still) == len(left) {
			return len(left) > 0
		}
		left = still
	}
}

// circles is all schemas that can be reached, and of which it is known that checking a value by them comes to an end.
type circles struct {
	all     []*jsonschema.Schema
	known   map[*jsonschema.Schema]bool
	anchors map[string]int // how many schemas have a dynamic anchor
}

func (c *circles) gather(s *jsonschema.Schema) {
	if _, seen := c.known[s]; s == nil || seen {
		return
	}
	c.all, c.known[s] = append(c.all, s), false
	if s.DynamicAnchor != "" {
		c.anchors[s.DynamicAnchor]++
	}
	must, either := sameValue(s, nil)
	for _, list := range append(either, must, parts(s)) {
		for _, v := range list {
			c.gather(v)
		}
	}
}

// ends tells whether all that a value is checked by here comes to an end, as far as is known.
func (c *circles) ends(s *jsonschema.Schema) bool {
	must, either := sameValue(s, c.anchors)
	for _, v := range must {
		if !c.known[v] {
			return false
		}
	}
	for _, list := range either {
		out := len(list) == 0
		for _, v := range list {
			out = out || c.known[v]
		}
		if !out {
			return false
		}
	}
	return true
}

// sameValue lists the schemas that the same value is checked by: those that it must be, and lists of which one may do.
// Where a dynamic reference leads is found out with the value, if several have its anchor.
func sameValue(s *jsonschema.Schema,
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

// parts lists the schemas that parts of a value are checked by, and names of properties.
func parts(s *jsonschema.Schema) (list []*jsonschema.Schema) {
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
