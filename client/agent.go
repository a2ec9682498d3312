package client

import (
	"context"
	"net/http"

	"reeve"
	"reeve/api"
)

// Where an agent is asked for, its id and its name both serve.

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

// Update changes what the request names, and leaves the rest.
func (s AgentService) Update(ctx context.Context, agent string, a api.AgentRequest) (out reeve.Agent, err error) {
	return out, s.conn.do(ctx, &request{method: http.MethodPatch, path: path("agents", agent), body: a}, &out)
}

// Delete removes an agent.
func (s AgentService) Delete(ctx context.Context, agent string) error {
	return s.conn.remove(ctx, path("agents", agent))
}

// Tools lists the tools an agent has.
func (s AgentService) Tools(ctx context.Context, agent string) (api.ToolList, error) {
	return get[api.ToolList](ctx, s.conn, path("agents", agent, "tools"), nil)
}

// Attach attaches a tool to an agent.
func (s AgentService) Attach(ctx context.Context, agent string, a api.AttachRequest) (api.ToolView, error) {
	return post[api.ToolView](ctx, s.conn, path("agents", agent, "tools"), a)
}

// Detach takes a tool from an agent.
func (s AgentService) Detach(ctx context.Context, agent, tool string) error {
	return s.conn.remove(ctx, path("agents", agent, "tools", tool))
}

// State returns what an agent remembers of itself.
func (s AgentService) State(ctx context.Context, agent string) (reeve.AgentState, error) {
	return get[reeve.AgentState](ctx, s.conn, path("agents", agent, "state"), nil)
}

// PutState replaces an agent's slots, if nobody has changed them since the revision that the request names: an error
// with the code Stale says that somebody has, and nothing is changed.
func (s AgentService) PutState(ctx context.Context, agent string, r api.AgentStateRequest) (reeve.AgentState, error) {
	return put[reeve.AgentState](ctx, s.conn, path("agents", agent, "state"), r)
}

// Runtime tells how an agent is on the server's node.
func (s AgentService) Runtime(ctx context.Context, agent string) (reeve.AgentRuntime, error) {
	return get[reeve.AgentRuntime](ctx, s.conn, path("agents", agent, "runtime"), nil)
}
