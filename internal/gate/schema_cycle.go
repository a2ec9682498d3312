package gate

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// isCircular reports whether validating a value can lead back to validating the same value by the same schema, without
// an alternative. No value can ever match such a schema. References through properties or items are no cycle, because
// they apply to smaller values. One of several alternatives is no cycle if another one terminates.
func (s *schema) isCircular() bool {
	c := cycleFinder{terminating: map[*jsonschema.Schema]bool{}, anchors: map[string]int{}}
	c.collect(s.compiled)
	left := c.all
	slices.Reverse(left) // referenced schemas mostly come first then, which saves rounds
	for {                // mark schemas that depend only on terminating ones, until nothing changes
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

// cycleFinder holds the reachable schemas and those for which validation is known to terminate.
type cycleFinder struct {
	all         []*jsonschema.Schema
	terminating map[*jsonschema.Schema]bool
	anchors     map[string]int // number of schemas by dynamic anchor
}

// collect adds a schema and all schemas that can be reached from it.
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

// terminates reports whether validation by a schema terminates, given the schemas that are known to terminate.
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

// schemasOfSameValue lists the schemas that apply to the same value as s: those that must match, and lists of
// alternatives. A dynamic reference is left out if several schemas have its anchor, because its target then depends on
// the value.
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

// schemasOfParts lists the schemas that apply to parts of a value or to names of properties.
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

// appendSchemas appends v if it is a schema or a list of schemas.
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
