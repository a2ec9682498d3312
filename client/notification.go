package client

import (
	"context"
	"net/http"

	"reeve"
)

// NotificationFilter chooses notifications.
type NotificationFilter struct {
	Unread bool // leave out those that were read
	Page
}

// Notifications lists what you were told, newest first.
func (c *Client) Notifications(ctx context.Context, f NotificationFilter) (reeve.NotificationList, error) {
	q := f.query()
	if f.Unread {
		q.Set("unread", "true")
	}
	return get[reeve.NotificationList](ctx, c, path("notifications"), q)
}

// Notification gives one notification.
func (c *Client) Notification(ctx context.Context, id string) (reeve.Notification, error) {
	return get[reeve.Notification](ctx, c, path("notifications", id), nil)
}

// ReadNotification notes that you have seen it.
func (c *Client) ReadNotification(ctx context.Context, id string) error {
	return c.do(ctx, &request{method: http.MethodPost, path: path("notifications", id, "read")}, nil)
}
