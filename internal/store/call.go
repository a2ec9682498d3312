package store

import (
	"context"
	"encoding/json"

	"reeve"
)

// Call is one row of the ledger: what was asked, what the gate decided, and the result once there is one. Of a call
// that is no operation, because it changes nothing or was refused, Operation has neither id nor state.
type Call struct {
	Operation reeve.Operation
	Args      string          // as callers are shown them
	Request   json.RawMessage // a reeve.ActionInfo
	Result    *CallResult     // nil until there is one
}

// CallResult is what came of a call.
type CallResult struct {
	ID      string
	Content string
	Info    json.RawMessage // a reeve.ResultInfo
}

// RequestInfo decodes who asked for the call, how and why, and what each step of the gate decided.
func (c Call) RequestInfo() (info reeve.ActionInfo, err error) {
	return info, json.Unmarshal(c.Request, &info)
}

// ResultInfo decodes what is known of the result beside its content.
func (r CallResult) ResultInfo() (info reeve.ResultInfo, err error) {
	return info, json.Unmarshal(r.Info, &info)
}

const callColumns = operationColumns + `, args, request, result, result_info`

func scanCall(r scanner) (c Call, err error) {
	defer wrapCorrupt("calls", &c.Operation.CallID, &err)
	var request, result, info string
	c.Operation, err = scanOperation(columnsThen{r, []any{&c.Args, &request, &result, &info}})
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

// columnsThen scans a row that has some more columns behind those that are asked for.
type columnsThen struct {
	row  scanner
	more []any
}

func (c columnsThen) Scan(dest ...any) error { return c.row.Scan(append(dest, c.more...)...) }

// Preconditions is what must still hold when a call is written.
type Preconditions struct {
	Revision   int64  // of the workspace, when the gate decided
	Run        string // must not have ended, nor wait for a person; empty means that it is not looked at
	Automation string // the agent whose automation must not be paused; empty means that it is not looked at
}

// ErrStaleDecision means that the workspace, the run or the automation has changed since the gate decided on a call:
// decide again.
type ErrStaleDecision struct{}

func (ErrStaleDecision) Error() string { return "the workspace has changed since the call was judged" }

// ErrDuplicateOperation means that the operation id was used before: look at what came of it.
type ErrDuplicateOperation struct{}

func (ErrDuplicateOperation) Error() string { return "the operation id has been used" }

// newCall inserts a row. The workspace comes from a sub-select that finds nothing if what the gate decided by holds no
// longer, and a row without a workspace is refused. So the gate decides from a cached view, without a read, and no
// change is missed: on PostgreSQL the workspace stays as it was read until the transaction ends.
func newCall(e Engine) string {
	return `INSERT INTO calls (` + callColumns + `) VALUES ($1, (SELECT id FROM workspaces WHERE id = $2 AND revision = $3
			AND NOT EXISTS (SELECT 1 FROM runs WHERE id = $4 AND state NOT IN ('running', 'parked'))
			AND NOT EXISTS (SELECT 1 FROM calls WHERE run_id = $4 AND ` + awaitsPerson + `)
			AND NOT EXISTS (SELECT 1 FROM automations WHERE agent_id = $5 AND paused_at > 0)` + e.ShareClause() + `),
		$6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $27, $28, $29, $30, $31, $32, $33, $34)`
}

// InsertCall writes a new call. It returns Stale if the workspace, run or automation has changed since the decision,
// and Taken if the operation id was used before.
func (t LedgerTx) InsertCall(ctx context.Context, c Call, j Preconditions) error {
	o, result := c.Operation, CallResult{}
	if o.ID != "" {
		if err := reeve.State("").CheckTransition(o.State); err != nil {
			return err
		}
	}
	if c.Result != nil {
		result = *c.Result
	}
	refused := func(f Fault) error {
		switch f.Kind {
		case FaultNotNull:
			return ErrStaleDecision{}
		case FaultUnique:
			return ErrDuplicateOperation{}
		default:
			return nil
		}
	}
	return t.tx.execOr(ctx, refused, t.db.newCall, o.CallID, o.WorkspaceID, j.Revision, j.Run, j.Automation, o.AgentID,
		orNull(o.ID), result.ID, o.ThreadID,
		o.RunID, reeve.SanitizeText(o.Tool), o.ToolVersion, o.Policy, string(o.Effect), string(o.State), o.ArgsHash,
		o.Base, string(o.Code), reeve.SanitizeText(o.Message), o.Tries,
		orZero(o.NextAttemptAt), o.Owner, string(o.Resolution), o.ResolvedBy, undoText(o.Undo), spentText(o.Spent),
		reeve.Millis(t.now), flag(o.Deferred),
		orZero(o.TimeoutAt), orZero(o.InFlightUntil), reeve.SanitizeText(c.Args), reeve.SanitizeText(string(c.Request)),
		reeve.SanitizeText(result.Content),
		reeve.SanitizeText(string(result.Info)))
}

// orNull is NULL for an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// GetCall reads a call of a workspace.
func (s Ledger) GetCall(ctx context.Context, workspace, id string) (Call, error) {
	c, ok, err := one(ctx, s.Snap, scanCall, `SELECT `+callColumns+
		` FROM calls WHERE id = $2 AND workspace_id || '' = $1`, workspace, id)
	if err == nil && !ok {
		err = notFound("call", id)
	}
	return c, err
}
