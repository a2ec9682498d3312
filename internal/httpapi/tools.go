package httpapi

import (
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/toolexport"
)

// newToolView returns a tool as the API shows it.
func newToolView(t reeve.Tool, config json.RawMessage) api.ToolView {
	return api.ToolView{Tool: t, ParametersSchema: string(t.Parameters), Config: config}
}

// newAttachedToolView returns a tool with an agent's settings. Missing settings become an empty object. The values of
// settings that the schema marks as writeOnly are not shown.
func newAttachedToolView(t reeve.Tool, config json.RawMessage) api.ToolView {
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	return newToolView(t, hideSettings(t, config))
}

// hideSettings replaces the values of settings that the schema marks as writeOnly.
func hideSettings(t reeve.Tool, config json.RawMessage) json.RawMessage {
	var schema struct {
		Properties map[string]struct {
			WriteOnly bool `json:"writeOnly"`
		} `json:"properties"`
	}
	var given map[string]any
	if json.Unmarshal(t.ConfigSchema, &schema) != nil || json.Unmarshal(config, &given) != nil {
		return config
	}
	changed := false
	for name, p := range schema.Properties {
		if _, ok := given[name]; ok && p.WriteOnly {
			given[name], changed = reeve.Redacted, true
		}
	}
	if !changed {
		return config
	}
	out, err := json.Marshal(given)
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}

// toolHandlers serves the tool catalogue and the tools of agents.
type toolHandlers struct {
	db   *store.DB
	gate *gate.Gate
}

func (h *toolHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Category string `query:"category" maxLength:"64" doc:"Only tools of this category"`
}) (*body[api.ToolList], error) {
	list, err := h.gate.Catalogue.Tools(ctx, who.Workspace, in.Category)
	out := &body[api.ToolList]{Body: api.ToolList{Tools: []api.ToolView{}}}
	for _, t := range list {
		out.Body.Tools = append(out.Body.Tools, newToolView(t, nil))
	}
	return out, err
}

func (h *toolHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.ToolView], error) {
	t, err := h.gate.Catalogue.Tool(ctx, who.Workspace, in.ID)
	return &body[api.ToolView]{newToolView(t, nil)}, err
}

func (h *toolHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.ToolRequest
}) (*body[api.ToolView], error) {
	convertStoredResponse(ctx, func(t reeve.Tool) any { return newToolView(t, nil) })
	t, err := h.gate.Catalogue.PutTool(ctx, in.Body.Tool(who.Workspace), false, who.Role)
	return &body[api.ToolView]{newToolView(t, nil)}, err
}

func (h *toolHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.ToolRequest
}) (*body[api.ToolView], error) {
	if in.Body.ID != in.ID {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "the id of a tool cannot change",
			Fields: []reeve.Field{{Path: "/id", Message: "differs from the id in the path", Expected: in.ID}}}
	}
	t, err := h.gate.Catalogue.PutTool(ctx, in.Body.Tool(who.Workspace), true, who.Role)
	return &body[api.ToolView]{newToolView(t, nil)}, err
}

func (h *toolHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.gate.Catalogue.DeleteTool(ctx, who.Workspace, in.ID)
}

// listAttached lists the tools that an agent can call: its attached tools, or the default tools if none was ever
// attached.
func (h *toolHandlers) listAttached(ctx context.Context, who reeve.Principal,
	in *AgentPath) (*body[api.ToolList], error) {
	out := &body[api.ToolList]{Body: api.ToolList{Tools: []api.ToolView{}}}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		list, err := snap.Agents().ListAttachments(ctx, a.ID)
		for _, t := range list {
			if t.Tool.Broken == "" {
				t.Tool.Broken = h.gate.Catalogue.WhyNotCallable(t.Tool, t.Config)
			}
			out.Body.Tools = append(out.Body.Tools, newAttachedToolView(t.Tool, t.Config))
		}
		if len(list) > 0 || a.NoDefaultTools || err != nil {
			return err
		}
		for _, id := range gate.DefaultTools() {
			t, err := snap.Agents().GetTool(ctx, who.Workspace, id)
			if reeve.CodeOf(err) == reeve.NotFound {
				continue
			}
			if err != nil {
				return err
			}
			out.Body.Tools = append(out.Body.Tools, newToolView(t, nil))
		}
		return nil
	})
	for i := range out.Body.Tools {
		out.Body.Tools[i].Broken = h.gate.Catalogue.WhyBroken(out.Body.Tools[i].Tool)
	}
	return out, err
}

// export returns the tools of the workspace or of an agent in a format of another program.
func (h *toolHandlers) export(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Format string `query:"format" required:"true" enum:"openai,openai-responses,anthropic,gemini,mcp,langchain" doc:"Program that takes the tools"`
	Agent  string `query:"agent" maxLength:"128" doc:"Name or id of an agent: only the tools that it can call. Default: all tools"`
}) (*body[api.ToolExport], error) {
	var views []api.ToolView
	if in.Agent != "" {
		l, err := h.listAttached(ctx, who, &AgentPath{Scoped: in.Scoped, Agent: in.Agent})
		if err != nil {
			return nil, err
		}
		views = l.Body.Tools
	} else {
		list, err := h.gate.Catalogue.Tools(ctx, who.Workspace, "")
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			views = append(views, newToolView(t, nil))
		}
	}
	tools := make([]reeve.Tool, len(views))
	for i, v := range views {
		tools[i] = v.Tool
	}
	out, err := toolexport.New(in.Format, tools)
	return &body[api.ToolExport]{out}, err
}

func (h *toolHandlers) attach(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Body api.AttachRequest
}) (*body[api.ToolView], error) {
	if err := h.checkConfigNames(ctx, who, in.Agent, in.Body); err != nil {
		return nil, err
	}
	var t reeve.Tool
	var config json.RawMessage
	err := h.db.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		if t, err = tx.Agents().GetTool(ctx, who.Workspace, in.Body.ToolID); err != nil {
			return err
		}
		if config, err = h.gate.Catalogue.CheckConfig(t, in.Body.Config); err != nil {
			return err
		}
		if names := h.gate.Catalogue.OwnerOnlySettings(t, config); len(names) > 0 && !who.Role.Allows(reeve.Owner) {
			return reeve.Errorf(reeve.Forbidden, "the role %s may not set %s of %s", who.Role,
				strings.Join(names, " and "), t.ID).Hintf("use a token with the role %s", reeve.Owner)
		}
		if err := tx.Agents().Attach(ctx, a, t, config); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, newAttachedToolView(t, config))
	})
	return &body[api.ToolView]{newAttachedToolView(t, config)}, err
}

// checkConfigNames returns an error if the settings of a tool name something that does not exist. It runs before the
// transaction that attaches the tool, because tools make these lookups in transactions of their own.
func (h *toolHandlers) checkConfigNames(ctx context.Context, who reeve.Principal, agent string,
	r api.AttachRequest) error {
	var t reeve.Tool
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		if _, err = snap.Agents().GetAgent(ctx, who.Workspace, agent); err == nil {
			t, err = snap.Agents().GetTool(ctx, who.Workspace, r.ToolID)
		}
		return err
	})
	if err != nil {
		return err
	}
	config, err := h.gate.Catalogue.CheckConfig(t, r.Config)
	if err != nil {
		return err
	}
	return h.gate.Catalogue.CheckReferences(ctx, who.Workspace, t, config)
}

func (h *toolHandlers) detach(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Tool string `path:"toolId" maxLength:"128"`
}) (*none, error) {
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		return tx.Agents().Detach(ctx, a, in.Tool)
	})
}
