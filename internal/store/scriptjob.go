package store

import (
	"context"

	"reeve"
)

const selectScriptJob = `SELECT k.id, k.workspace_id, k.kind, k.agent_id, COALESCE(a.name, ''), k.worker_id,
	k.script_id, COALESCE(s.major, 0), COALESCE(s.minor, 0), k.run_id, k.run_key, k.user_id, k.request,
	k.state, k.question, k.talk, k.result_id, COALESCE(v.major, 0), COALESCE(v.minor, 0), k.timer_id, k.message,
	k.tries, k.created_at, k.closed_at
	FROM script_jobs k LEFT JOIN agents a ON a.id = k.agent_id LEFT JOIN scripts s ON s.id = k.script_id
	LEFT JOIN scripts v ON v.id = k.result_id `

func scanScriptJob(r scanner) (k reeve.ScriptJob, err error) {
	defer wrapCorrupt("script_jobs", &k.ID, &err)
	var was, is reeve.ScriptVersion
	var talk string
	var created, closed int64
	if err := r.Scan(&k.ID, &k.WorkspaceID, &k.Kind, &k.AgentID, &k.Automation, &k.WorkerID, &k.ScriptID, &was.Major,
		&was.Minor, &k.RunID, &k.RunKey, &k.UserID, &k.Request,
		&k.State, &k.Question, &talk, &k.ResultID, &is.Major, &is.Minor, &k.TimerID, &k.Message, &k.Restarts, &created,
		&closed); err != nil {
		return k, err
	}
	if k.ScriptID != "" {
		k.Version = was.Version()
	}
	if k.ResultID != "" {
		k.Result = is.Version()
	}
	k.CreatedAt, k.ClosedAt = reeve.FromMillis(created), timeOrNil(closed)
	return k, decodeJSON("talk", talk, &k.Exchanges)
}

// InsertScriptJob inserts a script job. It returns false if there is a repair job for this version already.
func (t AutomationsTx) InsertScriptJob(ctx context.Context, k reeve.ScriptJob) (bool, error) {
	t.tx.announceInbox(k.WorkspaceID, TopicScriptJobs, k.ID, "")
	n, err := t.tx.execCount(ctx, `INSERT INTO script_jobs (id, workspace_id, kind, agent_id, worker_id, script_id,
		run_id, run_key, user_id, request, state, question, talk, result_id, timer_id, message, tries,
			created_at, closed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '', '', '', '', '', 0, $12, 0)
			ON CONFLICT DO NOTHING`,
		k.ID, k.WorkspaceID, string(k.Kind), k.AgentID, k.WorkerID, k.ScriptID, k.RunID, k.RunKey, k.UserID,
		reeve.SanitizeText(k.Request), string(k.State), reeve.Millis(t.now))
	return n == 1, err
}

// TransitionScriptJob updates a script job. It returns false if the job is no longer in the state was.
func (t AutomationsTx) TransitionScriptJob(ctx context.Context, was reeve.ScriptJobState,
	k reeve.ScriptJob) (bool, error) {
	t.tx.announceInbox(k.WorkspaceID, TopicScriptJobs, k.ID, "")
	var closed int64
	if k.State.IsFinal() {
		closed = reeve.Millis(t.now)
	}
	n, err := t.tx.execCount(ctx,
		`UPDATE script_jobs SET run_key = $3, state = $4, question = $5, talk = $6, result_id = $7, timer_id = $8,
			message = $9, tries = $10, closed_at = $11, worker_id = $12 WHERE id = $1 AND state = $2`,
		k.ID, string(was), k.RunKey, string(k.State), reeve.SanitizeText(k.Question), encodeJSON(k.Exchanges),
		k.ResultID,
		k.TimerID, reeve.SanitizeText(k.Message), k.Restarts, closed, k.WorkerID)
	return n == 1, err
}

// GetScriptJob returns a script job of a workspace.
func (s Automations) GetScriptJob(ctx context.Context, workspace, id string) (reeve.ScriptJob, error) {
	k, ok, err := queryOne(ctx, s.Snap, scanScriptJob, selectScriptJob+`WHERE k.workspace_id = $1 AND k.id = $2`,
		workspace,
		id)
	if err == nil && !ok {
		err = notFound("script job", id)
	}
	return k, err
}

