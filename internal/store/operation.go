package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"reeve"
)

// operationColumns are the columns of calls that scanOperation reads.
const operationColumns = `id, workspace_id, agent_id, operation_id, result_id, thread_id, run_id, tool, tool_version,
	policy, effect, state, args_hash,
	base, code, message, tries, next_attempt_at, owner, resolution, resolved_by, undo, spent, created_at, updated_at,
	deferred, timeout_at, in_flight_until, private_to`

func scanOperation(r scanner) (o reeve.Operation, err error) {
	defer wrapCorrupt("calls", &o.CallID, &err)
	var id sql.NullString
	var next, created, updated, deferred, timeout, inFlight int64
	var undo, spent string
	if err := r.Scan(&o.CallID, &o.WorkspaceID, &o.AgentID, &id, &o.ResultID, &o.ThreadID, &o.RunID, &o.Tool,
		&o.ToolVersion, &o.Policy,
		&o.Effect, &o.State, &o.ArgsHash, &o.Base, &o.Code, &o.Message, &o.Attempts, &next, &o.Owner, &o.Resolution,
		&o.ResolvedBy, &undo, &spent,
		&created, &updated, &deferred, &timeout, &inFlight, &o.PrivateTo); err != nil {
		return o, err
	}
	o.ID = id.String
	o.Deferred, o.TimeoutAt, o.InFlightUntil = deferred != 0, timeOrNil(timeout), timeOrNil(inFlight)
	o.NextAttemptAt, o.CreatedAt, o.UpdatedAt = timeOrNil(next), reeve.FromMillis(created), reeve.FromMillis(updated)
	if err := decodeJSON("undo", undo, &o.Undo); err != nil {
		return o, err
	}
	return o, decodeJSON("spent", spent, &o.Spent)
}

// TransitionOperation changes an operation from was to is, and stores the result of its call unless result is nil. It
// returns a Conflict if the state, owner, tries, resolution or result in the database differ from those of was. The
// state may stay the same, for example when a person skips an operation.
func (t LedgerTx) TransitionOperation(ctx context.Context, was, is reeve.Operation, result *CallResult) error {
	t.tx.Announce(is.WorkspaceID, TopicOperations, announcedID(is.ID, is.PrivateTo), is.RunID)
	if was.State == reeve.Unknown || is.State == reeve.Unknown {
		t.tx.Announce(is.WorkspaceID, TopicInbox, "", "")
	}
	if was.State != is.State {
		if err := was.State.CheckTransition(is.State); err != nil {
			return err
		}
	}
	change, args := "", []any{is.ID, string(was.State), was.Owner, was.Attempts, string(was.Resolution), was.ResultID,
		string(is.State), is.Base,
		string(is.Code), reeve.SanitizeText(is.Message), is.Attempts, millisOrZero(is.NextAttemptAt), is.Owner,
		string(is.Resolution), is.ResolvedBy, encodeUndo(is.Undo),
		encodeSpent(is.Spent), reeve.Millis(t.now), is.ToolVersion, is.Policy, millisOrZero(is.TimeoutAt),
		millisOrZero(is.InFlightUntil)}
	if result != nil {
		change, args = `, result_id = $23, result = $24, result_info = $25`,
			append(args, result.ID, reeve.SanitizeText(result.Content), reeve.SanitizeText(string(result.Info)))
	}
	n, err := t.tx.execCount(ctx, `UPDATE calls SET state = $7, base = $8, code = $9, message = $10, tries = $11,
		next_attempt_at = $12, owner = $13,
			resolution = $14, resolved_by = $15, undo = $16, spent = $17, updated_at = $18, tool_version = $19,
			policy = $20, timeout_at = $21,
			in_flight_until = $22`+change+`
		WHERE operation_id = $1 AND state = $2 AND owner = $3 AND tries = $4 AND resolution = $5 AND result_id = $6`,
		args...)
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.Conflict, "operation %s has changed since it was read as %s", is.ID, was.State)
	}
	return err
}

func encodeUndo(u *reeve.Undo) string {
	if u == nil {
		return ""
	}
	return encodeJSON(u)
}

func encodeSpent(a reeve.Amount) string {
	if a.IsZero() {
		return ""
	}
	return encodeJSON(a)
}

