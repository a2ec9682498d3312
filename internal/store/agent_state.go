package store

import (
	"context"
	"maps"
	"reflect"
	"time"

	"reeve"
)

const selectState = `SELECT agent_id, revision, slots, stamps, head, summary, processed, seen, node, counter, clock,
	updated_at, COALESCE((SELECT id FROM nodes WHERE self = 1), ''), sleep_until, ` + plannedWake + `
	FROM agent_states `

// plannedWake is when the planned wake of a row of agent_states is due, or 0.
const plannedWake = `COALESCE((SELECT t.next_at FROM timers t WHERE t.id = agent_states.wake_timer
	AND t.state = 'active'), 0)`

func scanState(r scanner) (v reeve.AgentState, err error) {
	defer wrapCorrupt("agent_states", &v.AgentID, &err)
	var slots, stamps, processed, clock, self string
	var seen, updated, sleep, next int64
	if err := r.Scan(&v.AgentID, &v.Revision, &slots, &stamps, &v.Head, &v.Summary, &processed, &seen, &v.Stamp.Node,
		&v.Stamp.Counter,
		&clock, &updated, &self, &sleep, &next); err != nil {
		return v, err
	}
	v.SleepUntil, v.NextWakeAt = timeOrNil(sleep), timeOrNil(next)
	v.UpdatedAt, v.Processed = reeve.FromMillis(updated), map[string]int64{}
	if err := firstError(decodeJSON("slots", slots, &v.Slots), decodeJSON("stamps", stamps, &v.Stamps),
		decodeJSON("processed", processed, &v.Processed),
		decodeJSON("clock", clock, &v.Stamp.Clock)); err != nil {
		return v, err
	}
	if seen > 0 && v.Processed != nil {
		v.Processed[self] = seen
	}
	return v, nil
}

// AgentState returns an agent's state. An agent that never ran has an empty state.
func (s Agents) AgentState(ctx context.Context, agent string) (reeve.AgentState, error) {
	v, _, err := queryOne(ctx, s.Snap, scanState, selectState+`WHERE agent_id = $1`, agent)
	v.AgentID, v.Slots.SchemaVersion = agent, reeve.StateVersion
	if v.Processed == nil {
		v.Processed = map[string]int64{}
	}
	if v.Stamps == nil {
		v.Stamps = map[string]reeve.SlotWriter{}
	}
	if v.Stamp.Clock == nil {
		v.Stamp.Clock = map[string]int64{}
	}
	v.SleepUntil = unlessPast(v.SleepUntil, s.Now())
	return v, err
}

// unlessPast returns t, or nil if it is not after now.
func unlessPast(t *time.Time, now time.Time) *time.Time {
	if t == nil || !t.After(now) {
		return nil
	}
	return t
}

// PutSlots replaces an agent's slots. It returns Stale if revision is not the current revision, unless the slots are
// equal to the current ones. changed is false if nothing was changed.
func (t AgentsTx) PutSlots(ctx context.Context, a reeve.Agent, revision int64,
	slots reeve.AgentSlots) (is reeve.AgentState, changed bool, err error) {
	if is, err = t.LockState(ctx, a); err != nil {
		return is, false, err
	}
	was, will := is.Slots.Paths(), slots.Paths()
	if reflect.DeepEqual(was, will) {
		return is, false, nil
	}
	if revision != is.Revision {
		return is, false, reeve.Errorf(reeve.Stale,
			"the agent's state has revision %d, and the change is based on revision %d", is.Revision, revision).
			Hintf("read the state, repeat the change and send it with the revision that you read; nothing was changed")
	}
	var paths []string
	for _, in := range []map[string]string{was, will} {
		for p := range in {
			if old, ok := was[p]; !ok || will[p] != old {
				paths = append(paths, p)
			}
		}
	}
	slots.SchemaVersion = reeve.StateVersion
	is.Slots, is.Revision = slots, is.Revision+1
	return is, true, t.writeState(ctx, &is, paths)
}

