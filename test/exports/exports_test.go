// Package exports_test gives exported tools to the libraries of their consumers. It needs npm and node.
package exports_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

var formats = []string{"openai", "openai-responses", "anthropic", "gemini", "mcp", "langchain"}

// oddTools are tools whose names or schemas some formats cannot express.
func oddTools() []reeve.Tool {
	tool := func(id, schema string) reeve.Tool {
		t := kit.Tool(id, reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) { return nil, nil })
		t.Parameters = json.RawMessage(schema)
		return t
	}
	long := "a" + strings.Repeat("very_long_", 9)
	return []reeve.Tool{
		tool("mail.send", `{"type":"object","properties":{"to":{"type":"string","format":"email"}},"required":["to"]}`),
		tool("mail_send", `{"type":"object"}`),
		tool(long+"one", `{"type":"object","properties":{"n":{"enum":[1,2]}}}`),
		tool(long+"two", `{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],
			"properties":{"a":{"type":["string","null"]},"b":{"oneOf":[{"type":"integer"},{"const":"all"}]}}}`),
		tool("odd", `{"type":"object","additionalProperties":false,"$defs":{"node":{"type":"object",
			"properties":{"next":{"$ref":"#/$defs/node"}}}},"properties":{"n":{"type":"integer","exclusiveMinimum":0},
			"any":{},"list":{"type":"array","items":{"type":["string","number"]}},"tree":{"$ref":"#/$defs/node"},
			"map":{"type":"object","additionalProperties":{"type":"string"}},"const":{"const":"x"},
			"yes":true,"pair":{"type":"array","prefixItems":[{"type":"string"}]}}}`),
	}
}

// Every format is accepted by the library of its consumer, for all built-in tools and for odd ones.
func TestI21_M13_EachConsumerAcceptsTheExport(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed; the consumers' libraries need it (Debian: apt install npm)", program)
		}
	}
	if _, err := os.Stat("clients/node_modules/.package-lock.json"); err != nil {
		install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = "clients"
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("npm ci: %v\n%s", err, out)
		}
	}
	h := reevetest.StartWith(t, kit.FastConfig(t), oddTools()...)
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var raw json.RawMessage
			h.Want(200, &raw, "GET", "/api/tools/export?format="+format, nil)
			file := filepath.Join(t.TempDir(), format+".json")
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			check := exec.CommandContext(t.Context(), "node", "check.mjs", format, path)
			check.Dir = "clients"
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Names that a format cannot express are mapped, differently for each tool, and the map is part of the export.
func TestI21_NamesAreMapped(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t), oddTools()...)
	for _, format := range formats {
		var x api.ToolExport
		h.Want(200, &x, "GET", "/api/tools/export?format="+format, nil)
		ids := map[string]bool{}
		for name, id := range x.Names {
			if name == id || ids[id] || len(name) > 64 {
				t.Errorf("%s: %s stands for %s", format, name, id)
			}
			ids[id] = true
		}
		want := 3 // mail.send and mail_send have one name, and two names are too long
		if format == "mcp" {
			want = 0
		}
		kit.Equal(t, len(x.Names), want, format+": names that changed")
		if format == "gemini" && len(x.Notes) == 0 {
			t.Error("nothing is said of what Gemini cannot express")
		}
	}
	h.Want(201, nil, "POST", "/api/agents", kit.Call{"name": "bot"})
	h.Want(201, nil, "POST", "/api/agents/bot/tools", kit.Call{"tool_id": "mail.send"})
	var x api.ToolExport
	h.Want(200, &x, "GET", "/api/tools/export?format=openai&agent=bot", nil)
	kit.Equal(t, len(x.Tools), 1, "the tools of an agent")
	kit.Equal(t, x.Names["mail_send"], "mail.send", "the name of the only tool")
	h.Want(404, nil, "GET", "/api/tools/export?format=openai&agent=nobody", nil)
	h.Want(400, nil, "GET", "/api/tools/export?format=other", nil)
}
