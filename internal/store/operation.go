package store

import (
	"cmp"
	"context"
	"math"
	"slices"

	"reeve"
)

const operationColumns = `id, workspace_id, agent_id, call_id, result_id, thread_id, run_id, tool, tool_version, policy, effect, state, args_hash,
	base, code, message, tries, next_attempt_at, owner, resolution, resolved_by, undo, spent, created_at, updated_at,
	deferred, timeout_at, in_flight_until`

func scanOperation(r scanner) (o reeve.Operation, err error) {
	var next, created, updated, deferred, timeout, inFlight int64
	var undo, spent string
	if err := r.Scan(&o.ID, &o.WorkspaceID, &o.AgentID, &o.CallID, &o.ResultID, &o.ThreadID, &o.RunID, &o.Tool, &o.ToolVersion, &o.Policy,
		&o.Effect, &o.State, &o.ArgsHash, &o.Base, &o.Code, &o.Message, &o.Tries, &next, &o.Owner, &o.Resolution, &o.ResolvedBy, &undo, &spent,
		&created, &updated, &deferred, &timeout, &inFlight); err != nil {
		return o, err
	}
	o.Deferred, o.TimeoutAt, o.InFlightUntil = deferred != 0, optional(timeout), optional(inFlight)
	o.NextAttemptAt, o.CreatedAt, o.UpdatedAt = optional(next), reeve.FromMillis(created), reeve.FromMillis(updated)
	if err := fromText(undo, &o.Undo); err != nil {
		return o, err
	}
	return o, fromText(spent, &o.Spent)
}

// Taken is what InsertOperation says when the operation id has been used: look at what it came to.
type Taken struct{}

func (Taken) Error() string { return "the operation id has been used" }

