package store

import (
	"context"
	"time"

	"reeve"
)

// RegisterProcess announces this process, which may have announced itself before. On a store that nobody else can be
// using, all earlier ones are gone.
func (t SystemTx) RegisterProcess(ctx context.Context, id string) error {
	if t.db.engine.SingleProcess() {
		if err := t.tx.exec(ctx, `DELETE FROM processes`); err != nil {
			return err
		}
	}
	return t.tx.exec(ctx, `INSERT INTO processes (id, heartbeat_at, started_at) VALUES ($1, $2, $2)
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`, id, reeve.Millis(t.now))
}

// Heartbeat says that this process lives, and forgets those that have not said so for a while. False means that this
// process itself was forgotten: others may have taken its work.
func (t SystemTx) Heartbeat(ctx context.Context, id string, patience time.Duration) (bool, error) {
	n, err := t.tx.affect(ctx, `UPDATE processes SET heartbeat_at = $2 WHERE id = $1`, id, reeve.Millis(t.now))
	if err != nil {
		return false, err
	}
	return n == 1, t.tx.exec(ctx, `DELETE FROM processes WHERE heartbeat_at < $1`, reeve.Millis(t.now.Add(-patience)))
}

// UnregisterProcess says goodbye.
func (t SystemTx) UnregisterProcess(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `DELETE FROM processes WHERE id = $1`, id)
}
