package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"reeve"
)

// operationColumns are the columns of calls that an operation is read from.
const operationColumns = `id, workspace_id, agent_id, operation_id, result_id, thread_id, run_id, tool, tool_version, policy, effect, state, args_hash,
	base, code, message, tries, next_attempt_at, owner, resolution, resolved_by, undo, spent, created_at, updated_at,
	deferred, timeout_at, in_flight_until`

func scanOperation(r scanner) (o reeve.Operation, err error) {
	defer wrapCorrupt("calls", &o.CallID, &err)
	var id sql.NullString
	var next, created, updated, deferred, timeout, inFlight int64
	var undo, spent string
	if err := r.Scan(&o.CallID, &o.WorkspaceID, &o.AgentID, &id, &o.ResultID, &o.ThreadID, &o.RunID, &o.Tool,
		&o.ToolVersion, &o.Policy,
		&o.Effect, &o.State, &o.ArgsHash, &o.Base, &o.Code, &o.Message, &o.Tries, &next, &o.Owner, &o.Resolution,
		&o.ResolvedBy, &undo, &spent,
		&created, &updated, &deferred, &timeout, &inFlight); err != nil {
		return o, err
	}
	o.ID = id.String
	o.Deferred, o.TimeoutAt, o.InFlightUntil = deferred != 0, optional(timeout), optional(inFlight)
	o.NextAttemptAt, o.CreatedAt, o.UpdatedAt = optional(next), reeve.FromMillis(created), reeve.FromMillis(updated)
	if err := decode("undo", undo, &o.Undo); err != nil {
		return o, err
	}
	return o, decode("spent", spent, &o.Spent)
}

// TransitionOperation takes an operation from one state to another, and gives its call a result if there is one. It is
// a Conflict if the row is not as it was read: its state, owner, tries, resolution and result must be those of was.
// Skipping an operation leaves its state as it is.
func (t LedgerTx) TransitionOperation(ctx context.Context, was, is reeve.Operation, result *CallResult) error {
	if was.State != is.State {
		if err := was.State.CheckTransition(is.State); err != nil {
			return err
		}
	}
	change, args := "", []any{is.ID, string(was.State), was.Owner, was.Tries, string(was.Resolution), was.ResultID,
		string(is.State), is.Base,
		string(is.Code), reeve.SanitizeText(is.Message), is.Tries, orZero(is.NextAttemptAt), is.Owner,
		string(is.Resolution), is.ResolvedBy, undoText(is.Undo),
		spentText(is.Spent), reeve.Millis(t.now), is.ToolVersion, is.Policy, orZero(is.TimeoutAt),
		orZero(is.InFlightUntil)}
	if result != nil {
		change, args = `, result_id = $23, result = $24, result_info = $25`,
			append(args, result.ID, reeve.SanitizeText(result.Content), reeve.SanitizeText(string(result.Info)))
	}
	n, err := t.tx.affect(ctx, `UPDATE calls SET state = $7, base = $8, code = $9, message = $10, tries = $11, next_attempt_at = $12, owner = $13,
			resolution = $14, resolved_by = $15, undo = $16, spent = $17, updated_at = $18, tool_version = $19, policy = $20, timeout_at = $21,
			in_flight_until = $22`+change+`
		WHERE operation_id = $1 AND state = $2 AND owner = $3 AND tries = $4 AND resolution = $5 AND result_id = $6`, args...)
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.Conflict, "operation %s is no longer %s as it was", is.ID, was.State)
	}
	return err
}

func undoText(u *reeve.Undo) string {
	if u == nil {
		return ""
	}
	return text(u)
}

func spentText(a reeve.Amount) string {
	if a.IsZero() {
		return ""
	}
	return text(a)
}

// GetOperation reads an operation of a workspace.
func (s Ledger) GetOperation(ctx context.Context, workspace, id string) (reeve.Operation, error) {
	o, ok, err := s.FindOperation(ctx, workspace, id)
	if err == nil && !ok {
		err = notFound("operation", id)
	}
	return o, err
}

const selectOperation = `SELECT ` + operationColumns + ` FROM calls WHERE operation_id = $2 AND workspace_id || '' = $1`

// FindOperation is GetOperation for an id that may not have been used.
func (s Ledger) FindOperation(ctx context.Context, workspace, id string) (reeve.Operation, bool, error) {
	return one(ctx, s.Snap, scanOperation, selectOperation, workspace, id)
}

// ApprovedOperation reads the operation that an approval is for; false means that it is gone, or that its row cannot be
// read and is skipped.
func (s Ledger) ApprovedOperation(ctx context.Context, a reeve.Approval) (reeve.Operation, bool, error) {
	return one(ctx, s.Snap, skipCorrupt(s.Snap, scanOperation, nil), selectOperation, a.WorkspaceID, a.OperationID)
}

// OperationFilter narrows a list of operations. Empty fields do not.
type OperationFilter struct {
	Agent  string
	State  reeve.State
	Before string // the call id of the last one that was read
	Limit  int
}

// ListOperations reads a page of operations, newest first: in the order of their calls' ids.
func (s Ledger) ListOperations(ctx context.Context, workspace string, f OperationFilter) ([]reeve.Operation, error) {
	// no id is behind ~
	where, args := `workspace_id = $1`, []any{workspace, cmp.Or(f.Before, "~"), f.Limit, string(f.State)}
	// by the agent's own index
	if f.Agent != "" {
		where, args = `agent_id = $5 AND workspace_id || '' = $1`, append(args, f.Agent)
	}
	return all(ctx, s.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls WHERE `+where+` AND operation_id IS NOT NULL
		AND id < $2 AND ($4 = '' OR state = $4) ORDER BY id DESC LIMIT $3`, args...)
}

// ListUnknown reads the operations that wait for a person's word, oldest first.
func (s Ledger) ListUnknown(ctx context.Context, workspace string, limit int) ([]reeve.Operation, error) {
	return all(ctx, s.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls
		WHERE workspace_id = $1 AND state IN ('parked', 'unknown') AND state = 'unknown' AND resolution = '' ORDER BY id LIMIT $2`, workspace, limit)
}

