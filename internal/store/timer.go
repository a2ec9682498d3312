package store

import (
	"context"
	"math"
	"slices"
	"strings"

	"reeve"
)

const timerColumns = `id, workspace_id, agent_id, user_id, name, goal, kind, value, zone, misfire, notify, origin,
	state, next_at, last_at, failures, missed,
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
	v.NextAt, v.LastAt, v.CreatedAt, v.UpdatedAt = timeOrNil(next), timeOrNil(last), reeve.FromMillis(created),
		reeve.FromMillis(updated)
	v.OnBehalfOf, err = decodeDelegators(behalf)
	return v, err
}

// DiffTimer describes a change of a schedule. The timer before or after is nil if it did not exist.
func DiffTimer(before, after *reeve.Timer) (reeve.EntityChange, error) {
	known := after
	var was, is any
	if before != nil {
		known, was = before, before
	}
	if after != nil {
		known, is = after, after
	}
	e, err := DiffEntity("schedule", known.ID, known.Name, was, is)
	e.Owner = known.UserID
	return e, err
}

// PutTimer inserts or replaces a timer for a person or an agent, and stamps it. It fails if the timer is active and its
// agent is destroyed.
func (t QueueTx) PutTimer(ctx context.Context, v reeve.Timer) error {
	t.tx.announceInbox(v.WorkspaceID, TopicSchedules, v.ID, "")
	if err := t.tx.lockNode(ctx); err != nil { // before the agent is locked; see Tx.BeginRevision
		return err
	}
	if v.State == reeve.TimerActive {
		if err := t.lockLiveAgent(ctx, v.WorkspaceID, v.AgentID); err != nil {
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

// SkipFirings skips the queued wakes of a timer.
func (t QueueTx) SkipFirings(ctx context.Context, id, why string) error {
	return t.tx.exec(ctx, `UPDATE wakes SET state = 'skipped', why = $4 WHERE state = 'queued'
		AND agent_id = (SELECT agent_id FROM timers WHERE id = $1) AND session_id IN ($2, $3)`,
		id, TimerSession+id, ScheduleSession+id, why)
}

// lockLiveAgent returns a Conflict if the agent is destroyed. Otherwise it keeps the agent from being destroyed until
// the transaction ends. It locks the workspace first, like every change of an agent.
func (t QueueTx) lockLiveAgent(ctx context.Context, workspace, agent string) error {
	if _, err := t.LockWorkspace(ctx, workspace); err != nil {
		return err
	}
	l, ok, err := queryOne(ctx, t.Snap, scanValue[string], `SELECT lifecycle FROM agents WHERE workspace_id = $1
		AND id = $2`+
		t.db.engine.ShareClause(), workspace, agent)
	switch {
	case err != nil:
		return err
	case !ok:
		return notFound("agent", agent)
	case l == string(reeve.AgentDestroyed):
		return &reeve.Error{Code: reeve.Conflict, Message: "the agent is destroyed",
			Fields: []reeve.Field{{Path: "/agent", Message: "is destroyed",
				Expected: "an agent that is not destroyed"}}}
	}
	return nil
}

// UpdateTimer inserts or replaces a timer without stamping it. Use it for changes that the clock or the end of a run
// causes.
func (t QueueTx) UpdateTimer(ctx context.Context, v reeve.Timer) error {
	t.tx.announceInbox(v.WorkspaceID, TopicSchedules, v.ID, "")
	return t.tx.exec(ctx, `INSERT INTO timers (`+timerColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
		$12, $13, $14, $15, $16, $17, $18, $19, $20)
		ON CONFLICT (id) DO UPDATE SET agent_id = excluded.agent_id, name = excluded.name, goal = excluded.goal,
		kind = excluded.kind, value = excluded.value,
			zone = excluded.zone, misfire = excluded.misfire, notify = excluded.notify, state = excluded.state,
			next_at = excluded.next_at, last_at = excluded.last_at,
			failures = excluded.failures, missed = excluded.missed, updated_at = excluded.updated_at,
			on_behalf_of = excluded.on_behalf_of`,
		v.ID, v.WorkspaceID, v.AgentID, v.UserID, v.Name, v.Goal, v.Kind, v.Value, v.Zone, string(v.Misfire),
		string(v.Notify), v.Origin, string(v.State),
		millisOrZero(v.NextAt), millisOrZero(v.LastAt), v.Failures, v.Missed, reeve.Millis(t.now), reeve.Millis(t.now),
		encodeDelegators(v.OnBehalfOf))
}

