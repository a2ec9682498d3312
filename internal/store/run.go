package store

import (
	"cmp"
	"context"
	"slices"

	"reeve"
)

const runColumns = `id, run_key, workspace_id, agent_id, reason, reason_id, session_id, user_id, input, origins,
	thread_id, state, output, code, message,
	wakes, attempts, spent, owner, scheduled_at, started_at, finished_at, moves, issues, results,
	parent_id, answers, ancestors, on_behalf_of`

func scanRun(r scanner) (v reeve.Run, err error) {
	defer wrapCorrupt("runs", &v.ID, &err)
	var origins, spent, issues, ancestors, behalf string
	var scheduled, started, finished int64
	if err := r.Scan(&v.ID, &v.Key, &v.WorkspaceID, &v.AgentID, &v.Reason, &v.ReasonID, &v.SessionID, &v.UserID,
		&v.Input, &origins, &v.ThreadID,
		&v.State, &v.Output, &v.Code, &v.Message, &v.Wakes, &v.Attempts, &spent, &v.Owner, &scheduled, &started,
		&finished,
		&v.ModelRequests, &issues, &v.ResultsToResume, &v.ParentID, &v.CallerOperationID, &ancestors,
		&behalf); err != nil {
		return v, err
	}
	v.Origins, v.ScheduledAt, v.StartedAt, v.FinishedAt = splitOrigins(origins), timeOrNil(scheduled),
		reeve.FromMillis(started), timeOrNil(finished)
	if err := decodeJSON("issues", issues, &v.Issues); err != nil {
		return v, err
	}
	if err := decodeJSON("ancestors", ancestors, &v.Ancestors); err != nil {
		return v, err
	}
	if n := len(v.Ancestors); v.ParentID != "" && (n == 0 || v.Ancestors[n-1].RunID != v.ParentID) {
		// without the ancestors, the rights of the run's calls are unknown
		return v, &columnError{"ancestors", "do not end with the parent run"}
	}
	if v.OnBehalfOf, err = decodeDelegators(behalf); err != nil {
		return v, err
	}
	return v, decodeJSON("spent", spent, &v.Spent)
}

func encodeAncestors(list []reeve.Ancestor) string {
	if len(list) == 0 {
		return ""
	}
	return encodeJSON(list)
}

// InsertRun inserts a run and makes it the open run of its lane. It returns false if the lane has an open run already.
func (t RunsTx) InsertRun(ctx context.Context, v reeve.Run) (bool, error) {
	made, err := t.InsertRuns(ctx, []reeve.Run{v})
	return len(made) == 1, err
}

// InsertRuns inserts runs of different lanes and makes each the open run of its lane. It returns the ids of the runs
// that it inserted. The lanes of the others have an open run already, possibly of another server. Turns are always
// inserted, because they do not wait for other runs.
func (t RunsTx) InsertRuns(ctx context.Context, runs []reeve.Run) (made map[string]bool, err error) {
	for _, v := range runs {
		t.tx.Announce(v.WorkspaceID, TopicRuns, v.ID, v.ID)
	}
	made = make(map[string]bool, len(runs))
	var turns, lanes, rows [][]any
	for _, v := range runs {
		open := []any{v.ID, v.AgentID, v.SessionID, v.ParentID, 0, laneOf(v.Reason, v.SessionID)}
		if v.Reason == reeve.ReasonUser {
			open[4], made[v.ID] = 1, true
			turns = append(turns, open)
		} else {
			lanes = append(lanes, open)
		}
	}
	// one order for all servers, so that they do not deadlock
	slices.SortFunc(lanes, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[1].(string), b[1].(string)), cmp.Compare(a[5].(string), b[5].(string)))
	})
	const open = `INSERT INTO open_runs (run_id, agent_id, session_id, parent_id, turn, lane, seen)
		SELECT v.column1, v.column2, v.column3, v.column4, v.column5, v.column6, COALESCE((SELECT counter FROM nodes
		WHERE self = 1), 0) FROM (VALUES (?)) AS v`
	if err := t.tx.insertRows(open, turns, t.tx.execFunc(ctx)); err != nil {
		return nil, err
	}
	if err := t.tx.insertRows(open+` WHERE true ON CONFLICT (agent_id, lane) WHERE turn = 0 DO NOTHING
		RETURNING run_id`,
		lanes, func(query string, args []any) error {
			ids, err := queryAll(ctx, t.Snap, scanValue[string], query, args...)
			for _, id := range ids {
				made[id] = true
			}
			return err
		}); err != nil {
		return nil, err
	}
	for _, v := range runs {
		if v.StartedAt.IsZero() {
			v.StartedAt = t.now
		}
		if made[v.ID] {
			rows = append(rows, []any{v.ID, v.Key, v.WorkspaceID, v.AgentID, string(v.Reason), v.ReasonID, v.SessionID,
				v.UserID, v.Input, joinOrigins(v.Origins), v.ThreadID,
				v.Wakes, v.Owner, millisOrZero(v.ScheduledAt), reeve.Millis(v.StartedAt), v.ParentID,
				v.CallerOperationID,
				encodeAncestors(v.Ancestors),
				encodeDelegators(v.OnBehalfOf)})
		}
	}
	return made, t.tx.insertRows(`INSERT INTO runs (`+runColumns+`) SELECT v.column1, v.column2, v.column3, v.column4,
		v.column5, v.column6, v.column7, v.column8, v.column9, v.column10,
		v.column11, 'running', '', '', '', v.column12, 1, '', v.column13, v.column14, v.column15, 0, 0, '', 0,
		v.column16, v.column17, v.column18, v.column19
		FROM (VALUES (?)) AS v`,
		rows, t.tx.execFunc(ctx))
}

