package store

import (
	"context"
	"time"

	"reeve"
)

// RegisterProcess registers this process. It may be called again. If no other process can use the store, it removes all
// earlier registrations.
func (t SystemTx) RegisterProcess(ctx context.Context, id string) error {
	if t.db.engine.SingleProcess() {
		if err := t.tx.exec(ctx, `DELETE FROM processes`); err != nil {
			return err
		}
	}
	return t.tx.exec(ctx, `INSERT INTO processes (id, heartbeat_at, started_at) VALUES ($1, $2, $2)
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`, id, reeve.Millis(t.now))
}

// Heartbeat renews the registration of this process and removes processes without a heartbeat for longer than patience.
// It returns false if this process was removed. Then other processes may have claimed its work.
func (t SystemTx) Heartbeat(ctx context.Context, id string, patience time.Duration) (bool, error) {
	n, err := t.tx.execCount(ctx, `UPDATE processes SET heartbeat_at = $2 WHERE id = $1`, id, reeve.Millis(t.now))
	if err != nil {
		return false, err
	}
	return n == 1, t.tx.exec(ctx, `DELETE FROM processes WHERE heartbeat_at < $1`, reeve.Millis(t.now.Add(-patience)))
}

// UnregisterProcess removes the registration of this process.
func (t SystemTx) UnregisterProcess(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `DELETE FROM processes WHERE id = $1`, id)
}