// GetOperation returns an operation of a workspace.
func (s Ledger) GetOperation(ctx context.Context, workspace, id string) (reeve.Operation, error) {
	o, ok, err := s.FindOperation(ctx, workspace, id)
	if err == nil && !ok {
		err = notFound("operation", id)
	}
	return o, err
}

const selectOperation = `SELECT ` + operationColumns + ` FROM calls WHERE operation_id = $2 AND workspace_id || '' = $1`

// FindOperation returns an operation of a workspace. It returns false if the id was not used.
func (s Ledger) FindOperation(ctx context.Context, workspace, id string) (reeve.Operation, bool, error) {
	o, ok, err := queryOne(ctx, s.Snap, scanOperation, selectOperation, workspace, id)
	if !s.canSee(o.PrivateTo) {
		return reeve.Operation{}, false, err
	}
	return o, ok, err
}

// ApprovedOperation returns the operation that an approval is for. It returns false if the operation does not exist, or
// if its row is corrupt.
func (s Ledger) ApprovedOperation(ctx context.Context, a reeve.Approval) (reeve.Operation, bool, error) {
	return queryOne(ctx, s.Snap, skipCorrupt(s.Snap, scanOperation, nil), selectOperation, a.WorkspaceID, a.OperationID)
}

// OperationFilter restricts a list of operations. Empty fields do not restrict it.
type OperationFilter struct {
	Agent  string
	Run    string
	State  reeve.State
	Before string // the call id of the last operation of the previous page
	Limit  int
}

// ListOperations returns a page of operations in descending order of their call ids.
func (s Ledger) ListOperations(ctx context.Context, workspace string, f OperationFilter) ([]reeve.Operation, error) {
	// ~ sorts after every id
	where, args := `workspace_id = $1`, []any{workspace, cmp.Or(f.Before, "~"), f.Limit, string(f.State)}
	switch {
	case f.Run != "": // this uses the run's index
		where, args = `run_id = $5 AND run_id <> '' AND workspace_id || '' = $1 AND ($6 = '' OR agent_id = $6)`,
			append(args, f.Run, f.Agent)
	case f.Agent != "": // this uses the agent's index
		where, args = `agent_id = $5 AND workspace_id || '' = $1`, append(args, f.Agent)
	}
	where, args = s.onlyVisible(`private_to`, where, args)
	return queryAll(ctx, s.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls
		WHERE `+where+` AND operation_id IS NOT NULL
		AND id < $2 AND ($4 = '' OR state = $4) ORDER BY id DESC LIMIT $3`, args...)
}

// ListUnknown returns the operations with unknown outcome that a person has not resolved, oldest first.
func (s Ledger) ListUnknown(ctx context.Context, workspace string, limit int) ([]reeve.Operation, error) {
	where, args := s.onlyVisible(`private_to`, `workspace_id = $1 AND state IN ('parked', 'unknown')
		AND state = 'unknown' AND resolution = ''`, []any{workspace, limit})
	return queryAll(ctx, s.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls WHERE `+where+`
		ORDER BY id LIMIT $2`, args...)
}

// FindParkedOperation returns the id of an operation of the run that waits for a person, or "" if none does. Operations
// of accepted proposals do not count, because they proceed independently of the run.
func (s Ledger) FindParkedOperation(ctx context.Context, workspace, run string) (string, error) {
	id, _, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT operation_id FROM calls WHERE run_id = $1
		AND `+inWorkspace+
		` AND `+awaitsPerson+` LIMIT 1`, run, workspace)
	return id, err
}

// inWorkspace is the condition that a row belongs to the workspace. The || ” keeps the planner from using the
// workspace's index, which would read all calls of the workspace.
const inWorkspace = `workspace_id || '' = $2`

// WaitingOperations returns a run's operations that wait for approval, or are approved and have not begun.
func (s Ledger) WaitingOperations(ctx context.Context, workspace, run string) ([]reeve.Operation, error) {
	return queryAll(ctx, s.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls WHERE run_id = $1
		AND `+inWorkspace+` AND result_id = '' AND state IN ('parked', 'prepared')
		AND run_id <> '' ORDER BY id`, run, workspace)
}

