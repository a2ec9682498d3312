package store

import (
	"context"
	"math"
	"slices"
	"strings"

	"reeve"
)

const timerColumns = `id, workspace_id, agent_id, user_id, name, goal, kind, value, zone, misfire, notify, origin, state, next_at, last_at, failures, missed,
	created_at, updated_at, on_behalf_of`

func scanTimer(r scanner) (v reeve.Timer, err error) {
	defer wrapCorrupt("timers", &v.ID, &err)
	var next, last, created, updated int64
	var behalf string
	if err = r.Scan(&v.ID, &v.WorkspaceID, &v.AgentID, &v.UserID, &v.Name, &v.Goal, &v.Kind, &v.Value, &v.Zone,
		&v.Misfire, &v.Notify, &v.Origin, &v.State,
		&next, &last, &v.Failures, &v.Missed, &created, &updated, &behalf); err != nil {
		return v, err
	}
	v.NextAt, v.LastAt, v.CreatedAt, v.UpdatedAt = optional(next), optional(last), reeve.FromMillis(created),
		reeve.FromMillis(updated)
	v.OnBehalfOf, err = delegatorsFrom(behalf)
	return v, err
}

// PutTimer adds a timer or replaces its row, as a person or an agent wants it. A destroyed agent has no firings.
func (t QueueTx) PutTimer(ctx context.Context, v reeve.Timer) error {
	if err := t.tx.lockNode(ctx); err != nil { // before the agent; see Tx.Revise
		return err
	}
	if v.State == reeve.TimerActive {
		if err := t.alive(ctx, v.WorkspaceID, v.AgentID); err != nil {
			return err
		}
	}
	if err := t.UpdateTimer(ctx, v); err != nil {
		return err
	}
	if v.State == reeve.TimerPaused {
		if err := t.SkipFirings(ctx, v.ID, "the schedule is paused"); err != nil {
			return err
		}
	}
	return t.tx.stamp(ctx, SharedTimers, v.ID)
}

// SkipFirings ends the queued wakes of a timer that is to fire no more.
func (t QueueTx) SkipFirings(ctx context.Context, id, why string) error {
	return t.tx.exec(ctx, `UPDATE wakes SET state = 'skipped', why = $4 WHERE state = 'queued' AND agent_id = (SELECT agent_id FROM timers WHERE id = $1) AND session_id IN ($2, $3)`,
		id, TimerLane+id, ScheduleLane+id, why)
}

// alive refuses an agent that is destroyed, and keeps the others from being so until the transaction ends. The
// workspace is held before it, as in every change of an agent.
func (t QueueTx) alive(ctx context.Context, workspace, agent string) error {
	if _, err := t.LockWorkspace(ctx, workspace); err != nil {
		return err
	}
	l, ok, err := one(ctx, t.Snap, value[string], `SELECT lifecycle FROM agents WHERE workspace_id = $1 AND id = $2`+
		t.db.engine.ShareClause(), workspace, agent)
	switch {
	case err != nil:
		return err
	case !ok:
		return notFound("agent", agent)
	case l == string(reeve.AgentDestroyed):
		return &reeve.Error{Code: reeve.Conflict, Message: "the agent is destroyed",
			Fields: []reeve.Field{{Path: "/agent", Message: "is destroyed", Expected: "an agent that lives"}}}
	}
	return nil
}

