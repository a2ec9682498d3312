package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"reeve"
)

const agentColumns = `id, workspace_id, name, kind, lifecycle, categories, policy, config, stopped_at, created_at,
	updated_at, mode, throttle_ms, node, counter, clock, own_tools`

// scanAgent scans a row of agents. It decodes the columns that limit the agent strictly, so that a damaged limit is an
// error and not a weaker limit.
func scanAgent(r scanner) (a reeve.Agent, err error) {
	defer wrapCorrupt("agents", &a.ID, &err)
	var categories, policy, config, clock string
	var stopped, created, updated, own int64
	if err := r.Scan(&a.ID, &a.WorkspaceID, &a.Name, &a.Kind, &a.Lifecycle, &categories, &policy, &config, &stopped,
		&created, &updated,
		&a.Mode, &a.ThrottleMS, &a.Stamp.Node, &a.Stamp.Counter, &clock, &own); err != nil {
		return a, err
	}
	a.StoppedAt, a.CreatedAt, a.UpdatedAt, a.NoDefaultTools = timeOrNil(stopped), reeve.FromMillis(created),
		reeve.FromMillis(updated), own != 0
	if err := firstError(
		decodeJSONStrict("categories", categories, &a.Categories),
		decodeJSONStrict("policy", policy, &a.Policy),
		checkKnown("policy", policy != "null" && a.Policy.Validate() == nil),
		checkKnown("lifecycle", slices.Contains(reeve.Lifecycles(), a.Lifecycle)),
		checkKnown("mode", slices.Contains(reeve.Modes(), a.Mode)),
		checkKnown("kind", reeve.IsAgentKind(a.Kind)),
		decodeJSON("clock", clock, &a.Stamp.Clock)); err != nil {
		return a, err
	}
	a.Config, err = rawObject("config", config)
	return a, err
}

// InsertAgent inserts an agent. It fails if the workspace has an agent with the same name.
func (t AgentsTx) InsertAgent(ctx context.Context, a reeve.Agent) error {
	t.tx.Announce(a.WorkspaceID, TopicAgents, a.ID, "")
	if err := t.tx.lockNode(ctx); err != nil { // before the unique name is locked; see Tx.BeginRevision
		return err
	}
	n, err := t.tx.execCount(ctx, `INSERT INTO agents (`+agentColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9,
		$9, $10, $11, '', 0, '', 0)
		ON CONFLICT (workspace_id, name) DO NOTHING`,
		a.ID, a.WorkspaceID, a.Name, a.Kind, string(a.Lifecycle), encodeJSON(a.Categories), encodeJSON(a.Policy),
		encodeConfig(a),
		reeve.Millis(a.CreatedAt),
		string(modeOrDefault(a)), a.ThrottleMS)
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.AlreadyExists, "an agent named %q already exists", a.Name)
	}
	if err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO agent_runtimes (agent_id, failures, last_run_at) VALUES ($1, 0, 0)`, a.ID)
}

// GetAgent returns an agent of a workspace, by id or by name.
func (s Agents) GetAgent(ctx context.Context, workspace, id string) (reeve.Agent, error) {
	a, ok, err := queryOne(ctx, s.Snap, scanAgent, `SELECT `+agentColumns+` FROM agents WHERE workspace_id = $1
		AND (id = $2 OR name = $2)
		ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1`, workspace, id)
	if err == nil && !ok {
		err = notFound("agent", id)
	}
	return a, err
}

// FindAgent returns an agent by id. It returns false if the agent does not exist or its row is corrupt, so that a run
// can end in both cases.
func (s Agents) FindAgent(ctx context.Context, workspace, id string) (reeve.Agent, bool, error) {
	return queryOne(ctx, s.Snap, skipCorrupt(s.Snap, scanAgent, nil), `SELECT `+agentColumns+
		` FROM agents WHERE workspace_id = $1 AND id = $2`, workspace, id)
}

// AgentsByID returns the agents with these ids. It leaves out those that do not exist.
func (s Agents) AgentsByID(ctx context.Context, ids []string) ([]reeve.Agent, error) {
	return queryIn(ctx, s.Snap, scanAgent, `SELECT `+agentColumns+` FROM agents WHERE id IN (?)`, ids)
}

// ListAgents returns a page of a workspace's agents, ordered by name, after a name.
func (s Agents) ListAgents(ctx context.Context, workspace, after string, limit int) ([]reeve.Agent, error) {
	return queryAll(ctx, s.Snap, scanAgent, `SELECT `+agentColumns+
		` FROM agents WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`, workspace, after, limit)
}

