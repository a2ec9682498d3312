package store

import (
	"context"
	"time"

	"reeve"
)

// PutScratchpad replaces a session's scratchpad; no items empty it.
func (t ChatTx) PutScratchpad(ctx context.Context, workspace, session string, items []string) error {
	return t.tx.exec(ctx, `INSERT INTO scratchpads (workspace_id, session_id, items, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, session_id) DO UPDATE SET items = $3, updated_at = $4`, workspace, session, text(items), reeve.Millis(t.now))
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
		err = decode("items", items, &v.items)
	}
	if err != nil {
		err = corrupt("scratchpads", v.workspace+"/"+v.session, err)
	}
	return v, err
}

// GetScratchpad reads a session's scratchpad; nil means that there is none.
func (s Chat) GetScratchpad(ctx context.Context, workspace, session string) (items []string, at time.Time, err error) {
	v, ok, err := one(ctx, s.Snap, scanScratchpad, selectScratchpad+`WHERE workspace_id = $1 AND session_id = $2`,
		workspace, session)
	if err != nil || !ok {
		return nil, at, err
	}
	return v.items, reeve.FromMillis(v.updated), nil
}