// AdvanceTimers updates the state and the next firing of timers that fired.
func (t QueueTx) AdvanceTimers(ctx context.Context, fired []reeve.Timer) error {
	for _, v := range fired {
		t.tx.Announce(v.WorkspaceID, TopicSchedules, v.ID, "")
	}
	rows := make([][]any, len(fired))
	for i, v := range fired {
		rows[i] = []any{v.ID, string(v.State), millisOrZero(v.NextAt), millisOrZero(v.LastAt), v.Missed,
			reeve.Millis(t.now)}
	}
	return t.tx.execRows(ctx, `UPDATE timers SET state = v.column2, next_at = v.column3, last_at = v.column4,
		missed = v.column5, updated_at = v.column6
		FROM (VALUES (?)) AS v WHERE @id = v.column1`, []string{"TEXT", "TEXT", "BIGINT", "BIGINT", "BIGINT", "BIGINT"},
		rows)
}

// GetTimer is like Queue.GetTimer, but locks the row, so that no concurrent update is lost.
func (t QueueTx) GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error) {
	if !t.db.engine.SingleProcess() { // a single process has no concurrent writers
		// in the order of a change of the agent, which may complete the timer
		if err := t.tx.lockNode(ctx); err != nil {
			return reeve.Timer{}, err
		}
		if err := t.tx.exec(ctx, `UPDATE timers SET missed = missed WHERE workspace_id = $1 AND id = $2`, workspace, id); err != nil {
			return reeve.Timer{}, err
		}
	}
	return t.Snap.Queue().GetTimer(ctx, workspace, user, id)
}

// LockTimers locks timers and returns the fields that the end of a run needs, by id; see [QueueTx.CountFailures]. It
// leaves out timers that do not exist or whose rows are corrupt, so that a run can end without its schedule.
func (t QueueTx) LockTimers(ctx context.Context, ids []string) (map[string]*reeve.Timer, error) {
	slices.Sort(ids) // one order for all servers, so that they do not deadlock
	if !t.db.engine.SingleProcess() {
		rows := make([][]any, len(ids))
		for i, id := range ids {
			rows[i] = []any{id}
		}
		if err := t.tx.execRows(ctx, `UPDATE timers SET missed = missed WHERE id IN (VALUES (?))`, []string{"TEXT"},
			rows); err != nil {
			return nil, err
		}
	}
	list, err := queryIn(ctx, t.Snap, skipCorrupt(t.Snap, func(r scanner) (v reeve.Timer, err error) {
		defer wrapCorrupt("timers", &v.ID, &err)
		var next int64
		err = r.Scan(&v.ID, &v.UserID, &v.Name, &v.Notify, &v.Origin, &v.State, &next, &v.Failures)
		v.NextAt = timeOrNil(next)
		return v, err
	}, nil), `SELECT id, user_id, name, notify, origin, state, next_at, failures FROM timers WHERE id IN (?)`, ids)
	found := make(map[string]*reeve.Timer, len(list))
	for i := range list {
		found[list[i].ID] = &list[i]
	}
	return found, err
}

// CountFailures updates a timer's failures, state and next firing after a run has ended.
func (t QueueTx) CountFailures(ctx context.Context, v reeve.Timer) error {
	t.tx.announceInbox(v.WorkspaceID, TopicSchedules, v.ID, "")
	return t.tx.exec(ctx, `UPDATE timers SET failures = $2, state = $3, next_at = $4, updated_at = $5 WHERE id = $1`,
		v.ID, v.Failures, string(v.State), millisOrZero(v.NextAt), reeve.Millis(t.now))
}

// CountTimers is like Queue.CountTimers, but locks the node, so that other transactions cannot add a timer meanwhile.
func (t QueueTx) CountTimers(ctx context.Context, workspace, user string) (int, error) {
	if err := t.tx.lockNode(ctx); err != nil {
		return 0, err
	}
	return t.Snap.Queue().CountTimers(ctx, workspace, user)
}

// CountTimers returns the number of a user's schedules that are not completed.
func (s Queue) CountTimers(ctx context.Context, workspace, user string) (int, error) {
	n, _, err := queryOne(ctx, s.Snap, scanValue[int64],
		`SELECT count(*) FROM timers WHERE workspace_id = $1 AND user_id = $2 AND state <> 'completed'`, workspace,
		user)
	return int(n), err
}

// GetTimer returns a timer of a workspace. If user is not empty, the timer must belong to that user.
func (s Queue) GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanTimer, `SELECT `+timerColumns+
		` FROM timers WHERE workspace_id = $1 AND id = $3 AND ($2 = '' OR user_id = $2)`, workspace, user, id)
	if err == nil && !ok {
		err = notFound("schedule", id)
	}
	return v, err
}

