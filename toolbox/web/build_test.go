package web

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"reeve"
)

// fullSpec uses every field of a spec.
const fullSpec = `{
	"method": "PUT", "url": "https://api.test/v1/users/{id}?n={n}&key=${secret:KEY}",
	"headers": {"Authorization": "Bearer ${secret:KEY}", "X-Literal": "{id}"},
	"query": {"tag": "tags"}, "body": {"/user/id": "id", "ref": "operation_id"}, "body_type": "json",
	"result": "/data/0", "max_response_bytes": 1000,
	"verify": {"method": "GET", "url": "https://api.test/v1/ops/{operation_id}",
		"headers": {"X-Api-Key": "${secret:KEY}"}, "applied": [200, 201], "not_applied": [404, 410]}
}`

func TestI10_BuildsFullSpec(t *testing.T) {
	tool := mustBuild(t, localBuilder(), reeve.Verifiable, fullSpec)
	if tool.Handler == nil || tool.Verify == nil || tool.Check == nil {
		t.Fatal("the handler, verify or check function is missing")
	}
	if b, _ := json.Marshal(tool); strings.Contains(string(b), "s3cr3t") {
		t.Fatal("the tool reveals a secret")
	}
	if tool.Fingerprint() != row(reeve.Verifiable, fullSpec).WithDefaults().Fingerprint() {
		t.Fatal("building changes the fingerprint")
	}
	if _, err := reeve.SchemaFor[Endpoint](); err != nil {
		t.Fatal(err)
	}
}