// ParkedOperations returns a workspace's operations that wait for approval.
func (s Ledger) ParkedOperations(ctx context.Context, workspace string) ([]reeve.Operation, error) {
	return queryAll(ctx, s.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls
		WHERE workspace_id = $1 AND state IN ('parked', 'unknown') AND state = 'parked' ORDER BY id`, workspace)
}

// awaitsPerson is the condition that an operation's run waits for a person because of it.
const awaitsPerson = `run_id <> '' AND result_id = '' AND state IN ('parked', 'unknown') AND (state = 'parked'
	OR resolution = '')
	AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.operation_id = calls.operation_id AND p.operation_id <> '')`

// mayProceed is the condition that an operation may be worked on. An operation that was not sent yet must wait while
// its workspace or agent is stopped.
const mayProceed = `(state = 'dispatched' OR (NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = calls.workspace_id
	AND w.stopped_at <> 0)
	AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.id = calls.agent_id AND a.stopped_at <> 0)))`

// awaitsRun is the condition that an operation waits for a run that it started, or for another change in this database.
// No process works on such an operation; OverdueOperations returns it after its timeout.
const awaitsRun = `state = 'dispatched' AND effect = 'local' AND timeout_at <> 0`

// ClaimOperations leases up to n due operations for a process. An operation whose owner is no longer registered is due
// too. Operations of stopped workspaces and agents are left out. A row that is corrupt is claimed and skipped, so this
// process does not read it again.
//
// The owner of a row may be a process that registered after this statement took its snapshot. Such a row was updated
// after the transaction began, and the condition on updated_at leaves it out.
func (t LedgerTx) ClaimOperations(ctx context.Context, process string, n int) ([]reeve.Operation, error) {
	list, err := queryAll(ctx, t.Snap, skipCorrupt(t.Snap, scanOperation, nil), `WITH due AS MATERIALIZED (
			SELECT id FROM calls WHERE state IN ('prepared', 'dispatched')
				AND ((owner = '' AND next_attempt_at <= $2)
					OR (owner <> '' AND updated_at <= $2 AND owner NOT IN (SELECT id FROM processes)))
				AND NOT (`+awaitsRun+`) AND `+mayProceed+`
			ORDER BY next_attempt_at LIMIT $3`+t.db.engine.LockClause()+`)
		UPDATE calls SET owner = $1, updated_at = $2 WHERE id IN (SELECT id FROM due) RETURNING `+operationColumns,
		process, reeve.Millis(t.now), n)
	slices.SortFunc(list, func(a, b reeve.Operation) int {
		return cmp.Or(cmp.Compare(millisOrZero(a.NextAttemptAt), millisOrZero(b.NextAttemptAt)), cmp.Compare(a.ID,
			b.ID))
	})
	return list, err
}

// NextDue returns the time, in milliseconds, at which the next operation can be claimed. It returns false if none
// waits.
func (s Ledger) NextDue(ctx context.Context) (int64, bool, error) {
	return queryOne(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("calls"), nil), `SELECT id, next_attempt_at FROM calls
		WHERE state IN ('prepared', 'dispatched') AND owner = ''
		AND NOT (`+awaitsRun+`) AND `+mayProceed+` ORDER BY next_attempt_at LIMIT 1`)
}

// OverdueOperations returns up to n operations that wait for a run which they started and whose timeout has passed.
func (s Ledger) OverdueOperations(ctx context.Context, n int) ([]reeve.Operation, error) {
	return queryAll(ctx, s.Snap, skipCorrupt(s.Snap, scanOperation, nil), `SELECT `+operationColumns+` FROM calls
		WHERE state IN ('prepared', 'dispatched') AND `+awaitsRun+` AND next_attempt_at <= $1
		ORDER BY next_attempt_at LIMIT $2`, reeve.Millis(s.now), n)
}

// NextOverdue returns the next timeout, in milliseconds, of an operation that waits for a run. It returns false if none
// waits.
func (s Ledger) NextOverdue(ctx context.Context) (int64, bool, error) {
	return queryOne(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("calls"), nil), `SELECT id, next_attempt_at FROM calls
		WHERE state IN ('prepared', 'dispatched') AND `+awaitsRun+` AND next_attempt_at > $1
		ORDER BY next_attempt_at LIMIT 1`, reeve.Millis(s.now))
}