// writeState stores an agent's slots, and stamps them and the changed paths.
func (t AgentsTx) writeState(ctx context.Context, is *reeve.AgentState, changed []string) error {
	stamp, err := t.tx.Stamp(ctx)
	if err != nil {
		return err
	}
	for _, p := range changed {
		is.Stamps[p] = reeve.SlotWriter{Node: stamp.Node, Counter: stamp.Counter}
	}
	is.Stamp.Node, is.Stamp.Counter, is.UpdatedAt = stamp.Node, stamp.Counter, t.now
	maps.Copy(is.Stamp.Clock, stamp.Clock)
	processed := maps.Clone(is.Processed)
	delete(processed, stamp.Node) // the column seen has this node's value
	return t.tx.exec(ctx, `INSERT INTO agent_states (agent_id, revision, slots, stamps, head, summary,
		processed, seen, node, counter, clock, updated_at)
		VALUES ($1, $2, $3, $4, '', '', $9, 0, $5, $6, $7, $8)
		ON CONFLICT (agent_id) DO UPDATE SET revision = $2, slots = $3, stamps = $4, processed = $9, node = $5,
		counter = $6, clock = $7, updated_at = $8`,
		is.AgentID, is.Revision, encodeJSONUnescaped(is.Slots), encodeJSON(is.Stamps), is.Stamp.Node, is.Stamp.Counter,
		encodeJSON(is.Stamp.Clock), reeve.Millis(t.now), encodeJSON(processed))
}

// LockState returns an agent's state and keeps others from changing it until the transaction ends. It fails if the
// agent is destroyed.
func (t AgentsTx) LockState(ctx context.Context, a reeve.Agent) (is reeve.AgentState, err error) {
	if err := t.tx.lockNode(ctx); err != nil {
		return is, err
	}
	if err := t.tx.Queue().lockLiveAgent(ctx, a.WorkspaceID, a.ID); err != nil {
		return is, err
	}
	return t.AgentState(ctx, a.ID)
}

// PutWakePlan replaces until when an agent sleeps and when it wakes itself. planned is the timer of the planned wake:
// its user and its delegators. changed is false if nothing was changed.
func (t AgentsTx) PutWakePlan(ctx context.Context, a reeve.Agent, plan reeve.WakePlan,
	planned reeve.Timer) (is reeve.AgentState, changed bool, err error) {
	if is, err = t.LockState(ctx, a); err != nil || is.WakePlan.Equal(plan) {
		return is, false, err
	}
	if err := plan.CheckChange(is.WakePlan, t.now); err != nil {
		return is, false, err
	}
	var paths []string
	if !(reeve.WakePlan{SleepUntil: plan.SleepUntil}).Equal(reeve.WakePlan{SleepUntil: is.SleepUntil}) {
		paths = append(paths, "sleep_until")
	}
	timer, _, err := queryOne(ctx, t.Snap, scanValue[string], `SELECT wake_timer FROM agent_states WHERE agent_id = $1`,
		a.ID)
	if err != nil {
		return is, false, err
	}
	if !(reeve.WakePlan{NextWakeAt: plan.NextWakeAt}).Equal(reeve.WakePlan{NextWakeAt: is.NextWakeAt}) {
		paths = append(paths, "next_wake_at")
		if timer, err = t.replaceWakeTimer(ctx, a, timer, plan.NextWakeAt, planned); err != nil {
			return is, false, err
		}
	}
	is.WakePlan = plan
	if err := t.writeState(ctx, &is, paths); err != nil {
		return is, false, err
	}
	return is, true, t.tx.exec(ctx, `UPDATE agent_states SET sleep_until = $2, wake_timer = $3 WHERE agent_id = $1`,
		a.ID, millisOrZero(plan.SleepUntil), timer)
}

// replaceWakeTimer deletes the timer of an agent's planned wake, and its queued wake. It inserts another one for the
// given time, if there is one, and returns its id.
func (t AgentsTx) replaceWakeTimer(ctx context.Context, a reeve.Agent, old string, at *time.Time,
	planned reeve.Timer) (string, error) {
	if old != "" {
		if err := t.tx.Queue().DeleteTimer(ctx, a.WorkspaceID, old); err != nil {
			return "", err
		}
	}
	if at == nil {
		return "", nil
	}
	planned.ID, planned.WorkspaceID, planned.AgentID = t.tx.NewID(reeve.PrefixSchedule), a.WorkspaceID, a.ID
	planned.Name, planned.Kind, planned.Zone = reeve.WakePlanName, "once", "UTC"
	planned.Value, planned.NextAt = reeve.FromMillis(reeve.Millis(*at)).Format(time.RFC3339Nano), at
	planned.Misfire, planned.Notify, planned.State = reeve.CatchUpOnce, reeve.NotifyNever, reeve.TimerActive
	return planned.ID, t.tx.Queue().PutTimer(ctx, planned)
}

