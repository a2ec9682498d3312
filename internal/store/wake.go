package store

import (
	"context"
	"strings"
	"time"

	"reeve"
)

const wakeColumns = `run_key, workspace_id, agent_id, reason, reason_id, session_id, user_id, input, operation_id,
	class, name, origins,
	scheduled_at, due_at, state, why, run_id, created_at, on_behalf_of`

func scanWake(r scanner) (w reeve.Wake, err error) {
	defer wrapCorrupt("wakes", &w.RunKey, &err)
	var origins, behalf string
	var scheduled, due, created int64
	if err = r.Scan(&w.RunKey, &w.WorkspaceID, &w.AgentID, &w.Reason, &w.ReasonID, &w.SessionID, &w.UserID, &w.Input,
		&w.OperationID, &w.Token.Class,
		&w.Token.Name, &origins, &scheduled, &due, &w.State, &w.Why, &w.RunID, &created, &behalf); err != nil {
		return w, err
	}
	w.Origins, w.ScheduledAt = splitOrigins(origins), timeOrNil(scheduled)
	w.DueAt, w.CreatedAt = reeve.FromMillis(due), reeve.FromMillis(created)
	w.OnBehalfOf, err = decodeDelegators(behalf)
	return w, err
}

// joinOrigins encodes origins as ids that each end in a comma, so that SQL can search for an id and append one.
func joinOrigins(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return strings.Join(ids, ",") + ","
}

