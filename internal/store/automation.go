package store

import (
	"context"
	"time"

	"reeve"
)

const selectAutomation = `SELECT m.agent_id, m.workspace_id, a.name, m.owner, m.script_id, COALESCE(s.major, 0),
	COALESCE(s.minor, 0), m.paused_at, m.paused_run, m.created_at, m.updated_at,
	COALESCE(t.class, ''), COALESCE(t.code, ''), COALESCE(t.message, ''), COALESCE(t.run_id, ''),
	COALESCE(t.root_id, ''), COALESCE(t.tries, 0), COALESCE(t.fixes, 0), COALESCE(t.retry_at, 0),
	COALESCE(t.retry_key, ''), COALESCE(t.stopped_at, 0), COALESCE(t.script_job_id, ''), COALESCE(t.updated_at, 0)
	FROM automations m JOIN agents a ON a.id = m.agent_id LEFT JOIN scripts s ON s.id = m.script_id
	LEFT JOIN automation_failures t ON t.agent_id = m.agent_id `

func scanAutomation(r scanner) (m reeve.Automation, err error) {
	defer wrapCorrupt("automations", &m.AgentID, &err)
	var v reeve.ScriptVersion
	var paused, created, updated, retry, stopped, changed int64
	t := reeve.FailureState{}
	err = r.Scan(&m.AgentID, &m.WorkspaceID, &m.Name, &m.Owner, &m.ScriptID, &v.Major, &v.Minor, &paused, &m.PausedRun,
		&created, &updated,
		&t.Class, &t.Code, &t.Message, &t.RunID, &t.RootID, &t.NetworkFailures, &t.Repairs, &retry, &t.RetryKey,
		&stopped, &t.ScriptJobID, &changed)
	if m.ScriptID != "" {
		m.Version = v.Version()
	}
	m.PausedAt, m.CreatedAt, m.UpdatedAt = timeOrNil(paused), reeve.FromMillis(created), reeve.FromMillis(updated)
	if t.RunID != "" {
		t.AgentID, t.WorkspaceID, t.RetryAt, t.StoppedAt, t.UpdatedAt = m.AgentID, m.WorkspaceID, timeOrNil(retry),
			timeOrNil(stopped), reeve.FromMillis(changed)
		m.Failure = &t
	}
	return m.WithStatus(), err
}

// PutAutomation makes an agent an automation, or updates its active version and whether it is paused.
func (t AutomationsTx) PutAutomation(ctx context.Context, m reeve.Automation) error {
	t.tx.Announce(m.WorkspaceID, TopicAutomations, m.AgentID, "")
	return t.tx.exec(ctx, `INSERT INTO automations (agent_id, workspace_id, script_id, paused_at, paused_run, owner,
		created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $7, $6, $6)
		ON CONFLICT (agent_id) DO UPDATE SET script_id = $3, paused_at = $4, paused_run = $5, updated_at = $6`,
		m.AgentID, m.WorkspaceID, m.ScriptID, millisOrZero(m.PausedAt), m.PausedRun, reeve.Millis(t.now), m.Owner)
}

// LockAutomation returns an automation by its agent's id or name. It keeps others from changing the automation or
// adding versions until the transaction ends.
func (t AutomationsTx) LockAutomation(ctx context.Context, workspace, id string) (reeve.Automation, error) {
	m, err := t.GetAutomation(ctx, workspace, id)
	if err != nil {
		return m, err
	}
	if err := t.tx.exec(ctx, `UPDATE automations SET updated_at = $2 WHERE agent_id = $1`, m.AgentID,
		reeve.Millis(t.now)); err != nil {
		return m, err
	}
	return t.GetAutomation(ctx, workspace, m.AgentID) // the row may have changed before the update locked it
}

// RecordPausedRun stores the last run that a pause ended. A run that the pause kept from starting does not replace a
// run that was in progress. It returns false if the automation is no longer paused.
func (t AutomationsTx) RecordPausedRun(ctx context.Context, agent, run string) (bool, error) {
	n, err := t.tx.execCount(ctx, `UPDATE automations SET paused_run = CASE WHEN EXISTS (SELECT 1 FROM runs a, runs b
		WHERE a.id = paused_run AND a.started_at < paused_at AND b.id = $2 AND b.started_at >= paused_at)
		THEN paused_run ELSE $2 END WHERE agent_id = $1 AND paused_at > 0`, agent, run)
	return n == 1, err
}