// UpdateAgent replaces an agent's settings, increments its workspace's revision, and applies a stop or the end of the
// agent to its wakes.
func (t AgentsTx) UpdateAgent(ctx context.Context, a reeve.Agent) error {
	t.tx.Announce(a.WorkspaceID, TopicAgents, a.ID, "")
	if err := t.tx.IncrementRevision(ctx, a.WorkspaceID); err != nil {
		return err
	}
	if err := t.tx.execMapFault(ctx, func(f Fault) error {
		if f.Kind == FaultUnique {
			return reeve.Errorf(reeve.AlreadyExists, "an agent named %q already exists", a.Name)
		}
		return nil
	}, `UPDATE agents SET name = $2, kind = $3, lifecycle = $4, categories = $5, policy = $6, config = $7,
		stopped_at = $8, updated_at = $9,
			mode = $11, throttle_ms = $12, created_at = $13 WHERE id = $1 AND workspace_id = $10`,
		a.ID, a.Name, a.Kind, string(a.Lifecycle), encodeJSON(a.Categories), encodeJSON(a.Policy), encodeConfig(a),
		millisOrZero(a.StoppedAt), reeve.Millis(t.now), a.WorkspaceID, string(modeOrDefault(a)), a.ThrottleMS,
		reeve.Millis(a.CreatedAt)); err != nil {
		return err
	}
	return t.tx.Queue().applyLifecycle(ctx, a)
}

// ChangeAgent is UpdateAgent for settings that all nodes share. It also stamps the agent.
func (t AgentsTx) ChangeAgent(ctx context.Context, a reeve.Agent) error {
	if err := t.StampAgent(ctx, a.ID); err != nil {
		return err
	}
	return t.UpdateAgent(ctx, a)
}

// StampAgent records which node changed an agent, for synchronization.
func (t AgentsTx) StampAgent(ctx context.Context, id string) error {
	return t.tx.stamp(ctx, SharedAgents, id)
}

// DeleteAgent deletes an agent and its attachments. Its calls stay, and so do the notes that it wrote.
func (t AgentsTx) DeleteAgent(ctx context.Context, workspace, id string) error {
	t.tx.Announce(workspace, TopicAgents, id, "")
	if err := t.tx.BeginRevision(ctx, workspace); err != nil {
		return err
	}
	if err := t.tx.Runs().cancelAgentRuns(ctx, workspace, id, "the agent was removed"); err != nil {
		return err
	}
	if err := t.tx.recordRemoval(ctx, SharedAgents, workspace, id); err != nil {
		return err
	}
	timers, err := t.tx.Queue().openTimerTokens(ctx, workspace, id)
	if err != nil {
		return err
	}
	return firstError(t.tx.exec(ctx, `DELETE FROM agents WHERE workspace_id = $1 AND id = $2`, workspace, id),
		t.tx.Queue().recordTimersGone(ctx, workspace, timers))
}

// Attachment is a tool that is attached to an agent, with the agent's settings for it.
type Attachment struct {
	Tool   reeve.Tool
	Config json.RawMessage
}

// Attach attaches a tool to an agent and increments the workspace's revision. An agent with attached tools no longer
// has the default tools.
func (t AgentsTx) Attach(ctx context.Context, a reeve.Agent, tool reeve.Tool, config json.RawMessage) error {
	// the workspace first: one order of locks everywhere
	if err := firstError(t.tx.IncrementRevision(ctx, a.WorkspaceID), t.tx.Queue().lockLiveAgent(ctx, a.WorkspaceID,
		a.ID)); err != nil {
		return err
	}
	n, err := t.tx.execCount(ctx, `INSERT INTO agent_tools (agent_id, tool_id, tool_workspace, config, created_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (agent_id, tool_id) DO NOTHING`, a.ID, tool.ID, tool.WorkspaceID, string(config),
		reeve.Millis(t.now))
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.AlreadyExists, "the agent already has the tool %q", tool.ID).
			Hintf("to change its settings, detach the tool and attach it again")
	}
	if err != nil {
		return err
	}
	return t.tx.exec(ctx, `UPDATE agents SET own_tools = 1 WHERE id = $1 AND own_tools <> 1`, a.ID)
}

// Detach detaches a tool from an agent and increments the workspace's revision.
func (t AgentsTx) Detach(ctx context.Context, a reeve.Agent, tool string) error {
	if err := t.tx.IncrementRevision(ctx, a.WorkspaceID); err != nil {
		return err
	}
	n, err := t.tx.execCount(ctx, `DELETE FROM agent_tools WHERE agent_id = $1 AND tool_id = $2`, a.ID, tool)
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.NotFound, "the agent has no tool %q", tool)
	}
	return err
}

// AttachedConfig returns an agent's settings for a tool, or nil if the agent does not have the tool.
func (s Agents) AttachedConfig(ctx context.Context, agent, tool string) (json.RawMessage, error) {
	v, _, err := queryOne(ctx, s.Snap, scanAgentTool, selectAgentTool+`WHERE agent_id = $1 AND tool_id = $2`, agent,
		tool)
	return v.Config, err
}

// AgentTool is one attachment of a tool to an agent, with the agent's settings for it.
type AgentTool struct {
	AgentID, ToolID, ToolWorkspace string
	Config                         json.RawMessage
}

const selectAgentTool = `SELECT agent_id, tool_id, tool_workspace, config FROM agent_tools `

