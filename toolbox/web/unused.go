package web

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"reeve/internal/canonjson"
)

// reportUnused reports the parameters that a request without a body does not use. By default a body contains every
// parameter that is not used elsewhere; an explicit body mapping drops the others on purpose.
func (c *checker) reportUnused() {
	if c.spec.BodyType == noBody {
		c.reportUnusedIn("/parameters", c.tool.Parameters, map[string]bool{"#": true})
	}
}

// reportUnusedIn reports the unused parameters in a schema and in its subschemas for the same object. It visits each
// reference once; visited holds the references.
func (c *checker) reportUnusedIn(at string, raw json.RawMessage, visited map[string]bool) {
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
	if json.Unmarshal(raw, &s) != nil { // true and false are schemas without properties
		return
	}
	const expected = "a parameter that url or query uses"
	found := map[string]bool{}
	reportName := func(at, name string) {
		if name != OperationArg && !c.usedParams[name] && !slices.Contains(c.tool.Identity, name) && !found[name] {
			found[name] = true
			c.report(at, expected, invalidf("parameter %s is not used", name))
		}
	}
	for _, name := range sortedKeys(s.Properties) {
		if string(s.Properties[name]) != "false" { // a false schema accepts no value
			reportName(at+"/properties/"+canonjson.EscapePointer(name), name)
		}
	}
	for i, name := range s.Required {
		reportName(at+"/required/"+strconv.Itoa(i), name)
	}
	for _, pattern := range sortedKeys(s.PatternProperties) {
		if string(s.PatternProperties[pattern]) != "false" {
			c.report(at+"/patternProperties/"+canonjson.EscapePointer(pattern), expected,
				invalidf("parameters that match %s are not used", pattern))
		}
	}
	for _, name := range sortedKeys(s.DependentRequired) {
		at := at + "/dependentRequired/" + canonjson.EscapePointer(name)
		reportName(at, name)
		for i, needed := range s.DependentRequired[name] {
			reportName(at+"/"+strconv.Itoa(i), needed)
		}
	}
	for _, name := range enumeratedNames(s.PropertyNames) {
		reportName(at+"/propertyNames", name)
	}
	for name, list := range map[string][]json.RawMessage{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		for i, sub := range list {
			c.reportUnusedIn(at+"/"+name+"/"+strconv.Itoa(i), sub, visited)
		}
	}
	c.reportUnusedIn(at+"/then", s.Then, visited)
	c.reportUnusedIn(at+"/else", s.Else, visited)
	for _, name := range sortedKeys(s.DependentSchemas) {
		at := at + "/dependentSchemas/" + canonjson.EscapePointer(name)
		reportName(at, name)
		c.reportUnusedIn(at, s.DependentSchemas[name], visited)
	}
	for key, ref := range map[string]*string{"$ref": s.Ref, "$dynamicRef": s.DynamicRef} {
		if ref == nil || visited[*ref] {
			continue
		}
		visited[*ref] = true
		if to, sub, ok := c.resolveRef(*ref); ok {
			c.reportUnusedIn("/parameters"+to, sub, visited)
		} else {
			c.report(at+"/"+key, "a reference such as #/$defs/name",
				invalidf("the parameters of the reference %s cannot be determined",
					*ref))
		}
	}
}

// enumeratedNames returns the names that a propertyNames schema lists.
func enumeratedNames(raw json.RawMessage) []string {
	var s struct {
		Enum  []string `json:"enum"`
		Const *string  `json:"const"`
	}
	if json.Unmarshal(raw, &s) != nil { // not a list of names
		return nil
	}
	if s.Const != nil {
		s.Enum = append(s.Enum, *s.Const)
	}
	return s.Enum
}

// resolveRef returns the subschema that a reference by JSON Pointer names.
func (c *checker) resolveRef(ref string) (at string, sub json.RawMessage, ok bool) {
	fragment, here := strings.CutPrefix(ref, "#")
	at, err := url.PathUnescape(fragment)
	tokens, ok := parsePointer(at)
	if !here || err != nil || !ok {
		return "", nil, false
	}
	sub, ok = resolvePointer(c.tool.Parameters, tokens)
	return at, sub, ok
}
