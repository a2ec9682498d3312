package model_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reeve"
	"reeve/model"
)

// gnarly are schemas of real tools.
var gnarly = map[string]string{
	"refs": `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x","type":"object","properties":{
		"from":{"$ref":"#/$defs/place","description":"where it starts"},"tree":{"$ref":"#/$defs/node"}},"required":["from"],
		"$defs":{"place":{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"]},
		"node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`,
	"rootref":  `{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}}`,
	"oneof":    `{"oneOf":[{"type":"object","properties":{"id":{"type":"string"},"how":{"const":"id"}},"required":["id","how"]},{"type":"object","properties":{"name":{"type":"string"},"how":{"const":"name"}},"required":["name","how"]}]}`,
	"allof":    `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"$ref":"#/$defs/more"}],"$defs":{"more":{"properties":{"b":{"type":"integer"}},"required":["b"]}}}`,
	"nullable": `{"type":"object","properties":{"due":{"type":["string","null"],"format":"date"},"size":{"anyOf":[{"type":"integer","exclusiveMinimum":0},{"type":"null"}]},"both":{"type":["string","integer","null"]}}}`,
	"values":   `{"type":"object","properties":{"level":{"type":"integer","enum":[1,2,3]},"mode":{"enum":["a","b",null]},"at":{"type":"string","format":"date-time"},"url":{"type":"string","format":"uri"},"kind":{"const":"x"},"any":true,"what":{}}}`,
	"arrays":   `{"type":"object","properties":{"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]},"tags":{"type":"array","uniqueItems":true},"meta":{"type":"object","additionalProperties":{"type":"string"}}}}`,
	"itself":   `{"allOf":[{"$ref":"#"}],"properties":{"x":{"$ref":"#"},"y":{"allOf":[{"$ref":"#/properties/y"}]}}}`,
	"again": `{"type":"object","properties":{"child":{"allOf":[{"$ref":"#"}]},"node":{"allOf":[{"$ref":"#/$defs/node"},{"allOf":[{"$ref":"#/$defs/node"}],"required":["next"]}]}},
		"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"next":{"allOf":[{"$ref":"#/$defs/node"}]}}}}}`,
	"nothing":  `{"type":"object","properties":{}}`,
	"dangling": `{"type":"object","properties":{"x":{"$ref":"#/$defs/gone"},"y":{"$ref":"https://elsewhere.example/schema"}}}`,
}

