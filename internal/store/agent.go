package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"reeve"
)

const agentColumns = `id, workspace_id, name, kind, lifecycle, categories, policy, config, stopped_at, created_at, updated_at, mode, throttle_ms, node, counter, clock, own_tools`

// scanAgent reads a row of agents. One that is damaged is broken, and harms no other. What it may do may be in what is damaged, so that it can do nothing; a stop that cannot be read counts as one.
func scanAgent(r scanner) (a reeve.Agent, err error) {
	var categories, policy, config, clock string
	var stopped, created, updated, throttle, counter, own number
	if err := r.Scan(&a.ID, &a.WorkspaceID, &a.Name, &a.Kind, &a.Lifecycle, &categories, &policy, &config, &stopped, &created, &updated, &a.Mode, &throttle,
		&a.Stamp.Node, &counter, &clock, &own); err != nil {
		return a, err
	}
	var d damage
	readBack(&d, "categories", categories, &a.Categories, nil)
	readBack(&d, "policy", policy, &a.Policy, func(p reeve.Policy) bool { return p.Validate() == nil })
	d.word("lifecycle", string(a.Lifecycle), slices.Contains(reeve.Lifecycles(), a.Lifecycle))
	d.word("mode", string(a.Mode), slices.Contains(reeve.Modes(), a.Mode))
	d.word("kind", a.Kind, reeve.IsKind(a.Kind))
	readInto(&d, "clock", clock, &a.Stamp.Clock)
	a.Config, a.ThrottleMS, a.Stamp.Counter = d.object("config", config), d.count("throttle_ms", throttle), d.count("counter", counter)
	a.CreatedAt, a.UpdatedAt = reeve.FromMillis(d.count("created_at", created)), reeve.FromMillis(d.count("updated_at", updated))
	a.StoppedAt = optional(d.count("stopped_at", stopped))
	if _, damaged := d.was["stopped_at"]; damaged {
		a.StoppedAt = &a.UpdatedAt
	}
	a.OwnTools = own.damaged || own.value != 0 // what cannot be read gives it no tools
	a.Broken, a.Damaged = d.String(), d.was
	return a, nil
}

// InsertAgent adds an agent.
func (t *Tx) InsertAgent(ctx context.Context, a reeve.Agent) error {
	if err := t.lockNode(ctx); err != nil { // before its name, which others may be giving to theirs; see Tx.Revise
		return err
	}
	n, err := t.affect(ctx, `INSERT INTO agents (`+agentColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $9, $10, $11, '', 0, '', 0)
		ON CONFLICT (workspace_id, name) DO NOTHING`,
		a.ID, a.WorkspaceID, a.Name, a.Kind, string(a.Lifecycle), text(a.Categories), text(a.Policy), configOf(a), reeve.Millis(a.CreatedAt),
		string(modeOf(a)), a.ThrottleMS)
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.AlreadyExists, "an agent named %q is there already", a.Name)
	}
	if err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO agent_runtimes (agent_id, failures, last_run_at) VALUES ($1, 0, 0)`, a.ID)
}

// GetAgent reads an agent of a workspace, by id or by name.
func (s *Snap) GetAgent(ctx context.Context, workspace, id string) (reeve.Agent, error) {
	a, ok, err := one(ctx, s, scanAgent, `SELECT `+agentColumns+` FROM agents WHERE workspace_id = $1 AND (id = $2 OR name = $2)
		ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1`, workspace, id)
	if err == nil && !ok {
		err = notFound("agent", id)
	}
	return a, err
}

// AgentsByID reads the agents with these ids; those that are not there are left out.
func (s *Snap) AgentsByID(ctx context.Context, ids []string) ([]reeve.Agent, error) {
	return among(ctx, s, scanAgent, `SELECT `+agentColumns+` FROM agents WHERE id IN (?)`, ids)
}

// ListAgents reads a page of a workspace's agents, ordered by name, after a name.
func (s *Snap) ListAgents(ctx context.Context, workspace, after string, limit int) ([]reeve.Agent, error) {
	return all(ctx, s, scanAgent, `SELECT `+agentColumns+` FROM agents WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`, workspace, after, limit)
}

// BrokenAgents says which agents of a workspace are damaged, they or their state, and what of them.
func (s *Snap) BrokenAgents(ctx context.Context, workspace string) (out []string, err error) {
	const page = 500
	for after, more := "", true; more; {
		list, err := s.ListAgents(ctx, workspace, after, page)
		if err != nil {
			return nil, err
		}
		var ids []string
		names := map[string]string{}
		for _, a := range list {
			after, names[a.ID], ids = a.Name, a.Name, append(ids, a.ID)
			if a.Broken != "" {
				out = append(out, a.Name+": "+a.Broken)
			}
		}
		states, err := among(ctx, s, scanState, selectState+`WHERE agent_id IN (?)`, ids)
		if err != nil {
			return nil, err
		}
		for _, v := range states {
			if v.Broken != "" {
				out = append(out, names[v.AgentID]+": "+v.Broken)
			}
		}
		settings, err := among(ctx, s, scanSettings, `SELECT agent_id, tool_id, config FROM agent_tools WHERE agent_id IN (?)`, ids)
		if err != nil {
			return nil, err
		}
		for _, v := range settings {
			if v.broken {
				out = append(out, names[v.agent]+": the tool "+v.tool+": "+damagedSettings)
			}
		}
		more = len(list) == page
	}
	return out, nil
}