func TestI10_ReportsInvalidSpecs(t *testing.T) {
	with := func(s string) string { return `{"method":"POST","url":"https://a.test/",` + s + `}` }
	lookup := func(s string) string {
		return with(`"verify":{"url":"https://a.test/{operation_id}"` + s + `}`)
	}
	for _, c := range []struct {
		effect     reeve.Effect
		spec, path string
	}{
		{reeve.Unsafe, ``, "/spec"},
		{reeve.Unsafe, `[]`, "/spec"},
		{reeve.Unsafe, `{"method":"GET","method":"POST"}`, "/spec"},
		{reeve.Unsafe, with(`"nope":1`), "/spec/nope"},
		{reeve.Unsafe, `{"Method":"POST","url":"https://a.test/"}`, "/spec/Method"},
		{reeve.Unsafe, with(`"headers":[]`), "/spec/headers"},
		{reeve.Verifiable, with(`"verify":{"url":1}`), "/spec/verify/url"},
		{reeve.Verifiable, lookup(`,"x":1`), "/spec/verify/x"},
		{reeve.Unsafe, `{"method":"post","url":"https://a.test/"}`, "/spec/method"},
		{reeve.Unsafe, `{"method":"TRACE","url":"https://a.test/"}`, "/spec/method"},
		{reeve.Unsafe, `{"method":"GET","url":"https://{id}/"}`, "/spec/url"},
		{reeve.Unsafe, `{"method":"GET","url":"https://a.test/{nope}"}`, "/spec/url"},
		{reeve.Unsafe, `{"method":"GET","url":"https://a.test/{o}"}`, "/spec/url"},
		{reeve.Unsafe, `{"method":"GET","url":"https://a.test/{tags}"}`, "/spec/url"},
		{reeve.Unsafe, `{"method":"GET","url":"https://a.test/?api_key=abc"}`, "/spec/url"},
		{reeve.Unsafe, with(`"query":{"q":"nope"}`), "/spec/query/q"},
		{reeve.Unsafe, with(`"query":{"q":"o"}`), "/spec/query/q"},
		{reeve.Unsafe, `{"method":"GET","url":"https://a.test/?q=1","query":{"q":"id"}}`, "/spec/query/q"},
		{reeve.Unsafe, with(`"headers":{"Host":"x"}`), "/spec/headers/Host"},
		{reeve.Unsafe, with(`"headers":{"idempotency-key":"x"}`), "/spec/headers/idempotency-key"},
		{reeve.Unsafe, with(`"headers":{"Authorization":"Bearer abc"}`), "/spec/headers/Authorization"},
		{reeve.Unsafe, with(`"headers":{"X-A":"a\r\nX-B: b"}`), "/spec/headers/X-A"},
		{reeve.Unsafe, with(`"headers":{"X A":"a"}`), "/spec/headers/X A"},
		{reeve.Unsafe, with(`"headers":{"X-A":"${secret:"}`), "/spec/headers/X-A"},
		{reeve.Unsafe, with(`"headers":{"X-A":"1","x-a":"2"}`), "/spec/headers/x-a"},
		{reeve.Unsafe, with(`"body":{"a":"nope"}`), "/spec/body/a"},
		{reeve.Unsafe, with(`"body":{"/a/b":"id","a":"n"}`), "/spec/body/a"},
		{reeve.Unsafe, with(`"body":{"/a/~2":"id"}`), "/spec/body/~1a~1~02"},
		{reeve.Unsafe, with(`"body":{"/a/b":"id"},"body_type":"form"`), "/spec/body/~1a~1b"},
		{reeve.Unsafe, with(`"body":{"a":"id"},"body_type":"none"`), "/spec/body"},
		{reeve.Unsafe, with(`"body_type":"xml"`), "/spec/body_type"},
		{reeve.Unsafe, `{"method":"GET","url":"https://a.test/","body":{"a":"id"}}`, "/spec/body"},
		{reeve.Unsafe, with(`"result":"data"`), "/spec/result"},
		{reeve.Unsafe, with(`"max_response_bytes":6000000`), "/spec/max_response_bytes"},
		{reeve.Unsafe, with(`"max_response_bytes":-1`), "/spec/max_response_bytes"},
		{reeve.Read, with(`"body_type":"json"`), "/spec/method"},
		{reeve.Read, `{"method":"DELETE","url":"https://a.test/"}`, "/spec/method"},
		{reeve.Read, `{"method":"PUT","url":"https://a.test/","read":true}`, "/spec/method"},
		{reeve.Read, `{"method":"GET","url":"https://a.test/{operation_id}"}`, "/spec/url"},
		{reeve.Read, `{"method":"GET","url":"https://a.test/","read":true}`, "/spec/read"},
		{reeve.Unsafe, with(`"read":true`), "/spec/read"},
		{reeve.Local, with(`"body_type":"json"`), "/effect"},
		{reeve.Verifiable, with(`"body_type":"json"`), "/spec/verify"},
		{reeve.Keyed, lookup(``), "/spec/verify"},
		{reeve.Verifiable, lookup(`,"method":"POST"`), "/spec/verify/method"},
		{reeve.Verifiable, lookup(`,"applied":[200],"not_applied":[200]`), "/spec/verify/not_applied/0"},
		{reeve.Verifiable, lookup(`,"applied":[99]`), "/spec/verify/applied/0"},
		{reeve.Verifiable, with(`"verify":{"url":"https://a.test/fixed"}`), "/spec/verify/url"},
	} {
		_, err := localBuilder().Build(row(c.effect, c.spec))
		e := wantCode(t, err, reeve.Validation)
		if !slices.ContainsFunc(e.Fields, func(f reeve.Field) bool {
			return f.Path == c.path && f.Message != "" && f.Expected != ""
		}) {
			t.Errorf("%s %s: %+v does not name %s", c.effect, c.spec, e.Fields, c.path)
		}
	}
}