// TimerFilter restricts a list of timers. Empty fields do not restrict it.
type TimerFilter struct {
	User, Agent, Name, Kind string
	State                   reeve.TimerState
	Notify                  reeve.Notify
	VisibleTo               string // a user: only this user's timers and those without a user
	Offset, Limit           int
}

// ListTimers returns a page of timers, oldest first, and the total number that match the filter.
func (s Queue) ListTimers(ctx context.Context, workspace string, f TimerFilter) ([]reeve.Timer, int, error) {
	where := ` FROM timers WHERE workspace_id = $1 AND ($2 = '' OR user_id = $2) AND ($3 = '' OR agent_id = $3)
		AND ($4 = '' OR kind = $4) AND ($5 = '' OR state = $5) AND ($6 = '' OR notify = $6)
		AND ($7 = '' OR user_id = '' OR user_id = $7)`
	args := []any{workspace, f.User, f.Agent, f.Kind, string(f.State), string(f.Notify), f.VisibleTo}
	read := func(limit, offset int) ([]reeve.Timer, error) {
		return queryAll(ctx, s.Snap, scanTimer, `SELECT `+timerColumns+where+` ORDER BY id LIMIT $8 OFFSET $9`,
			append(args, limit, offset)...)
	}
	if f.Name != "" { // filtered here, because the engines fold only ASCII letters
		list, err := read(math.MaxInt32, 0)
		list = slices.DeleteFunc(list,
			func(v reeve.Timer) bool { return !strings.Contains(foldText(v.Name), foldText(f.Name)) })
		from := min(f.Offset, len(list))
		return list[from:min(from+f.Limit, len(list))], len(list), err
	}
	total, _, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT count(*)`+where, args...)
	if err != nil {
		return nil, 0, err
	}
	list, err := read(f.Limit, f.Offset)
	return list, int(total), err
}

// DeleteTimer deletes a timer and skips its queued wakes. Its runs stay.
func (t QueueTx) DeleteTimer(ctx context.Context, workspace, id string) error {
	t.tx.announceInbox(workspace, TopicSchedules, id, "")
	if err := firstError(t.tx.recordRemoval(ctx, SharedTimers, workspace, id),
		t.SkipFirings(ctx, id, "the schedule was deleted")); err != nil {
		return err
	}
	return t.tx.exec(ctx, `DELETE FROM timers WHERE workspace_id = $1 AND id = $2`, workspace, id)
}

// openTimerTokens returns the tokens of an agent's timers that are not completed.
func (t QueueTx) openTimerTokens(ctx context.Context, workspace, agent string) (tokens []reeve.Token, err error) {
	ids, err := queryAll(ctx, t.Snap, scanValue[string],
		`SELECT id FROM timers WHERE workspace_id = $1 AND agent_id = $2 AND state <> 'completed' ORDER BY id`,
		workspace, agent)
	for _, id := range ids {
		tokens = append(tokens, reeve.Timer{ID: id}.Tokens()...)
	}
	return tokens, err
}

// recordTimersGone records the change that timers ended together with their agent.
func (t QueueTx) recordTimersGone(ctx context.Context, workspace string, timers []reeve.Token) error {
	if len(timers) == 0 {
		return nil
	}
	return t.RecordChange(ctx, Change{Workspace: workspace, Operation: t.NewID(reeve.PrefixChange), Tokens: timers,
		Window: ChangeWindow})
}

// InsertMissed records a firing that was missed. key is the run key of the catch-up run that serves it, if there is
// one.
func (t QueueTx) InsertMissed(ctx context.Context, timer string, at int64, key string) error {
	return t.tx.exec(ctx, `INSERT INTO missed_firings (timer_id, scheduled_at, run_key, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (timer_id, scheduled_at) DO NOTHING`,
		timer, at, key, reeve.Millis(t.now))
}

// ListMissed returns the missed firings of a timer in milliseconds, newest first.
func (s Queue) ListMissed(ctx context.Context, timer string, limit int) ([]int64, error) {
	return queryAll(ctx, s.Snap, scanValue[int64],
		`SELECT scheduled_at FROM missed_firings WHERE timer_id = $1 ORDER BY scheduled_at DESC LIMIT $2`, timer, limit)
}

// ListFailedTimers returns the schedules that were disabled because they failed, those of a user and those without a
// user. An empty user means all.
func (s Queue) ListFailedTimers(ctx context.Context, workspace, user string, limit int) ([]reeve.Timer, error) {
	return queryAll(ctx, s.Snap, scanTimer, `SELECT `+timerColumns+` FROM timers WHERE workspace_id = $1
		AND state = 'disabled' AND ($3 = '' OR user_id = '' OR user_id = $3) ORDER BY id DESC LIMIT $2`, workspace,
		limit, user)
}
