package store

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"reeve"
)

// DueWork is the work that is due for one step of the scheduler.
type DueWork struct {
	Timers       []reeve.Timer // active and due
	HasOtherRuns bool          // there are open runs that are parked or owned by another process
	Wakes        []reeve.Wake  // due wakes of agents that are neither running nor throttled, in order of due time
	Held         bool          // the server is held; all other fields are empty
}

// DueWork returns and locks up to the given number of timers and about the given number of wakes. If wakes is 0, it
// does not look for other runs either. It takes one round trip.
func (t QueueTx) DueWork(ctx context.Context, process string, timers, wakes int) (o DueWork, err error) {
	var skipped corruptWork
	errs := []error{t.queueDueTimers(ctx, &o.Timers, timers, &skipped)}
	var others []string
	var held []int64
	errs = append(errs, queueQuery(ctx, t.Snap, scanValue[int64], &held, selectHeld))
	if wakes > 0 {
		// A subquery for each of the few open runs. For a join, PostgreSQL would read all runs.
		errs = append(errs, queueQuery(ctx, t.Snap, scanValue[string], &others, `SELECT run_id FROM open_runs
			WHERE (SELECT CASE WHEN state = 'parked' THEN '' ELSE owner END FROM runs
			WHERE id = open_runs.run_id) <> $1 LIMIT 1`, process),
			t.queueDueWakes(ctx, &o.Wakes, wakes, nil, &skipped))
	}
	if err = firstError(append(errs, t.flush(ctx))...); err == nil && len(held) > 0 {
		return DueWork{Held: true}, nil
	}
	if err == nil {
		err = t.disableCorrupt(ctx, skipped)
	}
	o.HasOtherRuns = len(others) > 0
	return o, err
}

// DueAgent is an agent that is due to run for a user, either for one session or for all its other wakes together.
type DueAgent struct {
	AgentID     string
	WorkspaceID string
	SessionID   string
	UserID      string
}

// unblockedWakes selects the queued wakes whose lane has no open run; see laneOf. Steps are never queued.
const unblockedWakes = ` FROM wakes WHERE state = 'queued' AND CASE WHEN reason = 'user_initiated' THEN 1 = 1
	ELSE NOT EXISTS (SELECT 1 FROM open_runs x WHERE x.agent_id = wakes.agent_id AND x.turn = 0
		AND x.lane = CASE WHEN substr(wakes.session_id, 1, 9) = 'schedule:' THEN wakes.session_id ELSE '' END) END`

// isFirstInLane is the condition that no other due and unthrottled wake of the same lane comes first. It is needed only
// where transactions overlap. There, a run may end between two queries, and another server may have locked the earlier
// wakes.
const isFirstInLane = ` AND CASE WHEN reason = 'user_initiated' THEN 1 = 1
	ELSE NOT EXISTS (SELECT 1 FROM wakes e WHERE e.state = 'queued' AND e.agent_id = wakes.agent_id
		AND (e.due_at, e.created_at, e.run_key) < (wakes.due_at, wakes.created_at, wakes.run_key)
		AND e.reason <> 'user_initiated'
		AND CASE WHEN substr(e.session_id, 1, 9) = 'schedule:' THEN e.session_id ELSE '' END
			= CASE WHEN substr(wakes.session_id, 1, 9) = 'schedule:' THEN wakes.session_id ELSE '' END
		AND CASE WHEN e.reason = 'manual' THEN 1 = 1 ELSE ` + throttledUntil + ` <= $1 END) END`

// throttledUntil is the time until which the agent's throttle or its sleep delays a wake. Wakes by a person are not
// delayed, and sleep does not delay work on scripts.
const throttledUntil = `CASE WHEN reason IN ('manual', 'user_initiated') THEN 0
	ELSE COALESCE((SELECT CASE WHEN s.sleep_until > COALESCE(r.last_run_at + a.throttle_ms, 0)
			AND wakes.reason NOT IN ('retry', 'script_job') THEN s.sleep_until
		WHEN a.throttle_ms > 0 THEN r.last_run_at + a.throttle_ms END
	FROM agents a LEFT JOIN agent_states s ON s.agent_id = a.id
	LEFT JOIN agent_runtimes r ON r.agent_id = a.id WHERE a.id = wakes.agent_id), 0) END`