func splitOrigins(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

// Change describes a change to the workspace, by the tokens of one operation.
type Change struct {
	Workspace string
	Agent     string // the agent that made it; empty for a person
	Run       string // the run in which it was made, if any
	Operation string // identifies the change; the same on every node
	Tokens    []reeve.Token
	Window    time.Duration // how long to collect more changes before an agent is woken
}

// RecordChange inserts a change's events and a wake for each agent that subscribes to one of its tokens. A wake acts
// for the user of its subscription. There is no wake for an agent whose own work led to the change. The wakes are
// inserted by one statement without a round trip; predicates are evaluated when the window has passed.
func (t QueueTx) RecordChange(ctx context.Context, c Change) error {
	if c.Operation == "" { // a call that is not an operation and reports a change
		c.Operation = t.NewID(reeve.PrefixChange)
	}
	if err := t.tx.Ledger().InsertEvents(ctx, c.Workspace, c.Agent, c.Operation, c.Tokens); err != nil {
		return err
	}
	return t.wakeSubscribers(ctx, c.wakeValues(t.now))
}

// wakeValues returns a row for each token of a change, for wakeSubscribers.
func (c Change) wakeValues(now time.Time) [][]any {
	maker := ""
	if c.Agent != "" {
		maker = c.Agent + ","
	}
	rows := make([][]any, len(c.Tokens))
	for i, k := range c.Tokens {
		rows[i] = []any{c.Workspace, string(k.Class), k.Name, c.Operation, c.Run, maker,
			reeve.Millis(now.Add(c.Window)), reeve.Millis(now)}
	}
	return rows
}

// wakeSubscribers inserts a wake for each subscription to one of the tokens. It leaves out agents whose own work led
// to the change: removing the id of such an agent from the origins would change them.
func (t QueueTx) wakeSubscribers(ctx context.Context, rows [][]any) error {
	return t.tx.execRows(ctx, `INSERT INTO wakes (`+wakeColumns+`)
		SELECT agent_id || '/' || id || '/' || operation, workspace_id, agent_id, 'subscription', id, '', user_id, '',
		operation, class, name, origin_ids, 0, due, 'queued', '', '', now, ''
		FROM (SELECT s.*, v.column4 AS operation, v.column7 AS due, v.column8 AS now, COALESCE((SELECT origins FROM runs
		WHERE id = v.column5), '') || v.column6 AS origin_ids
			FROM (VALUES (?)) AS v CROSS JOIN subscriptions s WHERE s.workspace_id = v.column1 AND s.class = v.column2
			AND s.name = v.column3) watching
		WHERE replace(origin_ids, agent_id || ',', '') = origin_ids ON CONFLICT (run_key) DO NOTHING`,
		[]string{"TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "BIGINT", "BIGINT"}, rows)
}

// ChangeWindow is how long changes are collected before an agent is woken.
const ChangeWindow = 100 * time.Millisecond

// RecordPersonChange is RecordChange for a change that a person made; see PersonChangeID.
func (t QueueTx) RecordPersonChange(ctx context.Context, workspace string, tokens []reeve.Token,
	window time.Duration) error {
	if len(tokens) == 0 {
		return nil
	}
	id, err := t.PersonChangeID(ctx)
	if err != nil {
		return err
	}
	return t.RecordChange(ctx, Change{Workspace: workspace, Operation: id, Tokens: tokens, Window: window})
}

// InsertWake queues a wake. It returns false if a wake with its run key was queued before.
func (t QueueTx) InsertWake(ctx context.Context, w reeve.Wake) (fresh bool, err error) {
	err = t.insertWakes([]reeve.Wake{w}, func(query string, args []any) error {
		n, err := t.tx.execCount(ctx, query, args...)
		fresh = n == 1
		return err
	})
	return fresh, err
}

// InsertWakes queues wakes. It ignores those whose run keys were queued before.
func (t QueueTx) InsertWakes(ctx context.Context, list []reeve.Wake) error {
	return t.insertWakes(list, t.tx.execFunc(ctx))
}

func (t QueueTx) insertWakes(list []reeve.Wake, do func(query string, args []any) error) error {
	rows := make([][]any, len(list))
	for i, w := range list {
		rows[i] = []any{w.RunKey, w.WorkspaceID, w.AgentID, string(w.Reason), w.ReasonID, w.SessionID, w.UserID,
			w.Input, w.OperationID, string(w.Token.Class), w.Token.Name,
			joinOrigins(w.Origins), millisOrZero(w.ScheduledAt), reeve.Millis(w.DueAt), string(w.State), w.Why, "",
			reeve.Millis(t.now), encodeDelegators(w.OnBehalfOf)}
	}
	return t.tx.insertRows(`INSERT INTO wakes (`+wakeColumns+`) VALUES (?) ON CONFLICT (run_key) DO NOTHING`, rows, do)
}

// GetWake returns a wake by its run key.
func (s Queue) GetWake(ctx context.Context, key string) (reeve.Wake, error) {
	w, ok, err := queryOne(ctx, s.Snap, scanWake, `SELECT `+wakeColumns+` FROM wakes WHERE run_key = $1`, key)
	if err == nil && !ok {
		err = notFound("wake", key)
	}
	return w, err
}

// Prefixes of the session ids of wakes that are not turns. Only wakes of the same session and user are merged into one
// run.
// Sessions of schedules and steps are also lanes: runs of different schedules do not wait for each other, so that a
// slow schedule does not delay the others. All other runs of an agent share one lane.
const (
	ScheduleSession = "schedule:" // plus the timer's id; the run gets the schedule's goal
	TimerSession    = "timer:"    // plus the timer's id; the timer has no goal
	ManualSession   = "manual:"   // plus the run key
	StepSession     = "step:"     // plus the run key; a step of another run, which waits for it
	// plus the script job's id; like a schedule, its run does not wait for the agent's other work
	ScriptJobSession = "schedule:script_job:"
)

// IsStep reports whether a run is a step of another run.
func IsStep(run reeve.Run) bool { return strings.HasPrefix(run.SessionID, StepSession) }

// laneOf returns the lane of a run within its agent: the session, or "" for the lane that all other runs share. It has
// no meaning for a turn.
func laneOf(reason reeve.Reason, session string) string {
	if hasOwnLane(reason, session) {
		return session
	}
	return ""
}

// hasOwnLane reports whether a run waits only for other runs of the same session or, if it is a turn, for none.
func hasOwnLane(reason reeve.Reason, session string) bool {
	return reason == reeve.ReasonUser || strings.HasPrefix(session, ScheduleSession) || strings.HasPrefix(session,
		StepSession)
}

// Lane returns the lane of a wake. Runs of the same lane run one after another.
func Lane(w reeve.Wake) string {
	if w.Reason == reeve.ReasonUser {
		return w.RunKey
	}
	return w.AgentID + " " + laneOf(w.Reason, w.SessionID)
}

// QueuedWakes returns the queued wakes of an agent, session and user, in order of their due time, and locks them.
// Delayed wakes are left out until they are due.
func (t QueueTx) QueuedWakes(ctx context.Context, c DueAgent, limit int) ([]reeve.Wake, error) {
	return queryAll(ctx, t.Snap, skipCorrupt(t.Snap, scanWake, nil), `SELECT `+wakeColumns+` FROM wakes
		WHERE state = 'queued' AND agent_id = $1 AND session_id = $2 AND user_id = $5
		AND (tries = 0 OR due_at <= $4) ORDER BY due_at, created_at, run_key LIMIT $3`+t.db.engine.LockClause(),
		c.AgentID, c.SessionID, limit, reeve.Millis(t.now), c.UserID)
}

// DelayWake delays a wake, by twice as long each time. After the given number of tries it skips the wake.
func (t QueueTx) DelayWake(ctx context.Context, key string, first time.Duration, tries int, why string) error {
	return t.tx.exec(ctx, `UPDATE wakes SET tries = tries + 1,
		due_at = $2 + $3 * (CAST(1 AS BIGINT) << CAST(tries AS INTEGER)),
			state = CASE WHEN tries + 1 >= $4 THEN 'skipped' ELSE state END, why = CASE WHEN tries + 1 >= $4 THEN $5
			ELSE why END
		WHERE run_key = $1 AND state = 'queued'`, key, reeve.Millis(t.now), first.Milliseconds(), tries, why)
}

// LockWorkspace returns a workspace and keeps others from changing it until the transaction ends. A run that starts in
// this transaction therefore starts before the workspace is stopped, or not at all.
func (t QueueTx) LockWorkspace(ctx context.Context, id string) (reeve.Workspace, error) {
	w, ok, err := queryOne(ctx, t.Snap, scanWorkspace, `SELECT `+workspaceColumns+` FROM workspaces WHERE id = $1`+
		t.db.engine.ShareClause(), id)
	if err == nil && !ok {
		err = notFound("workspace", id)
	}
	return w, err
}

// skipWakes skips the queued wakes of an agent or, if agent is empty, of the workspace. Wakes of script jobs and
// retries stay queued. Skipping them has further consequences, which are handled when they are due.
func (t QueueTx) skipWakes(ctx context.Context, workspace, agent, why string) error {
	return t.tx.exec(ctx, `UPDATE wakes SET state = 'skipped', why = $3 WHERE state = 'queued' AND workspace_id = $1
		AND ($2 = '' OR agent_id = $2) AND reason NOT IN ('script_job', 'retry')`, workspace, agent, why)
}

// applyLifecycle applies an agent's new lifecycle to its wakes. Stopping skips its wakes. Making it dormant
// changes nothing here: each wake is skipped when it is due. Destroying also skips its
// retries, deletes its subscriptions, completes its timers and cancels its runs.
func (t QueueTx) applyLifecycle(ctx context.Context, a reeve.Agent) error {
	if a.Lifecycle != reeve.AgentDestroyed {
		if a.StoppedAt != nil {
			return t.skipWakes(ctx, a.WorkspaceID, a.ID, "the agent is stopped")
		}
		return nil
	}
	if err := firstError(t.skipWakes(ctx, a.WorkspaceID, a.ID, "the agent is destroyed"),
		t.tx.Runs().SkipRetries(ctx, a.WorkspaceID, a.ID, "the agent is destroyed")); err != nil {
		return err
	}
	timers, err := t.openTimerTokens(ctx, a.WorkspaceID, a.ID)
	if err != nil {
		return err
	}
	for _, query := range []string{
		`DELETE FROM subscriptions WHERE workspace_id = $1 AND agent_id = $2`,
		`UPDATE timers SET state = 'completed', next_at = 0 WHERE workspace_id = $1 AND agent_id = $2`,
	} {
		if err := t.tx.exec(ctx, query, a.WorkspaceID, a.ID); err != nil {
			return err
		}
	}
	if err := t.recordTimersGone(ctx, a.WorkspaceID, timers); err != nil {
		return err
	}
	return t.tx.Runs().cancelAgentRuns(ctx, a.WorkspaceID, a.ID, "the agent was destroyed")
}

// EndWakes ends queued wakes: it assigns them to a run or skips them.
func (t QueueTx) EndWakes(ctx context.Context, keys []string, state reeve.WakeState, run, why string) error {
	ends := make([]WakeEnd, len(keys))
	for i, k := range keys {
		ends[i] = WakeEnd{k, state, run, why}
	}
	return t.EndManyWakes(ctx, ends)
}

// WakeEnd is the end of a queued wake.
type WakeEnd struct {
	RunKey string
	State  reeve.WakeState
	RunID  string
	Why    string
}

// EndManyWakes ends wakes of several runs. The condition state IN ('queued', ”) does not match the partial indexes of
// the queue. With state = 'queued', PostgreSQL would read the whole queue instead of finding the wakes by their keys.
func (t QueueTx) EndManyWakes(ctx context.Context, ends []WakeEnd) error {
	rows := make([][]any, len(ends))
	for i, e := range ends {
		rows[i] = []any{e.RunKey, string(e.State), e.RunID, e.Why}
	}
	return t.tx.execRows(ctx, `UPDATE wakes SET state = v.column2, run_id = v.column3, why = v.column4
		FROM (VALUES (?)) AS v
		WHERE @run_key = v.column1 AND state IN ('queued', '')`, []string{"TEXT", "TEXT", "TEXT", "TEXT"}, rows)
}

// WakeFilter selects wakes by agent, run or both. Other fields restrict the list further unless they are empty.
type WakeFilter struct {
	Agent     string
	Run       string
	VisibleTo string // a user: only this user's wakes and those without a user
	After     string // a wake's run key
	Limit     int
}

// ListWakes returns a page of the wakes of an agent or a run, newest first.
func (s Queue) ListWakes(ctx context.Context, workspace string, f WakeFilter) ([]reeve.Wake, error) {
	where := `workspace_id = $1 AND ($4 = '' OR user_id = '' OR user_id = $4)` + indexCondition(f.Agent, `agent_id = `,
		`$2`) +
		indexCondition(f.Run, `run_id <> '' AND run_id = `, `$3`)
	args := []any{workspace, f.Agent, f.Run, f.VisibleTo, f.Limit}
	if f.After != "" {
		last, err := s.GetWake(ctx, f.After)
		if err == nil && last.WorkspaceID != workspace {
			err = notFound("wake", f.After)
		}
		if err != nil {
			return nil, err
		}
		where, args = where+` AND created_at <= $6 AND (created_at < $6 OR run_key > $7)`,
			append(args, reeve.Millis(last.CreatedAt), f.After)
	}
	return queryAll(ctx, s.Snap, scanWake, `SELECT `+wakeColumns+` FROM wakes WHERE `+where+
		` ORDER BY created_at DESC, run_key LIMIT $5`, args...)
}
