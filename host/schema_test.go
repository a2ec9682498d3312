package host_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A tool whose schema refers to another document is refused when it is defined, and says which reference.
func TestI10_ForeignReferencesAreRefused(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	for name, parameters := range map[string]string{
		"relative":  `{"type":"object","properties":{"city":{"$ref":"city.json"}}}`,
		"absolute":  `{"type":"object","properties":{"city":{"$ref":"https://example.com/city.json"}}}`,
		"urn":       `{"type":"object","properties":{"city":{"$dynamicRef":"urn:city"}}}`,
		"rebased":   `{"type":"object","properties":{"city":{"$id":"city.json","$ref":"#/$defs/a","$defs":{"a":{}}}}}`,
		"named so":  `{"$id":"https://example.com/a.json","type":"object","properties":{"city":{"$ref":"a.json"}}}`,
		"elsewhere": `{"type":"object","properties":{"city":{"$ref":"#/x/y"}},"x":{"y":{"$ref":"city.json"}}}`,
	} {
		spec := kit.Object{"id": "weather", "description": "The weather.", "effect": "read", "tier": "read_only",
			"parameters": json.RawMessage(parameters),
			"spec":       kit.Object{"method": "GET", "url": "https://example.com/weather"}}
		r := h.Do("POST", "/api/tools", spec)
		if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "leads outside the schema") ||
			!strings.Contains(string(r.Body), "/parameters") {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
		built := kit.Tool("weather", reeve.Read, nil)
		built.Parameters = json.RawMessage(parameters)
		built.Handler = func(context.Context, *reeve.Invocation) (any, error) { return "", nil }
		server, err := host.New(t.Context(), host.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.AddTool(built); err == nil || !strings.Contains(err.Error(), "leads outside the schema") {
			t.Errorf("%s: %v", name, err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Whole numbers beyond 2^53 are bounds and arguments like others: nothing is rounded.
func TestI10_WideIntegersAreExact(t *testing.T) {
	t.Parallel()
	var got string
	wide := kit.Tool("wide", reeve.Read, nil)
	wide.Parameters = json.RawMessage(`{"type":"object","properties":{"n":
		{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}}}`)
	wide.Handler = func(_ context.Context, inv *reeve.Invocation) (any, error) {
		got = string(inv.Args)
		return json.RawMessage(inv.Args), nil
	}
	h := reevetest.Start(t, wide)
	agent := h.Agent("a", "wide").ID
	for _, n := range []string{"9007199254740993", "9223372036854775807", "-9223372036854775808"} {
		if res := h.Call(agent, "wide", json.RawMessage(`{"n":`+n+`}`)); res.IsError || got != `{"n":`+n+`}` ||
			res.Content != got {
			t.Errorf("%s: got %s, %+v", n, got, res)
		}
	}
	r := h.Do("POST", "/api/agents/"+agent+"/calls",
		kit.Object{"tool": "wide", "args": json.RawMessage(`{"n":9223372036854775808}`)})
	if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "at most 9223372036854775807") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	spec := kit.Object{"id": "far", "description": "Far.", "effect": "read", "tier": "read_only",
		"parameters": wide.Parameters,
		"spec":       kit.Object{"method": "GET", "url": "https://example.com/weather?n={n}"}}
	if r := h.Want(http.StatusCreated, nil, "POST", "/api/tools", spec); !strings.Contains(string(r.Body),
		`"maximum":9223372036854775807`) {
		t.Errorf("%s", r.Body)
	}
}
