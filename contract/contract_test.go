package contract_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"reeve"
	"reeve/host"
	"reeve/internal/canonjson"
	"reeve/reevetest"
)

var update = flag.Bool("update", false, "write the contract files anew")

const toolsHead = `# Every built-in tool, as the running catalogue has it. Its schema is tools.schema.json.
# A test compares the two in every field; go test ./contract -update writes this file.
`

// fields are the fields of a tool in reading order.
var fields = []string{"id", "name", "version", "kind", "handler_key", "description", "category", "pack", "tier",
	"effect", "capability", "risk",
	"timeout_ms", "retry", "identity", "previews", "cost", "parameters", "config_schema", "output_schema"}

// running are the fields that differ between installations and are not part of the contract.
var running = []string{"created_at", "parameters_schema"}

// catalogue returns the tools of a new server, by id and field.
func catalogue(t *testing.T) map[string]map[string]any {
	t.Helper()
	var list struct {
		Tools []map[string]any `json:"tools"`
	}
	reevetest.Start(t).Want(200, &list, "GET", "/api/tools", nil)
	out := map[string]map[string]any{}
	for _, tool := range list.Tools {
		for _, f := range running {
			delete(tool, f)
		}
		out[tool["id"].(string)] = tool
	}
	return out
}

// render returns the catalogue as YAML in a fixed order.
func render(t *testing.T, tools map[string]map[string]any) []byte {
	t.Helper()
	var list []yaml.MapSlice
	for _, id := range sorted(tools) {
		var row yaml.MapSlice
		for _, f := range fields {
			if v, ok := tools[id][f]; ok {
				row = append(row, yaml.MapItem{Key: f, Value: ordered(v)})
			}
		}
		list = append(list, row)
	}
	b, err := yaml.MarshalWithOptions(yaml.MapSlice{{Key: "tools", Value: list}}, yaml.IndentSequence(true),
		yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(toolsHead), b...)
}

// ordered sorts the keys of objects and converts whole numbers to integers.
func ordered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		var out yaml.MapSlice
		for _, k := range sorted(v) {
			out = append(out, yaml.MapItem{Key: k, Value: ordered(v[k])})
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = ordered(v[i])
		}
		return out
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func compileSchema(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	s, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readYAML(t *testing.T, text []byte) any {
	t.Helper()
	b, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestG24_ContractAndCatalogueAgree(t *testing.T) {
	have := catalogue(t)
	if *update {
		if err := os.WriteFile("tools.yaml", render(t, have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := read(t, "tools.yaml")
	said := map[string]map[string]any{}
	for _, row := range readYAML(t, text).(map[string]any)["tools"].([]any) {
		tool := row.(map[string]any)
		id := tool["id"].(string)
		if said[id] != nil {
			t.Errorf("tools.yaml has %s twice", id)
		}
		said[id] = tool
	}
	for _, id := range sorted(said) {
		if have[id] == nil {
			t.Errorf("tools.yaml has %s, which is not in the catalogue", id)
		}
	}
	for _, id := range sorted(have) {
		if said[id] == nil {
			t.Errorf("tool %s is missing in tools.yaml; run go test ./contract -update", id)
			continue
		}
		for f := range have[id] {
			if !slices.Contains(fields, f) {
				t.Errorf("%s: unknown field %s", id, f)
			}
		}
		for _, f := range fields {
			if a, b := canonical(t, said[id][f]), canonical(t, have[id][f]); a != b {
				t.Errorf("%s.%s: tools.yaml has %s, the catalogue %s", id, f, a, b)
			}
		}
	}
	if string(render(t, have)) != string(text) {
		t.Error("tools.yaml is not formatted as -update formats it")
	}
}

func TestG24_ContractFitsItsSchema(t *testing.T) {
	schema := compileSchema(t, "tools.schema.json")
	if err := schema.Validate(readYAML(t, read(t, "tools.yaml"))); err != nil {
		t.Errorf("tools.yaml: %v", err)
	}
	good := string(read(t, "tools.yaml"))
	for name, change := range map[string]func(string) string{ // the schema must reject these
		"an effect nobody knows": func(s string) string {
			return strings.Replace(s, "effect: read", "effect: magic", 1)
		},
		"a reader that changes": func(s string) string {
			return strings.Replace(s, "effect: read", "effect: unsafe", 1)
		},
		"a missing timeout":     func(s string) string { return strings.Replace(s, "timeout_ms: ", "time: ", 1) },
		"a schema that is none": func(s string) string { return strings.Replace(s, "type: string", "type: text", 1) },
		"no tools":              func(string) string { return "tools: []" },
	} {
		if bad := change(good); bad == good || schema.Validate(readYAML(t, []byte(bad))) == nil {
			t.Errorf("%s passed the schema", name)
		}
	}
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = canonjson.Canonical(b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// configSchema returns the schema of reeve.yaml, generated from host.Config.
func configSchema(t *testing.T) []byte {
	t.Helper()
	inferred, err := reeve.SchemaFor[host.Config]()
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(inferred, &s); err != nil {
		t.Fatal(err)
	}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "reeve.yaml"
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

func TestConfigSchemaMatchesConfig(t *testing.T) {
	want := configSchema(t)
	if *update {
		if err := os.WriteFile("config.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(read(t, "config.schema.json")) != string(want) {
		t.Error("config.schema.json differs from host.Config; run go test ./contract -update")
	}
}

// TestConfigSchemaAndServerAgree checks that the schema and the server accept and reject the same configs.
func TestConfigSchemaAndServerAgree(t *testing.T) {
	schema := compileSchema(t, "config.schema.json")
	for _, c := range []struct {
		text string
		good bool
	}{
		{"dir: data\nlisten: 127.0.0.1:0\nhosts: [a.example]\norigins: [https://a.example]\nhttp_allow: [10.0.0.0/8]\n",
			true},
		{"output_cap: 2048\napproval_ttl: 24h\nretry_first: 1s\nretry_max: 1m\nretry_attempts: 3\nrate: 1.5\nburst: " +
			"7\nlog_level: warn\n", true},
		{"secret_key: " + strings.Repeat("ab", 32) + "\n", true},
		{"database: postgres://localhost/reeve\n", true},
		{"colour: blue\n", false},
		{"Dir: data\n", false},
		{"dir: [a, b]\n", false},
		{"output_cap: many\n", false},
		{"output_cap: 12\n", false},
		{"output_cap: 2000000\n", false},
		{"retry_attempts: 101\n", false},
		{"rate: -1\n", false},
		{"burst: -1\n", false},
		{"log_level: loud\n", false},
		{"hosts: a.example\n", false},
		{"on_fault: {}\n", false},
	} {
		if err := schema.Validate(readYAML(t, []byte(c.text))); (err == nil) != c.good {
			t.Errorf("the schema on %q: %v", c.text, err)
		}
		if err := load(t, c.text); (err == nil) != c.good {
			t.Errorf("the server on %q: %v", c.text, err)
		}
	}
}

// load opens a host with a config.
func load(t *testing.T, text string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "reeve.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := host.LoadConfig(file)
	if err != nil {
		return err
	}
	cfg.Dir, cfg.LogTo = t.TempDir(), t.Output()
	cfg.Database = "" // do not connect; the schema checks the form of the URL
	h, err := host.New(t.Context(), cfg)
	if err == nil {
		err = h.Close()
	}
	return err
}
