package store

import (
	"context"

	"reeve"
)

// PutShell keeps what the shell of a thread had when its command ended.
func (t ChatTx) PutShell(ctx context.Context, workspace, thread string, state []byte) error {
	return t.tx.exec(ctx, `INSERT INTO shells (workspace_id, thread_id, state, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, thread_id) DO UPDATE SET state = $3, updated_at = $4`, workspace, thread, state, reeve.Millis(t.now))
}

// GetShell reads it; nothing was kept if it is nil.
func (s Chat) GetShell(ctx context.Context, workspace, thread string) ([]byte, error) {
	b, _, err := one(ctx, s.Snap, value[[]byte], `SELECT state FROM shells WHERE workspace_id = $1 AND thread_id = $2`,
		workspace, thread)
	return b, err
}
