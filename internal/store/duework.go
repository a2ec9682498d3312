package store

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"reeve"
)

// DueWork is what a step has before it, read in one round trip.
type DueWork struct {
	Timers []reeve.Timer // active, and their time has come
	Left   bool          // there are runs under way that are not the process's own, or wait
	Wakes  []reeve.Wake  // of agents that do not run and are not throttled, the longest waiting first
	Held   bool          // the server is held: nothing else is told
}

// DueWork reads up to so many timers, and up to about so many wakes; where none are wanted, it does not look for what
// was left either. All of them are locked against other servers.
func (t QueueTx) DueWork(ctx context.Context, process string, timers, wakes int) (o DueWork, err error) {
	var skipped skippedWork
	asked := []error{t.askTimers(ctx, &o.Timers, timers, &skipped)}
	var left []string
	var held []int64
	asked = append(asked, ask(ctx, t.Snap, value[int64], &held, selectHeld))
	if wakes > 0 {
		// A question about each of the few that are open, and not a join: PostgreSQL would read all there are.
		asked = append(asked, ask(ctx, t.Snap, value[string], &left, `SELECT run_id FROM open_runs
			WHERE (SELECT CASE WHEN state = 'parked' THEN '' ELSE owner END FROM runs WHERE id = open_runs.run_id) <> $1 LIMIT 1`, process),
			t.askWakes(ctx, &o.Wakes, wakes, nil, &skipped))
	}
	if err = first(append(asked, t.settle(ctx))...); err == nil && len(held) > 0 {
		return DueWork{Held: true}, nil
	}
	if err == nil {
		err = t.disable(ctx, skipped)
	}
	o.Left = len(left) > 0
	return o, err
}

// skippedWork is what is due and cannot be read.
type skippedWork struct{ timers, wakes []string }

// disable takes rows that cannot be read out of the queue, in which they would be due again at once, for ever. It
// changes their state only: timers are disabled, wakes are skipped.
func (t QueueTx) disable(ctx context.Context, w skippedWork) error {
	for _, id := range w.timers {
		if err := t.tx.exec(ctx, `UPDATE timers SET state = 'disabled' WHERE id = $1`, id); err != nil {
			return err
		}
	}
	return t.EndWakes(ctx, w.wakes, reeve.WakeSkipped, "",
		"its row in the database cannot be read; reeve doctor says more")
}

func (t QueueTx) askTimers(ctx context.Context, into *[]reeve.Timer, limit int, skipped *skippedWork) error {
	scan := skipCorrupt(t.Snap, scanTimer, &skipped.timers)
	return ask(ctx, t.Snap, scan, into, `SELECT `+timerColumns+` FROM timers WHERE state = 'active' AND next_at > 0 AND next_at <= $1
		ORDER BY next_at, id LIMIT $2`+t.db.engine.LockClause(), reeve.Millis(t.now), limit)
}

// DueWakes reads wakes of agents that do not run and are not throttled, the longest waiting first, locked against other
// servers. What one run would serve together may be among them more than once. Those up to the last one that was read
// before are left out.
func (t QueueTx) DueWakes(ctx context.Context, limit int, after *reeve.Wake) (list []reeve.Wake, err error) {
	var skipped skippedWork
	if err = first(t.askWakes(ctx, &list, limit, after, &skipped), t.settle(ctx)); err == nil {
		err = t.disable(ctx, skipped)
	}
	return list, err
}

// askWakes rounds how many it reads at most up to one of a few numbers, which stand in the text: PostgreSQL would plan
// anew for each number it is given. So it would for each time, were that not in a question of its own.
func (t QueueTx) askWakes(ctx context.Context, into *[]reeve.Wake, limit int, after *reeve.Wake,
	skipped *skippedWork) error {
	scan := skipCorrupt(t.Snap, scanWake, &skipped.wakes)
	most := 4
	for most < limit && most < 1024 {
		most *= 2
	}
	const query = `SELECT ` + wakeColumns + waiting + ` AND due_at <= (SELECT CAST($1 AS BIGINT)) AND ` + throttled +
		` <= $1`
	end := func() string {
		text := ` ORDER BY due_at, created_at, agent_id, session_id LIMIT ` + strconv.Itoa(most)
		if lock := t.db.engine.LockClause(); lock != "" {
			return inTurn + text + lock
		}
		return text
	}
	if after == nil {
		text := t.db.texts.get(query, most, func() string { return query + end() })
		return ask(ctx, t.Snap, scan, into, text, reeve.Millis(t.now))
	}
	const more = query + ` AND (due_at, created_at, agent_id, session_id) > (CAST($2 AS BIGINT), CAST($3 AS BIGINT), $4, $5)`
	text := t.db.texts.get(more, most, func() string { return more + end() })
	return ask(ctx, t.Snap, scan, into, text, reeve.Millis(t.now), reeve.Millis(after.DueAt),
		reeve.Millis(after.CreatedAt), after.AgentID, after.SessionID)
}

