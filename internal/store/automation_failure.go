package store

import (
	"context"

	"reeve"
)

// FindFailure returns an automation's failure state. It returns false if its last run did not fail.
func (s Runs) FindFailure(ctx context.Context, agent string) (reeve.FailureState, bool, error) {
	return queryOne(ctx, s.Snap, func(r scanner) (t reeve.FailureState, err error) {
		var retry, stopped, updated int64
		err = r.Scan(&t.AgentID, &t.WorkspaceID, &t.Class, &t.Code, &t.Message, &t.RunID, &t.RootID, &t.NetworkFailures,
			&t.Repairs, &retry, &t.RetryKey, &stopped, &t.ScriptJobID, &updated)
		t.RetryAt, t.StoppedAt, t.UpdatedAt = timeOrNil(retry), timeOrNil(stopped), reeve.FromMillis(updated)
		return t, err
	}, `SELECT agent_id, workspace_id, class, code, message, run_id, root_id, tries, fixes, retry_at, retry_key,
		stopped_at, script_job_id, updated_at FROM automation_failures WHERE agent_id = $1`, agent)
}

// PutFailure stores an automation's failure state.
func (t RunsTx) PutFailure(ctx context.Context, v reeve.FailureState) error {
	t.tx.Announce(v.WorkspaceID, TopicAutomations, v.AgentID, "")
	t.tx.Announce(v.WorkspaceID, TopicInbox, "", "")
	return t.tx.exec(ctx, `INSERT INTO automation_failures (agent_id, workspace_id, class, code, message, run_id,
		root_id, tries, fixes, retry_at, retry_key, stopped_at, script_job_id, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (agent_id) DO UPDATE SET class = $3, code = $4, message = $5, run_id = $6, root_id = $7, tries = $8,
		fixes = $9, retry_at = $10, retry_key = $11, stopped_at = $12,
			script_job_id = $13, updated_at = $14`,
		v.AgentID, v.WorkspaceID, string(v.Class), string(v.Code), reeve.SanitizeText(v.Message), v.RunID, v.RootID,
		v.NetworkFailures, v.Repairs, millisOrZero(v.RetryAt), v.RetryKey, millisOrZero(v.StoppedAt), v.ScriptJobID,
		reeve.Millis(t.now))
}

// DeleteFailure clears an automation's failure state.
func (t RunsTx) DeleteFailure(ctx context.Context, agent string) error {
	t.tx.Announce("", TopicAutomations, "", "")
	t.tx.Announce("", TopicInbox, "", "")
	return t.tx.exec(ctx, `DELETE FROM automation_failures WHERE agent_id = $1`, agent)
}

// SkipRetries skips the queued wakes that would retry an automation's failed runs.
func (t RunsTx) SkipRetries(ctx context.Context, workspace, agent, why string) error {
	return t.tx.exec(ctx, `UPDATE wakes SET state = 'skipped', why = $3 WHERE workspace_id = $1 AND agent_id = $2
		AND state = 'queued' AND reason = 'retry'`, workspace, agent, why)
}

// HasItemNeedingAttention reports whether a run left an item that needs attention.
func (s Runs) HasItemNeedingAttention(ctx context.Context, agent, run string) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, scanValue[string],
		`SELECT item_id FROM items WHERE agent_id = $1 AND last_run = $2 AND state = 'needs_attention' LIMIT 1`, agent,
		run)
	return ok, err
}

// IsTested reports whether a dry run or a test of a script version has completed.
func (s Runs) IsTested(ctx context.Context, agent, script string) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT r.id FROM script_runs q JOIN runs r
		ON r.id = q.run_id WHERE q.agent_id = $1 AND q.script_id = $2 AND q.type IN ('dry', 'test')
		AND r.state = 'completed' LIMIT 1`, agent, script)
	return ok, err
}
