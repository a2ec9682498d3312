package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// notificationHandlers serves the notifications of a user.
type notificationHandlers struct {
	db *store.DB
}

func (h *notificationHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Unread bool `query:"unread" doc:"Only unread notifications"`
}) (*body[api.NotificationList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.NotificationList]{}
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Notifications, err = snap.Queue().ListNotifications(ctx, who.Workspace, who.User, in.Unread, in.Cursor,
			in.Limit)
		return err
	})
	if n := len(out.Body.Notifications); n == in.Limit {
		out.Body.Next = out.Body.Notifications[n-1].ID
	}
	return out, err
}

func (h *notificationHandlers) get(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[reeve.Notification], error) {
	out := &body[reeve.Notification]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = snap.Queue().GetNotification(ctx, who.Workspace, in.ID); err == nil &&
			!canSee(who, out.Body.UserID) {
			err = newNotFound("notification", in.ID)
		}
		return err
	})
}

func (h *notificationHandlers) markRead(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Queue().MarkNotificationRead(ctx, who.Workspace, who.User, in.ID); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, nil)
	})
}
