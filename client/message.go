package client

import (
	"context"

	"reeve/api"
)

// MessageFilter selects a thread and a part of it.
type MessageFilter struct {
	Session string // thread of a session. Default: the caller's default session
	Run     string // thread of a run instead, or the messages of a turn
	Page
}

// Messages lists messages of an agent's thread, oldest first.
func (s AgentService) Messages(ctx context.Context, agent string, f MessageFilter) (api.MessageList, error) {
	q := f.query()
	q.Set("session", f.Session)
	q.Set("run", f.Run)
	return get[api.MessageList](ctx, s.conn, path("agents", agent, "messages"), q)
}