// FindScriptJobOfRun returns the script job that a run works on. It returns false if there is none.
func (s Automations) FindScriptJobOfRun(ctx context.Context, workspace, run string) (reeve.ScriptJob, bool, error) {
	return queryOne(ctx, s.Snap, scanScriptJob, selectScriptJob+
		`JOIN runs r ON r.run_key = k.run_key WHERE k.workspace_id = $1 AND r.id = $2`, workspace, run)
}

// ListScriptJobs returns an automation's script jobs, newest first. If user is not empty, it returns only the user's
// jobs and those without a user.
func (s Automations) ListScriptJobs(ctx context.Context, agent, user string, limit int) ([]reeve.ScriptJob, error) {
	return queryAll(ctx, s.Snap, scanScriptJob, selectScriptJob+
		`WHERE k.agent_id = $1 AND ($3 = '' OR k.user_id = '' OR k.user_id = $3) ORDER BY k.id DESC LIMIT $2`, agent,
		limit, user)
}

// ScriptJobsAwaitingAnswer returns a workspace's script jobs that wait for an answer, newest first. If user is not
// empty, it returns only the user's jobs and those without a user.
func (s Automations) ScriptJobsAwaitingAnswer(ctx context.Context, workspace, user string,
	limit int) ([]reeve.ScriptJob, error) {
	return queryAll(ctx, s.Snap, scanScriptJob, selectScriptJob+`WHERE k.workspace_id = $1 AND k.state = 'asking'
		AND ($3 = '' OR k.user_id = '' OR k.user_id = $3)
		ORDER BY k.id DESC LIMIT $2`, workspace, limit, user)
}

// LastPlan returns an automation's newest plan job. It returns false if there is none.
func (s Automations) LastPlan(ctx context.Context, agent string) (reeve.ScriptJob, bool, error) {
	return queryOne(ctx, s.Snap, scanScriptJob, selectScriptJob+
		`WHERE k.agent_id = $1 AND k.kind = 'plan' ORDER BY k.id DESC LIMIT 1`, agent)
}

// LastSavedPlan returns an automation's newest plan job that saved a version. It returns false if there is none.
func (s Automations) LastSavedPlan(ctx context.Context, agent string) (reeve.ScriptJob, bool, error) {
	return queryOne(ctx, s.Snap, scanScriptJob, selectScriptJob+
		`WHERE k.agent_id = $1 AND k.kind = 'plan' AND k.result_id <> '' ORDER BY k.id DESC LIMIT 1`, agent)
}

// PlannedTimers returns the ids of the active timers that an automation's plan jobs created.
func (s Automations) PlannedTimers(ctx context.Context, agent string) ([]string, error) {
	return queryAll(ctx, s.Snap, scanValue[string],
		`SELECT t.id FROM script_jobs k JOIN timers t ON t.id = k.timer_id WHERE k.agent_id = $1 AND k.timer_id <> ''
			AND t.state = 'active' ORDER BY t.id`, agent)
}

// OpenScriptJobs returns an automation's script jobs that are not finished.
func (s Automations) OpenScriptJobs(ctx context.Context, agent string) ([]reeve.ScriptJob, error) {
	return queryAll(ctx, s.Snap, scanScriptJob, selectScriptJob+
		`WHERE k.agent_id = $1 AND k.state IN ('open', 'asking') ORDER BY k.id`, agent)
}

// FindAgentOfKind returns the oldest agent of a kind that is not destroyed. It returns false if there is none.
func (s Automations) FindAgentOfKind(ctx context.Context, workspace, kind string) (reeve.Agent, bool, error) {
	return queryOne(ctx, s.Snap, scanAgent, `SELECT `+agentColumns+
		` FROM agents WHERE workspace_id = $1 AND kind = $2 AND lifecycle <> 'destroyed' ORDER BY created_at,
			id LIMIT 1`, workspace, kind)
}