// isHeldRun is the condition that a pause ended a run, or kept it from starting, and that the run was not resumed
// since. $2 is the lowest run id to consider.
const isHeldRun = `r.agent_id = $1 AND r.id >= $2 AND r.state = 'paused' AND r.output = 'paused'
	AND substr(r.session_id, 1, 5) <> 'step:'`

// RunsHeldByPause returns the runs that a pause held, oldest first. Of several runs with the same input and type it
// returns the last one. It leaves out runs that are equivalent to the recorded paused run.
func (s Automations) RunsHeldByPause(ctx context.Context, m reeve.Automation) ([]string, error) {
	return queryAll(ctx, s.Snap, scanValue[string], `SELECT max(r.id) FROM runs r JOIN script_runs q
		ON q.run_key = r.run_key WHERE `+isHeldRun+`
		AND NOT EXISTS (SELECT 1 FROM runs a JOIN script_runs b ON b.run_key = a.run_key WHERE a.id = $3
		AND a.input = r.input AND b.type = q.type AND b.plan_of = q.plan_of)
		GROUP BY r.input, q.type, q.plan_of ORDER BY 1`, m.AgentID, runIDDayBefore(*m.PausedAt), m.PausedRun)
}

// ClearHeldRuns marks all runs that a pause held as resumed.
func (t AutomationsTx) ClearHeldRuns(ctx context.Context, m reeve.Automation) error {
	return firstError(t.tx.exec(ctx, `UPDATE runs AS r SET output = 'resumed' WHERE `+isHeldRun, m.AgentID,
		runIDDayBefore(*m.PausedAt)), t.ClearHeldRun(ctx, m.PausedRun))
}

// ClearHeldRun marks one run that a pause held as resumed.
func (t AutomationsTx) ClearHeldRun(ctx context.Context, run string) error {
	return t.tx.exec(ctx, `UPDATE runs SET output = 'resumed' WHERE id = $1 AND state = 'paused' AND output = 'paused'`,
		run)
}

// runIDDayBefore returns an id that is lower than the ids of all runs that started later than a day before at.
func runIDDayBefore(at time.Time) string {
	var ids reeve.IDs
	return reeve.LowestIDAt(reeve.PrefixRun, ids.New(reeve.PrefixRun, at.Add(-24*time.Hour)))
}

// GetAutomation returns an automation of a workspace, by its agent's id or name.
func (s Automations) GetAutomation(ctx context.Context, workspace, id string) (reeve.Automation, error) {
	m, ok, err := queryOne(ctx, s.Snap, scanAutomation, selectAutomation+`WHERE m.workspace_id = $1 AND (a.id = $2
		OR a.name = $2)
		ORDER BY CASE WHEN a.id = $2 THEN 0 ELSE 1 END LIMIT 1`, workspace, id)
	if err == nil && !ok {
		err = notFound("automation", id)
	}
	return m, err
}

// IsAutomation reports whether an agent's brain is a script.
func (s Automations) IsAutomation(ctx context.Context, agent string) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT agent_id FROM automations WHERE agent_id = $1`,
		agent)
	return ok, err
}

// ScriptAgents returns which of the agents have a script as their brain.
func (s Automations) ScriptAgents(ctx context.Context, agents []string) (map[string]bool, error) {
	var list []string
	err := firstError(s.queueAutomations(ctx, &list, agents), s.flush(ctx))
	return toSet(list), err
}

func (s Automations) queueAutomations(ctx context.Context, into *[]string, agents []string) error {
	return queueQueryIn(ctx, s.Snap, scanValue[string], into, `SELECT agent_id FROM automations WHERE agent_id IN (?)`,
		agents)
}

// IsPaused reports whether an automation is paused.
func (s Automations) IsPaused(ctx context.Context, agent string) (bool, error) {
	at, _, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT paused_at FROM automations WHERE agent_id = $1`,
		agent)
	return at > 0, err
}

