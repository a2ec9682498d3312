package client

import (
	"context"
	"net/http"

	"reeve"
	"reeve/api"
)

// NotificationFilter selects notifications.
type NotificationFilter struct {
	Unread bool // only unread ones
	Page
}

// List lists the notifications of the calling user, newest first.
func (s NotificationService) List(ctx context.Context, f NotificationFilter) (api.NotificationList, error) {
	q := f.query()
	if f.Unread {
		q.Set("unread", "true")
	}
	return get[api.NotificationList](ctx, s.conn, path("notifications"), q)
}

// Get returns one notification.
func (s NotificationService) Get(ctx context.Context, id string) (reeve.Notification, error) {
	return get[reeve.Notification](ctx, s.conn, path("notifications", id), nil)
}

// MarkRead marks a notification as read.
func (s NotificationService) MarkRead(ctx context.Context, id string) error {
	return s.conn.do(ctx, &request{method: http.MethodPost, path: path("notifications", id, "read")}, nil)
}