// movePointers stores, for each run that has ended, the last entry of its thread and, if the run completed, the last
// change that it has seen. Both values only grow on every node, so they need no stamp and a merge takes the greater
// one. It takes no round trip and ignores agents that do not exist.
func (t AgentsTx) movePointers(ctx context.Context, ended []reeve.Run) error {
	rows := make([][]any, len(ended))
	for i, v := range ended {
		completed := ""
		if v.State == reeve.RunCompleted {
			completed = v.ID
		}
		rows[i] = []any{v.AgentID, completed, v.ThreadID, reeve.Millis(t.now)}
	}
	return t.tx.execRows(ctx, `INSERT INTO agent_states (agent_id, revision, slots, stamps, head, summary, processed,
		seen, node, counter, clock, updated_at)
		SELECT id, 0, '', '', head, '', '', seen, '', 0, '', at FROM (SELECT id, max(head) AS head, max(seen) AS seen,
		max(at) AS at FROM (
			SELECT a.id, (SELECT COALESCE(max(id), '') FROM (
					SELECT (SELECT id FROM messages WHERE thread_id = v.column3 ORDER BY id DESC LIMIT 1) AS id
					UNION ALL SELECT (SELECT CASE WHEN result_id = '' THEN id ELSE result_id END FROM calls
					WHERE thread_id = v.column3
						ORDER BY calls.id DESC LIMIT 1)) AS entries) AS head,
				COALESCE((SELECT o.seen FROM open_runs o WHERE o.run_id = v.column2 AND o.turn = 0 AND o.lane = ''),
				0) AS seen, v.column4 AS at
			FROM (VALUES (?)) AS v JOIN agents a ON @a.id = v.column1) ended GROUP BY id) latest
		WHERE NOT EXISTS (SELECT 1 FROM agent_states s WHERE s.agent_id = latest.id AND s.head >= latest.head
		AND s.seen >= latest.seen)
		ON CONFLICT (agent_id) DO UPDATE SET updated_at = excluded.updated_at,
			head = CASE WHEN excluded.head > agent_states.head THEN excluded.head ELSE agent_states.head END,
			seen = CASE WHEN excluded.seen > agent_states.seen THEN excluded.seen ELSE agent_states.seen END
		WHERE excluded.head > agent_states.head OR excluded.seen > agent_states.seen`, []string{"TEXT", "TEXT", "TEXT",
		"BIGINT"}, rows)
}

// Runtime returns an agent's status on this node.
func (s Agents) Runtime(ctx context.Context, agent string) (reeve.AgentRuntime, error) {
	r, _, err := queryOne(ctx, s.Snap, func(r scanner) (a reeve.AgentRuntime, err error) {
		var last, sleep, next int64
		err = r.Scan(&a.FailureStreak, &last, &a.ActiveRun, &sleep, &next)
		a.LastRunAt, a.SleepUntil, a.NextWakeAt = timeOrNil(last), timeOrNil(sleep), timeOrNil(next)
		return a, err
	}, `SELECT COALESCE(r.failures, 0), COALESCE(r.last_run_at, 0), COALESCE((SELECT run_id FROM open_runs
		WHERE agent_id = $1 AND turn = 0 AND lane = ''), ''), COALESCE(agent_states.sleep_until, 0), `+plannedWake+`
		FROM agents LEFT JOIN agent_runtimes r ON r.agent_id = agents.id
		LEFT JOIN agent_states ON agent_states.agent_id = agents.id WHERE agents.id = $1`, agent)
	if err != nil {
		return r, err
	}
	count := func(query string) (n int64) {
		if err == nil {
			n, _, err = queryOne(ctx, s.Snap, scanValue[int64], query, agent)
		}
		return n
	}
	const open = `FROM runs WHERE id IN (SELECT run_id FROM open_runs WHERE agent_id = $1 AND turn = 0 UNION ALL
		SELECT run_id FROM open_runs WHERE agent_id = $1 AND turn = 1) AND state = `
	running := count(`SELECT count(*) ` + open + `'running'`)
	parked := count(`SELECT count(*) ` + open + `'parked'`)
	queued := count(`SELECT count(*) FROM wakes WHERE agent_id = $1 AND state = 'queued'`)
	r.SleepUntil = unlessPast(r.SleepUntil, s.Now())
	r.AgentID, r.OpenRuns, r.QueuedWakes, r.Status = agent, int(running+parked), int(queued), reeve.AgentIdle
	switch {
	case running > 0:
		r.Status = reeve.AgentRunning
	case parked > 0:
		r.Status = reeve.AgentParked
	case queued > 0:
		r.Status = reeve.AgentQueued
	}
	return r, err
}
