package store

import (
	"context"

	"reeve"
)

// FindTrouble reads what an automation's failures have led to; false means that it is well.
func (s Runs) FindTrouble(ctx context.Context, agent string) (reeve.Trouble, bool, error) {
	return one(ctx, s.Snap, func(r scanner) (t reeve.Trouble, err error) {
		var retry, stopped, updated int64
		err = r.Scan(&t.AgentID, &t.WorkspaceID, &t.Class, &t.Code, &t.Message, &t.RunID, &t.RootID, &t.Tries, &t.Fixes, &retry, &t.RetryKey, &stopped, &t.ErrandID, &updated)
		t.RetryAt, t.StoppedAt, t.UpdatedAt = optional(retry), optional(stopped), reeve.FromMillis(updated)
		return t, err
	}, `SELECT agent_id, workspace_id, class, code, message, run_id, root_id, tries, fixes, retry_at, retry_key, stopped_at, errand_id, updated_at FROM troubles WHERE agent_id = $1`, agent)
}

// PutTrouble writes it.
func (t RunsTx) PutTrouble(ctx context.Context, v reeve.Trouble) error {
	return t.tx.exec(ctx, `INSERT INTO troubles (agent_id, workspace_id, class, code, message, run_id, root_id, tries, fixes, retry_at, retry_key, stopped_at, errand_id, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (agent_id) DO UPDATE SET class = $3, code = $4, message = $5, run_id = $6, root_id = $7, tries = $8, fixes = $9, retry_at = $10, retry_key = $11, stopped_at = $12,
			errand_id = $13, updated_at = $14`,
		v.AgentID, v.WorkspaceID, string(v.Class), string(v.Code), reeve.Clean(v.Message), v.RunID, v.RootID, v.Tries, v.Fixes, orZero(v.RetryAt), v.RetryKey, orZero(v.StoppedAt), v.ErrandID, reeve.Millis(t.now))
}

// DropTrouble notes that an automation is well.
func (t RunsTx) DropTrouble(ctx context.Context, agent string) error {
	return t.tx.exec(ctx, `DELETE FROM troubles WHERE agent_id = $1`, agent)
}

// SkipRetries ends the queued wakes that would make an automation's failed runs again.
func (t RunsTx) SkipRetries(ctx context.Context, workspace, agent, why string) error {
	return t.tx.exec(ctx, `UPDATE wakes SET state = 'skipped', why = $3 WHERE workspace_id = $1 AND agent_id = $2 AND state = 'queued' AND reason = 'retry'`, workspace, agent, why)
}

// NeedsAttention tells whether a run left an item that a person must decide on.
func (s Runs) NeedsAttention(ctx context.Context, agent, run string) (bool, error) {
	_, ok, err := one(ctx, s.Snap, value[string], `SELECT item_id FROM items WHERE agent_id = $1 AND last_run = $2 AND state = 'needs_attention' LIMIT 1`, agent, run)
	return ok, err
}

// Tried tells whether a dry run or a test of a version has completed.
func (s Runs) Tried(ctx context.Context, agent, script string) (bool, error) {
	_, ok, err := one(ctx, s.Snap, value[string], `SELECT r.id FROM script_runs q JOIN runs r ON r.id = q.run_id WHERE q.agent_id = $1 AND q.script_id = $2 AND q.type IN ('dry', 'test')
		AND r.state = 'completed' LIMIT 1`, agent, script)
	return ok, err
}
