package store

import (
	"context"
	"encoding/json"
	"time"

	"reeve"
)

const modelRequestColumns = `run_id, number, request, left_out`

func scanModelRequest(r scanner) (v reeve.AskedRequest, err error) {
	var run, request, leftOut string
	defer wrapCorrupt("model_requests", &run, &err)
	if err = r.Scan(&run, &v.Number, &request, &leftOut); err != nil {
		return v, err
	}
	v.Request, v.LeftOut = json.RawMessage(request), []reeve.Omission{}
	return v, decodeJSON("left_out", leftOut, &v.LeftOut)
}

// PutModelRequest stores the request that begins a run, or that continues it after an interruption. Number is the
// number of the answer that follows, from 1. showsUntrusted says that it quotes notes from an untrusted source.
func (t RunsTx) PutModelRequest(ctx context.Context, workspace, run string, r reeve.AskedRequest,
	showsUntrusted bool) error {
	return t.tx.exec(ctx, `INSERT INTO model_requests (run_id, number, workspace_id, request, left_out, untrusted,
			created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (run_id, number) DO UPDATE SET request = $4, left_out = $5, untrusted = $6`,
		run, r.Number, workspace, string(r.Request), encodeJSON(r.LeftOut), boolToInt(showsUntrusted),
		reeve.Millis(t.now))
}

// ListModelRequests returns the stored requests of a run in their order, without expired ones.
func (s Runs) ListModelRequests(ctx context.Context, workspace, run string) ([]reeve.AskedRequest, error) {
	return queryAll(ctx, s.Snap, scanModelRequest, `SELECT `+modelRequestColumns+` FROM model_requests
		WHERE run_id = $2 AND workspace_id = $1 AND request <> '' ORDER BY number`, workspace, run)
}

// HasExpiredModelRequests reports whether a stored request is older than a time.
func (s Runs) HasExpiredModelRequests(ctx context.Context, before time.Time) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, scanValue[string],
		`SELECT run_id FROM model_requests WHERE created_at < $1 AND request <> '' ORDER BY created_at LIMIT 1`,
		reeve.Millis(before))
	return ok, err
}

// ClearExpiredModelRequests removes the texts of up to limit requests that are older than a time. It returns their
// number. What says that a run was shown untrusted notes stays: the run may write notes later.
func (t RunsTx) ClearExpiredModelRequests(ctx context.Context, before time.Time, limit int) (int64, error) {
	return t.tx.execCount(ctx, `UPDATE model_requests SET request = '', left_out = '[]' WHERE (run_id, number) IN (
		SELECT run_id, number FROM model_requests WHERE created_at < $1 AND request <> '' ORDER BY created_at LIMIT $2)`,
		reeve.Millis(before), limit)
}