// corruptWork lists due timers and wakes whose rows are corrupt.
type corruptWork struct{ timers, wakes []string }

// disableCorrupt disables corrupt timers and skips corrupt wakes. Otherwise they would be due again immediately. It
// changes only their state.
func (t QueueTx) disableCorrupt(ctx context.Context, w corruptWork) error {
	for _, id := range w.timers {
		if err := t.tx.exec(ctx, `UPDATE timers SET state = 'disabled' WHERE id = $1`, id); err != nil {
			return err
		}
	}
	return t.EndWakes(ctx, w.wakes, reeve.WakeSkipped, "", "row in the database cannot be read; run reeve doctor")
}

func (t QueueTx) queueDueTimers(ctx context.Context, into *[]reeve.Timer, limit int, skipped *corruptWork) error {
	scan := skipCorrupt(t.Snap, scanTimer, &skipped.timers)
	return queueQuery(ctx, t.Snap, scan, into, `SELECT `+timerColumns+` FROM timers WHERE state = 'active'
		AND next_at > 0 AND next_at <= $1
		ORDER BY next_at, id LIMIT $2`+t.db.engine.LockClause(), reeve.Millis(t.now), limit)
}

// DueWakes returns and locks wakes of agents that are neither running nor throttled, by due time. Several of them may
// be served by the same run. If after is not nil, it returns only the wakes that come after it.
func (t QueueTx) DueWakes(ctx context.Context, limit int, after *reeve.Wake) (list []reeve.Wake, err error) {
	var skipped corruptWork
	if err = firstError(t.queueDueWakes(ctx, &list, limit, after, &skipped), t.flush(ctx)); err == nil {
		err = t.disableCorrupt(ctx, skipped)
	}
	return list, err
}

// queueDueWakes queues the query for due wakes. The limit is rounded up to a power of two and is part of the SQL text,
// and the time is in a subquery. As plain parameters they would make PostgreSQL plan each query anew.
func (t QueueTx) queueDueWakes(ctx context.Context, into *[]reeve.Wake, limit int, after *reeve.Wake,
	skipped *corruptWork) error {
	scan := skipCorrupt(t.Snap, scanWake, &skipped.wakes)
	most := 4
	for most < limit && most < 1024 {
		most *= 2
	}
	const query = `SELECT ` + wakeColumns + unblockedWakes + ` AND due_at <= (SELECT CAST($1 AS BIGINT))
		AND ` + throttledUntil +
		` <= $1`
	end := func() string {
		text := ` ORDER BY due_at, created_at, agent_id, session_id LIMIT ` + strconv.Itoa(most)
		if lock := t.db.engine.LockClause(); lock != "" {
			return isFirstInLane + text + lock
		}
		return text
	}
	if after == nil {
		text := t.db.sqlCache.get(query, most, func() string { return query + end() })
		return queueQuery(ctx, t.Snap, scan, into, text, reeve.Millis(t.now))
	}
	const more = query + ` AND (due_at, created_at, agent_id, session_id) > (CAST($2 AS BIGINT), CAST($3 AS BIGINT), $4,
		$5)`
	text := t.db.sqlCache.get(more, most, func() string { return more + end() })
	return queueQuery(ctx, t.Snap, scan, into, text, reeve.Millis(t.now), reeve.Millis(after.DueAt),
		reeve.Millis(after.CreatedAt), after.AgentID, after.SessionID)
}

// WakeContext holds the workspaces and agents of some wakes.
type WakeContext struct {
	Workspaces map[string]reeve.Workspace // by id
	Agents     map[string]AgentStatus     // by id
	Corrupt    map[string]bool            // ids of workspaces and agents whose rows are corrupt
	Backlogged map[string]bool            // sessions of timers with more than one queued wake
}

