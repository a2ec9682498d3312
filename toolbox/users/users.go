// Package users is the pack of users_send, which sends a message to a user's inbox.
package users

import (
	"context"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// Pack is the pack of users_send.
type Pack struct {
	Webhook bool // also send messages to the operator's webhook
}

type sendArgs struct {
	Title string `json:"title" minLength:"1" maxLength:"200" doc:"Subject, one line"`
	Text  string `json:"text,omitempty" maxLength:"20000" doc:"Body of the message"`
}

// Tools returns users_send.
func (p *Pack) Tools() []reeve.Tool {
	return []reeve.Tool{reeve.MustTool(reeve.Tool{ID: "users_send", Name: "Send Message", Category: "users",
		Pack: "users", Effect: reeve.Local, Risk: reeve.LowRisk, TimeoutMS: 10_000,
		Description: "Send a message to the inbox of the user for whom this run acts, or of the automation's owner. " +
			"Use it to report a result or a problem. Returns the notification id."}, p.send)}
}

// send writes the message as a notification.
func (p *Pack) send(ctx context.Context, in sendArgs) (map[string]any, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Title) == "" {
		return nil, reeve.InvalidField("/title", "is empty", "a subject line")
	}
	user := inv.User
	if user == "" {
		m, err := tx.Automations().GetAutomation(ctx, inv.Workspace, inv.Agent)
		if err != nil && reeve.CodeOf(err) != reeve.NotFound {
			return nil, err
		}
		user = m.Owner
	}
	if user == "" {
		return nil, reeve.Errorf(reeve.ToolFailed, "the run acts for no user, so the message has no recipient")
	}
	// The notification names no run, because a run may send several messages.
	n := reeve.Notification{ID: tx.NewID(reeve.PrefixNotification), WorkspaceID: inv.Workspace, UserID: user,
		AgentID: inv.Agent, Title: in.Title, Body: in.Text}
	if _, err := tx.Queue().InsertNotification(ctx, n, p.Webhook); err != nil {
		return nil, err
	}
	inv.EmitAll(n.Tokens())
	return map[string]any{"sent": true, "notification_id": n.ID}, nil
}
