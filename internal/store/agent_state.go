package store

import (
	"context"
	"maps"
	"reflect"

	"reeve"
)

const selectState = `SELECT agent_id, revision, slots, stamps, head, summary, processed, seen, node, counter, clock,
	updated_at, COALESCE((SELECT id FROM nodes WHERE self = 1), '')
	FROM agent_states `

func scanState(r scanner) (v reeve.AgentState, err error) {
	defer wrapCorrupt("agent_states", &v.AgentID, &err)
	var slots, stamps, processed, clock, self string
	var seen, updated int64
	if err := r.Scan(&v.AgentID, &v.Revision, &slots, &stamps, &v.Head, &v.Summary, &processed, &seen, &v.Stamp.Node,
		&v.Stamp.Counter,
		&clock, &updated, &self); err != nil {
		return v, err
	}
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
	return v, err
}

// PutSlots replaces an agent's slots. It returns Stale if revision is not the current revision, unless the slots are
// equal to the current ones. changed is false if nothing was changed.
func (t AgentsTx) PutSlots(ctx context.Context, a reeve.Agent, revision int64,
	slots reeve.AgentSlots) (is reeve.AgentState, changed bool, err error) {
	if err := t.tx.lockNode(ctx); err != nil { // keeps others from changing slots until the transaction ends
		return is, false, err
	}
	if err := t.tx.Queue().lockLiveAgent(ctx, a.WorkspaceID, a.ID); err != nil {
		return is, false, err
	}
	if is, err = t.AgentState(ctx, a.ID); err != nil {
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
	stamp, err := t.tx.Stamp(ctx)
	if err != nil {
		return is, false, err
	}
	for _, paths := range []map[string]string{was, will} {
		for p := range paths {
			if old, ok := was[p]; !ok || will[p] != old {
				is.Stamps[p] = reeve.SlotWriter{Node: stamp.Node, Counter: stamp.Counter}
			}
		}
	}
	is.Stamp.Node, is.Stamp.Counter = stamp.Node, stamp.Counter
	maps.Copy(is.Stamp.Clock, stamp.Clock)
	slots.SchemaVersion = reeve.StateVersion
	is.Slots, is.Revision, is.UpdatedAt = slots, is.Revision+1, t.now
	processed := maps.Clone(is.Processed)
	delete(processed, stamp.Node) // this node's value is in the column seen
	return is, true, t.tx.exec(ctx, `INSERT INTO agent_states (agent_id, revision, slots, stamps, head, summary,
		processed, seen, node, counter, clock, updated_at)
		VALUES ($1, $2, $3, $4, '', '', $9, 0, $5, $6, $7, $8)
		ON CONFLICT (agent_id) DO UPDATE SET revision = $2, slots = $3, stamps = $4, processed = $9, node = $5,
		counter = $6, clock = $7, updated_at = $8`,
		a.ID, is.Revision, encodeJSONUnescaped(slots), encodeJSON(is.Stamps), is.Stamp.Node, is.Stamp.Counter,
		encodeJSON(is.Stamp.Clock),
		reeve.Millis(t.now), encodeJSON(processed))
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
		var last int64
		err = r.Scan(&a.FailureStreak, &last, &a.ActiveRun)
		a.LastRunAt = timeOrNil(last)
		return a, err
	}, `SELECT failures, last_run_at, COALESCE((SELECT run_id FROM open_runs WHERE agent_id = $1 AND turn = 0
		AND lane = ''), '') FROM agent_runtimes WHERE agent_id = $1`, agent)
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