// RunIsParked tells whether a run has a call that waits for a person. What was accepted of its proposals goes its own
// way.
func (s Ledger) RunIsParked(ctx context.Context, workspace, run string) (string, error) {
	id, _, err := one(ctx, s.Snap, value[string], `SELECT operation_id FROM calls WHERE run_id = $1 AND `+ofWorkspace+
		` AND `+awaitsPerson+` LIMIT 1`, run, workspace)
	return id, err
}

// ofWorkspace is that a run's operations are of the workspace. It is said so that no index is taken for it: the
// workspace's has the order, and all that there ever was.
const ofWorkspace = `workspace_id || '' = $2`

// WaitingOperations reads a run's operations that wait for a person's approval, or have it and have not begun.
func (s Ledger) WaitingOperations(ctx context.Context, workspace, run string) ([]reeve.Operation, error) {
	return all(ctx, s.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls WHERE run_id = $1 AND `+ofWorkspace+` AND result_id = '' AND state IN ('parked', 'prepared')
		AND run_id <> '' ORDER BY id`, run, workspace)
}

// ParkedOperations reads a workspace's operations that wait for a person.
func (s Ledger) ParkedOperations(ctx context.Context, workspace string) ([]reeve.Operation, error) {
	return all(ctx, s.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls
		WHERE workspace_id = $1 AND state IN ('parked', 'unknown') AND state = 'parked' ORDER BY id`, workspace)
}

// awaitsPerson is what an operation is whose run waits for a person.
const awaitsPerson = `run_id <> '' AND result_id = '' AND state IN ('parked', 'unknown') AND (state = 'parked' OR resolution = '')
	AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.operation_id = calls.operation_id AND p.operation_id <> '')`

// mayGo is what an operation needs to be worked on now. Workspaces and agents that are stopped keep what has not been
// sent.
const mayGo = `(state = 'dispatched' OR (NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = calls.workspace_id AND w.stopped_at <> 0)
	AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.id = calls.agent_id AND a.stopped_at <> 0)))`

// awaitsRun is what an operation is that waits for a run which it began, or for something else in this database. No
// process works on it: OverdueOperations finds it when its time is up.
const awaitsRun = `state = 'dispatched' AND effect = 'local' AND timeout_at <> 0`

// ClaimOperations takes up to n operations that are due and that nobody works on, for a process. An operation in the
// hands of a process that is gone is due. Workspaces and agents that are stopped keep theirs. One whose row cannot be
// read is taken and skipped: this process does not look at it again.
//
// An owner that this statement does not know may have joined while it waited; the row it has claimed since is newer
// than we are, which is how we can tell.
func (t LedgerTx) ClaimOperations(ctx context.Context, process string, n int) ([]reeve.Operation, error) {
	list, err := all(ctx, t.Snap, skipCorrupt(t.Snap, scanOperation, nil), `WITH due AS MATERIALIZED (
			SELECT id FROM calls WHERE state IN ('prepared', 'dispatched')
				AND ((owner = '' AND next_attempt_at <= $2)
					OR (owner <> '' AND updated_at <= $2 AND owner NOT IN (SELECT id FROM processes)))
				AND NOT (`+awaitsRun+`) AND `+mayGo+`
			ORDER BY next_attempt_at LIMIT $3`+t.db.engine.LockClause()+`)
		UPDATE calls SET owner = $1, updated_at = $2 WHERE id IN (SELECT id FROM due) RETURNING `+operationColumns,
		process, reeve.Millis(t.now), n)
	slices.SortFunc(list, func(a, b reeve.Operation) int {
		return cmp.Or(cmp.Compare(orZero(a.NextAttemptAt), orZero(b.NextAttemptAt)), cmp.Compare(a.ID, b.ID))
	})
	return list, err
}

// NextDue is when the next operation that can be claimed is due, in milliseconds; false means none waits.
func (s Ledger) NextDue(ctx context.Context) (int64, bool, error) {
	return one(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("calls"), nil), `SELECT id, next_attempt_at FROM calls WHERE state IN ('prepared', 'dispatched') AND owner = ''
		AND NOT (`+awaitsRun+`) AND `+mayGo+` ORDER BY next_attempt_at LIMIT 1`)
}

// OverdueOperations reads up to n operations that wait for a run which they began, and whose time is up.
func (s Ledger) OverdueOperations(ctx context.Context, n int) ([]reeve.Operation, error) {
	return all(ctx, s.Snap, skipCorrupt(s.Snap, scanOperation, nil), `SELECT `+operationColumns+` FROM calls
		WHERE state IN ('prepared', 'dispatched') AND `+awaitsRun+` AND next_attempt_at <= $1
		ORDER BY next_attempt_at LIMIT $2`, reeve.Millis(s.now), n)
}

// NextOverdue is when the next operation that waits for a run will be overdue, in milliseconds; false means that none
// waits.
func (s Ledger) NextOverdue(ctx context.Context) (int64, bool, error) {
	return one(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("calls"), nil), `SELECT id, next_attempt_at FROM calls
		WHERE state IN ('prepared', 'dispatched') AND `+awaitsRun+` AND next_attempt_at > $1
		ORDER BY next_attempt_at LIMIT 1`, reeve.Millis(s.now))
}