// ListAutomations returns a page of a workspace's automations, ordered by name, after a name.
func (s Automations) ListAutomations(ctx context.Context, workspace, after string,
	limit int) ([]reeve.Automation, error) {
	return queryAll(ctx, s.Snap, scanAutomation, selectAutomation+
		`WHERE m.workspace_id = $1 AND a.name > $2 ORDER BY a.name LIMIT $3`, workspace, after, limit)
}

const scriptColumns = `id, workspace_id, agent_id, major, minor, source, language, comment, created_by, created_at,
	script_job_id, on_behalf_of`

func scanScript(r scanner) (v reeve.ScriptVersion, err error) {
	defer wrapCorrupt("scripts", &v.ID, &err)
	var created int64
	var behalf string
	if err = r.Scan(&v.ID, &v.WorkspaceID, &v.AgentID, &v.Major, &v.Minor, &v.Source, &v.Language, &v.Comment,
		&v.CreatedBy, &created, &v.ScriptJobID, &behalf); err != nil {
		return v, err
	}
	v.CreatedAt = reeve.FromMillis(created)
	v.OnBehalfOf, err = decodeDelegators(behalf)
	return v, err
}

// InsertScript inserts a script version. It fails if the version exists.
func (t AutomationsTx) InsertScript(ctx context.Context, v reeve.ScriptVersion) error {
	t.tx.Announce(v.WorkspaceID, TopicAutomations, v.AgentID, "")
	return t.tx.execMapFault(ctx, func(f Fault) error {
		if f.Kind == FaultUnique {
			return reeve.Errorf(reeve.AlreadyExists, "version %s already exists", v.Version()).
				Hintf("another version was saved at the same time; save again")
		}
		return nil
	}, `INSERT INTO scripts (`+scriptColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		v.ID, v.WorkspaceID, v.AgentID, v.Major, v.Minor, v.Source, v.Language, v.Comment, v.CreatedBy,
		reeve.Millis(t.now), v.ScriptJobID, encodeDelegators(v.OnBehalfOf))
}

// LastVersion returns the highest version or, if major is not negative, the highest version with that major number. It
// returns 0.0 if there is none.
func (s Automations) LastVersion(ctx context.Context, agent string, major int) (reeve.ScriptVersion, error) {
	v, _, err := queryOne(ctx, s.Snap, scanScript, `SELECT `+scriptColumns+
		` FROM scripts WHERE agent_id = $1 AND ($2 < 0 OR major = $2) ORDER BY major DESC, minor DESC LIMIT 1`, agent,
		major)
	return v, err
}

// GetScript returns a script version by its id.
func (s Automations) GetScript(ctx context.Context, workspace, id string) (reeve.ScriptVersion, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanScript, `SELECT `+scriptColumns+
		` FROM scripts WHERE workspace_id = $1 AND id = $2`, workspace, id)
	if err == nil && !ok {
		err = notFound("script", id)
	}
	return v, err
}

// GetVersion returns a script version of an automation by its numbers.
func (s Automations) GetVersion(ctx context.Context, agent string, major, minor int) (reeve.ScriptVersion, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanScript, `SELECT `+scriptColumns+
		` FROM scripts WHERE agent_id = $1 AND major = $2 AND minor = $3`, agent, major, minor)
	if err == nil && !ok {
		err = notFound("version", reeve.ScriptVersion{Major: major, Minor: minor}.Version())
	}
	return v, err
}

// ListVersions returns an automation's versions without their source, newest first.
func (s Automations) ListVersions(ctx context.Context, agent string, limit int) ([]reeve.ScriptVersion, error) {
	return queryAll(ctx, s.Snap, scanScript, `SELECT id, workspace_id, agent_id, major, minor, '', language, comment,
		created_by, created_at, script_job_id, on_behalf_of FROM scripts
		WHERE agent_id = $1 ORDER BY major DESC, minor DESC LIMIT $2`, agent, limit)
}
