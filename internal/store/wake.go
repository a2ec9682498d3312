package store

import (
	"context"
	"strings"
	"time"

	"reeve"
)

const wakeColumns = `run_key, workspace_id, agent_id, reason, reason_id, session_id, user_id, input, operation_id, class, name, origins,
	scheduled_at, due_at, state, why, run_id, created_at`

func scanWake(r scanner) (w reeve.Wake, err error) {
	var origins string
	var scheduled, due, created int64
	err = r.Scan(&w.RunKey, &w.WorkspaceID, &w.AgentID, &w.Reason, &w.ReasonID, &w.SessionID, &w.UserID, &w.Input, &w.OperationID, &w.Token.Class,
		&w.Token.Name, &origins, &scheduled, &due, &w.State, &w.Why, &w.RunID, &created)
	w.Origins, w.ScheduledAt = splitOrigins(origins), optional(scheduled)
	w.DueAt, w.CreatedAt = reeve.FromMillis(due), reeve.FromMillis(created)
	return w, err
}

// Origins are kept as ids that each end in a comma, so that SQL can look for one and add one.
func joinOrigins(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return strings.Join(ids, ",") + ","
}

func splitOrigins(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

// Change is what a transaction tells the world: the tokens of one operation.
type Change struct {
	Workspace string
	Agent     string // who made it; empty for a person
	Run       string // the run it was made in, if any
	Operation string // its provenance: the same on every node
	Tokens    []reeve.Token
	Window    time.Duration // how long more changes may join before somebody is woken
}

// Notify writes a change's events, and a wake for each agent that watches one of its tokens, unless that agent's own work led
// to the change. One statement does it, so that telling costs no round trip; predicates are asked when the window is over.
func (t *Tx) Notify(ctx context.Context, c Change) error {
	if err := t.InsertEvents(ctx, c.Workspace, c.Agent, c.Operation, c.Tokens); err != nil {
		return err
	}
	if c.Operation == "" { // a call that leaves none, and yet says that something changed
		c.Operation = t.NewID("chg")
	}
	self := ""
	if c.Agent != "" {
		self = c.Agent + ","
	}
	for _, k := range c.Tokens {
		if err := t.exec(ctx, `INSERT INTO wakes (`+wakeColumns+`)
			SELECT agent_id || '/' || id || '/' || $4, workspace_id, agent_id, 'subscription', id, '', '', '', $4, $2, $3,
				led, 0, CAST($7 AS BIGINT), 'queued', '', '', CAST($8 AS BIGINT)
			FROM (SELECT s.*, COALESCE((SELECT origins FROM runs WHERE id = $5), '') || $6 AS led FROM subscriptions s
				WHERE s.workspace_id = $1 AND s.class = $2 AND s.name = $3) watching
			WHERE replace(led, agent_id || ',', '') = led ON CONFLICT (run_key) DO NOTHING`,
			c.Workspace, string(k.Class), k.Name, c.Operation, c.Run, self, reeve.Millis(t.now.Add(c.Window)), reeve.Millis(t.now)); err != nil {
			return err
		}
	}
	return nil
}

// InsertWake queues a wake; false means that its run key has been queued before.
func (t *Tx) InsertWake(ctx context.Context, w reeve.Wake) (bool, error) {
	n, err := t.affect(ctx, `INSERT INTO wakes (`+wakeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, '', $17)
		ON CONFLICT (run_key) DO NOTHING`,
		w.RunKey, w.WorkspaceID, w.AgentID, string(w.Reason), w.ReasonID, w.SessionID, w.UserID, w.Input, w.OperationID, string(w.Token.Class), w.Token.Name,
		joinOrigins(w.Origins), orZero(w.ScheduledAt), reeve.Millis(w.DueAt), string(w.State), w.Why, reeve.Millis(t.now))
	return n == 1, err
}

// GetWake reads a wake by its run key.
func (s *Snap) GetWake(ctx context.Context, key string) (reeve.Wake, error) {
	w, ok, err := one(ctx, s, scanWake, `SELECT `+wakeColumns+` FROM wakes WHERE run_key = $1`, key)
	if err == nil && !ok {
		err = notFound("wake", key)
	}
	return w, err
}

// Sessions of wakes that are not turns. A wake with a session is served by a run of its own kind: all changes that an agent
// watches can be served together, but a timer's firing or a person's demand cannot be mixed with anything. Runs of an agent
// take turns, except that a schedule's run waits for no other schedule's: a slow one must not delay the rest.
const (
	ScheduleLane = "schedule:" // and the timer's id: a goal, which a run serves that knows of nothing else
	TimerLane    = "timer:"    // and the timer's id: the agent is to look around
	ManualLane   = "manual:"   // and the run key
)

// ownLane tells whether a run waits only for others of the same session, or, if it is a turn, for none.
func ownLane(why reeve.Reason, session string) bool {
	return why == reeve.ReasonUser || strings.HasPrefix(session, ScheduleLane)
}

// Caller is an agent that is due to run: alone for a session, or for all its other wakes together.
type Caller struct {
	AgentID     string
	WorkspaceID string
	SessionID   string
}

// waiting is the queue with what keeps each wake from being served: a run that goes first, or a throttle. See ownLane.
const waiting = ` FROM wakes w LEFT JOIN agents a ON a.id = w.agent_id LEFT JOIN agent_runtimes r ON r.agent_id = w.agent_id
	WHERE w.state = 'queued' AND CASE WHEN w.reason = 'user_initiated' THEN 1 = 1 WHEN substr(w.session_id, 1, 9) = 'schedule:'
		THEN NOT EXISTS (SELECT 1 FROM runs x WHERE x.agent_id = w.agent_id AND x.session_id = w.session_id AND x.state IN ('running', 'parked'))
		ELSE COALESCE(r.active_run, '') = '' END`

// throttled is until when an agent's throttle holds a wake back. A person does not wait for it.
const throttled = `CASE WHEN w.reason IN ('manual', 'user_initiated') THEN 0 ELSE COALESCE(r.last_run_at, 0) + COALESCE(a.throttle_ms, 0) END`

// DueCallers lists agents that have due wakes, do not run, and are not throttled, the longest waiting first.
func (s *Snap) DueCallers(ctx context.Context, limit int) ([]Caller, error) {
	return all(ctx, s, func(r scanner) (c Caller, err error) { return c, r.Scan(&c.AgentID, &c.WorkspaceID, &c.SessionID) },
		`SELECT w.agent_id, w.workspace_id, w.session_id`+waiting+` AND w.due_at <= $1 AND `+throttled+` <= $1
		GROUP BY w.agent_id, w.workspace_id, w.session_id ORDER BY min(w.due_at), min(w.created_at), w.agent_id, w.session_id LIMIT $2`,
		reeve.Millis(s.now), limit)
}

// NextWake is when the next queued wake that nothing but the clock holds back can be served, in milliseconds; false means that
// there is none. Those behind a run are looked at when it ends.
func (s *Snap) NextWake(ctx context.Context) (int64, bool, error) {
	return one(ctx, s, value[int64], `SELECT CASE WHEN w.due_at > `+throttled+` THEN w.due_at ELSE `+throttled+` END AS at`+waiting+` ORDER BY at LIMIT 1`)
}

// QueuedWakes reads what a caller waits for, the longest waiting first, locked against other servers. Those that were put off are
// left until their time.
func (t *Tx) QueuedWakes(ctx context.Context, c Caller, limit int) ([]reeve.Wake, error) {
	return all(ctx, &t.Snap, scanWake, `SELECT `+wakeColumns+` FROM wakes WHERE state = 'queued' AND agent_id = $1 AND session_id = $2
		AND (tries = 0 OR due_at <= $4) ORDER BY due_at, created_at, run_key LIMIT $3`+t.db.engine.Lock(), c.AgentID, c.SessionID, limit, reeve.Millis(t.now))
}

// PutOffWake looks at a wake again later, by twice as long each time; after so many tries it is skipped.
func (t *Tx) PutOffWake(ctx context.Context, key string, first time.Duration, tries int, why string) error {
	return t.exec(ctx, `UPDATE wakes SET tries = tries + 1, due_at = $2 + $3 * (CAST(1 AS BIGINT) << CAST(tries AS INTEGER)),
			state = CASE WHEN tries + 1 >= $4 THEN 'skipped' ELSE state END, why = CASE WHEN tries + 1 >= $4 THEN $5 ELSE why END
		WHERE run_key = $1 AND state = 'queued'`, key, reeve.Millis(t.now), first.Milliseconds(), tries, why)
}

// HoldWorkspace reads a workspace and keeps it as it is until the transaction ends: a run that starts in it starts before it
// is stopped, or not at all.
func (t *Tx) HoldWorkspace(ctx context.Context, id string) (reeve.Workspace, error) {
	w, ok, err := one(ctx, &t.Snap, scanWorkspace, `SELECT `+workspaceColumns+` FROM workspaces WHERE id = $1`+t.db.engine.Share(), id)
	if err == nil && !ok {
		err = notFound("workspace", id)
	}
	return w, err
}

// SkipWakes ends every queued wake of an agent or, with an empty agent, of a workspace.
func (t *Tx) SkipWakes(ctx context.Context, workspace, agent, why string) error {
	return t.exec(ctx, `UPDATE wakes SET state = 'skipped', why = $3 WHERE state = 'queued' AND workspace_id = $1 AND ($2 = '' OR agent_id = $2)`, workspace, agent, why)
}

// settleAgent does what an agent's new settings mean for its wakes. One that is stopped has none left. One that is destroyed
// watches nothing, has no firings, and its runs are over: what they still try to write is refused.
func (t *Tx) settleAgent(ctx context.Context, a reeve.Agent) error {
	if a.Lifecycle != reeve.AgentDestroyed {
		if a.StoppedAt != nil {
			return t.SkipWakes(ctx, a.WorkspaceID, a.ID, "the agent is stopped")
		}
		return nil
	}
	if err := t.SkipWakes(ctx, a.WorkspaceID, a.ID, "the agent is destroyed"); err != nil {
		return err
	}
	for _, query := range []string{
		`DELETE FROM subscriptions WHERE workspace_id = $1 AND agent_id = $2`,
		`UPDATE timers SET state = 'completed', next_at = 0 WHERE workspace_id = $1 AND agent_id = $2`,
	} {
		if err := t.exec(ctx, query, a.WorkspaceID, a.ID); err != nil {
			return err
		}
	}
	open, err := all(ctx, &t.Snap, scanRun, `SELECT `+runColumns+` FROM runs WHERE workspace_id = $1 AND agent_id = $2 AND state IN ('running', 'parked')`, a.WorkspaceID, a.ID)
	if err != nil {
		return err
	}
	for _, was := range open {
		if _, err := t.CancelRun(ctx, was, "the agent was destroyed"); err != nil && reeve.CodeOf(err) != reeve.Conflict { // which means that it has just ended
			return err
		}
	}
	return nil
}

// EndWakes takes queued wakes for a run, or skips them.
func (t *Tx) EndWakes(ctx context.Context, keys []string, state reeve.WakeState, run, why string) error {
	for _, k := range keys {
		if err := t.exec(ctx, `UPDATE wakes SET state = $2, run_id = $3, why = $4 WHERE run_key = $1 AND state = 'queued'`, k, string(state), run, why); err != nil {
			return err
		}
	}
	return nil
}

// WakeFilter narrows a list of wakes. Empty fields do not.
type WakeFilter struct {
	Agent string
	Run   string
	For   string // a user: theirs, and those on nobody's behalf
	Limit int
}

// ListWakes reads the newest wakes of a workspace.
func (s *Snap) ListWakes(ctx context.Context, workspace string, f WakeFilter) ([]reeve.Wake, error) {
	return all(ctx, s, scanWake, `SELECT `+wakeColumns+` FROM wakes WHERE workspace_id = $1 AND ($2 = '' OR agent_id = $2) AND ($3 = '' OR run_id = $3)
		AND ($4 = '' OR user_id = '' OR user_id = $4) ORDER BY created_at DESC, run_key LIMIT $5`, workspace, f.Agent, f.Run, f.For, f.Limit)
}