// parameters returns the schema that a provider gets for a tool.
func parameters(t *testing.T, provider, schema string) map[string]any {
	t.Helper()
	tool := model.Tool{Name: "t", Parameters: json.RawMessage(schema)}
	body, err := sent(t, provider, model.Request{Messages: ask("hi"), Tools: []model.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	if string(tool.Parameters) != schema {
		t.Fatal("the tool's own schema was changed")
	}
	var found map[string]any
	var b any
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	walk(b, func(o map[string]any) {
		for _, k := range []string{"input_schema", "parameters"} {
			if s, ok := o[k].(map[string]any); ok && o["name"] == "t" {
				found = s
			}
		}
	})
	return found
}

// TestSchemasFit checks that each provider accepts the schemas it gets.
func TestSchemasFit(t *testing.T) {
	for provider := range adapters {
		for name, schema := range gnarly {
			t.Run(provider+"/"+name, func(t *testing.T) {
				s := parameters(t, provider, schema)
				if provider == "gemini" {
					if s != nil {
						checkGemini(t, s, "")
					} else if name != "nothing" && name != "itself" {
						t.Error("no parameters were sent")
					}
					return
				}
				if _, ok := s["properties"].(map[string]any); s["type"] != "object" || !ok {
					t.Errorf("the root is no object: %v", s)
				}
				if list, ok := s["required"]; ok && list == nil {
					t.Errorf("what is required is no list: %v", s)
				}
				for _, k := range []string{"oneOf", "anyOf", "allOf", "$ref", "$schema", "$id"} {
					if s[k] != nil {
						t.Errorf("%s is at the root: %v", k, s)
					}
				}
			})
		}
	}
}

// checkGemini checks that a schema uses only the keywords of the Gemini API.
func checkGemini(t *testing.T, s map[string]any, at string) {
	t.Helper()
	words := []string{"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems",
		"properties", "required", "minProperties", "maxProperties",
		"minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum",
		"maximum"}
	for k := range s {
		if !slices.Contains(words, k) {
			t.Errorf("%s: %s is not known there", at, k)
		}
	}
	kind, _ := s["type"].(string)
	if !slices.Contains([]string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}, kind) &&
		s["anyOf"] == nil {
		t.Errorf("%s: type %v", at, s["type"])
	}
	if s["enum"] != nil && kind != "STRING" {
		t.Errorf("%s: enum of %s", at, kind)
	}
	if f := s["format"]; f != nil && !slices.Contains([]any{"date-time", "enum", "int32", "int64", "float", "double"},
		f) {
		t.Errorf("%s: format %v", at, f)
	}
	props, _ := s["properties"].(map[string]any)
	if req, ok := s["required"].([]any); ok {
		for _, r := range req {
			if props[r.(string)] == nil {
				t.Errorf("%s: %v is required and not there", at, r)
			}
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		checkGemini(t, items, at+"/items")
	} else if kind == "ARRAY" {
		t.Errorf("%s: an array without items", at)
	}
	for name, p := range props {
		checkGemini(t, p.(map[string]any), at+"/"+name)
	}
	if list, ok := s["anyOf"].([]any); ok {
		for i, p := range list {
			checkGemini(t, p.(map[string]any), fmt.Sprint(at, "/anyOf/", i))
		}
	}
}

// TestSchemasKeepTheirMeaning checks that the conversion keeps the supported constraints.
func TestSchemasKeepTheirMeaning(t *testing.T) {
	for _, c := range []struct{ provider, schema, want string }{
		{"gemini", "refs", `"from":{"description":"where it starts","properties":{"lat":{"type":"NUMBER"},"lon":{"type":"NUMBER"}},"required":["lat","lon"],"type":"OBJECT"}`},
		{"gemini", "refs", `"items":{"description":"Recursive: node.","type":"OBJECT"}`},
		{"gemini", "again", `"node":{"properties":{"name":{"type":"STRING"},"next":{"description":"Recursive: node.","type":"OBJECT"}},"required":["next"],"type":"OBJECT"}`},
		{"gemini", "rootref", `{"properties":{"x":{"type":"INTEGER"}},"required":["x"],"type":"OBJECT"}`},
		{"gemini", "oneof", `"required":["how"]`},
		{"gemini", "allof", `{"properties":{"a":{"type":"STRING"},"b":{"type":"INTEGER"}},"required":["a","b"],"type":"OBJECT"}`},
		{"gemini", "nullable", `"due":{"description":"Format: date.","nullable":true,"type":"STRING"}`},
		{"gemini", "nullable", `"size":{"description":"More than 0.","nullable":true,"type":"INTEGER"}`},
		{"gemini", "nullable", `"both":{"anyOf":[{"type":"INTEGER"},{"type":"STRING"}],"nullable":true}`},
		{"gemini", "values", `"level":{"description":"One of 1, 2, 3.","type":"INTEGER"}`},
		{"gemini", "values", `"mode":{"enum":["a","b"],"nullable":true,"type":"STRING"}`},
		{"gemini", "values", `"at":{"format":"date-time","type":"STRING"}`},
		{"gemini", "arrays", `"meta":{"description":"Additional properties of type string are allowed.","type":"OBJECT"}`},
		{"anthropic", "refs", `"$defs":{`},
		{"anthropic", "oneof", `"required":["how"]`},
		{"anthropic", "oneof", `"how":{"anyOf":[{"const":"id"},{"const":"name"}]}`},
		{"openai_chat", "allof", `"required":["a","b"]`},
		{"ollama", "rootref", `"required":["x"]`},
	} {
		raw, err := json.Marshal(parameters(t, c.provider, gnarly[c.schema]))
		if err != nil || !strings.Contains(string(raw), c.want) {
			t.Errorf("%s, %s: got %s, %v\nwant %s", c.provider, c.schema, raw, err, c.want)
		}
	}
}

// TestStrict checks that strict mode is used exactly for the schemas that it accepts.
func TestStrict(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                        true,
		`{"type":"object","properties":{"a":{"type":["string","null"],"format":"date"}},"required":["a"],"additionalProperties":false}`:                               true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"required":["a"],"additionalProperties":false,"$defs":{"d":{"type":"integer"}}}`:                    true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                                           false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                     false,
		`{"type":"object","properties":{"a":{"type":"string","format":"uri"}},"required":["a"],"additionalProperties":false}`:                                         false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`:                                          false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                                        false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{},"required":[]}}},"required":["a"],"additionalProperties":false}`: false,
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`:                                                                       false,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"not":{"type":"string"}}]}},"required":["a"],"additionalProperties":false}`:                  false,
	} {
		body, err := sent(t, "openai_responses",
			model.Request{Messages: ask("hi"), Tools: []model.Tool{{Name: "t", Parameters: json.RawMessage(schema)}}})
		if err != nil || !strings.Contains(body, fmt.Sprintf(`"strict":%v`, want)) {
			t.Errorf("%s: sent %s, %v; want strict %v", schema, body, err, want)
		}
	}
}

// TestBadSchema checks that the error is typed and names the tool.
func TestBadSchema(t *testing.T) {
	for provider := range adapters {
		for _, schema := range []string{`[]`, `true`, `{"type":`, `null`} {
			_, err := sent(t, provider,
				model.Request{Messages: ask("hi"),
					Tools: []model.Tool{{Name: "odd", Parameters: json.RawMessage(schema)}}})
			if reeve.CodeOf(err) != reeve.Unsupported || !strings.Contains(err.Error(), "odd") {
				t.Errorf("%s, %s: %v", provider, schema, err)
			}
		}
	}
}

// TestSchemasThatSwell checks that a small schema that expands to a large one fails quickly, and that the error names
// the tool.
func TestSchemasThatSwell(t *testing.T) {
	levels := func(root, each, ref string) string { // each of twelve definitions refers to the next one eight times
		var defs []string
		for i := range 12 {
			var refs []string
			for j := range 8 {
				refs = append(refs, strings.NewReplacer("NAME", fmt.Sprint("p", j), "NEXT",
					fmt.Sprint("#/$defs/d", i+1)).Replace(ref))
			}
			defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, fmt.Sprintf(each, strings.Join(refs, ","))))
		}
		return fmt.Sprintf(`{"type":"object",%s,"$defs":{%s,"d12":{"type":"object","properties":{"x":{"type":"string"}}}}}`, root, strings.Join(defs, ","))
	}
	long := strings.Repeat(`{"$ref":"#/$defs/d"},`, 500) + `{}`
	for name, c := range map[string]struct{ schema, only string }{
		"alternatives": {schema: levels(`"anyOf":[{"$ref":"#/$defs/d0"}]`, `{"anyOf":[%s]}`, `{"$ref":"NEXT"}`)},
		"all of them":  {schema: levels(`"allOf":[{"$ref":"#/$defs/d0"}]`, `{"allOf":[%s]}`, `{"$ref":"NEXT"}`)},
		"large": {schema: `{"type":"object","oneOf":[` + long + `],"$defs":{"d":{"description":"` +
			strings.Repeat("x", 1000) + `"}}}`},
		"properties": {levels(`"properties":{"a":{"$ref":"#/$defs/d0"}}`, `{"type":"object","properties":{%s}}`,
			`"NAME":{"$ref":"NEXT"}`), "gemini"},
		"combined": {levels(`"properties":{"a":{"allOf":[{"$ref":"#/$defs/d0"}]}}`,
			`{"type":"object","properties":{%s}}`, `"NAME":{"allOf":[{"$ref":"NEXT"}]}`), "gemini"},
	} {
		for provider := range adapters {
			_, err := sent(t, provider,
				model.Request{Messages: ask("hi"),
					Tools: []model.Tool{{Name: "wide", Parameters: json.RawMessage(c.schema)}}})
			if c.only != "" && provider != c.only {
				if err != nil {
					t.Errorf("%s, %s: %v", provider, name, err)
				}
				continue
			}
			if reeve.CodeOf(err) != reeve.Unsupported || !strings.Contains(err.Error(), "wide") || reeve.AsError(err).
				Hint == "" {
				t.Errorf("%s, %s: %v", provider, name, err)
			}
		}
	}
}

// TestNames checks that providers get valid and unique names, and that calls map back to the tools.
func TestNames(t *testing.T) {
	legal := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.OneOf(rapid.StringN(1, 80, -1),
			rapid.SampledFrom([]string{"a.b", "a_b", "a/b", "9", strings.Repeat("x", 70), strings.Repeat("x", 71)})), 1,
			8, rapid.ID[string]).Draw(t, "names")
		r := model.Request{Messages: ask("hi")}
		for _, n := range all {
			r.Tools = append(r.Tools, model.Tool{Name: n})
		}
		theirs, ours := model.NamesForTest(r)
		seen := map[string]bool{}
		for _, n := range all {
			as := theirs(n)
			if !legal.MatchString(as) || seen[as] || ours(as) != n {
				t.Fatalf("%q became %q, and that %q", n, as, ours(as))
			}
			seen[as] = true
			if legal.MatchString(n) && as != n {
				t.Fatalf("%q is fine, and became %q", n, as)
			}
		}
	})
}
