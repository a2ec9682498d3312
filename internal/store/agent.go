package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"reeve"
)

const agentColumns = `id, workspace_id, name, kind, lifecycle, categories, policy, config, stopped_at, created_at, updated_at, mode, throttle_ms, node, counter, clock, own_tools`

// scanAgent reads a row of agents. What limits the agent is read strictly: half of it must not pass for the whole.
func scanAgent(r scanner) (a reeve.Agent, err error) {
	defer wrapCorrupt("agents", &a.ID, &err)
	var categories, policy, config, clock string
	var stopped, created, updated, own int64
	if err := r.Scan(&a.ID, &a.WorkspaceID, &a.Name, &a.Kind, &a.Lifecycle, &categories, &policy, &config, &stopped,
		&created, &updated,
		&a.Mode, &a.ThrottleMS, &a.Stamp.Node, &a.Stamp.Counter, &clock, &own); err != nil {
		return a, err
	}
	a.StoppedAt, a.CreatedAt, a.UpdatedAt, a.OwnTools = optional(stopped), reeve.FromMillis(created),
		reeve.FromMillis(updated), own != 0
	if err := first(
		decodeStrict("categories", categories, &a.Categories),
		decodeStrict("policy", policy, &a.Policy),
		known("policy", policy != "null" && a.Policy.Validate() == nil),
		known("lifecycle", slices.Contains(reeve.Lifecycles(), a.Lifecycle)),
		known("mode", slices.Contains(reeve.Modes(), a.Mode)),
		known("kind", reeve.IsKind(a.Kind)),
		decode("clock", clock, &a.Stamp.Clock)); err != nil {
		return a, err
	}
	a.Config, err = rawObject("config", config)
	return a, err
}

// InsertAgent adds an agent.
func (t AgentsTx) InsertAgent(ctx context.Context, a reeve.Agent) error {
	if err := t.tx.lockNode(ctx); err != nil { // before its name, which others may be giving to theirs; see Tx.Revise
		return err
	}
	n, err := t.tx.affect(ctx, `INSERT INTO agents (`+agentColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $9, $10, $11, '', 0, '', 0)
		ON CONFLICT (workspace_id, name) DO NOTHING`,
		a.ID, a.WorkspaceID, a.Name, a.Kind, string(a.Lifecycle), text(a.Categories), text(a.Policy), configOf(a),
		reeve.Millis(a.CreatedAt),
		string(modeOf(a)), a.ThrottleMS)
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.AlreadyExists, "an agent named %q is there already", a.Name)
	}
	if err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO agent_runtimes (agent_id, failures, last_run_at) VALUES ($1, 0, 0)`, a.ID)
}

// GetAgent reads an agent of a workspace, by id or by name.
func (s Agents) GetAgent(ctx context.Context, workspace, id string) (reeve.Agent, error) {
	a, ok, err := one(ctx, s.Snap, scanAgent, `SELECT `+agentColumns+` FROM agents WHERE workspace_id = $1 AND (id = $2 OR name = $2)
		ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1`, workspace, id)
	if err == nil && !ok {
		err = notFound("agent", id)
	}
	return a, err
}

// FindAgent is GetAgent by id for what ends a run: false means that the agent is gone, or that its row cannot be read
// and is skipped.
func (s Agents) FindAgent(ctx context.Context, workspace, id string) (reeve.Agent, bool, error) {
	return one(ctx, s.Snap, skipCorrupt(s.Snap, scanAgent, nil), `SELECT `+agentColumns+
		` FROM agents WHERE workspace_id = $1 AND id = $2`, workspace, id)
}

// AgentsByID reads the agents with these ids; those that are not there are left out.
func (s Agents) AgentsByID(ctx context.Context, ids []string) ([]reeve.Agent, error) {
	return among(ctx, s.Snap, scanAgent, `SELECT `+agentColumns+` FROM agents WHERE id IN (?)`, ids)
}

// ListAgents reads a page of a workspace's agents, ordered by name, after a name.
func (s Agents) ListAgents(ctx context.Context, workspace, after string, limit int) ([]reeve.Agent, error) {
	return all(ctx, s.Snap, scanAgent, `SELECT `+agentColumns+
		` FROM agents WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`, workspace, after, limit)
}