// InsertOperation writes a new operation.
func (t *Tx) InsertOperation(ctx context.Context, o reeve.Operation) error {
	if err := reeve.State("").To(o.State); err != nil {
		return err
	}
	return t.execOr(ctx, func(f Fault) error {
		if f.Kind == FaultUnique {
			return Taken{}
		}
		return nil
	}, `INSERT INTO operations (`+operationColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
			$20, $21, $22, $23, $24, $24, $25, $26, $27)`,
		o.ID, o.WorkspaceID, o.AgentID, o.CallID, o.ResultID, o.ThreadID, o.RunID, o.Tool, o.ToolVersion, o.Policy, string(o.Effect),
		string(o.State), o.ArgsHash, o.Base, string(o.Code), reeve.Clean(o.Message), o.Tries, orZero(o.NextAttemptAt), o.Owner, string(o.Resolution),
		o.ResolvedBy, undoText(o.Undo), spentText(o.Spent), reeve.Millis(t.now), flag(o.Deferred), orZero(o.TimeoutAt), orZero(o.InFlightUntil))
}

// MoveOperation takes an operation from one state to another, provided nobody else has since: the row must still be in the
// state and hands it was read in, and have the tries, the word and the result it had. A person who skips it leaves its state as it is.
func (t *Tx) MoveOperation(ctx context.Context, was, is reeve.Operation) error {
	if was.State != is.State {
		if err := was.State.To(is.State); err != nil {
			return err
		}
	}
	n, err := t.affect(ctx, `UPDATE operations SET state = $4, result_id = $5, base = $6, code = $7, message = $8, tries = $9, next_attempt_at = $10,
			owner = $11, resolution = $12, resolved_by = $13, undo = $14, spent = $15, updated_at = $16, tool_version = $17, policy = $18, timeout_at = $19,
			in_flight_until = $23
		WHERE id = $1 AND state = $2 AND owner = $3 AND tries = $20 AND resolution = $21 AND result_id = $22`,
		is.ID, string(was.State), was.Owner, string(is.State), is.ResultID, is.Base, string(is.Code), reeve.Clean(is.Message), is.Tries,
		orZero(is.NextAttemptAt), is.Owner, string(is.Resolution), is.ResolvedBy, undoText(is.Undo), spentText(is.Spent), reeve.Millis(t.now),
		is.ToolVersion, is.Policy, orZero(is.TimeoutAt), was.Tries, string(was.Resolution), was.ResultID,
		orZero(is.InFlightUntil))
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
func (s *Snap) GetOperation(ctx context.Context, workspace, id string) (reeve.Operation, error) {
	o, ok, err := s.FindOperation(ctx, workspace, id)
	if err == nil && !ok {
		err = notFound("operation", id)
	}
	return o, err
}

// FindOperation is GetOperation for an id that may not have been used.
func (s *Snap) FindOperation(ctx context.Context, workspace, id string) (reeve.Operation, bool, error) {
	return one(ctx, s, scanOperation, `SELECT `+operationColumns+` FROM operations WHERE id = $2 AND workspace_id = $1`, workspace, id)
}

// SoundOperation is FindOperation where one that is damaged counts as not there.
func (s *Snap) SoundOperation(ctx context.Context, workspace, id string) (reeve.Operation, bool, error) {
	return one(ctx, s, sound(s, "operations", scanOperation), `SELECT `+operationColumns+` FROM operations WHERE id = $2 AND workspace_id = $1`, workspace, id)
}

// OperationFilter narrows a list of operations. Empty fields do not.
type OperationFilter struct {
	Agent  string
	State  reeve.State
	Before Cursor
	Limit  int
}

// Cursor is a place in a list that is ordered newest first.
type Cursor struct {
	At int64
	ID string
}

// ListOperations reads a page of operations, newest first.
func (s *Snap) ListOperations(ctx context.Context, workspace string, f OperationFilter) ([]reeve.Operation, error) {
	if f.Before.At == 0 {
		f.Before.At = math.MaxInt64
	}
	where, args := `workspace_id = $1`, []any{workspace, f.Before.At, f.Before.ID, f.Limit, string(f.State)}
	if f.Agent != "" { // a condition of its own, so that it is asked of the index
		where, args = where+` AND agent_id = $6`, append(args, f.Agent)
	}
	return page(ctx, s, "operations", scanOperation, 4, `SELECT `+operationColumns+` FROM operations WHERE `+where+`
		AND (created_at, id) < ($2, $3) AND ($5 = '' OR state = $5) ORDER BY created_at DESC, id DESC LIMIT $4`, args...)
}

// ListUnknown reads the operations that wait for a person's word, oldest first.
func (s *Snap) ListUnknown(ctx context.Context, workspace string, limit int) ([]reeve.Operation, error) {
	return page(ctx, s, "operations", scanOperation, 2, `SELECT `+operationColumns+` FROM operations
		WHERE workspace_id = $1 AND state IN ('parked', 'unknown') AND state = 'unknown' AND resolution = '' ORDER BY created_at, id LIMIT $2`, workspace, limit)
}

// RunIsParked tells whether a run has a call that waits for a person. What was accepted of its proposals goes its own way.
func (s *Snap) RunIsParked(ctx context.Context, workspace, run string) (string, error) {
	id, _, err := one(ctx, s, value[string], `SELECT id FROM operations WHERE run_id = $1 AND `+ofWorkspace+` AND `+awaitsPerson+` LIMIT 1`, run, workspace)
	return id, err
}

// ofWorkspace is that a run's operations are of the workspace. It is said so that no index is taken for it: the workspace's has the order, and all that there ever was.
const ofWorkspace = `workspace_id || '' = $2`

// WaitingOperations reads a run's operations that wait for a person's approval, or have it and have not begun.
func (s *Snap) WaitingOperations(ctx context.Context, workspace, run string) ([]reeve.Operation, error) {
	return all(ctx, s, scanOperation, `SELECT `+operationColumns+` FROM operations WHERE run_id = $1 AND `+ofWorkspace+` AND result_id = '' AND state IN ('parked', 'prepared')
		AND run_id <> '' ORDER BY created_at, id`, run, workspace)
}

// ParkedOperations reads a workspace's operations that wait for a person.
func (s *Snap) ParkedOperations(ctx context.Context, workspace string) ([]reeve.Operation, error) {
	return all(ctx, s, scanOperation, `SELECT `+operationColumns+` FROM operations
		WHERE workspace_id = $1 AND state IN ('parked', 'unknown') AND state = 'parked' ORDER BY created_at, id`, workspace)
}

// awaitsPerson is what an operation is whose run waits for a person.
const awaitsPerson = `run_id <> '' AND result_id = '' AND state IN ('parked', 'unknown') AND (state = 'parked' OR resolution = '')
	AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.operation_id = operations.id AND p.operation_id <> '')`

// mayGo is what an operation needs to be worked on now. Workspaces and agents that are stopped keep what has not been sent.
const mayGo = `(state = 'dispatched' OR (NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = operations.workspace_id AND w.stopped_at <> 0)
	AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.id = operations.agent_id AND a.stopped_at <> 0)))`

// ClaimOperations takes up to n operations that are due and that nobody works on, for a process. An operation in the hands of
// a process that is gone is due. Workspaces and agents that are stopped keep theirs. One that is damaged is taken too, and left out: it is not looked at again by this process.
//
// An owner that this statement does not know may have joined while it waited; the row it has claimed since is newer than we
// are, which is how we can tell.
func (t *Tx) ClaimOperations(ctx context.Context, process string, n int) ([]reeve.Operation, error) {
	list, err := all(ctx, &t.Snap, sound(&t.Snap, "operations", scanOperation), `WITH due AS MATERIALIZED (
			SELECT id FROM operations WHERE state IN ('prepared', 'dispatched')
				AND ((owner = '' AND next_attempt_at <= $2)
					OR (owner <> '' AND updated_at <= $2 AND owner NOT IN (SELECT id FROM processes)))
				AND `+mayGo+`
			ORDER BY next_attempt_at LIMIT $3`+t.db.engine.Lock()+`)
		UPDATE operations SET owner = $1, updated_at = $2 WHERE id IN (SELECT id FROM due) RETURNING `+operationColumns,
		process, reeve.Millis(t.now), n)
	slices.SortFunc(list, func(a, b reeve.Operation) int {
		return cmp.Or(cmp.Compare(orZero(a.NextAttemptAt), orZero(b.NextAttemptAt)), cmp.Compare(a.ID, b.ID))
	})
	return list, err
}

// NextDue is when the next operation that can be claimed is due, in milliseconds; false means none waits.
func (s *Snap) NextDue(ctx context.Context) (int64, bool, error) {
	return one(ctx, s, sound(s, "operations", timeOf), `SELECT id, next_attempt_at FROM operations WHERE state IN ('prepared', 'dispatched') AND owner = ''
		AND `+mayGo+` ORDER BY next_attempt_at LIMIT 1`)
}
