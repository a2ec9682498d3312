package store

import (
	"context"

	"reeve"
)

const toolColumns = `tools.workspace_id, tools.id, kind, tools.name, description, parameters, config_schema,
	handler_key, category, pack,
	tier, effect, capability, risk, timeout_ms, retry, identity, previews, cost, version, spec, tools.created_at, async,
	output_schema`

func scanTool(r scanner) (t reeve.Tool, err error) {
	return t, scanToolInto(r, &t)
}

// scanToolInto scans a row of tools, and the columns after it into more.
func scanToolInto(r scanner, t *reeve.Tool, more ...any) (err error) {
	defer wrapCorrupt("tools", &t.ID, &err)
	var params, config, output, retry, identity, cost, spec string
	var previews, created, async int64
	dest := []any{&t.WorkspaceID, &t.ID, &t.Kind, &t.Name, &t.Description, &params, &config, &t.HandlerKey, &t.Category,
		&t.Pack,
		&t.Tier, &t.Effect, &t.Capability, &t.Risk, &t.TimeoutMS, &retry, &identity, &previews, &cost, &t.Version,
		&spec, &created, &async, &output}
	if err := r.Scan(append(dest, more...)...); err != nil {
		return err
	}
	t.Previews, t.Async, t.CreatedAt = previews != 0, async != 0, reeve.FromMillis(created)
	if err := firstError(decodeJSONStrict("retry", retry, &t.Retry), decodeJSONStrict("cost", cost, &t.Cost),
		decodeJSONStrict("identity", identity, &t.Identity)); err != nil {
		return err
	}
	if t.Parameters, err = rawJSON("parameters", params); err != nil {
		return err
	}
	if t.ConfigSchema, err = rawJSON("config_schema", config); err != nil {
		return err
	}
	if t.OutputSchema, err = rawJSON("output_schema", output); err != nil {
		return err
	}
	t.Spec, err = rawJSON("spec", spec)
	return err
}

// PutTool inserts or replaces a tool and increments its workspace's revision. After changing a tool of all workspaces,
// the caller calls IncrementAllRevisions.
func (t AgentsTx) PutTool(ctx context.Context, v reeve.Tool) error {
	t.tx.Announce(v.WorkspaceID, TopicTools, "", "")
	if v.WorkspaceID != "" {
		if err := t.tx.IncrementRevision(ctx, v.WorkspaceID); err != nil {
			return err
		}
	}
	if v.CreatedAt.IsZero() {
		v.CreatedAt = t.now
	}
	return t.tx.exec(ctx, `INSERT INTO tools (workspace_id, id, kind, name, description, parameters, config_schema,
		handler_key, category, pack,
			tier, effect, capability, risk, timeout_ms, retry, identity, previews, cost, version, spec, created_at,
			async, output_schema)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
		$23, $24)
		ON CONFLICT (workspace_id, id) DO UPDATE SET kind = $3, name = $4, description = $5, parameters = $6,
		config_schema = $7,
			handler_key = $8, category = $9, pack = $10, tier = $11, effect = $12, capability = $13, risk = $14,
			timeout_ms = $15,
			retry = $16, identity = $17, previews = $18, cost = $19, version = $20, spec = $21, created_at = $22,
			async = $23, output_schema = $24`,
		v.WorkspaceID, v.ID, string(v.Kind), v.Name, v.Description, string(v.Parameters), string(v.ConfigSchema),
		v.HandlerKey, v.Category, v.Pack,
		string(v.Tier), string(v.Effect), v.Capability, string(v.Risk), v.TimeoutMS, encodeJSON(v.Retry),
		encodeJSON(v.Identity),
		boolToInt(v.Previews), encodeJSON(v.Cost),
		v.Version, string(v.Spec), reeve.Millis(v.CreatedAt), boolToInt(v.Async), string(v.OutputSchema))
}

// GetTool returns a tool that a workspace can see. A tool of all workspaces takes precedence over a tool of the
// workspace with the same id.
func (s Agents) GetTool(ctx context.Context, workspace, id string) (reeve.Tool, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanTool, `SELECT `+toolColumns+` FROM tools WHERE id = $2
		AND workspace_id IN ('', $1)
		ORDER BY CASE WHEN workspace_id = '' THEN 0 ELSE 1 END LIMIT 1`, workspace, id)
	if err == nil && !ok {
		err = notFound("tool", id)
	}
	return v, err
}

const selectTools = `SELECT ` + toolColumns + ` FROM tools WHERE workspace_id IN ('', $1) AND ($2 = '' OR category = $2)
	ORDER BY category, name, id, workspace_id`

// ListTools returns the tools that a workspace can see, ordered by category, then name. An empty category means all.
func (s Agents) ListTools(ctx context.Context, workspace, category string) ([]reeve.Tool, error) {
	return queryAll(ctx, s.Snap, scanTool, selectTools, workspace, category)
}

// Catalogue is ListTools of all categories for the gate. It skips corrupt rows, because the gate serves all agents of
// the workspace.
func (s Agents) Catalogue(ctx context.Context, workspace string) ([]reeve.Tool, error) {
	return queryAll(ctx, s.Snap, skipCorrupt(s.Snap, scanTool, nil), selectTools, workspace, "")
}

// ShadowedTools returns the workspace tools that have the same id as a tool of all workspaces. Only WorkspaceID and ID
// are set.
func (s Agents) ShadowedTools(ctx context.Context) ([]reeve.Tool, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (t reeve.Tool, err error) {
		err = r.Scan(&t.WorkspaceID, &t.ID)
		return t, err
	}, `SELECT workspace_id, id FROM tools WHERE workspace_id <> '' AND id IN (SELECT id FROM tools
		WHERE workspace_id = '') ORDER BY workspace_id, id`)
}

// DeleteTool deletes a workspace's own tool and its attachments, and increments the workspace's revision.
func (t AgentsTx) DeleteTool(ctx context.Context, workspace, id string) error {
	t.tx.Announce(workspace, TopicTools, "", "")
	if err := t.tx.IncrementRevision(ctx, workspace); err != nil {
		return err
	}
	n, err := t.tx.execCount(ctx, `DELETE FROM tools WHERE workspace_id = $1 AND id = $2`, workspace, id)
	if err == nil && n == 0 {
		return notFound("tool", id)
	}
	return err
}