func scanAgentTool(r scanner) (v AgentTool, err error) {
	var config string
	if err := r.Scan(&v.AgentID, &v.ToolID, &v.ToolWorkspace, &config); err != nil {
		return v, corruptError("agent_tools", v.AgentID+"/"+v.ToolID, err)
	}
	v.Config, err = decodeToolConfig(v.AgentID, v.ToolID, config)
	return v, err
}

// decodeToolConfig decodes an agent's settings for a tool. They are empty or a JSON object.
func decodeToolConfig(agent, tool, config string) (json.RawMessage, error) {
	if config == "" {
		return nil, nil
	}
	v, err := rawObject("config", config)
	if err != nil {
		err = corruptError("agent_tools", agent+"/"+tool, err)
	}
	return v, err
}

// AgentTools returns an agent's attachments without the tools themselves.
func (s Agents) AgentTools(ctx context.Context, agent string) ([]AgentTool, error) {
	return queryAll(ctx, s.Snap, scanAgentTool, selectAgentTool+`WHERE agent_id = $1`, agent)
}

// ListAttachments returns the tools of an agent, ordered by category, then name.
func (s Agents) ListAttachments(ctx context.Context, agent string) ([]Attachment, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (a Attachment, err error) {
		var config string
		if err := scanToolInto(r, &a.Tool, &config); err != nil {
			return a, err
		}
		a.Config, err = decodeToolConfig(agent, a.Tool.ID, config)
		return a, err
	}, `SELECT `+toolColumns+`, agent_tools.config FROM agent_tools
		JOIN tools ON tools.workspace_id = agent_tools.tool_workspace AND tools.id = agent_tools.tool_id
		WHERE agent_tools.agent_id = $1 ORDER BY category, tools.name, tools.id`, agent)
}

// AgentSettings is an attachment with the name of its agent.
type AgentSettings struct {
	Agent string
	Attachment
}

// ListSettings returns the attachments in a workspace that have settings or whose tool has a settings schema.
func (s Agents) ListSettings(ctx context.Context, workspace string) ([]AgentSettings, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (v AgentSettings, err error) {
		var config string
		if err := scanToolInto(r, &v.Tool, &config, &v.Agent); err != nil {
			return v, err
		}
		v.Config, err = decodeToolConfig(v.Agent, v.Tool.ID, config)
		return v, err
	}, `SELECT `+toolColumns+`, agent_tools.config, (SELECT name FROM agents WHERE id = agent_tools.agent_id) AS agent
		FROM agent_tools
		JOIN tools ON tools.workspace_id = agent_tools.tool_workspace AND tools.id = agent_tools.tool_id
		WHERE agent_tools.agent_id IN (SELECT id FROM agents WHERE workspace_id = $1) AND (agent_tools.config <> ''
		OR config_schema <> '')
		ORDER BY agent, tools.id`, workspace)
}

// GetProfile returns the profile of a kind. It returns false if there is none.
func (s Agents) GetProfile(ctx context.Context, workspace, kind string) (reeve.Profile, bool, error) {
	return queryOne(ctx, s.Snap, scanProfile,
		`SELECT kind, capabilities FROM profiles WHERE workspace_id = $1 AND kind = $2`, workspace, kind)
}

// ListProfiles returns a workspace's own profiles.
func (s Agents) ListProfiles(ctx context.Context, workspace string) ([]reeve.Profile, error) {
	return queryAll(ctx, s.Snap, scanProfile,
		`SELECT kind, capabilities FROM profiles WHERE workspace_id = $1 ORDER BY kind`, workspace)
}

// PutProfile sets the capabilities of a kind and increments the workspace's revision.
func (t AgentsTx) PutProfile(ctx context.Context, workspace string, p reeve.Profile) error {
	if err := t.tx.IncrementRevision(ctx, workspace); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO profiles (workspace_id, kind, capabilities) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id, kind) DO UPDATE SET capabilities = $3`, workspace, p.Kind,
		encodeJSON(p.Capabilities))
}

func scanProfile(r scanner) (p reeve.Profile, err error) {
	defer wrapCorrupt("profiles", &p.Kind, &err)
	var caps string
	if err := r.Scan(&p.Kind, &caps); err != nil {
		return p, err
	}
	return p, decodeJSONStrict("capabilities", caps, &p.Capabilities)
}

func encodeConfig(a reeve.Agent) string { return cmp.Or(string(a.Config), "{}") }

func modeOrDefault(a reeve.Agent) reeve.Mode {
	if a.Mode == "" {
		return reeve.Hybrid
	}
	return a.Mode
}

// AgentNames returns the names of agents by id. Agents that do not exist are left out.
func (s Agents) AgentNames(ctx context.Context, ids []string) (map[string]string, error) {
	slices.Sort(ids)
	type row struct{ id, name string }
	list, err := queryIn(ctx, s.Snap, func(r scanner) (v row, err error) { return v, r.Scan(&v.id, &v.name) },
		`SELECT id, name FROM agents WHERE id IN (?)`, slices.Compact(ids))
	names := make(map[string]string, len(list))
	for _, v := range list {
		names[v.id] = v.name
	}
	return names, err
}
