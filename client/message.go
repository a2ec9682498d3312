package client

import (
	"context"

	"reeve/api"
)

// MessageFilter chooses a thread and a part of it.
type MessageFilter struct {
	Session string // the thread of a session. Default: the caller's own default session
	Run     string // the thread of a run instead, or what a turn wrote
	Page
}

// Messages lists a part of an agent's thread, oldest first.
func (s AgentService) Messages(ctx context.Context, agent string, f MessageFilter) (api.MessageList, error) {
	q := f.query()
	q.Set("session", f.Session)
	q.Set("run", f.Run)
	return get[api.MessageList](ctx, s.conn, path("agents", agent, "messages"), q)
}