func TestI10_ChecksRow(t *testing.T) {
	good := row(reeve.Keyed, `{"method":"POST","url":"https://a.test/"}`)
	for path, spoil := range map[string]func(*reeve.Tool){
		"/kind":        func(r *reeve.Tool) { r.Kind = reeve.ScriptTool },
		"/description": func(r *reeve.Tool) { r.Description = "" },
		"/parameters":  func(r *reeve.Tool) { r.Parameters = nil },
		"/parameters/properties/operation_id": func(r *reeve.Tool) {
			r.Parameters = json.RawMessage(`{"properties":{"operation_id":{}}}`)
		},
	} {
		tool := good
		spoil(&tool)
		_, err := localBuilder().Build(tool)
		if e := wantCode(t, err, reeve.Validation); e.Fields[0].Path != path {
			t.Errorf("%+v does not name %s", e.Fields, path)
		}
	}
	b := &Builder{}
	_, err := b.Build(row(reeve.Keyed,
		`{"method":"POST","url":"https://a.test/","headers":{"X-Api-Key":"${secret:KEY}"}}`))
	wantCode(t, err, reeve.Validation)
	if tool, err := b.Build(row("", `{"method":"POST","url":"https://a.test/"}`)); err != nil ||
		tool.Effect != reeve.Unsafe || tool.Tier != reeve.Privileged {
		t.Errorf("without an effect class: %v %v %v", tool.Effect, tool.Tier, err)
	}
}

// TestI10_DefineRefusesUnusedParameters checks that Define refuses a parameter that the spec does not use. Build
// accepts it.
func TestI10_DefineRefusesUnusedParameters(t *testing.T) {
	for _, c := range []struct{ spec, unused string }{
		{`{"method":"GET","url":"https://a.test/{id}"}`, "n q"},
		{`{"method":"GET","url":"https://a.test/{id}","query":{"n":"n"}}`, "q"},
		{`{"method":"GET","url":"https://a.test/{id}?q={q}","query":{"n":"n"}}`, ""},
		{`{"method":"POST","url":"https://a.test/{id}"}`, ""},
		{`{"method":"POST","url":"https://a.test/{id}","body_type":"none"}`, "n q"},
		{`{"method":"POST","url":"https://a.test/{id}","body":{"a":"q"}}`, ""},
		{`{"method":"POST","url":"https://a.test/{id}","body":{"a":"n"},"reads":{"q":["list"]}}`, ""},
		{`{"method":"POST","url":"https://a.test/{id}","body":{"a":"n"},
			"verify":{"url":"https://a.test/{q}","applied":[200]}}`, ""},
		{`{"method":"DELETE","url":"https://a.test/","body_type":"none",
			"verify":{"url":"https://a.test/{operation_id}/{id}/{n}/{q}"}} `, ""},
	} {
		tool := row(reeve.Unsafe, c.spec)
		if strings.Contains(c.spec, "verify") {
			tool.Effect = reeve.Verifiable
		}
		tool.Parameters = json.RawMessage(
			`{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"},"q":{"type":"string"}}}`)
		if _, err := localBuilder().Build(tool); err != nil {
			t.Errorf("build %s: %v", c.spec, err)
		}
		var names []string
		if err := localBuilder().Define(tool); err != nil {
			for _, f := range wantCode(t, err, reeve.Validation).Fields {
				names = append(names, strings.TrimPrefix(f.Path, "/parameters/properties/"))
			}
		}
		if got := strings.Join(names, " "); got != c.unused {
			t.Errorf("%s: unused %q, want %q", c.spec, got, c.unused)
		}
	}
}

