package store

import (
	"context"

	"reeve"
)

const selectScriptRun = `SELECT q.run_key, q.run_id, q.workspace_id, q.agent_id, q.script_id, COALESCE(s.major, 0),
	COALESCE(s.minor, 0), q.type, q.plan_of, q.class, q.progress, q.log
	FROM script_runs q LEFT JOIN scripts s ON s.id = q.script_id `

func scanScriptRun(r scanner) (v reeve.ScriptRun, err error) {
	defer wrapCorrupt("script_runs", &v.RunKey, &err)
	var version reeve.ScriptVersion
	var progress string
	if err := r.Scan(&v.RunKey, &v.RunID, &v.WorkspaceID, &v.AgentID, &v.ScriptID, &version.Major, &version.Minor,
		&v.Type, &v.PlanOf, &v.Class, &progress, &v.Log); err != nil {
		return v, err
	}
	if v.ScriptID != "" {
		v.Version = version.Version()
	}
	return v, decodeJSON("progress", progress, &v.Progress)
}

// InsertScriptRun stores the type and version of a run before or when it starts. It returns false, and changes nothing,
// if the run key has a script run already.
func (t AutomationsTx) InsertScriptRun(ctx context.Context, v reeve.ScriptRun) (bool, error) {
	n, err := t.tx.execCount(ctx, `INSERT INTO script_runs (run_key, run_id, workspace_id, agent_id, script_id, type,
		plan_of, class, progress, log)
		VALUES ($1, $2, $3, $4, $5, $6, $7, '', '', '') ON CONFLICT (run_key) DO NOTHING`, v.RunKey, v.RunID,
		v.WorkspaceID, v.AgentID, v.ScriptID, string(v.Type), v.PlanOf)
	return n == 1, err
}

// LockScriptRun locks a script run until the transaction ends.
func (t AutomationsTx) LockScriptRun(ctx context.Context, key string) error {
	return t.tx.exec(ctx, `UPDATE script_runs SET type = type WHERE run_key = $1`, key)
}

// BeginScriptRun stores the id of the run and its version, unless a version is stored already.
func (t AutomationsTx) BeginScriptRun(ctx context.Context, key, run, script string) error {
	return t.tx.exec(ctx, `UPDATE script_runs SET run_id = $2, script_id = CASE WHEN script_id = '' THEN $3
		ELSE script_id END WHERE run_key = $1`, key, run, script)
}

// UpdateScriptRun stores a run's failure class, progress and log.
func (t AutomationsTx) UpdateScriptRun(ctx context.Context, v reeve.ScriptRun) error {
	return t.tx.exec(ctx, `UPDATE script_runs SET class = $2, progress = $3, log = $4 WHERE run_key = $1`, v.RunKey,
		string(v.Class), encodeJSON(v.Progress), reeve.SanitizeText(v.Log))
}

// FindScriptRun returns the script run of a run key. It returns false if there is none.
func (s Automations) FindScriptRun(ctx context.Context, key string) (reeve.ScriptRun, bool, error) {
	return queryOne(ctx, s.Snap, scanScriptRun, selectScriptRun+`WHERE q.run_key = $1`, key)
}

// FindScriptRuns returns the script runs of several run keys by key, and which of the agents have a script as their
// brain. It takes one round trip.
func (s Automations) FindScriptRuns(ctx context.Context,
	keys, agents []string) (runs map[string]reeve.ScriptRun, scripted map[string]bool, err error) {
	if len(keys) == 0 {
		return nil, nil, nil
	}
	var list []reeve.ScriptRun
	var automations []string
	err = firstError(queueQueryIn(ctx, s.Snap, scanScriptRun, &list, selectScriptRun+`WHERE q.run_key IN (?)`, keys),
		s.queueAutomations(ctx, &automations, agents), s.flush(ctx))
	runs = make(map[string]reeve.ScriptRun, len(list))
	for _, v := range list {
		runs[v.RunKey] = v
	}
	return runs, toSet(automations), err
}

const scriptRunOf = selectScriptRun + `WHERE q.workspace_id = $1 AND q.run_id = $2 AND q.run_id <> ''`

// FindScriptRunOf returns the script run of a run. It returns false if there is none.
func (s Automations) FindScriptRunOf(ctx context.Context, workspace, run string) (reeve.ScriptRun, bool, error) {
	return queryOne(ctx, s.Snap, scanScriptRun, scriptRunOf, workspace, run)
}

// FindApplied returns the script run that applies, or has applied, a plan. It returns false if there is none.
func (s Automations) FindApplied(ctx context.Context, workspace, plan string) (reeve.ScriptRun, bool, error) {
	return queryOne(ctx, s.Snap, scanScriptRun, selectScriptRun+
		`WHERE q.workspace_id = $1 AND q.plan_of = $2 AND q.plan_of <> '' ORDER BY q.run_key LIMIT 1`, workspace, plan)
}

// DeletePlannedCalls deletes the planned calls of a dry run.
func (t AutomationsTx) DeletePlannedCalls(ctx context.Context, run string) error {
	return t.tx.exec(ctx, `DELETE FROM planned_calls WHERE run_id = $1`, run)
}

// InsertPlannedCall inserts or replaces a planned call of a dry run. It can be repeated after an uncertain commit.
func (t AutomationsTx) InsertPlannedCall(ctx context.Context, workspace, run string, c reeve.PlannedCall) error {
	return t.tx.exec(ctx, `INSERT INTO planned_calls (run_id, ordinal, workspace_id, item_id, title, attempt, tool,
		args, preview, base, operation_id, depends_on)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (run_id, ordinal) DO UPDATE SET item_id = $4,
		title = $5, attempt = $6, tool = $7, args = $8,
			preview = $9, base = $10, operation_id = $11, depends_on = $12`,
		run, c.Ordinal, workspace, c.ItemID, c.Title, c.Attempt, c.Tool, reeve.SanitizeText(c.Args),
		reeve.SanitizeText(c.Preview), c.Base, c.Operation, encodeJSON(c.DependsOn))
}

// ListPlannedCalls returns the planned calls of a dry run after an ordinal, in order, with the outcome of their
// operations.
func (s Automations) ListPlannedCalls(ctx context.Context, workspace, run string,
	after, limit int) ([]reeve.PlannedCall, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (c reeve.PlannedCall, err error) {
		defer wrapCorrupt("planned_calls", &c.ItemID, &err)
		var depends string
		if err := r.Scan(&c.Ordinal, &c.ItemID, &c.Title, &c.Attempt, &c.Tool, &c.Args, &c.Preview, &c.Base,
			&c.Operation, &c.State, &c.Code, &c.Message, &depends); err != nil {
			return c, err
		}
		return c, decodeJSONStrict("depends_on", depends, &c.DependsOn)
	}, `SELECT p.ordinal, p.item_id, p.title, p.attempt, p.tool, p.args, p.preview, p.base, p.operation_id,
		COALESCE(o.state, ''), COALESCE(o.code, ''), COALESCE(o.message, ''), p.depends_on
		FROM planned_calls p LEFT JOIN calls o ON o.operation_id = p.operation_id WHERE p.workspace_id = $1
		AND p.run_id = $2 AND p.ordinal > $3 ORDER BY p.ordinal LIMIT $4`,
		workspace, run, after, limit)
}