// PutDelegators updates the delegators on whose behalf a run acts.
func (t RunsTx) PutDelegators(ctx context.Context, v reeve.Run) error {
	return t.tx.exec(ctx, `UPDATE runs SET on_behalf_of = $2 WHERE id = $1`, v.ID, encodeDelegators(v.OnBehalfOf))
}

func toSet(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, v := range list {
		set[v] = true
	}
	return set
}

// TransitionRun changes a run from was to is. It returns a Conflict if the state or owner in the database differs from
// that of was. If the run ends, it also updates its agent and closes the run's lane.
func (t RunsTx) TransitionRun(ctx context.Context, was, is reeve.Run) error {
	moved, err := t.TransitionRuns(ctx, []RunTransition{{was, is}})
	if err == nil && !moved[is.ID] {
		return reeve.Errorf(reeve.Conflict, "run %s is no longer %s", is.ID, was.State)
	}
	return err
}

// RunTransition is a run as it was read and as it shall be.
type RunTransition struct{ Was, Is reeve.Run }

// TransitionRuns is TransitionRun for several runs. It returns the ids of the runs that it changed and leaves the
// others as they are.
func (t RunsTx) TransitionRuns(ctx context.Context, moves []RunTransition) (moved map[string]bool, err error) {
	for _, m := range moves {
		t.tx.Announce(m.Is.WorkspaceID, TopicRuns, m.Is.ID, m.Is.ID)
	}
	var ids resultLists[string]
	if err := firstError(t.queueTransitions(ctx, &ids, moves), t.flush(ctx)); err != nil {
		return nil, err
	}
	moved = toSet(ids.concat())
	return moved, t.closeEnded(ctx, moves, moved)
}

// EndRuns is TransitionRuns for runs that their brains have finished. It adds what their messages and operations spent
// to each run.
func (t RunsTx) EndRuns(ctx context.Context, moves []RunTransition) (moved map[string]bool, err error) {
	for _, m := range moves {
		t.tx.Announce(m.Is.WorkspaceID, TopicRuns, m.Is.ID, m.Is.ID)
	}
	var ids resultLists[string]
	var parts []spending
	runs := make([]string, len(moves))
	for i, m := range moves {
		runs[i] = m.Is.ID
	}
	if err := firstError(t.queueTransitions(ctx, &ids, moves), t.queueSpending(ctx, &parts, runs),
		t.flush(ctx)); err != nil {
		return nil, err
	}
	spent := sumSpending(parts)
	moved = toSet(ids.concat())
	var rows [][]any
	for i := range moves {
		is := &moves[i].Is
		if is.Spent = is.Spent.Plus(spent[is.ID]); is.Spent != (reeve.Amount{}) && moved[is.ID] {
			rows = append(rows, []any{is.ID, encodeSpent(is.Spent)})
		}
	}
	if err := t.tx.execRows(ctx, `UPDATE runs SET spent = v.column2 FROM (VALUES (?)) AS v WHERE @id = v.column1`,
		[]string{"TEXT", "TEXT"}, rows); err != nil {
		return nil, err
	}
	return moved, t.closeEnded(ctx, moves, moved)
}

