package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"reeve"
)

const wakeColumns = `run_key, workspace_id, agent_id, reason, reason_id, session_id, user_id, input, operation_id, class, name, origins,
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
	w.Origins, w.ScheduledAt = splitOrigins(origins), optional(scheduled)
	w.DueAt, w.CreatedAt = reeve.FromMillis(due), reeve.FromMillis(created)
	w.OnBehalfOf, err = delegatorsFrom(behalf)
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

// RecordChange writes a change's events, and a wake for each agent that watches one of its tokens, unless that agent's
// own work led to the change. One statement does it, so that telling costs no round trip; predicates are asked when the
// window is over.
func (t QueueTx) RecordChange(ctx context.Context, c Change) error {
	if err := t.tx.Ledger().InsertEvents(ctx, c.Workspace, c.Agent, c.Operation, c.Tokens); err != nil {
		return err
	}
	if c.Operation == "" { // a call that leaves none, and yet says that something changed
		c.Operation = t.NewID(reeve.PrefixChange)
	}
	self := ""
	if c.Agent != "" {
		self = c.Agent + ","
	}
	rows := make([][]any, len(c.Tokens))
	for i, k := range c.Tokens {
		rows[i] = []any{c.Workspace, string(k.Class), k.Name, c.Operation, c.Run, self,
			reeve.Millis(t.now.Add(c.Window)), reeve.Millis(t.now)}
	}
	return t.tx.change(ctx, `INSERT INTO wakes (`+wakeColumns+`)
		SELECT agent_id || '/' || id || '/' || operation, workspace_id, agent_id, 'subscription', id, '', '', '', operation, class, name, led, 0, due, 'queued', '', '', now, ''
		FROM (SELECT s.*, v.column4 AS operation, v.column7 AS due, v.column8 AS now, COALESCE((SELECT origins FROM runs WHERE id = v.column5), '') || v.column6 AS led
			FROM (VALUES (?)) AS v CROSS JOIN subscriptions s WHERE s.workspace_id = v.column1 AND s.class = v.column2 AND s.name = v.column3) watching
		WHERE replace(led, agent_id || ',', '') = led ON CONFLICT (run_key) DO NOTHING`,
		[]string{"TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "BIGINT", "BIGINT"}, rows)
}

// Window is how long changes made here join before somebody is woken.
const Window = 100 * time.Millisecond

// RecordPersonChange is Notify for a change that a person made. Its provenance is the number that this node gave it:
// the same wherever it becomes known.
func (t QueueTx) RecordPersonChange(ctx context.Context, workspace string, tokens []reeve.Token,
	window time.Duration) error {
	if len(tokens) == 0 {
		return nil
	}
	stamp, err := t.tx.Stamp(ctx)
	if err != nil {
		return err
	}
	return t.RecordChange(ctx,
		Change{Workspace: workspace, Operation: reeve.Key("chg", stamp.Node, strconv.FormatInt(stamp.Counter, 10)),
			Tokens: tokens, Window: window})
}

// InsertWake queues a wake; false means that its run key has been queued before.
func (t QueueTx) InsertWake(ctx context.Context, w reeve.Wake) (fresh bool, err error) {
	err = t.queue([]reeve.Wake{w}, func(query string, args []any) error {
		n, err := t.tx.affect(ctx, query, args...)
		fresh = n == 1
		return err
	})
	return fresh, err
}

// InsertWakes queues wakes whose run keys have not been queued before.
func (t QueueTx) InsertWakes(ctx context.Context, list []reeve.Wake) error {
	return t.queue(list, t.tx.unheard(ctx))
}

func (t QueueTx) queue(list []reeve.Wake, do func(query string, args []any) error) error {
	rows := make([][]any, len(list))
	for i, w := range list {
		rows[i] = []any{w.RunKey, w.WorkspaceID, w.AgentID, string(w.Reason), w.ReasonID, w.SessionID, w.UserID,
			w.Input, w.OperationID, string(w.Token.Class), w.Token.Name,
			joinOrigins(w.Origins), orZero(w.ScheduledAt), reeve.Millis(w.DueAt), string(w.State), w.Why, "",
			reeve.Millis(t.now), delegatorsText(w.OnBehalfOf)}
	}
	return t.tx.insert(`INSERT INTO wakes (`+wakeColumns+`) VALUES (?) ON CONFLICT (run_key) DO NOTHING`, rows, do)
}

// GetWake reads a wake by its run key.
func (s Queue) GetWake(ctx context.Context, key string) (reeve.Wake, error) {
	w, ok, err := one(ctx, s.Snap, scanWake, `SELECT `+wakeColumns+` FROM wakes WHERE run_key = $1`, key)
	if err == nil && !ok {
		err = notFound("wake", key)
	}
	return w, err
}

// Sessions of wakes that are not turns. A wake with a session is served by a run of its own kind: all changes that an
// agent watches can be served together, but a timer's firing or a person's demand cannot be mixed with anything. Runs
// of an agent take turns, except that a schedule's run waits for no other schedule's: a slow one must not delay the
// rest.
const (
	ScheduleLane = "schedule:" // and the timer's id: a goal, which a run serves that knows of nothing else
	TimerLane    = "timer:"    // and the timer's id: the agent is to look around
	ManualLane   = "manual:"   // and the run key
	StepLane     = "step:"     // and the run key: a step of another run, which waits for it
	// and the script job's id: like a schedule's goal, it is served beside the agent's other work
	ScriptJobLane = "schedule:script_job:"
)

// IsStep tells whether a run is a step of another.
func IsStep(run reeve.Run) bool { return strings.HasPrefix(run.SessionID, StepLane) }

// laneOf is the lane of an agent that a run is in, which says nothing of a turn: a session's own, or the one for all
// the rest.
func laneOf(why reeve.Reason, session string) string {
	if ownLane(why, session) {
		return session
	}
	return ""
}

// ownLane tells whether a run waits only for others of the same session, or, if it is a turn, for none.
func ownLane(why reeve.Reason, session string) bool {
	return why == reeve.ReasonUser || strings.HasPrefix(session, ScheduleLane) || strings.HasPrefix(session, StepLane)
}

// DueAgent is an agent that is due to run: alone for a session, or for all its other wakes together.
type DueAgent struct {
	AgentID     string
	WorkspaceID string
	SessionID   string
}

// waiting is the queue without what a run that goes first keeps from being served. See laneOf; steps are not queued,
// they begin at once.
const waiting = ` FROM wakes WHERE state = 'queued' AND CASE WHEN reason = 'user_initiated' THEN 1 = 1 ELSE NOT EXISTS (SELECT 1 FROM open_runs x
		WHERE x.agent_id = wakes.agent_id AND x.turn = 0 AND x.lane = CASE WHEN substr(wakes.session_id, 1, 9) = 'schedule:' THEN wakes.session_id ELSE '' END) END`

// inTurn is what a wake is that no other of its lane goes before: one that is due, and not held back by the throttle.
// Where transactions overlap it has to be said: the run that kept earlier ones from being served may end between two
// questions, and another server may have some of them in its hands. A server that is alone sees one state of all.
const inTurn = ` AND CASE WHEN reason = 'user_initiated' THEN 1 = 1 ELSE NOT EXISTS (SELECT 1 FROM wakes e WHERE e.state = 'queued' AND e.agent_id = wakes.agent_id
		AND (e.due_at, e.created_at, e.run_key) < (wakes.due_at, wakes.created_at, wakes.run_key) AND e.reason <> 'user_initiated'
		AND CASE WHEN substr(e.session_id, 1, 9) = 'schedule:' THEN e.session_id ELSE '' END = CASE WHEN substr(wakes.session_id, 1, 9) = 'schedule:' THEN wakes.session_id ELSE '' END
		AND CASE WHEN e.reason = 'manual' THEN 1 = 1 ELSE ` + throttled + ` <= $1 END) END`

// throttled is until when an agent's throttle holds a wake back. A person does not wait for it.
const throttled = `CASE WHEN reason IN ('manual', 'user_initiated') THEN 0 ELSE COALESCE((SELECT r.last_run_at + a.throttle_ms FROM agents a
	JOIN agent_runtimes r ON r.agent_id = a.id WHERE a.id = wakes.agent_id AND a.throttle_ms > 0), 0) END`

// Lane is what a wake's run waits for its turn in: all runs of one lane take turns.
func Lane(w reeve.Wake) string {
	if w.Reason == reeve.ReasonUser {
		return w.RunKey
	}
	return w.AgentID + " " + laneOf(w.Reason, w.SessionID)
}

// QueuedWakes reads what a caller waits for, the longest waiting first, locked against other servers. Those that were
// put off are left until their time.
func (t QueueTx) QueuedWakes(ctx context.Context, c DueAgent, limit int) ([]reeve.Wake, error) {
	return all(ctx, t.Snap, skipCorrupt(t.Snap, scanWake, nil), `SELECT `+wakeColumns+` FROM wakes WHERE state = 'queued' AND agent_id = $1 AND session_id = $2
		AND (tries = 0 OR due_at <= $4) ORDER BY due_at, created_at, run_key LIMIT $3`+t.db.engine.LockClause(), c.AgentID, c.SessionID, limit, reeve.Millis(t.now))
}

// DelayWake looks at a wake again later, by twice as long each time; after so many tries it is skipped.
func (t QueueTx) DelayWake(ctx context.Context, key string, first time.Duration, tries int, why string) error {
	return t.tx.exec(ctx, `UPDATE wakes SET tries = tries + 1, due_at = $2 + $3 * (CAST(1 AS BIGINT) << CAST(tries AS INTEGER)),
			state = CASE WHEN tries + 1 >= $4 THEN 'skipped' ELSE state END, why = CASE WHEN tries + 1 >= $4 THEN $5 ELSE why END
		WHERE run_key = $1 AND state = 'queued'`, key, reeve.Millis(t.now), first.Milliseconds(), tries, why)
}

// LockWorkspace reads a workspace and keeps it as it is until the transaction ends: a run that starts in it starts
// before it is stopped, or not at all.
func (t QueueTx) LockWorkspace(ctx context.Context, id string) (reeve.Workspace, error) {
	w, ok, err := one(ctx, t.Snap, scanWorkspace, `SELECT `+workspaceColumns+` FROM workspaces WHERE id = $1`+
		t.db.engine.ShareClause(), id)
	if err == nil && !ok {
		err = notFound("workspace", id)
	}
	return w, err
}

// skipWakes ends the queued wakes of an agent or, with an empty agent, of a workspace. ScriptJobs and retries stay:
// more follows from it when they are skipped, which is decided when they are due.
func (t QueueTx) skipWakes(ctx context.Context, workspace, agent, why string) error {
	return t.tx.exec(ctx, `UPDATE wakes SET state = 'skipped', why = $3 WHERE state = 'queued' AND workspace_id = $1 AND ($2 = '' OR agent_id = $2) AND reason NOT IN ('script_job', 'retry')`, workspace, agent, why)
}

// settleAgent does what an agent's new settings mean for its wakes. One that is stopped has none left but script jobs
// and retries. One that is destroyed watches nothing, has no firings, and its runs are over: what they still try to
// write is refused.
func (t QueueTx) settleAgent(ctx context.Context, a reeve.Agent) error {
	if a.Lifecycle != reeve.AgentDestroyed {
		if a.StoppedAt != nil {
			return t.skipWakes(ctx, a.WorkspaceID, a.ID, "the agent is stopped")
		}
		return nil
	}
	if err := first(t.skipWakes(ctx, a.WorkspaceID, a.ID, "the agent is destroyed"), t.tx.Runs().
		SkipRetries(ctx, a.WorkspaceID, a.ID, "the agent is destroyed")); err != nil {
		return err
	}
	timers, err := t.timersOf(ctx, a.WorkspaceID, a.ID)
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
	if err := t.tellGone(ctx, a.WorkspaceID, timers); err != nil {
		return err
	}
	return t.tx.Runs().cancelRuns(ctx, a.WorkspaceID, a.ID, "the agent was destroyed")
}

// EndWakes takes queued wakes for a run, or skips them.
func (t QueueTx) EndWakes(ctx context.Context, keys []string, state reeve.WakeState, run, why string) error {
	ends := make([]WakeEnd, len(keys))
	for i, k := range keys {
		ends[i] = WakeEnd{k, state, run, why}
	}
	return t.EndManyWakes(ctx, ends)
}

// WakeEnd says what became of a queued wake.
type WakeEnd struct {
	RunKey string
	State  reeve.WakeState
	RunID  string
	Why    string
}

// EndManyWakes is EndWakes for wakes of several runs. That they are queued is said in words that the indexes of the
// queue are not: PostgreSQL would sooner read all that waits than find these by their keys.
func (t QueueTx) EndManyWakes(ctx context.Context, ends []WakeEnd) error {
	rows := make([][]any, len(ends))
	for i, e := range ends {
		rows[i] = []any{e.RunKey, string(e.State), e.RunID, e.Why}
	}
	return t.tx.change(ctx, `UPDATE wakes SET state = v.column2, run_id = v.column3, why = v.column4 FROM (VALUES (?)) AS v
		WHERE @run_key = v.column1 AND state IN ('queued', '')`, []string{"TEXT", "TEXT", "TEXT", "TEXT"}, rows)
}

// WakeFilter chooses wakes, by their agent, their run or both. Other fields narrow the list, unless they are empty.
type WakeFilter struct {
	Agent string
	Run   string
	For   string // a user: theirs, and those on nobody's behalf
	After string // a wake's run key
	Limit int
}

// ListWakes reads a page of the wakes of an agent or a run, newest first.
func (s Queue) ListWakes(ctx context.Context, workspace string, f WakeFilter) ([]reeve.Wake, error) {
	where := `workspace_id = $1 AND ($4 = '' OR user_id = '' OR user_id = $4)` + begins(f.Agent, `agent_id = `, `$2`) +
		begins(f.Run, `run_id <> '' AND run_id = `, `$3`)
	args := []any{workspace, f.Agent, f.Run, f.For, f.Limit}
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
	return all(ctx, s.Snap, scanWake, `SELECT `+wakeColumns+` FROM wakes WHERE `+where+
		` ORDER BY created_at DESC, run_key LIMIT $5`, args...)
}
