package api

import (
	"encoding/json"

	"reeve"
)

// ToolView is a tool in a response. ParametersSchema has the same schema as Parameters, for clients that expect text.
type ToolView struct {
	reeve.Tool
	ParametersSchema string          `json:"parameters_schema" doc:"JSON Schema of the arguments as text"`
	Config           json.RawMessage `json:"config,omitempty" doc:"The agent's settings, in lists of an agent's tools"`
}

// ToolList is a list of tools.
type ToolList struct {
	Tools []ToolView `json:"tools"`
}

// ToolRequest describes a user-defined tool.
type ToolRequest struct {
	ID           string          `json:"id" doc:"Name that callers use" minLength:"1" maxLength:"128"`
	Kind         reeve.ToolKind  `json:"kind,omitempty" enum:"http,script,mcp" doc:"mcp is not supported yet" default:"http"`
	Name         string          `json:"name,omitempty" maxLength:"200" doc:"Name shown to people"`
	Description  string          `json:"description" minLength:"1" maxLength:"8000" doc:"Description for models"`
	Parameters   json.RawMessage `json:"parameters" doc:"JSON Schema of the arguments"`
	ConfigSchema json.RawMessage `json:"config_schema,omitempty" doc:"JSON Schema of the settings per agent"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty" doc:"JSON Schema of the result, which is checked"`
	Category     string          `json:"category,omitempty" maxLength:"64"`
	Tier         reeve.Tier      `json:"tier,omitempty" enum:"read_only,side_effecting,privileged"`
	Effect       reeve.Effect    `json:"effect,omitempty" enum:"read,keyed,verifiable,unsafe,local" doc:"Default: unsafe"`
	Capability   string          `json:"capability,omitempty" maxLength:"64"`
	Risk         reeve.Risk      `json:"risk,omitempty" enum:"low,medium,high"`
	TimeoutMS    int64           `json:"timeout_ms,omitempty" minimum:"0" maximum:"3600000"`
	Retry        reeve.Retry     `json:"retry,omitzero" required:"false"`
	Identity     []string        `json:"identity,omitempty"`
	Async        bool            `json:"async,omitempty" doc:"Callers do not wait; the result is delivered later"`
	Cost         reeve.Amount    `json:"cost,omitzero" required:"false"`
	Spec         json.RawMessage `json:"spec" doc:"Implementation; see docs/http-tools.md"`
}

// Tool returns the requested tool for a workspace.
func (r ToolRequest) Tool(workspace string) reeve.Tool {
	if r.Kind == "" {
		r.Kind = reeve.HTTPTool
	}
	return reeve.Tool{ID: r.ID, WorkspaceID: workspace, Kind: r.Kind, Name: r.Name, Description: r.Description,
		Parameters: r.Parameters, ConfigSchema: r.ConfigSchema, OutputSchema: r.OutputSchema,
		Category: r.Category, Tier: r.Tier, Effect: r.Effect, Capability: r.Capability, Risk: r.Risk,
		TimeoutMS: r.TimeoutMS, Retry: r.Retry,
		Identity: r.Identity, Async: r.Async, Cost: r.Cost, Spec: r.Spec}
}

// ToolExport is a list of tools in the format of another program.
type ToolExport struct {
	Format string `json:"format"`
	Tools  []any  `json:"tools" doc:"What the program takes as its list of tools"`
	// Names lets a program find the tool of a call by the name that the format required.
	Names map[string]string `json:"names" doc:"Tool ids by exported name, for the names that differ"`
	Notes []ToolExportNote  `json:"notes" doc:"What the format cannot express"`
}

// ToolExportNote is a part of a tool that a format cannot express.
type ToolExportNote struct {
	Tool string `json:"tool"`
	Path string `json:"path,omitempty" doc:"Place in the parameters, as a JSON pointer"`
	Text string `json:"text"`
}

// AttachRequest attaches a tool to an agent.
type AttachRequest struct {
	ToolID string          `json:"tool_id" minLength:"1" maxLength:"128"`
	Config json.RawMessage `json:"config,omitempty" doc:"Settings of the agent for the tool"`
}