// UpdateTimer writes a timer's row as the clock or a run's end left it.
func (t QueueTx) UpdateTimer(ctx context.Context, v reeve.Timer) error {
	return t.tx.exec(ctx, `INSERT INTO timers (`+timerColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
		ON CONFLICT (id) DO UPDATE SET agent_id = excluded.agent_id, name = excluded.name, goal = excluded.goal, kind = excluded.kind, value = excluded.value,
			zone = excluded.zone, misfire = excluded.misfire, notify = excluded.notify, state = excluded.state, next_at = excluded.next_at, last_at = excluded.last_at,
			failures = excluded.failures, missed = excluded.missed, updated_at = excluded.updated_at,
			on_behalf_of = excluded.on_behalf_of`,
		v.ID, v.WorkspaceID, v.AgentID, v.UserID, v.Name, v.Goal, v.Kind, v.Value, v.Zone, string(v.Misfire),
		string(v.Notify), v.Origin, string(v.State),
		orZero(v.NextAt), orZero(v.LastAt), v.Failures, v.Missed, reeve.Millis(t.now), reeve.Millis(t.now),
		delegatorsText(v.OnBehalfOf))
}

// AdvanceTimers writes when timers that fired do so next.
func (t QueueTx) AdvanceTimers(ctx context.Context, fired []reeve.Timer) error {
	rows := make([][]any, len(fired))
	for i, v := range fired {
		rows[i] = []any{v.ID, string(v.State), orZero(v.NextAt), orZero(v.LastAt), v.Missed, reeve.Millis(t.now)}
	}
	return t.tx.change(ctx, `UPDATE timers SET state = v.column2, next_at = v.column3, last_at = v.column4, missed = v.column5, updated_at = v.column6
		FROM (VALUES (?)) AS v WHERE @id = v.column1`, []string{"TEXT", "TEXT", "BIGINT", "BIGINT", "BIGINT", "BIGINT"}, rows)
}

// GetTimer is a Snap's for a transaction that will change it: others that would wait, so that nobody overwrites what
// somebody else has just written.
func (t QueueTx) GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error) {
	if !t.db.engine.SingleProcess() { // a writer that is alone needs to hold nothing
		if err := t.tx.lockNode(ctx); err != nil { // as a change of its agent does, which may end it
			return reeve.Timer{}, err
		}
		if err := t.tx.exec(ctx, `UPDATE timers SET missed = missed WHERE workspace_id = $1 AND id = $2`, workspace,
			id); err != nil {
			return reeve.Timer{}, err
		}
	}
	return t.Snap.Queue().GetTimer(ctx, workspace, user, id)
}

// LockTimers is GetTimer for several timers, by id, with no more than the end of a run looks at; see
// [Tx.CountFailures]. Those that are gone are left out, and so are those whose rows cannot be read: a run ends without
// its schedule.
func (t QueueTx) LockTimers(ctx context.Context, ids []string) (map[string]*reeve.Timer, error) {
	slices.Sort(ids) // two servers that hold some of the same do it in one order
	if !t.db.engine.SingleProcess() {
		rows := make([][]any, len(ids))
		for i, id := range ids {
			rows[i] = []any{id}
		}
		if err := t.tx.change(ctx, `UPDATE timers SET missed = missed WHERE id IN (VALUES (?))`, []string{"TEXT"},
			rows); err != nil {
			return nil, err
		}
	}
	list, err := among(ctx, t.Snap, skipCorrupt(t.Snap, func(r scanner) (v reeve.Timer, err error) {
		defer wrapCorrupt("timers", &v.ID, &err)
		var next int64
		err = r.Scan(&v.ID, &v.UserID, &v.Name, &v.Notify, &v.Origin, &v.State, &next, &v.Failures)
		v.NextAt = optional(next)
		return v, err
	}, nil), `SELECT id, user_id, name, notify, origin, state, next_at, failures FROM timers WHERE id IN (?)`, ids)
	found := make(map[string]*reeve.Timer, len(list))
	for i := range list {
		found[list[i].ID] = &list[i]
	}
	return found, err
}

// CountFailures writes how a run's end left a timer.
func (t QueueTx) CountFailures(ctx context.Context, v reeve.Timer) error {
	return t.tx.exec(ctx, `UPDATE timers SET failures = $2, state = $3, next_at = $4, updated_at = $5 WHERE id = $1`,
		v.ID, v.Failures, string(v.State), orZero(v.NextAt), reeve.Millis(t.now))
}

// CountTimers is a Snap's for a transaction that will add one: others that would wait.
func (t QueueTx) CountTimers(ctx context.Context, workspace, user string) (int, error) {
	if err := t.tx.lockNode(ctx); err != nil {
		return 0, err
	}
	return t.Snap.Queue().CountTimers(ctx, workspace, user)
}

// CountTimers counts a user's schedules that are not over.
func (s Queue) CountTimers(ctx context.Context, workspace, user string) (int, error) {
	n, _, err := one(ctx, s.Snap, value[int64],
		`SELECT count(*) FROM timers WHERE workspace_id = $1 AND user_id = $2 AND state <> 'completed'`, workspace,
		user)
	return int(n), err
}

// GetTimer reads a timer of a workspace. With a user, another user's is not there.
func (s Queue) GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error) {
	v, ok, err := one(ctx, s.Snap, scanTimer, `SELECT `+timerColumns+
		` FROM timers WHERE workspace_id = $1 AND id = $3 AND ($2 = '' OR user_id = $2)`, workspace, user, id)
	if err == nil && !ok {
		err = notFound("schedule", id)
	}
	return v, err
}

// TimerFilter narrows a list of timers. Empty fields do not.
type TimerFilter struct {
	User, Agent, Name, Kind string
	State                   reeve.TimerState
	Notify                  reeve.Notify
	For                     string // a user: theirs, and nobody's
	Offset, Limit           int
}

// ListTimers reads a page of timers, oldest first, and how many there are in all.
func (s Queue) ListTimers(ctx context.Context, workspace string, f TimerFilter) ([]reeve.Timer, int, error) {
	where := ` FROM timers WHERE workspace_id = $1 AND ($2 = '' OR user_id = $2) AND ($3 = '' OR agent_id = $3)
		AND ($4 = '' OR kind = $4) AND ($5 = '' OR state = $5) AND ($6 = '' OR notify = $6)
		AND ($7 = '' OR user_id = '' OR user_id = $7)`
	args := []any{workspace, f.User, f.Agent, f.Kind, string(f.State), string(f.Notify), f.For}
	read := func(limit, offset int) ([]reeve.Timer, error) {
		return all(ctx, s.Snap, scanTimer, `SELECT `+timerColumns+where+` ORDER BY id LIMIT $8 OFFSET $9`,
			append(args, limit, offset)...)
	}
	if f.Name != "" { // looked for here: the engines know of no capitals but those of ASCII
		list, err := read(math.MaxInt32, 0)
		list = slices.DeleteFunc(list,
			func(v reeve.Timer) bool { return !strings.Contains(fold(v.Name), fold(f.Name)) })
		from := min(f.Offset, len(list))
		return list[from:min(from+f.Limit, len(list))], len(list), err
	}
	total, _, err := one(ctx, s.Snap, value[int64], `SELECT count(*)`+where, args...)
	if err != nil {
		return nil, 0, err
	}
	list, err := read(f.Limit, f.Offset)
	return list, int(total), err
}

// DeleteTimer removes a timer; its runs stay.
func (t QueueTx) DeleteTimer(ctx context.Context, workspace, id string) error {
	if err := first(t.tx.bury(ctx, SharedTimers, workspace, id),
		t.SkipFirings(ctx, id, "the schedule is gone")); err != nil {
		return err
	}
	return t.tx.exec(ctx, `DELETE FROM timers WHERE workspace_id = $1 AND id = $2`, workspace, id)
}

// timersOf is what is told of the schedules of an agent that end with it.
func (t QueueTx) timersOf(ctx context.Context, workspace, agent string) (tokens []reeve.Token, err error) {
	ids, err := all(ctx, t.Snap, value[string],
		`SELECT id FROM timers WHERE workspace_id = $1 AND agent_id = $2 AND state <> 'completed' ORDER BY id`,
		workspace, agent)
	for _, id := range ids {
		tokens = append(tokens, reeve.Timer{ID: id}.Tokens()...)
	}
	return tokens, err
}

func (t QueueTx) tellGone(ctx context.Context, workspace string, timers []reeve.Token) error {
	if len(timers) == 0 {
		return nil
	}
	return t.RecordChange(ctx, Change{Workspace: workspace, Operation: t.NewID(reeve.PrefixChange), Tokens: timers,
		Window: Window})
}

// InsertMissed notes a firing that nobody was there for. Run keys of those that one catch-up serves are given.
func (t QueueTx) InsertMissed(ctx context.Context, timer string, at int64, key string) error {
	return t.tx.exec(ctx, `INSERT INTO missed (timer_id, scheduled_at, run_key, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (timer_id, scheduled_at) DO NOTHING`,
		timer, at, key, reeve.Millis(t.now))
}

// ListMissed reads the firings of a timer that nobody was there for, newest first, in milliseconds.
func (s Queue) ListMissed(ctx context.Context, timer string, limit int) ([]int64, error) {
	return all(ctx, s.Snap, value[int64],
		`SELECT scheduled_at FROM missed WHERE timer_id = $1 ORDER BY scheduled_at DESC LIMIT $2`, timer, limit)
}
