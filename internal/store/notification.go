package store

import (
	"context"
	"time"

	"reeve"
)

const notificationColumns = `id, workspace_id, user_id, run_id, timer_id, agent_id, session, title, body, read_at,
	delivered_at, created_at`

func scanNotification(r scanner) (v reeve.Notification, err error) {
	defer wrapCorrupt("notifications", &v.ID, &err)
	var read, delivered, created int64
	err = r.Scan(&v.ID, &v.WorkspaceID, &v.UserID, &v.RunID, &v.TimerID, &v.AgentID, &v.Session, &v.Title, &v.Body,
		&read, &delivered, &created)
	v.ReadAt, v.DeliveredAt, v.CreatedAt = timeOrNil(read), timeOrNil(delivered), reeve.FromMillis(created)
	return v, err
}

// InsertNotification inserts a notification for a user. It returns false if the run has notified the user before. If
// deliver is true, the notification is also sent to the webhook.
func (t QueueTx) InsertNotification(ctx context.Context, v reeve.Notification, deliver bool) (bool, error) {
	t.tx.Announce(v.WorkspaceID, TopicNotifications, v.ID, "")
	var next int64
	if deliver {
		next = reeve.Millis(t.now)
	}
	n, err := t.tx.execCount(ctx, `INSERT INTO notifications (`+notificationColumns+`, tries, next_at) VALUES ($1, $2,
		$3, $4, $5, $6, $7, $8, $9, 0, 0, $10, 0, $11)
		ON CONFLICT DO NOTHING`, v.ID, v.WorkspaceID, v.UserID, v.RunID, v.TimerID, v.AgentID, v.Session, v.Title,
		v.Body, reeve.Millis(t.now), next)
	return n == 1, err
}

// InsertNotificationAndEvents is InsertNotification for a notification that is not the effect of a call. It also
// records the change, which wakes agents that subscribe to notifications.
func (t QueueTx) InsertNotificationAndEvents(ctx context.Context, v reeve.Notification, deliver bool) (bool, error) {
	inserted, err := t.InsertNotification(ctx, v, deliver)
	if err != nil || !inserted {
		return false, err
	}
	return true, t.RecordChange(ctx, Change{Workspace: v.WorkspaceID, Agent: v.AgentID, Run: v.RunID,
		Operation: reeve.DeriveID("chg", v.ID), Tokens: v.Tokens(), Window: ChangeWindow})
}

// GetNotification returns a notification of a workspace.
func (s Queue) GetNotification(ctx context.Context, workspace, id string) (reeve.Notification, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanNotification, `SELECT `+notificationColumns+
		` FROM notifications WHERE workspace_id = $1 AND id = $2`, workspace, id)
	if err == nil && !ok {
		err = notFound("notification", id)
	}
	return v, err
}

// ListNotifications returns a page of a user's notifications before an id, newest first.
func (s Queue) ListNotifications(ctx context.Context, workspace, user string, unread bool, before string,
	limit int) ([]reeve.Notification, error) {
	only := 0
	if unread {
		only = 1
	}
	return queryAll(ctx, s.Snap, scanNotification, `SELECT `+notificationColumns+` FROM notifications
		WHERE workspace_id = $1 AND user_id = $2 AND ($3 = 0 OR read_at = 0)
		AND ($4 = '' OR id < $4) ORDER BY id DESC LIMIT $5`, workspace, user, only, before, limit)
}

// MarkNotificationRead marks a notification as read.
func (t QueueTx) MarkNotificationRead(ctx context.Context, workspace, user, id string) error {
	t.tx.Announce(workspace, TopicNotifications, id, "")
	n, err := t.tx.execCount(ctx, `UPDATE notifications SET read_at = CASE WHEN read_at = 0 THEN CAST($4 AS BIGINT)
		ELSE read_at END
		WHERE workspace_id = $1 AND user_id = $2 AND id = $3`, workspace, user, id, reeve.Millis(t.now))
	if err == nil && n == 0 {
		return notFound("notification", id)
	}
	return err
}

// maxDeliveryTries is how often a notification is sent to the webhook.
const maxDeliveryTries = 10

// ClaimDeliveries returns notifications that are due to be sent to the webhook and delays their next try, by twice as
// long each time. A crash before the delivery therefore only delays it.
func (t QueueTx) ClaimDeliveries(ctx context.Context, delay time.Duration, limit int) ([]reeve.Notification, error) {
	return queryAll(ctx, t.Snap, skipCorrupt(t.Snap, scanNotification, nil), `WITH due AS MATERIALIZED (SELECT id
		FROM notifications WHERE delivered_at = 0 AND next_at > 0 AND next_at <= $1
			ORDER BY next_at LIMIT $3`+t.db.engine.LockClause()+`)
		UPDATE notifications SET tries = tries + 1, next_at = CASE WHEN tries + 1 >= $4 THEN 0
		ELSE $1 + $2 * (CAST(1 AS BIGINT) << CAST(tries AS INTEGER)) END
		WHERE id IN (SELECT id FROM due) RETURNING `+notificationColumns,
		reeve.Millis(t.now), delay.Milliseconds(), limit, maxDeliveryTries)
}

// NextDelivery returns the time, in milliseconds, at which the next notification is due to be sent. It returns false if
// there is none.
func (s Queue) NextDelivery(ctx context.Context) (int64, bool, error) {
	return queryOne(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("notifications"), nil),
		`SELECT id, next_at FROM notifications WHERE delivered_at = 0 AND next_at > 0 ORDER BY next_at LIMIT 1`)
}

// MarkDelivered marks a notification as delivered to the webhook.
func (t QueueTx) MarkDelivered(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `UPDATE notifications SET delivered_at = $2 WHERE id = $1 AND delivered_at = 0`, id,
		reeve.Millis(t.now))
}
