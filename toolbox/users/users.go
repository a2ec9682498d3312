// Package users is how agents and scripts reach their person: a message to the inbox.
package users

import (
	"context"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// Pack is the pack.
type Pack struct {
	Webhook bool // whether messages are also sent to the operator's webhook
}

type send struct {
	Title string `json:"title" minLength:"1" maxLength:"200" doc:"A line that says what it is about"`
	Text  string `json:"text,omitempty" maxLength:"20000"`
}

// Tools gives users_send.
func (p *Pack) Tools() []reeve.Tool {
	return []reeve.Tool{reeve.MustTool(reeve.Tool{ID: "users_send", Name: "Send Message", Category: "users",
		Pack: "users", Effect: reeve.Local, Risk: reeve.LowRisk, TimeoutMS: 10_000,
		Description: "Send a message to the person's inbox: the one whom the run is for, else the automation's " +
			"owner. A mutation."}, p.send)}
}

func (p *Pack) send(ctx context.Context, in send) (map[string]any, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Title) == "" {
		return nil, reeve.InvalidField("/title", "is empty", "a line that says what it is about")
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
		return nil, reeve.Errorf(reeve.ToolFailed, "there is nobody to send it to: this is on nobody's behalf")
	}
	// of no run: a run may send several
	n := reeve.Notification{ID: tx.NewID(reeve.PrefixNotification), WorkspaceID: inv.Workspace, UserID: user,
		AgentID: inv.Agent, Title: in.Title, Body: in.Text}
	if _, err := tx.Queue().InsertNotification(ctx, n, p.Webhook); err != nil {
		return nil, err
	}
	inv.EmitAll(n.Tokens())
	return map[string]any{"sent": true, "notification_id": n.ID}, nil
}