// UpdateAgent replaces an agent's settings and touches its workspace. What an end or a stop means for its wakes is part
// of it.
func (t AgentsTx) UpdateAgent(ctx context.Context, a reeve.Agent) error {
	if err := t.tx.Touch(ctx, a.WorkspaceID); err != nil {
		return err
	}
	if err := t.tx.execOr(ctx, func(f Fault) error {
		if f.Kind == FaultUnique {
			return reeve.Errorf(reeve.AlreadyExists, "an agent named %q is there already", a.Name)
		}
		return nil
	}, `UPDATE agents SET name = $2, kind = $3, lifecycle = $4, categories = $5, policy = $6, config = $7, stopped_at = $8, updated_at = $9,
			mode = $11, throttle_ms = $12, created_at = $13 WHERE id = $1 AND workspace_id = $10`,
		a.ID, a.Name, a.Kind, string(a.Lifecycle), text(a.Categories), text(a.Policy), configOf(a),
		orZero(a.StoppedAt), reeve.Millis(t.now), a.WorkspaceID, string(modeOf(a)), a.ThrottleMS,
		reeve.Millis(a.CreatedAt)); err != nil {
		return err
	}
	return t.tx.Queue().settleAgent(ctx, a)
}

// ChangeAgent replaces the settings that are an agent's on every node, and stamps it.
func (t AgentsTx) ChangeAgent(ctx context.Context, a reeve.Agent) error {
	if err := t.StampAgent(ctx, a.ID); err != nil {
		return err
	}
	return t.UpdateAgent(ctx, a)
}

// StampAgent notes who changed an agent, for later sync.
func (t AgentsTx) StampAgent(ctx context.Context, id string) error {
	return t.tx.stamp(ctx, SharedAgents, id)
}

// DeleteAgent removes an agent, its attachments, and what it remembers of people. What it did stays in the ledger.
func (t AgentsTx) DeleteAgent(ctx context.Context, workspace, id string) error {
	if err := t.tx.Revise(ctx, workspace); err != nil {
		return err
	}
	if err := t.tx.Runs().cancelRuns(ctx, workspace, id, "the agent was removed"); err != nil {
		return err
	}
	if err := t.tx.bury(ctx, SharedAgents, workspace, id); err != nil {
		return err
	}
	if err := t.tx.exec(ctx, `DELETE FROM notes WHERE workspace_id = $1 AND agent_id = $2`, workspace, id); err != nil {
		return err
	}
	timers, err := t.tx.Queue().timersOf(ctx, workspace, id)
	if err != nil {
		return err
	}
	return first(t.tx.exec(ctx, `DELETE FROM agents WHERE workspace_id = $1 AND id = $2`, workspace, id), t.tx.Queue().
		tellGone(ctx, workspace, timers))
}

// Attachment is a tool that an agent has, with the agent's settings for it.
type Attachment struct {
	Tool   reeve.Tool
	Config json.RawMessage
}

// Attach gives an agent a tool and touches its workspace. From now on the agent has no default tools.
func (t AgentsTx) Attach(ctx context.Context, a reeve.Agent, tool reeve.Tool, config json.RawMessage) error {
	// touched first, as everywhere: one order of locks
	if err := first(t.tx.Touch(ctx, a.WorkspaceID), t.tx.Queue().alive(ctx, a.WorkspaceID, a.ID)); err != nil {
		return err
	}
	n, err := t.tx.affect(ctx, `INSERT INTO agent_tools (agent_id, tool_id, tool_workspace, config, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (agent_id, tool_id) DO NOTHING`, a.ID, tool.ID, tool.WorkspaceID, string(config), reeve.Millis(t.now))
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.AlreadyExists, "the agent has the tool %q already", tool.ID).
			Hintf("to give it other settings, take it away and attach it again with them")
	}
	if err != nil {
		return err
	}
	return t.tx.exec(ctx, `UPDATE agents SET own_tools = 1 WHERE id = $1 AND own_tools <> 1`, a.ID)
}

// Detach takes a tool from an agent and touches its workspace.
func (t AgentsTx) Detach(ctx context.Context, a reeve.Agent, tool string) error {
	if err := t.tx.Touch(ctx, a.WorkspaceID); err != nil {
		return err
	}
	n, err := t.tx.affect(ctx, `DELETE FROM agent_tools WHERE agent_id = $1 AND tool_id = $2`, a.ID, tool)
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.NotFound, "the agent has no tool %q", tool)
	}
	return err
}

// AttachedConfig reads an agent's settings for a tool; nil if it does not have it.
func (s Agents) AttachedConfig(ctx context.Context, agent, tool string) (json.RawMessage, error) {
	v, _, err := one(ctx, s.Snap, scanAgentTool, selectAgentTool+`WHERE agent_id = $1 AND tool_id = $2`, agent, tool)
	return v.Config, err
}

// AgentTool says that an agent has a tool, with the agent's settings for it.
type AgentTool struct {
	AgentID, ToolID, ToolWorkspace string
	Config                         json.RawMessage
}

