package httpapi_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentSchema describes the parts of OpenAPI 3.1 that the server's document uses.
const documentSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object", "required": ["openapi", "info", "paths", "components"],
  "properties": {
    "openapi": {"pattern": "^3\\.1\\.\\d+$"},
    "info": {"type": "object", "required": ["title", "version", "description"]},
    "paths": {"type": "object", "minProperties": 20, "propertyNames": {"pattern": "^/api/"},
      "additionalProperties": {"type": "object", "propertyNames": {"enum": ["get", "post", "put", "patch", "delete"]},
        "additionalProperties": {"$ref": "#/$defs/operation"}}},
    "components": {"type": "object", "required": ["schemas", "securitySchemes"], "properties": {
      "schemas": {"type": "object", "additionalProperties": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
      "securitySchemes": {"type": "object", "additionalProperties": {"type": "object", "required": ["type"]}}}},
    "security": {"type": "array", "minItems": 1}
  },
  "$defs": {
    "operation": {"type": "object", "required": ["operationId", "summary", "tags", "responses"],
      "properties": {
      "operationId": {"type": "string", "minLength": 1}, "summary": {"type": "string", "minLength": 1},
      "tags": {"type": "array", "minItems": 1},
      "parameters": {"type": "array", "items": {"$ref": "#/$defs/parameter"}},
      "requestBody": {"type": "object", "required": ["content", "required"],
        "properties": {"content": {"$ref": "#/$defs/content"}}},
      "responses": {"type": "object", "required": ["default"], "minProperties": 2,
        "propertyNames": {"pattern": "^([1-5]\\d\\d|default)$"},
        "additionalProperties": {"type": "object", "required": ["description"],
          "properties": {"content": {"$ref": "#/$defs/content"}}}}}},
    "parameter": {"type": "object", "required": ["name", "in", "schema"],
      "properties": {"in": {"enum": ["path", "query", "header"]},
        "schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
      "if": {"properties": {"in": {"const": "path"}}},
      "then": {"required": ["required"], "properties": {"required": {"const": true}}}},
    "content": {"type": "object", "minProperties": 1,
      "additionalProperties": {"type": "object",
        "properties": {"schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}}
  }
}`

func TestOpenAPI_DocumentIsValid(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t, startServer(t))
	c := jsonschema.NewCompiler()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(documentSchema))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("mem:///shape.json", v); err != nil {
		t.Fatal(err)
	}
	if err := c.MustCompile("mem:///shape.json").Validate(doc.tree); err != nil {
		t.Error(err)
	}
	checkRefs(t, doc, doc.tree)
	var seen []string
	hole := regexp.MustCompile(`\{(\w+)\}`)
	for _, o := range doc.operations() {
		if slices.Contains(seen, o.id) {
			t.Errorf("two operations have the id %s", o.id)
		}
		seen = append(seen, o.id)
		var inPath, named []string
		for _, m := range hole.FindAllStringSubmatch(o.path, -1) {
			named = append(named, m[1])
		}
		headers := map[string]bool{}
		parameters, _ := o.tree["parameters"].([]any)
		for _, p := range parameters {
			p := p.(map[string]any)
			name := p["name"].(string)
			switch p["in"] {
			case "path":
				inPath = append(inPath, name)
			case "header":
				headers[name] = p["required"] == true
			}
		}
		if slices.Sort(inPath); !slices.Equal(inPath, slices.Sorted(slices.Values(named))) {
			t.Errorf("%s: parameters %v, path %s", o.id, inPath, o.path)
		}
		isSession := o.path == "/api/session"                                    // asks for no workspace and has no key
		if headers["X-Workspace-Id"] == (isSession || o.id == "streamChanges") { // which may name it in the query
			t.Errorf("%s: X-Workspace-Id is not documented as required", o.id)
		}
		if _, ok := headers["Idempotency-Key"]; ok != (o.method == "POST" && !isSession) {
			t.Errorf("%s: Idempotency-Key documented: %v", o.id, ok)
		}
		content := o.tree["responses"].(map[string]any)["default"].(map[string]any)["content"].(map[string]any)
		if len(content) != 1 || content["application/problem+json"] == nil {
			t.Errorf("%s: content of errors %v", o.id, content)
		}
	}
	problem := doc.tree["components"].(map[string]any)["schemas"].(map[string]any)["Problem"].(map[string]any)
	for _, f := range []string{"code", "detail", "request_id", "status", "title", "type"} {
		if !slices.Contains(problem["required"].([]any), any(f)) {
			t.Errorf("problem documents do not require %s", f)
		}
	}
	for name := range doc.tree["components"].(map[string]any)["schemas"].(map[string]any) {
		if _, err := doc.compileSchema("components", "schemas", name); err != nil {
			t.Error(name, err)
		}
	}
}

// checkRefs checks that the target of every reference exists.
func checkRefs(t *testing.T, doc *openAPIDoc, v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			checkRefs(t, doc, e)
		}
	case map[string]any:
		if r, ok := v["$ref"].(string); ok {
			name, found := strings.CutPrefix(r, "#/components/schemas/")
			if !found || doc.tree["components"].(map[string]any)["schemas"].(map[string]any)[name] == nil {
				t.Errorf("reference %s has no target", r)
			}
		}
		for _, e := range v {
			checkRefs(t, doc, e)
		}
	}
}

func TestOpenAPI_DocsNeedNoNetwork(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	r := h.Want(200, nil, "GET", "/docs", nil, "Authorization", "", "X-Workspace-Id", "")
	for _, o := range loadOpenAPI(t, h).operations() {
		if !strings.Contains(string(r.Body), o.path) {
			t.Errorf("the page has no %s", o.path)
		}
	}
	if m := regexp.MustCompile(`(src|href)="(https?:)?//`).Find(r.Body); m != nil {
		t.Errorf("the page loads %s", m)
	}
	if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("policy %q", csp)
	}
	for _, p := range []string{"/healthz", "/readyz", "/openapi.json"} {
		h.Want(200, nil, "GET", p, nil, "Authorization", "", "X-Workspace-Id", "")
	}
}