// WakeContext reads the workspaces and agents of wakes in one round trip. It locks the workspaces, so that a run that
// starts in one starts before the workspace is stopped, or not at all.
func (t QueueTx) WakeContext(ctx context.Context, wakes []reeve.Wake) (r WakeContext, err error) {
	if len(wakes) == 0 {
		return r, nil
	}
	workspaces, agents := map[string]bool{}, map[string]bool{}
	var timed [][]any
	for _, w := range wakes {
		workspaces[w.WorkspaceID], agents[w.AgentID] = true, true
		if w.Reason == reeve.ReasonTimer || w.Reason == reeve.ReasonCatchup {
			timed = append(timed, []any{w.AgentID, w.SessionID})
		}
	}
	var found []reeve.Workspace
	var statuses []AgentStatus
	var backlogged resultLists[string]
	var corrupt []string
	err = firstError(
		queueQueryIn(ctx, t.Snap, skipCorrupt(t.Snap, scanWorkspace, &corrupt), &found,
			`SELECT `+workspaceColumns+` FROM workspaces WHERE id IN (?)`+t.db.engine.ShareClause(),
			sortedKeys(workspaces)),
		queueQueryIn(ctx, t.Snap, skipCorrupt(t.Snap, scanAgentStatus, &corrupt), &statuses,
			`SELECT id, workspace_id, lifecycle, mode, stopped_at FROM agents WHERE id IN (?)`, sortedKeys(agents)),
		t.tx.eachBatch(`SELECT v.column2 FROM (VALUES (?)) AS v WHERE (SELECT count(*) FROM wakes w
			WHERE w.state = 'queued' AND w.agent_id = v.column1 AND w.session_id = v.column2) > 1`,
			[]string{"TEXT", "TEXT"}, timed,
			func(query string, args []any) error {
				return queueQuery(ctx, t.Snap, scanValue[string], backlogged.add(), query, args...)
			}),
		t.flush(ctx))
	r = WakeContext{Workspaces: map[string]reeve.Workspace{}, Agents: map[string]AgentStatus{}, Corrupt: toSet(corrupt),
		Backlogged: toSet(backlogged.concat())}
	for _, w := range found {
		r.Workspaces[w.ID] = w
	}
	for _, a := range statuses {
		r.Agents[a.ID] = a
	}
	return r, err
}

// sortedKeys returns the ids in one order for all servers, so that locks on their rows cannot deadlock.
func sortedKeys(ids map[string]bool) []string { return slices.Sorted(maps.Keys(ids)) }

// AgentStatus is the part of an agent that decides whether it may run.
type AgentStatus struct {
	ID, WorkspaceID string
	Lifecycle       reeve.Lifecycle
	Mode            reeve.Mode
	Stopped         bool
}

func scanAgentStatus(r scanner) (a AgentStatus, err error) {
	defer wrapCorrupt("agents", &a.ID, &err)
	var stopped int64
	err = r.Scan(&a.ID, &a.WorkspaceID, &a.Lifecycle, &a.Mode, &stopped)
	a.Stopped = stopped != 0
	return a, err
}

// QueueNextDue queues the time, in milliseconds, at which the next timer fires and, if wakes is true, at which the next
// wake can be served. Each list stays empty if there is none. Wakes behind an open run do not count; they are checked
// when the run ends. Of the wakes that are not due yet only the first counts, without its throttle.
func (t QueueTx) QueueNextDue(ctx context.Context, timer, wake *[]int64, wakes bool) error {
	*timer, *wake = nil, nil
	err := queueQuery(ctx, t.Snap, skipCorrupt(t.Snap, dueRow("timers"), nil), timer,
		`SELECT id, next_at FROM timers WHERE state = 'active' AND next_at > 0 ORDER BY next_at LIMIT 1`)
	if err != nil || !wakes {
		return err
	}
	at := func(r scanner) (ms int64, err error) {
		id := "" // unknown, because the time is a minimum over several rows
		defer wrapCorrupt("wakes", &id, &err)
		return ms, r.Scan(&ms)
	}
	return queueQuery(ctx, t.Snap, skipCorrupt(t.Snap, at, nil), wake, `SELECT at FROM (SELECT min(at) AS at FROM (
		SELECT CASE WHEN due_at > `+throttledUntil+` THEN due_at
		ELSE `+throttledUntil+` END AS at`+unblockedWakes+` AND due_at <= $1
		UNION ALL SELECT due_at FROM (SELECT due_at`+unblockedWakes+` AND due_at > $1
		ORDER BY due_at LIMIT 1) AS later) AS times) AS first WHERE at IS NOT NULL`, reeve.Millis(t.now))
}
