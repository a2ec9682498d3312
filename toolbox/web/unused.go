package web

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"reeve/internal/canonjson"
)

// unused finds the parameters of a request without a body that go nowhere. A body has all that stand nowhere else,
// unless it says what it has: the rest is then dropped on purpose.
func (c *checker) unused() {
	if c.spec.BodyType == noBody {
		c.lost("/parameters", c.tool.Parameters, map[string]bool{"#": true})
	}
}

// lost finds them in a schema, and in those that apply to the same object. Those that were referred to are looked at
// once.
func (c *checker) lost(at string, raw json.RawMessage, referred map[string]bool) {
	var s struct {
		Ref               *string                    `json:"$ref"`
		DynamicRef        *string                    `json:"$dynamicRef"`
		Properties        map[string]json.RawMessage `json:"properties"`
		PatternProperties map[string]json.RawMessage `json:"patternProperties"`
		Required          []string                   `json:"required"`
		AllOf             []json.RawMessage          `json:"allOf"`
		AnyOf             []json.RawMessage          `json:"anyOf"`
		OneOf             []json.RawMessage          `json:"oneOf"`
		Then              json.RawMessage            `json:"then"`
		Else              json.RawMessage            `json:"else"`
		DependentRequired map[string][]string        `json:"dependentRequired"`
		DependentSchemas  map[string]json.RawMessage `json:"dependentSchemas"`
		PropertyNames     json.RawMessage            `json:"propertyNames"`
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
			goes(at+"/properties/"+canonjson.EscapePointer(name), name)
		}
	}
	for i, name := range s.Required {
		goes(at+"/required/"+strconv.Itoa(i), name)
	}
	for _, pattern := range sortedKeys(s.PatternProperties) {
		if string(s.PatternProperties[pattern]) != "false" {
			c.bad(at+"/patternProperties/"+canonjson.EscapePointer(pattern), expected,
				bad("what matches %s goes nowhere", pattern))
		}
	}
	for _, name := range sortedKeys(s.DependentRequired) {
		at := at + "/dependentRequired/" + canonjson.EscapePointer(name)
		goes(at, name)
		for i, needed := range s.DependentRequired[name] {
			goes(at+"/"+strconv.Itoa(i), needed)
		}
	}
	for _, name := range namesIn(s.PropertyNames) {
		goes(at+"/propertyNames", name)
	}
	for name, list := range map[string][]json.RawMessage{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		for i, sub := range list {
			c.lost(at+"/"+name+"/"+strconv.Itoa(i), sub, referred)
		}
	}
	c.lost(at+"/then", s.Then, referred)
	c.lost(at+"/else", s.Else, referred)
	for _, name := range sortedKeys(s.DependentSchemas) {
		at := at + "/dependentSchemas/" + canonjson.EscapePointer(name)
		goes(at, name)
		c.lost(at, s.DependentSchemas[name], referred)
	}
	for key, ref := range map[string]*string{"$ref": s.Ref, "$dynamicRef": s.DynamicRef} {
		if ref == nil || referred[*ref] {
			continue
		}
		referred[*ref] = true
		if to, sub, ok := c.refersTo(*ref); ok {
			c.lost("/parameters"+to, sub, referred)
		} else {
			c.bad(at+"/"+key, "a reference such as #/$defs/name", bad("it cannot be told which parameters %s has",
				*ref))
		}
	}
}

// namesIn gives the names that a schema of names lists.
func namesIn(raw json.RawMessage) []string {
	var s struct {
		Enum  []string `json:"enum"`
		Const *string  `json:"const"`
	}
	if json.Unmarshal(raw, &s) != nil { // a schema of something else, or none
		return nil
	}
	if s.Const != nil {
		s.Enum = append(s.Enum, *s.Const)
	}
	return s.Enum
}

// refersTo finds what a reference by a pointer leads to in the tool's schema.
func (c *checker) refersTo(ref string) (at string, sub json.RawMessage, ok bool) {
	fragment, here := strings.CutPrefix(ref, "#")
	at, err := url.PathUnescape(fragment)
	tokens, ok := parsePointer(at)
	if !here || err != nil || !ok {
		return "", nil, false
	}
	sub, ok = pick(c.tool.Parameters, tokens)
	return at, sub, ok
}
