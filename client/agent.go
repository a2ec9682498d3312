package client

import (
	"context"
	"net/http"

	"reeve"
	"reeve/api"
)

// Methods with an agent parameter accept its id or its name.

// List lists the workspace's agents.
func (s AgentService) List(ctx context.Context, p Page) (api.AgentList, error) {
	return get[api.AgentList](ctx, s.conn, path("agents"), p.query())
}

// Get returns one agent.
func (s AgentService) Get(ctx context.Context, agent string) (reeve.Agent, error) {
	return get[reeve.Agent](ctx, s.conn, path("agents", agent), nil)
}

// Create makes an agent.
func (s AgentService) Create(ctx context.Context, a api.AgentRequest) (reeve.Agent, error) {
	return post[reeve.Agent](ctx, s.conn, path("agents"), a)
}

// Update changes the fields that are set in the request.
func (s AgentService) Update(ctx context.Context, agent string, a api.AgentRequest) (out reeve.Agent, err error) {
	return out, s.conn.do(ctx, &request{method: http.MethodPatch, path: path("agents", agent), body: a}, &out)
}

// Delete removes an agent.
func (s AgentService) Delete(ctx context.Context, agent string) error {
	return s.conn.delete(ctx, path("agents", agent))
}

// Tools lists the tools of an agent.
func (s AgentService) Tools(ctx context.Context, agent string) (api.ToolList, error) {
	return get[api.ToolList](ctx, s.conn, path("agents", agent, "tools"), nil)
}

// Attach attaches a tool to an agent.
func (s AgentService) Attach(ctx context.Context, agent string, a api.AttachRequest) (api.ToolView, error) {
	return post[api.ToolView](ctx, s.conn, path("agents", agent, "tools"), a)
}

// Detach detaches a tool from an agent.
func (s AgentService) Detach(ctx context.Context, agent, tool string) error {
	return s.conn.delete(ctx, path("agents", agent, "tools", tool))
}

// State returns the state of an agent.
func (s AgentService) State(ctx context.Context, agent string) (reeve.AgentState, error) {
	return get[reeve.AgentState](ctx, s.conn, path("agents", agent, "state"), nil)
}

// PutState replaces an agent's state slots. If the state has changed since the revision in the request, it changes
// nothing and returns an error with the code Stale.
func (s AgentService) PutState(ctx context.Context, agent string, r api.AgentStateRequest) (reeve.AgentState, error) {
	return put[reeve.AgentState](ctx, s.conn, path("agents", agent, "state"), r)
}

// PutWakePlan replaces until when an agent sleeps and when it wakes itself.
func (s AgentService) PutWakePlan(ctx context.Context, agent string, plan reeve.WakePlan) (reeve.AgentState, error) {
	return put[reeve.AgentState](ctx, s.conn, path("agents", agent, "wake-plan"), plan)
}

// Summaries lists an agent's summaries of turns and runs, those of the latest first.
func (s AgentService) Summaries(ctx context.Context, agent string, p Page) (api.SummaryList, error) {
	return get[api.SummaryList](ctx, s.conn, path("agents", agent, "summaries"), p.query())
}

// RetrySummary tries a failed summary again.
func (s AgentService) RetrySummary(ctx context.Context, agent, summary string) (api.Summary, error) {
	return post[api.Summary](ctx, s.conn, path("agents", agent, "summaries", summary, "retry"), nil)
}

// Runtime returns the status of an agent on the server's node.
func (s AgentService) Runtime(ctx context.Context, agent string) (reeve.AgentRuntime, error) {
	return get[reeve.AgentRuntime](ctx, s.conn, path("agents", agent, "runtime"), nil)
}