// UpdateAgent replaces an agent's settings and touches its workspace. What an end or a stop means for its wakes is part of it. What is damaged stays as it is until somebody sets it: an agent whose policy
// cannot be read must not become one without any.
func (t *Tx) UpdateAgent(ctx context.Context, a reeve.Agent) error {
	unless := func(column string, v any) any {
		if was, damaged := a.Damaged[column]; damaged {
			return was
		}
		return v
	}
	if err := t.Touch(ctx, a.WorkspaceID); err != nil {
		return err
	}
	if err := t.execOr(ctx, func(f Fault) error {
		if f.Kind == FaultUnique {
			return reeve.Errorf(reeve.AlreadyExists, "an agent named %q is there already", a.Name)
		}
		return nil
	}, `UPDATE agents SET name = $2, kind = $3, lifecycle = $4, categories = $5, policy = $6, config = $7, stopped_at = $8, updated_at = $9,
			mode = $11, throttle_ms = $12, created_at = $13 WHERE id = $1 AND workspace_id = $10`,
		a.ID, a.Name, a.Kind, string(a.Lifecycle), unless("categories", text(a.Categories)), unless("policy", text(a.Policy)), unless("config", configOf(a)),
		unless("stopped_at", orZero(a.StoppedAt)), reeve.Millis(t.now), a.WorkspaceID, unless("mode", string(modeOf(a))), unless("throttle_ms", a.ThrottleMS), reeve.Millis(a.CreatedAt)); err != nil {
		return err
	}
	return t.settleAgent(ctx, a)
}

// ChangeAgent replaces the settings that are an agent's on every node, and stamps it.
func (t *Tx) ChangeAgent(ctx context.Context, a reeve.Agent) error {
	if err := t.StampAgent(ctx, a.ID); err != nil {
		return err
	}
	return t.UpdateAgent(ctx, a)
}

// StampAgent notes who changed an agent, for later sync.
func (t *Tx) StampAgent(ctx context.Context, id string) error { return t.stamp(ctx, SharedAgents, id) }

// DeleteAgent removes an agent, its attachments, and what it remembers of people. What it did stays in the ledger.
func (t *Tx) DeleteAgent(ctx context.Context, workspace, id string) error {
	if err := t.Revise(ctx, workspace); err != nil {
		return err
	}
	if err := t.cancelRuns(ctx, workspace, id, "the agent was removed"); err != nil {
		return err
	}
	if err := t.bury(ctx, SharedAgents, workspace, id); err != nil {
		return err
	}
	if err := t.exec(ctx, `DELETE FROM notes WHERE workspace_id = $1 AND agent_id = $2`, workspace, id); err != nil {
		return err
	}
	timers, err := t.timersOf(ctx, workspace, id)
	if err != nil {
		return err
	}
	return first(t.exec(ctx, `DELETE FROM agents WHERE workspace_id = $1 AND id = $2`, workspace, id), t.tellGone(ctx, workspace, timers))
}

// Attachment is a tool that an agent has, with the agent's settings for it.
type Attachment struct {
	Tool   reeve.Tool
	Config json.RawMessage
}

// Attach gives an agent a tool and touches its workspace. From now on the agent has no default tools.
func (t *Tx) Attach(ctx context.Context, a reeve.Agent, tool reeve.Tool, config json.RawMessage) error {
	if err := first(t.Touch(ctx, a.WorkspaceID), t.alive(ctx, a.WorkspaceID, a.ID)); err != nil { // touched first, as everywhere: one order of locks
		return err
	}
	n, err := t.affect(ctx, `INSERT INTO agent_tools (agent_id, tool_id, tool_workspace, config, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (agent_id, tool_id) DO NOTHING`, a.ID, tool.ID, tool.WorkspaceID, string(config), reeve.Millis(t.now))
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.AlreadyExists, "the agent has the tool %q already", tool.ID).Hintf("to give it other settings, take it away and attach it again with them")
	}
	if err != nil {
		return err
	}
	return t.exec(ctx, `UPDATE agents SET own_tools = 1 WHERE id = $1 AND own_tools <> 1`, a.ID)
}

// Detach takes a tool from an agent and touches its workspace.
func (t *Tx) Detach(ctx context.Context, a reeve.Agent, tool string) error {
	if err := t.Touch(ctx, a.WorkspaceID); err != nil {
		return err
	}
	n, err := t.affect(ctx, `DELETE FROM agent_tools WHERE agent_id = $1 AND tool_id = $2`, a.ID, tool)
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.NotFound, "the agent has no tool %q", tool)
	}
	return err
}

