package store

import (
	"context"

	"reeve"
)

const runColumns = `id, run_key, workspace_id, agent_id, reason, reason_id, session_id, user_id, input, origins, thread_id, state, output, code, message,
	wakes, attempts, spent, owner, scheduled_at, started_at, finished_at`

func scanRun(r scanner) (v reeve.Run, err error) {
	var origins, spent string
	var scheduled, started, finished int64
	if err := r.Scan(&v.ID, &v.Key, &v.WorkspaceID, &v.AgentID, &v.Reason, &v.ReasonID, &v.SessionID, &v.UserID, &v.Input, &origins, &v.ThreadID,
		&v.State, &v.Output, &v.Code, &v.Message, &v.Wakes, &v.Attempts, &spent, &v.Owner, &scheduled, &started, &finished); err != nil {
		return v, err
	}
	v.Origins, v.ScheduledAt, v.StartedAt, v.FinishedAt = splitOrigins(origins), optional(scheduled), reeve.FromMillis(started), optional(finished)
	return v, fromText(spent, &v.Spent)
}

// InsertRun writes a run and makes it its agent's one: false means that the agent runs already.
func (t *Tx) InsertRun(ctx context.Context, v reeve.Run) (bool, error) {
	if err := t.exec(ctx, `INSERT INTO agent_runtimes (agent_id, active_run, failures, last_run_at) VALUES ($1, '', 0, 0) ON CONFLICT (agent_id) DO NOTHING`,
		v.AgentID); err != nil {
		return false, err
	}
	n, err := t.affect(ctx, `UPDATE agent_runtimes SET active_run = $2 WHERE agent_id = $1 AND active_run = ''`, v.AgentID, v.ID)
	if err != nil || n == 0 {
		return false, err
	}
	return true, t.exec(ctx, `INSERT INTO runs (`+runColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, '', '', '', $13, 1, '', $14, $15, $16, 0)`,
		v.ID, v.Key, v.WorkspaceID, v.AgentID, string(v.Reason), v.ReasonID, v.SessionID, v.UserID, v.Input, joinOrigins(v.Origins), v.ThreadID,
		string(reeve.RunRunning), v.Wakes, v.Owner, orZero(v.ScheduledAt), reeve.Millis(t.now))
}

// MoveRun takes a run from one state to another, provided it is still in the state and hands it was read in. A run that ends
// frees its agent.
func (t *Tx) MoveRun(ctx context.Context, was, is reeve.Run) error {
	if was.State != is.State {
		if err := was.State.To(is.State); err != nil {
			return err
		}
	}
	n, err := t.affect(ctx, `UPDATE runs SET state = $4, output = $5, code = $6, message = $7, attempts = $8, spent = $9, owner = $10, finished_at = $11
		WHERE id = $1 AND state = $2 AND owner = $3`,
		is.ID, string(was.State), was.Owner, string(is.State), is.Output, string(is.Code), is.Message, is.Attempts, spentText(is.Spent), is.Owner, orZero(is.FinishedAt))
	if err != nil {
		return err
	}
	if n == 0 {
		return reeve.Errorf(reeve.Conflict, "run %s is no longer %s", is.ID, was.State)
	}
	if !is.State.Final() {
		return nil
	}
	failed := 0
	if is.State == reeve.RunFailed {
		failed = 1
	}
	return t.exec(ctx, `UPDATE agent_runtimes SET active_run = '', last_run_at = $3, failures = CASE WHEN $4 = 1 THEN failures + 1 ELSE 0 END
		WHERE agent_id = $1 AND active_run = $2`, is.AgentID, is.ID, reeve.Millis(t.now), failed)
}

// GetRun reads a run of a workspace.
func (s *Snap) GetRun(ctx context.Context, workspace, id string) (reeve.Run, error) {
	v, ok, err := one(ctx, s, scanRun, `SELECT `+runColumns+` FROM runs WHERE id = $2 AND workspace_id = $1`, workspace, id)
	if err == nil && !ok {
		err = notFound("run", id)
	}
	return v, err
}

// RunFilter narrows a list of runs. Empty fields do not.
type RunFilter struct {
	Agent    string
	ReasonID string // a timer or subscription
	State    reeve.RunState
	Before   string // a run's id
	Limit    int
}

// ListRuns reads a page of runs, newest first.
func (s *Snap) ListRuns(ctx context.Context, workspace string, f RunFilter) ([]reeve.Run, error) {
	return all(ctx, s, scanRun, `SELECT `+runColumns+` FROM runs WHERE workspace_id = $1 AND ($2 = '' OR agent_id = $2) AND ($3 = '' OR reason_id = $3)
		AND ($4 = '' OR state = $4) AND ($5 = '' OR id < $5) ORDER BY id DESC LIMIT $6`, workspace, f.Agent, f.ReasonID, string(f.State), f.Before, f.Limit)
}

// ClaimRuns takes up to n runs that nobody works on any more, for a process: those of processes that are gone, and parked
// ones none of whose calls waits for a person now.
func (t *Tx) ClaimRuns(ctx context.Context, process string, n int) ([]reeve.Run, error) {
	return all(ctx, &t.Snap, scanRun, `WITH open_runs AS MATERIALIZED (
			SELECT id FROM runs WHERE state IN ('running', 'parked') AND (
				(state = 'running' AND owner NOT IN (SELECT id FROM processes))
				OR (state = 'parked' AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.run_id = runs.id AND o.run_id <> ''
					AND (o.state IN ('parked', 'prepared', 'dispatched') OR (o.state = 'unknown' AND o.resolution = '')))))
			ORDER BY id LIMIT $2`+t.db.engine.Lock()+`)
		UPDATE runs SET owner = $1, state = 'running', attempts = attempts + 1 WHERE id IN (SELECT id FROM open_runs) RETURNING `+runColumns, process, n)
}

// Runtime reads how an agent is on this node.
func (s *Snap) Runtime(ctx context.Context, agent string) (reeve.AgentRuntime, error) {
	r, _, err := one(ctx, s, func(r scanner) (a reeve.AgentRuntime, err error) {
		var last int64
		err = r.Scan(&a.ActiveRun, &a.Failures, &last)
		a.LastRunAt = optional(last)
		return a, err
	}, `SELECT active_run, failures, last_run_at FROM agent_runtimes WHERE agent_id = $1`, agent)
	r.AgentID = agent
	return r, err
}

// RunSpent sums what a run's operations cost.
func (s *Snap) RunSpent(ctx context.Context, run string) (sum reeve.Amount, err error) {
	list, err := all(ctx, s, value[string], `SELECT spent FROM operations WHERE run_id = $1 AND run_id <> ''`, run)
	for _, text := range list {
		var a reeve.Amount
		if err := fromText(text, &a); err != nil {
			return sum, err
		}
		sum.Calls, sum.Tokens, sum.Micros, sum.Millis = sum.Calls+a.Calls, sum.Tokens+a.Tokens, sum.Micros+a.Micros, sum.Millis+a.Millis
	}
	return sum, err
}
