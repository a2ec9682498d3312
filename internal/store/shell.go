package store

import (
	"context"

	"reeve"
)

// PutShell stores the state of a thread's shell after a command.
func (t ChatTx) PutShell(ctx context.Context, workspace, thread string, state []byte) error {
	return t.tx.exec(ctx, `INSERT INTO shells (workspace_id, thread_id, state, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, thread_id) DO UPDATE SET state = $3, updated_at = $4`, workspace, thread, state,
		reeve.Millis(t.now))
}

// GetShell returns the state of a thread's shell, or nil if none is stored.
func (s Chat) GetShell(ctx context.Context, workspace, thread string) ([]byte, error) {
	b, _, err := queryOne(ctx, s.Snap, scanValue[[]byte], `SELECT state FROM shells WHERE workspace_id = $1
		AND thread_id = $2`,
		workspace, thread)
	return b, err
}
