package store

import (
	"context"
	"time"

	"reeve"
)

// PutScratchpad replaces a session's scratchpad; no items empty it.
func (t *Tx) PutScratchpad(ctx context.Context, workspace, session string, items []string) error {
	return t.exec(ctx, `INSERT INTO scratchpads (workspace_id, session_id, items, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, session_id) DO UPDATE SET items = $3, updated_at = $4`, workspace, session, text(items), reeve.Millis(t.now))
}

// GetScratchpad reads a session's scratchpad; nil means that there is none.
func (s *Snap) GetScratchpad(ctx context.Context, workspace, session string) (items []string, at time.Time, err error) {
	type row struct {
		items string
		at    int64
	}
	r, ok, err := one(ctx, s, func(r scanner) (v row, err error) { return v, r.Scan(&v.items, &v.at) },
		`SELECT items, updated_at FROM scratchpads WHERE workspace_id = $1 AND session_id = $2`, workspace, session)
	if err != nil || !ok {
		return nil, at, err
	}
	err = fromText(r.items, &items)
	return items, reeve.FromMillis(r.at), err
}
