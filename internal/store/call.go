package store

import (
	"context"
	"encoding/json"

	"reeve"
)

// Call is one row of the table calls: the request, the gate's decision and, once there is one, the result. A call that
// changes nothing or was refused is not an operation. Its Operation has neither an id nor a state.
type Call struct {
	Operation reeve.Operation
	Args      string          // redacted, as callers see them
	Request   json.RawMessage // a reeve.ActionInfo
	Result    *CallResult     // nil while the call has no result
}

// CallResult is the result of a call.
type CallResult struct {
	ID      string
	Content string
	Info    json.RawMessage // a reeve.ResultInfo
}

// RequestInfo decodes who made the call, how and why, and what each step of the gate decided.
func (c Call) RequestInfo() (info reeve.ActionInfo, err error) {
	return info, json.Unmarshal(c.Request, &info)
}

// ResultInfo decodes the status, costs and other facts about the result.
func (r CallResult) ResultInfo() (info reeve.ResultInfo, err error) {
	return info, json.Unmarshal(r.Info, &info)
}

const callColumns = operationColumns + `, args, request, result, result_info`

func scanCall(r scanner) (c Call, err error) {
	defer wrapCorrupt("calls", &c.Operation.CallID, &err)
	var request, result, info string
	c.Operation, err = scanOperation(extendedRow{r, []any{&c.Args, &request, &result, &info}})
	if err != nil {
		return c, err
	}
	if c.Request, err = rawJSON("request", request); err != nil || c.Operation.ResultID == "" {
		return c, err
	}
	c.Result = &CallResult{ID: c.Operation.ResultID, Content: result}
	c.Result.Info, err = rawJSON("result_info", info)
	return c, err
}

// extendedRow scans a row that has extra columns after the ones that the caller scans.
type extendedRow struct {
	row   scanner
	extra []any
}

func (c extendedRow) Scan(dest ...any) error { return c.row.Scan(append(dest, c.extra...)...) }

// Preconditions are the facts that the gate based its decision on. InsertCall checks that they still hold.
type Preconditions struct {
	Revision   int64  // the workspace's revision when the gate decided
	Run        string // must neither have ended nor wait for a person; empty means no check
	Automation string // the agent whose automation must not be paused; empty means no check
}

// ErrStaleDecision means that the workspace, the run or the automation has changed since the gate decided on a call.
// The gate must decide again.
type ErrStaleDecision struct{}

func (ErrStaleDecision) Error() string {
	return "workspace has changed since the gate decided on the call"
}

// ErrDuplicateOperation means that the operation id was used before. The caller reads the existing operation.
type ErrDuplicateOperation struct{}

func (ErrDuplicateOperation) Error() string { return "operation id was used before" }

// buildInsertCall returns the statement that inserts a call. A subquery selects the workspace only if the preconditions
// still hold. Otherwise the workspace is NULL and the database refuses the row. The gate can therefore decide from
// cached data without a query. On PostgreSQL the ShareClause keeps the workspace unchanged until the transaction ends.
func buildInsertCall(e Engine) string {
	return `INSERT INTO calls (` + callColumns + `) VALUES ($1, (SELECT id FROM workspaces WHERE id = $2
		AND revision = $3
			AND NOT EXISTS (SELECT 1 FROM runs WHERE id = $4 AND state NOT IN ('running', 'parked'))
			AND NOT EXISTS (SELECT 1 FROM calls WHERE run_id = $4 AND ` + awaitsPerson + `)
			AND NOT EXISTS (SELECT 1 FROM automations WHERE agent_id = $5 AND paused_at > 0)` + e.ShareClause() + `),
		$6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $27,
		$28, $29, $30, $31, $32, $33, $34, $35)`
}

// InsertCall inserts a call. It returns ErrStaleDecision if the preconditions no longer hold, and ErrDuplicateOperation
// if the operation id was used before.
func (t LedgerTx) InsertCall(ctx context.Context, c Call, pre Preconditions) error {
	t.tx.Announce(c.Operation.WorkspaceID, TopicOperations,
		announcedID(c.Operation.ID, c.Operation.PrivateTo), c.Operation.RunID)
	if c.Operation.State == reeve.Unknown {
		t.tx.Announce(c.Operation.WorkspaceID, TopicInbox, "", "")
	}
	o, result := c.Operation, CallResult{}
	if o.ID != "" {
		if err := reeve.State("").CheckTransition(o.State); err != nil {
			return err
		}
	}
	if c.Result != nil {
		result = *c.Result
	}
	mapFault := func(f Fault) error {
		switch f.Kind {
		case FaultNotNull:
			return ErrStaleDecision{}
		case FaultUnique:
			return ErrDuplicateOperation{}
		default:
			return nil
		}
	}
	return t.tx.execMapFault(ctx, mapFault, t.db.insertCallSQL, o.CallID, o.WorkspaceID, pre.Revision, pre.Run,
		pre.Automation, o.AgentID,
		nullIfEmpty(o.ID), result.ID, o.ThreadID,
		o.RunID, reeve.SanitizeText(o.Tool), o.ToolVersion, o.Policy, string(o.Effect), string(o.State), o.ArgsHash,
		o.Base, string(o.Code), reeve.SanitizeText(o.Message), o.Attempts,
		millisOrZero(o.NextAttemptAt), o.Owner, string(o.Resolution), o.ResolvedBy, encodeUndo(o.Undo),
		encodeSpent(o.Spent),
		reeve.Millis(t.now), boolToInt(o.Deferred),
		millisOrZero(o.TimeoutAt), millisOrZero(o.InFlightUntil), o.PrivateTo, reeve.SanitizeText(c.Args),
		reeve.SanitizeText(string(c.Request)),
		reeve.SanitizeText(result.Content),
		reeve.SanitizeText(string(result.Info)))
}

// nullIfEmpty returns nil, which is stored as NULL, for an empty string.
func nullIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// GetCall reads a call of a workspace.
func (s Ledger) GetCall(ctx context.Context, workspace, id string) (Call, error) {
	c, ok, err := queryOne(ctx, s.Snap, scanCall, `SELECT `+callColumns+
		` FROM calls WHERE id = $2 AND workspace_id || '' = $1`, workspace, id)
	if err == nil && (!ok || !s.canSee(c.Operation.PrivateTo)) {
		return Call{}, notFound("call", id)
	}
	return c, err
}