// WakeContext is who is concerned by wakes, as they are for this transaction.
type WakeContext struct {
	// they stay as they are: a run that starts in one starts before it is stopped, or not at all
	Workspaces map[string]reeve.Workspace
	Agents     map[string]AgentStatus
	Corrupt    map[string]bool // workspaces and agents whose rows cannot be read
	Crowded    map[string]bool // sessions of timers of which more than one wake is queued
}

// WakeContext reads it, in one round trip.
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
	var standing []AgentStatus
	var crowded lists[string]
	var corrupt []string
	err = first(
		askAmong(ctx, t.Snap, skipCorrupt(t.Snap, scanWorkspace, &corrupt), &found,
			`SELECT `+workspaceColumns+` FROM workspaces WHERE id IN (?)`+t.db.engine.ShareClause(),
			sorted(workspaces)),
		askAmong(ctx, t.Snap, skipCorrupt(t.Snap, scanStanding, &corrupt), &standing,
			`SELECT id, workspace_id, lifecycle, mode, stopped_at FROM agents WHERE id IN (?)`, sorted(agents)),
		t.tx.each(`SELECT v.column2 FROM (VALUES (?)) AS v WHERE (SELECT count(*) FROM wakes w WHERE w.state = 'queued' AND w.agent_id = v.column1 AND w.session_id = v.column2) > 1`,
			[]string{"TEXT", "TEXT"}, timed,
			func(query string, args []any) error {
				return ask(ctx, t.Snap, value[string], crowded.more(), query, args...)
			}),
		t.settle(ctx))
	r = WakeContext{Workspaces: map[string]reeve.Workspace{}, Agents: map[string]AgentStatus{}, Corrupt: setOf(corrupt),
		Crowded: setOf(crowded.all())}
	for _, w := range found {
		r.Workspaces[w.ID] = w
	}
	for _, a := range standing {
		r.Agents[a.ID] = a
	}
	return r, err
}

// sorted gives ids in one order: two servers that hold some of the same do not wait for each other in a circle.
func sorted(ids map[string]bool) []string { return slices.Sorted(maps.Keys(ids)) }

// AgentStatus is what decides whether an agent runs when something calls it.
type AgentStatus struct {
	ID, WorkspaceID string
	Lifecycle       reeve.Lifecycle
	Mode            reeve.Mode
	Stopped         bool
}

func scanStanding(r scanner) (a AgentStatus, err error) {
	defer wrapCorrupt("agents", &a.ID, &err)
	var stopped int64
	err = r.Scan(&a.ID, &a.WorkspaceID, &a.Lifecycle, &a.Mode, &stopped)
	a.Stopped = stopped != 0
	return a, err
}

// QueueNextDue asks when the next timer fires and, if wakes are wanted too, when the next queued wake that nothing but
// the clock holds back can be served, in milliseconds. Those behind a run are looked at when it ends. Of those that are
// not due only the first is looked at: its throttle is found out when it is. The answers are there once the transaction
// is committed.
func (t QueueTx) QueueNextDue(ctx context.Context, timer, wake *[]int64, wakes bool) error {
	*timer, *wake = nil, nil
	err := ask(ctx, t.Snap, skipCorrupt(t.Snap, dueRow("timers"), nil), timer,
		`SELECT id, next_at FROM timers WHERE state = 'active' AND next_at > 0 ORDER BY next_at LIMIT 1`)
	if err != nil || !wakes {
		return err
	}
	at := func(r scanner) (ms int64, err error) {
		id := "" // the time is the earliest of several rows
		defer wrapCorrupt("wakes", &id, &err)
		return ms, r.Scan(&ms)
	}
	return ask(ctx, t.Snap, skipCorrupt(t.Snap, at, nil), wake, `SELECT at FROM (SELECT min(at) AS at FROM (
		SELECT CASE WHEN due_at > `+throttled+` THEN due_at ELSE `+throttled+` END AS at`+waiting+` AND due_at <= $1
		UNION ALL SELECT due_at FROM (SELECT due_at`+waiting+` AND due_at > $1 ORDER BY due_at LIMIT 1) AS later) AS times) AS first WHERE at IS NOT NULL`, reeve.Millis(t.now))
}
