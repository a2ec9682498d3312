package store

import (
	"context"
	"time"

	"reeve"
)

const notificationColumns = `id, workspace_id, user_id, run_id, timer_id, agent_id, session, title, body, read_at, delivered_at, created_at`

func scanNotification(r scanner) (v reeve.Notification, err error) {
	defer wrapCorrupt("notifications", &v.ID, &err)
	var read, delivered, created int64
	err = r.Scan(&v.ID, &v.WorkspaceID, &v.UserID, &v.RunID, &v.TimerID, &v.AgentID, &v.Session, &v.Title, &v.Body,
		&read, &delivered, &created)
	v.ReadAt, v.DeliveredAt, v.CreatedAt = optional(read), optional(delivered), reeve.FromMillis(created)
	return v, err
}

// InsertNotification tells a person something. A run that has told them already tells them nothing more: false. Deliver
// says whether a webhook is to be told too.
func (t QueueTx) InsertNotification(ctx context.Context, v reeve.Notification, deliver bool) (bool, error) {
	var next int64
	if deliver {
		next = reeve.Millis(t.now)
	}
	n, err := t.tx.affect(ctx, `INSERT INTO notifications (`+notificationColumns+`, tries, next_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10, 0, $11)
		ON CONFLICT DO NOTHING`, v.ID, v.WorkspaceID, v.UserID, v.RunID, v.TimerID, v.AgentID, v.Session, v.Title, v.Body, reeve.Millis(t.now), next)
	return n == 1, err
}

// InsertNotificationAndEvents is InsertNotification for what no call tells of: who watches notifications is told with
// it, but for those whose own work led to it.
func (t QueueTx) InsertNotificationAndEvents(ctx context.Context, v reeve.Notification, deliver bool) (bool, error) {
	told, err := t.InsertNotification(ctx, v, deliver)
	if err != nil || !told {
		return false, err
	}
	return true, t.RecordChange(ctx, Change{Workspace: v.WorkspaceID, Agent: v.AgentID, Run: v.RunID,
		Operation: reeve.Key("chg", v.ID), Tokens: v.Tokens(), Window: Window})
}

// GetNotification reads a notification of a workspace.
func (s Queue) GetNotification(ctx context.Context, workspace, id string) (reeve.Notification, error) {
	v, ok, err := one(ctx, s.Snap, scanNotification, `SELECT `+notificationColumns+
		` FROM notifications WHERE workspace_id = $1 AND id = $2`, workspace, id)
	if err == nil && !ok {
		err = notFound("notification", id)
	}
	return v, err
}

// ListNotifications reads a page of a user's notifications, newest first, before an id.
func (s Queue) ListNotifications(ctx context.Context, workspace, user string, unread bool, before string,
	limit int) ([]reeve.Notification, error) {
	only := 0
	if unread {
		only = 1
	}
	return all(ctx, s.Snap, scanNotification, `SELECT `+notificationColumns+` FROM notifications WHERE workspace_id = $1 AND user_id = $2 AND ($3 = 0 OR read_at = 0)
		AND ($4 = '' OR id < $4) ORDER BY id DESC LIMIT $5`, workspace, user, only, before, limit)
}

// MarkNotificationRead notes that a person has seen it.
func (t QueueTx) MarkNotificationRead(ctx context.Context, workspace, user, id string) error {
	n, err := t.tx.affect(ctx, `UPDATE notifications SET read_at = CASE WHEN read_at = 0 THEN CAST($4 AS BIGINT) ELSE read_at END
		WHERE workspace_id = $1 AND user_id = $2 AND id = $3`, workspace, user, id, reeve.Millis(t.now))
	if err == nil && n == 0 {
		return notFound("notification", id)
	}
	return err
}

// maxTries is how often a webhook is told.
const maxTries = 10

// ClaimDeliveries takes notifications that are to be sent to a webhook, and puts the next try off, by twice as long
// each time, so that a crash on the way only delays it.
func (t QueueTx) ClaimDeliveries(ctx context.Context, putOff time.Duration, limit int) ([]reeve.Notification, error) {
	return all(ctx, t.Snap, skipCorrupt(t.Snap, scanNotification, nil), `WITH due AS MATERIALIZED (SELECT id FROM notifications WHERE delivered_at = 0 AND next_at > 0 AND next_at <= $1
			ORDER BY next_at LIMIT $3`+t.db.engine.LockClause()+`)
		UPDATE notifications SET tries = tries + 1, next_at = CASE WHEN tries + 1 >= $4 THEN 0 ELSE $1 + $2 * (CAST(1 AS BIGINT) << CAST(tries AS INTEGER)) END
		WHERE id IN (SELECT id FROM due) RETURNING `+notificationColumns,
		reeve.Millis(t.now), putOff.Milliseconds(), limit, maxTries)
}

// NextDelivery is when the next notification is due to be sent, in milliseconds; false means that none is.
func (s Queue) NextDelivery(ctx context.Context) (int64, bool, error) {
	return one(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("notifications"), nil),
		`SELECT id, next_at FROM notifications WHERE delivered_at = 0 AND next_at > 0 ORDER BY next_at LIMIT 1`)
}

// MarkDelivered notes that a webhook took a notification.
func (t QueueTx) MarkDelivered(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `UPDATE notifications SET delivered_at = $2 WHERE id = $1 AND delivered_at = 0`, id,
		reeve.Millis(t.now))
}