// queueTransitions updates runs whose state and owner are still those of Was, and queues the list of their ids.
func (t RunsTx) queueTransitions(ctx context.Context, into *resultLists[string], moves []RunTransition) error {
	rows := make([][]any, len(moves))
	for i, m := range moves {
		if m.Was.State != m.Is.State {
			if err := m.Was.State.CheckTransition(m.Is.State); err != nil {
				return err
			}
		}
		rows[i] = []any{m.Is.ID, string(m.Was.State), m.Was.Owner, string(m.Is.State), m.Is.Output, string(m.Is.Code),
			m.Is.Message, m.Is.Attempts, encodeSpent(m.Is.Spent),
			m.Is.Owner, millisOrZero(m.Is.FinishedAt), m.Is.ModelRequests, encodeIssues(m.Is.Issues),
			m.Is.ResultsToResume}
	}
	return t.tx.eachBatch(`UPDATE runs SET state = v.column4, output = v.column5, code = v.column6, message = v.column7,
		attempts = v.column8, spent = v.column9,
			owner = v.column10, finished_at = v.column11, moves = v.column12, issues = v.column13, results = v.column14
			FROM (VALUES (?)) AS v
		WHERE @id = v.column1 AND state = v.column2 AND owner = v.column3 RETURNING id`,
		[]string{"TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "BIGINT", "TEXT", "TEXT", "BIGINT", "BIGINT",
			"TEXT", "BIGINT"}, rows,
		func(query string, args []any) error {
			return queueQuery(ctx, t.Snap, scanValue[string], into.add(), query, args...)
		})
}

// closeEnded updates the agents of runs that have ended and closes the runs' lanes.
func (t RunsTx) closeEnded(ctx context.Context, moves []RunTransition, moved map[string]bool) error {
	var ended []reeve.Run
	var closed, freed [][]any
	for _, m := range moves {
		if !moved[m.Is.ID] || !m.Is.State.IsFinal() {
			continue
		}
		ended = append(ended, m.Is)
		closed = append(closed, []any{m.Is.ID})
		failed := 0
		if m.Is.State == reeve.RunFailed {
			failed = 1
		}
		if !hasOwnLane(m.Is.Reason, m.Is.SessionID) {
			freed = append(freed, []any{m.Is.AgentID, reeve.Millis(t.now), failed})
		}
	}
	if err := t.tx.Agents().movePointers(ctx, ended); err != nil {
		return err
	}
	if err := t.tx.execRows(ctx, `DELETE FROM open_runs WHERE run_id IN (VALUES (?))`, []string{"TEXT"},
		closed); err != nil {
		return err
	}
	return t.tx.execRows(ctx, `UPDATE agent_runtimes SET last_run_at = v.column2, failures = CASE WHEN v.column3 = 1
		THEN failures + 1 ELSE 0 END
		FROM (VALUES (?)) AS v WHERE @agent_id = v.column1`, []string{"TEXT", "BIGINT", "BIGINT"}, freed)
}

func encodeIssues(i reeve.TurnIssues) string {
	if i == (reeve.TurnIssues{}) {
		return ""
	}
	return encodeJSON(i)
}

