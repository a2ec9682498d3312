package store

import (
	"context"
	"time"

	"reeve"
)

// PutScratchpad replaces the items of a session's scratchpad.
func (t ChatTx) PutScratchpad(ctx context.Context, workspace, session string, items []string) error {
	return t.tx.exec(ctx, `INSERT INTO scratchpads (workspace_id, session_id, items, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, session_id) DO UPDATE SET items = $3, updated_at = $4`, workspace, session,
		encodeJSON(items), reeve.Millis(t.now))
}

// scratchpad is a row of scratchpads.
type scratchpad struct {
	workspace, session string
	items              []string
	updated            int64
}

const selectScratchpad = `SELECT workspace_id, session_id, items, updated_at FROM scratchpads `

func scanScratchpad(r scanner) (v scratchpad, err error) {
	var items string
	if err = r.Scan(&v.workspace, &v.session, &items, &v.updated); err == nil {
		err = decodeJSON("items", items, &v.items)
	}
	if err != nil {
		err = corruptError("scratchpads", v.workspace+"/"+v.session, err)
	}
	return v, err
}

// GetScratchpad returns the items of a session's scratchpad, or nil if there is none.
func (s Chat) GetScratchpad(ctx context.Context, workspace, session string) (items []string, at time.Time, err error) {
	v, ok, err := queryOne(ctx, s.Snap, scanScratchpad, selectScratchpad+`WHERE workspace_id = $1 AND session_id = $2`,
		workspace, session)
	if err != nil || !ok {
		return nil, at, err
	}
	return v.items, reeve.FromMillis(v.updated), nil
}