const selectAgentTool = `SELECT agent_id, tool_id, tool_workspace, config FROM agent_tools `

func scanAgentTool(r scanner) (v AgentTool, err error) {
	var config string
	if err := r.Scan(&v.AgentID, &v.ToolID, &v.ToolWorkspace, &config); err != nil {
		return v, corrupt("agent_tools", v.AgentID+"/"+v.ToolID, err)
	}
	v.Config, err = settings(v.AgentID, v.ToolID, config)
	return v, err
}

// settings reads an agent's settings for a tool: none, or an object.
func settings(agent, tool, config string) (json.RawMessage, error) {
	if config == "" {
		return nil, nil
	}
	v, err := rawObject("config", config)
	if err != nil {
		err = corrupt("agent_tools", agent+"/"+tool, err)
	}
	return v, err
}

// AgentTools reads which tools an agent has, without the tools themselves.
func (s Agents) AgentTools(ctx context.Context, agent string) ([]AgentTool, error) {
	return all(ctx, s.Snap, scanAgentTool, selectAgentTool+`WHERE agent_id = $1`, agent)
}

// ListAttachments reads the tools an agent has, ordered by category then name.
func (s Agents) ListAttachments(ctx context.Context, agent string) ([]Attachment, error) {
	return all(ctx, s.Snap, func(r scanner) (a Attachment, err error) {
		var config string
		if err := scanToolInto(r, &a.Tool, &config); err != nil {
			return a, err
		}
		a.Config, err = settings(agent, a.Tool.ID, config)
		return a, err
	}, `SELECT `+toolColumns+`, agent_tools.config FROM agent_tools
		JOIN tools ON tools.workspace_id = agent_tools.tool_workspace AND tools.id = agent_tools.tool_id
		WHERE agent_tools.agent_id = $1 ORDER BY category, tools.name, tools.id`, agent)
}

// AgentSettings is what an agent, by its name, has set for a tool.
type AgentSettings struct {
	Agent string
	Attachment
}

// ListSettings reads all settings that the agents of a workspace have for their tools, and of tools with a settings
// schema also that there are none.
func (s Agents) ListSettings(ctx context.Context, workspace string) ([]AgentSettings, error) {
	return all(ctx, s.Snap, func(r scanner) (v AgentSettings, err error) {
		var config string
		if err := scanToolInto(r, &v.Tool, &config, &v.Agent); err != nil {
			return v, err
		}
		v.Config, err = settings(v.Agent, v.Tool.ID, config)
		return v, err
	}, `SELECT `+toolColumns+`, agent_tools.config, (SELECT name FROM agents WHERE id = agent_tools.agent_id) AS agent FROM agent_tools
		JOIN tools ON tools.workspace_id = agent_tools.tool_workspace AND tools.id = agent_tools.tool_id
		WHERE agent_tools.agent_id IN (SELECT id FROM agents WHERE workspace_id = $1) AND (agent_tools.config <> '' OR config_schema <> '')
		ORDER BY agent, tools.id`, workspace)
}

// GetProfile reads the capabilities of a kind; false means there is no profile.
func (s Agents) GetProfile(ctx context.Context, workspace, kind string) (reeve.Profile, bool, error) {
	return one(ctx, s.Snap, scanProfile,
		`SELECT kind, capabilities FROM profiles WHERE workspace_id = $1 AND kind = $2`, workspace, kind)
}

// ListProfiles reads a workspace's own profiles.
func (s Agents) ListProfiles(ctx context.Context, workspace string) ([]reeve.Profile, error) {
	return all(ctx, s.Snap, scanProfile,
		`SELECT kind, capabilities FROM profiles WHERE workspace_id = $1 ORDER BY kind`, workspace)
}

// PutProfile sets the capabilities of a kind and touches the workspace.
func (t AgentsTx) PutProfile(ctx context.Context, workspace string, p reeve.Profile) error {
	if err := t.tx.Touch(ctx, workspace); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO profiles (workspace_id, kind, capabilities) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id, kind) DO UPDATE SET capabilities = $3`, workspace, p.Kind, text(p.Capabilities))
}

func scanProfile(r scanner) (p reeve.Profile, err error) {
	defer wrapCorrupt("profiles", &p.Kind, &err)
	var caps string
	if err := r.Scan(&p.Kind, &caps); err != nil {
		return p, err
	}
	return p, decodeStrict("capabilities", caps, &p.Capabilities)
}

func configOf(a reeve.Agent) string { return cmp.Or(string(a.Config), "{}") }

func modeOf(a reeve.Agent) reeve.Mode {
	if a.Mode == "" {
		return reeve.Hybrid
	}
	return a.Mode
}
