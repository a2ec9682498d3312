// Package toolexport converts tools to the formats of model providers and agent frameworks.
package toolexport

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reeve"
	"reeve/api"
)

// format describes the format of one consumer.
type format struct {
	illegal *regexp.Regexp // characters that names must not have
	maxName int
	// topLevel reports whether the schema of the arguments may have keywords such as anyOf at its root
	topLevel bool
	render   func(x *exporter, t reeve.Tool, name string, parameters object) any
}

type object = map[string]any

// checkedLater is the end of each note about a keyword that was left out.
const checkedLater = "Reeve checks it when the tool is called"

var (
	notInNames    = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	notInMCPNames = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)
)

var formats = map[string]format{
	"openai":           {notInNames, 64, false, renderOpenAI},
	"openai-responses": {notInNames, 64, false, renderResponses},
	"anthropic":        {notInNames, 64, false, renderAnthropic},
	"gemini":           {notInNames, 64, true, renderGemini},
	"mcp":              {notInMCPNames, 128, true, renderMCP},
	"langchain":        {notInNames, 64, false, renderLangChain},
}

// Formats lists the formats.
func Formats() []string {
	return []string{"openai", "openai-responses", "anthropic", "gemini", "mcp", "langchain"}
}

// exporter collects the names and notes of one export.
type exporter struct {
	api.ToolExport
	taken map[string]bool
}

// New exports tools in a format. It leaves out the tools that cannot be called.
func New(name string, tools []reeve.Tool) (api.ToolExport, error) {
	f, ok := formats[name]
	if !ok {
		return api.ToolExport{}, reeve.InvalidField("/format", "is not a format", strings.Join(Formats(), ", "))
	}
	x := &exporter{api.ToolExport{Format: name, Tools: []any{}, Names: map[string]string{},
		Notes: []api.ToolExportNote{}}, map[string]bool{}}
	for _, t := range tools { // reserves the ids that are legal names, so that they stay unchanged
		x.taken[t.ID] = len(t.ID) <= f.maxName && !f.illegal.MatchString(t.ID)
	}
	for _, t := range tools {
		if t.Broken != "" {
			x.note(t, "", "left out, because it cannot be called: "+t.Broken)
			continue
		}
		var parameters object
		if err := json.Unmarshal(t.Parameters, &parameters); err != nil || parameters == nil {
			x.note(t, "", "left out, because its parameters are not a JSON Schema of an object")
			continue
		}
		x.Tools = append(x.Tools, f.render(x, t, x.nameFor(t, f), x.prepare(t, f, parameters)))
	}
	if name == "gemini" && len(x.Tools) > 0 {
		x.Tools = []any{object{"functionDeclarations": x.Tools}}
	}
	return x.ToolExport, nil
}

func (x *exporter) note(t reeve.Tool, path, text string) {
	x.Notes = append(x.Notes, api.ToolExportNote{Tool: t.ID, Path: path, Text: text})
}

// nameFor returns the name of a tool in a format and records it if it is not the tool's id.
func (x *exporter) nameFor(t reeve.Tool, f format) string {
	name := f.illegal.ReplaceAllString(t.ID, "_")
	if len(name) > f.maxName || name != t.ID && x.taken[name] {
		hash := "_" + reeve.Hash([]byte(t.ID))[:8]
		name = name[:min(len(name), f.maxName-len(hash))] + hash
	}
	x.taken[name] = true
	if name != t.ID {
		x.Names[name] = t.ID
	}
	return name
}

// prepare turns the schema of the arguments into the schema of an object with properties.
func (x *exporter) prepare(t reeve.Tool, f format, s object) object {
	s["type"] = "object"
	properties, ok := s["properties"].(object)
	if !ok {
		properties = object{}
		s["properties"] = properties
	}
	for name, p := range properties { // some libraries do not accept the schemas true and false
		switch p {
		case true:
			properties[name] = object{}
		case false:
			properties[name] = object{"not": object{}}
		}
	}
	if f.topLevel {
		return s
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "if", "then", "else"} {
		if _, ok := s[key]; ok {
			delete(s, key)
			x.note(t, "/"+key, key+" is not allowed at the root and was left out; "+checkedLater)
		}
	}
	return s
}

func renderOpenAI(_ *exporter, t reeve.Tool, name string, parameters object) any {
	return object{"type": "function",
		"function": object{"name": name, "description": t.Description, "parameters": parameters}}
}

func renderResponses(_ *exporter, t reeve.Tool, name string, parameters object) any {
	return object{"type": "function", "name": name, "description": t.Description, "parameters": parameters,
		"strict": false}
}

func renderAnthropic(_ *exporter, t reeve.Tool, name string, parameters object) any {
	return object{"name": name, "description": t.Description, "input_schema": parameters}
}

func renderLangChain(_ *exporter, t reeve.Tool, name string, parameters object) any {
	return object{"name": name, "description": t.Description, "schema": parameters}
}

func renderMCP(x *exporter, t reeve.Tool, name string, parameters object) any {
	changes := t.Effect.Mutates()
	out := object{"name": name, "title": cmp.Or(t.Name, t.ID), "description": t.Description, "inputSchema": parameters,
		"annotations": object{"title": cmp.Or(t.Name, t.ID), "readOnlyHint": !changes,
			"destructiveHint": changes && t.Risk != reeve.LowRisk, "idempotentHint": !changes,
			"openWorldHint": t.Effect.IsExternal()}}
	var result object
	if len(t.OutputSchema) > 0 && json.Unmarshal(t.OutputSchema, &result) == nil {
		if result["type"] == "object" {
			out["outputSchema"] = result
		} else {
			x.note(t, "", "the output schema was left out, because MCP allows only objects")
		}
	}
	return out
}

func renderGemini(x *exporter, t reeve.Tool, name string, parameters object) any {
	if name[0] >= '0' && name[0] <= '9' || name[0] == '-' {
		old := name
		name = "_" + name
		delete(x.Names, old)
		x.Names[name] = t.ID
	}
	out := object{"name": name, "description": t.Description}
	g := geminiSchema{x: x, tool: t, root: parameters}
	s := g.convert(parameters, "", 0)
	if properties, _ := s["properties"].(object); len(properties) > 0 { // Gemini refuses an object without properties
		out["parameters"] = s
	}
	return out
}

// sortedKeys returns the keys of an object in order.
func sortedKeys(o object) []string {
	var keys []string
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// text renders a value for a note or a description.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