// TestI10_FindsUnusedParametersInAllKeywords checks that any keyword of a schema can define a parameter.
func TestI10_FindsUnusedParametersInAllKeywords(t *testing.T) {
	// keywords follow the properties of a schema that has the one used parameter id.
	for _, c := range []struct{ keywords, unused string }{
		{`,"required":["id"]}`, ""},
		{`,"required":["id","zz"]}`, "/parameters/required/1"},
		{`,"allOf":[{"properties":{"zz":{}},"required":["zz"]}]}`, "/parameters/allOf/0/properties/zz"},
		{`,"allOf":[{"anyOf":[{"required":["id"]},{"required":["zz"]}]}]}`, "/parameters/allOf/0/anyOf/1/required/0"},
		{`,"oneOf":[true,{"properties":{"zz":{}}}]}`, "/parameters/oneOf/1/properties/zz"},
		{`,"if":{"required":["id"]},"then":{"required":["zz"]},"else":{"properties":{"id":{"minLength":1}}}}`,
			"/parameters/then/required/0"},
		{`,"patternProperties":{"^z":{}}}`, "/parameters/patternProperties/^z"},
		{`,"$ref":"#/$defs/a%20b~1c","$defs":{"a b/c":{"properties":{"zz":{}}}}}`,
			"/parameters/$defs/a b~1c/properties/zz"},
		{`,"allOf":[{"$ref":"#/$defs/a/0"}],"$defs":{"a":[{"required":["zz"],"$ref":"#"}]}}`,
			"/parameters/$defs/a/0/required/0"},
		{`,"allOf":[{"$ref":"#a"}],"$defs":{"a":{"$anchor":"a","properties":{"id":{"maxLength":9}}}}}`,
			"/parameters/allOf/0/$ref"},
		{`,"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"properties":{"id":{}}},"b":{"properties":{"zz":{}}}}}`, ""},
		{`,"dependentRequired":{"id":["zz"]}}`, "/parameters/dependentRequired/id/0"},
		{`,"dependentSchemas":{"id":{"properties":{"zz":{}}}}}`, "/parameters/dependentSchemas/id/properties/zz"},
		{`,"dependentSchemas":{"zz":true}}`, "/parameters/dependentSchemas/zz"},
		{`,"propertyNames":{"enum":["id","zz"]}}`, "/parameters/propertyNames"},
		{`,"propertyNames":{"pattern":"^[a-z]+$"},"dependentRequired":{"id":[]}}`, ""},
		{`,"patternProperties":{"^z":false},"allOf":[{"properties":{"zz":false}}]}`, ""},
	} {
		tool := row(reeve.Read, `{"method":"GET","url":"https://a.test/{id}"}`)
		schema := `{"type":"object","properties":{"id":{"type":"string"}}` + c.keywords
		tool.Parameters = json.RawMessage(schema)
		var at []string
		if err := localBuilder().Define(tool); err != nil {
			for _, f := range wantCode(t, err, reeve.Validation).Fields {
				at = append(at, f.Path)
			}
		}
		if got := strings.Join(at, " "); got != c.unused {
			t.Errorf("%s: unused %q, want %q", schema, got, c.unused)
		}
	}
}

func TestI10_CheckRefusesBeforeAnythingIsSent(t *testing.T) {
	tool := mustBuild(t, localBuilder(), reeve.Keyed,
		`{"method":"DELETE","url":"https://a.test/users/{id}/{operation_id}"}`)
	for args, ok := range map[string]bool{`{"id":"a"}`: true, `{"id":".."}`: false, `{"id":""}`: false, `{}`: false} {
		if err := tool.Check(t.Context(), &reeve.Invocation{Args: json.RawMessage(args)}); (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestI10_ReportsInvalidMethodOnce checks that an invalid method is reported once with every effect.
func TestI10_ReportsInvalidMethodOnce(t *testing.T) {
	for method, want := range map[string]string{"": "method is missing", "HEAD": `method "HEAD" is not supported`,
		"get": `method "get" is not supported`} {
		for _, effect := range []reeve.Effect{reeve.Read, reeve.Unsafe} {
			_, err := localBuilder().Build(row(effect, `{"method":"`+method+`","url":"https://a.test/"}`))
			e := wantCode(t, err, reeve.Validation)
			if len(e.Fields) != 1 || e.Fields[0].Path != "/spec/method" || e.Fields[0].Message != want ||
				!strings.Contains(e.Fields[0].Expected, "GET, POST") {
				t.Errorf("%q of effect %s: %+v", method, effect, e.Fields)
			}
		}
	}
}
