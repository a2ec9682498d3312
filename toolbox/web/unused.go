package web

import (
	"encoding/json"
	"slices"
	"strconv"
)

// unused finds the parameters of a request without a body that go nowhere. A body has all that stand nowhere else, unless it says what it has: the rest is then dropped on purpose.
func (c *checker) unused() {
	if c.spec.BodyType == noBody {
		c.lost("/parameters", c.tool.Parameters)
	}
}

// lost finds them in a schema, and in those that apply to the same object.
func (c *checker) lost(at string, raw json.RawMessage) {
	var s struct {
		Properties        map[string]json.RawMessage `json:"properties"`
		PatternProperties map[string]json.RawMessage `json:"patternProperties"`
		Required          []string                   `json:"required"`
		AllOf             []json.RawMessage          `json:"allOf"`
		AnyOf             []json.RawMessage          `json:"anyOf"`
		OneOf             []json.RawMessage          `json:"oneOf"`
		Then              json.RawMessage            `json:"then"`
		Else              json.RawMessage            `json:"else"`
	}
	if json.Unmarshal(raw, &s) != nil { // true and false, which name nothing
		return
	}
	const expected = "a parameter that url or query uses"
	found := map[string]bool{}
	goes := func(at, name string) {
		if name != OperationArg && !c.used[name] && !slices.Contains(c.tool.Identity, name) && !found[name] {
			found[name] = true
			c.bad(at, expected, bad("the parameter %s goes nowhere", name))
		}
	}
	for _, name := range sortedKeys(s.Properties) {
		if string(s.Properties[name]) != "false" { // which nobody can give
			goes(at+"/properties/"+escapeToken(name), name)
		}
	}
	for i, name := range s.Required {
		goes(at+"/required/"+strconv.Itoa(i), name)
	}
	for _, pattern := range sortedKeys(s.PatternProperties) {
		if string(s.PatternProperties[pattern]) != "false" {
			c.bad(at+"/patternProperties/"+escapeToken(pattern), expected, bad("what matches %s goes nowhere", pattern))
		}
	}
	for name, list := range map[string][]json.RawMessage{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		for i, sub := range list {
			c.lost(at+"/"+name+"/"+strconv.Itoa(i), sub)
		}
	}
	c.lost(at+"/then", s.Then)
	c.lost(at+"/else", s.Else)
}