// RunState returns a run's state, or "" if the run does not exist.
func (s Runs) RunState(ctx context.Context, workspace, id string) (reeve.RunState, error) {
	v, _, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT state FROM runs WHERE id = $2 AND workspace_id = $1`,
		workspace, id)
	return reeve.RunState(v), err
}

// LockRun is like RunState, but keeps others from changing the run until the transaction ends.
func (t RunsTx) LockRun(ctx context.Context, workspace, id string) (reeve.RunState, error) {
	v, _, err := queryOne(ctx, t.Snap, scanValue[string], `SELECT state FROM runs WHERE id = $2 AND workspace_id = $1`+
		t.db.engine.ShareClause(), workspace, id)
	return reeve.RunState(v), err
}

// GetRun returns a run of a workspace.
func (s Runs) GetRun(ctx context.Context, workspace, id string) (reeve.Run, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanRun, `SELECT `+runColumns+` FROM runs WHERE id = $2 AND workspace_id = $1`,
		workspace, id)
	if err == nil && !ok {
		err = notFound("run", id)
	}
	return v, err
}

// RunFilter restricts a list of runs. Empty fields do not restrict it.
type RunFilter struct {
	Agent     string
	ReasonID  string // a timer or subscription
	VisibleTo string // a user: only this user's runs and those without a user
	State     reeve.RunState
	Before    string // a run's id
	Limit     int
}

// ListRuns returns a page of runs, newest first.
func (s Runs) ListRuns(ctx context.Context, workspace string, f RunFilter) ([]reeve.Run, error) {
	where := `workspace_id = $1 AND ($4 = '' OR state = $4) AND ($7 = '' OR user_id = '' OR user_id = $7)` +
		indexCondition(f.Agent, `agent_id = `, `$2`) + indexCondition(f.ReasonID, `reason_id <> '' AND reason_id = `,
		`$3`) +
		indexCondition(f.Before, `id < `, `$5`)
	return queryAll(ctx, s.Snap, scanRun, `SELECT `+runColumns+` FROM runs WHERE `+where+` ORDER BY id DESC LIMIT $6`,
		workspace, f.Agent, f.ReasonID, string(f.State), f.Before, f.Limit, f.VisibleTo)
}

// ClaimRuns leases up to n runs for a process. It claims running runs whose owner is no longer registered, and parked
// runs that have no call left to wait for. A parked run that waits only for deferred results is claimed when the next
// of them arrives. Accepted proposals do not block a run. Runs of stopped workspaces and agents are left out.
//
// A run that its previous owner released in an orderly way does not count another attempt. A row that is corrupt is
// claimed and skipped, so this process does not read it again.
//
// The rows are locked first and their condition is checked again by the update, because another server may have claimed
// a run in between.
func (t RunsTx) ClaimRuns(ctx context.Context, process string, n int) ([]reeve.Run, error) {
	const claimable = `((state = 'running' AND owner NOT IN (SELECT id FROM processes))
		OR (state = 'parked'
			AND NOT EXISTS (SELECT 1 FROM calls o WHERE o.run_id = runs.id AND o.run_id <> '' AND o.result_id = ''
				AND ((o.deferred = 0 AND o.state IN ('parked', 'prepared', 'dispatched')) OR (o.state = 'parked'
				AND runs.results = 0)
					OR (o.state = 'unknown' AND o.resolution = ''))
				AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.operation_id = o.operation_id
				AND p.operation_id <> ''))
			AND ((SELECT count(*) FROM calls o WHERE o.run_id = runs.id AND o.run_id <> '' AND o.deferred = 1
			AND o.result_id <> '') >= runs.results
				OR NOT EXISTS (SELECT 1 FROM calls o WHERE o.run_id = runs.id AND o.run_id <> ''
					AND o.deferred = 1 AND o.state IN ('parked', 'prepared', 'dispatched')))))`
	type row struct{ id, state string }
	ids, err := queryAll(ctx, t.Snap, func(r scanner) (f row, err error) { return f, r.Scan(&f.id, &f.state) },
		`SELECT id, state FROM runs WHERE id IN (SELECT run_id FROM open_runs) AND `+claimable+`
		AND NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = runs.workspace_id AND w.stopped_at <> 0)
		AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.id = runs.agent_id AND a.stopped_at <> 0)
		ORDER BY id LIMIT $1`+t.db.engine.LockClause(), n)
	if err != nil {
		return nil, err
	}
	var out []reeve.Run
	for _, f := range ids {
		v, ok, err := queryOne(ctx, t.Snap, skipCorrupt(t.Snap, scanRun, nil), `UPDATE runs SET owner = $2,
			state = 'running', attempts = attempts + CASE WHEN state = 'running' AND owner <> '' THEN 1 ELSE 0 END
			WHERE id = $1 AND `+claimable+` RETURNING `+runColumns, f.id, process)
		if err != nil {
			return nil, err
		}
		if v.Resumed = f.state == string(reeve.RunRunning); ok {
			out = append(out, v)
		}
	}
	return out, nil
}

// CountDeferredResults returns the number of a run's deferred calls that have a result.
func (s Runs) CountDeferredResults(ctx context.Context, run string) (int, error) {
	n, _, err := queryOne(ctx, s.Snap, scanValue[int],
		`SELECT count(*) FROM calls WHERE run_id = $1 AND run_id <> '' AND deferred = 1 AND result_id <> ''`, run)
	return n, err
}

// ReleaseRun releases the lease on a running run, so that any process can claim it.
func (t RunsTx) ReleaseRun(ctx context.Context, v reeve.Run) error {
	return t.tx.exec(ctx, `UPDATE runs SET owner = '' WHERE id = $1 AND state = 'running' AND owner = $2`, v.ID,
		v.Owner)
}

// RunsOwnedBy returns the running runs that a process owns.
func (s Runs) RunsOwnedBy(ctx context.Context, process string) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, skipCorrupt(s.Snap, scanRun, nil), `SELECT `+runColumns+
		` FROM runs WHERE id IN (SELECT run_id FROM open_runs) AND state = 'running' AND owner = $1 ORDER BY id`,
		process)
}

// RunSpent returns what a run's calls and model responses cost.
func (s Runs) RunSpent(ctx context.Context, run string) (reeve.Amount, error) {
	var parts []spending
	if err := firstError(s.queueSpending(ctx, &parts, []string{run}), s.flush(ctx)); err != nil {
		return reeve.Amount{}, err
	}
	return sumSpending(parts)[run], nil
}

// AddLateSpending adds a cost to a run that has ended. A run that has not ended counts the cost when it ends.
func (t RunsTx) AddLateSpending(ctx context.Context, run string, more reeve.Amount) error {
	if more.IsZero() {
		return nil
	}
	// the update locks the row, because two calls may finish at once
	was, over, err := queryOne(ctx, t.Snap, scanValue[string],
		`UPDATE runs SET owner = owner WHERE id = $1 AND state NOT IN ('running', 'parked') RETURNING spent`, run)
	var spent reeve.Amount
	if err := firstError(err, decodeJSON("spent", was, &spent)); err != nil || !over {
		return err
	}
	return t.tx.exec(ctx, `UPDATE runs SET spent = $2 WHERE id = $1`, run, encodeSpent(spent.Plus(more)))
}

// spending is one part of a run's cost: a model response or a call.
type spending struct {
	run   string
	spent reeve.Amount
}

// queueSpending queues the costs of runs. Corrupt rows count nothing, because a run must be able to end regardless of
// its log.
func (s Runs) queueSpending(ctx context.Context, into *[]spending, runs []string) error {
	scan := func(r scanner) (p spending, err error) {
		var table, id, metadata, spent string
		defer func() { wrapCorrupt(table, &id, &err) }()
		if err := r.Scan(&table, &id, &p.run, &metadata, &spent); err != nil {
			return p, err
		}
		var info struct{ Spent reeve.Amount }
		err = firstError(decodeJSON("metadata", metadata, &info), decodeJSON("spent", spent, &info.Spent))
		p.spent = info.Spent
		return p, err
	}
	return queueQueryIn(ctx, s.Snap, skipCorrupt(s.Snap, scan, nil), into, `SELECT 'messages', id, run_id, metadata, ''
		FROM messages
		WHERE run_id IN (?) AND run_id <> '' AND kind = 'thought'
		UNION ALL SELECT 'calls', id, run_id, '', spent FROM calls WHERE run_id IN (?) AND run_id <> ''`, runs)
}

// sumSpending returns the cost of each run that has any, by id.
func sumSpending(parts []spending) map[string]reeve.Amount {
	spent := map[string]reeve.Amount{}
	for _, p := range parts {
		spent[p.run] = spent[p.run].Plus(p.spent)
	}
	return spent
}

// PutRunBudget limits what one run may spend. It does not increment the workspace's revision, because the new budget
// affects no other call. The gate always looks for the budget of a run.
func (t RunsTx) PutRunBudget(ctx context.Context, v reeve.Run, limit reeve.Amount) error {
	return t.tx.exec(ctx, `INSERT INTO budgets (workspace_id, subject, parent, on_exceed, limit_calls, limit_tokens,
		limit_micros, limit_millis,
			used_calls, used_tokens, used_micros, used_millis) VALUES ($1, $2, '', $3, $4, $5, $6, $7, 0, 0, 0, 0)
			ON CONFLICT (workspace_id, subject) DO NOTHING`,
		v.WorkspaceID, "run:"+v.ID, string(reeve.EndOverBudget), limit.Calls, limit.Tokens, limit.Micros, limit.Millis)
}

// DeleteRunBudgets deletes the budgets of runs that have ended. The rows of the runs contain what they spent.
func (t RunsTx) DeleteRunBudgets(ctx context.Context, ended ...reeve.Run) error {
	rows := make([][]any, len(ended))
	for i, v := range ended {
		rows[i] = []any{v.WorkspaceID, "run:" + v.ID}
	}
	return t.tx.execRows(ctx, `DELETE FROM budgets WHERE (workspace_id, subject) IN (VALUES (?))`,
		[]string{"TEXT", "TEXT"}, rows)
}