// AttachedConfig reads an agent's settings for a tool; nil if it does not have it.
func (s *Snap) AttachedConfig(ctx context.Context, agent, tool string) (json.RawMessage, error) {
	text, _, err := one(ctx, s, value[string], `SELECT config FROM agent_tools WHERE agent_id = $1 AND tool_id = $2`, agent, tool)
	config, ok := readSettings(text)
	if err == nil && !ok {
		err = reeve.Errorf(reeve.Unsupported, "the tool %s cannot be called: %s", tool, damagedSettings).Hintf("reeve doctor lists what is damaged")
	}
	return config, err
}

const damagedSettings = "the agent's settings for it are damaged in the database: detach it and attach it again"

// readSettings reads an agent's settings for a tool: none, or an object. False means that they are damaged.
func readSettings(s string) (json.RawMessage, bool) {
	var d damage
	if s == "" {
		return nil, true
	}
	v := d.object("config", s)
	return v, len(d.columns) == 0
}

type settings struct {
	agent, tool string
	broken      bool
}

func scanSettings(r scanner) (v settings, err error) {
	var config string
	err = r.Scan(&v.agent, &v.tool, &config)
	_, ok := readSettings(config)
	v.broken = !ok
	return v, err
}

// ListAttachments reads the tools an agent has, ordered by category then name. One whose settings are damaged is broken: they may have forbidden something.
func (s *Snap) ListAttachments(ctx context.Context, agent string) ([]Attachment, error) {
	return all(ctx, s, func(r scanner) (a Attachment, err error) {
		var config string
		if err := scanToolInto(r, &a.Tool, &config); err != nil {
			return a, err
		}
		var ok bool
		if a.Config, ok = readSettings(config); !ok {
			a.Tool.Broken = damagedSettings
		}
		return a, nil
	}, `SELECT `+toolColumns+`, agent_tools.config FROM agent_tools
		JOIN tools ON tools.workspace_id = agent_tools.tool_workspace AND tools.id = agent_tools.tool_id
		WHERE agent_tools.agent_id = $1 ORDER BY category, tools.name, tools.id`, agent)
}

// AgentSettings is what an agent, by its name, has set for a tool.
type AgentSettings struct {
	Agent string
	Attachment
}

// ListSettings reads all settings that the agents of a workspace have for their tools, and of tools with a settings schema also
// that there are none. Damaged settings are left out; see BrokenAgents.
func (s *Snap) ListSettings(ctx context.Context, workspace string) ([]AgentSettings, error) {
	list, err := all(ctx, s, func(r scanner) (v AgentSettings, err error) {
		var config string
		if err := scanToolInto(r, &v.Tool, &config, &v.Agent); err != nil {
			return v, err
		}
		var ok bool
		if v.Config, ok = readSettings(config); !ok {
			v.Agent = ""
		}
		return v, nil
	}, `SELECT `+toolColumns+`, agent_tools.config, (SELECT name FROM agents WHERE id = agent_tools.agent_id) AS agent FROM agent_tools
		JOIN tools ON tools.workspace_id = agent_tools.tool_workspace AND tools.id = agent_tools.tool_id
		WHERE agent_tools.agent_id IN (SELECT id FROM agents WHERE workspace_id = $1) AND (agent_tools.config <> '' OR config_schema <> '')
		ORDER BY agent, tools.id`, workspace)
	return slices.DeleteFunc(list, func(v AgentSettings) bool { return v.Agent == "" }), err
}

// GetProfile reads the capabilities of a kind; false means there is no profile.
func (s *Snap) GetProfile(ctx context.Context, workspace, kind string) (reeve.Profile, bool, error) {
	return one(ctx, s, scanProfile, `SELECT kind, capabilities FROM profiles WHERE workspace_id = $1 AND kind = $2`, workspace, kind)
}

// ListProfiles reads a workspace's own profiles.
func (s *Snap) ListProfiles(ctx context.Context, workspace string) ([]reeve.Profile, error) {
	return all(ctx, s, scanProfile, `SELECT kind, capabilities FROM profiles WHERE workspace_id = $1 ORDER BY kind`, workspace)
}

// PutProfile sets the capabilities of a kind and touches the workspace.
func (t *Tx) PutProfile(ctx context.Context, workspace string, p reeve.Profile) error {
	if err := t.Touch(ctx, workspace); err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO profiles (workspace_id, kind, capabilities) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id, kind) DO UPDATE SET capabilities = $3`, workspace, p.Kind, text(p.Capabilities))
}

// scanProfile reads a row of profiles. One that is damaged grants nothing, and says so.
func scanProfile(r scanner) (p reeve.Profile, err error) {
	var caps string
	if err := r.Scan(&p.Kind, &caps); err != nil {
		return p, err
	}
	var d damage
	readBack(&d, "capabilities", caps, &p.Capabilities, nil)
	p.Broken = d.String()
	return p, nil
}

func configOf(a reeve.Agent) string { return cmp.Or(string(a.Config), "{}") }

func modeOf(a reeve.Agent) reeve.Mode {
	if a.Mode == "" {
		return reeve.Hybrid
	}
	return a.Mode
}
